"""Figures of limits: bands in order, observed only where it exists, doubts marked."""

import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection

from models.results import Limits
from plots.limits import limit_on_coupling, limit_on_cross_section, p_values
from plots.style import Label

MASS = np.linspace(0.5, 8, 40)


def limits(**changes):
    median = np.exp((MASS - 4) ** 2 / 8)
    nothing = np.full(len(MASS), np.nan)
    fields = {
        "level": 0.9,
        "method": "CLs",
        "luminosity_inv_fb": 50.0,
        "mass_gev": MASS,
        "too_small": np.zeros(len(MASS), bool),
        **{f"{n}_fb": f * median for n, f in zip(
            ("minus2", "minus1", "median", "plus1", "plus2", "mean", "asimov"),
            (0.5, 0.7, 1, 1.4, 2, 1.1, 1), strict=True)},
        **dict.fromkeys(("observed_fb", "bayesian_fb", "n_observed", "best_fb", "best_low_fb",
                         "best_high_fb", "p_local", "significance", "p_global", "p_global_bound",
                         "sideband_background", "sideband_error", "sideband_p"), nothing),
        "global_lines": np.array([1e-2, 1e-3, 1e-4]),
        "cross_section_fb": 100 * np.exp(-MASS),
        "coupling_reference": 0.1,
    }  # fmt: skip
    return Limits(**fields | changes)


def lines(figure):
    return {line.get_label(): line for line in figure.axes[0].lines}


def test_bands_lie_around_the_median_and_nothing_is_called_observed_without_data():
    figure = limit_on_cross_section(limits(), label=Label())
    ax = figure.axes[0]
    outer, inner = (c for c in ax.collections if isinstance(c, FillBetweenPolyCollection))
    for band, factor in ((outer, (0.5, 2)), (inner, (0.7, 1.4))):
        y = band.get_paths()[0].vertices[:, 1]
        assert y.min() == pytest.approx(factor[0] * limits().median_fb.min(), rel=1e-6)
        assert y.max() == pytest.approx(factor[1] * limits().median_fb.max(), rel=1e-6)
    assert "Observed" not in lines(figure)
    seen = limit_on_cross_section(limits(observed_fb=limits().median_fb * 3), label=Label())
    assert lines(seen)["Observed"].get_ydata() == pytest.approx(3 * limits().median_fb)


def test_a_limit_on_the_coupling_is_the_root_of_that_on_the_cross_section():
    figure = limit_on_coupling(limits(), symbol="g'", label=Label())
    wanted = 0.1 * np.sqrt(limits().median_fb / limits().cross_section_fb)
    assert lines(figure)["Median expected"].get_ydata() == pytest.approx(wanted)


def test_masses_without_a_limit_are_left_out():
    median = limits().median_fb.copy()
    median[3] = np.inf
    figure = limit_on_cross_section(limits(median_fb=median), label=Label())
    assert np.isnan(lines(figure)["Median expected"].get_ydata()[3])


def test_masses_with_too_little_simulation_are_marked_where_they_are():
    small = np.zeros(len(MASS), bool)
    small[10:13] = True
    figure = limit_on_cross_section(limits(too_small=small), label=Label())
    marked = next(c for c in figure.axes[0].collections if c.get_label() == "Simulation too small")
    x = np.concatenate([path.vertices[:, 0] for path in marked.get_paths()])
    assert MASS[9] < x.min() < MASS[10]
    assert MASS[12] < x.max() < MASS[13]
    plain = limit_on_cross_section(limits(), label=Label())
    assert not any(c.get_label() == "Simulation too small" for c in plain.axes[0].collections)


def test_guide_lines_are_cross_sections_below_the_legend():
    sigma = 1e3 * np.exp(-MASS)
    figure = limit_on_cross_section(limits(), couplings=[("g = 1", sigma)], label=Label())
    ax = figure.axes[0]
    guide = next(line for line in ax.lines if line.get_color() == "#717581")
    shown = np.isfinite(guide.get_ydata())
    assert guide.get_ydata()[shown] == pytest.approx(sigma[shown])
    assert [text.get_text() for text in ax.texts].count("g = 1") == 1
    low, high = ax.get_ylim()
    assert np.nanmax(guide.get_ydata()) < low * (high / low) ** 0.79


def test_p_values_show_local_and_global_levels():
    p = np.full(len(MASS), 0.5)
    p[20] = 1e-4
    figure = p_values(limits(p_local=p), label=Label())
    ax = figure.axes[0]
    levels = {round(float(np.log10(line.get_ydata()[0])), 2) for line in ax.lines[1:]}
    assert {-2.0, -3.0, -4.0} <= levels  # global
    assert round(np.log10(0.0013499), 2) in levels  # three sigma, local
    assert ax.get_ylim()[0] < 1e-4
