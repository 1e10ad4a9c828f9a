"""Dirac spinors and gamma matrices in the chiral basis, as numba kernels on tuples.

    gamma^0 = [[0, 1], [1, 0]],  gamma^i = [[0, sigma_i], [-sigma_i, 0]]
    u(p) = ( sqrt(p.sigma) xi,  sqrt(p.sigma_bar) xi )
    v(p) = ( sqrt(p.sigma) xi, -sqrt(p.sigma_bar) xi )
    sqrt(E -+ p.sigma) = (E + m -+ p.sigma) / sqrt(2 (E + m))

Four-vectors are tuples (x, y, z, E), the order of the ntuple, contravariant. The spin basis xi is
fixed (up, down along z): it has no singular direction, and only sums over spins are used.
"""

from __future__ import annotations

from math import sqrt
from typing import TypeAlias

import numpy as np

from selection.compiled import inner

# No momentum or amplitude is infinite or NaN, so that a real number times a complex one is two
# products, not four. The order of sums is left alone, because some of them cancel; and products are
# not contracted with sums: where LLVM does so depends on what was compiled in the same process.
FINITE = {"nnan", "ninf", "nsz"}

Vector: TypeAlias = tuple[float, float, float, float]
Spinor: TypeAlias = tuple[complex, complex, complex, complex]

UP, DOWN = np.int64(0), np.int64(1)  # for a plain 0 numba would compile once more


@inner(fastmath=FINITE)
def spinor(p: Vector, m: float, spin: int | np.int64, sign: float) -> Spinor:
    """u (sign = 1) or v (sign = -1) of momentum p [GeV], spin UP or DOWN; u_bar u = 2m."""
    x, y, z, e = p
    norm = 1 / sqrt(2 * (e + m))
    if spin == UP:  # (e + m -+ p.sigma) (1, 0)
        return (
            norm * complex(e + m - z, 0),
            norm * complex(-x, -y),
            sign * norm * complex(e + m + z, 0),
            sign * norm * complex(x, y),
        )
    return (
        norm * complex(-x, y),
        norm * complex(e + m + z, 0),
        sign * norm * complex(x, -y),
        sign * norm * complex(e + m - z, 0),
    )


@inner(fastmath=FINITE)
def slash(a, psi):  # type: ignore[no-untyped-def]
    """gamma_mu a^mu psi; a real or complex."""
    x, y, z, t = a
    c0, c1, c2, c3 = psi
    minus, plus = x - 1j * y, x + 1j * y
    return (
        (t - z) * c2 - minus * c3,
        (t + z) * c3 - plus * c2,
        (t + z) * c0 + minus * c1,
        (t - z) * c1 + plus * c0,
    )


@inner(fastmath=FINITE)
def slash_plus_mass(a, m, psi):  # type: ignore[no-untyped-def]
    """(gamma_mu a^mu + m) psi."""
    c0, c1, c2, c3 = slash(a, psi)
    return (c0 + m * psi[0], c1 + m * psi[1], c2 + m * psi[2], c3 + m * psi[3])


@inner(fastmath=FINITE)
def bar_product(left: Spinor, right: Spinor) -> complex:
    """left_bar . right."""
    a0, a1, a2, a3 = left
    return (
        a0.conjugate() * right[2]
        + a1.conjugate() * right[3]
        + a2.conjugate() * right[0]
        + a3.conjugate() * right[1]
    )


@inner(fastmath=FINITE)
def current(left: Spinor, right: Spinor):  # type: ignore[no-untyped-def]
    """left_bar gamma^mu right as (x, y, z, t)."""
    a0, a1 = left[0].conjugate(), left[1].conjugate()
    a2, a3 = left[2].conjugate(), left[3].conjugate()
    b0, b1, b2, b3 = right
    return (
        a2 * b3 + a3 * b2 - a0 * b1 - a1 * b0,
        1j * (a3 * b2 - a2 * b3 - a1 * b0 + a0 * b1),
        a2 * b2 - a3 * b3 - a0 * b0 + a1 * b1,
        a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3,
    )
