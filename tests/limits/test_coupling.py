"""From cross sections to couplings."""

import numpy as np
import pytest

from limits.coupling import branching_ratio, coupling, interpolated_cross_section


def test_the_coupling_goes_as_the_root_of_the_cross_section():
    g = coupling(np.array([4.0, 16.0]), np.array([100.0, 100.0]), reference=0.1)
    assert g == pytest.approx([0.02, 0.04])
    # and gives the cross section back
    assert (g / 0.1) ** 2 * 100 == pytest.approx([4, 16])


def test_below_the_muon_threshold_all_decays_of_lmu_ltau_are_invisible_and_far_above_a_third():
    ratio = branching_ratio(np.array([0.2, 3.0, 500.0]), "lmu_ltau")
    assert ratio[0] == 1
    assert ratio[1] == pytest.approx(0.5, rel=0.01)  # muons, but no taus
    assert ratio[2] == pytest.approx(1 / 3, rel=1e-3)
    assert np.all(branching_ratio(np.array([0.2, 3.0]), "invisible") == 1)
    with pytest.raises(ValueError, match="lmu_ltau"):
        branching_ratio(np.array([1.0]), "visible")


def test_a_fermion_pair_opens_as_a_vector_decay():
    """Gamma ~ (1 + 2 r) sqrt(1 - 4 r), here from the spin sum of V -> l l at a few masses."""
    m_mu = 0.1056583755
    for m in (0.25, 0.5, 1.0):
        p = np.sqrt(m**2 / 4 - m_mu**2)
        # sum |M|^2 ~ (m^2 + 2 m_l^2), phase space ~ p / m; a massless pair: m^2, 1/2
        charged = (m**2 + 2 * m_mu**2) / m**2 * (2 * p / m)
        assert branching_ratio(np.array([m]), "lmu_ltau")[0] == pytest.approx(1 / (1 + charged))


def test_cross_sections_between_masses_are_interpolated_and_beyond_them_unknown():
    mass = np.linspace(1, 8, 29)
    at = np.array([0.9, 1.1, 4.4, 7.9, 8.1])
    found = interpolated_cross_section(at, mass, 300 * np.exp(-mass - mass**2 / 20))
    assert found[1:4] == pytest.approx(300 * np.exp(-at[1:4] - at[1:4] ** 2 / 20), rel=1e-3)
    assert np.isnan(found[[0, 4]]).all()
    one = interpolated_cross_section(np.array([2.0, 3.0]), np.array([2.0]), np.array([7.0]))
    assert one[0] == 7
    assert np.isnan(one[1])
