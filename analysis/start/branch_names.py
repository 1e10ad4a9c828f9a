"""What the name of a branch says: words, the quantity among them, and whose quantity it is.

    daughter__bo0__cm__sppx__bc   ->  daughter(0, px)   ->  daughter 0 | px
    mup_px, mu_plus_px, muPlusPx  ->  mu plus | px
    px1, p1x, px_1                ->  1 | px
    E2                            ->  2 | e

Names of the centre-of-mass frame, of truth and of errors are set aside: our columns are measured
momenta in the lab. `e` is an energy or an electron: the last one in a name is the energy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from selection.ntuple import unescape

Words = tuple[str, ...]

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_INDEXED = re.compile(r"([pP])(\d+)_?([xyzXYZ])(?![a-zA-Z])")  # p1x
_PARTICLE = re.compile(  # mup, muplus, pim, em
    r"(mu|muon|e|el|ele|electron|pi|pion|k|kaon|lep|lepton|l|track|trk|tau)"
    r"(p|plus|pos|m|minus|neg)"
)

QUANTITIES: Mapping[str, str] = {
    **{name: name for name in ("px", "py", "pz", "pt", "eta", "phi", "theta")},
    **dict.fromkeys(("e", "en", "energy"), "e"),
    "p": "p",
}
KINDS: Mapping[str, str] = {
    **dict.fromkeys(("mu", "muon"), "mu"),
    **dict.fromkeys(("e", "el", "ele", "electron"), "e"),
    **dict.fromkeys(("pi", "pion"), "pi"),
    **dict.fromkeys(("k", "kaon"), "k"),
    **dict.fromkeys(("g", "gamma", "photon"), "gamma"),
    "tau": "tau",
}
CHARGES: Mapping[str, int] = {
    **dict.fromkeys(("plus", "p", "pos", "positive"), 1),
    **dict.fromkeys(("minus", "m", "neg", "negative"), -1),
}
OTHER_FRAMES = {"cm", "cmframe", "rest", "restframe", "star"}
NOT_MEASURED = {"mc", "true", "truth", "gen", "err", "error", "unc", "uncertainty", "pull"}
NO_PARTICLES = {"beam", "beams", "roe", "recoil", "miss", "missing", "ip", "vtx", "boost"}


@dataclass(frozen=True)
class Family:
    """Quantities of one object: what its branches have in common, and the branch of each."""

    words: Words
    branches: Mapping[str, str]  # quantity -> branch

    @property
    def kind(self) -> str | None:
        return next((KINDS[word] for word in self.words if word in KINDS), None)

    @property
    def charge(self) -> int | None:
        return charge_of(self.words)

    @property
    def number(self) -> int | None:
        """The last number of its name: the 1 of `px1`, the 0 of `daughter(0, px)`."""
        return next((int(word) for word in reversed(self.words) if word.isdigit()), None)


def words_of(branch: str) -> Words:
    """`daughter(0, useCMSFrame(px))` -> daughter 0 use cms frame px."""
    text = unescape(branch).replace("__pl", " plus ").replace("__mi", " minus ")
    text = _INDEXED.sub(r" \1\3 \2 ", text)
    words: list[str] = []
    for word in _WORD.findall(text):
        found = _PARTICLE.fullmatch(word.lower())
        words += found.groups() if found else [word.lower()]
    return tuple(words)


def is_lab_measurement(words: Collection[str]) -> bool:
    """Neither in another frame nor truth nor an error."""
    aside = OTHER_FRAMES | NOT_MEASURED
    return not any(word in aside or word.startswith("cms") for word in words)


def charge_of(words: Words) -> int | None:
    """Sign in the name; a single letter counts only behind a particle, `mu_p`."""
    for before, word in zip(("", *words), words, strict=False):
        if word in CHARGES and (len(word) > 1 or before in KINDS):
            return CHARGES[word]
    return None


def families(branches: Collection[str]) -> list[Family]:
    """The objects that the branches belong to, in the order in which they appear."""
    found: dict[Words, dict[str, str]] = {}
    for branch in branches:
        words = words_of(branch)
        place = _place_of_quantity(words)
        if place is None or not is_lab_measurement(words) or NO_PARTICLES & set(words):
            continue
        rest = words[:place] + words[place + 1 :]
        found.setdefault(rest, {}).setdefault(QUANTITIES[words[place]], branch)
    return [Family(words, of) for words, of in found.items()]


def _place_of_quantity(words: Words) -> int | None:
    """The last of px, py, …; else the last energy; a bare p only at the end."""
    places = [i for i, word in enumerate(words) if word in QUANTITIES and word not in ("e", "p")]
    places = places or [i for i, word in enumerate(words) if word == "e"]
    if not places and words:
        end = len(words) - (2 if words[-1].isdigit() and len(words) > 1 else 1)
        places = [end] if words[end] == "p" else []
    return places[-1] if places else None
