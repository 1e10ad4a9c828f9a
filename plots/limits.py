"""Upper limits against mass with their expected bands, and p-values.

dashed   median of what is expected without signal; bands: 68 and 95 % of it
solid    observed, where there are data that may be seen
grey     the cross section of some couplings, to read one from the other
hatched  at the bottom: masses where the simulation is too small for a limit
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from models.results import Limits
from plots.axes import Given, pt
from plots.style import RED, SLATE, Label, headroom, in_style, logarithmic_y, panels, put_label

Floats = npt.NDArray[np.float64]

INNER, OUTER = "#607641", "#f5bb54"  # green and yellow that colour-blind readers tell apart
LEGEND_SHARE = 0.22  # of the height
LOCAL_SIGMAS = (1, 2, 3, 4, 5)


@in_style
def limit_on_cross_section(
    limits: Limits,
    *,
    couplings: Sequence[tuple[str, Floats]] = (),
    label: Label,
    axes: Given = None,
) -> Figure:
    """Limits in fb; couplings: text and cross section (n_masses,) of guide lines."""
    figure, ax = _bands(limits, np.ones(len(limits.mass_gev)), np.array, label, axes)
    low, high = ax.get_ylim()
    free = low * (high / low) ** (1 - LEGEND_SHARE)  # above it stands the legend
    for text, sigma in couplings:
        shown = np.isfinite(sigma) & (sigma > low) & (sigma < free)
        above = np.flatnonzero(shown & (sigma > 1.8 * limits.plus2_fb))
        ax.plot(
            limits.mass_gev, np.where(shown, sigma, np.nan), color=SLATE, linewidth=pt(0.6),
            linestyle=(0, (4, 2)),
        )  # fmt: skip
        if above.size:  # the text stands free of the bands, as near to them as it can
            at = float(limits.mass_gev[above[-1]])
            side = -1 if at > 0.85 * limits.mass_gev.max() else 1  # inside the frame
            ax.annotate(
                text, (at, sigma[above[-1]]), xytext=(pt(3 * side), pt(side)), fontsize=pt(6),
                textcoords="offset points", color=SLATE, ha="left" if side > 0 else "right",
                va="bottom" if side > 0 else "top",
            )  # fmt: skip
    ax.set_ylim(low, high)
    ax.set_ylabel(rf"{_confidence(limits)} limit on $\sigma\,\mathcal{{B}}$ [fb]")
    return figure


@in_style
def limit_on_coupling(limits: Limits, *, symbol: str, label: Label, axes: Given = None) -> Figure:
    """The same as limits on a coupling: sigma is proportional to its square."""
    scale = limits.coupling_reference / np.sqrt(limits.cross_section_fb)
    figure, ax = _bands(limits, scale, np.sqrt, label, axes)
    ax.set_ylabel(f"{_confidence(limits)} limit on ${symbol}$")
    return figure


def _bands(
    limits: Limits, scale: Floats, of: Callable[[Floats], Floats], label: Label, axes: Given
) -> tuple[Figure, Axes]:
    """scale x of(limit), bands, median and observed on a logarithmic axis."""
    figure, panel = panels(height_in=2.8, axes=axes)
    ax: Axes = panel[0, 0]
    mass = limits.mass_gev
    seen = np.isfinite(limits.median_fb) & np.isfinite(scale)

    def shown(name: str) -> Floats:
        value = scale * of(getattr(limits, name))
        return np.where(seen, value, np.nan)

    ax.fill_between(
        mass, shown("minus2_fb"), shown("plus2_fb"), color=OUTER, linewidth=0, label="95 % expected"
    )
    ax.fill_between(
        mass, shown("minus1_fb"), shown("plus1_fb"), color=INNER, linewidth=0, label="68 % expected"
    )
    ax.plot(mass, shown("median_fb"), color="black", linestyle="--", linewidth=pt(0.8),
            label="Median expected")  # fmt: skip
    if np.isfinite(limits.observed_fb).any():
        ax.plot(mass, shown("observed_fb"), color="black", linewidth=pt(0.7), label="Observed")
    logarithmic_y(ax)
    headroom(ax, LEGEND_SHARE)
    _mark_small(ax, limits)
    ax.set_xlim(0, 1.03 * float(mass.max()))
    ax.set_xlabel(label.words.mass_text)
    handles, texts = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], texts[::-1], loc="upper left", ncols=2)
    put_label(ax, label)
    return figure, ax


def _mark_small(ax: Axes, limits: Limits) -> None:
    """A hatched strip below the masses where one unseen row of the simulation would matter."""
    if limits.too_small.any():
        half = np.gradient(limits.mass_gev) / 2 if len(limits.mass_gev) > 1 else np.array([0.05])
        strips = [
            (m - h, 2 * h)
            for m, h, small in zip(limits.mass_gev, half, limits.too_small, strict=True)
            if small
        ]
        ax.broken_barh(
            strips, (0, 0.025), transform=ax.get_xaxis_transform(), facecolor=RED, linewidth=0,
            label="Simulation too small", alpha=0.75,
        )  # fmt: skip


@in_style
def p_values(limits: Limits, *, label: Label, axes: Given = None) -> Figure:
    """Local p-value at every mass, with the levels of local and of global significance."""
    figure, panel = panels(height_in=2.6, axes=axes)
    ax: Axes = panel[0, 0]
    ax.plot(limits.mass_gev, limits.p_local, color="black", linewidth=pt(0.7))
    ax.set_yscale("log")
    lowest = min(float(np.nanmin(limits.p_local)), float(norm.sf(3)))
    ax.set_ylim(lowest / 30, 2)
    end = 1.03 * float(limits.mass_gev.max())
    ax.set_xlim(0, end)
    for z in LOCAL_SIGMAS:
        if norm.sf(z) > lowest / 30:
            ax.axhline(norm.sf(z), color=SLATE, linewidth=pt(0.5), linestyle=":")
            ax.annotate(rf"{z}$\sigma$ local", (end, norm.sf(z)), fontsize=pt(5.5),
                        color=SLATE, ha="right", va="bottom")  # fmt: skip
    for z, p in enumerate(limits.global_lines, start=1):
        if np.isfinite(p) and p > lowest / 30:
            ax.axhline(p, color=RED, linewidth=pt(0.6), linestyle="--")
            ax.annotate(rf"{z}$\sigma$ global", (0.01 * end, p), fontsize=pt(5.5), color=RED,
                        ha="left", va="bottom")  # fmt: skip
    ax.set_ylabel("Local p-value")
    ax.set_xlabel(label.words.mass_text)
    put_label(ax, label)
    return figure


def _confidence(limits: Limits) -> str:
    return f"{100 * limits.level:g} % CL"
