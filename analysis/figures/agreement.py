"""How well data and simulation agree, per figure that shows both, as text and as tables.

A row has region, quantity and what limits/agreement.py finds: chi^2, ndf, p-value, and the joined
bin with the largest pull. `agreement.csv` and `agreement.json` hold one row per figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hist
import numpy as np

from analysis.run.folder import RunFolder, write_csv, write_json
from limits.agreement import Agreement, agreement


def compared(data: hist.Hist, stack: Mapping[str, hist.Hist]) -> Agreement:
    """Data and the sum of the simulation, without under- and overflow."""
    expected = np.sum([h.values() for h in stack.values()], axis=0)
    variance = np.sum([h.variances() for h in stack.values()], axis=0)
    edges, n = np.asarray(data.axes[0].edges), np.asarray(data.values())
    return agreement(edges, n, expected, variance)


def agreement_text(found: Agreement) -> str:
    """One sentence for a caption."""
    if found.ndf == 0:
        return "Too few events are expected for a χ²."
    text = (
        f"χ²/ndf = {found.chi2:.1f}/{found.ndf}, p = {found.p_value:.2g}, statistics of the "
        f"simulation included; largest deviation {found.pull:+.1f}σ from {found.low:.4g} to "
        f"{found.high:.4g}: {found.n_data:.0f} events, {found.n_expected:.1f} expected."
    )
    return text.replace("-", "−")


def write_agreement(run: RunFolder, drawings: Sequence[Mapping[str, Any]]) -> list[Path]:
    """agreement.csv and .json, a row per region and quantity; the files, none without data."""
    if not drawings:
        run.agreement.unlink(missing_ok=True)
        run.agreement_csv.unlink(missing_ok=True)
        return []
    write_json(run.agreement, list(drawings))
    write_csv(run.agreement_csv, list(drawings))
    return [run.agreement, run.agreement_csv]
