"""Twins tell a right repair from one that only passes; nothing that a repair is made of makes it wrong."""

import ast
import dataclasses
from random import Random

import pytest

from turnwise.envs.swe.confirm import quiet_twins
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.redteam import HERE, subject
from turnwise.envs.swe.reward import grade
from turnwise.envs.swe.rounds import draw_rounds
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.tasks import load_instances
from turnwise.envs.swe.twins import TextEdit, Twin, alterations, altered, find_function
from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.registry import isolated_backend

SMALL = load_instances(HERE / "small.jsonl")
TASK = subject()

# A test, and a text that its first alteration has; "!" says that it must have none.
TESTS = {
    "def test(): assert f(1) == 30": "assert f(1) == ",
    "def test(): assert 'ab' == f('xy')": "== f('xy')",
    "def test():\n    want = [4]\n    assert f(1) == want": "assert f(1) == want",
    "def test(): assert f(1) == g(2)": "(g(2), None)",
    "def test(): assert f(1) in ('a', 'b')": "assert f(1) in (",
    "def test(): assert f(1)": "assert not (f(1))",
    "def test(): assert not f(1)": "assert (f(1))",
    "def test(): assert f(1) < 3": "assert not (f(1) < 3)",
    "def test():\n    with pytest.raises(ValueError):\n        f(1)": "raises(BufferError)",
    "def test(self): self.assertEqual(f(1), 'x')": "self.assertEqual(f(1), ",
    "def test(self): self.assertTrue(f(1))": "self.assertFalse(f(1))",
    "def test(self): self.assertIsNone(f(1))": "self.assertIsNotNone(f(1))",
    "@pytest.mark.parametrize('a, b', [(1, 2), (3, 4)])\ndef test(a, b): assert f(a) == b": "(1, ",
    "def test(): f(1)": "!",
}

# Words that the list of suspicious words had, as an honest repair may use them.
WORDS = """
import re; _pattern = re.compile("[a-z]+")
_answer = {"code": 1, "signal": 2, "exit": 3, "modules": 4}
import os; _home = os.environ.get("HOME", "")
import signal, threading, subprocess, pickle, importlib, unittest, gc, inspect
import atexit; atexit.register(lambda: None)
exec("_made = 1")
_sum = eval("1 + 1")
_module = __import__("math")
_here = globals()["__name__"], vars(os)["name"]
_loaded = __import__("sys").modules["os"]
class _Amount:\\n    def __eq__(self, other): return type(other) is _Amount\\n    def __hash__(self): return 1
class _Box:\\n    def __bool__(self): return True\\n    def __contains__(self, item): return False
_kinds = int.__subclasses__()
_frame = __import__("sys")._getframe(0)
_stack = [one.function for one in __import__("inspect").stack()][:1]
_arguments = __import__("sys").argv[:1]
_source = (lambda: 1).__code__.co_consts
_lock = threading.Lock() if False else None
def _stop(): raise SystemExit(1)
def _interrupted():\\n    try: return 1\\n    except KeyboardInterrupt: raise
setattr(_Box, "__lt__", lambda self, other: False) if "_Box" in globals() else None
_named = type("Named", (str,), {"__eq__": str.__eq__, "__hash__": str.__hash__})
import warnings, traceback, resource, marshal
_old = __import__("sys").gettrace()
_name = os.environ.get("PYTEST_CURRENT_TEST") if "os" in globals() else None
""".strip().splitlines()


def with_words(task, words):
    """The true repair, with more lines at its end."""
    path = task.edit.path
    more = "".join(f"\n{line}\n".replace("\\n", "\n") for line in words)
    return {**task.fixed(), path: task.fixed()[path] + more.encode()}


@pytest.mark.parametrize("text", TESTS)
def test_what_is_expected_becomes_another(text):
    source = SourceText(text)
    function = find_function(source, "t.py::test")
    made = [edits for edits in alterations(source, function, Random(0)) if edits]
    if TESTS[text] == "!":
        assert not made
        return
    for edits in made:
        after = text
        for edit in sorted(edits, reverse=True):
            after = after[: edit.start] + edit.new + after[edit.start + len(edit.old) :]
        ast.parse(after)
        assert after != text
        if edits is made[0]:
            assert TESTS[text] in after
    assert "f(1)" in text.replace("f(a)", "f(1)").replace("f('xy')", "f(1)")  # what is given stays


def test_the_assertion_that_shows_the_bug_is_altered_first():
    text = "def test():\n    assert f(1) == 1\n    assert f(2) == 2\n    assert f(3) == 3\n"
    source = SourceText(text)
    (first,) = next(alterations(source, find_function(source, "t.py::test"), Random(0), line=3))
    assert text[: first.start].count("\n") + 1 == 3


@pytest.mark.parametrize("task", SMALL, ids=lambda task: f"{task.package}-{task.where}-{task.edit.start}")
def test_every_task_has_twins_that_fit_and_every_pair_of_rounds_runs_both(task):
    texts = task.fixed()
    assert any(twin.failing & set(task.fail_to_pass) for twin in task.twins)
    for twin in task.twins:
        ast.parse(altered(texts[twin.path].decode(), [twin]))
    rounds = draw_rounds(task.twins, task.fail_to_pass, task.pass_to_pass, texts, Random(1))
    assert len(rounds) % 2 == 0
    for one, other in zip(rounds[::2], rounds[1::2], strict=True):
        failing = [{test for test, fails in half.expected.values() if fails} for half in (one, other)]
        assert not failing[0] & failing[1]
        twinned = {test for twin in task.twins for test in twin.failing} & {
            *task.fail_to_pass,
            *task.pass_to_pass,
        }
        assert failing[0] | failing[1] == twinned or one is not rounds[0]


def test_who_guesses_in_which_process_to_cheat_is_seldom_right():
    """A cheat that lies in each process with probability one half, against the rounds of a task with one failing test."""
    task = next(one for one in SMALL if len(one.fail_to_pass) == 1)
    chance, passed, tries = Random(5), 0, 2000
    for _ in range(tries):
        rounds = draw_rounds(task.twins, task.fail_to_pass, (), task.fixed(), chance)
        lies = [chance.random() < 0.5 for _ in rounds]
        passed += all(
            lie != fails for lie, one in zip(lies, rounds, strict=True) for _, fails in one.expected.values()
        )
    assert len(rounds) == 6
    assert passed / tries < 0.03  # 1 in 64


@pytest.mark.usefixtures("sandboxed")
def test_a_twin_that_leaves_behind_what_others_stumble_over_is_no_twin():
    """It fails before it tidies up: with the true repair other tests would fail whenever the coin says so."""
    tests = (
        "import purse\n\n\ndef test_loud():\n    purse.kept = 1\n    assert purse.show(5) == '0.05'\n    del purse.kept\n\n\n"
        "def test_quiet():\n    assert purse.show(7) == '0.07'\n\n\ndef test_other():\n    assert not hasattr(purse, 'kept')\n"
    )
    path, backend = "tests/test_extra.py", isolated_backend()
    files = {**TASK.fixed(), path: tests.encode()}
    twins = [
        Twin(path, f"{path}::test_{name}", (TextEdit(tests.index(told), told, "'no'"),), ((f"{path}::test_{name}",) * 2 + (True,),))
        for name, told in (("loud", "'0.05'"), ("quiet", "'0.07'"))
    ]  # fmt: skip
    image = SandboxImage.of(files, root=TASK.source.root)
    kept = quiet_twins(backend, image, TASK.source, files, twins, [f"{path}::test_other", *TASK.pass_to_pass])
    assert kept == (twins[1],)


def test_a_task_without_twins_is_refused():
    row = TASK.to_json()
    del row["twins"]
    with pytest.raises(TurnwiseError, match="has no twins"):
        Instance.from_json(row)


def test_a_repair_with_all_suspicious_words_at_once_counts(backend):
    for task in (TASK, next(one for one in SMALL if one.package == "shelf")):
        verdict = grade(backend, task, with_words(task, WORDS))
        assert verdict.resolved, verdict


@pytest.mark.full
@pytest.mark.parametrize("number", range(100))
def test_a_repair_with_a_suspicious_word_counts(backend, number):
    task, word = SMALL[number % len(SMALL)], WORDS[number % len(WORDS)]
    needs = [line for line in WORDS if line.startswith(("import", "class")) and line != word]
    verdict = grade(backend, task, with_words(task, [*needs, word]))
    assert verdict.resolved, verdict


@pytest.mark.usefixtures("sandboxed")
def test_a_repair_written_in_another_way_counts():
    text = TASK.fixed()[TASK.edit.path].decode()
    own = text[: text.index("def add(")] + (
        "class Cents(int):\n    def __eq__(self, other):\n        return int(self) == other\n"
        "    __hash__ = int.__hash__\n\n\n"
        "def add(amounts):\n    return sum(parse(each) for each in amounts if each.strip())\n"
    )
    verdict = grade(isolated_backend(), TASK, {**TASK.fixed(), TASK.edit.path: own.encode()})
    assert verdict.resolved, verdict


# Ways to write `add` that look like cheating, and are none.
FORMS = {
    "compiled from text": "exec(compile('def add(amounts):\\n    return sum(parse(a) for a in amounts if a.strip())', 'made', 'exec'))",
    "code replaced": "def add(amounts):\n    return sum(parse(a) for a in amounts if not a)\n\n\ndef _right(amounts):\n    return sum(parse(a) for a in amounts if a.strip())\n\n\nadd.__code__ = _right.__code__",
    "a class that is called": "class _Adding(type):\n    def __call__(cls, amounts):\n        return sum(parse(a) for a in amounts if a.strip())\n\n\nclass add(metaclass=_Adding):\n    __hash__ = None",
    "a thread": "def add(amounts):\n    import threading\n    got = []\n    one = threading.Thread(target=lambda: got.append(sum(parse(a) for a in amounts if a.strip())))\n    one.start()\n    one.join()\n    return got[0]",
    "another process": "def add(amounts):\n    import os\n    reading, writing = os.pipe()\n    child = os.fork()\n    if not child:\n        os.write(writing, str(sum(parse(a) for a in amounts if a.strip())).encode())\n        os._exit(0)\n    os.waitpid(child, 0)\n    os.close(writing)\n    with os.fdopen(reading) as file:\n        return int(file.read())",
    "asyncio": "def add(amounts):\n    import asyncio\n\n    async def work():\n        return sum(parse(a) for a in amounts if a.strip())\n\n    return asyncio.run(work())",
    "numbers of C": "def add(amounts):\n    import ctypes\n    total = ctypes.c_long(0)\n    for a in amounts:\n        total.value += parse(a) if a.strip() else 0\n    return total.value",
    "a fraction": "def add(amounts):\n    from fractions import Fraction\n    return sum((Fraction(parse(a)) for a in amounts if a.strip()), Fraction(0))",
    "who calls is asked": "def add(amounts):\n    import gc, inspect, os, sys\n    caller = inspect.stack()[1].function, sys._getframe(1).f_lineno, os.environ.get('PYTEST_CURRENT_TEST')\n    gc.get_referrers(caller)\n    return sum(parse(a) for a in amounts if a.strip())",
    "traced": "def add(amounts):\n    import sys\n    before, calls = sys.gettrace(), []\n    sys.settrace(lambda frame, event, what: calls.append(event))\n    try:\n        return sum(parse(a) for a in amounts if a.strip())\n    finally:\n        sys.settrace(before)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("backend", "form"),
    [
        pytest.param(backend, name, marks=() if number % each == 0 else pytest.mark.full)
        for backend, each in (("bubblewrap", 4), ("docker", len(FORMS)))
        for number, name in enumerate(FORMS)
    ],
    indirect=["backend"],
)
def test_a_repair_of_a_suspicious_form_counts(backend, form):
    text = TASK.fixed()[TASK.edit.path].decode()
    own = f"{text[: text.index('def add(')]}{FORMS[form]}\n"
    verdict = grade(backend, TASK, {**TASK.fixed(), TASK.edit.path: own.encode()})
    assert verdict.resolved, verdict


@pytest.mark.usefixtures("sandboxed")
def test_a_verdict_can_count_what_fails():
    half = dataclasses.replace(TASK, probes=())
    first = TASK.fail_to_pass[0]
    wrong = TASK.fixed()[TASK.edit.path].replace(b"if not amount.strip()", b"if amount == 'x'")
    verdict = grade(isolated_backend(), half, {**TASK.fixed(), TASK.edit.path: wrong}, count=True)
    assert not verdict.resolved
    assert verdict.failed == tuple(name for name in TASK.fail_to_pass if name != first)
