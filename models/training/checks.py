"""Did a training succeed? What can be said from the training events alone.

Failed, by rule:
    not better than nothing   final mean sigma_min > 0.9 x that of accepting every event
                              (geometric mean where the loss is a logarithm)
    accepts all, rejects all  signal *and* background have y > 0.5 in more than 99.9 % (less than
                              0.1 %) of their weight
    blind                     no signal event with y > 0.5 at a trained mass

A failed network is kept, marked, and left to the eyes of its user; it must not vanish in a mean.
"""

from __future__ import annotations

import math

import torch

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training.group_sums import Map, SumsBy, group_sums
from models.training.losses import efficiency_and_background, punzi_loss
from models.training.training_set import TrainingSet

WORST_RATIO = 0.9
ALMOST_ALL, ALMOST_NONE = 0.999, 0.001


def failures(
    network: PunziNet,
    data: TrainingSet,
    formula: PunziFormula,
    *,
    geometric: bool,
    sums_by: SumsBy = "auto",
    over: Map = map,
) -> tuple[str, ...]:
    """Reasons why the trained network is no good; empty if none was found."""
    reasons = []
    with torch.no_grad():
        sums = group_sums(network, data.whole, by=sums_by, over=over).numpy()
        accepted = group_sums(
            network, data.whole, quantity="accepted", by=sums_by, over=over
        ).numpy()
    everything = data.group_weight
    mean = punzi_loss(formula, power=0.0 if geometric else None)
    final, accept_all = (mean.slopes(s, data)[0] for s in (sums, everything))
    if geometric:
        final, accept_all = math.exp(final), math.exp(accept_all)
    if not final <= WORST_RATIO * accept_all:
        reasons.append(
            f"final loss {final:.4g} fb is above {WORST_RATIO} x {accept_all:.4g} fb of accepting "
            f"every event"
        )
    n = data.n_masses
    shares = [
        float(accepted[part].sum() / everything[part].sum()) for part in (slice(n), slice(n, None))
    ]
    if min(shares) > ALMOST_ALL:
        reasons.append("accepts all: more than 99.9 % of signal and background have y > 0.5")
    if max(shares) < ALMOST_NONE:
        reasons.append("rejects all: less than 0.1 % of signal and background have y > 0.5")
    efficiency, _ = efficiency_and_background(accepted, data)
    blind = data.mass_gev[(efficiency <= 0) & (everything[:n] > 0)]
    if len(blind):
        masses = ", ".join(f"{m:g}" for m in blind)
        reasons.append(f"no training signal has y > 0.5 at {masses} GeV")
    return tuple(reasons)
