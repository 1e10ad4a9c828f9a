import csv
import re
from dataclasses import replace

import hist
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.patches import StepPatch

from models.results import (
    DecisionBoundary,
    EnsembleFigureOfMerit,
    LossHistory,
    PeakFit,
    ScoreMap,
    WidthsByMass,
)
from plots.boundary import decision_boundary, isosurface
from plots.inputs import feature_distributions
from plots.learning import batch_size_study, loss_evolution
from plots.reach import cuts_by_mass, efficiency_and_background, reach
from plots.resolution import peak_fit, width_by_mass
from plots.score_map import score_map
from plots.sketch import network_sketch
from plots.spectrum import SignalOverlay, before_and_after, connected, spectrum
from plots.style import (
    PROCESS_COLOUR,
    RED,
    Label,
    Legend,
    SearchWords,
    histogram_rows,
    per_bin,
    save,
)

WORDS = SearchWords("m_{Z′}", r"$M^2$", "GeV$^2$", r"$M$")
LABEL = Label(luminosity_inv_fb=50.0, words=WORDS)
AXIS = hist.axis.Regular(20, 0, 10, name="recoil_mass", label=r"$M_\mathrm{rec}$ [GeV/$c^2$]")
MASS = np.arange(0.5, 8.6, 0.5)
TEXTS = {"a": "A [GeV]", "b": "B", "c": "C", "d": "D [rad]"}


def histogram(seed, n=500, weight=2.0):
    h = hist.Hist(AXIS, storage=hist.storage.Weight())
    h.fill(np.random.default_rng(seed).uniform(0, 10, n), weight=weight)
    return h


def curve(classifier="punzi", selection="single_cut", scale=1.0):
    n = len(MASS)
    sigma = scale * np.exp(0.3 * MASS)
    constant = {
        name: np.full(n, 0.5) for name in EnsembleFigureOfMerit.__dataclass_fields__
        if name not in ("classifier", "selection", "quoted_on", "luminosity_inv_fb", "n_networks")
    }  # fmt: skip
    return EnsembleFigureOfMerit(
        classifier=classifier, selection=selection, quoted_on="validation", luminosity_inv_fb=50.0,
        n_networks=10,
        **constant | {
            "mass_gev": MASS, "trained": np.arange(n) % 2 == 0, "sigma_min_fb": sigma,
            "sigma_min_error_fb": 0.05 * sigma, "fom_inv_fb": 1 / sigma,
            "fom_error_inv_fb": 0.05 / sigma,
        },
    )  # fmt: skip


def markers(ax):
    """Points of every errorbar of the axes, by (marker): list of (x, y)."""
    found = {}
    for container in ax.containers:
        line = container.lines[0]
        found.setdefault(line.get_marker(), []).append(np.array(line.get_data()))
    return found


def test_the_top_of_the_stack_is_the_sum_of_the_backgrounds():
    parts = {"taupair": histogram(1), "eemumu": histogram(2), "something new": histogram(3)}
    ax = spectrum(parts, label=LABEL).axes[0]
    total = sum(h.values() for h in parts.values())
    steps = [p for p in ax.patches if isinstance(p, StepPatch)]
    assert any(np.allclose(p.get_data().values, total) for p in steps)
    band = next(p for p in steps if p.get_label() == "MC stat. unc.")
    error = np.sqrt(sum(h.variances() for h in parts.values()))
    assert band.get_data().values == pytest.approx(total + error)
    assert band.get_data().baseline == pytest.approx(total - error)


def test_signal_is_not_stacked_and_its_cross_section_is_in_the_legend():
    signal = histogram(4, 50)
    overlay = SignalOverlay(signal, mass_gev=3.0, cross_section_fb=12.5)
    ax = spectrum({"taupair": histogram(1)}, signals=[overlay], label=LABEL).axes[0]
    line = next(p for p in ax.patches if "12.5 fb" in str(p.get_label()))
    assert np.nan_to_num(line.get_data().values) == pytest.approx(signal.values())
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert any("$m_{Z′}$ = 3 GeV" in t and "12.5 fb" in t for t in texts)


def test_the_ratio_of_data_is_data_over_the_sum():
    parts = {"taupair": histogram(1), "eemumu": histogram(2)}
    data = hist.Hist(AXIS, storage=hist.storage.Int64())
    data[...] = np.arange(20)  # the first bin is empty: no point
    main, ratio = spectrum(parts, data=data, label=LABEL).axes
    total = sum(h.values() for h in parts.values())
    ((_, y),) = markers(ratio)["o"]
    assert y == pytest.approx((np.arange(20) / total)[1:])
    ((_, counts),) = markers(main)["o"]
    assert counts == pytest.approx(np.arange(1, 20))


def test_a_ratio_beyond_the_panel_is_an_arrow_at_its_edge():
    """Ratios 1, 2, 2.5, 30, data without expectation, no data without expectation, no data."""
    expected = hist.Hist(AXIS, storage=hist.storage.Weight())
    data = hist.Hist(AXIS, storage=hist.storage.Int64())
    expected[...] = [(v, v) for v in (10.0, 10, 10, 10, 0, 0, *[10] * 14)]
    data[...] = [10, 20, 25, 300, 3, 0, *[0] * 14]
    ratio = spectrum({"taupair": expected}, data=data, label=LABEL).axes[1]
    (arrow,) = [line for line in ratio.lines if line.get_label() == "beyond"]
    assert arrow.get_xdata() == pytest.approx(AXIS.centers[[2, 3, 4]])
    assert (arrow.get_marker(), arrow.get_color()) == ("^", RED)
    places = ratio.transAxes.inverted().transform(
        arrow.get_transform().transform(arrow.get_xydata())
    )
    assert ((places[:, 1] > 0.9) & (places[:, 1] < 1)).all()
    assert ratio.get_ylim() == (0, 2)


def test_ratios_within_the_panel_have_no_arrow():
    parts = {"taupair": histogram(1), "eemumu": histogram(2)}
    data = hist.Hist(AXIS, storage=hist.storage.Int64())
    data[...] = 2 * np.floor(sum(h.values() for h in parts.values()))
    ratio = spectrum(parts, data=data, label=LABEL).axes[1]
    assert "beyond" not in [line.get_label() for line in ratio.lines]


def texts_and_colours(ax):
    """Legend text of everything that is filled: its colour."""
    return {
        p.get_label(): mpl.colors.to_hex(p.get_facecolor()) for p in ax.patches if p.get_label()
    }


def test_a_label_changes_the_text_of_a_process_and_not_its_colour():
    parts = {"taupair": histogram(1), "eemumu": histogram(2), "other": histogram(3)}
    plain = texts_and_colours(spectrum(parts, label=LABEL).axes[0])
    legend = Legend({"taupair": "ττ(γ)", "other": "ττ(γ) of others"}, data="2019")
    data = hist.Hist(AXIS, storage=hist.storage.Int64()).fill([1.0, 2.0])
    for figure in (
        spectrum(parts, data=data, label=LABEL, legend=legend),
        before_and_after(parts, parts, data=(data, data), label=LABEL, legend=legend),
    ):
        named = texts_and_colours(figure.axes[0])
        assert named["ττ(γ)"] == plain[r"$\tau^+\tau^-$"] == PROCESS_COLOUR["taupair"]
        assert named[r"$e^+e^-\mu^+\mu^-$"] == PROCESS_COLOUR["eemumu"]
        assert named["ττ(γ) of others"] == plain["other"]
        entries = [t.get_text() for t in figure.axes[0].get_legend().get_texts()]
        assert "2019" in entries
        assert "Data" not in entries


def test_two_samples_of_one_label_are_both_in_the_stack():
    parts = {"first": histogram(1), "second": histogram(2)}
    legend = Legend({"first": "qq", "second": "qq"})
    ax = spectrum(parts, label=LABEL, legend=legend).axes[0]
    assert [t.get_text() for t in ax.get_legend().get_texts()].count("qq") == 2


def test_every_sample_of_the_legend_is_filled_and_signal_is_a_line():
    shapes = {"taupair": histogram(1), "other": histogram(2), "5 GeV": histogram(3)}
    legend = Legend({"taupair": "ττ(γ)", "other": "qq"})
    figure = feature_distributions({"pt_mumu": shapes}, label=LABEL, legend=legend)
    lines = {p.get_label(): p for p in figure.axes[0].patches if p.get_label()}
    assert set(lines) == {"ττ(γ)", "qq", "5 GeV"}
    drawn = [mpl.colors.to_hex(p.get_facecolor()) for p in figure.axes[0].patches
             if p.get_alpha() == 0.25]  # fmt: skip
    edges = {text: mpl.colors.to_hex(p.get_edgecolor()) for text, p in lines.items()}
    assert drawn == [edges["ττ(γ)"], edges["qq"]]
    assert edges["ττ(γ)"] == PROCESS_COLOUR["taupair"]
    assert len(set(edges.values())) == 3


@pytest.mark.parametrize("logarithmic", [True, False])
def test_the_legend_does_not_cover_the_data(logarithmic):
    figure = spectrum(
        {"taupair": histogram(1), "eemumu": histogram(2), "mumugamma": histogram(3)},
        signals=[SignalOverlay(histogram(i, 50), float(i), 10.0) for i in (4, 5, 6)],
        label=LABEL,
        logarithmic=logarithmic,
    )
    figure.draw_without_rendering()
    (ax,) = figure.axes
    highest = max(p.get_data().values.max() for p in ax.patches if isinstance(p, StepPatch))
    top = ax.transData.transform((5, highest))[1]
    assert ax.get_legend().get_window_extent().y0 > top


def test_before_and_after_share_the_axis():
    parts = {"taupair": histogram(1)}
    upper, lower = before_and_after(parts, {"taupair": histogram(2, 20)}, label=LABEL).axes
    assert upper.get_xlim() == lower.get_xlim() == (0, 10)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ((True, False), "after the cut: data blind"),
        ((True, True), "after the cut"),
        ((False, False), "after the cut"),
    ],
)
def test_a_spectrum_without_its_data_says_that_they_are_blind(shown, text):
    parts, data = {"taupair": histogram(1)}, histogram(2)
    pair = tuple(data if one else None for one in shown)
    lower = before_and_after(parts, parts, data=pair, label=LABEL).axes[1]
    assert text in [found.get_text() for found in lower.texts]


def test_bin_widths_are_in_the_axis_label():
    assert per_bin(AXIS) == "Events / (0.5 GeV/$c^2$)"
    uneven = hist.axis.Variable([0, 1, 3], label="m [GeV]")
    assert per_bin(uneven) == "Events / bin"


def test_circles_are_trained_masses_and_triangles_are_not():
    bce, punzi = curve("bce", "best_cut"), curve(scale=0.7)
    main, ratio = reach([bce, punzi], label=LABEL).axes
    circles, triangles = markers(main)["o"][1], markers(main)["^"][1]
    assert circles[0] == pytest.approx(MASS[::2])
    assert triangles[0] == pytest.approx(MASS[1::2])
    assert circles[1] == pytest.approx(punzi.sigma_min_fb[::2])
    ((_, y),) = markers(ratio)["o"]  # the reference itself is only a line
    assert y == pytest.approx(0.7)


def test_a_mass_out_of_reach_is_not_drawn():
    blind = curve("bce", "best_cut")
    blind.sigma_min_fb[0] = np.inf
    main, ratio = reach([blind, curve(scale=0.7)], label=LABEL).axes
    assert len(markers(main)["o"][0][0]) == len(MASS[::2]) - 1
    assert len(markers(ratio)["o"][0][0]) == len(MASS[::2]) - 1


def test_a_ratio_beyond_the_panel_is_marked_by_an_arrow():
    far = curve(scale=0.7)
    far.sigma_min_fb[3] *= 10
    _, ratio = reach([curve("bce", "best_cut"), far], label=LABEL).axes
    (arrow,) = [line for line in ratio.lines if line.get_label() == "beyond"]
    assert arrow.get_xdata() == pytest.approx(MASS[3:4])
    assert ratio.get_ylim()[1] <= 3


def test_a_single_network_shows_the_error_of_the_simulation():
    single = replace(curve(), n_networks=1, sigma_min_error_fb=np.full(len(MASS), np.nan))
    (ax,) = reach([single], label=LABEL).axes
    bars = [c.lines[2][0].get_segments() for c in ax.containers]
    half = [np.ptp(bar[:, 1]) / 2 for group in bars for bar in group]
    assert np.array(half) == pytest.approx(0.5)  # sigma_min_mc_error_fb of the curve


def test_all_legends_of_mass_plots_stay_above_the_points():
    curves = [curve("bce", "best_cut"), curve("punzi", "best_cut"), curve(scale=0.7)]
    for figure in (
        reach(curves, label=LABEL),
        reach(curves, quantity="fom_inv_fb", label=LABEL),
        efficiency_and_background(curves, label=LABEL),
        cuts_by_mass(curves, label=LABEL),
    ):
        figure.draw_without_rendering()
        ax = figure.axes[0]
        box = ax.get_legend().get_window_extent()
        for group in markers(ax).values():
            for x, y in group:
                inside = [box.contains(*ax.transData.transform(p)) for p in zip(x, y, strict=True)]
                assert not any(inside)


def test_the_map_is_a_density_and_the_line_is_the_cut():
    content = np.zeros((4, 3))
    content[1, 2], content[2, 0] = 3.0, 1.0
    record = ScoreMap(
        "punzi", "signal", np.linspace(-4, 4, 5), np.linspace(0, 9, 4), content,
        np.array([1.0, 2.0, 3.0]), np.array([0.5, np.nan, 1.0]),
    )  # fmt: skip
    ax = score_map(record, single_cut=0.5, label=LABEL).axes[0]
    density = ax.collections[0].get_array()
    assert density.sum() * 2 * 3 == pytest.approx(1)
    assert density.reshape(3, 4)[2, 1] == pytest.approx(0.75 / 6)
    cut = next(line for line in ax.lines if line.get_label() == "best cut per mass")
    assert np.array_equal(cut.get_xdata(), [0.5, 1.0])


def history(label="", n=30):
    epoch = np.arange(float(n))
    loss = 1 + np.exp(-epoch / 5)
    return LossHistory("punzi", label, "Loss", epoch, loss, loss + 0.1, np.full(n, 0.1))


def test_each_stage_and_network_has_its_line():
    figure = loss_evolution([history()] * 3, [history()] * 3, label=LABEL)
    assert [len(ax.lines) for ax in figure.axes] == [6, 6]
    with pytest.raises(ValueError, match="no training history"):
        loss_evolution([], [], label=LABEL)
    study = batch_size_study([history("1e4"), history("all")], label=LABEL)
    assert [t.get_text() for t in study.axes[0].get_legend().get_texts()] == ["1e4", "all"]


def test_the_fit_shows_the_window_and_its_pulls():
    edges = np.linspace(20, 30, 51)
    centre = 0.5 * (edges[1:] + edges[:-1])
    x = np.linspace(20, 30, 501)
    shape = 400 * np.exp(-0.5 * ((x - 25) / 0.3) ** 2) + 9
    content = np.interp(centre, x, shape) + 3.0
    record = PeakFit(5.0, edges, content, np.full(50, 3.0), x, shape, shape, 0.3, 0.01, 24.4, 25.6)
    main, below = peak_fit(record, label=LABEL).axes
    assert main.patches[0].get_x() == pytest.approx(24.4)
    assert main.patches[0].get_width() == pytest.approx(1.2)
    ((_, pull),) = markers(below)["o"]
    assert pull == pytest.approx(1.0)


def test_widths_without_published_ones_have_two_entries():
    none = np.empty(0)
    record = WidthsByMass(
        MASS, 0.3 - 0.02 * MASS, MASS * 0 + 0.01, MASS, MASS, "", none, none, none
    )
    ax = width_by_mass(record, label=LABEL).axes[0]
    assert len(ax.get_legend().get_texts()) == 2
    with_them = replace(
        record, reference_text="a paper", reference_mass_gev=MASS, reference_sigma=MASS,
        reference_error=MASS,
    )  # fmt: skip
    ax = width_by_mass(with_them, label=LABEL).axes[0]
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert len(texts) == 3
    assert "published (a paper)" in texts


def test_feature_shapes_are_normalised():
    figure = feature_distributions(
        {"pt_mumu": {"taupair": histogram(1), "5 GeV": histogram(2, 30)}}, label=LABEL
    )
    shapes = [p for p in figure.axes[0].patches if p.get_label() in (r"$\tau^+\tau^-$", "5 GeV")]
    assert [p.get_data().values.sum() for p in shapes] == pytest.approx([1, 1])


def test_features_are_shown_where_there_are_events():
    narrow = hist.Hist(AXIS, storage=hist.storage.Weight())
    narrow.fill(np.linspace(2.01, 3.99, 100))
    (ax,) = (a for a in feature_distributions({"x": {"taupair": narrow}}, label=LABEL).axes
             if a.get_visible())  # fmt: skip
    assert ax.get_xlim() == (2.0, 4.0)


def test_every_weight_is_a_line_of_the_sketch():
    inputs = ["$p_T$", "$E$", "a", "b"]
    ax = network_sketch(inputs, (8, 4)).axes[0]
    lines = [c for c in ax.collections if hasattr(c, "get_segments")]
    assert sum(len(c.get_segments()) for c in lines) == 4 * 8 + 8 * 4 + 4
    assert [t.get_text() for t in ax.texts][:4] == inputs


def test_the_isosurface_of_a_distance_is_a_sphere():
    axes = np.array([np.linspace(-1.5, 1.5, 25)] * 3)
    x, y, z = np.meshgrid(*axes, indexing="ij")
    triangles = isosurface(axes, np.sqrt(x**2 + y**2 + z**2), 1.0)
    assert np.linalg.norm(triangles, axis=2) == pytest.approx(1.0, abs=0.01)
    sides = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    assert np.linalg.norm(sides, axis=1).sum() / 2 == pytest.approx(4 * np.pi, rel=0.01)


@pytest.mark.parametrize("level", [0.5, 7.0])
def test_the_boundary_is_drawn_if_there_is_one(level):
    axes = np.array([np.linspace(0, 5, 8)] * 3)
    score = np.meshgrid(*axes, indexing="ij")[0] / 5
    record = DecisionBoundary(
        ("a", "b", "c"), ("d",), np.array([1.5]), level, axes, score, np.array([1.0, 4.0]),
        np.repeat([1.0, 4.0], 10), np.random.default_rng(1).uniform(0, 5, (20, 3)),
    )  # fmt: skip
    figure = decision_boundary(record, texts=TEXTS, label=LABEL)
    (ax,) = figure.axes
    surfaces = [c for c in ax.collections if "Poly3D" in type(c).__name__]
    assert len(surfaces) == (1 if level < 1 else 0)
    assert [ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()] == ["A [GeV]", "B", "C"]
    assert "D = 1.5 rad" in [t.get_text() for t in figure.texts]


@pytest.mark.parametrize("level", [0.5, 7.0])
def test_in_a_plane_the_boundary_is_a_line_and_points_stand_where_they_are(level):
    axes = np.array([np.linspace(0, 5, 8), np.linspace(-1, 1, 8)])
    score = np.meshgrid(*axes, indexing="ij")[0] / 5
    points = np.random.default_rng(1).uniform(0, 1, (20, 2))
    record = DecisionBoundary(
        ("a", "b"), ("c", "d"), np.zeros(2), level, axes, score, np.array([1.0, 4.0]),
        np.repeat([1.0, 4.0], 10), points,
    )  # fmt: skip
    (ax,) = decision_boundary(record, texts=TEXTS, label=LABEL).axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("A [GeV]", "B")
    for line, rows in zip(ax.lines, (slice(10), slice(10, 20)), strict=True):
        assert np.array_equal(line.get_xydata(), points[rows])
    lines = [c for c in ax.collections if not c.get_facecolor().size]
    assert len(lines) == (1 if level < 1 else 0)
    for line in lines:
        (path,) = line.get_paths()
        assert path.vertices[:, 0] == pytest.approx(2.5)  # score = x / 5


def test_of_one_feature_the_score_itself_is_shown():
    x = np.linspace(0, 5, 8)
    record = DecisionBoundary(
        ("a",), (), np.empty(0), 0.5, x[None], x / 5, np.array([1.0]), np.full(3, 1.0),
        np.array([[1.0], [2.0], [3.0]]),
    )  # fmt: skip
    (ax,) = decision_boundary(record, texts=TEXTS, label=LABEL).axes
    assert any(np.array_equal(line.get_ydata(), x / 5) for line in ax.lines)
    assert any(np.array_equal(line.get_ydata(), [0.5, 0.5]) for line in ax.lines)
    assert any(np.array_equal(line.get_xdata(), [1, 2, 3]) for line in ax.lines)


def test_saved_numbers_are_the_histogram_and_a_second_save_has_the_same_bytes(tmp_path):
    h = histogram(1)
    figure = spectrum({"taupair": h}, label=LABEL)
    rows = histogram_rows({"taupair": h})
    first = {p: p.read_bytes() for p in save(figure, tmp_path / "recoil", rows)}
    assert [p.name for p in first] == ["recoil.pdf", "recoil.png", "recoil.csv"]
    with (tmp_path / "recoil.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [float(r["taupair"]) for r in read] == pytest.approx(h.values())
    assert [float(r["taupair_error"]) ** 2 for r in read] == pytest.approx(h.variances())
    again = spectrum({"taupair": h}, label=LABEL)
    assert {p: p.read_bytes() for p in save(again, tmp_path / "recoil", rows)} == first
    assert len(list(tmp_path.iterdir())) == 3


def test_a_figure_that_cannot_be_saved_leaves_the_old_one(tmp_path):
    figure = spectrum({"taupair": histogram(1)}, label=LABEL)
    save(figure, tmp_path / "a", [{"x": 1}])
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    figure.savefig = None
    with pytest.raises(TypeError):
        save(figure, tmp_path / "a", [{"x": 2}])
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_the_label_never_claims_approval_and_settings_of_the_reader_stay():
    before = dict(mpl.rcParams)
    figure = spectrum(
        {"taupair": histogram(1)}, label=replace(LABEL, text="Pseudo-data (own work)")
    )
    assert dict(mpl.rcParams) == before
    texts = " ".join(t.get_text() for t in figure.findobj(mpl.text.Text))
    assert "Pseudo-data (own work)" in texts
    assert not re.search("preliminary|approved", texts, re.IGNORECASE)


def test_a_signal_line_ends_at_the_first_empty_bins_around_its_peak():
    values = np.array([1.0, 0, 2, 3, 9, 4, 0, 1, 0])
    nan = np.nan
    np.testing.assert_array_equal(connected(values), [nan, nan, 2, 3, 9, 4, nan, nan, nan])
    np.testing.assert_array_equal(connected(values[2:6]), values[2:6])
