"""The configuration reference, written from the models that check it.

python -m analysis.config.reference > docs/configuration.md
"""

from __future__ import annotations

import json
import sys
from typing import Any

from analysis.config.configuration import Configuration

INTRO = """\
# Configuration reference

Written from the models that check the configuration
(`python -m analysis.config.reference > docs/configuration.md`); a test keeps the two together.
Settings may also be changed on the command line, for example `--set windows.n_sigma=2.5`. A preset
(`default`, `paper`, `authors`) changes the defaults of `training` and `sensitivity`; the values
below are those of `default`.
"""


def reference() -> str:
    """Markdown with one table per model, the top of the file first."""
    schema = Configuration.model_json_schema()
    sections = [("The file", schema)]
    sections += sorted(schema["$defs"].items(), key=lambda item: _order(item[0]))
    return INTRO + "".join(_table(name, model) for name, model in sections)


def _order(name: str) -> tuple[int, str]:
    first = ["Beams", "Signal", "Background", "Data", "MassRange", "Simulate", "Settings"]
    return (first.index(name) if name in first else len(first), name)


def _table(name: str, model: dict[str, Any]) -> str:
    required = set(model.get("required", []))
    about = model.get("description", "").split("\n")[0]
    rows = [
        f"| `{key}` | {_type(field)} | {_default(key, field, required)} "
        f"| {field.get('description', '').replace('|', '/')} |"
        for key, field in model.get("properties", {}).items()
    ]
    head = f"\n## {name}\n\n{about}\n\n| key | type | default | meaning |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        target = field["$ref"].rsplit("/", 1)[-1]
        return f"[{target}](#{target.lower()})"
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    options = field.get("anyOf") or field.get("oneOf")
    if options:
        return " or ".join(_type(option) for option in options)
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return f"name: {_type(inner)}" if isinstance(inner, dict) else "mapping"
    return str(field.get("type", "any")) + _limits(field)


def _limits(field: dict[str, Any]) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    found = [f"{sign} {field[key]:g}" for key, sign in signs.items() if key in field]
    return f" {', '.join(found)}" if found else ""


def _default(key: str, field: dict[str, Any], required: set[str]) -> str:
    if key in required:
        return "required"
    if "default" not in field:
        return "see there" if "$ref" in field else "empty"
    value = field["default"]
    return "see there" if isinstance(value, dict) and value else f"`{json.dumps(value)}`"


if __name__ == "__main__":
    sys.stdout.write(reference())
