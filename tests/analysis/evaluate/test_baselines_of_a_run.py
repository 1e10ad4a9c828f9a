"""Comparisons that are switched on: further rows, nothing else changes, all quoted out of fold."""

import csv
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.config.configuration import load
from analysis.evaluate.baselines import Compared, baseline_figures
from analysis.evaluate.comparison_table import ratio_rows
from analysis.evaluate.stage import evaluate_networks, load_ensembles, load_figures
from analysis.figures.results import reaches
from analysis.figures.run_results import run_results
from analysis.report.stage import outcome
from analysis.report.summary import summary_of
from analysis.report.tables import reach_table
from analysis.run.executors import Execution
from analysis.run.folder import RunFolder
from analysis.train.stage import split_sets, train_networks
from models.evaluation.baselines import train_boosted_trees
from models.evaluation.comparison import (
    BOXES_BEST,
    MASS_BEST,
    MASS_SINGLE,
    PUNZI_SINGLE,
    compare,
    of_curve,
)
from models.evaluation.figures_of_merit import Quoting, split_events
from models.layers import load_layers
from models.results import CHOSEN_ON_TRAINING
from models.scoring import network_scores
from models.sensitivity import PunziFormula
from tests.analysis.conftest import QUICK

ONE = Execution(executor="iterative")
ON = ("training.bce_mass=true", "evaluation.rectangular_cuts=true")


@pytest.fixture(scope="module")
def case(evaluated, tmp_path_factory):
    """A copy of the run with both comparisons switched on."""
    run, _, _, simulated = evaluated
    path = tmp_path_factory.mktemp("compared") / "run"
    shutil.copytree(run.path, path)
    own, yaml = RunFolder(path), run.path.parent / "datasets.yaml"
    config = load(yaml, (*QUICK, *ON))
    before = {p: p.stat().st_mtime_ns for p in (path / "networks").iterdir() if p.is_file()}
    train_networks(own, config, simulated, ONE)
    assert all(p.stat().st_mtime_ns == t for p, t in before.items())
    figures = evaluate_networks(own, config, simulated, workers=1)
    return SimpleNamespace(run=own, config=config, simulated=simulated, figures=figures, yaml=yaml)


def inside(windows, axis):
    return (windows.low[:, None] < axis) & (axis < windows.high[:, None])


def sums(case, passing):
    """eps and B of events that pass (n_windows, n)."""
    table, windows = case.simulated.table, case.simulated.windows
    passing = passing & inside(windows, table.axis)
    own = passing & (table.signal_mass_gev == windows.mass_gev[:, None])
    return own @ table.weight, (passing & ~table.is_signal) @ table.weight


def test_the_networks_are_what_they_were(case, evaluated):
    before = load_figures(evaluated[0])
    shared = [f for f in case.figures if f.classifier in ("punzi", "bce")]
    assert len(shared) == len(before)
    for old, new in zip(before, shared, strict=True):
        assert np.array_equal(old.sigma_min_fb, new.sigma_min_fb)


def test_every_event_is_judged_by_the_boxes_of_its_fold(case):
    """The boxes as they are written down, and the events one by one."""
    table, windows = case.simulated.table, case.simulated.windows
    fold = case.config.settings.folds.of(table.identity)
    passing = np.ones((len(windows), len(table)), bool)
    with case.run.rectangular_cuts.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * len(windows) * len(table.feature_names)
    for row in rows:
        (k,) = np.flatnonzero(windows.mass_gev == float(row["mass_gev"]))
        x = table.features[:, table.feature_names.index(row["feature"])]
        keep = (float(row["low"]) <= x) & (x < float(row["high"]))
        passing[k] &= keep | (fold != int(row["fold"]))
    efficiency, background = sums(case, passing)
    (quoted,) = of_curve(case.figures, BOXES_BEST)
    assert quoted.efficiency == pytest.approx(efficiency, rel=1e-9)
    assert quoted.background == pytest.approx(background, rel=1e-9)
    assert (quoted.efficiency > 0).all()


@pytest.mark.parametrize("curve", [MASS_BEST, MASS_SINGLE])
@pytest.mark.parametrize("number", [0, 1])
def test_window_m_asks_the_network_of_the_fold_of_each_event_at_mass_m(case, curve, number):
    table, windows = case.simulated.table, case.simulated.windows
    fold = case.config.settings.folds.of(table.identity)
    quoted = of_curve(case.figures, curve)[number]
    assert quoted.network == number
    passing = np.zeros((len(windows), len(table)), bool)
    for j in (0, 1):
        network = load_layers(case.run.network("bce_mass", number, j))
        for k, mass in enumerate(windows.mass_gev):
            x = np.column_stack([table.features, np.full(len(table), mass, np.float32)])
            score = network_scores(x, *network.parts).astype(np.float64)
            passing[k] |= (fold == j) & (score >= quoted.fold_cuts[j, k])
    efficiency, background = sums(case, passing)
    assert quoted.efficiency == pytest.approx(efficiency, rel=1e-9)
    assert quoted.background == pytest.approx(background, rel=1e-9)


def test_every_event_is_judged_by_trees_that_were_not_trained_on_its_fold(case, tmp_path):
    pytest.importorskip("xgboost")
    config, simulated = load(case.yaml, (*QUICK, "evaluation.xgboost=true")), case.simulated
    table, windows, folds = simulated.table, simulated.windows, config.settings.folds
    splits = split_events(table, windows, trained=simulated.trained, folds=folds)
    quoting = Quoting(PunziFormula(config.luminosity_inv_fb), threads=2)
    compared = Compared(RunFolder(tmp_path / "run"), config, simulated, splits, quoting)
    best = (("xgboost", CHOSEN_ON_TRAINING), "validation")
    (quoted,) = (
        f for f in baseline_figures(compared) if ((f.classifier, f.selection), f.quoted_on) == best
    )
    fold, passing = folds.of(table.identity), np.zeros((len(windows), len(table)), bool)
    for j in range(folds.count):
        others = replace(simulated, table=table.take(fold != j))
        train, _ = split_sets(config, others, fold=j)
        trees = train_boosted_trees(train, seed=config.settings.training.seed)
        passing |= (fold == j) & (trees.scores(table.features) >= quoted.fold_cuts[j][:, None])
    efficiency, background = sums(case, passing)
    assert quoted.efficiency == pytest.approx(efficiency, rel=1e-9)
    assert quoted.background == pytest.approx(background, rel=1e-9)


def test_the_net_that_is_told_the_mass_has_one_cut_for_all_masses_and_folds(case):
    for quoted in of_curve(case.figures, MASS_SINGLE):
        (cut,) = set(quoted.fold_cuts.ravel().tolist())
        assert 0 < cut < 1
        assert cut != 0.5


def test_they_are_rows_of_the_comparison_the_report_and_the_figure(case):
    told = compare(load_figures(case.run))
    for curve in (BOXES_BEST, MASS_BEST, MASS_SINGLE):
        assert told.ratio(PUNZI_SINGLE, curve) is not None
    texts = [row[0] for row in ratio_rows(told)]
    assert "Punzi-net, single cut / Rectangular cuts, best cut per mass" in texts
    assert "Punzi-net, single cut / BCE net (mass), single cut" in texts
    sentences = " ".join(summary_of(outcome(case.run, case.config)).sentences)
    assert "Against rectangular cuts tuned for each mass, the single cut" in sentences
    assert "Against the same net with one cut for all masses, the single cut" in sentences
    assert "BCE net (mass), single cut" in reach_table(load_ensembles(case.run))
    results = run_results(case.run, case.config, case.simulated)
    (drawn,) = (d.numbers for d in reaches(results) if d.stem == "sigma_min")
    words = " ".join(str(value) for row in drawn for value in row.values())
    assert "rectangular" in words
    assert "bce_mass" in words


def test_no_model_is_made_of_them(case):
    assert sorted(p.name for p in case.run.models.iterdir()) == [
        f"{stem}-0{i}.safetensors" for stem in ("bce", "net") for i in (0, 1)
    ]


def test_switched_off_again_nothing_is_left(case, evaluated):
    _, config, _, simulated = evaluated
    train_networks(case.run, config, simulated, ONE)
    figures = evaluate_networks(case.run, config, simulated, workers=1)
    assert {f.classifier for f in figures} == {"punzi", "bce"}
    assert not case.run.rectangular_cuts.exists()
    assert not list((case.run.path / "networks").glob("bce_mass*"))
