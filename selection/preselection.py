"""Preselection: named cuts, applied in order, and the count of what each leaves.

    valid            all eight momenta (and the beams, where given) are finite
    candidate        the candidate policy: the only one of its event, the first, or all
    muon_id          muonID of both muons > muon_id_min
    recoil_theta     polar angle of the recoil in the lab: the barrel, where photons are seen
    pt_mumu          CM transverse momentum of the pair: against eemumu and radiative pairs
    extra_energy     energy in the calorimeter beside the muons
    photon_veto      no photon along the recoil; NaN = no photon = passes

Values are those of the Belle II search (PRL 124, 141801). A cut set to None is off and its column
is not needed. NaN in any other cut column fails the cut. Weighted counts are kept as integers in
units of 2^-40 events, so that sums are exact and do not depend on how the events were split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from selection.ntuple import CANDIDATES_COLUMN
from selection.table import FEATURES, BoolArray, FloatArray

if TYPE_CHECKING:
    from selection.features import EventKinematics

CandidatePolicy = Literal["unique", "first", "all"]
WEIGHT_UNIT = 2.0**-40


@dataclass(frozen=True)
class Preselection:
    """Thresholds; None switches a cut off."""

    muon_id_min: float | None = 0.5
    recoil_theta_min_deg: float | None = 33.0
    recoil_theta_max_deg: float | None = 124.0
    pt_mumu_min_gev: float | None = 1.0
    extra_energy_max_gev: float | None = 0.4
    photon_recoil_angle_min_deg: float | None = 15.0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the cuts which are on need beside the momenta."""
        needed: list[str] = []
        if self.muon_id_min is not None:
            needed += ["mu_plus_id", "mu_minus_id"]
        if self.extra_energy_max_gev is not None:
            needed.append("extra_energy")
        if self.photon_recoil_angle_min_deg is not None:
            needed.append("photon_recoil_angle")
        return tuple(needed)


def candidate_mask(
    columns: Mapping[str, npt.NDArray[np.generic]], policy: CandidatePolicy, n: int
) -> BoolArray:
    """Rows kept by the policy; `first` means candidate 0."""
    if policy == "unique":
        return np.asarray(columns[CANDIDATES_COLUMN] == 1)
    if policy == "first":
        return np.asarray(columns["candidate"] == 0)
    return np.ones(n, bool)


def named_cuts(
    cuts: Preselection, columns: Mapping[str, FloatArray], event: EventKinematics
) -> dict[str, BoolArray]:
    """Mask of each cut by itself, in the order of application; cuts that are off are left out."""
    masks = {"valid": event.finite}
    if cuts.muon_id_min is not None:
        masks["muon_id"] = np.asarray(
            np.minimum(columns["mu_plus_id"], columns["mu_minus_id"]) > cuts.muon_id_min
        )
    theta = np.ones(len(event.recoil_costheta), bool)
    if cuts.recoil_theta_min_deg is not None:
        theta &= event.recoil_costheta < np.cos(np.radians(cuts.recoil_theta_min_deg))
    if cuts.recoil_theta_max_deg is not None:
        theta &= event.recoil_costheta > np.cos(np.radians(cuts.recoil_theta_max_deg))
    if cuts.recoil_theta_min_deg is not None or cuts.recoil_theta_max_deg is not None:
        masks["recoil_theta"] = theta
    if cuts.pt_mumu_min_gev is not None:
        masks["pt_mumu"] = event.features[FEATURES.index("pt_mumu")] > cuts.pt_mumu_min_gev
    if cuts.extra_energy_max_gev is not None:
        masks["extra_energy"] = np.asarray(columns["extra_energy"] < cuts.extra_energy_max_gev)
    if cuts.photon_recoil_angle_min_deg is not None:
        near = columns["photon_recoil_angle"] < np.radians(cuts.photon_recoil_angle_min_deg)
        masks["photon_veto"] = ~np.asarray(near)
    return masks


def cut_values(columns: Mapping[str, FloatArray], event: EventKinematics) -> dict[str, FloatArray]:
    """Cut -> the quantity it looks at, in the unit of its threshold, for messages."""
    values: dict[str, FloatArray] = {
        "recoil_theta": np.degrees(np.arccos(np.clip(event.recoil_costheta, -1, 1))),
        "pt_mumu": event.features[FEATURES.index("pt_mumu")],
    }
    if "mu_plus_id" in columns and "mu_minus_id" in columns:
        values["muon_id"] = np.minimum(columns["mu_plus_id"], columns["mu_minus_id"])
    if "extra_energy" in columns:
        values["extra_energy"] = columns["extra_energy"]
    if "photon_recoil_angle" in columns:
        values["photon_veto"] = np.degrees(columns["photon_recoil_angle"])
    return values


@dataclass(frozen=True)
class Cutflow:
    """Events left after each named cut; `weighted` in units of 2^-40 events, exact integers."""

    names: tuple[str, ...]
    raw: tuple[int, ...]
    weighted: tuple[int, ...]

    def __add__(self, other: Cutflow) -> Cutflow:
        if self.names != other.names:
            msg = f"cutflows with different cuts cannot be added: {self.names}, {other.names}"
            raise ValueError(msg)
        add = tuple(a + b for a, b in zip(self.raw, other.raw, strict=True))
        weighted = tuple(a + b for a, b in zip(self.weighted, other.weighted, strict=True))
        return Cutflow(self.names, add, weighted)

    @property
    def events(self) -> tuple[float, ...]:
        """Weighted events left after each cut."""
        return tuple(units * WEIGHT_UNIT for units in self.weighted)


def cutflow(
    masks: Mapping[str, BoolArray], weight: FloatArray | float, n: int
) -> tuple[BoolArray, Cutflow]:
    """(events passing all cuts, the count after each of them), starting with `all` events."""
    passing = np.ones(n, bool)
    raw, weighted = [], []
    units = np.rint(np.asarray(weight, np.float64) / WEIGHT_UNIT).astype(np.int64)
    for mask in (passing, *masks.values()):
        passing = passing & mask
        count = int(np.count_nonzero(passing))
        raw.append(count)
        weighted.append(int(units[passing].sum()) if units.ndim else int(units) * count)
    return passing, Cutflow(("all", *masks), tuple(raw), tuple(weighted))
