"""The text of a first configuration: what was found, and clearly marked what a person must say.

Every place that is a guess ends in `# FILL IN`: the file is valid as it is, but its numbers are not
those of anybody's samples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.config.searches import DEFAULT_SEARCH
from analysis.start.column_map import ColumnMap
from analysis.start.file_groups import Group
from selection.ntuple import CANDIDATES_COLUMN, unescape
from selection.search import Search

FILL_IN = "# FILL IN"
PLAIN = re.compile(r"[A-Za-z_/.][\w/.*{}:+-]*(?<!:)")  # text that YAML reads as it is
WORDS_OF_YAML = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", ".nan", ".inf"}
HEAD = """\
# A search in your own ntuples, as `punzi init` proposes it. Look at every line that ends in
# `{mark}`, then: punzi check -c {path}
# All keys and settings: docs/configuration.md; ntuples: docs/own-ntuples.md.

luminosity_inv_fb: 50            # luminosity the search is planned for   {mark}
"""
SIGNAL = """\
  signal:                        # training needs one                     {mark}
    kind: signal
    files: signal_{{mass}}.root    # one file (or glob) per mass, or {{mass_mev:04d}}
    masses_gev: {{first: 0.5, last: 8.0, step: 0.5}}
    n_generated: 10000           # per mass; leave out if the files record it
"""
BACKGROUND = """\
  background:                    # training needs one                     {mark}
    kind: background
    files: background_*.root
    luminosity_inv_fb: 100       # of the sample; or `weight:`, a branch in events per 1/fb
"""
SETTINGS = """\
# settings:                      # all have defaults
#   training: {networks: 5}
#   plots: {text: own work}
"""


@dataclass(frozen=True)
class Sample:
    """The files of a sample, and what the first of them holds."""

    group: Group
    recorded: bool  # do all say how many events were generated?
    tree: str | None
    found: ColumnMap


def scalar(text: str) -> str:
    """A text as YAML reads it back; quoted unless it is surely plain."""
    is_plain = PLAIN.fullmatch(text) and text.lower() not in WORDS_OF_YAML
    return text if is_plain and "{" not in text[:1] else json.dumps(text, ensure_ascii=False)


def configuration_text(
    path: str,
    search: tuple[str, Search],
    tree: str | None,
    found: ColumnMap | None,
    samples: Sequence[Sample],
) -> str:
    """search: as it was given, and what it is; tree and found: of most samples."""
    lines = [HEAD.format(mark=FILL_IN, path=path)]
    given, definition = search
    if given != DEFAULT_SEARCH:
        lines.append(f"search: {scalar(given)}\n")
    lines.append(
        f"tree: {scalar(tree)}\n" if tree else "# tree: variables              # if not the only\n"
    )
    lines += _candidates(found)
    lines += _columns(definition, found)
    lines.append("samples:")
    taken: set[float] = set()
    for sample in samples:
        group = sample.group
        masses = group.masses_gev or (_free(taken),)
        own = list(_sample(sample, masses, tree, found))
        if group.kind == "signal" and taken & set(masses):
            own = [f"  {FILL_IN}: masses of another sample, too", *map(_commented, own)]
        elif group.kind == "signal":
            taken |= set(masses)
        lines += own
    kinds = {sample.group.kind for sample in samples}
    for kind, text in (("signal", SIGNAL), ("background", BACKGROUND)):
        if kind not in kinds:  # a sample that is not there is shown, not pretended
            shown = text.format(mark=FILL_IN)
            commented = "\n".join(map(_commented, shown.splitlines())) + "\n"
            lines.append(commented if samples else shown)
    return "\n".join([*lines, SETTINGS])


def _commented(line: str) -> str:
    return f"  # {line[2:]}" if line else ""


def _candidates(found: ColumnMap | None) -> Iterator[str]:
    if found is None or CANDIDATES_COLUMN in found.present:
        yield "candidates: unique               # events with one candidate; or `first`, `all`\n"
    elif "candidate" in found.present:
        yield "candidates: first                # the files do not count candidates; or `all`\n"
    else:
        yield "candidates: all                  # the files do not number candidates\n"


def _columns(search: Search, found: ColumnMap | None) -> Iterator[str]:
    if found is None:
        yield "# columns:                       # our column: your branch or basf2 expression"
        yield "#   mu_plus_px: daughter(0, px)\n"
        return
    if not found.columns and not found.missing:
        yield "# columns: all branches have our own names\n"
        return
    yield "columns:                         # our column: your branch or basf2 expression"
    if not found.columns:
        yield "  {}"
    why = {_first_column(search, particle, found): text for particle, text in found.why.items()}
    for column, branch in found.columns.items():
        text = f"   # {why[column]}" if column in why else ""
        mark = f"   {FILL_IN}" if "guess" in text else ""
        yield f"  {column}: {scalar(unescape(branch))}{text}{mark}"
    for column in found.missing:
        meaning = search.columns_meaning.get(column)
        text = f": {meaning.text}" if meaning is not None and meaning.text else ""
        yield f"  # {column}: ...   {FILL_IN}{text}"
    if found.missing:
        used = [cut for cut, text in search.cuts.items() if _uses(text, found.missing)]
        if used:
            off = ", ".join(f"{cut}: null" for cut in used)
            yield f"# cuts: {{{off}}}   # instead of the columns they need: without these cuts"
    yield ""


def _first_column(search: Search, particle: str, found: ColumnMap) -> str | None:
    """Of a particle, among those that are written; its reason stands there for all."""
    own = [str(column) for column in search.particles[particle].values()]
    return next((column for column in found.columns if column in own), None)


def _uses(text: str, columns: Sequence[str]) -> bool:
    return bool(set(re.findall(r"\w+", text)) & set(columns))


def _free(taken: set[float]) -> float:
    """A mass for a sample whose own is not known."""
    return next(mass for mass in (0.001 * i for i in range(1000, 10_000)) if mass not in taken)


def _sample(
    sample: Sample, masses_gev: Sequence[float], tree: str | None, found: ColumnMap | None
) -> Iterator[str]:
    group, own = sample.group, sample.found
    yield f"  {group.name}:"
    yield f"    kind: {group.kind:27}{FILL_IN if group.kind != 'signal' else ''}".rstrip()
    if len(group.patterns) == 1:
        yield f"    files: {scalar(group.patterns[0])}"
    else:
        yield "    files:"
        yield from (f"      - {scalar(pattern)}" for pattern in group.patterns)
    if group.kind == "signal":
        masses = ", ".join(f"{mass:g}" for mass in masses_gev)
        yield f"    masses_gev: [{masses}]" + ("" if group.masses_gev else f"   {FILL_IN}")
        if not sample.recorded:
            yield f"    n_generated: 10000             {FILL_IN}: generated events per mass"
    elif group.kind == "background" and own.weight is not None:
        yield f"    weight: {scalar(own.weight)}   {FILL_IN}: is it in events per 1/fb?"
    else:
        yield f"    luminosity_inv_fb: 100         {FILL_IN}: of this sample"
    if sample.tree is not None and sample.tree != tree:
        yield f"    tree: {scalar(sample.tree)}"
    others = {c: b for c, b in own.columns.items() if found and found.columns.get(c) != b}
    if others:
        pairs = ", ".join(f"{c}: {scalar(unescape(b))}" for c, b in others.items())
        yield f"    columns: {{{pairs}}}   {FILL_IN}: its branches have other names"
    yield ""
