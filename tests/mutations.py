"""Small mistakes: what a line of code may become, the mistakes made by hand, and a sample of all.

    a < b      a <= b, a >= b           x * y   x / y          [:n]    [n:]
    a and b    a or b                   3, 0.5  4, 1.0         min     max
    if c       if not c                 f(x, k=v), [x, y]      without k, without x
    raise, x += y, f()                  nothing

One line at a time, never in messages, names of types, or keywords that decide no number. A sample
takes the same number of every module, whatever its length: wiring is short and breaks silently.
"""

from __future__ import annotations

import ast
import itertools
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = re.compile(  # words, pictures, processes and what only starts the others
    r"__init__|/(terminal|report)/|/cli|/simulate|/export|_table\.|/executors|/draw|/reference|"
    r"/provenance|/threads|/errors|yaml_places|/workflow"
)

FLIPS = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"),
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.In: ("not in",), ast.NotIn: ("in",),
    ast.Is: ("is not",), ast.IsNot: ("is",),
}  # fmt: skip
OPERATORS = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.FloorDiv: "*",
    ast.BitAnd: "|", ast.BitOr: "&", ast.Mod: "*",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "np.minimum": "np.maximum",
         "np.maximum": "np.minimum", "np.floor": "np.ceil"}  # fmt: skip
SAYS = re.compile(r"(log|console|advance|progress|report|warnings|step|gc)\b")
WORDS = {"msg", "text", "title", "label", "reason", "__all__"}
DECIDES_NOTHING = re.compile(  # keywords that change speed, checks of ours, or words at most
    r"strict|cache|nogil|inline|fastmath|error_model|exist_ok|parents|missing_ok|encoding|errors|"
    r"compression|use_dictionary|memory_map|foreach|threads|workers|chunksize|axis|copy|status|"
    r"description|label|name|kind|sort_keys|indent|timeout"
)


@dataclass(frozen=True)
class Mutant:
    """One changed line; `text` is the whole file with it."""

    file: str
    line: int
    old: str
    new: str
    text: str
    why: str = ""


# (file, what it is, text as it is, text of the mistake); the text stands there exactly once
# fmt: off
WIRING = (
    ("selection/keys.py", "production left out of the key",
     "z = _mix(z ^ np.uint64(production[i]))",
     "z = _mix(z)"),
    ("selection/kernel.py", "the beams of the event ignored",
     "per_event = _event_beams(columns, beams)\n    source",
     "per_event = None\n    source"),
    ("selection/kernel.py", "an event whose last feature is no number is valid",
     'finite = " + ".join(f"{name}[i]" for name in stored)',
     'finite = " + ".join(f"{name}[i]" for name in stored[:-1])'),
    ("models/trained.py", "a model without the definition it was trained for",
     "if found.identity != content[\"search_identity\"]:",
     "if False:"),
    ("analysis/apply/model.py", "an ensemble of two searches",
     "\"search\": first.search.identity == model.search.identity,",
     "\"search\": True,"),
    ("analysis/inputs/columns.py", "the beams of the event never read",
     "maybe = [*BEAMS, *(KEY_COLUMNS if event_numbers else ())]",
     "maybe = [*(KEY_COLUMNS if event_numbers else ())]"),
    ("models/evaluation/figures_of_merit.py", "the single cut chosen on the quoted events",
     "split.training, score, sigma_min=sigma_min, extra_background=extra",
     "split.judged, score, sigma_min=sigma_min, extra_background=extra"),
    ("models/evaluation/figures_of_merit.py", "w1 of the wrong split",
     "[split.judged.everything for split in splits]",
     "[split.training.everything for split in splits]"),
    ("models/evaluation/figures_of_merit.py", "events judged by a network trained on them",
     "rows=of_fold == k).scaled(1 / folds.judged_share)",
     "rows=of_fold == (k + 1) % folds.count).scaled(1 / folds.judged_share)"),
    ("models/training/training_set.py", "a network trained on the events it judges",
     "held_out = folds.of(table.identity) == fold",
     "held_out = folds.of(table.identity) == fold - 1"),
    ("models/training/ensemble.py", "every fold trained on the events of the first",
     "train_network, *sets[member.fold], settings, seed=member.seed, checkpoint=path,",
     "train_network, *sets[0], settings, seed=member.seed, checkpoint=path,"),
    ("models/training/loop.py", "the equal budget continues the Punzi-net",
     "if begins_with is not None:",
     "if begins_with is None:"),
    ("analysis/apply/rows.py", "entries counted from the chunk",
     "friend_columns(applied, columns, start=rows.start)",
     "friend_columns(applied, columns)"),
    ("analysis/select/processor.py", "entries counted from the chunk in the selection",
     "identities_of(columns, rows, start=block.start),",
     "identities_of(columns, rows),"),
    ("selection/keys.py", "events without numbers all in one fold",
     'if "event" not in columns:',
     'if False:'),
    ("models/evaluation/figures_of_merit.py", "w1 missing in the error",
     "slope * np.sqrt(sums.background_w2 + w1**2)",
     "slope * np.sqrt(sums.background_w2)"),
    ("models/training/loop.py", "the plateau memory carried from BCE into Punzi",
     "state.stage, state.epoch, state.plateau = state.stage + 1, 0, Plateau()",
     "state.stage, state.epoch = state.stage + 1, 0"),
    ("models/training/checks.py", "the threshold of a failed training",
     "WORST_RATIO = 0.9",
     "WORST_RATIO = 0.95"),
    ("models/evaluation/comparison.py", "Punzi-nets all paired with BCE net 0",
     "if len(bottom) == 1:\n        bottom = tuple(bottom) * len(top)",
     "if bottom:\n        bottom = tuple(bottom[:1]) * len(top)"),
    ("analysis/train/recipes.py", "the marks of trained masses in the model",
     "trained=simulated.trained,",
     "trained=simulated.trained | True,"),
    ("analysis/inputs/check.py", "a missing part of a weighted sample",
     "present = math.fsum(1 / parts for parts in shares)",
     "present = 1.0"),
    ("analysis/inputs/datasets.py", "scale factors left out of the check of weights",
     "weight = self.constant_weight * self.scale",
     "weight = self.constant_weight"),
)
# fmt: on

# (file, line as it is, line of the mutant) -> why nobody can tell them apart
# fmt: off
EQUIVALENT = {
    ("selection/resolution.py",
     "fit = Minuit(cost, m0=m2, s1=scale, q=0.7, beta=1.0, flat=start)",
     "fit = Minuit(cost, m0=m2, s1=scale, q=0.7, beta=2.0, flat=start)"):
    "where a fit begins; it ends in the same minimum",
    ("selection/kernel.py",
     "name = hashlib.blake2b(source.encode(), digest_size=12).hexdigest()",
     "name = hashlib.blake2b(source.encode(), digest_size=13).hexdigest()"):
    "a longer name of a file in the cache",
    ("models/evaluation/baselines.py", '"tree_method": "hist",', ""): "XGBoost's own default",
    ("models/evaluation/baselines.py", '"verbosity": 0,', ""): "words on the terminal",
    ("models/training/ensemble.py",
     "events = [client.scatter(list(pair), broadcast=True, hash=False) for pair in sets]",
     "events = [client.scatter(list(pair), broadcast=False, hash=False) for pair in sets]"):
    "how events travel to workers",
    ("models/training/punzi_epoch.py",
     "own, *others = [memory_of(widths, theta) for _ in range(threads)]",
     "own, *others = [memory_of(widths, theta) for _ in range((threads + 2))]"):
    "threads change no bit",
    ("analysis/apply/output.py",
     "return None if isinstance(kind, np.dtype) else uproot.LZ4(1)",
     "return None if isinstance(kind, np.dtype) else uproot.LZ4(2)"): "a level of compression",
    ("analysis/inputs/tables.py",
     "return np.asarray(self.tree.common_entry_offsets(filter_name=lambda n: n in wanted))",
     "return np.asarray(self.tree.common_entry_offsets(filter_name=lambda n: (n not in wanted)))"):
    "where a file is cut into pieces changes the speed alone",
    ("analysis/evaluate/confirm.py",
     "wanted = load_figures(run)[0].mass_gev",
     "wanted = load_figures(run)[-1].mass_gev"): "all records of a run have the same masses",
    ("analysis/inputs/fingerprint.py",
     "stream.seek(max(0, size - TAIL_BYTES))",
     "stream.seek(max(1, size - TAIL_BYTES))"): "the first byte is in the head",
    ("analysis/inputs/fingerprint.py",
     'return hashlib.blake2b(head + tail, digest_size=16).hexdigest() + f"-{size}"',
     'return hashlib.blake2b(head + tail, ).hexdigest() + f"-{size}"'):
    "a longer digest of the same bytes",
    ("analysis/select/process.py",
     "thread = threading.Thread(target=watch, daemon=True)",
     "thread = threading.Thread(daemon=True)"): "a bar on the terminal",
}
# fmt: on


def replaced(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Expressions that stand for a node, each wrong in one way."""
    say = ast.unparse
    match node:
        case ast.Compare(left=a, ops=[op], comparators=[b]):
            yield from ((node, f"({say(a)} {other} {say(b)})") for other in FLIPS[type(op)])
        case ast.BinOp(left=a, op=op, right=b) if type(op) in OPERATORS:
            yield node, f"({say(a)} {OPERATORS[type(op)]} {say(b)})"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({word.join(f'({say(v)})' for v in values)})"
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=a):
            yield node, f"({say(a)})"
        case ast.Constant(value=bool() as value):
            yield node, str(not value)
        case ast.Constant(value=int() as value):
            yield node, str(value + 1)
        case ast.Constant(value=float() as value):
            yield node, repr(2 * value or 1.0)
        case ast.Subscript(slice=ast.Constant(value=0) as at):
            yield at, "-1"
        case ast.Slice(lower=None, upper=ast.expr() as stop, step=None):
            yield node, f"{say(stop)}:"
        case ast.Slice(lower=ast.expr() as first, upper=None, step=None):
            yield node, f":{say(first)}"
        case ast.Call(func=func) if say(func) in NAMES:
            yield func, NAMES[say(func)]
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield test, f"(not ({say(test)}))"
        case ast.AugAssign() | ast.Continue() | ast.Raise() | ast.Expr(value=ast.Call()):
            yield node, "pass"


def dropped(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """First and last node of an item that may be left out together with its comma."""
    match node:
        case ast.Call(keywords=keywords):
            yield from ((k, k) for k in keywords if k.arg and not DECIDES_NOTHING.fullmatch(k.arg))
        case ast.List(elts=items) | ast.Set(elts=items) if len(items) > 1:
            yield from ((item, item) for item in items)
        case ast.Tuple(elts=items, ctx=ast.Load()) if len(items) > 2:
            yield from ((item, item) for item in items)
        case ast.Dict(keys=keys, values=values) if len(keys) > 1:
            yield from ((k, v) for k, v in zip(keys, values, strict=True) if k is not None)


def speaking(node: ast.AST) -> bool:
    """Messages, imports and names of types: what is not mutated."""
    match node:
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()) | ast.Assign(value=ast.Subscript(slice=ast.Tuple())):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in WORDS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=func):
            return bool(SAYS.match(ast.unparse(func)))
        case ast.Expr(value=ast.Call(func=func)):
            return bool(SAYS.match(ast.unparse(func)))
        case ast.keyword(arg=name):
            return bool(name and DECIDES_NOTHING.fullmatch(name))
    return False


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "bases", "exc"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not speaking(child):
                yield child
                yield from nodes(child)


def mutants_of(file: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    source = (ROOT / file).read_text(encoding="utf-8")
    lines = source.encode().splitlines(keepends=True)
    found = {}
    for node in nodes(ast.parse(source)):
        edits = [(first, first, text, rb"") for first, text in replaced(node)]
        edits += [(first, last, "", rb"\s*,? ?") for first, last in dropped(node)]
        for first, last, text, comma in edits:
            if first.lineno != last.end_lineno:
                continue
            at, old = first.lineno - 1, lines[first.lineno - 1]
            rest = re.sub(rb"^" + comma, b"", old[last.end_col_offset :]) or b"\n"
            new = old[: first.col_offset] + text.encode() + rest
            whole = b"".join([*lines[:at], new, *lines[at + 1 :]]).decode()
            if new.strip() != old.strip():
                found[at, new] = Mutant(
                    file, at + 1, old.decode().strip(), new.decode().strip(), whole
                )
    return [found[key] for key in sorted(found)]


def is_python(mutant: Mutant) -> bool:
    try:
        ast.parse(mutant.text)
    except SyntaxError:
        return False
    return True


def wiring() -> list[Mutant]:
    """The mutants kept by hand; a text that is not there exactly once ends the run."""
    made = []
    for file, why, old, new in WIRING:
        source = (ROOT / file).read_text(encoding="utf-8")
        if source.count(old) != 1:
            sys.exit(f"WIRING ({why}): {source.count(old)} times in {file}, wanted once:\n{old}")
        line = source[: source.index(old)].count("\n") + 1
        made.append(Mutant(file, line, old.strip(), new.strip(), source.replace(old, new), why))
    return made


def sampled(only: str, *, seed: int, per_module: int) -> list[Mutant]:
    """WIRING and some mutants of each module; what is drawn of one does not depend on others."""
    chosen = wiring()
    for package in ("selection", "models", "analysis"):
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            if LEFT_OUT.search("/" + file):
                continue
            every = mutants_of(file)
            random.Random(f"{seed} {file}").shuffle(every)
            drawn = itertools.islice(filter(is_python, every), per_module)
            chosen += sorted(drawn, key=lambda m: m.line)
    return [m for m in chosen if only in m.file or (m.why and only == "wiring")]
