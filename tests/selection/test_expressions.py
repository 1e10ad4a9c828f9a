"""The language of a search: what is read, and that nothing else ever is."""

import pytest

from selection.expressions import ExpressionError, compared, parsed

KNOWN = {"mu": "four-vector", "v": "three-vector", "x": "number", "good": "condition"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", "number"),
        ("-x**2 + 3*x/4", "number"),
        ("a_column", "number"),
        ("mu.mass2", "number"),
        ("mu.p3", "three-vector"),
        ("(mu + mu - 2*mu).pt", "number"),
        ("v.cross(v).mag / max(v.mag, 1, x)", "number"),
        ("beams - mu", "four-vector"),
        ("to_cm(mu).p3.unit()", "three-vector"),
        ("mu.boost_p4(beams)", "four-vector"),
        ("where(x > 1, v, -v)", "three-vector"),
        ("where(good, 1, 0)", "number"),
        ("0 < x <= 2 and not isnan(x) or good", "condition"),
        ("33*deg < mu.theta < 124*deg", "condition"),
        ("atan2(mu.py, mu.px) - pi", "number"),
        ("mu.deltaangle(beams)", "number"),
        ("sqrt_s - mu.E", "number"),
    ],
)
def test_a_valid_expression_has_a_kind(text, kind):
    assert parsed(text, KNOWN).kind == kind


def test_columns_are_the_names_that_nobody_defined():
    found = parsed("max(x, extra) * mu.E + cos(pi) + extra", KNOWN)
    assert found.columns == {"extra"}
    assert found.names == {"x", "extra", "mu"}


HOSTILE = {
    "().__class__": "a tuple",
    "().__class__.__bases__[0].__subclasses__()": "only the listed|an index|a tuple",
    "x.__class__": "a number has no __class__",
    "mu.__class__": "a four-vector has no __class__",
    "mu.__dict__": "has no __dict__",
    "v.__init__": "has no __init__",
    "mu.__getattribute__('E')": "has no __getattribute__",
    "mu.to_Vector3D()": "has no to_Vector3D",
    "mu.tolist()": "has no tolist",
    "__import__('os')": "there is no function __import__",
    "__import__('os').system('true')": "there is no function __import__|only the listed",
    "__builtins__": "no name of a column",
    "__class__": "no name of a column",
    "_private": "no name of a column",
    "eval('1')": "there is no function eval",
    "exec('1')": "there is no function exec",
    "open('/etc/passwd')": "there is no function open",
    "getattr(mu, 'E')": "there is no function getattr",
    "globals()": "there is no function globals",
    "type(x)": "there is no function type",
    "print(1)": "there is no function print",
    "x()": "there is no function x",
    "mu()": "there is no function mu",
    "(lambda: 1)()": "only the listed",
    "lambda: 1": "a lambda",
    "[x for x in y]": "a comprehension",
    "{x for x in y}": "a comprehension",
    "{a: b for a in y}": "a comprehension",
    "(x for x in y)": "a comprehension",
    "(y := 1)": "an assignment",
    "f'{x}'": "an f-string",
    "'text'": "'text' is no number",
    "b'text'": "is no number",
    "None": "None is no number",
    "True": "True is no number",
    "...": "is no number",
    "1j": "is no number",
    "1e999": "not finite",
    "9" * 40: "too large",
    "x[0]": "an index",
    "[1, 2]": "a list",
    "{1, 2}": "a set",
    "{'a': 1}": "a dictionary",
    "(1, 2)": "a tuple",
    "max(*x)": "a star|at least two",
    "sqrt(*x)": "a star",
    "sqrt(x=1)": "arguments have no names",
    "sqrt(**x)": "arguments have no names",
    "await x": "await|outside",
    "yield x": "invalid syntax|yield",
    "x if x > 1 else 2": "write where",
    "x; y": "invalid syntax",
    "import os": "invalid syntax",
    "x = 1": "invalid syntax",
    "x +": "invalid syntax",
    "((((x": "was never closed",
    "": "expected an expression",
    "   ": "expected an expression",
    "x**9": "powers go up to 8",
    "x**-99": "powers go up to 8",
    "x**y": "a written number",
    "9**9**9": "a written number|powers",
    "x & y": "write `and`",
    "x | y": "write `or`",
    "~x": "Invert|UnaryOp",
    "x ^ 2": "powers are written",
    "x % 2": "known are",
    "x // 2": "known are",
    "x @ y": "known are",
    "x << 2": "known are",
    "x is y": "no meaning here",
    "x in y": "two comparisons",
    "sqrt": "is a function: write sqrt",
    "mu.dot": "is a method",
    "mu.mass()": "leave out the brackets",
    "sqrt(mu)": "a four-vector where a number",
    "sqrt(1, 2)": "2 arguments where 1",
    "sqrtt(x)": "did you mean sqrt",
    "mu + v": "cannot be joined",
    "mu * mu": "write .dot or .cross",
    "mu + 1": "cannot be joined",
    "1 / mu": "cannot be joined",
    "mu > 1": "a four-vector where a number",
    "x and good": "a number where a condition",
    "not x": "a number where a condition",
    "-good": "is a condition",
    "good + 1": "a condition is no number",
    "where(x, 1, 2)": "a number where a condition",
    "where(good, mu, v)": "a three-vector where a four-vector",
    "where(good, 1)": "where needs",
    "v.cross(mu)": "a four-vector where a three-vector",
    "v.mass": "a three-vector has no mass",
    "mu.mas": "did you mean mass",
    "recoli.mass2": "is a column",
    "min(x)": "at least two",
    "(" * 300 + "x" + ")" * 300: "nested|cannot be read|too many",
    "-" * 100 + "x": "nested more than",
    "+".join(["x"] * 300): "more than 400 parts",
    "x" * 3000: "3000 letters",
    "x\x00": "null|cannot be read",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text)[:40])
def test_whatever_is_not_of_the_language_is_refused_in_words(text):
    with pytest.raises(ExpressionError, match=HOSTILE[text]):
        parsed(text, KNOWN)


def test_an_error_points_at_its_place():
    with pytest.raises(ExpressionError) as caught:
        parsed("mu.E + 2 * mu.mas / x", KNOWN)
    _, line, caret = str(caught.value).split("\n")
    assert line[caret.index("^") :].startswith("mas / x")
    with pytest.raises(ExpressionError) as caught:
        parsed("μ0 + sqrt(mu)", KNOWN)  # letters of two bytes
    _, line, caret = str(caught.value).split("\n")
    assert line[caret.index("^") :].startswith("mu)")


def test_a_value_of_another_kind_is_named():
    with pytest.raises(ExpressionError, match="is a four-vector, a number is needed"):
        parsed("beams - mu", KNOWN, wanted="number")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("33*deg < mu.theta < 124*deg", "mu.theta"),
        ("isnan(x) or x >= 15*deg", "x"),
        ("min(x, a) > 0.5", "min(x, a)"),
        ("isfinite(x)", None),
    ],
)
def test_what_a_cut_looks_at_is_known(text, found):
    assert compared(parsed(text, KNOWN)) == found
