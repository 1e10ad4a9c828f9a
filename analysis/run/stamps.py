"""Stamps: all that a stage depends on, by name, so that one that is out of date can say why.

    stamp = {name: value}      inputs, settings and code; records become one entry per field,
                               long values their hash

A stage is current while every entry is what it was when the stage ended and its files are there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ConfigDict, TypeAdapter

Stamp = Mapping[str, str]

# records, paths and tuples as JSON knows them; nan stays nan
PLAIN = TypeAdapter[Any](Any, config=ConfigDict(ser_json_inf_nan="constants"))
LONGEST = 30  # characters of a value that is kept as it is, to be shown; hashes are longer
HASH = "#"  # begins a hash; no JSON text begins so
NEVER = "not done yet"


def plain_text(value: Any) -> str:
    """The same text for the same content, whatever the machine."""
    return json.dumps(PLAIN.dump_python(value, mode="json"), sort_keys=True, allow_nan=True)


def text_digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def stamp_of(**parts: Any) -> Stamp:
    """Entries of named parts: `limit={"level": 0.9}` is the entry `limit.level`."""
    plain = PLAIN.dump_python(parts, mode="json")
    texts = ((name, plain_text(value)) for name, value in _entries("", plain))
    return {name: t if len(t) <= LONGEST else HASH + text_digest(t) for name, t in texts}


def _entries(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Mappings are opened, and lists of mappings; an empty one is a value."""
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        value = {str(number): item for number, item in enumerate(value)}
    if not isinstance(value, dict) or not value:
        yield name, value
        return
    for key, item in value.items():
        yield from _entries(f"{name}.{key}" if name else str(key), item)


def differences(before: Stamp, now: Stamp) -> tuple[str, ...]:
    """What differs, in words; empty if nothing does."""
    names = [*now, *(name for name in before if name not in now)]
    return tuple(_words(n, before.get(n), now.get(n)) for n in names if before.get(n) != now.get(n))


def _words(name: str, before: str | None, now: str | None) -> str:
    if before is None:
        return f"{name} is new"
    if now is None:
        return f"{name} is gone"
    if HASH in (before[0], now[0]):
        return f"{name} changed"
    return f"{name} was {before}, is {now}"
