"""Where in a YAML file a problem is, and how to say it."""

from __future__ import annotations

import difflib
import reprlib
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import yaml

Place: TypeAlias = tuple[str | int, ...]  # keys and indices from the top of the file


MERGE = "tag:yaml.org,2002:merge"  # the key `<<`
MOST_PROBLEMS = 100  # shown of one file; a wrong file may have one on every line


# PyYAML raises plain errors too, for a value that does not fit its tag such as `!!bool maybe`
NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)


def plain_yaml(text: str) -> tuple[yaml.Node | None, Any, list[tuple[int, str]]]:
    """The nodes of a text, which know their lines, its plain values, and flaws by line.

    With flaws no values are made: merges of merges would fill the memory. Raises NOT_YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    found = flaws(root)
    return root, None if found else root and yaml.SafeLoader("").construct_document(root), found


def flaws(root: yaml.Node | None) -> list[tuple[int, str]]:
    """What YAML allows and nobody means: keys written twice, of which it would keep the last; keys
    that are no words, or merge mappings (nested, a few lines of them fill the memory); characters
    such as "\\0" or half of a surrogate pair, which no path and no page can hold.
    """
    found: list[tuple[int, str]] = []
    stack, met = [root], set()
    while stack:
        node = stack.pop()
        if node is None or id(node) in met:
            continue
        met.add(id(node))
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
                    found.append((key.start_mark.line + 1, "a key must be a plain word"))
                    continue
                name = str(key.value)
                if name in seen:
                    found.append((key.start_mark.line + 1, f"{name!r} is given twice"))
                seen.add(name)
                stack += (key, value)
        elif isinstance(node, yaml.SequenceNode):
            stack.extend(node.value)
        elif isinstance(node, yaml.ScalarNode) and not _is_text(node.value):
            found.append((node.start_mark.line + 1, f"{node.value!r} has a control character"))
    return found


def _is_text(value: str) -> bool:
    return all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") for c in value)


def line_of(root: yaml.Node | None, path: Place) -> int | None:
    """Line of the deepest part of `path` that the file has; None for the file as a whole."""
    node, line = root, None
    for part in path:
        if isinstance(node, yaml.MappingNode):
            step = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if step is not None:
                line, node = step[0].start_mark.line + 1, step[1]
        elif (
            isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value)
        ):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def explain(root: yaml.Node | None, problem: Any, schema: dict[str, Any]) -> tuple[int | None, str]:
    """One pydantic problem as (line, text)."""
    loc: Place = problem["loc"]
    # pydantic's tag for the form of a value is no key of the file
    tagged = ("masses_gev", "n_generated", "width", "style")
    path: Place = tuple(p for before, p in pairwise(("", *loc)) if before not in tagged)
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        text = unknown_name(str(path[-1]), _valid_names(schema, path[:-1]))
    elif problem["type"] == "missing":
        text = "is required and missing"
    else:
        found = problem.get("input")
        # reprlib: aliases may make a value of a few lines too large to be written out
        shown = f", found {reprlib.repr(found)}"[:80] if not isinstance(found, dict) else ""
        text = problem["msg"].removeprefix("Value error, ") + shown
    shown_path = path[:2] + path[3:] if path[:1] == ("samples",) else path  # drop pydantic's tag
    return line_of(root, path), f"{dotted(shown_path)}: {text}"


def unknown_name(name: str, valid: Sequence[str] | Mapping[str, Any]) -> str:
    near = [word for word in valid if name and word.startswith(name)]
    near = near or difflib.get_close_matches(name, list(valid), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(valid)}"
    return f"no such key; {hint}"


def _valid_names(schema: dict[str, Any], path: Place) -> list[str]:
    """Names allowed at a place of the configuration, from the models' JSON schema."""
    definitions = schema["$defs"]
    nodes = [schema]

    def expanded(node: dict[str, Any]) -> list[dict[str, Any]]:
        if "$ref" in node:
            return expanded(definitions[node["$ref"].rsplit("/", 1)[-1]])
        inner = [*node.get("anyOf", []), *node.get("oneOf", []), *node.get("allOf", [])]
        return [leaf for option in inner for leaf in expanded(option)] or [node]

    for part in path:
        if part in {"signal", "background", "data"} and len(nodes) > 1:
            nodes = [n for n in nodes if n["properties"].get("kind", {}).get("const") == part]
            continue  # pydantic puts the kind of a sample into the path
        nodes = [
            leaf
            for node in nodes
            for child in [
                node.get("properties", {}).get(str(part), node.get("additionalProperties"))
            ]
            if isinstance(child, dict)
            for leaf in expanded(child)
        ]
    return sorted({name for node in nodes for name in node.get("properties", {})})


def dotted(path: Place) -> str:
    return ".".join(str(part) for part in path) or "file"


def listing(where: str, problems: Sequence[tuple[int | None, str]], total: int = 0) -> str:
    """The problems by line; `total` counts those that are not among them too."""
    total = max(total, len(problems))
    rows = [
        f"  {f'line {line}: ' if line else ''}{text}"
        for line, text in sorted(problems, key=lambda problem: problem[0] or 0)[:MOST_PROBLEMS]
    ]
    more = [f"  ... and {total - len(rows)} more"] if total > len(rows) else []
    return f"{where} has {total} problem{'s' * (total > 1)}:\n" + "\n".join([*rows, *more])
