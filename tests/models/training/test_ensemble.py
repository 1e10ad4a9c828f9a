"""Laws of ensembles: a network does not know its neighbours."""

from dataclasses import replace

import pytest
import torch

from models.training import loop
from models.training.ensemble import Member, checkpoint_path, train_ensemble
from models.training.loop import TrainingDiverged, train_network
from models.training.settings import DEFAULT, TrainingSettings

BCE, PUNZI = DEFAULT.stages
SETTINGS = TrainingSettings(
    stages=(replace(BCE, epochs=2, batch_size=256), replace(PUNZI, epochs=5, refine=3))
)


def seeds(*numbers):
    return [Member(seed) for seed in numbers]


def weights(result):
    return torch.nn.utils.parameters_to_vector(result.final.parameters())


def test_networks_are_those_trained_alone_for_any_number_of_workers(toy_sets):
    sets = toy_sets()
    alone = [train_network(*sets, SETTINGS, seed=seed) for seed in (5, 1, 3)]
    for workers in (1, 2, 8):
        together = train_ensemble([sets], SETTINGS, members=seeds(5, 1, 3), workers=workers)
        assert [r.seed for r in together] == [5, 1, 3]
        assert all(
            torch.equal(weights(a), weights(b)) for a, b in zip(alone, together, strict=True)
        )


def test_each_network_is_handed_over_as_it_finishes_and_its_checkpoint_removed(
    toy_sets, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    there = []

    def finished(member, result):
        assert member.seed == result.seed
        there.append((result.seed, checkpoint_path(tmp_path, member).exists()))

    train_ensemble(
        [toy_sets()], SETTINGS, members=seeds(1, 2), workers=1, finished=finished,
        checkpoints=tmp_path,
    )  # fmt: skip
    assert there == [(1, True), (2, True)]
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_ensemble_keeps_checkpoints_and_continues_to_the_same_networks(
    toy_sets, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    sets, saved = [toy_sets()], []

    def interrupt(member, state):
        assert member.seed == state.seed
        if state.seed == 2 and state.stage == "punzi" and state.epoch == 3:
            raise KeyboardInterrupt

    options = {"workers": 1, "checkpoints": tmp_path, "finished": lambda _, r: saved.append(r)}
    with pytest.raises(KeyboardInterrupt):
        train_ensemble(sets, SETTINGS, members=seeds(1, 2, 3), progress=interrupt, **options)
    assert [r.seed for r in saved] == [1]
    assert checkpoint_path(tmp_path, Member(2)).exists()
    train_ensemble(sets, SETTINGS, members=seeds(2, 3), **options)
    whole = train_ensemble(sets, SETTINGS, members=seeds(1, 2, 3))
    assert all(torch.equal(weights(a), weights(b)) for a, b in zip(saved, whole, strict=True))


def test_one_diverging_network_is_raised_after_the_others_are_safe(toy_sets, monkeypatch):
    def fragile(data, validation, settings, *, seed, **options):
        if seed == 1:
            msg = "loss is nan"
            raise TrainingDiverged(msg)
        return train_network(data, validation, settings, seed=seed, **options)

    monkeypatch.setattr("models.training.ensemble.train_network", fragile)
    saved = []
    with pytest.raises(TrainingDiverged, match="loss is nan"):
        train_ensemble(
            [toy_sets()], SETTINGS, members=seeds(1, 2), finished=lambda _, r: saved.append(r)
        )
    assert [r.seed for r in saved] == [2]


@pytest.mark.parametrize(
    ("networks", "workers", "threads"),
    [(5, 2, [1, 1, 1, 1, 2]), (2, 4, [2, 2]), (4, 2, [1] * 4), (5, 3, [1] * 5), (1, 2, [2])],
)
def test_no_worker_is_idle_while_the_last_networks_train(
    toy_sets, monkeypatch, networks, workers, threads
):
    used = {}

    def counted(*sets, seed, threads, **options):
        used[seed] = threads
        return train_network(*sets, seed=seed, threads=threads, **options)

    monkeypatch.setattr("models.training.ensemble.train_network", counted)
    quick = TrainingSettings(tuple(replace(stage, epochs=1) for stage in SETTINGS.stages))
    members = seeds(*range(networks))
    train_ensemble([toy_sets()], quick, members=members, workers=workers)
    assert [used[m.seed] for m in members] == threads


def test_two_networks_cannot_have_the_same_seed(toy_sets):
    with pytest.raises(ValueError, match="own seed"):
        train_ensemble([toy_sets()], SETTINGS, members=seeds(1, 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # distributed warns about its own clean-up
def test_a_dask_cluster_trains_the_same_networks(toy_sets):
    distributed = pytest.importorskip("distributed")
    sets, saved = [toy_sets()], []
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        over_dask = train_ensemble(
            sets, SETTINGS, members=seeds(1, 2), client=client,
            finished=lambda _, r: saved.append(r),
        )  # fmt: skip
    here = train_ensemble(sets, SETTINGS, members=seeds(1, 2))
    assert sorted(r.seed for r in saved) == [1, 2]
    assert all(torch.equal(weights(a), weights(b)) for a, b in zip(over_dask, here, strict=True))
