"""Where a search comes from: its name, a file beside the configuration, or the text itself.

    search: dimuon_recoil          one that comes with the package
    search: my_search.yaml         a file, relative to the configuration
    search: {particles: ...}       written out

`features:` and `cuts:` of the configuration add to it, replace by name, or switch off with null.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from analysis.config.yaml_places import NOT_YAML, listing, plain_yaml
from selection.definition import search_from
from selection.errors import UserError
from selection.expressions import nearest_name
from selection.search import Search

DEFAULT_SEARCH = "dimuon_recoil"
MAX_BYTES = 200_000
SUFFIXES = (".yaml", ".yml")


class NoSearchError(UserError):
    """A search that is not there or cannot be read."""


def shipped_names() -> list[str]:
    folder = files("selection") / "searches"
    return sorted(
        p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml")
    )


def plain_search(given: Any, *, folder: Path) -> Any:
    """The plain values of a search, however it was given; `folder` anchors paths."""
    if not isinstance(given, str):
        return given
    if given.endswith(SUFFIXES):
        path = folder / Path(given).expanduser()
        try:
            if path.stat().st_size > MAX_BYTES:
                msg = f"{path} is larger than {MAX_BYTES // 1000} kB; this is no definition"
                raise NoSearchError(msg)
            return _read(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            msg = f"the search {path} cannot be read: {error}"
            raise NoSearchError(msg) from None
    names = shipped_names()
    if given not in names:
        near = nearest_name(given, names)
        msg = f"no search {given!r}; there are {', '.join(names)}, or a file ending in .yaml{near}"
        raise NoSearchError(msg)
    return _read((files("selection") / "searches" / f"{given}.yaml").read_text("utf-8"), given)


@lru_cache(maxsize=8)
def shipped_search(name: str = DEFAULT_SEARCH) -> Search:
    """A search that comes with the package."""
    return search_from(plain_search(name, folder=Path()))


def _read(text: str, where: str) -> Any:
    try:
        _, values, found = plain_yaml(text)
    except NOT_YAML as error:
        msg = f"{where} is not valid YAML: {error}"
        raise NoSearchError(msg) from None
    if found:
        raise NoSearchError(listing(where, found))
    return values
