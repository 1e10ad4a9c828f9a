"""Scan and limits of events in memory are those of a run with the same model and events."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.inputs.arrays import ColumnsError
from analysis.limit.arrays import limits, scan
from analysis.limit.scan import ScanError, make_scan
from analysis.limit.stage import limits_of
from models.sensitivity import PunziFormula
from models.trained import load_model


@pytest.fixture(scope="module")
def found(evaluated):
    run, config, _, simulated = evaluated
    model = load_model(run.model("punzi", 0))
    s = config.settings.sensitivity
    formula = PunziFormula(config.luminosity_inv_fb, s.a, s.b, s.formula)
    at = simulated.windows.mass_gev
    return model, scan(model, simulated.table, masses_gev=at, formula=formula)


def test_a_scan_of_arrays_is_the_scan_of_a_run(evaluated, found):
    run, config, _, simulated = evaluated
    of_run = make_scan(
        run, config, simulated, simulated.windows, network=0,
        luminosity_inv_fb=config.luminosity_inv_fb,
    )  # fmt: skip
    for name in ("low", "efficiency", "background", "rows", "row_weight", "sigma_min_fb"):
        assert getattr(found[1], name) == pytest.approx(getattr(of_run, name)), name
    assert found[1].samples == of_run.samples


def test_limits_of_arrays_are_the_limits_of_a_run(evaluated, found):
    run, config, sets, simulated = evaluated
    data = np.sort(simulated.table.axis[~simulated.table.is_signal])[::40]
    of_run = limits_of(run, config, found[1], data, (simulated.windows, sets))
    ours = limits(
        found[1],
        level=config.settings.limit.level,
        uncertainty={n: config.samples[n].uncertainty for n in found[1].samples},
        data=data,
    )
    for name in ("minus2_fb", "median_fb", "plus1_fb", "observed_fb", "p_local", "best_fb"):
        assert getattr(ours, name) == pytest.approx(getattr(of_run, name)), name
    assert np.isnan(limits(found[1]).observed_fb).all()


def test_windows_between_the_masses_leave_no_gap(evaluated, found):
    close = scan(found[0], evaluated[3].table)
    assert len(close.mass_gev) > len(found[1].mass_gev)
    assert (close.low[1:] < close.high[:-1]).all()
    assert close.mass_gev[[0, -1]] == pytest.approx(found[1].mass_gev[[0, -1]])


def test_what_the_scan_does_not_have_is_refused(evaluated, found):
    model, of_model = found
    with pytest.raises(ColumnsError, match="uncertainty of 'taupar': the scan has the samples"):
        limits(of_model, uncertainty={"taupar": 0.1})
    with pytest.raises(ScanError, match="outside the simulated signal"):
        scan(model, evaluated[3].table, masses_gev=[99.0])
    without = replace(model, conditions=replace(model.conditions, cut=None))
    with pytest.raises(ColumnsError, match="no cut"):
        scan(without, evaluated[3].table)
