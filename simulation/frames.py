"""Boosts and directions, as kernels on four-vectors (x, y, z, E).

    boost(p, b):  p seen from a frame in which p's old frame moves with velocity b
    CM -> lab:    inverse of selection.beams.cm_matrix (the e- lies on +z in the CM frame)

The collision energy of one event differs from the nominal one by the beam-energy spread; the
velocity of the CM frame in the lab is kept, so one matrix serves all events.
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt

import numpy as np
import numpy.typing as npt

from selection.beams import Beams, cm_matrix
from selection.compiled import inner
from simulation.spinors import Vector


@inner()
def boost(p: Vector, b: tuple[float, float, float]) -> Vector:
    """p after a boost by the velocity b."""
    x, y, z, e = p
    bx, by, bz = b
    gamma = 1 / sqrt(1 - bx * bx - by * by - bz * bz)
    bp = bx * x + by * y + bz * z
    k = gamma * (gamma / (gamma + 1) * bp + e)
    return (x + k * bx, y + k * by, z + k * bz, gamma * (e + bp))


@inner()
def moved(matrix, p) -> Vector:  # type: ignore[no-untyped-def]
    """matrix (4, 4) times p, an array or a tuple; a tenth of the time of `@` on so few numbers."""
    return (
        matrix[0, 0] * p[0] + matrix[0, 1] * p[1] + matrix[0, 2] * p[2] + matrix[0, 3] * p[3],
        matrix[1, 0] * p[0] + matrix[1, 1] * p[1] + matrix[1, 2] * p[2] + matrix[1, 3] * p[3],
        matrix[2, 0] * p[0] + matrix[2, 1] * p[1] + matrix[2, 2] * p[2] + matrix[2, 3] * p[3],
        matrix[3, 0] * p[0] + matrix[3, 1] * p[1] + matrix[3, 2] * p[2] + matrix[3, 3] * p[3],
    )


@inner()
def put(row, p):  # type: ignore[no-untyped-def]
    """row[:] = p; of a slice numba compiles the words of an error too, two seconds of it."""
    for i in range(len(row)):
        row[i] = p[i]


@inner()
def polar(p: float, c: float, phi: float) -> tuple[float, float, float]:
    """Three-vector of length p at polar angle arccos(c) and azimuth phi."""
    st = sqrt(max(0.0, 1 - c * c))
    return (p * st * cos(phi), p * st * sin(phi), p * c)


@inner()
def turned(v: tuple[float, float, float], c: float, phi: float) -> tuple[float, float, float]:
    """v after the rotation that carries +z to the direction (arccos(c), phi), about y then z."""
    st = sqrt(max(0.0, 1 - c * c))
    x, z = c * v[0] + st * v[2], -st * v[0] + c * v[2]
    cp, sp = cos(phi), sin(phi)
    return (cp * x - sp * v[1], sp * x + cp * v[1], z)


@inner()
def isotropic(rng: np.random.Generator) -> tuple[float, float]:
    """(cos theta, phi) of a uniform direction."""
    return 2 * rng.random() - 1, 2 * pi * rng.random()


def lab_matrix(beams: Beams) -> npt.NDArray[np.float64]:
    """Lorentz matrix (4, 4) on columns (px, py, pz, E): CM -> lab."""
    matrix: npt.NDArray[np.float64] = np.linalg.inv(cm_matrix(beams)).astype(np.float64)
    return matrix
