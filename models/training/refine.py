"""The end of a stage: L-BFGS on the loss of all events.

    theta <- theta - step H dL/dtheta        H: inverse curvature from the last 20 steps

The loss of all events is exact and smooth, and a network has a hundred parameters: once Adam has
found the valley, curvature finds its floor in a tenth of the passes. Parameters are float64 here
and float32 in the network. The step that a line search ends with is the one whose loss it knows, so
an iteration costs 1.1 passes over the events.

Nothing is kept between two calls: a training that was killed here begins this part anew, which
takes seconds, and ends with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from models.network import PunziNet

MEMORY = 20  # steps that the curvature is known from
FORBIDDEN = 1e10  # loss where there is none, such as at vanishing efficiency: never a step's end

Vector = npt.NDArray[np.float64]


def refine(
    network: PunziNet,
    loss: Callable[[], Tensor],
    *,
    iterations: int,
    after: Callable[[float], None],
) -> None:
    """Lower the loss of the network's parameters, in place, by at most so many iterations.

    after: called with the loss after every iteration, the network being there; may raise.
    """
    parameters = list(network.parameters())

    def move(x: Vector) -> None:
        vector_to_parameters(torch.from_numpy(x.astype(np.float32)).to(parameters[0]), parameters)

    def value_and_slopes(x: Vector) -> tuple[float, Vector]:
        move(x)
        network.zero_grad()
        value = loss()
        if not torch.isfinite(value):
            return FORBIDDEN, np.zeros_like(x)
        value.backward()
        slopes = [p.grad.flatten() for p in parameters if p.grad is not None]
        return float(value.detach()), torch.cat(slopes).cpu().numpy().astype(np.float64)

    def step(intermediate_result: OptimizeResult) -> None:
        move(intermediate_result.x)
        after(float(intermediate_result.fun))

    start = parameters_to_vector(parameters).detach().cpu().numpy().astype(np.float64)
    options = {"maxiter": iterations, "maxfun": 10 * iterations, "maxcor": MEMORY}
    found = minimize(
        value_and_slopes, start, jac=True, method="L-BFGS-B", callback=step,
        options=options | {"ftol": 0.0, "gtol": 0.0},
    )  # fmt: skip
    move(found.x)
