"""Data after the cut are hidden until a person says otherwise, and it is noted when.

`limit.unblind: true` (or `--unblind`) shows and counts them. The first time, and whenever model or
configuration differ from before, `unblinding.json` gets a line: date, and the hashes of both. A
model (networks or cut) that is not the one of the first line was changed after the data had been
seen: every later output says so.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analysis.run.folder import RunFolder, content_digest, digest, read_json, write_json

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)


def data_are_shown(config: Configuration) -> bool:
    """May data be shown after the cut?"""
    has_data = any(sample.kind == "data" for sample in config.samples.values())
    return has_data and config.settings.limit.unblind


def note_unblinding(run: RunFolder, config: Configuration, *, network: int) -> None:
    """Call before data are counted after the cut."""
    model = content_digest(run.model("punzi", network))
    line = {"model": model, "configuration": digest(config.model_dump(mode="json"))}
    known = unblindings(run)
    if not any({k: old[k] for k in line} == line for old in known):
        date = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(run.unblinding, [*known, {"date": date, **line}])
        log.warning("data are unblinded: %s", run.unblinding)


def unblindings(run: RunFolder) -> list[dict[str, Any]]:
    """Date, model and configuration of every time, oldest first."""
    try:
        found: list[dict[str, Any]] = read_json(run.unblinding)
    except FileNotFoundError:
        return []
    return found


def changed_after_unblinding(run: RunFolder, *, network: int) -> str:
    """What every output must say; empty if nobody saw the data, or nothing changed since."""
    known = unblindings(run)
    path = run.model("punzi", network)
    if not known or not path.exists() or known[0]["model"] == content_digest(path):
        return ""
    return f"Model or cut changed after unblinding on {known[0]['date'][:10]}"
