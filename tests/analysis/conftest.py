"""A small run, trained and evaluated once for all tests of its figures and its report."""

import pytest

QUICK = (
    "training.networks=2",
    "training.folds=2",
    "training.bce_equal_budget=false",
    "training.punzi.epochs=150",
    "training.punzi.refine=30",
    "training.bce.epochs=60",
    "plots.signal_masses_gev=[2, 4]",
    "limit.unblind=true",
    "limit.toys=2000",
)


@pytest.fixture(scope="session")
def evaluated(small_inputs, tmp_path_factory):
    """Run, configuration, data sets and events of a run with data; do not change its folder."""
    from analysis.config.configuration import load
    from analysis.evaluate.stage import evaluate_networks
    from analysis.inputs.datasets import datasets
    from analysis.limit.stage import find_limits
    from analysis.run.executors import Execution
    from analysis.run.folder import open_run
    from analysis.select.stage import select_events
    from analysis.train.stage import simulated_events, train_networks
    from models.trained import load_model

    folder = tmp_path_factory.mktemp("figures")
    for file in small_inputs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "recorded.root").write_bytes((folder / "background_0.root").read_bytes())
    with (folder / "datasets.yaml").open("a") as stream:
        stream.write("  recorded:\n    kind: data\n    files: recorded.root\n")
        stream.write("    luminosity_inv_fb: 25\naccept: [same_file, same_events]\n")
    config = load(folder / "datasets.yaml", QUICK)
    sets, execution = datasets(config, folder=folder), Execution(executor="iterative")
    with open_run(folder / "run") as run:
        simulated = simulated_events(run, config, select_events(run, config, sets, execution))
        train_networks(run, config, simulated, execution)
        evaluate_networks(run, config, simulated, workers=1)
        find_limits(run, config, simulated, sets)
    model = load_model(run.model("punzi", 0))
    score = model.score(simulated.table.features, model.fold_of(simulated.table.identity))
    assert 0.1 < (score >= 0.5).mean() < 0.9  # else nothing "after the cut" could be tested
    return run, config, sets, simulated


@pytest.fixture(scope="session")
def drawn(evaluated):
    """The PNG files of that run, written by two processes."""
    from analysis.figures.draw import draw_figures

    run, config, _, simulated = evaluated
    return draw_figures(run, config, simulated, workers=2)
