"""What an evaluation leaves, and what a second one finds to do."""

import csv
import shutil

import numpy as np
import pytest

from analysis.config.configuration import load
from analysis.evaluate.stage import ensembles, evaluate_networks, load_ensembles, load_figures
from analysis.run.folder import RunFolder
from analysis.train.outcome import failed_networks
from models.evaluation.comparison import BCE_SINGLE, PUNZI_SINGLE, TREES_BEST, of_curve


def times(run):
    files = [run.figures_of_merit, run.figures_of_merit_csv, run.processes, run.passing]
    files += [run.model(c, i) for c in ("punzi", "bce") for i in (0, 1)]
    return [file.stat().st_mtime_ns for file in files]


def test_a_second_evaluation_has_nothing_to_do(evaluated):
    run, config, _, simulated = evaluated
    before = times(run)
    again = evaluate_networks(run, config, simulated, workers=1)
    assert times(run) == before
    assert [(f.classifier, f.network) for f in again] == [
        (f.classifier, f.network) for f in load_figures(run)
    ]


def test_the_table_holds_every_number_of_the_records(evaluated):
    run, _, _, _ = evaluated
    figures = load_figures(run)
    assert b"\r" not in run.figures_of_merit_csv.read_bytes()
    with run.figures_of_merit_csv.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == sum(len(f.mass_gev) for f in figures)
    wanted = [
        (f.classifier, f.network, f.selection, f.quoted_on, mass, sigma)
        for f in figures
        for mass, sigma in zip(f.mass_gev, f.sigma_min_fb, strict=True)
    ]
    for row, values in zip(rows, wanted, strict=True):
        assert (row["classifier"], int(row["network"])) == values[:2]
        assert (row["selection"], row["quoted_on"]) == values[2:4]
        assert float(row["mass_gev"]) == values[4]
        assert float(row["sigma_min_fb"]) == pytest.approx(values[5], rel=1e-5)


def test_means_are_over_the_networks_of_one_curve(evaluated):
    run, config, _, _ = evaluated
    figures, failed = load_figures(run), failed_networks(run, config.settings.training)
    means = {(m.classifier, m.selection, m.quoted_on): m for m in load_ensembles(run)}
    for curve in (PUNZI_SINGLE, BCE_SINGLE):
        mean, networks = means[(*curve, "validation")], of_curve(figures, curve)
        if curve == PUNZI_SINGLE and len(failed) == 1:
            networks = [f for f in networks if f.network not in failed]
        assert mean.n_networks == len(networks)
        assert mean.efficiency == pytest.approx(np.mean([f.efficiency for f in networks], axis=0))


def test_a_failed_punzi_net_is_left_out_of_the_means_unless_all_failed(evaluated):
    run, _, _, _ = evaluated
    figures = load_figures(run)

    def counts(failed):
        return {
            (m.classifier, m.selection): m.n_networks
            for m in ensembles(figures, failed)
            if m.quoted_on == "validation"
        }

    assert counts([])[PUNZI_SINGLE] == 2
    assert counts([1])[PUNZI_SINGLE] == 1
    assert counts([1])[BCE_SINGLE] == 2
    assert counts([0, 1])[PUNZI_SINGLE] == 2  # else there would be nothing to show
    (other,) = {
        m.efficiency.sum()
        for m in ensembles(figures, [0])
        if (m.classifier, m.selection, m.quoted_on) == (*PUNZI_SINGLE, "validation")
    }
    assert other == of_curve(figures, PUNZI_SINGLE)[1].efficiency.sum()


def test_trees_are_one_classifier_more_and_change_no_network(evaluated, tmp_path):
    pytest.importorskip("xgboost")
    run, config, _, simulated = evaluated
    shutil.copytree(run.path, tmp_path / "run")
    own = RunFolder(tmp_path / "run")
    folder = run.path.parent
    section = config.settings.training
    asked = [f"training.{name}={getattr(section, name)}" for name in ("networks", "folds")]
    asked += ["evaluation.xgboost=true"]
    with_trees = load(folder / "datasets.yaml", asked)
    figures = evaluate_networks(own, with_trees, simulated, workers=1)
    (trees,) = of_curve(figures, TREES_BEST)
    assert trees.network == 0
    assert np.isfinite(trees.sigma_min_fb).all()
    networks = [f for f in figures if f.classifier != "xgboost"]
    before = load_figures(run)
    assert len(networks) == len(before)
    for old, new in zip(before, networks, strict=True):
        assert np.array_equal(old.sigma_min_fb, new.sigma_min_fb)
