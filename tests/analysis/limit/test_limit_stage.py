"""Limits of a small run: right sizes, found signals, stated rules for odd inputs."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from analysis.config.configuration import ConfigError, Configuration, load
from analysis.limit.limit_table import limit_rows, significant_lines
from analysis.limit.methods import in_windows, sidebands, signal_uncertainty
from analysis.limit.scan import make_scan, passing_columns, running, scan_windows
from analysis.limit.stage import (
    find_limits,
    limits_of,
    load_limits,
    observed_axis,
)
from analysis.run.folder import RunFolder
from analysis.train.windows import load_fits
from models.results import to_json
from selection.errors import UserError


@pytest.fixture
def own_run(evaluated, tmp_path):
    """A copy of the run folder, to change."""
    shutil.copytree(evaluated[0].path, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def changed(config, **limit):
    """The configuration with other settings of the limit."""
    raw = config.model_dump(mode="json")
    raw["settings"]["limit"] |= limit
    return Configuration.model_validate(raw)


def test_the_limit_of_nothing_seen_is_2_3_events_where_the_signal_is_known(evaluated):
    """n = 0, exactly: -ln 0.1 / (efficiency L), whatever the background."""
    run, config, sets, simulated = evaluated
    windows = simulated.windows
    scan = make_scan(run, config, simulated, windows, network=0, luminosity_inv_fb=50.0)
    exact = replace(scan, efficiency_error=np.zeros(len(windows)))
    limits = limits_of(run, config, exact, np.zeros(0), (simulated.windows, sets))
    assert limits.observed_fb == pytest.approx(-np.log(0.1) / (scan.efficiency * 50))
    strict = limits_of(
        run, changed(config, level=0.95), exact, np.zeros(0), (simulated.windows, sets)
    )
    assert strict.observed_fb == pytest.approx(-np.log(0.05) / (scan.efficiency * 50))
    assert np.all(limits.p_local == 1)


@pytest.mark.parametrize("mass", [2.35, 4.0])
def test_an_injected_signal_is_found_at_its_mass_with_its_cross_section(evaluated, mass):
    """Pseudo-data: the passing background at its rate, and a peak of known cross section."""
    run, config, sets, simulated = evaluated
    curve = load_fits(run.windows)[1]
    windows = scan_windows(curve, simulated.windows, masses_gev=None, step_sigma=1.0)
    scan = make_scan(run, config, simulated, windows, network=0, luminosity_inv_fb=50.0)
    rng = np.random.default_rng(11)
    passing = passing_columns(run, 0)
    background = np.isnan(passing["signal_mass_gev"])
    weight = passing["weight"][background]
    drawn = np.repeat(passing["axis"][background], rng.poisson(weight))
    at = int(np.abs(scan.mass_gev - mass).argmin())
    events = 8 * np.sqrt(scan.background[at] + scan.background_error[at] ** 2 + 1)
    sigma_fb = events / (scan.efficiency[at] * 50.0)
    # a core of the fitted width, of which 95.4 % lie within two widths
    n = rng.poisson(events / 0.9545)
    peak = rng.normal(mass**2, float(curve.sigma(np.array([mass]))[0]), n)
    limits = limits_of(run, config, scan, np.concatenate([drawn, peak]), (simulated.windows, sets))
    best = int(np.argmin(limits.p_local))
    width_gev = float(curve.sigma(np.array([mass]))[0]) / (2 * mass)
    assert abs(limits.mass_gev[best] - mass) < 2 * width_gev
    assert limits.significance[at] > 3
    error = (limits.best_high_fb[at] - limits.best_low_fb[at]) / 2
    assert limits.best_fb[at] == pytest.approx(sigma_fb, abs=3 * error)
    assert limits.observed_fb[at] > limits.plus2_fb[at]
    assert limits.p_global[best] < 0.05
    assert limits.p_local[best] < limits.p_global_bound[best] < 0.2
    assert np.all(limits.p_global_bound[limits.significance <= 1] == 1)
    assert f"{limits.mass_gev[best]:.3f} GeV" in significant_lines(limits)[0]


def test_global_p_values_are_never_below_local_ones(evaluated):
    limits = load_limits(evaluated[0])
    extreme = limits.p_local < 0.3
    assert np.all(limits.p_global[extreme] >= limits.p_local[extreme] * 0.99)
    assert np.all(np.diff(limits.global_lines) < 0)


def test_the_data_beside_a_window_foretell_a_smooth_background_and_see_a_peak(evaluated):
    """Flat data at one event per tenth of a width, without any simulated rate."""
    run, config, _, simulated = evaluated
    curve = load_fits(run.windows)[1]
    windows = scan_windows(curve, simulated.windows, masses_gev=None, step_sigma=1.0)
    scan = make_scan(run, config, simulated, windows, network=0, luminosity_inv_fb=50.0)
    at = int(np.abs(scan.mass_gev - 3.0).argmin())
    width = float((scan.high - scan.low)[at] / 4)
    flat = np.arange(0, 40, width / 10)
    plain = sidebands(config, scan, flat)
    assert plain["sideband_background"][at] == pytest.approx(40, rel=0.05)
    assert 0.2 < plain["sideband_p"][at] < 0.8
    peak = np.linspace(-1, 1, 80) * width + windows.peak[at]
    seen = sidebands(config, scan, np.concatenate([flat, peak]))
    assert seen["sideband_background"][at] == plain["sideband_background"][at]
    assert seen["sideband_p"][at] < 1e-4
    assert np.isnan(plain["sideband_p"][scan.mass_gev < 1.5]).all()


def test_data_are_counted_in_their_windows_and_everything_is_for_their_luminosity(evaluated):
    run, config, _, _ = evaluated
    limits = load_limits(run)
    assert limits.luminosity_inv_fb == 25
    axis = observed_axis(run, config, 0)
    scan = json.loads(run.scan.read_text())
    for k in (0, len(limits.mass_gev) // 2):
        inside = (axis > scan["low"][k]) & (axis < scan["high"][k])
        assert limits.n_observed[k] == inside.sum()
    edges = np.array([0.0, 1.0]), np.array([2.0, 3.0])
    assert in_windows(np.array([0.0, 1.5, 2.5]), *edges).tolist() == [1, 2]


def test_blind_data_are_neither_counted_nor_needed(own_run, evaluated):
    _, config, sets, simulated = evaluated
    blind = changed(config, unblind=False)
    limits = find_limits(own_run, blind, simulated, sets)
    assert np.isnan(limits.n_observed).all()
    assert np.isnan(limits.p_local).all()
    seen = load_limits(evaluated[0])
    assert limits.median_fb == pytest.approx(seen.median_fb)
    assert all(row[3] == "–" for row in limit_rows(limits))


def test_uncertainties_make_limits_weaker(evaluated, own_run):
    _, config, sets, simulated = evaluated
    plain = load_limits(evaluated[0])
    raw = changed(config, efficiency_uncertainty=0.1, luminosity_uncertainty=0.05).model_dump(
        mode="json"
    )
    raw["samples"]["background"]["uncertainty"] = 0.2
    unsure = find_limits(own_run, Configuration.model_validate(raw), simulated, sets)
    assert np.all(unsure.mean_fb > plain.mean_fb)
    scan = from_scan(own_run)
    relative = signal_uncertainty(Configuration.model_validate(raw), scan)
    assert np.all(relative > np.hypot(0.1, 0.05))


def from_scan(run):
    from analysis.limit.scan import load_scan

    return load_scan(run)


def test_a_mass_without_efficiency_has_no_limit_and_the_others_keep_theirs(evaluated):
    run, config, sets, simulated = evaluated
    scan = make_scan(run, config, simulated, simulated.windows, network=0, luminosity_inv_fb=50.0)
    gone = scan.efficiency.copy()
    gone[2] = 0.0
    limits = limits_of(
        run, config, replace(scan, efficiency=gone), np.zeros(0), (simulated.windows, sets)
    )
    assert np.isinf(limits.median_fb[2])
    assert np.isinf(limits.observed_fb[2])
    assert np.isfinite(np.delete(limits.observed_fb, 2)).all()
    assert limit_rows(limits)[2][1] == "∞"


def test_a_second_call_is_up_to_date_and_another_level_is_not(own_run, evaluated, caplog):
    _, config, sets, simulated = evaluated
    before = own_run.limits.read_bytes()
    caplog.set_level("INFO")
    find_limits(own_run, config, simulated, sets)
    assert "limit: up to date" in caplog.text
    assert own_run.limits.read_bytes() == before
    find_limits(own_run, changed(config, level=0.95), simulated, sets)
    assert own_run.limits.read_bytes() != before
    find_limits(own_run, config, simulated, sets)
    assert own_run.limits.read_bytes() == before  # the same input, the same bytes


def test_without_a_single_cut_no_limits_of_an_earlier_evaluation_stay(own_run, evaluated, caplog):
    from models.trained import load_model, save_model, with_cut

    _, config, sets, simulated = evaluated
    path = own_run.model("punzi", 0)
    save_model(with_cut(load_model(path), None), path)
    assert find_limits(own_run, config, simulated, sets) is None
    assert "no single cut" in caplog.text
    assert not own_run.limits.exists()
    assert not own_run.hepdata.exists()


def test_a_coupling_needs_its_table_and_its_reference(evaluated):
    run, config, sets, simulated = evaluated
    scan = make_scan(run, config, simulated, simulated.windows, network=0, luminosity_inv_fb=50.0)
    table = {str(m): 100.0 / m for m in simulated.windows.mass_gev}
    given = changed(config, coupling={"reference": 0.1, "cross_sections_fb": table})
    limits = limits_of(run, given, scan, None, (simulated.windows, sets))
    assert limits.cross_section_fb == pytest.approx(100.0 / scan.mass_gev)
    assert limits.coupling_reference == 0.1
    with pytest.raises(ValueError, match="reference and cross_sections_fb together"):
        changed(config, coupling={"reference": 0.1})


def test_signal_files_that_record_their_cross_section_give_limits_on_the_coupling(
    tmp_path, evaluated, save, columns
):
    from analysis.inputs.datasets import Dataset
    from analysis.limit.cross_sections import reference_cross_section

    settings = evaluated[1].settings.limit.coupling
    sets = []
    for mass, sigma in ((1.0, 900.0), (2.0, 300.0)):
        about = {"n_generated": 10, "cross_section_fb": sigma, "coupling": 0.1}
        path = save(tmp_path / f"{mass}.root", columns(10, mass_gev=mass), metadata=about)
        sets.append(Dataset("signal", "signal", (str(path),), 0.1, mass_gev=mass))
    sigma, g = reference_cross_section(np.array([1.0, 2.0, 3.0]), settings, sets)
    assert g == 0.1
    assert sigma[:2] == pytest.approx([900, 300])
    assert np.isnan(sigma[2])
    nothing, _ = reference_cross_section(np.array([1.0]), settings, evaluated[2])
    assert np.isnan(nothing).all()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("limit.level=1.5", "level"),
        ("limit.toys=3", "toys"),
        ("limit.step_sigma=0", "step_sigma"),
        ("limit.luminosity_uncertainty=-0.1", "luminosity_uncertainty"),
        ("limit.metod=shape", "metod"),
    ],
)
def test_a_wrong_setting_of_the_limit_is_named(small_inputs, line, text):
    with pytest.raises(ConfigError, match=text):
        load(small_inputs / "datasets.yaml", [line])


def test_data_without_a_luminosity_are_refused(own_inputs):
    with (own_inputs / "datasets.yaml").open("a") as stream:
        stream.write("  recorded:\n    kind: data\n    files: recorded.root\n")
    with pytest.raises(ConfigError, match="luminosity_inv_fb"):
        load(own_inputs / "datasets.yaml")


def test_records_survive_json(evaluated):
    from models.results import from_json

    limits = load_limits(evaluated[0])
    again = from_json(json.loads(json.dumps(to_json(limits))))
    assert np.array_equal(again.observed_fb, limits.observed_fb)
    assert again.method == limits.method
    assert running(np.zeros(1), np.ones(1)).sums.tolist() == [0, 1]


def test_asymptotic_limits_are_stronger_where_few_events_are_expected_and_alike_where_many(
    evaluated,
):
    run, config, sets, simulated = evaluated
    scan = make_scan(run, config, simulated, simulated.windows, network=0, luminosity_inv_fb=50.0)
    few = replace(scan, row_weight=np.full_like(scan.row_weight, 1e-3), rows=scan.rows * 0 + 500)
    many = replace(few, row_weight=np.full_like(scan.row_weight, 0.2))
    for case, low, high in ((few, 0.5, 0.99), (many, 0.9, 1.05)):
        exact = limits_of(run, config, case, None, (simulated.windows, sets))
        formulas = changed(config, method="asymptotic")
        rough = limits_of(run, formulas, case, None, (simulated.windows, sets))
        ratio = rough.median_fb / exact.median_fb
        assert np.all((low < ratio) & (ratio < high))
        assert rough.method == "CLs, asymptotic formulas"


def test_a_template_fit_is_refused_with_its_numbers_unless_the_simulation_carries_it(evaluated):
    run, config, sets, simulated = evaluated
    scan = make_scan(run, config, simulated, simulated.windows, network=0, luminosity_inv_fb=50.0)
    fit = changed(config, method="shape")
    with pytest.raises(
        UserError, match=r"needs 10 simulated rows in every bin.*rows of background"
    ):
        limits_of(run, fit, scan, None, (simulated.windows, sets))


def test_a_template_fit_finds_a_peak_where_it_is_allowed(evaluated, monkeypatch):
    """The same scan with the rows that the rule asks for: expected limits near those of counts."""
    from analysis.limit import methods

    run, config, sets, simulated = evaluated
    scan = make_scan(
        run,
        config,
        simulated,
        simulated.windows.take(slice(1, 4)),
        network=0,
        luminosity_inv_fb=50.0,
    )
    monkeypatch.setattr(methods, "refuse_thin", lambda *_: None)
    fit = changed(config, method="shape")
    data = observed_axis(run, config, 0)
    fitted = limits_of(run, fit, scan, data, (simulated.windows, sets))
    counted = limits_of(run, config, scan, data, (simulated.windows, sets))
    ratio = fitted.median_fb / counted.median_fb
    assert np.all((ratio > 0.4) & (ratio < 1.3))
    assert np.isfinite(fitted.p_local).all()
