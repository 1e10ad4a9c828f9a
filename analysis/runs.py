"""The run folder: one place for all results of one analysis, safe to interrupt at any moment.

Files appear under their name only when complete. Each stage leaves a stamp, a hash of its inputs,
its settings and the code; a stage whose stamp is current is skipped. A lock keeps a second run out.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import platform
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("awkward", "coffea", "hist", "iminuit", "numba", "numpy", "torch", "uproot", "vector")


class RunError(Exception):
    """The run folder cannot be used as asked."""


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run."""

    path: Path

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def name(self) -> str:
        return self.path.name

    def is_current(self, stage: str, stamp: str) -> bool:
        """True if the stage ended with this stamp and all files it named are still there."""
        try:
            found = json.loads((self.path / "stamps" / f"{stage}.json").read_text())
            return bool(
                found["stamp"] == stamp
                and all((self.path / name).exists() for name in found["files"])
            )
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def finish(self, stage: str, stamp: str, files: Sequence[Path]) -> None:
        """Note that a stage is complete and which files are its results."""
        names = [str(file.relative_to(self.path)) for file in files]
        write_json(self.path / "stamps" / f"{stage}.json", {"stamp": stamp, "files": names})


@contextlib.contextmanager
def open_run(path: Path) -> Iterator[RunFolder]:
    """Make the folder if needed and hold its lock; a second run on it is refused."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("w")
    except OSError as error:
        msg = f"cannot write to the run folder {path}: {error.strerror}; choose another with -r"
        raise RunError(msg) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            msg = f"another punzi is at work in {path}; wait for it or choose another run with -r"
            raise RunError(msg) from None
        for left in path.rglob(".*"):  # half-written files of a run that was killed
            if left.name != ".lock" and left.is_file():
                left.unlink(missing_ok=True)
        yield RunFolder(path)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it at the end, removed on any failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # unique over threads, processes and hosts: a cluster may try the same piece of work twice
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(6)}.tmp{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.filename is None:  # a write that failed does not know where
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        # names of files and branches need not be UTF-8
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Sorted and indented: same content, same bytes."""
    plain = to_jsonable_python(value)
    write_text(path, json.dumps(plain, indent=1, sort_keys=True, allow_nan=True) + "\n")


def digest(*parts: Any) -> str:
    """Hash of plain values; the same for the same content, whatever the machine."""
    text = json.dumps(to_jsonable_python(parts), sort_keys=True, allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def code_digest(*packages: str) -> str:
    """Hash of the sources of our packages: edited code makes its stages out of date."""
    found = hashlib.blake2b(digest_size=16)
    for package in sorted(packages):
        for source in sorted((ROOT / package).rglob("*.py")):
            found.update(source.relative_to(ROOT).as_posix().encode())
            found.update(source.read_bytes())
    return found.hexdigest()


def provenance(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Which inputs, configuration, versions and code made a result."""
    return {
        "configuration": config,
        "inputs": inputs,
        "versions": {
            "punzi": version("punzi"),
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        "git_commit": _git_commit(),
        "code": code_digest("analysis", "models", "plots", "selection", "simulation"),
    }


def _git_commit() -> str:
    try:
        done = subprocess.run(  # noqa: S603
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
