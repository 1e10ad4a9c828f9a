"""The figures of a small run: complete, honest, and the same every time."""

import csv
import json
import shutil
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from matplotlib.text import Text

from analysis.config.configuration import Configuration
from analysis.figures.draw import (
    FigureError,
    _stamp,
    all_drawings,
    draw_figures,
    draw_some,
    fix_layout,
    load_list,
    lost_text,
    put_warning,
    refuse_unknown,
)
from analysis.figures.numbers import nearest_masses, peak_fit_record, visible_cross_section
from analysis.figures.run_results import drawable, run_results
from analysis.figures.spectra import both_stages, features, spectra
from analysis.report.tables import cutflow_table
from analysis.run.folder import RunFolder
from analysis.select.index import load_selection
from models.results import LossHistory, from_json, to_json
from plots.learning import loss_evolution
from plots.style import PROCESS_TEXT, Label, save

EXPECTED = {
    *(f"data_preselection_{name}" for name in ("pt_thrust", "pt_max_wrt_min", "pl_max_wrt_min")),
    *(f"data_preselection_{name}" for name in ("pt_mumu", "cut_recoil_theta", "cut_extra_energy")),
    *("limit_cross_section", "p_values"),
    *("sigma_min", "figure_of_merit", "efficiency_background", "cuts"),
    *("recoil_mass", "recoil_mass_before", "recoil_mass_after"),
    *("recoil_mass2", "recoil_mass2_before", "recoil_mass2_after"),
    *(f"score_map_{c}_{s}" for c in ("punzi", "bce") for s in ("signal", "background")),
    *("loss", "decision_surface", "network", "widths", "features"),
    *(f"peak_fit_{m}000_mev" for m in (1, 2, 4, 5)),
}


def rows(path):
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_every_figure_comes_as_pdf_png_and_numbers(evaluated, drawn):
    run = evaluated[0]
    assert {path.stem for path in drawn} == EXPECTED
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        assert rows(path.with_suffix(".csv"))
    listed = [about["stem"] for about in load_list(run)]
    assert [path.stem for path in drawn] == listed
    assert all((run.path / f).exists() for about in load_list(run) for f in about["files"])


def test_spectra_hold_all_events_before_and_the_passing_ones_after(evaluated, drawn):
    run, config, _, simulated = evaluated
    table = simulated.table
    found = rows(run.path / "plots/recoil_mass2.csv")
    share = config.samples["recorded"].luminosity_inv_fb / config.luminosity_inv_fb
    weight = share * table.weight
    expected = weight[~table.is_signal].sum()  # the axis covers all recoils of this sample
    before = sum(float(r["background"]) for r in found if r["stage"] == "before")
    assert before == pytest.approx(expected, rel=2e-3)
    results = run_results(run, config, simulated)
    model = results.models["punzi"]
    score = model.score(table.features, model.fold_of(table.identity))
    passing = score >= results.single_cut
    after = sum(float(r["background"]) for r in found if r["stage"] == "after")
    assert after == pytest.approx(weight[~table.is_signal & passing].sum(), rel=2e-3)
    data = sum(float(r["data"]) for r in found if r["stage"] == "before")
    assert data == pytest.approx(len(results.data), rel=2e-3)


def test_signal_overlay_is_cross_section_times_luminosity_times_efficiency(evaluated):
    run, config, _, simulated = evaluated
    results = replace(run_results(run, config, simulated), data=None)
    before, _ = both_stages(results, "recoil_mass2", 7.0)
    signal = simulated.table.signal_mass_gev == before.signals[0].mass_gev
    efficiency = simulated.table.weight[signal].sum()
    events = before.signals[0].histogram.sum(flow=True).value
    assert events == pytest.approx(7.0 * config.luminosity_inv_fb * efficiency)


def with_samples(config, changes):
    """The configuration with some keys of its samples changed, or with more samples."""
    raw = config.model_dump(mode="json")
    for name, keys in changes.items():
        raw["samples"][name] = raw["samples"].get(name, {}) | keys
    return Configuration.model_validate(raw)


def texts(drawing):
    return " ".join(text.get_text() for text in drawing.figure.findobj(Text))


def test_simulation_beside_data_has_the_luminosity_of_the_data(evaluated):
    run, config, _, simulated = evaluated
    recorded = config.samples["recorded"].model_dump(mode="json")
    more = with_samples(
        config,
        {
            "recorded": {"luminosity_inv_fb": 5.0},
            "more": recorded | {"files": ["more.root"], "luminosity_inv_fb": 2.5},
        },
    )
    results = run_results(run, more, simulated)
    share = 7.5 / config.luminosity_inv_fb
    beside = both_stages(results, "recoil_mass", 7.0)
    alone = both_stages(replace(results, data=None), "recoil_mass", 7.0)
    for with_data, without in zip(beside, alone, strict=True):
        assert with_data.data is not None
        for one, other in (
            (with_data.backgrounds["background"], without.backgrounds["background"]),
            *((s.histogram, t.histogram) for s, t in zip(with_data.signals, without.signals,
                                                         strict=True)),
        ):  # fmt: skip
            assert other.values().sum() > 0
            assert one.values() == pytest.approx(share * other.values())
            assert one.variances() == pytest.approx(share**2 * other.variances())
    table = simulated.table
    events = alone[0].backgrounds["background"].sum(flow=True).value
    assert events == pytest.approx(table.weight[~table.is_signal].sum())


def test_figures_with_data_say_the_luminosity_of_the_data_and_others_the_target(evaluated):
    run, config, _, simulated = evaluated
    target = f"{config.luminosity_inv_fb:g} fb$^{{-1}}$"
    results = run_results(
        run, with_samples(config, {"recorded": {"luminosity_inv_fb": 7.5}}), simulated
    )
    for drawing in all_drawings(results):
        shows_data = drawing.stem.startswith(("recoil_mass", "data_"))
        assert ("7.5 fb$^{-1}$" in texts(drawing)) == shows_data, drawing.stem
        assert ("scaled to the 7.5 fb⁻¹ of the data" in drawing.caption) == shows_data
        assert not (shows_data and target in texts(drawing))
    found = list(spectra(replace(results, data=None)))
    assert [drawing.stem for drawing in found] == ["recoil_mass", "recoil_mass2"]
    assert all(target in texts(drawing) for drawing in found)
    assert not any("scaled" in drawing.caption for drawing in found)


def test_another_luminosity_of_the_data_is_another_figure(evaluated):
    run, config, _, _ = evaluated
    other = with_samples(config, {"recorded": {"luminosity_inv_fb": 7.5}})
    assert _stamp(run, other) != _stamp(run, config)
    assert _stamp(run, with_samples(config, {})) == _stamp(run, config)


def test_labels_of_the_configuration_are_in_every_legend(evaluated):
    run, config, _, simulated = evaluated
    labels = {"background": {"label": "qq(γ)"}, "recorded": {"label": "2019 costs $5"}}
    results = run_results(run, with_samples(config, labels), simulated)
    drawings = [*spectra(results), *features(results)]
    assert len(drawings) == 7
    for drawing in drawings:
        assert "qq(γ)" in texts(drawing), drawing.stem
        assert "background" not in texts(drawing)
        assert (r"2019 costs \$5" in texts(drawing)) == (drawing.stem != "features")
        fix_layout(drawing.figure, dpi=100)
        assert {"background", "background_error"} <= set(drawing.numbers[0])


def test_our_text_of_a_process_is_only_the_default(evaluated):
    run, config, _, simulated = evaluated
    background = config.samples["background"].model_dump(mode="json")
    ours = dict.fromkeys(PROCESS_TEXT, background)
    results = run_results(run, with_samples(config, ours), simulated)
    assert {name: results.legend.text(name) for name in ours} == PROCESS_TEXT
    assert results.legend.data == "Data"
    named = {name: background | {"label": f"my {name}"} for name in ours}
    results = run_results(run, with_samples(config, named), simulated)
    assert {results.legend.text(name) for name in ours} == {f"my {name}" for name in ours}


def test_several_data_samples_are_called_data(evaluated):
    run, config, _, simulated = evaluated
    recorded = config.samples["recorded"].model_dump(mode="json") | {"label": "2019"}
    one = with_samples(config, {"recorded": recorded})
    two = with_samples(one, {"more": recorded | {"files": ["more.root"], "label": None}})
    assert run_results(run, one, simulated).legend.data == "2019"
    assert run_results(run, two, simulated).legend.data == "Data"


def test_labels_head_the_columns_of_the_cutflow_in_the_report(evaluated):
    run, config, _, _ = evaluated
    labels = {"signal": "Z'", "background": "<qq>", "recorded": "2019"}
    labelled = with_samples(config, {name: {"label": text} for name, text in labels.items()})
    html = cutflow_table(run, luminosity_inv_fb=50.0, samples=labelled.samples)
    heads = ["Z&#x27; 1 GeV", "Z&#x27; 3 GeV", "Z&#x27; 5 GeV", "&lt;qq&gt;", "2019"]
    assert all(f"<th>{head}</th>" in html for head in heads)
    assert "<li>2019: " in html
    assert "background" not in html
    plain = cutflow_table(run, luminosity_inv_fb=50.0, samples=config.samples)
    assert all(f"<th>{name}</th>" in plain for name in ("signal/1", "background", "recorded"))


def test_the_rate_of_data_is_that_of_their_own_luminosity(evaluated):
    run, config, _, _ = evaluated
    n = json.loads(run.cutflow.read_text())["recorded"]["raw"][-1]
    html = cutflow_table(run, luminosity_inv_fb=50.0, samples=config.samples)
    assert f"<li>recorded: {n} events of 25 /fb, {n / 25:.4g} per 1/fb</li>" in html


def test_numbers_of_the_reach_are_those_of_the_evaluation(evaluated, drawn):
    run = evaluated[0]
    ensembles = json.loads((run.figures_of_merit).read_text())["ensembles"]
    single = next(
        e
        for e in ensembles
        if (e["classifier"], e["selection"], e["quoted_on"])
        == ("punzi", "single_cut", "validation")
    )
    shown = [
        float(r["sigma_min_fb"])
        for r in rows(run.path / "plots/sigma_min.csv")
        if (r["classifier"], r["selection"]) == ("punzi", "single_cut")
    ]
    assert shown == [float(v) for v in single["sigma_min_fb"]]


def test_fitted_peak_has_as_many_events_as_its_histogram(evaluated):
    run, config, _, simulated = evaluated
    results = run_results(run, config, simulated)
    record = peak_fit_record(results.fits[2], simulated.windows, simulated.table)
    width = record.edges[1] - record.edges[0]
    total = np.trapezoid(record.curve, record.curve_at) / width
    assert total == pytest.approx(record.content.sum(), rel=1e-3)
    below = record.curve_at < record.mass_gev**2 - record.sigma
    assert record.core[below] == pytest.approx(record.curve[below], rel=1e-6)  # no tail there
    assert (record.core <= record.curve * (1 + 1e-9)).all()


def test_same_run_gives_the_same_bytes_with_any_number_of_workers(evaluated, drawn, tmp_path):
    """`drawn` was written by two processes; here a few figures are written by this one."""
    run, config, _, simulated = evaluated
    for drawing in islice(all_drawings(run_results(run, config, simulated)), 2, None, 7):
        fix_layout(drawing.figure, dpi=300)
        for path in save(drawing.figure, tmp_path / drawing.stem, drawing.numbers):
            assert path.read_bytes() == (run.path / "plots" / path.name).read_bytes(), path.name


def test_current_figures_are_not_drawn_again(evaluated, drawn, caplog):
    run, config, _, simulated = evaluated
    before = {path: path.stat().st_mtime_ns for path in drawn}
    with caplog.at_level("INFO", "analysis"):
        assert draw_figures(run, config, simulated, workers=1) == drawn
    assert "plot: up to date" in caplog.text
    assert {path: path.stat().st_mtime_ns for path in drawn} == before


def test_one_figure_is_drawn_alone_and_the_stamp_stays_honest(evaluated, drawn, tmp_path):
    run, config, _, simulated = evaluated
    copy = RunFolder(tmp_path / "run")
    shutil.copytree(run.path, copy.path)
    before = {path.name: path.stat().st_mtime_ns for path in copy.plots.iterdir()}
    listed = copy.figure_list.read_bytes()
    png = (copy.plots / "sigma_min.png").read_bytes()
    assert draw_some(copy, config, simulated, ["sigma_min"]) == [copy.plots / "sigma_min.png"]
    touched = {p.name for p in copy.plots.iterdir() if p.stat().st_mtime_ns != before[p.name]}
    assert touched == {"sigma_min.png", "sigma_min.pdf", "sigma_min.csv", "figures.json"}
    assert (copy.plots / "sigma_min.png").read_bytes() == png
    assert copy.figure_list.read_bytes() == listed
    assert copy.is_current("plot", _stamp(copy, config))
    plots = config.settings.plots.model_copy(update={"text": "Mine"})
    settings = config.settings.model_copy(update={"plots": plots})
    other = config.model_copy(update={"settings": settings})
    draw_some(copy, other, simulated, ["sigma_min"])
    assert (copy.plots / "sigma_min.png").read_bytes() != png
    for one in (config, other):  # neither set of settings made all that is there
        assert not copy.is_current("plot", _stamp(copy, one))


def test_an_unknown_figure_is_refused_with_the_nearest_names(evaluated):
    run, config, _, simulated = evaluated
    with pytest.raises(FigureError, match=r"no figure 'sigma_mim' \(nearest: sigma_min"):
        draw_some(run, config, simulated, ["sigma_mim"])


def test_a_name_that_no_run_has_is_refused_before_any_work_and_no_other(evaluated, drawn):
    config = evaluated[1]
    refuse_unknown([path.stem for path in drawn], config)
    for wrong in ("sigma_mim", "data_sidebnd_pt_mumu", "recoil_mass3"):
        with pytest.raises(FigureError, match=rf"no figure '{wrong}'"):
            refuse_unknown(["sigma_min", wrong], config)


def test_batch_study_is_drawn_only_where_its_histories_are(evaluated, tmp_path):
    run, config, _, simulated = evaluated
    copy = RunFolder(tmp_path / "run")
    shutil.copytree(run.path, copy.path)
    assert run_results(copy, config, simulated).batch_study == []
    epoch = np.arange(5.0)
    history = LossHistory("punzi", "batch 1e5", "loss", epoch, 5 - epoch, 6 - epoch, epoch)
    (copy.path / "batch_study").mkdir()
    (copy.path / "batch_study/1.json").write_text(json.dumps([to_json(history)]))
    assert run_results(copy, config, simulated).batch_study[0].label == "batch 1e5"


def test_records_beside_the_tables_can_be_read_back(evaluated, drawn):
    record = from_json(
        json.loads((evaluated[0].path / "plots/score_map_punzi_signal.json").read_text())
    )
    table = rows(evaluated[0].path / "plots/score_map_punzi_signal.csv")
    assert sum(float(r["content"]) for r in table) == pytest.approx(record.content.sum())


def test_lost_rows_are_named_on_the_figure(evaluated):
    lost = {"taupair": 0.031, "signal/1": 0.5, "signal/2": 0.4, "signal/3": 0.01}
    assert lost_text({}) == ""
    assert (
        lost_text(lost) == "Lost rows: 50 % of signal/1, 40 % of signal/2, 3.1 % of taupair, 1 more"
    )
    epoch = np.arange(5.0)
    history = LossHistory("punzi", "", "loss", epoch, epoch, epoch, epoch)
    figure = loss_evolution([], [history], label=Label())
    put_warning(figure, lost_text(lost))
    assert "3.1 % of taupair" in figure.get_suptitle()
    assert load_selection(evaluated[0]).lost == {}


def test_wanted_masses_become_simulated_ones():
    masses = np.array([1.0, 2.0, 3.0])
    assert nearest_masses([2.9, 0.1, 3.4], masses) == (1.0, 3.0)
    assert nearest_masses([], masses) == ()


def test_cross_section_of_the_overlay_is_a_round_number(evaluated):
    run, config, _, simulated = evaluated
    before, _ = both_stages(run_results(run, config, simulated), "recoil_mass", 1.0)
    signals = {s.mass_gev: s.histogram for s in before.signals}
    sigma = visible_cross_section(signals, before.backgrounds, 1.0)
    assert float(f"{sigma:.0e}"[0]) in (1, 2, 5)
    assert visible_cross_section({}, before.backgrounds, 1.0) == 1.0


@pytest.mark.parametrize("text", ["costs $5", r"$\frac{1$", "$a_$"])
def test_text_with_broken_mathematics_is_drawn_as_written(text):
    assert drawable(text) == text.replace("$", r"\$")
    assert drawable(r"$\tau\tau$") == r"$\tau\tau$"


def test_every_comparison_with_data_has_its_agreement(drawn, evaluated):
    """A row per figure with data before the cut; its numbers are those of the figure's CSV."""
    run = evaluated[0]
    rows = list(csv.DictReader(run.agreement_csv.read_text().splitlines()))
    assert rows == [
        {k: str(v) for k, v in row.items()} for row in json.loads(run.agreement.read_text())
    ]
    stems = {f"data_{r['region']}_{r['quantity'].replace(':', '_')}" for r in rows}
    assert {p.stem for p in drawn if p.stem.startswith("data_")} < stems
    own = next(row for row in rows if row["quantity"] == "pt_mumu")
    drawn_csv = run.plots / "data_preselection_pt_mumu.csv"
    bins = list(csv.DictReader(drawn_csv.read_text().splitlines()))
    inside = [
        b for b in bins if float(own["low"]) - 1e-6 < float(b["low"]) < float(own["high"]) - 1e-6
    ]
    assert float(own["n_data"]) == sum(float(b["data"]) for b in inside) > 0
    expected = sum(float(b["background"]) for b in inside)
    assert float(own["n_expected"]) == pytest.approx(expected)
    error = sum(float(b["background_error"]) ** 2 for b in inside)
    pull = (float(own["n_data"]) - expected) / np.sqrt(expected + error)
    assert float(own["pull"]) == pytest.approx(pull)
