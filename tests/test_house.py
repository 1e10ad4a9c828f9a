"""The plan of rooms: who may import whom, and how large a module may grow."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("analysis", "models", "plots", "selection", "simulation")

ALLOWED = {  # of our own modules
    "selection": set(),
    "models": {"selection.table", "selection.windows"},
    "plots": {"models.results"},
    "simulation": {"selection.beams", "selection.ntuple"},
    "analysis": {"models", "plots", "selection", "simulation"},
}
FORBIDDEN = {
    "selection": {"torch", "uproot", "coffea", "hist", "matplotlib", "yaml"},
    "models": {"awkward", "uproot", "coffea", "hist", "matplotlib", "yaml"},
    "plots": {"torch", "uproot", "coffea", "selection", "analysis"},
    "simulation": {"models", "plots", "analysis", "torch"},
    "analysis": set(),
}
MODULES = [path for package in OURS for path in sorted((ROOT / package).rglob("*.py"))]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_upstream_only(path):
    package = path.relative_to(ROOT).parts[0]
    for name in imports(path):
        top = name.split(".")[0]
        assert top not in FORBIDDEN[package], f"{package} must not import {name}"
        if top in OURS and top != package:
            allowed = any(name == a or name.startswith(f"{a}.") for a in ALLOWED[package])
            assert allowed, f"{package} must not import {name}"


def test_only_the_command_line_and_the_workflow_reach_the_simulation():
    users = {
        path.name
        for path in MODULES
        if path.parent.name == "analysis"
        and any(name.split(".")[0] == "simulation" for name in imports(path))
    }
    assert users <= {"simulate.py", "workflow.py", "errors.py"}


def test_every_package_opens_with_one_docstring():
    for package in OURS:
        body = ast.parse((ROOT / package / "__init__.py").read_text()).body
        assert len(body) == 1
        assert isinstance(body[0], ast.Expr)


def test_nobody_unpickles_or_evaluates():
    """Configuration and model files come from strangers."""
    for path in MODULES:
        names = set(imports(path))
        assert not names & {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}, path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"eval", "exec", "torch.load", "yaml.load", "np.load"}, path


def test_the_declared_python_is_the_one_that_runs():
    assert sys.version_info >= (3, 11)
