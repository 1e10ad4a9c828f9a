"""Did a training succeed? What can be said from the training events alone.

Failed, by rule:
    not better than nothing   final loss > 0.9 x the loss of accepting every event
                              (with the log loss: the geometric mean of sigma_min)
    accepts all, rejects all  signal *and* background have y > 0.5 in more than 99.9 % (less than
                              0.1 %) of their weight
    blind                     no signal event with y > 0.5 at a trained mass

A failed network is kept, marked, and left to the eyes of its user; it must not vanish in a mean.
"""

from __future__ import annotations

import math

import torch

from models.group_sums import Form, Map, group_sums
from models.losses import efficiency_and_background, punzi_loss
from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training_set import TrainingSet

WORST_RATIO = 0.9


def failures(
    network: PunziNet,
    data: TrainingSet,
    formula: PunziFormula,
    *,
    log: bool,
    form: Form = "auto",
    over: Map = map,
) -> tuple[str, ...]:
    """Reasons why the trained network is no good; empty if none was found."""
    reasons = []
    with torch.no_grad():
        sums = group_sums(network, data.whole, form=form, over=over)
        accepted = group_sums(network, data.whole, quantity="accepted", form=form, over=over)
        everything = torch.from_numpy(data.group_weight)
        losses = [float(punzi_loss(s, data, formula, log=log)) for s in (sums, everything)]
    final, accept_all = map(math.exp, losses) if log else losses
    if not final <= WORST_RATIO * accept_all:
        reasons.append(
            f"final loss {final:.4g} fb is above {WORST_RATIO} x {accept_all:.4g} fb of accepting "
            f"every event"
        )
    n = data.n_masses
    shares = [
        float(accepted[part].sum() / everything[part].sum()) for part in (slice(n), slice(n, None))
    ]
    if min(shares) > 0.999:
        reasons.append("accepts all: more than 99.9 % of signal and background have y > 0.5")
    if max(shares) < 0.001:
        reasons.append("rejects all: less than 0.1 % of signal and background have y > 0.5")
    efficiency, _ = efficiency_and_background(accepted, data)
    blind = data.mass_gev[((efficiency <= 0) & (everything[:n] > 0)).numpy()]
    if len(blind):
        masses = ", ".join(f"{m:g}" for m in blind)
        reasons.append(f"no training signal has y > 0.5 at {masses} GeV")
    return tuple(reasons)
