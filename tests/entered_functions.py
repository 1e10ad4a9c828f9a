"""A plugin of pytest that notes, for every test that passes, its cost and the functions it enters.

    {test: {"seconds": own, "fixtures": {name: seconds}, "functions": ["file:line", ...]}}

What a fixture enters counts for each test that asks for it, whoever made it; its cost is kept apart
because a session pays for it once. Calls alone are traced, not lines: tests take a third longer.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class EnteredFunctions:
    """Writes to `path` at the end; functions are of files below the current folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entered: set[Any] = set()
        self.fixtures: dict[Any, tuple[float, set[Any]]] = {}
        self.tests: dict[str, Any] = {}

    def trace(self, frame: Any, _event: str, _arg: object) -> None:
        self.entered.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        outer, self.entered, begun = self.entered, set(), time.monotonic()
        try:
            return (yield)
        finally:
            self.fixtures[fixturedef] = (time.monotonic() - begun, self.entered)
            self.entered = outer | self.entered

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.entered, before, begun = set(), set(self.fixtures), time.monotonic()
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            known = [d for ds in item._fixtureinfo.name2fixturedefs.values() for d in ds]
            own = {d.argname: self.fixtures[d] for d in known if d in self.fixtures}
            new = sum(cost for d, (cost, _) in self.fixtures.items() if d not in before)
            codes = self.entered.union(*(entered for _, entered in own.values()))
            self.tests[item.nodeid] = {
                "seconds": time.monotonic() - begun - new,
                "fixtures": {name: cost for name, (cost, _) in own.items()},
                "functions": sorted({f"{c.co_filename}:{c.co_firstlineno}" for c in codes}),
                "passed": self.tests.get(item.nodeid, True),
            }

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.tests[report.nodeid] = False

    def pytest_sessionfinish(self) -> None:
        here = f"{Path.cwd()}/"
        for test in self.tests.values():
            test["functions"] = [
                f.removeprefix(here) for f in test["functions"] if f.startswith(here)
            ]
        self.path.write_text(json.dumps({t: n for t, n in self.tests.items() if n["passed"]}))
