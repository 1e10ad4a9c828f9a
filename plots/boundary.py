"""The decision surface of the single cut in feature space, with signal of a few masses.

Three features are shown, the others are fixed; of two there is a plane with a line, of one the
score itself. In three dimensions the surface score = cut is found by marching tetrahedra: every
cell of the grid is split into six tetrahedra, and the surface crosses an edge where the score,
taken as linear along it, equals the cut,

    x = x_a + (cut - s_a) / (s_b - s_a) (x_b - x_a).

It needs no table of 256 cases and has no ambiguous ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

from models.results import DecisionBoundary
from plots.axes import AxesError, Given, legend_beside, pt
from plots.look import COLUMN_IN
from plots.spectrum import SIGNAL_LINES
from plots.style import BLUE, GREY, Label, in_style, new_figure, panels, put_label

Floats = npt.NDArray[np.float64]
MARKS = tuple(zip("o^sD", (colour for colour, _ in SIGNAL_LINES), strict=True))


@in_style
def decision_boundary(
    record: DecisionBoundary, *, texts: Mapping[str, str], label: Label, axes: Given = None
) -> Figure:
    """Points of each mass and where score = cut; texts: feature -> label with its unit.

    axes: of three free features one with projection="3d".
    """
    if len(record.free) == 3:
        return _in_space(record, texts, label, axes)
    figure, panel = panels(height_in=2.7, axes=axes)
    ax: Axes = panel[0, 0]
    x = record.grid[0]
    handles: list[Any] = [Line2D([], [], color=GREY, label=f"score = {record.cut:g}")]
    if len(record.free) == 1:
        ax.plot(x, record.score, color=BLUE)
        ax.axhline(record.cut, color=GREY)
        ax.set_ylim(0, 1.05)
        ax.set_ylabel("Score")
        at = [record.point[:, 0], np.full(len(record.point), 0.02)]
    else:
        passing = [record.cut, np.inf]
        ax.contourf(x, record.grid[1], record.score.T, passing, colors=[GREY], alpha=0.3)
        if record.score.min() < record.cut < record.score.max():
            ax.contour(x, record.grid[1], record.score.T, [record.cut], colors=[GREY])
        ax.set_ylabel(texts[record.free[1]])
        at = list(record.point.T)
    for mass, (mark, colour) in zip(record.mass_gev, MARKS, strict=False):
        mine = np.abs(record.point_mass_gev - mass) < 1e-6
        ax.plot(
            at[0][mine],
            at[1][mine],
            linestyle="",
            marker=mark,
            markersize=pt(2),
            color=colour,
        )
        handles.append(_mass_handle(label.words.mass(mass), mark, colour))
    ax.set_xlim(x[0], x[-1])
    ax.set_xlabel(texts[record.free[0]])
    legend_beside(ax, given=axes is not None, handles=handles, ncols=2)
    put_label(ax, replace(label, luminosity_inv_fb=None))
    return figure


def _mass_handle(text: str, mark: str, colour: str) -> Line2D:
    return Line2D([], [], color=colour, marker=mark, linestyle="", label=text)


def _in_space(
    record: DecisionBoundary, texts: Mapping[str, str], label: Label, axes: Given
) -> Figure:
    figure, ax = _axes_in_space(axes)
    triangles = isosurface(record.grid, record.score, record.cut)
    if len(triangles):
        surface = Poly3DCollection(
            triangles,
            facecolors=_shaded(triangles),
            linewidth=0,
            antialiased=False,
            rasterized=True,
        )
        ax.add_collection3d(surface)
    handles: list[Line2D | Patch] = []
    for mass, (mark, colour) in zip(record.mass_gev, MARKS, strict=False):
        mine = record.point[np.abs(record.point_mass_gev - mass) < 1e-6]
        ax.scatter(
            *mine.T,
            marker=mark,
            s=pt(3**0.5) ** 2,
            color=colour,
            linewidth=0,
            depthshade=False,
            zorder=3,
        )
        handles.append(_mass_handle(label.words.mass(mass), mark, colour))
    handles.append(Patch(color=GREY, alpha=0.6, label=f"score = {record.cut:g}"))
    for i, (name, axis) in enumerate(zip(record.free, (ax.xaxis, ax.yaxis, ax.zaxis), strict=True)):
        axis.set_label_text(texts[name], fontsize=pt(7))
        axis.labelpad = -6
        ax.tick_params(axis="xyz"[i], pad=pt(-3.5), labelsize=pt(6.5))
        axis.set_major_locator(MaxNLocator(5))
        low, high = record.grid[i, [0, -1]]
        (ax.set_xlim, ax.set_ylim, ax.set_zlim)[i](low, high)
    ax.minorticks_off()
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((1, 1, 1, 0))
        axis._axinfo["grid"].update(linewidth=pt(0.25), color="#cccccc")  # no public way
    ax.view_init(elev=22, azim=-58)
    if axes is not None:
        ax.legend(handles=handles)
        ax.set_title(f"{label.experiment} {label.text}")
        return figure
    figure.legend(handles=handles, loc="upper right", ncols=2, bbox_to_anchor=(0.99, 0.93))
    figure.text(0.02, 0.955, label.experiment, fontsize=pt(8), fontweight="bold")
    figure.text(0.18, 0.955, label.text, fontsize=pt(6.6), fontstyle="italic")
    if len(record.fixed) == 1:  # more of them stand in the caption
        name, value = record.fixed[0], record.fixed_value[0]
        figure.text(0.98, 0.955, fixed_text(texts[name], value), ha="right", fontsize=pt(6.6))
    return figure


def _axes_in_space(axes: Given) -> tuple[Figure, Any]:
    if axes is None:
        figure = new_figure(COLUMN_IN, 3.1, layout=None)
        place = (0.0, 0.03, 0.93, 0.90)
        return figure, figure.add_axes(place, projection="3d", computed_zorder=False)
    figure, panel = panels(axes=axes)
    if panel[0, 0].name != "3d":
        msg = "three features are drawn in space: give an axis made with projection='3d'"
        raise AxesError(msg)
    return figure, panel[0, 0]


def fixed_text(text: str, value: float) -> str:
    """`p_T = 2 GeV/c` of a label with its unit in brackets."""
    name, _, unit = text.partition(" [")
    return f"{name} = {value:g} {unit.rstrip(']')}".rstrip()


def _shaded(triangles: Floats) -> Floats:
    """Colour (n, 4) of each triangle: lighter where it faces the light, whichever side it is."""
    span = np.ptp(triangles.reshape(-1, 3), axis=0)
    scaled = triangles / np.where(span > 0, span, 1)
    normal = np.cross(scaled[:, 1] - scaled[:, 0], scaled[:, 2] - scaled[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    facing = np.abs(normal / np.where(length > 0, length, 1) @ np.array([0.3, -0.5, 0.81]))
    colour = np.tile(to_rgba(GREY, 0.5), (len(triangles), 1))
    colour[:, :3] *= (0.65 + 0.5 * facing)[:, None]
    return np.clip(colour, 0, 1)


def isosurface(axes: Floats, values: Floats, level: float) -> Floats:
    """Triangles (n, 3, 3) where `values` (nx, ny, nz) on the grid `axes` (3, n) equals `level`."""
    n = values.shape
    corner = np.stack(np.meshgrid(*(np.arange(k - 1) for k in n), indexing="ij"), -1).reshape(-1, 3)
    found = []
    for steps in permutations(np.eye(3, dtype=np.int64)):  # six tetrahedra around the diagonal
        path = np.cumsum([np.zeros(3, np.int64), *steps], axis=0)  # (4, 3) corners of one
        index = corner[:, None, :] + path  # (n_cells, 4, 3)
        s = values[index[..., 0], index[..., 1], index[..., 2]] - level
        x = np.stack([axes[d][index[..., d]] for d in range(3)], axis=-1)
        order = np.argsort(s, axis=1)
        s = np.take_along_axis(s, order, axis=1)
        x = np.take_along_axis(x, order[..., None], axis=1)
        below = (s < 0).sum(axis=1)
        found += [_cut(s[below == 1], x[below == 1], ((0, 1), (0, 2), (0, 3)))]
        found += [_cut(s[below == 3], x[below == 3], ((0, 3), (1, 3), (2, 3)))]
        two_s, two_x = s[below == 2], x[below == 2]  # a quadrilateral: two triangles
        found += [_cut(two_s, two_x, ((0, 2), (0, 3), (1, 3)))]
        found += [_cut(two_s, two_x, ((0, 2), (1, 3), (1, 2)))]
    return np.concatenate(found)


def _cut(s: Floats, x: Floats, edges: tuple[tuple[int, int], ...]) -> Floats:
    """Triangles (n, 3, 3) through three edges of n tetrahedra; s (n, 4) changes sign on each."""
    corners = []
    for a, b in edges:
        share = -s[:, a] / (s[:, b] - s[:, a])
        corners.append(x[:, a] + share[:, None] * (x[:, b] - x[:, a]))
    return np.stack(corners, axis=1)
