"""Axes of a reader's own: every figure can be drawn into them.

    axes   one Axes, or as many as the figure has panels (row by row), None for a figure of ours

In axes that are given the reader's style rules: ours is not put on, sizes of letters, lines and
markers follow `font.size`, and nothing but the axes is touched, so that legends which stand beside
a figure of ours stand inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from selection.errors import UserError

Given = Axes | Sequence[Axes] | npt.NDArray[np.object_] | None
OUR_POINTS = 8.0  # font.size of our style


class AxesError(UserError):
    """The axes that were given do not fit the figure; the message says what it needs."""


def given_panels(axes: Given, n_rows: int, n_columns: int, *, share_x: bool) -> tuple[Figure, Any]:
    """Their figure, and the axes as an array (n_rows, n_columns); columns share x if wanted."""
    found = [axes] if isinstance(axes, Axes) else list(np.asarray(axes, dtype=object).flat)
    if not all(isinstance(ax, Axes) for ax in found):
        wrong = next(ax for ax in found if not isinstance(ax, Axes))
        msg = f"axes must be matplotlib Axes, found {type(wrong).__name__}"
        raise AxesError(msg)
    wanted = n_rows * n_columns
    if len(found) != wanted:
        shape = f" ({n_rows} x {n_columns})" if min(n_rows, n_columns) > 1 else ""
        msg = (
            f"this figure has {wanted} panel{'s' * (wanted > 1)}{shape}, and {len(found)} axes "
            f"were given; give {wanted}, or axes=None for a figure of its own"
        )
        raise AxesError(msg)
    array = np.empty(wanted, dtype=object)
    array[:] = found
    for i, ax in enumerate(found if share_x else []):
        top = found[i % n_columns]
        if not top.get_shared_x_axes().joined(top, ax):
            ax.sharex(top)
    figure = cast(Figure, found[0].get_figure(root=True))
    return figure, array.reshape(n_rows, n_columns)


def pt(size: float) -> float:
    """A length in points (letters, lines, markers) of our style; in another the same share of its
    `font.size`: what was drawn for a larger page has larger letters."""
    return size * float(mpl.rcParams["font.size"]) / OUR_POINTS


def legend_beside(ax: Axes, *, given: bool, **options: Any) -> None:
    """Below the axes in a figure of ours; inside axes that were given."""
    figure = cast(Figure, ax.get_figure(root=True))
    if given:
        ax.legend(**options | {"loc": "best"})
    else:
        figure.legend(**options, loc="outside lower center")
