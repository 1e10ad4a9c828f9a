"""The ntuple contract: what an ntuple must hold, and how its branches are named.

Which columns are needed is said by the search. Each is found in the file under a branch of the same
name, under the branch that the configuration gives, or under a basf2 expression such as
`daughter(0, px)`, which basf2 writes to ROOT in escaped form: `daughter__bo0__cm__sppx__bc`.
Energies and momenta in GeV in the lab frame, angles in rad. NaN means missing, as in basf2.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

MOMENTA = tuple(  # of the muon pairs that our simulation writes
    f"mu_{charge}_{part}" for charge in ("plus", "minus") for part in ("px", "py", "pz", "e")
)

# Used where present: the beams of the run, else those of the configuration.
BEAM_COLUMNS = ("beam_px", "beam_py", "beam_pz", "beam_e")
ECMS_COLUMN = "ecms"

# The identity of a row. Where neither run nor event is there, the entry of the file stands for it.
EVENT_COLUMNS = ("experiment", "run", "event", "production")
KEY_COLUMNS = (*EVENT_COLUMNS, "candidate")
CANDIDATES_COLUMN = "n_candidates"
WEIGHT_BRANCH = "__weight__"  # of basf2: 1 for every row

# Columns of every search; those of its particles and cuts have their own names in the file.
DEFAULT_BRANCHES: Mapping[str, str] = {
    "beam_px": "beamPx",
    "beam_py": "beamPy",
    "beam_pz": "beamPz",
    "beam_e": "beamE",
    "ecms": "Ecms",
    "weight": "weight",
    **{name: f"__{name}__" for name in KEY_COLUMNS},  # basf2 writes these by itself
    CANDIDATES_COLUMN: "__ncandidates__",
}

_ESCAPES = {
    " ": "__sp",
    ",": "__cm",
    "(": "__bo",
    ")": "__bc",
    ".": "__pt",
    "+": "__pl",
    "-": "__mi",
    "*": "__mu",
    "/": "__sl",
    "^": "__ha",
    ":": "__cl",
    "=": "__eq",
    "<": "__st",
    ">": "__gt",
    "[": "__so",
    "]": "__sc",
    "{": "__co",
    "}": "__cc",
    "!": "__em",
    "?": "__qm",
    ";": "__sm",
    "#": "__hs",
    "$": "__do",
    "%": "__pr",
    "&": "__am",
    "|": "__pi",
    "@": "__at",
    "~": "__ti",
    "'": "__sq",
    '"': "__dq",
    "\\": "__bl",
    "`": "__to",
    "´": "__tc",
    "°": "__ci",
    "§": "__pa",
}


_UNESCAPED = {code: character for character, code in _ESCAPES.items()}
_ESCAPED = re.compile("|".join(_UNESCAPED))


def escape(expression: str) -> str:
    """Branch name that basf2 gives a variable: `daughter(0, px)` -> `daughter__bo0__cm__sppx__bc`.

    Letters, digits and underscores stay; what has no escape is dropped (MakeROOTCompatible).
    """
    return "".join(
        c if (c.isascii() and c.isalnum()) or c == "_" else _ESCAPES.get(c, "") for c in expression
    )


def unescape(branch: str) -> str:
    """The expression that basf2 wrote under this name; the name itself if it is none."""
    text = _ESCAPED.sub(lambda found: _UNESCAPED[found[0]], branch)
    return text if "(" in text and escape(text) == branch else branch


def find_branch(wanted: str, present: Collection[str]) -> str | None:
    """The branch meant by a plain name, an alias or a basf2 expression; None if there is none."""
    if wanted in present:
        return wanted
    escaped = escape(wanted)
    return escaped if escaped in present else None


def nearest(wanted: str, present: Collection[str]) -> list[str]:
    """The three most similar branch names, for an error message; letter case does not count."""
    by_fold = {name.casefold(): name for name in present}
    close = difflib.get_close_matches(escape(wanted).casefold(), by_fold, n=3, cutoff=0.3)
    return [by_fold[name] for name in close]
