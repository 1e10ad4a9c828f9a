"""Names of the physics mistakes that are looked for; `accept:` in a configuration lists them.

Those that stop a run give wrong numbers without any other sign; the others are told and do not stop
it. docs/mistakes.md has a section for each, with what is found, how, and what to do.
"""

from __future__ import annotations

from typing import Literal, get_args

Refused = Literal[
    "one_branch_twice",
    "off_shell",
    "energies",
    "other_energy",
    "out_of_range",
    "peak",
    "rows_over_generated",
    "weights_of_one",
    "negative_weights",
    "same_file",
    "same_events",
    "another_process",
    "empty_cut",
    "candidates_apart",
    "swapped",
]
Warned = Literal[
    "heavy_weights", "narrow_peak", "wide_peak", "entry_numbers", "frame", "missing_momenta"
]
Mistake = Literal[Refused, Warned]

REFUSED: tuple[str, ...] = get_args(Refused)
MISTAKES: tuple[str, ...] = get_args(Mistake)
