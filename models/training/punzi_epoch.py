"""One epoch of Punzi-loss in batches, as fast as one sweep over all events.

    theta <- theta - r dL/dtheta,  L = loss of scale_k * S_k(theta),  batch k after batch k - 1
    or the step of Adam (adam.py)

A batch of 1e5 events takes a millisecond, waking a thread for it a third of one, and a step of
torch's autograd and optimiser as much. Helpers are therefore woken once per epoch and stay in
compiled code, where they wait for the next batch (`share_batches` in kernels.py); loss and step are
closed forms. Any other network goes the general way (epochs.py).
A group is summed by one thread: threads share the work of many groups, not of one large one.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import numpy as np
import numpy.typing as npt

from models.network import PunziNet
from models.training.adam import AdamMemory
from models.training.batches import Deal
from models.training.group_sums import packed, padded_widths, put_back, scaling_rows
from models.training.kernels import memory_of, share_batches

Slopes = Callable[[npt.NDArray[np.float64]], tuple[float, npt.NDArray[np.float64]]]
STOP = np.iinfo(np.int64).max


def fused_punzi_epoch(
    network: PunziNet,
    deal: Deal,
    slopes: Slopes,
    *,
    learning_rate: float,
    threads: int,
    adam: AdamMemory | None = None,
) -> float:
    """Steps over all batches of the deal, of Adam or plain; changes weights (and Adam's memory).

    slopes: scaled group sums (n_groups,) -> L and dL/dS. Returns the mean loss of the batches, each
    before its step; one that is not finite ends the epoch with the weights it was found at.
    """
    theta = packed(list(network.parameters()))
    out = np.empty((deal.start.shape[1], 1 + len(theta)))
    shared = np.zeros(1 + 2 * len(deal.start), np.int64)
    features, weight = deal.events.features, deal.events.weight
    events = (features, weight, scaling_rows(network, features))
    widths = padded_widths(network)
    rows, place = (deal.start, deal.stop), (theta, widths, out, shared)
    own, *others = [memory_of(widths, theta) for _ in range(threads)]
    every = (events, rows, (0, len(deal.start)), False)
    helpers = [Thread(target=share_batches, args=(*every, room, *place)) for room in others]
    value, total = np.nan, 0.0
    try:
        for helper in helpers:
            helper.start()
        for batch, scale in enumerate(deal.scale):
            share_batches(events, rows, (batch, batch + 1), True, own, *place)
            value, by_sums = slopes(out[:, 0] * scale)
            with np.errstate(over="ignore", invalid="ignore"):
                gradient = (by_sums * scale) @ out[:, 1:]
                if adam is None:
                    new = (theta - learning_rate * gradient).astype(np.float32)
                else:
                    new = adam.moved(theta, gradient, learning_rate)
            if not np.isfinite(new).all():  # the clamps of the next batch would make numbers of nan
                value = np.nan
            if not np.isfinite(value):
                break
            theta[:] = new
            total += value
    finally:
        shared[0] = STOP  # before anything is waited for: also an interrupt of start() comes here
        for helper in helpers:
            if helper.ident is not None:
                helper.join()
    put_back(theta, network)
    return total / len(deal.start) if np.isfinite(value) else np.nan
