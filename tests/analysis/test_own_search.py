"""A search of one's own, from ntuples to the friend tree: more features, other particles, photons."""

from pathlib import Path

import numpy as np
import pytest
import uproot

from analysis.apply.command import apply_model
from analysis.apply.model import ApplyError
from analysis.apply.plan import Request
from analysis.config.configuration import load
from analysis.figures.draw import all_drawings
from analysis.figures.run_results import run_results
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.workflow import chain
from models.trained import load_model
from simulation.recipe import Recipe
from simulation.write import write_sample

ONE = Execution(executor="iterative")
QUICK = [
    "training.bce.epochs=6", "training.punzi.epochs=6", "training.punzi.refine=2", "training.bce.learning_rate=0.05",
    "windows.min_events=20", "training.folds=2", "training.bce_equal_budget=false",
]  # fmt: skip
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def evaluated(folder, changes=()):
    """Run folder, configuration and events after the evaluation."""
    config = load(folder / "datasets.yaml", [*QUICK, *changes])
    with open_run(folder / "run") as run:
        inputs = (run, config, datasets(config, folder=folder))
        done = {}
        for stage, left in chain(inputs, ONE):
            done[stage] = left
            if stage == "evaluate":
                break
    return run, config, done["windows"]


def applied(run, files, out):
    apply_model(Request((run.model("punzi", 0),), tuple(map(str, files)), out), ONE)
    found = []
    for file in files:
        with uproot.open(out / f"{Path(file).stem}.friend.root") as opened:
            found.append(opened["punzi"].arrays(library="np"))
    return found


@pytest.fixture
def with_branch(own_inputs):
    """The small inputs with a branch of a person's own in every file."""
    for path in own_inputs.glob("*.root"):
        with uproot.open(path) as file:
            columns = file["variables"].arrays(library="np")
            about = file["metadata"].arrays(library="np") if "metadata" in file else None
        rng = np.random.default_rng(len(columns["weight"]))
        columns["vertex_chi2"] = rng.exponential(1.0, len(columns["weight"])).astype(np.float32)
        with uproot.recreate(path) as file:
            file.mktree("variables", {k: v.dtype for k, v in columns.items()}).extend(columns)
            if about is not None:
                file.mktree("metadata", {k: v.dtype for k, v in about.items()}).extend(about)
    return own_inputs


def test_a_fifth_feature_takes_two_lines(with_branch, tmp_path, columns, save):
    with (with_branch / "datasets.yaml").open("a") as stream:
        stream.write("features:\n  chi2: log(vertex_chi2)\n")
    run, config, simulated = evaluated(with_branch)
    assert config.definition.feature_names[-1] == "chi2"
    assert simulated.table.features.shape[1] == 5
    model = load_model(run.model("punzi", 0))
    assert model.features == config.definition.feature_names
    assert [n.weights[0].shape for n in model.networks] == [(8, 5)] * 2
    file = with_branch / "background_0.root"
    (friend,) = applied(run, [file], tmp_path / "out")
    with uproot.open(file) as opened:
        chi2 = opened["variables"]["vertex_chi2"].array(library="np")
    assert friend["chi2"] == pytest.approx(np.log(chi2.astype(float)), rel=1e-6)
    good = friend["flag"] == 0
    inputs = np.stack([friend[name] for name in model.features], axis=1)
    assert friend["score"][good] == pytest.approx(
        model.score(inputs[good], friend["fold"][good]), abs=1e-7
    )
    without = save(tmp_path / "without.root", columns(100))
    with pytest.raises(ApplyError, match=r"without.root has no branch 'vertex_chi2'"):
        applied(run, [without], tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("names", [["pt_mumu"], ["pt_mumu", "pt_thrust"]], ids=["line", "plane"])
def test_with_one_or_two_features_the_decision_is_a_line_or_a_plane(own_inputs, names):
    off = [f"features.{n}=null" for n in ("pt_thrust", "pt_max_wrt_min", "pl_max_wrt_min", "pt_mumu")
           if n not in names]  # fmt: skip
    run, config, simulated = evaluated(own_inputs, off)
    drawings = {d.stem: d for d in all_drawings(run_results(run, config, simulated))}
    record = drawings["decision_surface"].record
    assert set(record.free) == set(names)
    assert record.score.ndim == len(names)
    assert record.fixed == ()
    model = load_model(run.model("punzi", 0))
    middle = tuple(np.array(record.score.shape) // 2)
    at = [record.grid[i, k] for i, k in enumerate(middle)]
    assert record.score[middle] == pytest.approx(
        model.score(np.array([at]), np.zeros(1, int))[0], abs=1e-6
    )


def test_an_electron_and_a_muon_are_found_by_configuration_alone(own_inputs, tmp_path):
    """examples/emu on our events: one muon is called an electron and gets its mass."""
    text = (EXAMPLES / "emu/datasets.yaml").read_text()
    head = text[: text.index("samples:")]
    own = (own_inputs / "datasets.yaml").read_text()
    own = own[own.index("samples:") :]
    (own_inputs / "datasets.yaml").write_text(head + own)
    (own_inputs / "search.yaml").write_text((EXAMPLES / "emu/search.yaml").read_text())
    run, config, simulated = evaluated(own_inputs)
    assert config.definition.name == "emu_recoil"
    assert simulated.table.features.shape[1] == 5
    peak = np.median(simulated.table.axis[simulated.table.signal_mass_gev == 3])
    assert peak == pytest.approx(9, abs=0.5)
    drawn = {d.stem for d in all_drawings(run_results(run, config, simulated))}
    assert {"sigma_min", "recoil_mass", "features", "decision_surface"} <= drawn


@pytest.mark.slow
def test_photons_and_three_candidates_per_event(tmp_path):
    """examples/alp with small samples: from the simulation to the friend tree."""
    for mass in (2.0, 4.0, 6.0):
        write_sample(Recipe("alp", 1500, 1, mass_gev=mass), tmp_path / f"alp_{mass:g}.root")
    write_sample(Recipe("threegamma", 20_000, 2), tmp_path / "threegamma_0000.root")
    (tmp_path / "search.yaml").write_text((EXAMPLES / "alp/search.yaml").read_text())
    (tmp_path / "datasets.yaml").write_text("""\
luminosity_inv_fb: 0.445
search: search.yaml
candidates: all
samples:
  signal: {kind: signal, files: "alp_{mass}.root", masses_gev: [2, 4, 6], n_generated: 1500}
  threegamma: {kind: background, files: threegamma_0000.root, weight: weight}
""")
    run, config, simulated = evaluated(tmp_path, ["training.networks=1"])
    table, windows = simulated.table, simulated.windows
    assert table.feature_names == config.definition.feature_names
    # widths are those of the right pairs, not of all three candidates
    assert windows.sigma == pytest.approx([0.10, 0.40, 0.80], rel=0.25)
    _, rows = np.unique(table.key[table.is_signal], return_counts=True)
    assert rows.max() == 3
    model = load_model(run.model("punzi", 0))
    assert model.conditions.candidates == "all"
    (friend,) = applied(run, [tmp_path / "alp_4.root"], tmp_path / "out")
    assert (friend["flag"] & 2 == 0).all()  # no candidate is dropped
    assert friend["pass"].any()
    with uproot.open(tmp_path / "alp_4.root") as file:
        right = file["variables"]["is_right_pair"].array(library="np") == 1
    assert np.median(friend["mgg2"][right]) == pytest.approx(16, rel=0.01)
    drawn = {d.stem for d in all_drawings(run_results(run, config, simulated))}
    assert {"sigma_min", "mgg", "mgg2", "widths"} <= drawn
