"""Values, the comparison, the kernel and the small language."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.code.expression import FUNCTIONS, ExpressionError, evaluate, parse
from turnwise.envs.code.kernel import NotPlain, decode, encode
from turnwise.envs.code.problem import same
from turnwise.envs.code.quick import draw_wish
from turnwise.envs.code.runner import Runner, _read, get_runner
from turnwise.tasks.core import derive_rng
from turnwise.tools.sandbox.core import Ended

_KEYS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=3))
_PLAIN = st.recursive(
    _KEYS | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(_KEYS, inner, max_size=3)
        | st.sets(_KEYS, max_size=3)
        | st.frozensets(_KEYS, max_size=3)
    ),
    max_leaves=8,
)


@given(_PLAIN)
@settings(max_examples=150)
def test_plain_values_come_back(value: Any) -> None:
    assert same(decode(json.loads(json.dumps(encode(value)))), value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
        lambda x: (
            st.lists(x) | st.dictionaries(st.sampled_from("fbtszd") | st.text(max_size=2), x, max_size=2)
        ),
        max_leaves=10,
    )
)
@settings(max_examples=150)
def test_any_json_is_decoded_or_refused(data: Any) -> None:
    try:
        value = decode(data)
    except NotPlain:
        return
    encode(value)


class _Sly(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize("value", [_Sly(1), [object()], {1: _Sly(1)}, 1j, range(3), len])
def test_other_values_are_no_answers(value: object) -> None:
    with pytest.raises(NotPlain):
        encode(value)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [(1, True, False), (1, 1.0, False), ([1], (1,), False), ({1: 2}, {True: 2}, False), ({1}, {True}, False),
     ({(1,)}, {(True,)}, False), (math.nan, math.nan, True), ({"a": [1]}, {"a": [1]}, True), ([1], [1, 2], False)],
)  # fmt: skip
def test_types_are_exact(left: object, right: object, equal: bool) -> None:
    assert same(left, right) is equal


def test_text_is_compared_by_words() -> None:
    assert same("1  2\n3\n", "1 2\n3", "text")
    assert not same("1 2 3", "1 2\n3", "text")


def test_lines_that_are_no_answers_are_not_read() -> None:
    good = b'n{"stage": "compiled"}\nn{"index": 0, "value": 5}\n'
    noise = (
        b'x{"index": 1, "value": 5}\nnbroken\nn{"index": true, "value": 1}\nn[]\nn{"index": 1, "value": '
        + b"[" * 10**5
        + b"\n"
    )
    ran = _read(good + noise + b'n{"index": 0, "value": 6}\n', "n", 2, Ended.EXIT)
    assert ran.compiled
    assert ran.answers[0].value == 5  # what was said first holds
    assert ran.answers[1].error


# --- the small language --------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.lists(st.integers(-20, 20), max_size=6))
@settings(max_examples=200)
def test_the_small_language_is_python(seed: int, xs: list[int]) -> None:
    source = draw_wish(derive_rng("test", seed)).expression
    try:
        mine: object = evaluate(source, xs)
    except ExpressionError:
        mine = "fails"
    try:
        theirs: object = eval(source, {"xs": xs})
    except ValueError:
        theirs = "fails"
    assert same(mine, theirs)


@pytest.mark.parametrize(
    "source",
    ["xs[1:-1]", "[x for x in xs if x > 2 and not x == 3]", "xs[0] if len(xs) > 2 else -1", "reversed(sorted(xs))",
     "1 < xs[0] < 9", "max(xs[0], 4) // 2", "[y % 3 for y in [x + 1 for x in xs]]", "3 in xs or xs[0]", "xs * 2 + [1]"],
)  # fmt: skip
def test_other_expressions_are_python_too(source: str) -> None:
    space = {"xs": [4, 1, 3], "reversed": lambda x: list(reversed(x))}
    assert same(evaluate(source, [4, 1, 3]), eval(source, space))


@pytest.mark.parametrize(
    "source",
    ["xs.append(1)", "__import__('os')", "open(0)", "(lambda: 1)()", "[x for x in xs].__class__", "'a' * 9", "9 ** 9",
     "xs[0] and print(1)", "f'{xs}'", "{1}", "(x for x in xs)", "exec", "not_a_name", "[x for x in xs for y in xs]",
     "sum(xs, start=1)", "(" * 200, "xs" * 300, "-" * 299, "\x00", "xs; xs", ""],
)  # fmt: skip
def test_what_is_not_of_the_language_is_refused(source: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(source, [1, 2])


@pytest.mark.parametrize(
    "source",
    ["xs * 1000000", "1000000 * xs", "999999999 * 999999999", "[[x] * 900 for x in xs * 300]", "xs[0] // 0", "xs[99]",
     "[sum([x for x in xs * 90]) for x in xs * 90]", "xs + 1", "max([])"],
)  # fmt: skip
def test_values_are_bounded(source: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(source, [1, 2, 3])


def test_the_interpreter_knows_every_node_it_lets_through() -> None:
    assert isinstance(parse("sum ( [ x for x in xs ] )"), ast.Call)
    assert all(callable(function) for function in FUNCTIONS.values())


# --- the kernel in a sandbox ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runner(sandboxed: None) -> Runner:
    return get_runner("auto")


def test_calls(runner: Runner) -> None:
    source = "def f(x, y=1):\n    if x == 3: raise ValueError('three')\n    print('noise')\n    return {x: (y, 0.5)}"
    ran = runner.answers(source, "f", [(1,), (2, 5), (3,), ("é\ud800",)], "calls", 20)
    assert [a.value for a in ran.answers] == [{1: (1, 0.5)}, {2: (5, 0.5)}, None, {"é\ud800": (1, 0.5)}]
    assert ran.answers[2].error == "ValueError: three"
    assert ran.compiled


def test_stdin(runner: Runner) -> None:
    ran = runner.answers(
        "a, b = map(int, input().split())\nprint(a // b)", "", ["6 3\n", "1 0\n"], "stdin", 20
    )
    assert ran.answers[0].value == "2\n"
    assert ran.answers[1].error


@pytest.mark.parametrize(
    ("source", "compiled", "text"),
    [("def f(:", False, "SyntaxError"), ("1 / 0", True, "ZeroDivisionError"), ("x = 1", True, "no function f"), ("{}['x']", True, "KeyError"), ("import os; os._exit(0)", True, "ended")],
)  # fmt: skip
def test_programs_that_do_not_get_to_their_inputs(
    runner: Runner, source: str, compiled: bool, text: str
) -> None:
    ran = runner.answers(source, "f", [(1,)], "calls", 20)
    assert ran.compiled is compiled
    assert text in ran.answers[0].error


def test_a_run_is_remembered_and_leaves_nothing(runner: Runner) -> None:
    clock = "import time\ndef f(): return str(time.time())"
    first, again = (runner.answers(clock, "f", [()], "calls", 20) for _ in range(2))
    assert first == again
    runner.script("open('/tmp/left', 'w').write('x')", 20)
    assert runner.script("import os; print(os.listdir('/tmp'), os.listdir('.'))", 20).text == "[] []"


def test_script_shows_output_and_where_it_failed(runner: Runner) -> None:
    done = runner.script("print('seen')\n1 / 0", 20)
    assert done.text.splitlines() == ["seen", "line 2: ZeroDivisionError: division by zero"]
