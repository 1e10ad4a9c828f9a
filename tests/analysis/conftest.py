"""A small run, trained and evaluated once for all tests of its figures and its report."""

import pytest

QUICK = (
    "training.networks=2",
    "training.punzi.epochs=30",
    "training.bce.epochs=3",
    "plots.signal_masses_gev=[2, 4]",
)


@pytest.fixture(scope="session")
def evaluated(small_inputs, tmp_path_factory):
    """Run, configuration, data sets and events of a run with data; do not change its folder."""
    from analysis.config import load
    from analysis.datasets import datasets
    from analysis.evaluate import evaluate_networks
    from analysis.runs import open_run
    from analysis.select import Execution, select
    from analysis.train import prepare, train

    folder = tmp_path_factory.mktemp("figures")
    for file in small_inputs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "recorded.root").write_bytes((folder / "background_0.root").read_bytes())
    with (folder / "datasets.yaml").open("a") as stream:
        stream.write("  recorded:\n    kind: data\n    files: recorded.root\n")
    config = load(folder / "datasets.yaml", QUICK)
    sets, how = datasets(config, folder=folder), Execution(executor="iterative")
    with open_run(folder / "run") as run:
        ready = prepare(run, config, select(run, config, sets, how))
        train(run, config, ready, how)
        evaluate_networks(run, config, ready, workers=1)
    return run, config, sets, ready


@pytest.fixture(scope="session")
def drawn(evaluated):
    """The PNG files of that run, written by two processes."""
    from analysis.figures import draw_figures

    run, config, _, ready = evaluated
    return draw_figures(run, config, ready, workers=2)
