"""Constants of the tree-level cross sections.

    alpha          1/137.036 at zero momentum transfer
    1 / GeV^2      3.893794e11 fb

How alpha runs: simulation.vacuum_polarisation.
"""

from __future__ import annotations

ALPHA = 1 / 137.036
FB_GEV2 = 3.893793721e11
TAU_MASS_GEV = 1.77693  # PDG 2024
PION_MASS_GEV = 0.13957039
