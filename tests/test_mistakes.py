"""Mistakes in the physics of the inputs: each is named with its numbers, and harms nothing.

A table of what people do to their ntuples and configurations. `check` finds each of them from the
first rows, `select` refuses to start, nothing that was there is changed, and the right inputs give
what they gave before.
"""

import re
import shutil
import sys

import numpy as np
import pytest
import uproot
import yaml

from analysis.cli import main
from analysis.config.mistakes import MISTAKES, REFUSED

MUONS = ("mu_plus", "mu_minus")


def edit(pattern, change):
    """Rewrite the columns of files: change(columns) -> columns, in place or new."""

    def apply(folder):
        for path in sorted(folder.glob(pattern)):
            with uproot.open(path) as file:
                columns = file["variables"].arrays(library="np")
                about = file["metadata"].arrays(library="np") if "metadata" in file else {}
            columns = change(dict(columns)) or columns
            with uproot.recreate(path) as file:
                file.mktree("variables", {k: v.dtype for k, v in columns.items()}).extend(columns)
                if about:
                    file.mktree("metadata", {k: v.dtype for k, v in about.items()}).extend(about)

    return apply


def configure(change):
    """Rewrite the configuration: change(mapping), in place."""

    def apply(folder):
        path = folder / "datasets.yaml"
        raw = yaml.safe_load(path.read_text())
        change(raw)
        path.write_text(yaml.safe_dump(raw, sort_keys=False))

    return apply


def both(*changes):
    return lambda folder: [change(folder) for change in changes]


def swapped(*names):
    """Columns exchanged in pairs."""

    def change(c):
        for a, b in zip(names[::2], names[1::2], strict=True):
            c[a], c[b] = c[b], c[a]
        return c

    return change


def scaled(factor, *names):
    return lambda c: c | {n: (c[n] * factor).astype(c[n].dtype) for n in names}


def momenta(*parts):
    return [f"{m}_{p}" for m in MUONS for p in parts or ("px", "py", "pz", "e")]


def in_cm(c):
    """Momenta in the centre-of-mass frame instead of the lab."""
    import vector

    from selection.beams import SUPERKEKB

    for m in MUONS:
        p = vector.array(
            {
                k: c[f"{m}_{v}"].astype(float)
                for k, v in (("px", "px"), ("py", "py"), ("pz", "pz"), ("E", "e"))
            }
        )
        cm = p.boostCM_of_p4(SUPERKEKB.p4)
        for v, values in (("px", cm.px), ("py", cm.py), ("pz", cm.pz), ("e", cm.E)):
            c[f"{m}_{v}"] = values.astype(np.float32)
    return c


def signal(**changes):
    return configure(lambda raw: raw["samples"]["signal"].update(changes))


def background(**changes):
    return configure(lambda raw: raw["samples"]["background"].update(changes))


def top(**changes):
    return configure(lambda raw: raw.update(changes))


def copy(source, target):
    return lambda folder: shutil.copy(folder / source, folder / target)


SWAPPED_BEAMS = {"electron_energy_gev": 4.002, "positron_energy_gev": 7.004}
DATA = {"kind": "data", "files": "data.root", "luminosity_inv_fb": 5}

# what was done -> (how, what is said)
REFUSALS = {
    # momenta
    "px of the muons exchanged": (
        edit("background_*", swapped("mu_plus_px", "mu_minus_px")),
        r"E² − p² of mu_plus is not the square of its mass, 0.1057 GeV, in .* with mu_plus_px and "
        r"mu_minus_px exchanged",
    ),
    "pz of the muons exchanged in the signal": (
        edit("signal_*", swapped("mu_plus_pz", "mu_minus_pz")),
        r"signal/1: .*mu_plus_pz and mu_minus_pz exchanged all is right \[off_shell\]; likewise",
    ),
    "energies of the muons exchanged": (
        edit("background_*", swapped("mu_plus_e", "mu_minus_e")),
        "mu_plus_e and mu_minus_e exchanged all is right",
    ),
    "momenta in MeV": (
        edit("background_*", scaled(1000, *momenta())),
        "the momenta look like MeV; they must be GeV",
    ),
    "momenta in MeV, energies in GeV": (
        edit("background_*", scaled(1000, *momenta("px", "py", "pz"))),
        r"is not the square of its mass, 0.1057 GeV, in 100 % of the rows",
    ),
    "energy is pz": (
        edit("background_*", lambda c: c | {"mu_plus_e": c["mu_plus_pz"]}),
        "mu_plus_e and mu_plus_pz hold the same numbers",
    ),
    "energy is the kinetic energy": (
        edit("background_*", lambda c: c | {"mu_plus_e": c["mu_plus_e"] - np.float32(0.10566)}),
        "E² − p² of mu_plus is not the square of its mass",
    ),
    "one branch for two columns": (
        top(columns={"mu_plus_py": "mu_plus_px"}),
        "branch 'mu_plus_px' is read for mu_plus_px and mu_plus_py",
    ),
    "one branch for both IDs": (
        top(columns={"mu_minus_id": "mu_plus_id"}),
        "branch 'mu_plus_id' is read for mu_minus_id and mu_plus_id",
    ),
    "a missing momentum is -999": (
        edit("background_*", lambda c: c | {"mu_plus_px": np.full_like(c["mu_plus_px"], -999)}),
        "E² − p² of mu_plus is not the square of its mass",
    ),
    "momenta in the CM frame": (
        edit("signal_*", in_cm),
        r"signal/1: peaks at recoil_mass2 = .* where 1 and about .* are expected for 1 GeV; check the "
        r"mass",
    ),
    "beams exchanged": (top(beams=SWAPPED_BEAMS), r"peaks at .* the order and the crossing angle"),
    "no crossing angle": (top(beams={"half_crossing_angle_rad": 0.0}), r"peaks at .* \[peak\]"),
    "a crossing angle of the wrong sign": (
        top(beams={"half_crossing_angle_rad": -0.0415}),
        r"peaks at .* \[peak\]",
    ),
    "beams of another energy": (
        top(beams={"electron_energy_gev": 7.2}),
        r"peaks at .* \[peak\]",
    ),
    # masses and files
    "the file of another mass": (
        both(copy("signal_5.root", "signal_4.root"), edit("signal_4.root", lambda c: c)),
        r"signal/4: peaks at recoil_mass2 = 2[45]\.?\d* GeV\^2/c\^4 with .*where 16 and about 0.26 are "
        r"expected for 4 GeV",
    ),
    "masses of files in the wrong unit": (
        signal(masses_gev=[0.001, 0.002, 0.003], files="signal_{mass_mev}.root"),
        r"signal/0.001: peaks at recoil_mass2 = [01]\.\d* GeV.*for 0.001 GeV; .*likewise signal/0.002, "
        r"signal/0.003",
    ),
    "a glob that matches another mass": (
        both(
            signal(files="signal_*{mass}.root", masses_gev=[1, 2]),
            copy("signal_5.root", "signal_11.root"),
        ),
        "signal/1: all files n_generated is 1200 in the configuration, 2400 in the files",
    ),
    "one file for two masses": (
        copy("signal_2.root", "signal_1.root"),
        r"signal/2: .*signal_2.root has the same content as .*signal_1.root of signal/1",
    ),
    "a signal file as background": (
        copy("signal_2.root", "background_1.root"),
        r"background: .*background_1.root has the same content as .*signal_2.root of signal/2",
    ),
    "the same events under another name": (
        both(
            copy("background_0.root", "background_1.root"), edit("background_1.root", lambda c: c)
        ),
        r"more than once, first",
    ),
    "the same events in two samples": (
        both(
            copy("background_0.root", "copy.root"),
            edit("copy.root", lambda c: c),
            configure(
                lambda raw: raw["samples"].update(
                    other={"kind": "background", "files": "copy.root", "weight": "weight"}
                )
            ),
        ),
        r"other: \d+ selected events are events of background too",
    ),
    "data that are simulation": (
        both(
            copy("background_0.root", "data.root"),
            configure(lambda raw: raw["samples"].update(measured=DATA)),
        ),
        r"measured: .*data.root has the same content as .*background_0.root of background",
    ),
    # normalisation
    "n_generated smaller than the rows": (
        both(signal(n_generated=700), edit("signal_*", lambda c: c), lambda f: drop_metadata(f)),
        r"1000 events, but n_generated is 700: the efficiency would be 143%",
    ),
    "one n_generated for unequal samples": (
        both(
            edit("signal_3.root", lambda c: {k: v[:900] for k, v in c.items()}),
            lambda f: drop_metadata(f),
            signal(n_generated=950),
        ),
        r"signal/1: 1000 events, but n_generated is 950.*likewise signal/2, signal/4, signal/5",
    ),
    "n_generated unlike that of the files": (
        signal(n_generated=5000),
        "n_generated is 5000 in the configuration, 1200 in the files",
    ),
    "weights that are all one": (
        both(
            edit("background_*", lambda c: c | {"__weight__": np.ones_like(c["weight"])}),
            background(weight="__weight__"),
        ),
        "every weight is 1: that is no number of events per 1/fb",
    ),
    "negative weights": (
        edit("background_0*", lambda c: c | {"weight": c["weight"] - 0.15}),
        r"of the weights are negative",
    ),
    # cut columns
    "-999 for a missing angle": (
        edit("*_*.root", lambda c: c | {"photon_recoil_angle": np.full_like(c["mu_plus_e"], -999)}),
        r"photon_recoil_angle is outside 0 to 3.142 in 100 % .*say `missing: -999`",
    ),
    "angles in degrees": (
        edit(
            "*_*.root",
            lambda c: (
                c
                | {
                    "photon_recoil_angle": np.full_like(c["mu_plus_e"], 3)
                    * np.arange(len(c["mu_plus_e"]))
                    % 180
                }
            ),
        ),
        "angles must be in rad, these look like degrees",
    ),
    "extra energy in MeV": (
        edit("*_*.root", scaled(1000, "extra_energy")),
        r"extra_energy is outside .* energies must be in GeV, these look like MeV",
    ),
    "an ID that is a likelihood ratio in percent": (
        edit("*_*.root", lambda c: c | {"mu_plus_id": 87.3 * np.ones_like(c["mu_plus_id"])}),
        r"mu_plus_id is outside 0 to 1 in 100 % of the rows",
    ),
    "a charge instead of an ID": (
        edit("*_*.root", lambda c: c | {"mu_minus_id": -np.ones_like(c["mu_minus_id"])}),
        r"mu_minus_id is outside 0 to 1",
    ),
    # cuts
    "a cut that removes everything": (
        top(cuts={"pt_mumu": "pt_mumu > 6"}),
        r"cut pt_mumu removes all \d+ events: values [\d.]+ to [\d.]+ \[empty_cut\]",
    ),
    "a cut in the wrong unit": (
        top(cuts={"pt_mumu": "pt_mumu > 1000"}),
        r"cut pt_mumu removes all",
    ),
    "a cut on a quantity that is none": (
        top(cuts={"pt_mumu": "pt_mumumu > 1"}),
        r"has no branch 'pt_mumumu' \(nearest: ",
    ),
    "a cut that is no condition": (
        top(cuts={"pt_mumu": "pt_mumu + 1"}),
        r"cuts.pt_mumu: is a number, a condition is needed",
    ),
    "a cut switched off that is none": (
        top(cuts={"pt_mumumu": None}),
        r"cuts.pt_mumumu: there is none to switch off; did you mean pt_mumu\?",
    ),
    "settings of the cuts of earlier versions": (
        top(settings={"preselection": {"pt_mumu_min_gev": 2}}),
        r"settings.preselection: no such key",
    ),
    # energies of events
    "events of another energy": (
        edit("background_*", lambda c: c | {"Ecms": np.full(len(c["weight"]), 10.52)}),
        r"√s of 100 % of the rows is more than 20 MeV away from 10.5796 GeV",
    ),
    "mostly events of another energy, the first ones right": (
        edit(
            "background_*",
            lambda c: c | {"Ecms": np.where(np.arange(len(c["weight"])) < 1000, 10.5796, 10.52)},
        ),
        r"√s of \d+ % of the rows is more than 20 MeV away",
    ),
    # data
    "data without their luminosity": (
        configure(lambda raw: raw["samples"].update(measured={"kind": "data", "files": "d.root"})),
        r"samples.measured.luminosity_inv_fb: is required and missing",
    ),
    # configuration
    "n_generated for too few masses": (
        signal(n_generated=[1200, 1200]),
        "samples.signal.n_generated: has 2 numbers for 5 masses",
    ),
    "n_generated for other masses": (
        signal(n_generated={1: 1200, 2: 1200, 3: 1200, 4: 1200, 6: 1200}),
        "samples.signal.n_generated: [56] GeV stands only here or only in masses_gev",
    ),
    "n_generated neither here nor there": (
        both(
            configure(lambda raw: raw["samples"]["signal"].pop("n_generated")),
            lambda f: drop_metadata(f),
        ),
        "n_generated is not configured, and .*signal_1.root does not record it",
    ),
    "a mass in two samples": (
        configure(lambda raw: raw["samples"].update(more=dict(raw["samples"]["signal"]))),
        "samples.more.masses_gev: 1 GeV is a mass of signal too",
    ),
    "a padding that is none": (
        signal(files="signal_{mass:>9s}.root"),
        r"\{mass:>9s\} has no meaning; write \{mass:.2f\} or \{mass_mev:04d\}",
    ),
    "a mistake accepted by a name that is none": (
        top(accept=["peaks"]),
        r"accept\.0: Input should be 'one_branch_twice', .*found 'peaks'",
    ),
    "a mistake accepted that is another one": (
        both(edit("background_*", scaled(1000, *momenta())), top(accept=["peak"])),
        "the momenta look like MeV",
    ),
    "a column mapped to a branch that is not there": (
        top(columns={"event": "evt"}),
        r"has no branch 'evt' \(nearest: ",
    ),
    "a column that does not exist": (
        configure(lambda raw: raw["samples"]["signal"].update(columns={"mu_plus_pxx": "px"})),
        r"samples.signal.columns.mu_plus_pxx: no such (key|column).*did you mean '?mu_plus_px'?",
    ),
    "no branch in any file of a sample": (
        edit("signal_*", lambda c: {k: v for k, v in c.items() if k != "mu_plus_id"}),
        r"signal/1, signal/2, … \(5 data sets\): 5 files, the first .*signal_1.root: has no branch "
        r"'mu_plus_id' \(nearest: ",
    ),
}


def drop_metadata(folder):
    """Files that say nothing of themselves."""
    for path in folder.glob("signal_*"):
        with uproot.open(path) as file:
            columns = file["variables"].arrays(library="np")
        with uproot.recreate(path) as file:
            file.mktree("variables", {k: v.dtype for k, v in columns.items()}).extend(columns)


def punzi(folder, *words):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["punzi", *words, "--workers=1"])
        with pytest.raises(SystemExit) as end:
            main()
    return end.value.code


def one_line(text):
    return " ".join(text.split())


def snapshot(folder):
    files = [p for p in folder.rglob("*") if p.is_file() and "runs" not in p.parts]
    return {p: p.read_bytes() for p in sorted(files)}


@pytest.mark.parametrize("mistake", REFUSALS)
def test_a_mistake_is_refused_in_words_and_harms_nothing(mistake, own_inputs, capsys):
    change, said = REFUSALS[mistake]
    change(own_inputs)
    before = snapshot(own_inputs)
    assert punzi(own_inputs, "select", "-r", "wrong") == 1
    text = one_line(capsys.readouterr().err)
    assert re.search(said, text), text
    assert "internal error" not in text
    assert snapshot(own_inputs) == before
    assert not (own_inputs / "runs/wrong/stamps/select.json").exists()


FOUND_BY_SELECT_ONLY = {
    "the same events under another name",
    "the same events in two samples",
    "a cut that removes everything",
    "a cut in the wrong unit",
}


@pytest.mark.parametrize("mistake", sorted(set(REFUSALS) - FOUND_BY_SELECT_ONLY))
def test_check_finds_the_mistake_from_the_first_rows(mistake, own_inputs, capsys):
    change, said = REFUSALS[mistake]
    change(own_inputs)
    assert punzi(own_inputs, "check") == 1
    out = capsys.readouterr()
    assert re.search(said, one_line(out.out + out.err)), out


WARNINGS = {
    "no event numbers": (
        edit(
            "background_*",
            lambda c: {
                k: v for k, v in c.items() if k not in ("__experiment__", "__run__", "__event__")
            },
        ),
        "no event numbers in the files: the entry of a row in its file stands for them",
    ),
    "a heavy row": (
        lambda _: None,
        r"background: one row stands for up to [\d.]+ events at the target luminosity",
    ),
}


@pytest.mark.parametrize("mistake", WARNINGS)
def test_what_does_not_stop_a_run_is_said(mistake, own_inputs, capsys):
    change, said = WARNINGS[mistake]
    change(own_inputs)
    assert punzi(own_inputs, "select", "-r", "told") == 0
    out = capsys.readouterr()
    assert re.search(said, one_line(out.err))
    assert re.search(r"background: \d+ rows, [\d.]+ events per 1/fb, N_eff \d+", one_line(out.out))


@pytest.mark.parametrize(
    ("smear", "said"),
    [
        (0.0002, r"is published: are these generated instead"),
        (0.012, r"GeV\^2/c\^4 wide, .* published"),
    ],
)
def test_a_peak_unlike_the_published_ones_is_said(own_inputs, save, columns, capsys, smear, said):
    cols = columns(1000, seed=12, mass_gev=3.0, smear=smear)
    save(own_inputs / "signal_3.root", cols, metadata={"n_generated": 1200})
    assert punzi(own_inputs, "check") == 0
    assert re.search(
        r"signal/3: the peak of recoil_mass2 is .*" + said, one_line(capsys.readouterr().out)
    )


@pytest.mark.parametrize(
    ("file", "recorded", "said"),
    [
        ("signal_3.root", 4.0, "signal/3: a file says that it holds signal of 4 GeV"),
        ("signal_3.root", np.nan, "signal/3: a file says that it holds background"),
        ("background_0.root", 2.0, "background: a file says that it holds signal of 2 GeV"),
    ],
)
def test_a_file_that_says_it_is_another_is_refused(
    own_inputs, save, columns, capsys, file, recorded, said
):
    mass = 3.0 if "signal" in file else None
    about = {"n_generated": 1200, "mass_gev": recorded}
    save(own_inputs / file, columns(1000, seed=5, mass_gev=mass), metadata=about)
    assert punzi(own_inputs, "check") == 1
    assert said in one_line(capsys.readouterr().out)


def test_a_number_that_means_missing_is_no_value(own_inputs, capsys):
    """The same events pass with -999 and `missing: -999` as with NaN."""
    assert punzi(own_inputs, "select", "-r", "nan") == 0
    put = np.float32(-999)
    edit("*_*.root", lambda c: c | {"photon_recoil_angle": np.full_like(c["mu_plus_e"], put)})(
        own_inputs
    )
    background(missing=-999)(own_inputs)
    signal(missing=-999.0)(own_inputs)
    assert punzi(own_inputs, "select", "-r", "number") == 0
    flows = [(own_inputs / f"runs/{run}/cutflow.json").read_text() for run in ("nan", "number")]
    assert flows[0] == flows[1]


def test_a_trained_mass_with_few_events_is_left_out_of_the_training(own_inputs, capsys):
    edit("signal_3.root", lambda c: {k: v[:40] for k, v in c.items()})(own_inputs)
    quick = ["--set=training.bce.epochs=1", "--set=training.punzi.epochs=1"]
    quick += ["--set=training.punzi.refine=1"]
    quick += ["--set=training.folds=2", "--set=training.bce_equal_budget=false"]
    assert punzi(own_inputs, "evaluate", "-r", "few", *quick) == 0
    assert "3 GeV has " in (text := capsys.readouterr().err)
    assert "not trained on" in text
    rows = (own_inputs / "runs/few/fom.csv").read_text().splitlines()
    head = rows[0].split(",")
    trained = {
        float(cells[head.index("mass_gev")]): cells[head.index("trained")]
        for cells in (row.split(",") for row in rows[1:])
    }
    assert trained == {1.0: "True", 2.0: "False", 3.0: "False", 4.0: "False", 5.0: "True"}


def test_an_option_is_named_and_not_a_line_of_the_file(own_inputs, capsys):
    assert punzi(own_inputs, "select", "--set=windows.n_sigma=-2") == 1
    text = one_line(capsys.readouterr().err)
    assert "--set windows.n_sigma=-2: settings.windows.n_sigma: Input should be greater" in text
    assert "line" not in text


def test_a_sample_that_the_networks_have_seen_confirms_nothing(own_inputs, capsys):
    quick = ["--set=training.bce.epochs=1", "--set=training.punzi.epochs=1"]
    quick += ["--set=training.punzi.refine=1"]
    quick += ["--set=training.folds=2", "--set=training.bce_equal_budget=false"]
    assert punzi(own_inputs, "evaluate", "-r", "seen", *quick) == 0
    for path in own_inputs.glob("*_*.root"):  # new files, the same events
        edit(path.name, lambda c: c)(own_inputs)
    assert punzi(own_inputs, "confirm", "-c", "datasets.yaml", "-r", "seen") == 1
    text = one_line(capsys.readouterr().err)
    assert re.search(r"holds \d+ of \d+ events that the run .* confirms nothing", text)


APPLIED = {
    "momenta in MeV": (
        edit("background_0.root", scaled(1000, *momenta())),
        ["background_0.root"],
        "the momenta look like MeV",
    ),
    "momenta exchanged": (
        edit("background_0.root", swapped("mu_plus_py", "mu_minus_py")),
        ["background_0.root"],
        "mu_plus_py and mu_minus_py exchanged",
    ),
    "-999 for a missing angle": (
        edit(
            "background_0.root",
            lambda c: c | {"photon_recoil_angle": np.full_like(c["mu_plus_e"], -999)},
        ),
        ["background_0.root"],
        "photon_recoil_angle is outside",
    ),
    "the same events under two names": (
        copy("background_0.root", "again.root"),
        ["background_0.root", "again.root"],
        "again.root has the same content as background_0.root",
    ),
    "mostly another energy, the first rows right": (
        edit(
            "background_0.root",
            lambda c: (
                c | {"Ecms": np.where(np.arange(len(c["weight"])) < 4000, 10.57955784, 10.52)}
            ),
        ),
        ["background_0.root"],
        r"background_0.root \(8345 of 12345 rows\) has sqrt\(s\) = 10.5200 GeV",
    ),
}


@pytest.mark.parametrize("mistake", APPLIED)
def test_apply_refuses_what_cannot_be_right(mistake, own_inputs, saved_model, capsys):
    change, files, said = APPLIED[mistake]
    change(own_inputs)
    assert punzi(own_inputs, "apply", str(saved_model), *files, "-o", "out") == 1
    assert re.search(said, one_line(capsys.readouterr().err))
    assert not (own_inputs / "out").exists()


def test_a_few_rows_of_another_energy_are_flagged_wherever_they_stand(
    own_inputs, saved_model, capsys
):
    for name, first in (("begin", True), ("end", False)):
        shutil.copy(own_inputs / "background_0.root", own_inputs / f"{name}.root")
        edit(
            f"{name}.root",
            lambda c, first=first: (
                c
                | {
                    "Ecms": np.where(
                        (np.arange(len(c["weight"])) < 3000) == first, 10.52, 10.57955784
                    )
                }
                if first
                else c
                | {
                    "Ecms": np.where(
                        np.arange(len(c["weight"])) >= len(c["weight"]) - 3000, 10.52, 10.57955784
                    )
                }
            ),
        )(own_inputs)
        assert punzi(own_inputs, "apply", str(saved_model), f"{name}.root", "-o", name) == 0
        with uproot.open(own_inputs / name / f"{name}.friend.root") as file:
            assert int((file["punzi"]["flag"].array(library="np") & 8 > 0).sum()) == 3000


def test_apply_takes_a_configuration_with_columns_only(own_inputs, saved_model, capsys):
    edit("background_0.root", lambda c: {k.replace("mu_plus_px", "px1"): v for k, v in c.items()})(
        own_inputs
    )
    (own_inputs / "columns.yaml").write_text("columns: {mu_plus_px: px1}\n")
    words = ("apply", str(saved_model), "background_0.root", "-o", "out", "-c", "columns.yaml")
    assert punzi(own_inputs, *words) == 0


def test_a_mistake_that_is_wanted_is_accepted_by_name_and_said(own_inputs, capsys):
    edit("background_0*", lambda c: c | {"weight": c["weight"] - 0.15})(own_inputs)
    top(accept=["negative_weights"])(own_inputs)
    assert punzi(own_inputs, "select", "-r", "accepted") == 0
    assert "of the weights are negative" in one_line(capsys.readouterr().err)
    assert "negative_weights" in (own_inputs / "runs/accepted/findings.json").read_text()


def test_half_of_the_momenta_missing_is_said_and_stands_in_the_report(own_inputs, capsys):
    def drop(columns):
        columns["mu_plus_px"][::3] = np.nan
        return columns

    edit("background_0*", drop)(own_inputs)
    assert punzi(own_inputs, "select", "-r", "missing") == 0
    said = one_line(capsys.readouterr().err)
    assert re.search(r"background: \d+ % of the rows have a momentum that is no number", said)
    assert "missing_momenta" in (own_inputs / "runs/missing/findings.json").read_text()


def test_what_the_first_look_found_and_was_accepted_is_kept_for_the_report(own_inputs):
    copy("background_0.root", "data.root")(own_inputs)
    configure(lambda raw: raw["samples"].update(measured=DATA))(own_inputs)
    top(accept=["same_file", "same_events"])(own_inputs)
    assert punzi(own_inputs, "select", "-r", "both") == 0
    text = (own_inputs / "runs/both/findings.json").read_text()
    assert '"same_file"' in text
    assert '"same_events"' in text


def test_the_right_inputs_are_all_good(own_inputs, capsys):
    assert punzi(own_inputs, "check") == 0
    assert "7 files, 29690 rows, 6 data sets: all good" in capsys.readouterr().out


def test_every_name_has_its_section_in_the_documentation():
    from pathlib import Path

    text = (Path(__file__).parent.parent / "docs/mistakes.md").read_text()
    assert set(re.findall(r"^## `(\w+)`$", text, re.MULTILINE)) == set(MISTAKES)
    assert set(REFUSED) < set(MISTAKES)
