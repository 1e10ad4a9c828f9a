"""Adaptive importance sampling: a VEGAS grid per stratum, and points shared among strata.

    x_d = edge_k + (n_bins u_d - k) width_k,   k = int(n_bins u_d)
    jacobian = prod n_bins width_k
    integral = sum over strata of mean(f jacobian)
    points of a stratum: half of all by its sqrt(mean (f jacobian)^2) (Neyman: best for the rate),
                         half by its largest f jacobian (best for the largest weight)

After each round the bins of every dimension are moved so that each carries the same damped sum of
(f jacobian)^2 (G. P. Lepage, J. Comput. Phys. 27 (1978) 192). f is what survives the detector:
points go where rows of the ntuple come from. Adapting changes variances, never expectations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Integrand = Callable[[np.random.Generator, int, FloatArray], FloatArray]

N_BINS = 50
DAMPING = 0.7
MIN_SHARE = 0.005  # of the points, for a stratum that contributes at all


@dataclass(frozen=True)
class Shape:
    """Number of strata, dimensions of their unit cube, and points of each round of adapting."""

    n_strata: int
    n_dim: int
    rounds: tuple[int, ...]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _place(x, edges, jacobian):  # type: ignore[no-untyped-def]
    """Uniform x (n, n_dim) to their place on the grid, and jacobian (n,), both where they are."""
    n_bins = edges.shape[1] - 1
    for i in range(len(x)):
        for d in range(len(edges)):
            u = x[i, d] * n_bins
            k = int(u)
            width = edges[d, k + 1] - edges[d, k]
            x[i, d] = edges[d, k] + (u - k) * width
            jacobian[i] *= n_bins * width


@dataclass(frozen=True)
class Stratum:
    """Bin edges (n_dim, n_bins + 1) on [0, 1] and the stratum's share of the points."""

    edges: FloatArray
    share: float

    def points(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
        """n points x (n, n_dim) in the unit cube, and their jacobian (n,)."""
        x, jacobian = rng.random((n, len(self.edges))), np.ones(n)
        _place(x, self.edges, jacobian)
        return x, jacobian


def adapted_strata(integrand: Integrand, shape: Shape, *, seed: int = 20211) -> tuple[Stratum, ...]:
    """Strata adapted to the integrand f(rng, stratum, x) -> (n,), always in the same way."""
    rng = np.random.default_rng(seed)
    even = np.tile(np.linspace(0, 1, N_BINS + 1), (shape.n_dim, 1))
    strata = []
    spread, largest = np.zeros(shape.n_strata), np.zeros(shape.n_strata)
    for index in range(shape.n_strata):
        stratum = Stratum(even, 1 / shape.n_strata)
        for n in shape.rounds:
            x, jacobian = stratum.points(rng, n)
            f = integrand(rng, index, x) * jacobian
            spread[index], largest[index] = _spread(f), f.max()
            stratum = Stratum(_refined(stratum.edges, x, f**2), stratum.share)
        strata.append(stratum)
    share = (spread / spread.sum() + largest / largest.sum()) / 2
    share = np.where(spread > 0, np.maximum(share, MIN_SHARE), 0)
    share /= share.sum()
    return tuple(Stratum(s.edges, float(p)) for s, p in zip(strata, share, strict=True))


def _spread(f: FloatArray) -> float:
    """sqrt(mean f^2), the heaviest thousandth of the points that count pulled in: it is noise."""
    live = f[f > 0]
    if not live.size:
        return 0.0
    return float(np.sqrt((np.minimum(live, np.quantile(live, 0.999)) ** 2).sum() / len(f)))


def _refined(edges: FloatArray, x: FloatArray, f2: FloatArray) -> FloatArray:
    """Edges moved towards equal sums of f2 per bin."""
    if not f2.sum() > 0:
        return edges
    new = np.empty_like(edges)
    n_bins = edges.shape[1] - 1
    for d, old in enumerate(edges):
        load, _ = np.histogram(x[:, d], bins=old, weights=f2)
        smooth = np.convolve(np.pad(load, 1, mode="edge"), (0.25, 0.5, 0.25), mode="valid")
        r = np.clip(smooth / smooth.sum(), 1e-12, 1 - 1e-12)
        damped = ((r - 1) / np.log(r)) ** DAMPING
        at = np.concatenate(([0.0], np.cumsum(damped)))
        new[d] = np.interp(np.linspace(0, at[-1], n_bins + 1), at, old)
        new[d, 0], new[d, -1] = 0.0, 1.0
    return new
