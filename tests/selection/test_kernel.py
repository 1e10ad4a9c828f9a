"""The compiled search: its numbers are those of vector, and its file is never trusted."""

import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
import vector
from hypothesis import event, given, settings
from hypothesis import strategies as st

from selection import kernel
from selection.beams import SUPERKEKB
from selection.definition import search_from
from selection.kernel import Further, event_quantities, kernel_source, values_of
from selection.ntuple import BEAM_COLUMNS
from selection.recoil import momenta, to_cm
from tests.dimuon import SEARCH, with_cuts

N = 200
PARTICLES = {
    "a": {"px": "a1", "py": "a2", "pz": "a3", "e": "a4"},
    "b": {"px": "b1", "py": "b2", "pz": "b3", "mass": 0.5},
    "c": {"p": "c1", "theta": "c2", "phi": "c3", "mass": 0},
    "d": {"pt": "d1", "eta": "d2", "phi": "d3", "mass": "d4"},
    "e": {"pt": "d1", "theta": "c2", "phi": "d3", "mass": "d4"},
}
OTHERS = ("x", "y")


def random_columns(seed, relative=0.0):
    """Columns of N events; all numbers moved by a tiny share, if asked."""
    rng = np.random.default_rng(seed)
    found = {
        name: rng.normal(0, 2, N) for name in ("a1", "a2", "a3", "b1", "b2", "b3", "d2", *OTHERS)
    }
    found["a4"] = np.sqrt(found["a1"] ** 2 + found["a2"] ** 2 + found["a3"] ** 2 + 1)
    for name in ("c1", "d1", "d4"):
        found[name] = rng.uniform(0.3, 4, N)
    found["c2"] = rng.uniform(0.2, 2.9, N)
    for name in ("c3", "d3"):
        found[name] = rng.uniform(-3, 3, N)
    noise = np.random.default_rng(seed + 1)
    return {k: v * (1 + relative * noise.choice([-1, 1], N)) for k, v in found.items()}


def vectors(c):
    """The particles as vector arrays, by vector's own coordinates."""
    made = {
        "a": vector.array({"px": c["a1"], "py": c["a2"], "pz": c["a3"], "E": c["a4"]}),
        "b": vector.array({"px": c["b1"], "py": c["b2"], "pz": c["b3"], "M": np.full(N, 0.5)}),
        "c": vector.array({"pt": c["c1"] * np.sin(c["c2"]), "phi": c["c3"], "theta": c["c2"],
                           "M": np.zeros(N)}),
        "d": vector.array({"pt": c["d1"], "phi": c["d3"], "eta": c["d2"], "M": c["d4"]}),
        "e": vector.array({"pt": c["d1"], "phi": c["d3"], "theta": c["c2"], "M": c["d4"]}),
    }  # fmt: skip
    return {name: momenta(p.px, p.py, p.pz, p.E) for name, p in made.items()}


def chosen(condition, one, other):
    """where of numbers and of vectors."""
    if isinstance(one, vector.Vector):
        parts = ("x", "y", "z", *(("t",) if isinstance(one, vector.VectorNumpy4D) else ()))
        found = {k: np.where(condition, getattr(one, k), getattr(other, k)) for k in parts}
        if "t" in found:
            return momenta(*found.values())
        return vector.array(found)
    return np.where(condition, one, other)


ORACLE = {
    "__builtins__": {}, "where": chosen, "sqrt": np.sqrt, "abs": np.abs, "sin": np.sin, "log": np.log,
    "cos": np.cos, "exp": np.exp, "atan": np.arctan, "atan2": np.arctan2, "minimum": np.minimum,
    "maximum": np.maximum, "pi": np.pi, "deg": np.pi / 180, "not_": np.logical_not,
    "to_cm": lambda p: to_cm(p, SUPERKEKB), "isnan": np.isnan,
    "beams": momenta(*(np.full(N, x) for x in SUPERKEKB.total)), "sqrt_s": SUPERKEKB.sqrt_s_gev,
}  # fmt: skip


class Texts:
    """Random expressions as pairs: in our language, and in Python on vector arrays."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *ways):
        return self.random.choice(ways)()

    def number(self, depth=3):
        r = self.random
        if depth == 0:
            text = r.choice([*OTHERS, "1.5", "3", "pi", "deg", "c1", "sqrt_s"])
            return text, text

        def leaf():
            return self.number(0)

        def operation():
            (a, p), (b, q), sign = self.number(depth - 1), self.number(depth - 1), r.choice("+-*")
            return f"({a} {sign} {b})", f"({p} {sign} {q})"

        def division():
            (a, p), (b, q) = self.number(depth - 1), self.number(depth - 1)
            return f"({a} / (2 + abs({b})))", f"({p} / (2 + abs({q})))"

        def function():
            name, (a, p) = r.choice(["abs", "sin", "cos", "atan"]), self.number(depth - 1)
            return f"{name}({a})", f"{name}({p})"

        def root():
            a, p = self.number(depth - 1)
            return f"sqrt(abs({a}))", f"sqrt(abs({p}))"

        def power():
            (a, p), n = self.number(depth - 1), r.choice([2, 3, -1, 0.5])
            return f"(1 + abs({a}))**{n}", f"(1.0 + abs({p}))**{n}"

        def extreme():
            (a, p), (b, q), name = (
                self.number(depth - 1),
                self.number(depth - 1),
                r.choice(["min", "max"]),
            )
            return f"{name}({a}, {b})", f"{name}imum({p}, {q})"

        def choice():
            (k, c), (a, p), (b, q) = (
                self.condition(depth - 1),
                self.number(depth - 1),
                self.number(depth - 1),
            )
            return f"where({k}, {a}, {b})", f"where({c}, {p}, {q})"

        def of_four():
            (v, w), name = self.four(depth - 1), r.choice(
                ["E", "px", "pz", "mass2", "p", "pt", "theta", "costheta", "phi", "eta", "rho", "t"])  # fmt: skip
            return f"{v}.{name}", f"{w}.{name}"

        def of_particle():
            v, name = r.choice("abcde"), r.choice(["mass", "beta", "rapidity"])
            if (v, name) == ("c", "mass"):  # rounding of zero
                name = "beta"
            return f"{v}.{name}", f"{v}.{name}"

        def of_three():
            (v, w), name = (
                self.three(depth - 1),
                r.choice(["mag", "mag2", "x", "z", "rho", "phi", "theta"]),
            )
            return f"{v}.{name}", f"{w}.{name}"

        def product():
            (v, w), (s, u) = self.three(depth - 1), self.three(depth - 1)
            return f"{v}.dot({s})", f"{w}.dot({u})"

        def pair():
            (v, w), (s, u) = self.four(depth - 1), self.four(depth - 1)
            name = r.choice(["dot", "deltaphi", "deltaeta", "deltaR"])
            return f"{v}.{name}({s})", f"{w}.{name}({u})"

        return self.one(leaf, operation, division, function, root, power, extreme, choice, of_four,
                        of_particle, of_three, product, pair)  # fmt: skip

    def condition(self, depth=2):
        r = self.random

        def comparison():
            (a, p), (b, q), sign = (
                self.number(depth - 1 if depth else 0),
                self.number(0),
                r.choice(["<", ">", ">=", "<="]),
            )
            return f"({a} {sign} {b})", f"({p} {sign} {q})"

        if depth <= 0:
            return comparison()

        def both():
            (a, p), (b, q), word = (
                self.condition(depth - 1),
                self.condition(depth - 1),
                r.choice(["and", "or"]),
            )
            return f"({a} {word} {b})", f"({p} {'&' if word == 'and' else '|'} {q})"

        def no():
            a, p = self.condition(depth - 1)
            return f"(not {a})", f"not_({p})"

        def nan():
            a, p = self.number(depth - 1)
            return f"isnan({a})", f"isnan({p})"

        return self.one(comparison, both, no, nan)

    def four(self, depth):
        r = self.random
        if depth <= 0:
            name = r.choice(
                ["a", "b", "c", "d", "e", "(beams - a)"]
            )  # beams alone: at rest in the CM
            return name, name

        def add():
            (v, w), (s, u), sign = self.four(depth - 1), self.four(depth - 1), r.choice("+-")
            # not all of it: the direction of what vanishes is nobody's business
            return f"({v} {sign} 0.375 * {s})", f"({w} {sign} 0.375 * {u})"

        def scaled():
            (v, w), (a, p) = self.four(depth - 1), self.number(0)
            return f"({a} * {v})", f"({w} * ({p}))"

        def cm():
            v, w = self.four(depth - 1)
            return f"to_cm({v})", f"to_cm({w})"

        def boosted():
            (v, w), frame, name = (
                self.four(depth - 1),
                r.choice(["(a + d)", "(b + e)", "beams"]),
                r.choice(["boost_p4", "boostCM_of_p4"]),
            )
            return f"{v}.{name}({frame})", f"{w}.{name}({frame})"

        def choice():
            (k, c), (v, w), (s, u) = self.condition(1), self.four(depth - 1), self.four(depth - 1)
            return f"where({k}, {v}, {s})", f"where({c}, {w}, {u})"

        return self.one(add, scaled, cm, boosted, choice)

    def three(self, depth):
        def p3():
            v, w = self.four(max(depth - 1, 0))
            return f"{v}.p3", f"{w}.to_Vector3D()"

        if depth <= 0:
            return p3()

        def cross():
            (v, w), (s, u) = self.three(depth - 1), self.three(depth - 1)
            return f"{v}.cross({s})", f"{w}.cross({u})"

        def unit():
            v, w = self.three(depth - 1)
            return f"{v}.unit()", f"{w}.unit()"

        def scaled():
            (v, w), (a, p) = self.three(depth - 1), self.number(0)
            return f"({v} / (1 + abs({a})))", f"({w} / (1 + abs({p})))"

        def minus():
            (v, w), (s, u) = self.three(depth - 1), self.three(depth - 1)
            return f"({v} - 0.375 * {s})", f"({w} - 0.375 * {u})"

        return self.one(p3, cross, unit, scaled, minus)


def definition(texts):
    return search_from({
        "particles": PARTICLES,
        "axis": {"name": "m2", "value": "a.mass2", "peak": "mass**2", "bins": [10, 0, 1]},
        "features": {f"f{i}": text for i, text in enumerate(texts)},
    })  # fmt: skip


def by_vector(text, columns):
    with np.errstate(all="ignore"):
        found = eval(text, ORACLE | vectors(columns) | columns)  # noqa: S307
    return np.broadcast_to(np.asarray(found, float), (N,))


def agree(found, text, seed):
    """To 1e-12, or as well as the expression is known when its inputs move by 1e-14.

    Of an expression that is nothing but rounding (the direction of a vector that vanishes, the root
    of a number that is zero on paper, the sign of pi between opposite vectors) nothing is known.
    """
    expected = by_vector(text, random_columns(seed))
    with np.errstate(all="ignore"):
        moved = [
            by_vector(text, random_columns(seed, e)) - expected for e in (1e-14, -1e-14, 3e-14)
        ]
        size, unsure = 1 + np.abs(expected), np.max(np.abs(moved), axis=0)
        known = np.isfinite(expected) & (unsure < 1e-10 * size)
        if np.median(unsure / size) > 1e-11 or np.mean(unsure > 1e-6 * size) > 0.01:
            known[:] = False
        if ".unit()" in text:  # of length zero: vector says 0, here it is not a number
            known &= ~np.isnan(found)
        if text.endswith(".theta"):  # of length zero: vector says pi/2, atan2(0, 0) is 0
            known &= found != 0
        close = np.abs(found - expected) <= 1e-12 * size + 300 * unsure
    return bool(np.all(close[known])), int(known.sum())


@settings(max_examples=300, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_random_expressions_over_arrays_are_those_of_vector(seed):
    ours, theirs = Texts(seed).number()
    (found,) = values_of(definition(["x"]), random_columns(7), SUPERKEKB, [ours])
    same, known = agree(found, theirs, 7)
    assert same, ours
    event(f"known in {'most' if known > N / 2 else 'few'} rows")


@settings(max_examples=1, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_random_expressions_compiled_are_those_of_vector(seed):
    texts = Texts(seed)
    pairs = [texts.number() for _ in range(32)]
    search = definition([ours for ours, _ in pairs])
    found = event_quantities(search, random_columns(9), SUPERKEKB, feature_type=np.float64)
    for values, (ours, theirs) in zip(found.features, pairs, strict=True):
        assert agree(values, theirs, 9)[0], ours


@pytest.mark.parametrize("particle", PARTICLES)
def test_every_kind_of_momentum_gives_the_same_four_vector(particle):
    columns = random_columns(3)
    expected = vectors(columns)[particle]
    found = values_of(
        definition(["x"]), columns, SUPERKEKB, [f"{particle}.{k}" for k in ("px", "py", "pz", "E")]
    )
    for values, name in zip(found, ("px", "py", "pz", "E"), strict=True):
        assert values == pytest.approx(getattr(expected, name), rel=1e-13, abs=1e-13)


def test_the_same_lines_run_compiled_and_over_arrays(columns):
    rows = {k.strip("_"): v for k, v in columns(500, mass_gev=3.0).items()}
    found = event_quantities(SEARCH, rows, SUPERKEKB, feature_type=np.float64)
    names = [SEARCH.axis.name, *(f.value for f in SEARCH.features)]
    for values, expected in zip(
        values_of(SEARCH, rows, SUPERKEKB, names), (found.axis, *found.features), strict=True
    ):
        assert values == pytest.approx(expected, rel=1e-14)
    masks = values_of(SEARCH, rows, SUPERKEKB, list(SEARCH.cuts.values()))
    first = np.argmin([*masks, np.zeros(500, bool)], axis=0)
    assert np.array_equal(first + 2, found.code)


def test_a_column_that_no_expression_needs_is_not_asked_for():
    source = kernel_source(definition(["x + c.E"]), event_beams=False)
    assert definition(["x + c.E"]).columns == ("a1", "a2", "a3", "a4", "c1", "c2", "c3", "x")
    assert source.count("np.float64(C") == 8


def test_integers_and_mixed_precision_are_numbers():
    columns = random_columns(2)
    columns["x"] = np.arange(N, dtype=np.int32)
    columns["y"] = columns["y"].astype(np.float32)
    found = event_quantities(definition(["x * 2", "y"]), columns, SUPERKEKB)
    assert np.array_equal(found.features[0], 2 * np.arange(N))
    assert np.array_equal(found.features[1], columns["y"])


def test_an_event_with_a_feature_that_is_no_number_is_invalid():
    columns = random_columns(2)
    columns["x"][4], columns["y"][7] = np.nan, np.inf  # the first, and the last of two
    found = event_quantities(definition(["x", "y"]), columns, SUPERKEKB)
    assert np.flatnonzero(found.code == 0).tolist() == [4, 7]
    columns["y"][7] = 1.0
    assert (event_quantities(definition(["y"]), columns, SUPERKEKB).code != 0).all()


def test_a_source_that_somebody_changed_is_written_again_and_never_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PUNZI_CACHE_DIR", str(tmp_path))
    search, columns = definition(["x + 17.25"]), random_columns(1)
    kernel._compiled.cache_clear()
    before = event_quantities(search, columns, SUPERKEKB).features
    (file,) = (tmp_path / "punzi/kernels").glob("*.py")
    good = file.read_text()
    file.write_text("raise SystemExit('run')\n")
    kernel._compiled.cache_clear()
    assert np.array_equal(event_quantities(search, columns, SUPERKEKB).features, before)
    assert file.read_text() == good


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PUNZI_CACHE_DIR", str(tmp_path / "file"))
    kernel._compiled.cache_clear()
    found = event_quantities(definition(["x - 3.5"]), random_columns(1), SUPERKEKB)
    assert np.isfinite(found.features).all()


def test_what_one_process_compiled_another_reads(tmp_path):
    """Twice in new processes: the second compiles nothing."""
    place = {**os.environ, "PUNZI_CACHE_DIR": str(tmp_path)}
    code = """
import numpy as np
from selection import kernel
from selection.beams import SUPERKEKB
from tests.dimuon import NO_CUTS
columns = {name: np.full(5, 1.0 + i) for i, name in enumerate(NO_CUTS.columns)}
print(kernel.event_quantities(NO_CUTS, columns, SUPERKEKB).axis[0])
made = kernel._compiled(kernel.kernel_source(NO_CUTS, event_beams=False)).stats.cache_hits
print("read" if made else "compiled")
"""
    found = [
        subprocess.run(
            [sys.executable, "-c", code], env=place, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert found[0][0] == found[1][0]
    assert (found[0][1], found[1][1]) == ("compiled", "read")


def test_a_search_can_be_sent_to_another_process():
    sent = pickle.loads(pickle.dumps(SEARCH))  # noqa: S301
    assert sent.identity == SEARCH.identity
    assert sent == SEARCH


@pytest.mark.parametrize("told", [(), ("ecms",), BEAM_COLUMNS], ids=len)
def test_regions_and_further_numbers_of_one_pass_are_those_of_their_own(told):
    """Another set of cuts beside the search fails where it fails alone, and changes nothing."""
    rng = np.random.default_rng(3)
    columns = {c: rng.normal(0, 2, N) for c in SEARCH.columns}
    columns |= {f"mu_{q}_e": rng.uniform(4, 5, N) for q in ("plus", "minus")}
    columns["extra_energy"] = rng.uniform(0, 1, N)
    columns["mu_plus_id"] = columns["mu_minus_id"] = np.ones(N)
    columns["t0"] = rng.normal(0, 2, N)
    values = SUPERKEKB.total if len(told) == 4 else [SUPERKEKB.sqrt_s_gev]
    columns |= {c: v + rng.normal(0, 0.01, N) for c, v in zip(told, values, strict=False)}
    regions = with_cuts(extra_energy="extra_energy > 0.4"), with_cuts(pt_mumu="abs(t0) < 1")
    texts = ("recoil.costheta", "t0 + pt_mumu")
    alone = event_quantities(SEARCH, columns, SUPERKEKB)
    found = event_quantities(
        SEARCH, columns, SUPERKEKB, further=Further(regions=regions, numbers=texts)
    )
    for name in ("axis", "features", "code"):
        assert getattr(found, name).tobytes() == getattr(alone, name).tobytes()
    for region, code in zip(regions, found.region_codes, strict=True):
        holds = np.array(values_of(region, columns, SUPERKEKB, list(region.cuts.values())))
        first = np.where(holds.all(axis=0), len(holds), (~holds).argmax(axis=0))
        assert np.array_equal(code, np.where(found.finite, 2 + first, 0))
        assert 5 < (code != alone.code).sum() < N
    expected = values_of(SEARCH, columns, SUPERKEKB, texts)
    assert found.beside == pytest.approx(np.array(expected), rel=1e-6)
