"""What leaves the house: HEPData tables and pyhf workspaces, accepted by their own tools."""

import json
import zipfile

import numpy as np
import pytest
import yaml

from analysis.limit.hepdata import write_hepdata
from analysis.limit.methods import normalisations, signal_uncertainty
from analysis.limit.scan import load_scan
from analysis.limit.stage import load_limits
from analysis.limit.workspace import workspace, workspace_name
from models.results import Limits


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_the_submission_passes_the_full_check_of_hepdata(evaluated):
    from hepdata_validator.full_submission_validator import FullSubmissionValidator

    run = evaluated[0]
    validator = FullSubmissionValidator(schema_version="1.1.1")
    good = validator.validate(directory=str(run.hepdata))
    assert good, validator.get_messages()


def test_tables_hold_the_limits_and_blind_data_have_no_column(evaluated, tmp_path):
    run, config, _, _ = evaluated
    limits, scan = load_limits(run), load_scan(run)
    table = yaml.safe_load((run.hepdata / "limit_cross_section.yaml").read_text())
    names = [c["header"]["name"] for c in table["dependent_variables"]]
    assert "limit, observed" in names
    column = table["dependent_variables"][names.index("limit, expected (median)")]["values"]
    assert [v["value"] for v in column] == pytest.approx(limits.median_fb, rel=1e-5)
    mass = [v["value"] for v in table["independent_variables"][0]["values"]]
    assert mass == pytest.approx(limits.mass_gev, rel=1e-5)
    unseen = {f: getattr(limits, f) for f in Limits.__dataclass_fields__}
    unseen |= {"n_observed": np.full(len(limits.mass_gev), np.nan)}
    files = write_hepdata(tmp_path, config, scan, Limits(**unseen))
    assert "p_values.yaml" not in {f.name for f in files}
    assert "observed" not in (tmp_path / "limit_cross_section.yaml").read_text()


def test_what_is_not_known_is_a_dash(evaluated, tmp_path):
    run, config, _, _ = evaluated
    limits, scan = load_limits(run), load_scan(run)
    limits.median_fb[0] = np.inf
    write_hepdata(tmp_path, config, scan, limits)
    table = yaml.safe_load((tmp_path / "limit_cross_section.yaml").read_text())
    by_name = {c["header"]["name"]: c["values"] for c in table["dependent_variables"]}
    assert by_name["limit, expected (median)"][0]["value"] == "-"


@pytest.fixture(scope="module")
def spaces(evaluated):
    with zipfile.ZipFile(evaluated[0].workspaces) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_every_mass_has_a_valid_workspace(evaluated, spaces):
    import pyhf

    limits = load_limits(evaluated[0])
    assert list(spaces) == [workspace_name(m) for m in limits.mass_gev]
    for made in list(spaces.values())[::20]:
        pyhf.schema.validate(made, "workspace.json")
        assert pyhf.Workspace(made).model().config.poi_name == "mu"


def test_the_limit_in_pyhf_is_our_asymptotic_one(evaluated, spaces):
    """pyhf knows asymptotic formulas; ours of the same kind must agree, in units of mu."""
    import pyhf

    from limits.asymptotic import asymptotic_limits
    from limits.expectation import Expectation

    run, config = evaluated[:2]
    scan, limits = load_scan(run), load_limits(run)
    i = len(limits.mass_gev) // 2
    made = pyhf.Workspace(spaces[workspace_name(limits.mass_gev[i])])
    model = made.model()
    one = slice(i, i + 1)
    expectation = Expectation(
        rows=scan.rows.T[one],
        row_weight=scan.row_weight.T[one],
        normalisation=normalisations(config, scan),
        signal_uncertainty=signal_uncertainty(config, scan)[one],
    )
    ours = asymptotic_limits(expectation, limits.n_observed[one], level=0.9)
    unit = limits.median_fb[i] * scan.efficiency[i] * scan.luminosity_inv_fb
    expected = float(ours.observed[0]) / unit
    theirs, _ = pyhf.infer.intervals.upper_limits.toms748_scan(
        made.data(model), model, 0.8 * expected, 1.2 * expected, level=0.1, rtol=1e-4
    )
    assert theirs == pytest.approx(expected, rel=1e-3)


def test_a_workspace_without_data_observes_what_is_expected(evaluated):
    run, config = evaluated[:2]
    scan, limits = load_scan(run), load_limits(run)
    limits.n_observed[:] = np.nan
    uncertainty = signal_uncertainty(config, scan)
    made = workspace(
        scan, limits, 3, normalisation=np.array([0.1]), signal_uncertainty=uncertainty[3]
    )
    samples = made["channels"][0]["samples"]
    assert made["observations"][0]["data"] == [round(samples[1]["data"][0])]
    assert samples[1]["data"][0] == pytest.approx((scan.rows[0, 3] + 1 / 3) * scan.row_weight[0, 3])
    kinds = {m["name"]: m["type"] for s in samples for m in s["modifiers"]}
    assert kinds == {
        "mu": "normfactor",
        "signal_scale": "normsys",
        "norm_background": "normsys",
        "mc_background": "shapesys",
    }
