"""Data over simulation: on own axes or given ones, with its verdict."""

import hist
import numpy as np
import pytest
from matplotlib.figure import Figure

from plots.control import Verdict, data_over_simulation, is_steep
from plots.style import Label

VERDICT = Verdict("sideband", 12.34, 10, 0.26)


def filled(values, variance=1.0):
    h = hist.Hist(hist.axis.Regular(8, 0, 4, label="x [GeV]"), storage=hist.storage.Weight())
    h.view().value, h.view().variance = values, np.multiply(values, variance)
    return h


STACK = {"eemumu": filled([0, 5, 9, 20, 30, 20, 9, 0]), "taupair": filled([0, *[40.0] * 6, 0])}
DATA = filled([0.0, 44, 50, 62, 71, 58, 50, 0])


def test_data_stand_over_the_sum_of_the_simulation():
    figure = data_over_simulation(STACK, DATA, VERDICT, label=Label())
    main, below = figure.axes
    ratio = below.containers[0].lines[0].get_ydata()
    total = sum(h.values() for h in STACK.values())
    assert ratio == pytest.approx((DATA.values() / np.maximum(total, 1))[1:-1])
    assert "χ" in VERDICT.text or "chi" in VERDICT.text
    assert any(text.get_text() == VERDICT.text for text in main.texts)
    assert main.get_xlim() == (0.5, 3.5)  # empty bins at the ends are not shown


def test_given_axes_are_drawn_on():
    own = Figure()
    axes = own.subplots(2, 1)
    assert data_over_simulation(STACK, DATA, VERDICT, label=Label(), axes=axes) is own
    assert axes[0].patches
    assert axes[1].get_ylabel() == "Data / MC"


def test_a_steep_spectrum_has_a_logarithmic_axis():
    assert is_steep(np.array([1e4, 10, 10, 5]))
    assert not is_steep(np.array([12.0, 10, 10, 0]))
    assert Verdict("a", 1.0, 0, 0.5).text == "a"
    assert "0.0001" in Verdict("a", 99.0, 2, 1e-9).text
