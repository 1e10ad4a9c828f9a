"""Another look: the style rules over ours, sizes follow, and the reader's settings stay."""

import itertools

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from plots.look import COLUMN_IN, OUR_LOOK, LookError, dressed, look_of
from plots.reach import cuts_by_mass
from plots.spectrum import spectrum
from plots.style import Legend, save
from tests.plots.test_plots import LABEL, curve, histogram

WITH_FIGSIZE = {"font.size": "26", "figure.figsize": "10, 10", "axes.linewidth": "2"}


def figure_of(look):
    with dressed(look):
        return cuts_by_mass([curve()], label=LABEL)


def test_a_style_that_sets_nothing_changes_no_byte(tmp_path):
    ours = figure_of(OUR_LOOK)
    same = look_of(None, None, None)
    assert (ours.get_size_inches() == figure_of(same).get_size_inches()).all()
    one, other = (
        save(figure, tmp_path / name, [{"x": 1}], formats=(), look=look)[0].read_bytes()
        for figure, name, look in ((ours, "a", OUR_LOOK), (figure_of(same), "b", same))
    )
    assert one == other


def test_parameters_of_a_style_rule_and_letters_follow_its_size():
    before = dict(mpl.rcParams)
    figure = figure_of(look_of(WITH_FIGSIZE, None, None))
    assert dict(mpl.rcParams) == before
    (ax,) = figure.axes
    assert ax.spines["left"].get_linewidth() == 2
    largest = min(26, 8 * 10 / 3.4)  # letters of the style, as large as the line allows
    assert max(text.get_fontsize() for text in ax.texts) == pytest.approx(largest)
    ours = figure_of(OUR_LOOK).get_size_inches()
    assert figure.get_size_inches() == pytest.approx(ours * 10 / 3.4)  # made for this width
    narrow = figure_of(look_of(WITH_FIGSIZE, None, COLUMN_IN))
    assert narrow.get_size_inches()[0] == COLUMN_IN


@pytest.mark.parametrize("width", [None, COLUMN_IN, 7.0])
@pytest.mark.parametrize("style", [None, "CMS", "ATLAS", "LHCb2", "ALICE", "ggplot", "classic"])
def test_letters_of_a_style_stay_inside_the_figure_and_apart(style, width):
    """Those of the experiments are made for 10 inches: as they are they fill half a column."""
    look = look_of(style, None, width)
    kinds = (("bce", "best_cut"), ("bce_equal", "best_cut"), ("punzi", "best_cut"))
    curves = [curve(*kind) for kind in (*kinds, ("punzi", "single_cut"), ("xgboost", "best_cut"))]
    with dressed(look):
        figure = cuts_by_mass(curves, label=LABEL)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    (ax,) = figure.axes
    frame = ax.get_window_extent(renderer)
    assert frame.width > 0.7 * figure.bbox.width
    legend = ax.get_legend().get_window_extent(renderer)
    assert frame.x0 <= legend.x0 < legend.x1 <= frame.x1
    above = sorted(
        (t.get_window_extent(renderer) for t in ax.texts if t.get_text()), key=lambda box: box.x0
    )
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(above))
    assert above[-1].x1 <= figure.bbox.x1


def test_lengths_of_a_style_are_reduced_like_its_page():
    wide, narrow = (look_of(WITH_FIGSIZE | {"lines.markersize": "6"}, None, w) for w in (None, 3.4))
    for name in ("font.size", "axes.linewidth", "lines.markersize"):
        assert narrow.parameters[name] == pytest.approx(0.34 * wide.parameters[name])
    marks = [
        max(line.get_markersize() for line in figure_of(look).axes[0].lines)
        for look in (wide, narrow)
    ]
    assert marks[1] == pytest.approx(0.34 * marks[0])


def test_height_grows_with_the_root_of_the_width():
    ours, wide = (figure_of(look_of(None, None, w)).get_size_inches() for w in (None, 7.0))
    assert wide[0] == 7.0
    assert wide[1] == pytest.approx(ours[1] * (7.0 / 3.4) ** 0.5)


def test_a_font_is_that_of_letters_and_formulas():
    look = look_of(None, "DejaVu Serif", None)
    assert look.parameters["mathtext.it"] == "DejaVu Serif:italic"
    label = figure_of(look).axes[0].xaxis.label
    assert label.get_fontfamily()[0] == "DejaVu Serif"


@pytest.mark.parametrize(
    ("style", "font", "match"),
    [
        ("Atlas3", None, r"style 'Atlas3' \(nearest: ATLAS"),
        ("ggplott", None, "nearest: ggplot"),
        (None, "DejaVu Seriff", "nearest: DejaVu Serif"),
        ({"font.sise": 3}, None, "nearest: font.size"),
        ({"font.size": "many"}, None, "font.size: "),
        ({"figure.hooks": "os:abort"}, None, "not a matter of looks"),
        ({"text.latex.preamble": "x"}, None, "not a matter of looks"),
        ({"axes.prop_cycle": "().__class__"}, None, "not a matter of looks"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_nearest_name(style, font, match):
    with pytest.raises(LookError, match=match):
        look_of(style, font, None)


def test_a_colour_of_the_legend_is_that_of_its_sample_alone():
    parts = {"taupair": histogram(1), "other": histogram(2)}
    ours, mine = (
        [p.get_facecolor() for p in spectrum(parts, label=LABEL, legend=legend).axes[0].patches[:2]]
        for legend in (Legend(), Legend(colours={"taupair": "#00ff00"}))
    )
    assert mine[0] == (0.0, 1.0, 0.0, 1.0) != ours[0]
    assert mine[1] == ours[1]
