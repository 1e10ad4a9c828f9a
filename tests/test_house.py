"""The plan of rooms: who may import whom, and what the project says it needs."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from analysis.run.code import _names, imported

ROOT = Path(__file__).resolve().parent.parent
OURS = ("analysis", "limits", "models", "plots", "selection", "simulation")

# one error, one way to write, one way to compile what only kernels call
EVERYONE = {"selection.errors", "selection.whole_files", "selection.compiled"}
ALLOWED = {  # rooms and modules that a room may import beside itself; docs/architecture.md
    "selection": set(),
    "models": {
        *("selection.table", "selection.windows", "selection.masses", "selection.search"),
        "selection.definition",
        "selection.keys",
    },
    "models.training": {"models", "selection.table", "selection.windows", "selection.masses"},
    "models.evaluation": {
        *("models", "models.training"),
        *("selection.table", "selection.windows", "selection.masses"),
    },
    "limits": {"models.results", "selection.beams"},
    "plots": {"models.results"},
    "simulation": {"selection.beams", "selection.ntuple"},
    "analysis.terminal": set(),
    "analysis.config": {
        *("selection", "models.sensitivity", "models.training.settings", "limits.coupling"),
        "plots.look",
    },
    "analysis.run": {"analysis.terminal", "selection"},
    "analysis.inputs": {"analysis.terminal", "analysis.config", "analysis.run", "selection"},
    "analysis.start": {"analysis.terminal", "analysis.config", "analysis.inputs", "selection"},
    "analysis.select": {
        *("analysis.terminal", "analysis.config", "analysis.run", "analysis.inputs"),
        "selection",
    },
    "analysis.train": {
        *("analysis.terminal", "analysis.config", "analysis.run", "analysis.select"),
        *("models", "models.training", "selection"),
    },
    "analysis.evaluate": {
        *("analysis.terminal", "analysis.config", "analysis.run", "analysis.inputs"),
        *("analysis.select", "analysis.train", "models", "models.evaluation", "selection"),
    },
    "analysis.limit": {
        *("analysis.terminal", "analysis.config", "analysis.run", "analysis.inputs"),
        *("analysis.select", "analysis.train", "analysis.evaluate"),
        *("limits", "models", "selection"),
    },
    "analysis.apply": {
        *("analysis.terminal", "analysis.config", "analysis.run", "analysis.inputs"),
        *("analysis.select.histograms", "models", "selection"),
    },
    "analysis.figures": {
        *("analysis.terminal", "analysis.config", "analysis.run", "analysis.select"),
        *("analysis.train", "analysis.evaluate", "analysis.limit", "limits", "plots"),
        *("models", "models.training", "models.evaluation", "selection"),
    },
    "analysis.report": {
        *("analysis.terminal", "analysis.config", "analysis.run", "analysis.inputs"),
        *("analysis.select", "analysis.train", "analysis.evaluate", "analysis.limit"),
        *("analysis.figures", "models", "models.evaluation", "selection"),
    },
}
FORBIDDEN = {
    "selection": {"torch", "uproot", "coffea", "hist", "matplotlib", "yaml"},
    "models": {"awkward", "uproot", "coffea", "hist", "matplotlib", "yaml"},
    "limits": {"torch", "awkward", "uproot", "coffea", "hist", "matplotlib", "yaml", "pyhf"},
    "plots": {"torch", "uproot", "coffea"},
    "simulation": {"torch"},
    "analysis": set(),
}
MODULES = [path for package in OURS for path in sorted((ROOT / package).rglob("*.py"))]


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room(name):
    """`analysis.select` of `analysis.select.skim`; a package without rooms is one."""
    while name not in ALLOWED and "." in name:
        name = name.rpartition(".")[0]
    return name


@cache
def tree_of(path):
    return ast.parse(path.read_text())


@cache
def nodes(path):
    """Import statements and calls of a file, however deep."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, kinds)]


def all_imports(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def our_imports(path):
    """Modules of ours that a file imports, types too: `a.b.c` of `from a.b import c` if it is one."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield (
                    name
                    if ROOT.joinpath(*name.split(".")).with_suffix(".py").is_file()
                    else (node.module)
                )
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in OURS)


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_point_upstream_only(path):
    here = room(module_name(path))
    top = here.split(".")[0]
    for name in all_imports(path):
        assert name.split(".")[0] not in FORBIDDEN[top], f"{top} must not import {name}"
    if here == "analysis":  # the command line and the workflow see every room
        return
    for name in our_imports(path):
        allowed = ALLOWED[here] | EVERYONE | {here}
        assert room(name) in allowed or name in allowed, f"{here} must not import {name}"


def test_every_room_is_in_the_table():
    folders = {module_name(path.parent / "__init__.py") for path in MODULES} - {"analysis"}
    assert folders == set(ALLOWED)


def test_the_plan_in_the_documentation_names_every_room():
    text = (ROOT / "docs/architecture.md").read_text()
    for name in ALLOWED:
        assert f"`{name.replace('.', '/')}/`" in text, name


def test_only_the_command_line_reaches_the_simulation():
    users = {
        module_name(path)
        for path in MODULES
        if path.relative_to(ROOT).parts[0] == "analysis"
        and any(name.split(".")[0] == "simulation" for name in our_imports(path))
    }
    assert users == {"analysis.simulate"}


def test_imports_have_no_cycles():
    above = {path: set(imported(path)) - {path} for path in MODULES}
    while free := [path for path, needs in above.items() if not needs & set(above)]:
        for path in free:
            del above[path]
    assert not above, sorted(map(module_name, above))


def test_nobody_imports_what_another_module_keeps_for_itself():
    for path in MODULES:
        for name in _names(tree_of(path)):
            private = name.split(".")[0] in OURS and "._" in name and "__" not in name
            assert not private, f"{module_name(path)} imports {name}"


def test_every_package_opens_with_one_docstring():
    for path in MODULES:
        if path.name == "__init__.py":
            body = tree_of(path).body
            assert len(body) == 1
            assert isinstance(body[0], ast.Expr)


# the lines that the kernel makes of checked trees; tests/selection/test_expressions.py
EXECUTED = {
    "selection.kernel": [
        "exec(compile(source, str(path), 'exec'), vars(module))",
        "exec(code, space)",
    ]
}


def test_nobody_unpickles_or_evaluates():
    """Configuration and model files come from strangers."""
    for path in MODULES:
        names = set(all_imports(path))
        assert not names & {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}, path
        executed = []
        for node in nodes(path):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"eval", "torch.load", "yaml.load", "np.load"}, path
                executed += [ast.unparse(node)] if called in {"exec", "builtins.exec"} else []
        assert executed == EXECUTED.get(module_name(path), []), path


def declared(lines):
    return {re.split(r"[\[<>=!~ ]", line)[0].lower().replace("_", "-") for line in lines}


distributions = cache(packages_distributions)  # reads the files of every installed package


def third_party(folder):
    """Distributions that the files of a folder import, those they can do without too."""
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        names |= {name.split(".")[0] for name in all_imports(path)}
        names |= set(re.findall(r'importorskip\("(\w+)"', path.read_text()))
    known = distributions()
    return {
        known[name][0].lower().replace("_", "-")
        for name in names - set(OURS) - sys.stdlib_module_names
        if name in known
    }


def test_dependencies_are_exactly_what_is_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: declared(lines) for name, lines in project["optional-dependencies"].items()}
    core = declared(project["dependencies"])
    used = set().union(*map(third_party, OURS))
    optional = set().union(*(extras[name] for name in extras if name != "dev"))
    assert used - optional - {"setuptools"} == core
    for_tests = third_party("tests") | third_party("benchmarks")
    assert for_tests - core - optional <= extras["dev"]
    tools = {"ipykernel", "mypy", "ruff", "types-pyyaml", "pytest-timeout", "pytest-xdist"}
    assert extras["dev"] <= for_tests | tools


def test_the_declared_python_is_the_one_that_runs():
    assert sys.version_info >= (3, 11)
