"""A smooth curve through measured points, with its error: local quadratic regression.

    y(a) = value at a of the parabola through the nearest k points, each weighted with
           tricube(|x - a| / reach) / error^2            reach: just beyond the k-th point

Where the points scatter more than their errors say, all errors are enlarged by sqrt(chi2/ndf).
With two points it is a line, with one a constant.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

NEIGHBOURS = 7


def smooth(
    at: Floats, x: Floats, y: Floats, error: Floats, *, neighbours: int = NEIGHBOURS
) -> tuple[Floats, Floats]:
    """Value and error (n_at,) of the curve through (x, y +- error), all (n,), x rising."""
    if not (len(x) == len(y) == len(error) > 0 and np.all(error > 0)):
        msg = f"points need one positive error each, found {len(x)} points"
        raise ValueError(msg)
    k = min(neighbours, len(x))
    degree = min(2, k - 1)
    distance = np.abs(at[:, None] - x)
    near = np.sort(np.argsort(distance, axis=1, kind="stable")[:, :k], axis=1)
    apart = np.take_along_axis(distance, near, axis=1)
    reach = apart.max(axis=1, keepdims=True) * (1 + 1 / k) + np.finfo(float).tiny
    share = (1 - (apart / reach) ** 3) ** 3
    weight = share / error[near] ** 2
    t = (x[near] - at[:, None]) / reach  # the value at a is the coefficient of t^0
    powers = t[:, :, None] ** np.arange(degree + 1)
    normal = np.einsum("ij,ijp,ijq->ipq", weight, powers, powers)
    solved = np.linalg.solve(normal, np.einsum("ij,ijp->ipj", weight, powers))  # (n_at, p, k)
    smoother = solved[:, 0]  # (n_at, k): the value is this times y
    variance = np.einsum("ij,ij->i", smoother**2, error[near] ** 2)
    left = np.eye(k) - np.einsum("ijp,ipl->ijl", powers, solved)  # residuals are this times y
    residual = np.einsum("ijl,il->ij", left, y[near])
    expected = np.einsum("ijl,il->ij", left**2, error[near] ** 2)
    free = float(np.sum(weight * expected))
    scale = np.sqrt(max(1.0, float(np.sum(weight * residual**2)) / free)) if free > 1e-9 else 1.0
    return np.einsum("ij,ij->i", smoother, y[near]), scale * np.sqrt(variance)
