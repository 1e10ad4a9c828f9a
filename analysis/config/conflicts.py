"""What no single field of a configuration can see: contradictions between fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from analysis.config.samples import SIGNAL_PROCESSES, Background, Data, Signal
from analysis.config.yaml_places import Place, unknown_name
from selection.beams import Beams
from selection.masses import one_of
from selection.ntuple import DEFAULT_BRANCHES
from selection.search import Search

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # what a file system takes
PLACEHOLDER = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")  # {mass}, {mass:.2f}, {mass_mev:04d}
FORMATS = {  # what may stand behind the colon
    "mass": re.compile(r"0?\d?\d?(\.\d)?[fg]?"),
    "mass_mev": re.compile(r"0?\d?\d?d?"),
    "part": re.compile(r"0?\d?\d?d?"),
}


def conflicts(
    samples: Mapping[str, Signal | Background | Data],
    columns: Mapping[str, str],
    beams: Beams,
    searches: Sequence[Search],
) -> list[tuple[Place, str]]:
    """Every contradiction as (place in the configuration, what is wrong).

    searches: those whose columns are used, with the cuts of the search and of every region.
    """
    found: list[tuple[Place, str]] = []
    known = [*dict.fromkeys(c for s in searches for c in s.columns), *DEFAULT_BRANCHES]
    found += _unknown_columns(("columns",), columns, known)
    owner: dict[float, str] = {}
    for name, sample in samples.items():
        for mass in sample.masses if isinstance(sample, Signal) else ():
            if mass in owner:
                text = f"{mass:g} GeV is a mass of {owner[mass]} too; list its files in one sample"
                found.append((("samples", name, "masses_gev"), text))
            owner.setdefault(mass, name)
    for name, sample in samples.items():
        at: Place = ("samples", name)
        if not NAME.fullmatch(name):
            found.append((at, "use letters, digits, - and _ only: the name becomes a folder"))
        found += _unknown_columns((*at, "columns"), sample.columns, known)
        own = sample.beams or beams
        found += [((*at, key), msg) for key, msg in _sample_conflicts(sample, own)]
    return found


def _unknown_columns(
    at: Place, columns: Mapping[str, str], known: Sequence[str]
) -> list[tuple[Place, str]]:
    return [
        ((*at, column), unknown_name(column, known)) for column in columns if column not in known
    ]


def _sample_conflicts(sample: Signal | Background | Data, beams: Beams) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    written = [found for pattern in sample.files for found in PLACEHOLDER.findall(pattern)]
    used = {name for name, _ in written}
    allowed = {"part"} | ({"mass", "mass_mev"} if isinstance(sample, Signal) else set())
    found += [
        ("files", f"{{{name}}} has no meaning here; use {sorted(allowed)}")
        for name in sorted(used - allowed)
    ]
    found += [
        ("files", f"{{{name}:{form}}} has no meaning; write {{mass:.2f}} or {{mass_mev:04d}}")
        for name, form in written
        if name in allowed and not FORMATS[name].fullmatch(form)
    ]
    if isinstance(sample, Signal):
        limit = beams.sqrt_s_gev
        wrong = [m for m in sample.masses if not 0 < m < limit]
        if wrong:
            msg = f"{wrong[0]:g} GeV is out of range: expected 0 < mass < {limit:.3f} GeV"
            found.append(("masses_gev", msg))
        if len(set(sample.masses)) < len(sample.masses):
            found.append(("masses_gev", "a mass is listed twice"))
        found += _count_conflicts(sample)
        if len(sample.masses) > 1 and not used & {"mass", "mass_mev"}:
            found.append(("files", "needs {mass} or {mass_mev}: each mass has its own files"))
    if isinstance(sample, Background) and (sample.luminosity_inv_fb is None) == (
        sample.weight is None
    ):
        state = "neither is" if sample.weight is None else "both are"
        msg = (
            f"give either luminosity_inv_fb or weight (a branch in events per 1/fb); {state} given"
        )
        found.append(("weight", msg))
    return found + _recipe_conflicts(sample, used)


def _count_conflicts(sample: Signal) -> list[tuple[str, str]]:
    """n_generated as a list or mapping must fit the masses; a recipe needs one number."""
    n, masses = sample.n_generated, sample.masses
    if isinstance(n, tuple) and len(n) != len(masses):
        return [("n_generated", f"has {len(n)} numbers for {len(masses)} masses")]
    if isinstance(n, dict):
        odd = [m for m in masses if sample.n_generated_at(m) is None]
        odd += [m for m in n if not one_of(m, masses)]
        if odd:
            return [("n_generated", f"{odd[0]:g} GeV stands only here or only in masses_gev")]
    if sample.simulate is not None and not isinstance(n, int):
        return [("n_generated", "a simulated sample needs one number for all masses")]
    return []


def _recipe_conflicts(sample: Signal | Background | Data, used: set[str]) -> list[tuple[str, str]]:
    recipe = sample.simulate
    if recipe is None:
        return [("files", "{part} needs a simulate recipe")] if "part" in used else []
    found: list[tuple[str, str]] = []
    if (
        len(sample.files) != 1
        or any(c in sample.files[0] for c in "*?[")
        or "://" in sample.files[0]
    ):
        found.append(("files", "a simulated sample needs one local path without * ? or ["))
    if (recipe.parts > 1) != ("part" in used):
        found.append(
            (
                "files",
                f"simulate.parts is {recipe.parts}: "
                + ("put {part} into the path" if recipe.parts > 1 else "drop {part} from the path"),
            )
        )
    is_signal = isinstance(sample, Signal)
    hidden = recipe.signal_mass_gev is not None, recipe.signal_cross_section_fb > 0
    if isinstance(sample, Data) and recipe.process == "pseudodata":
        if recipe.n_generated or recipe.max_rows or recipe.parts != 1:
            text = "pseudodata are one file; luminosity_inv_fb says how many events it has"
            found.append(("simulate", text))
        if hidden[0] != hidden[1]:
            text = "give signal_mass_gev and signal_cross_section_fb together, or neither"
            found.append(("simulate", text))
        return found
    if any(hidden):
        found.append(("simulate", f"{recipe.process} hides no signal; only pseudodata do"))
    if (
        is_signal != (recipe.process in SIGNAL_PROCESSES)
        or isinstance(sample, Data)
        or recipe.process == "pseudodata"
    ):
        found.append(("simulate", f"process {recipe.process} does not fit kind {sample.kind}"))
    elif is_signal and (recipe.n_generated or recipe.max_rows or recipe.parts != 1):
        text = "signal takes n_generated from the sample, one file per mass and no max_rows"
        found.append(("simulate", text))
    elif not is_signal and recipe.n_generated is None:
        found.append(("simulate", "n_generated is missing"))
    return found
