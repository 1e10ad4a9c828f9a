"""`punzi plot`: all figures of a run, each as PDF and PNG with its numbers beside it.

`plots/figures.json` lists them in order with title and caption: the report is made of it. Rows of
a sample that were lost (`--allow-lost`) are named on every figure made of events.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from analysis.figures.agreement import write_agreement
from analysis.figures.control import control
from analysis.figures.limits import limits
from analysis.figures.readouts import placed
from analysis.figures.results import feature_space, learning, maps, reaches
from analysis.figures.run_results import (
    Drawing,
    RunResults,
    run_results,
    shown_files,
)
from analysis.figures.spectra import features, resolution, spectra
from analysis.limit.blinding import changed_after_unblinding
from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, content_digest, read_json, write_json
from analysis.run.stamps import Stamp, stamp_of
from analysis.select.index import load_selection
from analysis.select.recorded import data_luminosity_inv_fb
from analysis.terminal.console import progress
from analysis.terminal.interrupts import process_pool
from analysis.train.stage import SimulatedEvents
from models.results import to_json
from plots.look import dressed, look_of
from plots.style import in_style, plain_numbers, save
from selection.errors import UserError
from selection.preselection import PRESELECTION

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)

FIXED = (
    *("limit_cross_section", "limit_coupling", "p_values", "sigma_min", "figure_of_merit"),
    *("efficiency_background", "cuts", "loss", "batch_size", "decision_surface", "network"),
    *("widths", "features"),
)
WITHOUT_EVENTS = ("network",)
EXPECTED = 20  # figures without data, for the progress bar


class FigureError(UserError):
    """No figure has the name; the message has the nearest."""


def draw_figures(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, *, workers: int
) -> list[Path]:
    """Bring plots/ up to date; the PNG files in the order of the report.

    Most of the time goes into writing files: with several workers, other processes do that.
    """
    stamp = _stamp(run, config)
    if run.is_current("plot", stamp):
        log.info("plot: up to date")
        return _pictures(run)
    old = {run.path / name for about in load_list(run) for name in about["files"]}
    run.plots.mkdir(parents=True, exist_ok=True)
    results, plots = run_results(run, config, simulated), config.settings.plots
    warning = warning_of(run, network=results.network)
    listed: list[dict[str, Any]] = []
    agreements: list[Mapping[str, Any]] = []
    saved: list[Future[tuple[Path, ...]]] = []
    look = look_of(plots.style, plots.font, plots.width_in)
    files: dict[str, Any] = {"formats": plots.formats, "dpi": plots.dpi, "look": look}
    with _pool(workers) as pool, progress("plot", about_so_many(results)) as advance, dressed(look):
        for drawing in all_drawings(results):
            finished(drawing, warning, dpi=plots.dpi)
            work = (drawing.figure, run.plots / drawing.stem, drawing.numbers)
            if pool is None:
                save(*work, **files)
                advance()
            else:
                saved.append(pool.submit(save, *work, **files))
                saved[-1].add_done_callback(lambda _: advance())
            listed.append(_listed(run, drawing, plots.formats))
            agreements += [drawing.agreement] if drawing.agreement else []
        for future in saved:
            future.result()
    write_json(run.figure_list, listed)
    written = [run.path / name for about in listed for name in about["files"]]
    for path in old - set(written):  # of masses or samples that are no longer shown
        path.unlink(missing_ok=True)
    tables = write_agreement(run, agreements)
    run.finish("plot", stamp, [*written, run.figure_list, *tables])
    log.info("plot: %d figures in %s", len(listed), run.plots)
    return _pictures(run)


def about_so_many(results: RunResults) -> int:
    """Figures to come: with data one for every quantity of every region."""
    search, regions = results.search, results.config.regions
    quantities = 2 + len(search.features) + len(search.cut_variables)
    return EXPECTED + (results.data is not None) * quantities * (1 + len(regions))


def draw_some(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, names: Sequence[str]
) -> list[Path]:
    """Draw only the figures of these names, and leave all others as they are; their PNG files.

    A stage that was current still is: the bytes are the same. One that was not is noted as not
    done, so that no later settings can make it pass for current.
    """
    results, plots = run_results(run, config, simulated), config.settings.plots
    look = look_of(plots.style, plots.font, plots.width_in)
    with dressed(look):
        found = named_drawings(results, names)
    warning = warning_of(run, network=results.network)
    if run.why_due("plot", _stamp(run, config)):
        run.forget("plot")
    run.plots.mkdir(parents=True, exist_ok=True)
    listed = {about["stem"]: about for about in load_list(run)}
    files: dict[str, Any] = {"formats": plots.formats, "dpi": plots.dpi, "look": look}
    for name, drawing in found.items():
        with dressed(look):
            finished(drawing, warning, dpi=plots.dpi)
        save(drawing.figure, run.plots / name, drawing.numbers, **files)
        listed[name] = _listed(run, drawing, plots.formats)
    write_json(run.figure_list, list(listed.values()))
    return [run.plots / f"{name}.png" for name in found]


def named_drawings(results: RunResults, names: Sequence[str]) -> dict[str, Drawing]:
    """The wanted figures by name; those after the last of them are not made."""
    found: dict[str, Drawing] = {}
    seen = []
    for drawing in all_drawings(results):
        seen.append(drawing.stem)
        if drawing.stem in names:
            found[drawing.stem] = drawing
        if len(found) == len(set(names)):
            return found
    missing = next(name for name in names if name not in found)
    near = difflib.get_close_matches(missing, seen, n=3, cutoff=0.4)
    hint = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(seen)}"
    msg = f"this run has no figure {missing!r} ({hint})"
    raise FigureError(msg)


def refuse_unknown(names: Sequence[str], config: Configuration) -> None:
    """Names that no run of this configuration can have, before hours are spent on it."""
    axis = config.definition.axis
    spectra = [f"{q}{s}" for q in (axis.name, axis.mass_name) for s in ("", "_before", "_after")]
    regions = [f"data_{region}_" for region in (PRESELECTION, *config.regions)]
    families = (*regions, "score_map_", "peak_fit_")
    for name in names:
        if name not in (*FIXED, *spectra) and not name.startswith(families):
            near = difflib.get_close_matches(name, [*FIXED, *spectra], n=3, cutoff=0.4)
            several = ", ".join(f"{family}…" for family in families)
            hint = f"nearest: {', '.join(near)}; " if near else f"there are {', '.join(FIXED)}; "
            msg = f"there is no figure {name!r} ({hint}others begin with {several})"
            raise FigureError(msg)


def finished(drawing: Drawing, warning: str, *, dpi: int) -> None:
    """With its warning, if it is made of events, and everything in its place."""
    if warning and drawing.stem not in WITHOUT_EVENTS:
        put_warning(drawing.figure, warning)
    fix_layout(drawing.figure, dpi=dpi)


def all_drawings(results: RunResults) -> Iterator[Drawing]:
    """The figures in the order of the report, one at a time."""
    for group in (
        *(limits, reaches, spectra, control, maps, learning),
        *(feature_space, resolution, features),
    ):
        yield from group(results)


def _pictures(run: RunFolder) -> list[Path]:
    return [run.plots / f"{about['stem']}.png" for about in load_list(run)]


def load_list(run: RunFolder) -> list[dict[str, Any]]:
    """Stem, title, caption and files of the figures that are there; empty if none are."""
    try:
        content: list[dict[str, Any]] = read_json(run.figure_list)
    except (OSError, ValueError):
        return []
    return content


def warning_of(run: RunFolder, *, network: int) -> str:
    """What every figure made of events must say; empty if all is well."""
    lost = lost_text(load_selection(run).lost)
    changed = changed_after_unblinding(run, network=network)
    return "; ".join(text for text in (lost, changed) if text)


def lost_text(lost: Mapping[str, float]) -> str:
    """`Lost rows: 3.1 % of taupair`, the worst first, three at most; empty if nothing was lost."""
    worst = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    shares = [f"{100 * share:.2g} % of {name}" for name, share in worst[:3]]
    more = [f"{len(lost) - 3} more"] if len(lost) > 3 else []
    return f"Lost rows: {', '.join(shares + more)}" if lost else ""


@in_style
def put_warning(figure: Figure, text: str) -> None:
    """One red line: above the figure, or below where the figure has no layout to make room."""
    escaped = text.replace("$", r"\$")
    if figure.get_layout_engine() is None:
        figure.text(0.02, 0.01, escaped, fontsize=6, color="#bd1f01")
    else:
        figure.suptitle(escaped, fontsize=6, color="#bd1f01")


@in_style
def fix_layout(figure: Figure, *, dpi: int) -> None:
    """Find the places of everything once, not once for each file; an engine that is left, even one
    that does nothing, makes matplotlib draw twice for each. At the dpi of the PNG its letters are
    known already when it is written."""
    figure.set_dpi(dpi)
    plain_numbers(figure)
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    figure.set_layout_engine(None)


def _listed(run: RunFolder, drawing: Drawing, formats: Sequence[str]) -> dict[str, Any]:
    """Entry of figures.json; writes the record where there is one."""
    kinds = [*formats, "png", "csv"]
    if drawing.record is not None:
        write_json(run.plots / f"{drawing.stem}.json", to_json(drawing.record))
        kinds.append("json")
    readout = drawing.readout
    return {
        "stem": drawing.stem,
        "title": drawing.title,
        "caption": drawing.caption,
        "region": drawing.region,
        "files": [str((run.plots / f"{drawing.stem}.{k}").relative_to(run.path)) for k in kinds],
        **({} if readout is None else {"readout": placed(readout, drawing.figure)}),
    }


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes that write files; None with one worker. Threads would share matplotlib's style."""
    if workers < 2:
        yield None
        return
    pool = process_pool(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _stamp(run: RunFolder, config: Configuration) -> Stamp:
    return stamp_of(
        files={str(p.relative_to(run.path)): content_digest(p) for p in shown_files(run)},
        plots=config.settings.plots,
        limit=config.settings.limit,
        search=config.definition.plain(),
        regions=config.regions,
        luminosity_inv_fb=config.luminosity_inv_fb,
        data_luminosity_inv_fb=data_luminosity_inv_fb(config),
        sqrt_s_gev=config.beams.sqrt_s_gev,
        samples={name: [sample.kind, sample.label] for name, sample in config.samples.items()},
        code=code_digest("analysis.figures"),
    )
