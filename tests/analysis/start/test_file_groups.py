"""Files make samples by their names, and what is written finds exactly these files again."""

import pytest

from analysis.start.file_groups import grouped


@pytest.mark.parametrize(
    ("files", "pattern", "masses"),
    [
        (
            ["signal_0.5.root", "signal_1.root", "signal_2.5.root"],
            "signal_{mass}.root",
            (0.5, 1, 2.5),
        ),
        (["in/signal_1.00.root", "in/signal_2.50.root"], "in/signal_{mass:.2f}.root", (1, 2.5)),
        (["zp_0500_a.root", "zp_1000_a.root"], "zp_{mass_mev:04d}_a.root", (0.5, 1)),
        (["zprime_m500.root", "zprime_m1500.root"], "zprime_m{mass_mev}.root", (0.5, 1.5)),
        (["v2/sig_run3_4.root", "v2/sig_run3_5.root"], "v2/sig_run3_{mass}.root", (4, 5)),
    ],
)
def test_masses_are_read_from_the_names_of_signal(files, pattern, masses):
    (group,) = grouped(files)
    assert (group.kind, group.patterns, group.masses_gev) == ("signal", (pattern,), masses)


@pytest.mark.parametrize("files", [["signal_a.root"], ["signal_99999.root", "signal_2.root"]])
def test_where_the_names_tell_no_mass_none_is_invented(files):
    assert all(group.masses_gev == () for group in grouped(files)[:1])


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("taupair_0.root", "background"),
        ("data_exp7.root", "data"),
        ("uproot-Zmumu.root", "background"),
    ],
)
def test_the_kind_is_told_by_a_word(file, kind):
    (group,) = grouped([file])
    assert group.kind == kind


def test_many_files_are_a_pattern_only_if_it_finds_these_and_no_other(tmp_path):
    names = [str(tmp_path / f"taupair_{i}.root") for i in range(5)]
    for name in names:
        (tmp_path / name).touch()
    (group,) = grouped(names)
    assert group.patterns == (str(tmp_path / "taupair_*.root"),)
    (group,) = grouped(names[:4])
    assert group.patterns == tuple(names[:4])


def test_every_file_is_in_one_group_and_every_group_has_its_own_name():
    files = ["a/x_1.root", "b/x_1.root", "a/x_2.root", "a/x_1.root", "7.root", "8.root"]
    groups = grouped(files)
    assert sorted(f for g in groups for f in g.files) == sorted(set(files))
    assert len({g.name for g in groups}) == len(groups)


def test_a_name_with_characters_of_a_pattern_stands_for_itself():
    (group,) = grouped(["a[1].root"])
    assert group.patterns == ("a[[]1].root",)
