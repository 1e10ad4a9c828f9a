"""What no single field of a configuration can see: contradictions between fields."""

from __future__ import annotations

import re
from collections.abc import Mapping

from analysis.config.samples import Background, Data, Signal
from analysis.config.yaml_places import Place, unknown_name
from selection.beams import MUON_MASS_GEV, Beams
from selection.ntuple import DEFAULT_BRANCHES

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # what a file system takes
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def conflicts(
    samples: Mapping[str, Signal | Background | Data], columns: Mapping[str, str], beams: Beams
) -> list[tuple[Place, str]]:
    """Every contradiction as (place in the configuration, what is wrong)."""
    found: list[tuple[Place, str]] = []
    signals = [name for name, sample in samples.items() if isinstance(sample, Signal)]
    if len(signals) != 1:
        found.append(
            (("samples",), f"exactly one sample of kind signal is needed, found {signals}")
        )
    found += [
        (("columns", column), unknown_name(column, DEFAULT_BRANCHES))
        for column in columns
        if column not in DEFAULT_BRANCHES
    ]
    for name, sample in samples.items():
        at: Place = ("samples", name)
        if not NAME.fullmatch(name):
            found.append((at, "use letters, digits, - and _ only: the name becomes a folder"))
        found += [((*at, key), msg) for key, msg in _sample_conflicts(sample, beams)]
    return found


def _sample_conflicts(sample: Signal | Background | Data, beams: Beams) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    used = {name for pattern in sample.files for name in PLACEHOLDER.findall(pattern)}
    allowed = {"part"} | ({"mass", "mass_mev"} if isinstance(sample, Signal) else set())
    found += [
        ("files", f"{{{name}}} has no meaning here; use {sorted(allowed)}")
        for name in sorted(used - allowed)
    ]
    if isinstance(sample, Signal):
        limit = beams.sqrt_s_gev - 2 * MUON_MASS_GEV
        wrong = [m for m in sample.masses if not 0 < m < limit]
        if wrong:
            msg = f"{wrong[0]:g} GeV is out of range: expected 0 < mass < {limit:.3f} GeV"
            found.append(("masses_gev", msg))
        if len(set(sample.masses)) < len(sample.masses):
            found.append(("masses_gev", "a mass is listed twice"))
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
    if is_signal != (recipe.process == "signal") or isinstance(sample, Data):
        found.append(("simulate", f"process {recipe.process} does not fit kind {sample.kind}"))
    elif is_signal and (recipe.n_generated or recipe.max_rows or recipe.parts != 1):
        text = "signal takes n_generated from the sample, one file per mass and no max_rows"
        found.append(("simulate", text))
    elif not is_signal and recipe.n_generated is None:
        found.append(("simulate", "n_generated is missing"))
    return found
