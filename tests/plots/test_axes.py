"""Figures in a reader's own axes: the same artists, the reader's style, clear refusals."""

import ast
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import plots
from models.results import DecisionBoundary, PeakFit, ScoreMap, WidthsByMass
from plots.axes import AxesError
from plots.boundary import decision_boundary
from plots.inputs import feature_distributions
from plots.learning import batch_size_study, loss_evolution
from plots.limits import limit_on_coupling, limit_on_cross_section, p_values
from plots.reach import cuts_by_mass, efficiency_and_background, reach
from plots.resolution import peak_fit, width_by_mass
from plots.score_map import score_map
from plots.sketch import network_sketch
from plots.spectrum import before_and_after, spectrum
from tests.plots.test_limit_plots import limits
from tests.plots.test_plots import LABEL, MASS, TEXTS, curve, histogram, history

X = np.linspace(0, 5, 8)
CURVES = [curve("bce", "best_cut", 2.0), curve()]
STACK = {"taupair": histogram(1), "eemumu": histogram(2)}
SPACE = DecisionBoundary(
    ("a", "b", "c"), ("d",), np.array([1.5]), 0.5, np.array([X] * 3),
    np.meshgrid(X, X, X, indexing="ij")[0] / 5, np.array([1.0]), np.ones(5), np.ones((5, 3)),
)  # fmt: skip
PLANE = DecisionBoundary(
    ("a", "b"), ("c", "d"), np.zeros(2), 0.5, np.array([X] * 2),
    np.meshgrid(X, X, indexing="ij")[0] / 5, np.array([1.0]), np.ones(5), np.ones((5, 2)),
)  # fmt: skip
PEAK = PeakFit(5.0, X, X[1:], X[1:], X, X, X, 0.3, 0.01, 1.0, 2.0)
WIDTHS = WidthsByMass(MASS, MASS, MASS, MASS, MASS, "", *[np.empty(0)] * 3)
MAP = ScoreMap("punzi", "signal", X, X, np.ones((7, 7)), X, X)
FIGURES = {
    "reach": (2, lambda **k: reach(CURVES, label=LABEL, **k)),
    "efficiency_and_background": (
        2, lambda **k: efficiency_and_background(CURVES, label=LABEL, **k)),
    "cuts_by_mass": (1, lambda **k: cuts_by_mass(CURVES, label=LABEL, **k)),
    "limit_on_cross_section": (
        1, lambda **k: limit_on_cross_section(limits(), label=LABEL, **k)),
    "limit_on_coupling": (
        1, lambda **k: limit_on_coupling(limits(), symbol="g", label=LABEL, **k)),
    "p_values": (1, lambda **k: p_values(limits(p_local=MASS[0] / (1 + limits().mass_gev)),
                                         label=LABEL, **k)),
    "spectrum": (2, lambda **k: spectrum(STACK, data=histogram(3, weight=1), label=LABEL, **k)),
    "before_and_after": (2, lambda **k: before_and_after(STACK, STACK, label=LABEL, **k)),
    "feature_distributions": (
        3, lambda **k: feature_distributions(dict.fromkeys("abc", STACK), label=LABEL, **k)),
    "loss_evolution": (2, lambda **k: loss_evolution([history()], [history()], label=LABEL, **k)),
    "batch_size_study": (1, lambda **k: batch_size_study([history("1e4")], label=LABEL, **k)),
    "score_map": (1, lambda **k: score_map(MAP, label=LABEL, **k)),
    "peak_fit": (2, lambda **k: peak_fit(PEAK, label=LABEL, **k)),
    "width_by_mass": (1, lambda **k: width_by_mass(WIDTHS, label=LABEL, **k)),
    "network_sketch": (1, lambda **k: network_sketch(["a", "b"], (3,), **k)),
    "decision_boundary": (1, lambda **k: decision_boundary(PLANE, texts=TEXTS, label=LABEL, **k)),
    "in_space": (1, lambda **k: decision_boundary(SPACE, texts=TEXTS, label=LABEL, **k)),
}  # fmt: skip


def drawn(ax):
    """Data of all lines, patches and collections, in their order."""
    lines = [np.asarray(line.get_data(), float) for line in ax.lines]
    patches = [type(p).__name__ for p in ax.patches]
    stairs = [p.get_data().values for p in ax.patches if hasattr(p, "get_data")]
    collections = [type(c).__name__ for c in ax.collections]
    return lines + stairs, patches + collections


@pytest.mark.parametrize("name", FIGURES)
def test_given_axes_hold_the_same_artists_as_a_figure_of_ours(name):
    n, draw = FIGURES[name]
    own = [ax for ax in draw().axes if ax.get_visible()]
    figure = Figure()
    projection = {"projection": "3d"} if name == "in_space" else None
    axes = list(figure.subplots(n, 1, squeeze=False, subplot_kw=projection).flat)
    assert draw(axes=axes if n > 1 else axes[0]) is figure
    for ours, theirs in zip(own[:n], axes, strict=True):
        (values, kinds), (given_values, given_kinds) = drawn(ours), drawn(theirs)
        assert kinds == given_kinds
        assert len(values) == len(given_values)
        for one, other in zip(values, given_values, strict=True):
            assert np.array_equal(one, other, equal_nan=True)
        assert ours.get_xlim() == pytest.approx(theirs.get_xlim())
        assert ours.get_ylabel() == theirs.get_ylabel()
    assert not figure.legends
    with pytest.raises(AxesError, match=f"has {n} panels?, and {n + 1} axes were given"):
        draw(axes=list(Figure().subplots(n + 1)))


def test_every_figure_function_takes_axes():
    """Functions of plots/ that return a Figure: each has the keyword and stands in FIGURES."""
    found = {}
    for path in sorted(Path(plots.__file__).parent.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            styled = isinstance(node, ast.FunctionDef) and any(
                isinstance(d, ast.Name) and d.id == "in_style" for d in node.decorator_list
            )
            if styled and ast.unparse(node.returns) == "Figure":
                found[node.name] = [a.arg for a in node.args.kwonlyargs]
    assert len(found) >= 16
    assert [name for name, arguments in found.items() if "axes" not in arguments] == []


def test_in_given_axes_the_style_of_the_reader_rules():
    with mpl.rc_context({"font.size": 20, "axes.linewidth": 3.5, "xtick.labelsize": 17}):
        ax = Figure().subplots()
        cuts_by_mass(CURVES, label=LABEL, axes=ax)
        assert ax.spines["left"].get_linewidth() == 3.5
        assert ax.get_xticklabels()[0].get_fontsize() == 17
        sizes = {t.get_fontsize() for t in ax.texts}
    assert max(sizes) == pytest.approx(20)  # the name of the experiment: 8 of our 8 points
    own = cuts_by_mass(CURVES, label=LABEL).axes[0]
    assert max(t.get_fontsize() for t in own.texts) == pytest.approx(8)


def test_what_is_no_axes_is_refused():
    with pytest.raises(AxesError, match="must be matplotlib Axes, found Figure"):
        cuts_by_mass(CURVES, label=LABEL, axes=Figure())
    with pytest.raises(AxesError, match="projection='3d'"):
        decision_boundary(SPACE, texts=TEXTS, label=LABEL, axes=Figure().subplots())
