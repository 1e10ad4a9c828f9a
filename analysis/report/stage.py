"""`punzi report`: the whole run on one self-contained page, `report.html`.

Summary first, then tables, all figures, configuration and provenance. The same run gives the same
bytes: there is no date on the page, the code's version says when.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.config.configuration import as_yaml
from analysis.evaluate.comparison_table import bin_texts, ratio_rows
from analysis.evaluate.stage import load_contents, load_ensembles, load_figures
from analysis.figures.draw import load_list
from analysis.inputs.findings import grouped, load_findings
from analysis.inputs.fingerprint import local_fingerprint
from analysis.limit.blinding import changed_after_unblinding
from analysis.limit.limit_table import HEADS, limit_rows, notes, shown_rows, significant_lines
from analysis.limit.stage import load_limits, shown_network
from analysis.report.page import (
    bullets,
    details,
    figure,
    link,
    page,
    paragraph,
    preformatted,
    table,
)
from analysis.report.regions import region_sections
from analysis.report.summary import Outcome, Summary, summary_of
from analysis.report.tables import cutflow_table, reach_table
from analysis.run.folder import RunFolder, content_digest, write_json
from analysis.run.provenance import provenance
from analysis.run.stamps import stamp_of
from analysis.select.index import load_selection
from analysis.train.outcome import failed_networks, remarks
from analysis.train.windows import load_fits
from selection.errors import UserError
from selection.whole_files import write_text

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset

log = logging.getLogger(__name__)

WIDE = ("features",)  # figures across the page


class ReportError(UserError):
    """There is nothing to report yet; the message says which command comes first."""


def write_report(run: RunFolder, config: Configuration, datasets: Sequence[Dataset]) -> Path:
    """Bring provenance.json and report.html up to date; the path of the report."""
    if not load_list(run):
        msg = f"{run.path} has no figures; run `punzi plot -r {run.name}` first"
        raise ReportError(msg)
    origin = provenance(config.model_dump(mode="json"), input_files(datasets))
    results = {str(p.relative_to(run.path)): content_digest(p) for p in run.result_files()}
    stamp = stamp_of(results=results, **origin)
    if run.is_current("report", stamp):
        log.info("report: up to date")
        return run.report
    write_json(run.provenance, origin)
    summary = summary_of(outcome(run, config))
    sections = {
        "summary": ("Summary", _summary(summary)),
        "cutflow": (
            "Cutflow",
            cutflow_table(run, luminosity_inv_fb=config.luminosity_inv_fb, samples=config.samples),
        ),
        **_limits(run),
        "reach": ("Reach", reach_table(load_ensembles(run))),
        **region_sections(run, config),
        "figures": ("Figures", _figures(run)),
        "configuration": (
            "Configuration",
            details("datasets and settings", preformatted(as_yaml(config))),
        ),
        "provenance": ("Provenance", _provenance(run, origin)),
    }
    about = (
        f"{config.definition.title or config.definition.name}, "
        f"{config.luminosity_inv_fb:g} fb⁻¹ at "
        f"√s = {config.beams.sqrt_s_gev:.2f} GeV · {config.settings.plots.text}"
    )
    html = page(f"Run {run.name}", sections, head=paragraph(about, "about"))
    write_text(run.report, html)
    run.finish("report", stamp, [run.report, run.provenance])
    log.info("report: %s", run.report)
    return run.report


def outcome(run: RunFolder, config: Configuration) -> Outcome:
    """The results of a run that its summary is drawn from."""
    section = config.settings.training
    fits, _ = load_fits(run.windows)
    return Outcome(
        figures=load_figures(run),
        means=load_ensembles(run),
        failed=failed_networks(run, section),
        networks=section.networks,
        notes=remarks(run, section),
        fits=fits,
        lost=load_selection(run).lost,
        findings=[*_changed(run, config), *grouped(load_findings(run))],
        left_out_gev=_left_out(run, config),
        contents=load_contents(run),
    )


def _changed(run: RunFolder, config: Configuration) -> list[str]:
    text = changed_after_unblinding(run, network=shown_network(run, config))
    return [f"{text}."] if text else []


def _left_out(run: RunFolder, config: Configuration) -> list[float]:
    """Masses that should have been trained on and had too few events."""
    figures = load_figures(run)[0]
    every = config.settings.windows.train_every
    pairs = enumerate(zip(figures.mass_gev, figures.trained, strict=True))
    return [float(mass) for i, (mass, trained) in pairs if i % every == 0 and not trained]


def input_files(datasets: Sequence[Dataset]) -> dict[str, dict[str, str]]:
    """Data set -> file -> fingerprint of its content; files behind a URL are not opened again."""
    return {ds.name: {file: _fingerprint(file) for file in ds.files} for ds in datasets}


def _fingerprint(file: str) -> str:
    if "://" in file:
        return "remote"
    try:
        return local_fingerprint(Path(file))
    except OSError:
        return "missing"


def _summary(summary: Summary) -> str:
    parts = [
        f'<div class="verdict {summary.state}">{paragraph(summary.verdict)}</div>',
        bullets(summary.sentences),
    ]
    if summary.comparison is not None:
        heads = ["", *(f"{text} GeV" for text in bin_texts(summary.comparison))]
        parts.append(paragraph("σ_min ratios on held-out events; below 1 the first is better:"))
        parts.append(table(heads, ratio_rows(summary.comparison)))
    if summary.warnings:
        parts += ["<h3>Warnings</h3>", bullets(summary.warnings)]
    return "\n".join(parts)


def _limits(run: RunFolder) -> dict[str, tuple[str, str]]:
    """The section of the limits; nothing where no limit was found."""
    if not run.limits.exists():
        return {}
    limits = load_limits(run)
    told = [*significant_lines(limits), *notes(run, limits)]
    about = (
        f"Upper limits at {100 * limits.level:g} % confidence ({limits.method}) for "
        f"{limits.luminosity_inv_fb:g} fb⁻¹."
    )
    rows = limit_rows(limits)
    content = [
        paragraph(about),
        table(HEADS, shown_rows(limits)),
        bullets(told) if told else "",
        details(f"all {len(rows)} scan masses", table(HEADS, rows)),
    ]
    return {"limits": ("Limits", "\n".join(content))}


def _figures(run: RunFolder) -> str:
    listed = [about for about in load_list(run) if not about.get("region")]
    drawn = "\n".join(figure(run.path, about, wide=about["stem"] in WIDE) for about in listed)
    return f'<div class="figures">\n{drawn}\n</div>'


def _provenance(run: RunFolder, origin: dict[str, Any]) -> str:
    code = {"git commit": origin["git_commit"], "code": origin["code"], **origin["versions"]}
    about = {
        run.config: "configuration, resolved",
        run.cutflow: "cutflow of all data sets",
        run.histograms_root: "histograms for ROOT",
        run.histograms: "the same, uhi JSON",
        run.windows: "mass windows and fits",
        run.figures_of_merit_csv: "all figures of merit",
        run.figures_of_merit: "the same, with ensembles",
        run.scan_csv: "window, efficiency and background at every scan mass",
        run.limits_csv: "limits and p-values",
        run.workspaces: "a pyhf workspace per scan mass",
        run.hepdata / "submission.yaml": "tables for HEPData",
        run.agreement_csv: "agreement of data and simulation",
        run.normalisation: "factors of backgrounds, fitted in control regions",
        run.unblinding: "when data were seen after the cut",
        run.provenance: "inputs, versions, code",
        run.log: "log",
    }
    files = [
        f"<li>{link(str(path.relative_to(run.path)), path.name)}: {text}</li>"
        for path, text in about.items()
        if path.exists()
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
