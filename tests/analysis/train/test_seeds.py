"""Networks of several seeds: in each fold their mean before the sigmoid, without those that failed.

The trainings are those of the run with two networks: training j has seed 1 + j whatever it is for.
"""

import json
import shutil
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import uproot

from analysis.apply.command import apply_model
from analysis.apply.plan import Request
from analysis.config.configuration import ConfigError, load
from analysis.evaluate.stage import evaluate_networks, load_failed, load_figures
from analysis.figures.results import feature_space, learning, maps
from analysis.figures.run_results import run_results
from analysis.report.stage import outcome
from analysis.report.summary import summary_of
from analysis.run.executors import Execution
from analysis.run.folder import RunFolder
from analysis.train.outcome import failed_networks, left_out_seeds
from analysis.train.stage import train_networks
from models.evaluation.comparison import PUNZI_SINGLE, of_curve
from models.trained import load_model
from tests.analysis.conftest import QUICK

ONE = Execution(executor="iterative")
FOLDS = (0, 1)


def regrouped(evaluated, folder, *, seeds, networks):
    """A copy of the run whose trainings make other networks, evaluated."""
    run, _, sets, simulated = evaluated
    shutil.copytree(run.path, folder / "run")
    own = RunFolder(folder / "run")
    changes = (*QUICK, f"training.seeds={seeds}", f"training.networks={networks}")
    config = load(run.path.parent / "datasets.yaml", changes)
    return SimpleNamespace(run=own, config=config, simulated=simulated, sets=sets)


def trained_and_evaluated(case):
    train_networks(case.run, case.config, case.simulated, ONE)
    return evaluate_networks(case.run, case.config, case.simulated, workers=1)


def judged(case, training, classifier="punzi"):
    """Output before the sigmoid of one training, by the fold of each event."""
    table = case.simulated.table
    nets = [load_model(case.run.network(classifier, training, k)) for k in FOLDS]
    fold = case.config.settings.folds.of(table.identity)
    return np.choose(fold, [net.logits(table.features) for net in nets]), fold


def model_logits(case, classifier="punzi"):
    table, model = case.simulated.table, load_model(case.run.model(classifier, 0))
    return model.logits(table.features, model.fold_of(table.identity))


def fail(case, training, fold):
    path = case.run.history(training, fold)
    about = json.loads(path.read_text()) | {"status": "failed", "reasons": [f"bad {training}"]}
    path.write_text(json.dumps(about))


@pytest.fixture(scope="module")
def averaged(evaluated, tmp_path_factory):
    """One network of two seeds."""
    case = regrouped(evaluated, tmp_path_factory.mktemp("seeds"), seeds=2, networks=1)
    before = {p: p.stat().st_mtime_ns for p in (case.run.path / "networks").iterdir()}
    trained_and_evaluated(case)
    assert all(p.stat().st_mtime_ns == t for p, t in before.items())  # nothing is trained again
    return case


@pytest.mark.parametrize("classifier", ["punzi", "bce"])
def test_a_network_of_two_seeds_is_their_mean_before_the_sigmoid_in_each_fold(averaged, classifier):
    (one, _), (two, _) = (judged(averaged, j, classifier) for j in (0, 1))
    found = model_logits(averaged, classifier)
    assert np.abs(found - (one + two) / 2).max() < 1e-4
    assert np.abs(found - one).max() > 0.1
    assert not averaged.run.model(classifier, 1).exists()


def test_the_model_says_which_seeds_are_in_it(averaged):
    model = load_model(averaged.run.model("punzi", 0))
    assert model.conditions.training["seeds_of_folds"] == [[1, 2], [1, 2]]
    assert model.conditions.training["left_out_seeds"] == []
    assert model.n_folds == 2


def test_what_is_quoted_is_what_the_model_passes_and_what_apply_writes(averaged, tmp_path):
    (quoted,) = of_curve(load_figures(averaged.run), PUNZI_SINGLE)
    table, model = averaged.simulated.table, load_model(averaged.run.model("punzi", 0))
    keep = model.passes(table.features, model.fold_of(table.identity))
    for k, mass in enumerate(quoted.mass_gev):
        own = (table.signal_mass_gev == mass) & keep
        windows = averaged.simulated.windows
        inside = (windows.low[k] < table.axis) & (table.axis < windows.high[k])
        assert table.weight[own & inside].sum() == pytest.approx(quoted.efficiency[k], rel=1e-9)
    (file,) = {f for ds in averaged.sets for f in ds.files if f.endswith("background_0.root")}
    apply_model(Request((averaged.run.model("punzi", 0),), (file,), tmp_path / "out"), ONE)
    with uproot.open(tmp_path / "out/background_0.friend.root") as opened:
        friend = opened["punzi"].arrays(library="np")
    good = friend["flag"] == 0
    x = np.column_stack([friend[name][good] for name in model.features])
    assert good.sum() > 1000
    assert np.array_equal(friend["score"][good], model.score(x, friend["fold"][good]))


def test_figures_and_report_know_a_mean_of_seeds(averaged):
    results = run_results(averaged.run, averaged.config, averaged.simulated)
    drawn = {d.stem: d for group in (learning, feature_space, maps) for d in group(results)}
    assert {"network", "decision_surface", "loss"} <= drawn.keys()
    assert "Punzi-net 0, first fold, first seed. Red" in drawn["network"].caption
    assert len(drawn["network"].numbers) == 4 * 8 + 8 * 4 + 4  # of one seed
    assert any("network 0, seed 2" in map(str, row.values()) for row in drawn["loss"].numbers)


def test_the_same_trainings_make_other_networks_and_the_evaluation_notices(averaged, evaluated):
    _, config, _, simulated = evaluated
    figures = evaluate_networks(averaged.run, config, simulated, workers=1)
    assert {f.network for f in figures} == {0, 1}
    again = trained_and_evaluated(averaged)
    assert {f.network for f in again} == {0}
    assert not averaged.run.model("punzi", 1).exists()


def test_seeds_count_on_from_network_to_network(evaluated, tmp_path):
    """Two networks of two seeds: the second has the third and fourth."""
    case = regrouped(evaluated, tmp_path, seeds=2, networks=2)
    short = ("training.bce.epochs=1", "training.punzi.epochs=1", "training.punzi.refine=1")
    changes = (*QUICK, *short, "training.seeds=2", "training.networks=2")
    config = load(evaluated[0].path.parent / "datasets.yaml", changes)
    case.config = config
    trained_and_evaluated(case)
    for j, k in product(range(4), FOLDS):
        assert load_model(case.run.network("punzi", j, k)).conditions.training["seed"] == 1 + j
    second = load_model(case.run.model("punzi", 1)).conditions.training
    assert (second["seed"], second["seeds_of_folds"]) == (3, [[3, 4], [3, 4]])


def test_a_seed_that_failed_in_a_fold_is_not_in_the_mean_of_that_fold(evaluated, tmp_path):
    case = regrouped(evaluated, tmp_path, seeds=2, networks=1)
    fail(case, 1, fold=0)
    trained_and_evaluated(case)
    (one, fold), (two, _) = (judged(case, j) for j in (0, 1))
    wanted = np.where(fold == 0, one, (one + two) / 2)
    assert np.abs(model_logits(case) - wanted).max() < 1e-4
    (b_one, _), (b_two, _) = (judged(case, j, "bce") for j in (0, 1))  # its BCE net did not fail
    assert np.abs(model_logits(case, "bce") - (b_one + b_two) / 2).max() < 1e-4
    training = load_model(case.run.model("punzi", 0)).conditions.training
    assert training["seeds_of_folds"] == [[1], [1, 2]]
    assert training["left_out_seeds"] == ["fold 0 (seed 2): bad 1"]
    assert failed_networks(case.run, case.config.settings.training) == {}
    assert load_failed(case.run) == {}
    told = summary_of(outcome(case.run, case.config)).warnings
    assert "Network 0: left out of the mean over seeds: fold 0 (seed 2): bad 1" in told


def test_the_log_of_a_training_names_what_is_left_out(evaluated, tmp_path, caplog):
    case = regrouped(evaluated, tmp_path, seeds=2, networks=1)
    fail(case, 0, fold=1)
    train_networks(case.run, case.config, case.simulated, ONE)
    assert "left out of the mean over seeds: fold 1 (seed 1): bad 0" in caplog.text


def test_a_network_whose_seeds_all_failed_in_a_fold_has_failed(evaluated, tmp_path):
    case = regrouped(evaluated, tmp_path, seeds=2, networks=1)
    for j in (0, 1):
        fail(case, j, fold=1)
    section = case.config.settings.training
    texts = ["fold 1 (seed 1): bad 0", "fold 1 (seed 2): bad 1"]
    assert failed_networks(case.run, section) == {0: texts}
    assert left_out_seeds(case.run, section) == {}
    trained_and_evaluated(case)
    assert load_failed(case.run) == {0: texts}
    (one, _), (two, _) = (judged(case, j) for j in (0, 1))
    assert np.abs(model_logits(case) - (one + two) / 2).max() < 1e-4  # kept, and marked


def test_too_many_seeds_for_one_network_are_refused(evaluated):
    path = evaluated[0].path.parent / "datasets.yaml"
    with pytest.raises(ConfigError, match="at most 4096 neurons in a layer"):
        load(path, ["training.seeds=100", "training.hidden=[41]"])
