"""A cut is applied under the conditions it was made for, and says so when they change."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from analysis.apply.model import ApplyError, load_cut, refuse_energy
from analysis.apply.rows import FileRows, score_rows
from analysis.config.configuration import parse
from models.trained import load_model, save_model
from selection.beams import SUPERKEKB, Beams
from tests.dimuon import SEARCH, with_cuts

CONFIG = """\
luminosity_inv_fb: 50
beams: {{electron_energy_gev: {0}, positron_energy_gev: {1}, half_crossing_angle_rad: {2}}}
samples:
  signal: {{kind: signal, files: s.root, masses_gev: [1], n_generated: 10}}
"""


def configured(beams):
    return parse(CONFIG.format(*asdict(beams).values()), where="here")


def test_beams_of_the_same_energy_and_another_direction_are_refused(saved_model):
    """A turn of the beams leaves sqrt(s) nearly alone and moves the recoil all the same."""
    turned = replace(SUPERKEKB, half_crossing_angle_rad=0.0515)
    assert abs(turned.sqrt_s_gev - SUPERKEKB.sqrt_s_gev) < 0.01
    assert turned.total[3] == SUPERKEKB.total[3]
    with pytest.raises(ApplyError, match=r"differ by 110 MeV in momentum; at most 20 MeV"):
        load_cut([saved_model], config=configured(turned), cut=None)


def test_beams_of_the_same_energy_and_another_boost_are_refused(saved_model):
    """E- E+ and with it sqrt(s) are kept: only the momentum tells."""
    boosted = Beams(7.004 * 1.01, 4.002 / 1.01, 0.0415)
    assert boosted.sqrt_s_gev == pytest.approx(SUPERKEKB.sqrt_s_gev, abs=1e-6)
    with pytest.raises(ApplyError, match="MeV in momentum"):
        load_cut([saved_model], config=configured(boosted), cut=None)


def test_small_changes_of_the_beams_are_those_of_the_configuration(saved_model):
    moved = replace(SUPERKEKB, electron_energy_gev=7.010)
    cut = load_cut([saved_model], config=configured(moved), cut=None)
    assert cut.beams == moved
    assert cut.sqrt_s_gev == SUPERKEKB.sqrt_s_gev  # of the training
    assert load_cut([saved_model], config=None, cut=None).beams == SUPERKEKB


@pytest.mark.parametrize(("apart_gev", "refused"), [(0.019, False), (0.021, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_twenty_mev_of_energy_are_the_limit(apart_gev, refused, sign):
    if refused:
        with pytest.raises(ApplyError, match=r"file has sqrt\(s\) = .* more than 20 MeV apart"):
            refuse_energy(10.58 + sign * apart_gev, 10.58, where="file")
    else:
        refuse_energy(10.58 + sign * apart_gev, 10.58, where="file")


def test_an_energy_that_is_no_number_is_refused():
    with pytest.raises(ApplyError, match="trained at"):
        refuse_energy(float("nan"), 10.58, where="file")


def test_whatever_lets_other_entries_pass_has_another_identity(saved_model, tmp_path):
    """Outputs made under another identity are made again."""
    cut = load_cut([saved_model], config=None, cut=None)
    other = tmp_path / "net-01.safetensors"
    model = load_model(saved_model)
    (net,) = model.networks
    moved = replace(net, biases=tuple(b + 1 for b in net.biases))
    save_model(replace(model, networks=(moved,)), other)
    changes = [
        {"cut": 0.51},
        {"beams": replace(cut.beams, electron_energy_gev=7.005)},
        {"models": (replace(cut.models[0], search=with_cuts(pt_mumu="pt_mumu > 1.1")),)},
        {"missing": -999.0},
        {"candidates": "all"},
        {"sha256": load_cut([other], config=None, cut=None).sha256},
    ]
    assert cut.candidates == "unique"
    found = [repr(cut.identity()), *(repr(replace(cut, **c).identity()) for c in changes)]
    assert len(set(found)) == len(found)
    same = replace(cut, files=("elsewhere/net-00.safetensors",))
    assert same.identity() == cut.identity()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_selected_row_whose_weight_is_no_number_stops_the_work(
    saved_model, tmp_path, columns, save, wrong
):
    cut = load_cut([saved_model], config=None, cut=None)
    values = columns(300, mass_gev=2.0)
    names = {n: n for n in (*SEARCH.columns, "weight")}
    names["n_candidates"] = "__ncandidates__"

    def rows(name):
        path = save(tmp_path / name, values)
        return FileRows(str(path), "variables", name, names, 0, 300)

    good = score_rows(cut, rows("good.root"))
    selected = good.branches["flag"] == 0
    assert 0 < selected.sum() < 300
    assert np.array_equal(good.weighted.weight, values["weight"][selected])
    values["weight"][np.flatnonzero(~selected)] = wrong  # nobody asks for these
    again = score_rows(cut, rows("rejected.root"))
    assert np.array_equal(again.weighted.weight, good.weighted.weight)
    values["weight"][np.flatnonzero(selected)[:2]] = wrong
    with pytest.raises(ApplyError, match="weight of 2 selected rows is not a finite number"):
        score_rows(cut, rows("selected.root"))
