"""An event is computed with its own beams, where the ntuple knows them."""

import numpy as np
import pytest

from selection.beams import SUPERKEKB, Beams
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN, MOMENTA
from tests.dimuon import event_kinematics

OTHER = Beams(6.8, 4.1, 0.0415)
KINEMATICS = ("axis", "features", "finite")


@pytest.fixture
def muons(columns):
    found = columns(200, mass_gev=2.0, dtype=np.float64)
    return {name: found[name] for name in MOMENTA}


def with_beams(muons, beams):
    """The momentum of `beams` in the columns of every event."""
    n = len(muons["mu_plus_px"])
    return muons | {c: np.full(n, p) for c, p in zip(BEAM_COLUMNS, beams.total, strict=True)}


def test_beams_in_the_columns_count_and_not_the_configured_ones(muons):
    written = event_kinematics(with_beams(muons, OTHER), SUPERKEKB)
    configured = event_kinematics(muons, OTHER)
    for name in KINEMATICS:
        assert getattr(written, name) == pytest.approx(getattr(configured, name), rel=1e-6)
    plain = event_kinematics(muons, SUPERKEKB)
    assert np.abs(written.axis - plain.axis).min() > 0.01
    for feature in (0, 1, 2):
        assert np.abs(written.features[feature] - plain.features[feature]).max() > 0.01
    # transverse to two null directions: their energies cannot enter
    assert written.features[3] == pytest.approx(plain.features[3], rel=1e-6)
    steep = Beams(half_crossing_angle_rad=0.1)
    turned = event_kinematics(with_beams(muons, steep), steep).features[3]
    assert np.abs(turned - plain.features[3]).max() > 0.01


def test_each_event_has_its_own_beams(muons):
    both = {
        c: np.where(np.arange(200) % 2, b, a)
        for c, a, b in zip(BEAM_COLUMNS, SUPERKEKB.total, OTHER.total, strict=True)
    }
    mixed = event_kinematics(muons | both, SUPERKEKB).axis
    for rows, beams in ((slice(0, None, 2), SUPERKEKB), (slice(1, None, 2), OTHER)):
        alone = event_kinematics(muons, beams).axis
        assert mixed[rows] == pytest.approx(alone[rows], rel=1e-12)


def test_the_energy_of_an_event_scales_the_configured_beams(muons):
    """Same boost, other energy: both beams grow alike."""
    factor = 1.01
    energy = {ECMS_COLUMN: np.full(200, factor * SUPERKEKB.sqrt_s_gev)}
    grown = Beams(factor * SUPERKEKB.electron_energy_gev, factor * SUPERKEKB.positron_energy_gev)
    scaled = event_kinematics(muons | energy, SUPERKEKB)
    assert scaled.axis == pytest.approx(event_kinematics(muons, grown).axis, rel=1e-9)


def test_the_momentum_of_the_beams_is_believed_before_their_energy(muons):
    energy = {ECMS_COLUMN: np.full(200, 9.0)}
    known = event_kinematics(with_beams(muons, OTHER) | energy, SUPERKEKB)
    expected = event_kinematics(with_beams(muons, OTHER), SUPERKEKB)
    assert np.array_equal(known.axis, expected.axis)
    three = {c: v for c, v in with_beams(muons, OTHER).items() if c != "beam_e"}
    unusable = event_kinematics(three, SUPERKEKB)
    assert np.array_equal(unusable.axis, event_kinematics(muons, SUPERKEKB).axis)


def test_an_event_without_its_beams_is_not_valid(muons):
    columns = with_beams(muons, SUPERKEKB)
    columns["beam_pz"][5] = np.nan
    assert np.flatnonzero(~event_kinematics(columns, SUPERKEKB).finite).tolist() == [5]
