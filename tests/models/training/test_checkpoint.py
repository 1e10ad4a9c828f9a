"""A checkpoint gives back, to the bit, all that was put into it."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

from models.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from models.training.schedule import Plateau

THIRD = 1 / 3  # not a float32
SENT = Checkpoint(
    fingerprint="abc",
    stage=1,
    epoch=7,
    plateau=Plateau(THIRD, 4, 2),
    network={"layers.0.weight": torch.tensor([[1.0, 2.0]]), "feature_min": torch.zeros(4)},
    after={"bce/layers.0.weight": torch.tensor([[3.0, 4.0]])},
    optimizer={"0.exp_avg": torch.tensor([5.0]), "0.step": torch.tensor(6.0)},
    history=torch.tensor([[0, 0, THIRD, THIRD, float("nan")]], dtype=torch.float64),
    left_out=torch.tensor([0, 3], dtype=torch.int64),
)


def same(one, two):
    return one.dtype == two.dtype and torch.equal(one.nan_to_num(-1), two.nan_to_num(-1))


def test_everything_comes_back(tmp_path):
    save_checkpoint(SENT, tmp_path / "c")
    back = load_checkpoint(tmp_path / "c", "abc")
    assert (back.fingerprint, back.stage, back.epoch) == ("abc", 1, 7)
    assert back.plateau == SENT.plateau
    for part in ("network", "after", "optimizer"):
        sent, found = getattr(SENT, part), getattr(back, part)
        assert sent.keys() == found.keys()
        assert all(same(sent[name], found[name]) for name in sent)
    assert same(back.history, SENT.history)
    assert same(back.left_out, SENT.left_out)


def test_a_memory_that_has_seen_no_loss_comes_back(tmp_path):
    save_checkpoint(replace(SENT, plateau=Plateau()), tmp_path / "c")
    assert load_checkpoint(tmp_path / "c", "abc").plateau == Plateau()


@pytest.mark.parametrize("fingerprint", ["abd", ""])
def test_of_another_training_nothing_comes_back(tmp_path, fingerprint):
    save_checkpoint(SENT, tmp_path / "c")
    assert load_checkpoint(tmp_path / "c", fingerprint) is None
    assert load_checkpoint(tmp_path / "none", "abc") is None


@pytest.mark.parametrize(
    "damage",
    [
        {"position": "[1, 7"},
        {"position": json.dumps([1, 7, 9])},
        {"position": "null"},
        {"position": json.dumps(["one", 7])},
        {"format": "punzi-checkpoint-1"},
    ],
    ids=str,
)
def test_a_header_that_makes_no_sense_is_passed_over_with_a_word(tmp_path, caplog, damage):
    """The file is whole and says that it is ours: only its content is wrong."""
    save_checkpoint(SENT, tmp_path / "c")
    with safe_open(tmp_path / "c", framework="pt") as file:
        header = file.metadata() | damage
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    (tmp_path / "c").write_bytes(save(tensors, header))
    assert load_checkpoint(tmp_path / "c", "abc") is None
    assert "begun anew" in caplog.text


def test_a_checkpoint_without_its_memory_is_passed_over(tmp_path):
    save_checkpoint(SENT, tmp_path / "c")
    with safe_open(tmp_path / "c", framework="pt") as file:
        header = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for tensor in (None, torch.zeros(2)):
        changed = {n: t for n, t in tensors.items() if n != "plateau"}
        changed |= {} if tensor is None else {"plateau": tensor}
        (tmp_path / "c").write_bytes(save(changed, header))
        assert load_checkpoint(tmp_path / "c", "abc") is None
