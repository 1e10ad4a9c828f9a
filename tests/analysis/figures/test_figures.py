"""The figures of a small run: complete, honest, and the same every time."""

import csv
import json
import shutil
from itertools import islice

import numpy as np
import pytest

from analysis.figures.draw import (
    all_drawings,
    draw_figures,
    fix_layout,
    load_list,
    lost_text,
    put_warning,
)
from analysis.figures.numbers import nearest_masses, peak_fit_record, visible_cross_section
from analysis.figures.run_results import drawable, run_results
from analysis.figures.spectra import both_stages
from analysis.run.folder import RunFolder
from analysis.select.index import load_selection
from models.results import LossHistory, from_json, to_json
from plots.learning import loss_evolution
from plots.style import Label, save

EXPECTED = {
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
    expected = table.weight[~table.is_signal].sum()  # the axis covers all recoils of this sample
    before = sum(float(r["background"]) for r in found if r["stage"] == "before")
    assert before == pytest.approx(expected, rel=2e-3)
    results = run_results(run, config, simulated)
    passing = results.models["punzi"].score(table.features) >= results.single_cut
    after = sum(float(r["background"]) for r in found if r["stage"] == "after")
    assert after == pytest.approx(table.weight[~table.is_signal & passing].sum(), rel=2e-3)
    data = sum(float(r["data"]) for r in found if r["stage"] == "before")
    assert data == pytest.approx(len(results.data), rel=2e-3)


def test_signal_overlay_is_cross_section_times_luminosity_times_efficiency(evaluated):
    run, config, _, simulated = evaluated
    before, _ = both_stages(run_results(run, config, simulated), "recoil_mass2", 7.0)
    signal = simulated.table.signal_mass_gev == before.signals[0].mass_gev
    efficiency = simulated.table.weight[signal].sum()
    events = before.signals[0].histogram.sum(flow=True).value
    assert events == pytest.approx(7.0 * config.luminosity_inv_fb * efficiency)


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
    width = record.edges_gev2[1] - record.edges_gev2[0]
    total = np.trapezoid(record.curve, record.curve_gev2) / width
    assert total == pytest.approx(record.content.sum(), rel=1e-3)
    below = record.curve_gev2 < record.mass_gev**2 - record.sigma_gev2
    assert record.core[below] == pytest.approx(record.curve[below], rel=1e-6)  # no tail there
    assert (record.core <= record.curve * (1 + 1e-9)).all()


def test_same_run_gives_the_same_bytes_with_any_number_of_workers(evaluated, drawn, tmp_path):
    """`drawn` was written by two processes; here a few figures are written by this one."""
    run, config, _, simulated = evaluated
    for drawing in islice(all_drawings(run_results(run, config, simulated)), 2, None, 7):
        fix_layout(drawing.figure)
        for path in save(drawing.figure, tmp_path / drawing.stem, drawing.numbers):
            assert path.read_bytes() == (run.path / "plots" / path.name).read_bytes(), path.name


def test_current_figures_are_not_drawn_again(evaluated, drawn, caplog):
    run, config, _, simulated = evaluated
    before = {path: path.stat().st_mtime_ns for path in drawn}
    with caplog.at_level("INFO", "analysis"):
        assert draw_figures(run, config, simulated, workers=1) == drawn
    assert "plot: up to date" in caplog.text
    assert {path: path.stat().st_mtime_ns for path in drawn} == before


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
