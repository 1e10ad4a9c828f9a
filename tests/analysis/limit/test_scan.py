"""The scan: no holes, the counts of the windows, and an efficiency between simulated masses."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from analysis.evaluate.passing import row_weight
from analysis.evaluate.stage import load_contents, load_figures
from analysis.limit.scan import (
    ScanError,
    efficiency_error,
    interval_rows,
    make_scan,
    own_window_sums,
    passing_columns,
    running,
    scan_windows,
)
from limits.interpolation import smooth
from limits.trials import elementary_intervals, interval_spans
from models.evaluation.comparison import PUNZI_SINGLE, of_curve
from models.results import from_json
from selection.resolution import WidthCurve
from selection.windows import MassWindows

# ln sigma of a width that falls from 0.29 to 0.06 as in the published curve
CURVE = WidthCurve(np.array([-1.5, -0.7, -0.35]), np.zeros((3, 3)), 4.5, 4.4)
SIMULATED = np.arange(1, 90) / 10


def windows_of(masses):
    return MassWindows(np.asarray(masses), CURVE.sigma(np.asarray(masses)), 2.0, squared=True)


@pytest.mark.parametrize("step", [0.5, 1.0, 2.0])
def test_no_mass_between_the_first_and_the_last_is_outside_all_windows(step):
    scan = scan_windows(CURVE, windows_of(SIMULATED), masses_gev=None, step_sigma=step)
    at = np.linspace(0.1, 8.9, 20_001) ** 2
    inside = (at[:, None] > scan.low) & (at[:, None] < scan.high)
    assert inside.any(axis=1).all()
    assert (scan.mass_gev[0], scan.mass_gev[-1]) == (0.1, 8.9)
    # the simulated masses alone leave holes
    holes = ~(
        (at[:, None] > windows_of(SIMULATED).low) & (at[:, None] < windows_of(SIMULATED).high)
    )
    assert holes.all(axis=1).any()


def test_neighbours_are_so_many_widths_apart():
    scan = scan_windows(CURVE, windows_of(SIMULATED), masses_gev=None, step_sigma=1.0)
    steps = np.diff(scan.peak)[:-1] / scan.sigma[:-2]
    assert steps == pytest.approx(1.0)


def test_masses_of_a_person_are_taken_and_those_without_signal_beside_them_refused():
    wanted = np.array([8.05, 4.25])
    scan = scan_windows(CURVE, windows_of(SIMULATED), masses_gev=wanted, step_sigma=1.0)
    assert scan.mass_gev.tolist() == [4.25, 8.05]
    with pytest.raises(ScanError, match=r"9.3 GeV lies outside.*0.1 to 8.9 GeV"):
        scan_windows(CURVE, windows_of(SIMULATED), masses_gev=np.array([9.3]), step_sigma=1.0)


def test_running_sums_count_what_lies_inside_a_window():
    rng = np.random.default_rng(3)
    axis, weight = rng.uniform(0, 80, 500), rng.uniform(0.1, 2, 500)
    scan = windows_of(SIMULATED)
    rows, w, w2 = running(axis, weight).within(scan.low, scan.high)
    for k in range(len(scan)):
        inside = (axis > scan.low[k]) & (axis < scan.high[k])
        assert rows[k] == inside.sum()
        assert w[k] == pytest.approx(weight[inside].sum())
        assert w2[k] == pytest.approx((weight[inside] ** 2).sum())
    nothing = running(np.zeros(0), np.zeros(0)).within(scan.low, scan.high)
    assert not any(part.any() for part in nothing)


def test_the_weight_of_a_row_is_that_of_its_neighbours_on_the_axis():
    axis = np.arange(1000.0)
    weight = np.where(axis < 500, 0.1, 4.0)
    assert row_weight(axis, weight, np.array([-50.0, 200, 800, 2000])) == pytest.approx(
        [0.1, 0.1, 4, 4]
    )
    assert row_weight(np.array([3.0]), np.array([2.0]), np.array([90.0])) == pytest.approx([2])
    assert row_weight(np.zeros(0), np.zeros(0), np.array([1.0])) == pytest.approx([0])


@pytest.fixture(scope="module")
def scan(evaluated):
    run = evaluated[0]
    return from_json(json.loads(run.scan.read_text()))


def test_at_simulated_masses_the_scan_has_the_background_and_the_reach_of_the_evaluation(evaluated):
    run, config, _, simulated = evaluated
    at = make_scan(run, config, simulated, simulated.windows, network=0, luminosity_inv_fb=50.0)
    quoted = next(f for f in of_curve(load_figures(run), PUNZI_SINGLE) if f.network == 0)
    assert at.background == pytest.approx(quoted.background)
    assert at.background_error == pytest.approx(quoted.background_error)
    assert at.added_background == pytest.approx(quoted.added_background)
    content = next(c for c in load_contents(run) if c.network == 0)
    assert at.events[0] == pytest.approx(content.events)
    value, squares = own_window_sums(passing_columns(run, 0), simulated.windows)
    error = efficiency_error(value, squares)
    assert value == pytest.approx(quoted.efficiency)
    assert error == pytest.approx(quoted.efficiency_error, rel=1e-6)


def test_another_luminosity_scales_events_and_rows_stay(evaluated):
    run, config, _, simulated = evaluated
    fifty, hundred = (
        make_scan(run, config, simulated, simulated.windows, network=0, luminosity_inv_fb=L)
        for L in (50.0, 100.0)
    )
    assert hundred.background == pytest.approx(2 * fifty.background)
    assert hundred.row_weight == pytest.approx(2 * fifty.row_weight)
    assert hundred.rows == pytest.approx(fifty.rows)
    assert hundred.efficiency == pytest.approx(fifty.efficiency)


def test_the_simulation_is_too_small_where_a_third_of_a_row_of_each_process_matters(scan):
    weight = scan.row_weight.sum(axis=0) / 3
    assert np.array_equal(scan.too_small, weight > 0.2 * np.sqrt(scan.background + 1))


def test_intervals_add_up_to_the_windows(evaluated, scan):
    run, config = evaluated[:2]
    rows, weight = interval_rows(run, config, scan)
    spans = interval_spans(scan.low, scan.high)
    assert len(rows) == len(elementary_intervals(scan.low, scan.high)) - 1
    for k, (first, stop) in enumerate(spans):
        events = (rows[first:stop, 0] * weight[first:stop, 0]).sum()
        assert events == pytest.approx(scan.events[0, k], abs=1e-9)


def test_the_table_says_what_the_record_says(evaluated, scan):
    with evaluated[0].scan_csv.open() as stream:
        table = list(csv.DictReader(stream))
    assert [float(row["mass_gev"]) for row in table] == scan.mass_gev.tolist()
    assert [float(row["events_background"]) for row in table] == scan.events[0].tolist()
    assert [float(row["row_weight_background"]) for row in table] == scan.row_weight[0].tolist()


def test_an_efficiency_left_out_is_interpolated_within_its_error():
    """A smooth efficiency with the statistics of the demo, every second mass left out."""
    rng = np.random.default_rng(5)
    n = 6000
    truth = 0.1 + 0.03 * np.sin(SIMULATED) - 0.009 * np.maximum(SIMULATED - 7, 0) ** 3
    seen = rng.binomial(n, truth) / n
    error = np.sqrt(seen * (1 - seen) / n)
    out = np.arange(len(SIMULATED)) % 2 == 1
    value, own = smooth(SIMULATED[out], SIMULATED[~out], seen[~out], error[~out])
    pull = (value - seen[out]) / np.hypot(own, error[out])
    assert np.mean((np.abs(pull) < 2) | (np.abs(value / seen[out] - 1) < 0.03)) > 0.9
    assert pull.std() == pytest.approx(1, abs=0.35)


def test_without_any_network_that_has_a_cut_there_is_nothing_to_scan(evaluated, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    run = replace(evaluated[0], path=tmp_path)
    pq.write_table(pa.table({}), run.passing)
    with pytest.raises(ScanError, match=r"evaluation.single_cut"):
        passing_columns(run, 0)
