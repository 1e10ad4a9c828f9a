"""`punzi doctor`: what this machine has for a run, and what is missing, in one table.

Nothing heavy is imported: versions are read from what pip wrote, compiled code from its files.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.run.code import PACKAGES, ROOT
from analysis.terminal import console
from selection.kernel import cache_folder

GIB = 2**30
COMPILED = ("*.nbi", "*.nbc")  # of numba: index and machine code
_REQUIREMENT = re.compile(
    r"([\w.-]+)\s*((?:[<>=!~]=?[\w.]+,?)*)\s*(?:;\s*extra == ['\"](\w+)['\"])?"
)


@dataclass(frozen=True)
class Finding:
    """One line of the table; good: True, False, or None where nothing is to be judged."""

    name: str
    text: str
    good: bool | None = None


@dataclass(frozen=True)
class Requirement:
    """A package that is needed: the lowest version, the first that is too new, and for what."""

    package: str
    at_least: str | None
    below: str | None
    extra: str | None


def print_doctor() -> bool:
    """Show everything; True if a run is possible here."""
    found = list(findings())
    for f in found:
        sign = {True: "ok", False: "NO", None: ""}[f.good]
        console.stdout.print(f"{sign:3} {f.name:13} {f.text}", markup=False, soft_wrap=True)
    return all(f.good is not False for f in found)


def findings() -> Iterator[Finding]:
    """Versions, machine, packages, compiled code, in this order."""
    version = importlib.metadata.version("punzi")
    yield Finding("punzi", f"{version} in {ROOT}")
    yield Finding("Python", f"{platform.python_version()}, {platform.platform()}")
    yield Finding("cores", f"{_usable_cores()} of {os.cpu_count()} may be used")
    yield _memory()
    yield Finding(
        "disk", f"{shutil.disk_usage(Path.cwd()).free / GIB:.0f} GiB free in {Path.cwd()}"
    )
    needed = [requirement(text) for text in importlib.metadata.requires("punzi") or ()]
    yield _core([r for r in needed if r.extra is None])
    for extra in dict.fromkeys(r.extra for r in needed if r.extra is not None):
        yield _extra(extra, [r for r in needed if r.extra == extra])
    yield _compiled_packages()
    yield _compiled_searches()


def requirement(text: str) -> Requirement:
    """Of the text in pyproject.toml: `torch>=2.6,<2.14`, `dask>=2025.1; extra == "dask"`."""
    found = _REQUIREMENT.match(text)
    if found is None:
        return Requirement(text, None, None, None)
    limits = dict(re.findall(r"([<>=!~]=?)([\w.]+)", found[2]))
    return Requirement(found[1], limits.get(">="), limits.get("<"), found[3])


def problem(r: Requirement) -> str | None:
    """Why the installed package does not do; None if it does."""
    try:
        have = importlib.metadata.version(r.package)
    except importlib.metadata.PackageNotFoundError:
        return f"{r.package} is missing"
    if r.at_least is not None and _numbers(have) < _numbers(r.at_least):
        return f"{r.package} {have} is older than {r.at_least}"
    if r.below is not None and _numbers(have) >= _numbers(r.below):
        return f"{r.package} {have} is not below {r.below}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """2026.9.0rc1 -> (2026, 9), without zeros at the end: 1.0 is 1."""
    leading = re.match(r"\d+(\.\d+)*", version)
    parts = [int(part) for part in leading[0].split(".")] if leading else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _usable_cores() -> int:
    """Fewer than there are where a batch system or a container says so."""
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known is not None else os.cpu_count() or 1


def _memory() -> Finding:
    about = dict(re.findall(r"(\w+):\s+(\d+) kB", _read(Path("/proc/meminfo"))))
    if not {"MemTotal", "MemAvailable"} <= set(about):
        return Finding("memory", "not known")
    total, free = (int(about[key]) / 2**20 for key in ("MemTotal", "MemAvailable"))
    return Finding("memory", f"{free:.1f} of {total:.1f} GiB free")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _core(needed: Sequence[Requirement]) -> Finding:
    problems = [text for r in needed if (text := problem(r))]
    shown = ", ".join(f"{n} {_version(n)}" for n in ("numpy", "numba", "torch", "coffea", "uproot"))
    text = "; ".join(problems) or f"all {len(needed)} found: {shown}, …"
    return Finding("packages", text, good=not problems)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def _extra(name: str, needed: Sequence[Requirement]) -> Finding:
    """Without an extra a run is possible: what it is for is told by the command that wants it."""
    problems = [text for r in needed if (text := problem(r))]
    if not problems:
        return Finding(name, ", ".join(f"{r.package} {_version(r.package)}" for r in needed), True)
    how = f'pip install "punzi[{name}]"'
    return Finding(name, f"not installed ({'; '.join(problems)}); {how}")


def _compiled_packages() -> Finding:
    """numba keeps compiled functions beside their sources, or for the user if it cannot write."""
    own = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(own)] if own else [ROOT / package for package in PACKAGES]
    where = own or f"__pycache__ of {ROOT}"
    if not own and not all(os.access(folder, os.W_OK) for folder in folders):
        folders = [Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"]
        where = f"{folders[0]} ({ROOT} is read-only)"
    return Finding("compiled", _told(folders, where))


def _compiled_searches() -> Finding:
    folder = cache_folder()
    above = next(p for p in (folder, *folder.parents) if p.exists())
    if not os.access(above, os.W_OK):
        text = f"{folder} cannot be written: compiled anew in every process; set PUNZI_CACHE_DIR"
        return Finding("searches", text, good=False)
    return Finding("searches", _told([folder], str(folder)))


def _told(folders: Sequence[Path], where: str) -> str:
    files = [f for folder in folders for kind in COMPILED for f in folder.rglob(kind)]
    if not files:
        return f"nothing compiled yet in {where}: the first run compiles (once)"
    size = sum(file.stat().st_size for file in files) / 2**20
    functions = sum(file.suffix == ".nbi" for file in files)
    return f"{functions} functions, {size:.1f} MiB in {where}"
