"""Which inputs, configuration, versions and code made a result."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from analysis.run.code import PACKAGES, ROOT, code_digest

LIBRARIES = ("awkward", "coffea", "hist", "iminuit", "numba", "numpy", "torch", "uproot", "vector")


def provenance(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values, for JSON."""
    return {
        "configuration": config,
        "inputs": inputs,
        "versions": {
            "punzi": version("punzi"),
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        "git_commit": _git_commit(),
        "code": code_digest(*PACKAGES),
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
