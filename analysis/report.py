"""`punzi report`: the whole run on one self-contained page, `report.html`.

Summary first, then tables, all figures, configuration and provenance. The same run gives the same
bytes: there is no date on the page, the code's version says when.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from analysis.check import FileReport
from analysis.chunks import fingerprint
from analysis.config import Configuration
from analysis.datasets import Dataset
from analysis.evaluate import load_ensembles, load_figures
from analysis.figures import load_list
from analysis.report_page import (
    bullets,
    details,
    figure,
    link,
    page,
    paragraph,
    preformatted,
    table,
)
from analysis.report_summary import Evidence, Findings, findings
from analysis.report_tables import cutflow_table, reach_table
from analysis.runs import RunFolder, provenance, write_json, write_text
from analysis.select import load_selection
from analysis.train import WINDOWS, failed_networks, load_history
from analysis.windows_file import load_fits

log = logging.getLogger(__name__)

REPORT = "report.html"
WIDE = ("features",)  # figures across the page
FILES = {
    "config.yaml": "configuration, resolved",
    "cutflow.json": "cutflow of all data sets",
    "histograms.root": "histograms for ROOT",
    "histograms.json": "the same, uhi JSON",
    "windows.json": "mass windows and fits",
    "fom.csv": "all figures of merit",
    "fom.json": "the same, with ensembles",
    "provenance.json": "inputs, versions, code",
    "log.txt": "log",
}


class ReportError(Exception):
    """There is nothing to report yet; the message says which command comes first."""


def write_report(run: RunFolder, config: Configuration, datasets: Sequence[Dataset]) -> Path:
    """Write config.yaml, provenance.json and report.html; the path of the report."""
    if not load_list(run):
        msg = f"{run.path} has no figures; run `punzi plot -r {run.name}` first"
        raise ReportError(msg)
    plain = config.model_dump(mode="json")
    origin = provenance(plain, input_files(datasets))
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    write_text(run / "config.yaml", text)
    write_json(run / "provenance.json", origin)
    found = findings(evidence(run, config))
    sections = {
        "summary": ("Summary", _summary(found)),
        "cutflow": ("Cutflow", cutflow_table(run, config)),
        "reach": ("Reach", reach_table(load_ensembles(run))),
        "figures": ("Figures", _figures(run)),
        "configuration": ("Configuration", details("datasets and settings", preformatted(text))),
        "provenance": ("Provenance", _provenance(run, origin)),
    }
    about = (
        f"e⁺e⁻ → μ⁺μ⁻ Z′(invisible), {config.luminosity_inv_fb:g} fb⁻¹ at "
        f"√s = {config.beams.sqrt_s_gev:.2f} GeV · {config.settings.plots.text}"
    )
    html = page(f"Run {run.name}", sections, head=paragraph(about, "about"))
    write_text(run / REPORT, html)
    log.info("report: %s", run / REPORT)
    return run / REPORT


def evidence(run: RunFolder, config: Configuration) -> Evidence:
    """The results of a run that its summary is drawn from."""
    networks = range(config.settings.training.networks)
    fits, _ = load_fits(run / WINDOWS)
    return Evidence(
        figures=load_figures(run),
        means=load_ensembles(run),
        failed=failed_networks(run, networks),
        networks=len(networks),
        notes={i: load_history(run, i)["notes"] for i in networks},
        fits=fits,
        lost=load_selection(run).lost,
    )


def input_files(datasets: Sequence[Dataset]) -> dict[str, dict[str, str]]:
    """Data set -> file -> fingerprint of its content; files behind a URL are not opened again."""
    return {ds.name: {file: _fingerprint(file) for file in ds.files} for ds in datasets}


def _fingerprint(file: str) -> str:
    if "://" in file:
        return "remote"
    try:
        return fingerprint(FileReport(file, size_bytes=Path(file).stat().st_size))
    except OSError:
        return "missing"


def _summary(found: Findings) -> str:
    parts = [
        f'<div class="verdict {found.state}">{paragraph(found.verdict)}</div>',
        bullets(found.sentences),
    ]
    if found.ratios:
        rows = [[name, *(f"{r:.2f}" for r in values)] for name, values in found.ratios.items()]
        parts.append(paragraph("σ_min ratios on held-out events; below 1 the first is better:"))
        parts.append(table(["", *found.bins], rows))
    if found.warnings:
        parts += ["<h3>Warnings</h3>", bullets(found.warnings)]
    return "\n".join(parts)


def _figures(run: RunFolder) -> str:
    listed = load_list(run)
    drawn = "\n".join(figure(run.path, about, wide=about["stem"] in WIDE) for about in listed)
    return f'<div class="figures">\n{drawn}\n</div>'


def _provenance(run: RunFolder, origin: dict[str, Any]) -> str:
    code = {"git commit": origin["git_commit"], "code": origin["code"], **origin["versions"]}
    files = [
        f"<li>{link(name, name)}: {text}</li>"
        for name, text in FILES.items()
        if (run / name).exists()
    ]
    prints = [[ds, f, p] for ds, of_files in origin["inputs"].items() for f, p in of_files.items()]
    return "\n".join(
        [
            table(["", "version"], [[name, str(value)] for name, value in code.items()]),
            "<h3>Files of this run</h3>\n<ul>\n" + "\n".join(files) + "\n</ul>",
            details(
                f"{len(prints)} input files", table(["data set", "file", "fingerprint"], prints)
            ),
        ]
    )
