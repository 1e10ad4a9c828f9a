"""Which code made a result: edited code makes its stages out of date, nothing else does.

    code of a stage = the files of its folder  +  all that they import of ours, to any depth

Imports are read from the sources, those inside functions too; nobody keeps a list. What stands
under `if TYPE_CHECKING:` is left out, since it never runs, and so is `analysis.terminal`: words and
bars decide no number.

Lines that import are found by their first word and parsed alone: a syntax tree of everything costs
five times as much, before each stage. A line of prose that looks like one is parsed with the rest.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("analysis", "limits", "models", "plots", "selection", "simulation")
DECIDES_NOTHING = ("analysis.terminal",)

FOR_TYPES = re.compile(r"^( *)if TYPE_CHECKING:.*\n(?:(?:\1 +.*)?\n)*", re.MULTILINE)
IMPORT = re.compile(r"^ *((?:from +[\w.]+ +)?import +(?:\([^)]*\)|[^\n(]+))", re.MULTILINE)


@cache
def code_digest(*roots: str) -> str:
    """Hash of the sources of modules or packages, `models.training`, and of all they import."""
    found = hashlib.blake2b(digest_size=16)
    for source in sources(*roots):
        found.update(source.relative_to(ROOT).as_posix().encode())
        found.update(source.read_bytes())
    return found.hexdigest()


def sources(*roots: str) -> list[Path]:
    """The files that decide what these modules or packages do, in a fixed order."""
    waiting = [file for root in roots for file in _files(root)]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += imported(file)
    return sorted(found)


def imported(file: Path) -> list[Path]:
    """The files of ours that a source imports when it runs."""
    names = _imports(file.read_text(encoding="utf-8"))
    return [path for name in names if _is_ours(name) for path in _module(name)]


@cache
def _imports(text: str) -> tuple[str, ...]:
    """By the text of a source and not by its name: several stages share most of their files."""
    try:
        return tuple(_names(ast.parse("\n".join(IMPORT.findall(FOR_TYPES.sub("", text))))))
    except SyntaxError:
        return tuple(_names(ast.parse(text)))


def _names(tree: ast.AST) -> Iterator[str]:
    """Every name that may be a module: `a.b` and `a.b.c` of `from a.b import c`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # most of a tree; imports are statements
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from _names(node)


def _is_ours(name: str) -> bool:
    return name.split(".")[0] in PACKAGES and not name.startswith(DECIDES_NOTHING)


def _module(name: str) -> list[Path]:
    path = ROOT.joinpath(*name.split("."))
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


def _files(root: str) -> list[Path]:
    path = ROOT.joinpath(*root.split("."))
    files = sorted(path.rglob("*.py")) if path.is_dir() else _module(root)
    if not files:
        msg = f"there is no code called {root} in {ROOT}"
        raise ValueError(msg)
    return files
