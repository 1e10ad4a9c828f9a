"""The ntuple contract: what a Belle II ntuple must hold, and how its branches are named.

Our columns (left) are found in the file under a branch of the same name, under the branch that
the configuration gives, or under a basf2 expression such as `daughter(0, px)`, which basf2 writes
to ROOT in escaped form: `daughter__bo0__cm__sppx__bc`. Energies and momenta in GeV in the lab
frame, angles in rad. NaN means missing, as in basf2.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

MOMENTA = tuple(
    f"mu_{charge}_{part}" for charge in ("plus", "minus") for part in ("px", "py", "pz", "e")
)

# Columns of the preselection; a cut whose column the ntuple lacks is an error, unless it is off.
CUT_COLUMNS = {
    "mu_plus_id": "muonID of the mu+",
    "mu_minus_id": "muonID of the mu-",
    "extra_energy": "energy in the calorimeter not assigned to the muons, GeV",
    "photon_recoil_angle": "angle between the recoil and the nearest photon, rad; NaN if no photon",
}

# Used where present: the beams of the run, else those of the configuration.
BEAM_COLUMNS = ("beam_px", "beam_py", "beam_pz", "beam_e")
ECMS_COLUMN = "ecms"

# The identity of a row. Where neither run nor event is there, the entry of the file stands for it.
KEY_COLUMNS = ("experiment", "run", "event", "production", "candidate")
CANDIDATES_COLUMN = "n_candidates"
WEIGHT_BRANCH = "__weight__"  # of basf2: 1 for every row

# Our simulation uses basf2's names for the beams.
DEFAULT_BRANCHES: Mapping[str, str] = {
    **{name: name for name in (*MOMENTA, *CUT_COLUMNS)},
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


def escape(expression: str) -> str:
    """Branch name that basf2 gives a variable: `daughter(0, px)` -> `daughter__bo0__cm__sppx__bc`.

    Letters, digits and underscores stay; what has no escape is dropped (MakeROOTCompatible).
    """
    return "".join(
        c if (c.isascii() and c.isalnum()) or c == "_" else _ESCAPES.get(c, "") for c in expression
    )


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
