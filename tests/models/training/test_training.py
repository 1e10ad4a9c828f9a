"""Laws of training: it resumes to the bit, says what goes wrong, and reports honest losses."""

import copy
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training import loop
from models.training.bce_epoch import bce_weights, eager_bce_losses
from models.training.checkpoint import load_checkpoint
from models.training.checks import failures
from models.training.deal import random_order
from models.training.group_sums import group_sums
from models.training.loop import TrainingDiverged, train_network
from models.training.losses import LOSSES, Loss, bce_loss, punzi_loss
from models.training.settings import (
    AUTHORS,
    CHOICES,
    DEFAULT,
    PAPER,
    PRESETS,
    Stage,
    TrainingSettings,
)
from models.training.training_set import training_sets
from selection.table import Folds

FORMULA = PunziFormula(luminosity_inv_fb=50.0)
BCE = replace(PAPER.stages[0], epochs=4, batch_size=256, learning_rate=0.3)
BY_BATCHES = {"schedule": "plateau", "plateau_on": "epoch_mean", "patience": 0}
MONO = replace(DEFAULT.stages[1], epochs=6, schedule="cosine", refine=0)
STRATIFIED = Stage(name="strata", loss="punzi", epochs=4, learning_rate=0.01, batch_size=800)
RANDOM = replace(STRATIFIED, name="random", batching="random", optimizer="sgd", schedule="plateau")
SHORT = TrainingSettings(
    stages=(replace(BCE, **BY_BATCHES), MONO, STRATIFIED, replace(RANDOM, **BY_BATCHES))
)


class Killed(Exception):  # noqa: N818
    pass


def same_bits(first, second):
    weights = list(first.after) == list(second.after) and all(
        torch.equal(a, b)
        for one, two in zip(first.after.values(), second.after.values(), strict=True)
        for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    )
    history = all(
        np.array_equal(getattr(first.history, name), getattr(second.history, name), equal_nan=True)
        for name in vars(first.history)
    )
    return weights and history and first.notes == second.notes


@pytest.fixture(scope="module")
def uninterrupted(toy_sets):
    return train_network(*toy_sets(), SHORT, seed=3)


@pytest.mark.parametrize("deaths", [(1,), (5, 3), (9,), (12, 5), (17,)])
def test_a_killed_training_resumes_and_ends_with_the_same_bits(
    toy_sets, uninterrupted, tmp_path, monkeypatch, deaths
):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "checkpoint.safetensors"
    for death in deaths:
        epochs = iter(range(death))

        def die(_, epochs=epochs):
            if next(epochs, None) is None:
                raise Killed

        with pytest.raises(Killed):
            train_network(*toy_sets(), SHORT, seed=3, checkpoint=path, progress=die)
        assert path.exists()
    resumed = train_network(*toy_sets(), SHORT, seed=3, checkpoint=path)
    assert same_bits(resumed, uninterrupted)


@pytest.mark.parametrize("sums_by", ["auto", "torch"])
def test_the_plateau_rule_by_batches_looks_at_the_mean_of_an_epoch_as_its_batches_were_met(
    toy_sets, sums_by
):
    """The same training written out: a rate too high, halved where the mean has no new best."""
    data, validation = toy_sets()
    stage = replace(BCE, epochs=12, learning_rate=8.0, **BY_BATCHES)
    result = train_network(
        data, validation, TrainingSettings(stages=(stage,)), seed=3, sums_by=sums_by
    )
    network = PunziNet(data.features.min(axis=1), data.features.max(axis=1), seed=3)
    weight, rate, best, rates = bce_weights(data), 8.0, math.inf, []
    for epoch in range(12):
        rates.append(rate)
        optimizer, losses = torch.optim.SGD(network.parameters(), lr=rate), []
        order = random_order(len(data), (3, 0, epoch))
        for loss in eager_bce_losses(network, data, weight, order, batch_size=256):
            losses.append(float(loss.detach()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = np.mean(losses)
        rate, best = (rate, mean) if mean < best * (1 - 1e-4) else (rate / 2, best)
    assert len(set(rates)) > 2
    assert result.history.learning_rate.tolist() == [*rates, 0.0]
    looking_at_all = train_network(
        data,
        validation,
        TrainingSettings(stages=(replace(stage, plateau_on="all_events"),)),
        seed=3,
    )
    assert looking_at_all.history.learning_rate.tolist() != [*rates, 0.0]


def test_a_stage_by_steps_is_one_of_so_many_epochs(toy_sets):
    sets = toy_sets()
    n = BCE.batches(len(sets[0]))
    assert n > 3
    by_steps = train_network(
        *sets, TrainingSettings(stages=(replace(BCE, epochs=0, steps=2 * n + 1),)), seed=3
    )
    by_epochs = train_network(*sets, TrainingSettings(stages=(replace(BCE, epochs=3),)), seed=3)
    assert same_bits(by_steps, by_epochs)
    assert by_steps.settings.stages[0].epochs == 3


VICTIM = """
import sys
from pathlib import Path
import numpy as np
from models.training import loop
from models.training.settings import Stage, TrainingSettings
from models.training.training_set import TrainingSet

n = 20_000
features = np.random.default_rng(1).normal(size=(4, n)).astype(np.float32)
features[3, : n // 10] += 2
data = TrainingSet(
    features, np.full(n, 0.1, np.float32), np.array([0, n // 10, n]), np.ones((1, 1)),
    np.array([1.0]), 50.0,
)
settings = TrainingSettings((Stage("bce", "bce", 5, 0.1), Stage("punzi", "punzi", 300, 0.01)))
loop.CHECKPOINT_SECONDS = 0.0


def run(path, progress=None):
    return loop.train_network(data, data, settings, seed=1, checkpoint=path, progress=progress)
"""


def test_a_process_killed_outright_resumes_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "checkpoint.safetensors"
    begin = "run(Path(sys.argv[1]), lambda p: print(p.stage, p.epoch, flush=True))"
    root = Path(loop.__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", f"{VICTIM}\n{begin}", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    ) as victim:
        for line in victim.stdout:
            if line == "punzi 120\n":
                break
        victim.send_signal(signal.SIGKILL)
    assert victim.returncode == -signal.SIGKILL
    scope = {}
    exec(VICTIM, scope)  # noqa: S102  (the same lines as the victim's)
    first = []
    resumed = scope["run"](path, first.append)
    assert first[0].stage == "punzi"  # it went on, and did not begin anew
    assert first[0].epoch > 100
    assert same_bits(resumed, scope["run"](None))


def test_a_process_that_compiles_gives_the_bits_of_one_that_reads_the_cache(tmp_path):
    hashed = (
        "import hashlib\nnetwork = run(None).final\n"
        "flat = b''.join(p.detach().numpy().tobytes() for p in network.parameters())\n"
        "print(hashlib.sha256(flat).hexdigest())"
    )
    one_stage = VICTIM.replace(
        'Stage("bce", "bce", 5, 0.1), Stage("punzi", "punzi", 300, 0.01)',
        'Stage("punzi", "punzi", 300, 0.01),',
    )
    assert one_stage != VICTIM
    command = [sys.executable, "-c", f"{one_stage}\n{hashed}"]
    cold, warm = (
        subprocess.run(
            command,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            cwd=Path(loop.__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for _ in range(2)
    )
    assert len(cold) == 65
    assert cold == warm


def test_threads_do_not_change_a_bit(toy_sets, uninterrupted):
    assert same_bits(train_network(*toy_sets(), SHORT, seed=3, threads=2), uninterrupted)


def test_seeds_make_different_networks(toy_sets, uninterrupted):
    other = train_network(*toy_sets(), SHORT, seed=4)
    assert not same_bits(other, uninterrupted)


@pytest.mark.parametrize("damage", ["truncated", "pickle", "empty"])
def test_a_damaged_checkpoint_is_passed_over(toy_sets, tmp_path, monkeypatch, damage, caplog):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "checkpoint.safetensors"
    short = TrainingSettings(stages=(replace(MONO, epochs=2),))
    whole = train_network(*toy_sets(), short, seed=1, checkpoint=path)
    content = path.read_bytes()
    path.write_bytes(
        {"truncated": content[:200], "pickle": b"\x80\x04K\x01.", "empty": b""}[damage]
    )
    again = train_network(*toy_sets(), short, seed=1, checkpoint=path)
    assert "begun anew" in caplog.text
    assert torch.equal(next(whole.final.parameters()), next(again.final.parameters()))


def test_a_checkpoint_of_other_settings_is_not_continued(toy_sets, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "checkpoint.safetensors"
    first = TrainingSettings(stages=(replace(MONO, epochs=2),))
    train_network(*toy_sets(), first, seed=1, checkpoint=path)
    other = replace(first, a=5.0)
    resumed = train_network(*toy_sets(), other, seed=1, checkpoint=path)
    assert "another training" in caplog.text
    fresh = train_network(*toy_sets(), other, seed=1)
    assert torch.equal(next(fresh.final.parameters()), next(resumed.final.parameters()))
    assert load_checkpoint(path, "something else") is None


def test_history_holds_mono_batch_losses_of_both_parts_whatever_the_batches(
    toy_sets, uninterrupted
):
    data, validation = toy_sets()
    history = uninterrupted.history
    assert np.array_equal(np.bincount(history.stage), [5, 7, 5, 5])  # one row more than epochs
    for part, column in ((data, "train_loss"), (validation, "validation_loss")):
        with torch.no_grad():
            after_bce = group_sums(uninterrupted.after["bce"], part.whole, quantity="bce")
            bce = bce_loss().of(after_bce, part)
            sums = group_sums(uninterrupted.final, part.whole)
            punzi = punzi_loss(FORMULA, power=uninterrupted.settings.power).of(sums, part)
        assert getattr(history.of_stage(0), column)[-1] == pytest.approx(float(bce), rel=1e-9)
        assert getattr(history, column)[-1] == pytest.approx(float(punzi), rel=1e-9)
    # a stage ends with the network the next one begins with
    ends, begins = (getattr(history.of_stage(s), "train_loss") for s in (1, 2))  # noqa: B009
    assert ends[-1] == begins[0]
    assert history.learning_rate[-1] == 0


@pytest.mark.parametrize("stage", [BCE, MONO, STRATIFIED, RANDOM], ids=lambda s: s.name)
def test_fused_and_torch_forms_train_the_same_network(toy_sets, stage):
    settings = TrainingSettings(stages=(replace(stage, epochs=2),))
    fused, plain = (
        train_network(*toy_sets(), settings, seed=2, sums_by=by) for by in ("auto", "torch")
    )
    assert np.allclose(fused.history.train_loss, plain.history.train_loss, rtol=1e-4)


def test_other_architectures_train(toy_sets):
    settings = replace(SHORT, stages=(replace(BCE, epochs=1), replace(MONO, epochs=2)), hidden=(6,))
    assert train_network(*toy_sets(), settings, seed=1).final.hidden == (6,)


def test_the_network_is_kept_as_each_stage_left_it(toy_sets, uninterrupted):
    data, _ = toy_sets()
    assert list(uninterrupted.after) == ["bce", "punzi", "strata", "random"]
    assert uninterrupted.final is uninterrupted.after["random"]
    loss = punzi_loss(FORMULA, power=uninterrupted.settings.power)
    for stage, name in enumerate(("punzi", "strata", "random"), start=1):
        with torch.no_grad():
            value = loss.of(group_sums(uninterrupted.after[name], data.whole), data)
        last = uninterrupted.history.of_stage(stage).train_loss[-1]
        assert last == pytest.approx(float(value), rel=1e-9)


@pytest.fixture
def contrary(monkeypatch):
    """A third loss in the list: it wants scores of signal down and of background up."""

    def slopes(sums, data):
        weight, n = data.group_weight, data.n_masses
        is_signal = np.arange(data.n_groups) < n
        by_sums = np.where(is_signal, 1 / weight[:n].sum(), -1 / weight[n:].sum())
        return float(by_sums @ sums), by_sums

    loss = Loss("contrary", "score", "contrary", slopes)
    monkeypatch.setitem(CHOICES, "loss", (*CHOICES["loss"], "contrary"))
    monkeypatch.setitem(LOSSES, "contrary", lambda _settings, _luminosity: loss)
    return loss


WAYS = {
    "one batch, adam": replace(MONO, epochs=20, learning_rate=0.05),
    "one batch, sgd": replace(MONO, epochs=20, optimizer="sgd", learning_rate=2.0),
    "stratified, adam": replace(STRATIFIED, epochs=10),
    "stratified, sgd": replace(STRATIFIED, epochs=20, optimizer="sgd", learning_rate=1.0),
    "random, sgd": replace(RANDOM, epochs=10, learning_rate=0.5),
}


@pytest.mark.parametrize("by", ["auto", "torch"])
@pytest.mark.parametrize("way", WAYS)
def test_a_third_loss_of_the_scores_is_what_is_trained(toy_sets, contrary, way, by):
    """Whatever the way through the batches; Punzi-loss and BCE do not lower this one."""
    data, validation = toy_sets()
    settings = TrainingSettings(stages=(replace(WAYS[way], loss="contrary"),))
    result = train_network(data, validation, settings, seed=1, sums_by=by)
    history = result.history.train_loss
    assert history[-1] < history[0] - 0.01
    with torch.no_grad():
        sums = group_sums(result.final, data.whole).numpy()
    assert history[-1] == pytest.approx(contrary.slopes(sums, data)[0], rel=1e-4)
    share = sums / data.group_weight
    assert share[: data.n_masses].mean() < share[data.n_masses :].mean()


@pytest.mark.parametrize("by", ["auto", "torch"])
def test_the_step_of_a_third_loss_is_that_of_its_slopes(toy_sets, contrary, by):
    data, validation = toy_sets()
    rate = 0.7
    stage = Stage("one", "contrary", 1, rate, optimizer="sgd", schedule="constant")
    before, after = (
        train_network(
            data, validation, TrainingSettings((replace(stage, epochs=n),)), seed=1, sums_by=by
        ).final
        for n in (0, 1)
    )
    by_hand = copy.deepcopy(before).double()
    sums = group_sums(by_hand, data.whole, by="torch")
    sums.backward(torch.from_numpy(contrary.slopes(sums.detach().numpy(), data)[1]))
    for stepped, start, hand in zip(
        *(n.parameters() for n in (after, before, by_hand)), strict=True
    ):
        assert torch.allclose(stepped.double(), start.double() - rate * hand.grad, atol=1e-6)
        assert not torch.equal(stepped, start)


def test_training_lowers_the_loss_and_the_good_network_is_ok(toy_sets):
    stages = (replace(BCE, epochs=30), replace(MONO, epochs=150, learning_rate=0.05))
    result = train_network(*toy_sets(), TrainingSettings(stages), seed=1)
    assert result.status == "ok"
    assert result.reasons == ()
    punzi = result.history.of_stage(1).train_loss
    assert punzi[-1] < punzi[0] - 0.1


def test_a_network_that_accepts_all_is_reported_as_failed(toy_sets, caplog):
    settings = TrainingSettings(stages=(replace(MONO, epochs=1, learning_rate=1e-6),))
    result = train_network(*toy_sets(), settings, seed=1)
    assert result.status == "failed"
    assert any("of accepting every event" in reason for reason in result.reasons)
    assert "failed" in caplog.text


def test_a_network_that_rejects_all_is_blind_at_every_mass(toy_sets):
    data, _ = toy_sets()
    untrained = TrainingSettings(stages=(replace(MONO, epochs=0),))
    network = train_network(*toy_sets(), untrained, seed=1).final
    with torch.no_grad():
        network.layers[-1].bias.fill_(-50.0)
    reasons = failures(network, data, FORMULA, geometric=True)
    assert any("rejects all" in reason for reason in reasons)
    assert any("0.5, 1, 1.5, 2, 2.2, 3 GeV" in reason for reason in reasons)


def test_divergence_names_stage_epoch_rate_and_masses(toy_sets):
    wild = replace(BCE, learning_rate=1e38)
    with pytest.raises(TrainingDiverged, match=r"'bce' of seed 1.*epoch 0 .*1e\+38.*all masses"):
        train_network(*toy_sets(), TrainingSettings(stages=(wild,)), seed=1)


def test_a_mass_without_events_is_noted_and_changes_nothing_for_the_others(toy_table, toy_sets):
    table = toy_table()
    poor = table.take(table.signal_mass_gev != 1.5)
    settings = TrainingSettings(stages=(replace(MONO, epochs=3),))
    result = train_network(*toy_sets(poor), settings, seed=1)
    assert result.notes == ("no training signal at 1.5 GeV: left out",)
    assert np.isfinite(result.history.train_loss).all()


def test_masses_missing_in_batches_are_left_out_of_them_and_said(toy_sets):
    sets = toy_sets(n_signal=8)
    stage = replace(RANDOM, batch_size=300, epochs=1, learning_rate=1e-6)
    result = train_network(*sets, TrainingSettings(stages=(stage,)), seed=1)
    assert any("batches: left out of them" in note for note in result.notes)


def test_hypothesis_weights_must_match_the_masses(toy_sets):
    with pytest.raises(ValueError, match="2 hypothesis_weights for 6 trained masses"):
        train_network(*toy_sets(), replace(SHORT, hypothesis_weights=(1.0, 2.0)), seed=1)
    stages = (replace(MONO, epochs=1),)
    flat, steep = (
        train_network(*toy_sets(), TrainingSettings(stages, hypothesis_weights=w), seed=1)
        for w in ((2.0,) * 6, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    )
    equal = train_network(*toy_sets(), TrainingSettings(stages), seed=1)
    assert flat.history.train_loss == pytest.approx(equal.history.train_loss, rel=1e-12)
    assert steep.history.train_loss[0] != equal.history.train_loss[0]


def test_without_validation_events_the_validation_loss_is_missing(toy_table, toy_windows):
    sets = training_sets(toy_table(), toy_windows, luminosity_inv_fb=50.0, folds=Folds(1, 0.0))
    result = train_network(*sets, TrainingSettings(stages=(replace(MONO, epochs=1),)), seed=1)
    assert np.isnan(result.history.validation_loss).all()


def test_the_loss_of_judged_events_is_known_at_every_tenth_epoch_and_the_last(toy_sets):
    stage = replace(MONO, epochs=24)
    history = train_network(*toy_sets(), TrainingSettings((stage,)), seed=1).history
    known = history.epoch[np.isfinite(history.validation_loss)]
    assert known.tolist() == [0, 10, 20, 24]


def test_progress_tells_epoch_loss_and_time_left(toy_sets):
    seen = []
    stages = (replace(BCE, epochs=2), replace(MONO, epochs=3))
    train_network(*toy_sets(), TrainingSettings(stages), seed=9, progress=seen.append)
    assert [(p.stage, p.epoch, p.epochs) for p in seen] == [
        ("bce", 1, 2),
        ("bce", 2, 2),
        ("punzi", 1, 3),
        ("punzi", 2, 3),
        ("punzi", 3, 3),
    ]
    assert seen[-1].seconds_left == 0
    assert all(p.epochs_per_second > 0 and np.isfinite(p.train_loss) for p in seen)


def test_presets_are_the_published_numbers():
    assert set(PRESETS) == {"default", "paper", "authors"}
    bce, punzi = PAPER.stages
    assert (bce.optimizer, bce.batch_size, bce.learning_rate, bce.epochs) == ("sgd", 2048, 1.0, 200)
    assert (bce.schedule, bce.patience, bce.factor) == ("plateau", 10, 0.5)
    assert (punzi.batch_size, punzi.learning_rate, punzi.epochs) == (100_000, 1e-4, 1000)
    assert (punzi.optimizer, punzi.batching, PAPER.log_loss) == ("sgd", "random", False)
    punzi = AUTHORS.stages[1]
    assert (punzi.batch_size, punzi.learning_rate, punzi.epochs) == (None, 0.05, 500)
    assert all(s.hidden == (8, 4) and s.a == 3 for s in PRESETS.values())


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "mse"},
        {"optimizer": "lbfgs"},
        {"learning_rate": 0.0},
        {"epochs": -1},
        {"factor": 1.5},
    ],
)
def test_senseless_stages_are_refused(change):
    with pytest.raises(ValueError, match="stage 'punzi'"):
        replace(MONO, **change)


def test_senseless_settings_are_refused():
    with pytest.raises(ValueError, match="different names"):
        TrainingSettings(stages=(MONO, MONO))
    with pytest.raises(ValueError, match="must not be negative"):
        TrainingSettings(stages=(MONO,), hypothesis_weights=(-1.0, 2.0))


REFINED = TrainingSettings(stages=(replace(MONO, epochs=30, refine=40),))


@pytest.mark.parametrize("by", ["fused", "torch"])
def test_refining_lowers_the_loss_of_all_events_at_every_iteration(toy_sets, by):
    result = train_network(*toy_sets(), REFINED, seed=1, sums_by=by)
    history = result.history
    assert history.epoch.tolist() == list(range(len(history)))
    assert 31 < len(history) <= 71
    assert (np.diff(history.train_loss[30:]) <= 0).all()
    assert history.train_loss[-1] < history.train_loss[30] - 1e-3
    data, validation = toy_sets()
    for part, column in ((data, history.train_loss), (validation, history.validation_loss)):
        with torch.no_grad():
            sums = group_sums(result.final, part.whole, by=by)
            loss = punzi_loss(FORMULA, power=REFINED.power).of(sums, part)
        assert column[-1] == pytest.approx(float(loss), rel=1e-6)


def test_refining_ends_lower_than_as_many_further_epochs(toy_sets):
    refined = train_network(*toy_sets(), REFINED, seed=1).history.train_loss[-1]
    longer = TrainingSettings(stages=(replace(MONO, epochs=75),))
    assert refined < train_network(*toy_sets(), longer, seed=1).history.train_loss[-1]


@pytest.mark.parametrize("death", [12, 31, 45])
def test_a_training_killed_while_it_is_refined_ends_with_the_same_bits(
    toy_sets, tmp_path, monkeypatch, death
):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    def die(state):
        if state.epoch == death:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train_network(*toy_sets(), REFINED, seed=1, checkpoint=path, progress=die)
    steps = []
    resumed = train_network(*toy_sets(), REFINED, seed=1, checkpoint=path, progress=steps.append)
    assert steps[0].epoch >= min(death, 31)  # it went on
    assert same_bits(resumed, train_network(*toy_sets(), REFINED, seed=1, threads=2))


def test_progress_counts_every_epoch_and_iteration_once(toy_sets):
    steps = []
    settings = TrainingSettings(
        (replace(MONO, epochs=3, refine=4), replace(MONO, name="b", epochs=2))
    )
    train_network(
        *toy_sets(), settings, seed=1, progress=lambda p: steps.append((p.stage, p.epoch))
    )
    assert len(steps) == len(set(steps)) == sum(stage.rows for stage in settings.stages)
