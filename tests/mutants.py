"""Tests with teeth: the share of small mistakes in the code that a test notices.

    mutant    the project with one line changed: `<` for `>=`, a keyword or a statement left out ...
    killed    a test fails, does not end, or the mutant cannot even be imported
    score     killed / all but the equivalent ones                  at least 85 % are wanted

Mutants are a seeded sample per module, and WIRING, mistakes once made by hand that no test saw.
First each test file runs alone and every test is noted with the functions it enters; a mutant is
then shown to the tests that enter its function, the quickest first, for a minute of their time.
Lines outside of functions and compiled ones enter nothing: there the tests that enter or import the file
or one that imports it are asked. So a survivor may still be known to a slower test: the score is a lower bound.

Each mutant lives in its own copy of the project and in a fork of a process that has imported the
libraries but nothing of ours. Numba's caches are copied too, but for the files whose compiled code
may hold the changed line. Of a test file that is as it was, what is noted is kept in /tmp.
`make mutants`, or `python -m tests.mutants --help`.
"""

# ruff: noqa: T201  (a command)

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analysis.run.code import PACKAGES, ROOT, imported
from tests.entered_functions import EnteredFunctions
from tests.mutations import EQUIVALENT, Mutant, sampled

PARTS = (
    "analysis",
    "limits",
    "models",
    "plots",
    "selection",
    "simulation",
    "tests",
    "docs",
    "benchmarks",
    "examples",
)
NOTES = Path(tempfile.gettempdir()) / "punzi-mutants"
LIBRARIES = (
    "torch torch._dynamo numba vector iminuit.cost scipy.stats matplotlib.figure "
    "mplhep hist uproot awkward pyarrow.parquet pydantic yaml rich.table rich.progress typer "
    "coffea.processor coffea.nanoevents safetensors.torch safetensors.numpy uhi.io.json"
)
NOT_ASKED = re.compile(r"simulation/|plots/|test_(tutorial|kill|interrupt|fuzz|light|docs|house)")
SECONDS = (2.0, 10.0, 60.0)  # of tests, up to the end of each round
PATIENCE, WANTED = 150.0, 0.85
PER_MODULE = 3


def copied(mutant: Mutant | None) -> Path:
    """A folder with the project, and the mutant in it."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    for part in [ROOT / name for name in PARTS] + [p for p in ROOT.iterdir() if p.is_file()]:
        subprocess.run(["cp", "-a", part, folder], check=True)
    if mutant:
        path = folder / mutant.file
        path.write_text(mutant.text, encoding="utf-8")
        if "njit" in mutant.text:
            for cache in folder.glob("*/**/__pycache__/*.nbi"):
                owner = cache.parent.parent / f"{cache.name.split('.')[0]}.py"
                if path.relative_to(folder) in reached(ROOT / owner.relative_to(folder)):
                    cache.unlink()
    return folder


imports = cache(imported)


@cache
def reached(file: Path) -> frozenset[Path]:
    """A source and all of ours that it imports, to any depth, relative to the project."""
    found, waiting = set(), [file]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += imports(at)
    return frozenset(path.relative_to(ROOT) for path in found)


def forked(folder: Path, rounds: list[list[str]], plugins: list[Any]) -> int:
    """Number of a process that runs pytest in a folder, whose packages win over the installed.

    Rounds of tests, until one fails: to collect tests takes time, and the first round often kills.
    """
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    os.chdir(folder)
    log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1), os.dup2(log, 2)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder)
    vars(sys.modules["__main__"]).update(__spec__=None, __file__=None)  # not for pools of tests
    for name in [n for n in sys.modules if n.split(".")[0] in PACKAGES]:
        del sys.modules[name]
    importlib.invalidate_caches()
    if any(not importlib.util.find_spec(p).origin.startswith(f"{folder}/") for p in PACKAGES):
        os._exit(99)
    options = ["-q"] if plugins else ["-q", "-x", "--timeout=60"]
    options += ["-p", "no:cacheprovider", "--hypothesis-seed=0"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={folder / 'tmp'}"]
    code = 3
    try:
        for words in rounds:
            code = pytest.main([*options, *words], plugins)
            sys.stdout.flush()
            if code:
                break
    finally:  # never back into the loop of the parent
        os._exit(code)


def in_forks(
    tasks: list[Any], start: Callable[[Any], tuple[Path, int]], jobs: int
) -> Iterator[Any]:
    """(task, exit code or None after PATIENCE, what was printed), as the processes end."""
    waiting, running = tasks[::-1], {}
    while waiting or running:
        while waiting and len(running) < jobs:
            task = waiting.pop()
            folder, pid = start(task)
            running[pid] = task, folder, time.monotonic()
        for pid, (task, folder, begun) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            late = time.monotonic() - begun > PATIENCE and not isinstance(task, Path)
            if not ended and not late:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            if not ended:
                os.waitpid(pid, 0)
            del running[pid]
            code = os.waitstatus_to_exitcode(status) if ended else None
            if code == 99:
                sys.exit(f"the packages in {folder} are not those that would be imported")
            yield task, code, (folder / "log").read_text(errors="replace")
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


def noted(jobs: int) -> dict[str, Any]:
    """Test -> cost and functions; test files that are as they were are not run again."""
    NOTES.mkdir(exist_ok=True)
    paths = {}
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        if NOT_ASKED.search(str(test)):
            continue
        above = [folder / "conftest.py" for folder in test.parents if ROOT in folder.parents]
        roots = [test, *(c for c in above if c.is_file())]
        files = sorted(set().union(*(reached(file) for file in roots)))
        digest = hashlib.blake2b(b"".join((ROOT / f).read_bytes() for f in files), digest_size=8)
        paths[test] = NOTES / f"{test.stem}-{digest.hexdigest()}.json"

    def start(test: Path) -> tuple[Path, int]:
        folder = copied(None)
        words = [str(test.relative_to(ROOT))]
        return folder, forked(folder, [words], [EnteredFunctions(paths[test])])

    new = [test for test, path in paths.items() if not path.exists()]
    for test, _, text in in_forks(new, start, jobs):
        print(f"noted {test.relative_to(ROOT)}: {text.strip().splitlines()[-1]}", flush=True)
        if not paths[test].exists():
            sys.exit(text)
    return {
        k: v for p in paths.values() if p.exists() for k, v in json.loads(p.read_text()).items()
    }


def enclosing(mutant: Mutant) -> str | None:
    """`file:line` of the function that holds the line; None where Python enters none."""
    tree, found = ast.parse((ROOT / mutant.file).read_text(encoding="utf-8")), None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line <= node.end_lineno:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            compiled = any("njit" in ast.unparse(d) for d in node.decorator_list)
            found = None if compiled else f"{mutant.file}:{first}"  # walk: inner ones come later
    return found


def asked(mutant: Mutant, tests: dict[str, Any]) -> list[list[str]]:
    """The tests that may see a mutant, the quickest first, in rounds; a fixture is paid once."""
    function = enclosing(mutant)
    chosen = [t for t, n in tests.items() if function in n["functions"]]
    if not chosen:
        modules = [p for name in PACKAGES for p in (ROOT / name).rglob("*.py")]
        near = {mutant.file} | {
            p.relative_to(ROOT).as_posix() for p in modules if ROOT / mutant.file in imports(p)
        }
        entered = {t: {f.split(":")[0] for f in n["functions"]} for t, n in tests.items()}
        asking = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("*.py")
                  if ROOT / mutant.file in imports(p)}  # fmt: skip
        chosen = [t for t in tests if near & entered[t] or t.split("::")[0] in asking]
    cost = {t: tests[t]["seconds"] + sum(tests[t]["fixtures"].values()) for t in chosen}
    rounds: list[list[str]] = [[] for _ in SECONDS]
    paid, total = set(), 0.0
    for test in sorted(chosen, key=lambda t: (cost[t], t)):
        fixtures = tests[test]["fixtures"]
        total += tests[test]["seconds"] + sum(c for f, c in fixtures.items() if f not in paid)
        paid |= set(fixtures)
        at = sum(total > limit for limit in SECONDS) if test != min(chosen, key=cost.get) else 0
        if at < len(rounds):
            rounds[at].append(test)
    return [words for words in rounds if words]


def judged(
    mutants: list[Mutant], tests: dict[str, Any], jobs: int
) -> Iterator[tuple[Mutant, str, str]]:
    words = {m: asked(m, tests) for m in mutants}
    alone = [m for m in mutants if not words[m]]
    yield from ((m, "survived", "no test enters it") for m in alone)

    def start(mutant: Mutant) -> tuple[Path, int]:
        folder = copied(mutant)
        return folder, forked(folder, words[mutant], [])

    for mutant, code, text in in_forks([m for m in mutants if words[m]], start, jobs):
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
        by = failed[0] if failed else {None: "no end", 0: ""}.get(code, f"exit code {code}")
        verdict = {0: "survived", 1: "killed", None: "killed"}.get(code, "broken")
        yield mutant, verdict, by


def until_stopped(found: Iterator[Any]) -> Iterator[Any]:
    """All, or those before Ctrl-C: in random order, so that the first are a fair sample."""
    with contextlib.suppress(KeyboardInterrupt):
        yield from found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-module", type=int, default=PER_MODULE)
    parser.add_argument("--module", default="", help="part of a path, or `wiring`")
    parser.add_argument("--list", action="store_true", help="show the mutants and do nothing")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    mutants = sampled(given.module, seed=given.seed, per_module=given.per_module)
    if given.list:
        print(*(f"{m.file}:{m.line}  {m.old}  ->  {m.new}" for m in mutants), sep="\n")
        return 0
    for library in LIBRARIES.split():
        importlib.import_module(library)
    random.Random(given.seed).shuffle(mutants)
    score: dict[str, Counter[str]] = {}
    for m, found, by in until_stopped(judged(mutants, noted(given.jobs), given.jobs)):
        same = found == "survived" and (m.file, m.old, m.new) in EQUIVALENT
        verdict = "equivalent" if same else found
        score.setdefault(m.file.split("/")[0], Counter())[verdict] += 1
        change = f"\n    - {m.old}\n    + {m.new}" if verdict == "survived" else ""
        print(f"{verdict:10} {m.file}:{m.line} {m.why} {by}{change}", flush=True)
    score["total"] = sum(score.values(), Counter())
    for name, found in score.items():
        good, n = found["killed"] + found["broken"], found.total() - found["equivalent"]
        share = good / max(n, 1)
        print(f"{name:10} {good} of {n} killed, {100 * share:.1f} %   {dict(found)}")
    return int(share < WANTED)


if __name__ == "__main__":
    sys.exit(main())
