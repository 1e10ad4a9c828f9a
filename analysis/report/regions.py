"""Pages of the report that compare data with simulation: the search region, and control regions.

Each has the agreement of every quantity, the worst first, and its figures; a control region also
its changed cuts and its own cutflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.figures.draw import load_list
from analysis.limit.normalisation import factor_lines
from analysis.report.page import bullets, figure, paragraph, table
from analysis.report.tables import cutflow_table
from analysis.run.folder import RunFolder, read_json
from selection.preselection import PRESELECTION

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

HEADS = (
    *("quantity", "χ²", "ndf", "p-value", "largest pull"),
    *("from", "to", "data there", "expected"),
)
ABOUT = (
    "χ² of data and simulation, statistics of both included, in bins joined until each expects ten "
    "events from ten effective rows; {fitted}. The largest pull is that of one joined bin."
)


def region_sections(run: RunFolder, config: Configuration) -> dict[str, tuple[str, str]]:
    """Anchor -> (heading, HTML) of every region; without data only cutflows of control regions."""
    rows: list[dict[str, Any]] = []
    if run.agreement.exists():
        rows = read_json(run.agreement)
    found = {}
    if rows:
        told = factor_lines(run)
        factors = bullets(told) if told else ""
        content = factors + _comparison(run, config, PRESELECTION, rows)
        found["data"] = ("Data beside simulation", content)
    for name, region in config.regions.items():
        changed = [f"{cut}: {text or 'left out'}" for cut, text in region.cuts.items()]
        flow = cutflow_table(
            run.region(name), luminosity_inv_fb=config.luminosity_inv_fb, samples=config.samples
        )
        parts = [
            paragraph("Cuts of the search that are changed here:"),
            bullets(changed),
            flow,
            _comparison(run, config, name, rows) if rows else "",
        ]
        found[f"region-{name}"] = (f"Region {region.label or name}", "\n".join(parts))
    return found


def _comparison(
    run: RunFolder, config: Configuration, region: str, rows: list[dict[str, Any]]
) -> str:
    """The table of a region, worst p-value first, and its figures."""
    own = sorted((row for row in rows if row["region"] == region), key=_order)
    drawn = "\n".join(
        figure(run.path, about, wide=False)
        for about in load_list(run)
        if about.get("region") == region
    )
    wanted = config.normalisation
    fitted = "nothing is fitted"
    if wanted is not None:
        here = " (this one, too)" if region in wanted.regions else ""
        fitted = f"backgrounds have their factors, fitted in {', '.join(wanted.regions)}{here}"
    return (
        f"{paragraph(ABOUT.format(fitted=fitted))}\n{table(HEADS, [_cells(row) for row in own])}\n"
        f'<div class="figures">\n{drawn}\n</div>'
    )


def _order(row: dict[str, Any]) -> float:
    return float(row["p_value"]) if row["ndf"] else 2.0


def _cells(row: dict[str, Any]) -> list[str]:
    if not row["ndf"]:
        return [row["quantity"], *["–"] * (len(HEADS) - 1)]
    p = row["p_value"]
    return [
        row["quantity"],
        f"{row['chi2']:.1f}",
        f"{row['ndf']}",
        f"{p:.2g}" if p >= 1e-4 else f"{p:.0e}",
        f"{row['pull']:+.1f}".replace("-", "−"),
        f"{row['low']:.4g}".replace("-", "−"),
        f"{row['high']:.4g}".replace("-", "−"),
        f"{row['n_data']:,.0f}",
        f"{row['n_expected']:,.1f}",
    ]
