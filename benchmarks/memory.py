"""Memory of this process as Linux counts it.

`getrusage` would not do: what a process used before `exec`, which is what its parent uses, counts
there for the program that it runs.
"""

from __future__ import annotations

from pathlib import Path


def status_bytes(name: str) -> int:
    """VmRSS, now, or VmHWM, the most so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(s for s in lines if s.startswith(f"{name}:")).split()[1]) * 1024


def peak_gb() -> float:
    return status_bytes("VmHWM") / 1e9
