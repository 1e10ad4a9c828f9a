"""Cuts of a finished run, quoted on another sample."""

import shutil

import numpy as np
import pytest

from analysis.config.configuration import load
from analysis.evaluate.confirm import confirm, refuse_missing_masses
from analysis.evaluate.stage import evaluate_networks, load_figures
from analysis.run.executors import Execution
from analysis.run.folder import RunError, open_run
from analysis.select.stage import select_events
from analysis.train.stage import train_networks
from models.evaluation.comparison import BCE_BEST, PUNZI_BEST, PUNZI_SINGLE, of_curve


def config_of(evaluated):
    return evaluated[0].path.parent / "datasets.yaml"


def confirmed(run, config, sets, tmp_path):
    """The run on its own events, which the command refuses."""
    with open_run(tmp_path / "fresh") as fresh:
        selection = select_events(fresh, config, sets, Execution(executor="iterative"))
        confirm(run, fresh, config, selection)
        return load_figures(fresh)


def test_a_run_with_folds_confirmed_on_its_own_events_is_the_run(evaluated, tmp_path):
    """Each event is judged by the network of its fold, here as there."""
    run, config, sets, _ = evaluated
    again, own = confirmed(run, config, sets, tmp_path), load_figures(run)
    for curve in (PUNZI_SINGLE, PUNZI_BEST, BCE_BEST):
        for one, other in zip(of_curve(again, curve), of_curve(own, curve), strict=True):
            for name in ("efficiency", "background", "sigma_min_fb", "sigma_min_error_fb", "cut"):
                np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)
            assert np.array_equal(one.fold_cuts, other.fold_cuts)
            assert one.background.sum() > 0


def test_all_events_of_a_sample_are_its_two_splits_together(evaluated, tmp_path):
    """eps N = eps_train 0.8 N + eps_held_out 0.2 N for the same cut, and the same for B."""
    _, config, sets, simulated = evaluated
    quick = ["networks=2", "folds=1", "bce_equal_budget=false", "bce.epochs=8", "punzi.epochs=8"]
    quick += ["punzi.refine=2"]
    config = load(config_of(evaluated), [f"training.{word}" for word in quick])
    with open_run(tmp_path / "single") as run:
        shutil.copy(evaluated[0].windows, run.windows)
        shutil.copytree(evaluated[0].skim, run.skim)
        train_networks(run, config, simulated, Execution(executor="iterative"))
        evaluate_networks(run, config, simulated, workers=1)
    whole = of_curve(confirmed(run, config, sets, tmp_path), PUNZI_SINGLE)
    own = load_figures(run)
    held_out = of_curve(own, PUNZI_SINGLE)
    trained_on = of_curve(own, PUNZI_SINGLE, "training")
    assert len(whole) == len(held_out) == 2
    for all_events, one, other in zip(whole, held_out, trained_on, strict=True):
        for name in ("efficiency", "background"):
            parts = 0.2 * getattr(one, name) + 0.8 * getattr(other, name)
            np.testing.assert_allclose(getattr(all_events, name), parts, rtol=1e-6)
        assert all_events.background.sum() > 0


def test_a_fresh_sample_without_a_mass_of_the_run_is_refused(evaluated):
    run, _, _, _ = evaluated
    folder = run.path.parent
    text = (folder / "datasets.yaml").read_text()
    fewer = folder / "fewer.yaml"
    fewer.write_text(text.replace("[1, 2, 3, 4, 5]", "[1, 2, 3, 4]"))
    assert fewer.read_text() != text
    config = load(fewer)
    with pytest.raises(RunError, match=r"no signal at 5 GeV \(1 of the 5 masses"):
        refuse_missing_masses(run, config)
    fewer.unlink()
