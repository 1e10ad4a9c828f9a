"""The command `punzi`: options in, stages out, and a clear last line whatever happens."""

from __future__ import annotations

import errno
import gc
import io
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.terminal import console
from analysis.terminal.compiling import alone_in_process
from analysis.terminal.interrupts import notice_interrupts
from analysis.terminal.options import (
    CORES,
    ChunkOption,
    ClusterOption,
    ConfigOption,
    Executor,
    ExecutorOption,
    LostOption,
    NetworksOption,
    RunOption,
    SeedOption,
    SetOption,
    ShellName,
    UnblindOption,
    WorkersOption,
)

if TYPE_CHECKING:
    from analysis.run.executors import Execution

log = logging.getLogger(__name__)

EXAMPLES = (  # typer makes a line of every paragraph
    "Examples:",
    "punzi init mine ntuples/*.root            a first configuration for your files",
    "punzi run -c mine/datasets.yaml -r mine   everything, into runs/mine",
    "punzi status -c mine/datasets.yaml -r mine",
    "punzi apply runs/mine/models/net-00.safetensors new.root -o scored",
    "punzi COMMAND --help                      options of a command",
)
PANELS = {  # of `punzi --help`, and the order of the commands
    "Begin": ("init", "simulate", "check"),
    "Stages in order (each brings those before it up to date)": (
        *("select", "train", "evaluate", "limit", "plot", "report"),
    ),
    "All stages": ("run", "status"),
    "With a finished run": ("apply", "export", "confirm", "batches"),
    "This machine": ("doctor", "completion"),
}

CHUNK = 2**20  # rows: a group of parquet as pyarrow and pandas write it is read at once
PIECE = CHUNK // 2  # of apply, which may take twice as many where a group ends there

# the libraries of a command are a million objects that stay: to look through them every 700 new
# ones for rings that nobody holds takes a third of its start (mypy does the same)
OBJECTS = (100_000, 20, 20)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Search for a particle of unknown mass, from ntuples to the cut that sees it best.",
    epilog="\n\n".join(EXAMPLES),
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        console.stdout.print(f"punzi {version('punzi')}")
        raise typer.Exit


INTERRUPTED = 130  # as a shell reports Ctrl-C
USAGE_ERROR: Any = typer.BadParameter.__mro__[2]  # a wrong option or value; typer's own click


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Warnings and errors only.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    console.configure_logging(level)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the new datasets.yaml.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Your ntuples, to look into.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="The demo's configuration.")] = False,
    search: Annotated[str, typer.Option(help="Name or file of the search.")] = "dimuon_recoil",
) -> None:
    """Write a first datasets.yaml for your own ntuples, columns proposed by their names."""
    from analysis.start.command import write_demo, write_first

    if demo and files:
        msg = (
            "--demo writes the configuration of the demo and looks into no files: give one of both"
        )
        raise typer.BadParameter(msg)
    if demo:
        console.stdout.print(f"wrote {write_demo(folder)}", soft_wrap=True, markup=False)
    else:
        write_first(folder, files or [], search=search)


@app.command()
def simulate(
    config: ConfigOption = Path("datasets.yaml"),
    workers: WorkersOption = CORES,
    scale: Annotated[float, typer.Option(min=1e-6, help="Factor on all sample sizes.")] = 1.0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files made with other settings.")
    ] = False,
) -> None:
    """Make the missing files of all samples that have a simulate recipe."""
    from analysis.simulate import simulate_samples

    simulate_samples(config, workers=workers, scale=scale, overwrite=overwrite)


@app.command()
def check(config: ConfigOption = Path("datasets.yaml"), workers: WorkersOption = CORES) -> None:
    """Open every file of every sample and report all problems in one table."""
    from analysis.inputs.check_table import check_inputs

    if not check_inputs(config, workers=workers):
        raise typer.Exit(1)


@app.command()
def select(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    workers: WorkersOption = CORES,
    executor: ExecutorOption = Executor.auto,
    cluster: ClusterOption = None,
    chunk_size: ChunkOption = CHUNK,
    allow_lost: LostOption = False,
    changes: SetOption = None,
) -> None:
    """Select events: ntuples to skim, histograms and cutflow."""
    from analysis import workflow

    execution = _execution(executor, workers, cluster, chunk_size, allow_lost)
    workflow.run_until("select", config, run, execution, changes or [])


@app.command()
def train(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    networks: NetworksOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = CORES,
    executor: ExecutorOption = Executor.auto,
    cluster: ClusterOption = None,
    changes: SetOption = None,
) -> None:
    """Train the networks: windows, weighted BCE, then Punzi-loss."""
    from analysis import workflow

    execution = _execution(executor, workers, cluster)
    workflow.run_until("train", config, run, execution, _changes(changes, networks, seed))


@app.command()
def evaluate(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    networks: NetworksOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = CORES,
    changes: SetOption = None,
) -> None:
    """Cuts and figures of merit of every network at every mass."""
    from analysis import workflow

    execution = _execution(Executor.auto, workers, None)
    workflow.run_until("evaluate", config, run, execution, _changes(changes, networks, seed))


@app.command()
def limit(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    networks: NetworksOption = None,
    seed: SeedOption = None,
    unblind: UnblindOption = False,
    workers: WorkersOption = CORES,
    changes: SetOption = None,
) -> None:
    """Scan, upper limits and p-values; HEPData tables and pyhf workspaces."""
    from analysis import workflow

    execution = _execution(Executor.auto, workers, None)
    wanted = _changes(changes, networks, seed, unblind=unblind)
    workflow.run_until("limit", config, run, execution, wanted)


@app.command(name="apply")
def apply_command(
    model: Annotated[
        Path, typer.Argument(help="Model file, or folder with the net-* files of an ensemble.")
    ],
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Ntuples (more models may come first).")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the results.")],
    config: Annotated[
        Path | None, typer.Option("-c", "--config", help="Column map, tree, beams, weights.")
    ] = None,
    skim: Annotated[
        bool, typer.Option("--skim", help="Copy passing events instead of a friend tree.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what is in the folder.")
    ] = False,
    cut: Annotated[
        float | None, typer.Option(min=0, max=1, help="Pass: score >= cut; else the model's.")
    ] = None,
    workers: WorkersOption = CORES,
    executor: ExecutorOption = Executor.auto,
    cluster: ClusterOption = None,
    chunk_size: ChunkOption = PIECE,
) -> None:
    """Apply a trained cut to new ntuples: friend trees or skims, and spectra."""
    from analysis.apply.command import apply_model, print_applied
    from analysis.apply.plan import Request, models_and_ntuples

    models, ntuples = models_and_ntuples(model, files)
    request = Request(models, ntuples, output, config, skim, overwrite, cut)
    execution = _execution(executor, workers, cluster, chunk_size)
    print_applied(apply_model(request, execution), output)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="ONNX file to write.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
) -> None:
    """Write a model as ONNX, and beside it how basf2 computes its inputs."""
    from analysis.export import export_model

    for path in export_model(model, output, overwrite=overwrite):
        console.stdout.print(f"wrote {path}")


@app.command()
def plot(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    workers: WorkersOption = CORES,
    changes: SetOption = None,
    figures: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Draw only this one, such as sigma_min; may be repeated."),
    ] = None,
) -> None:
    """Draw all figures of a run, or some of them."""
    from analysis import workflow

    execution = _execution(Executor.auto, workers, None)
    if figures:
        workflow.run_figures(figures, config, run, execution, changes or [])
        return
    workflow.run_until("plot", config, run, execution, changes or [])


@app.command()
def report(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    workers: WorkersOption = CORES,
    changes: SetOption = None,
) -> None:
    """Write the report of a run: one HTML page."""
    from analysis import workflow

    execution = _execution(Executor.auto, workers, None)
    workflow.run_until("report", config, run, execution, changes or [])


@app.command("run")
def run_command(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    networks: NetworksOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = CORES,
    executor: ExecutorOption = Executor.auto,
    cluster: ClusterOption = None,
    chunk_size: ChunkOption = CHUNK,
    allow_lost: LostOption = False,
    unblind: UnblindOption = False,
    changes: SetOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done and why; do nothing.")
    ] = False,
) -> None:
    """Everything, from the first stage that is out of date."""
    execution = _execution(executor, workers, cluster, chunk_size, allow_lost)
    wanted = _changes(changes, networks, seed, unblind=unblind)
    if dry_run:
        from analysis.status import print_plan

        print_plan(config, run, execution, wanted)
        return
    from analysis import workflow

    workflow.run_until("report", config, run, execution, wanted)


@app.command()
def status(
    config: ConfigOption = Path("datasets.yaml"),
    run: RunOption = "demo",
    networks: NetworksOption = None,
    seed: SeedOption = None,
    workers: WorkersOption = CORES,
    chunk_size: ChunkOption = CHUNK,
    allow_lost: LostOption = False,
    unblind: UnblindOption = False,
    changes: SetOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For programs, with all reasons.")
    ] = False,
) -> None:
    """Which stages of a run are there, which are out of date, and why."""
    from analysis.status import print_status

    execution = _execution(Executor.auto, workers, None, chunk_size, allow_lost)
    wanted = _changes(changes, networks, seed, unblind=unblind)
    print_status(config, run, execution, wanted, as_json=as_json)


@app.command()
def batches(
    config: ConfigOption = Path("paper.yaml"),
    run: RunOption = "paper",
    workers: WorkersOption = CORES,
    changes: SetOption = None,
) -> None:
    """The batch-size study: one training per batch size."""
    from analysis import workflow

    execution = _execution(Executor.auto, workers, None)
    workflow.run_batches(config, run, execution, changes or [])


@app.command()
def confirm(
    config: Annotated[Path, typer.Option("-c", "--config", help="The fresh sample.")],
    run: RunOption = "demo",
    workers: WorkersOption = CORES,
) -> None:
    """Quote the cuts of a finished run on a sample that no choice was made on."""
    from analysis import workflow

    workflow.run_confirm(config, run, _execution(Executor.auto, workers, None))


@app.command()
def doctor() -> None:
    """Versions, cores, memory, optional packages and compiled code of this machine."""
    from analysis.doctor import print_doctor

    if not print_doctor():
        raise typer.Exit(1)


@app.command()
def completion(shell: Annotated[ShellName, typer.Argument(help="Your shell.")]) -> None:
    """Print a completion script: punzi completion bash > punzi.sh, then source it."""
    from analysis.terminal.completion import completion_script

    click = typer.main.get_command(app)
    script = completion_script(shell.value, click, {"--executor": [e.value for e in Executor]})
    console.stdout.print(script, end="", markup=False, soft_wrap=True)


def _order_commands() -> None:
    """As PANELS has them, whatever their order in this file."""
    panel = {name: title for title, names in PANELS.items() for name in names}
    order = list(panel)
    for command in app.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", ""))
        command.name, command.rich_help_panel = name, panel[name]
    app.registered_commands.sort(key=lambda command: order.index(command.name or ""))


_order_commands()


def _execution(
    executor: Executor,
    workers: int,
    cluster: str | None,
    chunk_size: int = CHUNK,
    allow_lost: bool = False,
) -> Execution:
    from analysis.run.executors import Execution

    return Execution(executor.value, workers, cluster, chunk_size, allow_lost)


def _changes(
    changes: list[str] | None, networks: int | None, seed: int | None, *, unblind: bool = False
) -> list[str]:
    """Options that are settings, in the form of --set."""
    named: dict[str, Any] = {"training.networks": networks, "training.seed": seed}
    named["limit.unblind"] = "true" if unblind else None
    return [*(changes or []), *(f"{k}={v}" for k, v in named.items() if v is not None)]


def main() -> None:
    """Run the command; a person's mistake gets a message, never a traceback."""
    code = None
    gc.set_threshold(*OBJECTS)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that is not UTF-8 can be printed too
        sys.stdout.reconfigure(errors="backslashreplace")
    interrupted = notice_interrupts()
    alone_in_process()
    try:
        code = app(standalone_mode=False)  # returns what typer.Exit carries, and 130 for Ctrl-C
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        if interrupted.is_set():  # in the middle of an import it becomes any other error
            _interrupted()
        _explain(error)
    if code == INTERRUPTED:
        _interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> None:
    from selection.errors import UserError

    if isinstance(error, typer.Abort):
        _interrupted()
    if isinstance(error, USAGE_ERROR):
        error.show()
        sys.exit(error.exit_code)
    if isinstance(error, UserError):
        _fail(str(error), code=1)
    if isinstance(error, OSError) and error.errno in (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
    ):
        _fail(f"cannot write {error.filename or 'a file'}: {error.strerror}", code=1)
    log.debug("details", exc_info=error)
    name = f"{type(error).__module__}.{type(error).__name__}"
    _fail(f"internal error: {name}: {error}\nRun again with -v for details and report it", code=3)


def _interrupted() -> None:
    again = " ".join(["punzi", *sys.argv[1:]])
    _fail(f"interrupted; what is finished is kept, resume with: {again}", code=INTERRUPTED)


def _fail(text: str, *, code: int) -> None:
    console.stderr.print(f"punzi: {text}", style="red", markup=False, soft_wrap=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
