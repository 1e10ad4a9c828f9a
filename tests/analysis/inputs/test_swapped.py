"""Exchanged charges are seen where the truth stands beside the momenta."""

import numpy as np
import pytest

from analysis.config.configuration import parse
from analysis.inputs.check import find_mistakes, inspect_all
from analysis.inputs.datasets import datasets
from selection.ntuple import MOMENTA

TEXT = "luminosity_inv_fb: 50\nsamples: {b: {kind: background, weight: weight, files: a.root}}\n"


def findings(folder, more=""):
    config = parse(TEXT + more, where="test")
    sets = datasets(config, folder=folder)
    return {
        f.name: f.text for f in find_mistakes(config, sets, inspect_all(config, sets, workers=1))
    }


@pytest.mark.parametrize("swapped", [True, False])
def test_exchanged_charges_are_refused_where_truth_tells(tmp_path, columns, save, swapped):
    values = columns(600)
    noise = np.random.default_rng(1)
    for name in MOMENTA:
        of = name.replace("plus", "minus") if "plus" in name else name.replace("minus", "plus")
        values[f"true_{name}"] = values[of if swapped else name] + noise.normal(0, 0.01, 600)
    save(tmp_path / "a.root", values)
    found = findings(tmp_path)
    assert ("swapped" in found) is swapped
    if swapped:
        assert "mu_plus and mu_minus in 100 % of the first rows" in found["swapped"]


def test_a_map_that_exchanges_the_charges_is_refused(tmp_path, columns, save):
    """The file is right, the configuration is not."""
    values = columns(600)
    values |= {f"true_{name}": values[name] for name in MOMENTA}
    save(tmp_path / "a.root", values)
    pairs = [(a, b) for a, b in zip(MOMENTA[:4], MOMENTA[4:], strict=True)]
    mapped = ", ".join(f"{a}: {b}, {b}: {a}" for a, b in pairs)
    assert "swapped" in findings(tmp_path, f"columns: {{{mapped}}}\n")
    assert "swapped" not in findings(tmp_path)


def test_without_truth_nothing_is_said(tmp_path, columns, save):
    save(tmp_path / "a.root", columns(600))
    assert "swapped" not in findings(tmp_path)
