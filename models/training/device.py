"""Where a training computes.

    cpu                           the compiled kernels
    any other device of torch     the plain form of the same group sums, in chunks (group_sums.py)

`cpu:0` is the plain form on the processor, to compare the two. Group sums are float64 and stay on
the processor; random numbers are drawn there, too, so that batches and first weights are the same
on every device. Roundings differ: a network trained elsewhere is not the same to the last bit.
"""

from __future__ import annotations

import torch

from selection.errors import UserError

COMPILED = "cpu"


class DeviceNotAvailable(UserError):  # noqa: N818  (it says what is missing)
    """torch cannot compute there."""


def usable_device(name: str) -> torch.device:
    """The device, after a sum in float64 on it."""
    try:
        device = torch.device(name)
        float(torch.ones(2, dtype=torch.float64, device=device).sum())
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        said = str(error).splitlines()[0]
        gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        msg = (
            f"training.device is {name!r}: torch {torch.__version__} cannot use it here ({said}). "
            f"There are: {', '.join(['cpu', *gpus])}. Set training.device to one of them; for a "
            f"GPU, install a torch that is built for it"
        )
        raise DeviceNotAvailable(msg) from error
    return device
