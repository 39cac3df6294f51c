"""Bugs of several places: each kind makes what it says of a small program, and issues by symptom show no call."""

import ast
from random import Random

import pytest

from turnwise.envs.swe.baseline import Baseline
from turnwise.envs.swe.deep import KINDS, deep_bugs
from turnwise.envs.swe.draw import Drawing
from turnwise.envs.swe.packages import get_package
from turnwise.envs.swe.suite import TestResult
from turnwise.envs.swe.symptoms import write_symptoms
from turnwise.envs.swe.whole import WholePackage
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.registry import get_backend

TWO_CALLERS = "from a import f\n\n\ndef g(x):\n    return f(x, 1)\n\n\ndef h(x):\n    return f(2, x)\n"
DEFAULTS = "from a import f\n\n\ndef h(x):\n    return f(2), f()\n"
BRANCHES = "def f(x):\n    if x:\n        a()\n    elif y:\n        b()\n    else:\n        c()\n"
QUEUE = "class Q:\n    def __init__(self):\n        self.x = []\n\n    def add(self, y):\n        self.x.append(y)\n\n    def drop(self):\n        self.x = []\n        self.n = 0\n"

# Each kind: a package, and files that it makes of it, of which one must be there.
EXAMPLES = {
    "drifted_arguments": (
        {"a.py": "def f(a, b):\n    return a - b\n", "b.py": TWO_CALLERS},
        {"a.py": "def f(b, a):\n    return a - b\n", "b.py": TWO_CALLERS.replace("f(x, 1)", "f(1, x)")},
    ),
    "drifted_results": (
        {"a.py": "def f():\n    return 1, 2\n\n\ndef g():\n    a, b = f()\n\n\ndef h():\n    c, d = f()\n"},
        {"a.py": "def f():\n    return 2, 1\n\n\ndef g():\n    b, a = f()\n\n\ndef h():\n    c, d = f()\n"},
    ),
    "drifted_defaults": (
        {"a.py": "def f(x, deep=True):\n    return x\n\n\ndef g():\n    return f(1)\n", "b.py": DEFAULTS},
        {"a.py": "def f(x, deep=False):\n    return x\n\n\ndef g():\n    return f(1)\n", "b.py": DEFAULTS.replace("f(2)", "f(2, deep=True)").replace("f()", "f(deep=True)")},
    ),
    "mistaken_helper": (
        {"a.py": "def low(x): pass\n\n\ndef up(x): pass\n\n\ndef g():\n    low(1)\n\n\ndef h():\n    low(2)\n"},
        {"a.py": "def low(x): pass\n\n\ndef up(x): pass\n\n\ndef g():\n    up(1)\n\n\ndef h():\n    up(2)\n"},
    ),
    "skipped_helper": (
        {"a.py": "def low(x): pass\n\n\ndef g():\n    return low('a')\n\n\ndef h(y):\n    return low(y + 1)\n"},
        {"a.py": "def low(x): pass\n\n\ndef g():\n    return 'a'\n\n\ndef h(y):\n    return (y + 1)\n"},
    ),
    "fewer_cases": ({"a.py": BRANCHES}, {"a.py": BRANCHES.replace("    elif y:\n        b()\n", "")}),
    "other_order": ({"a.py": BRANCHES}, {"a.py": BRANCHES.replace("if x", "if Y").replace("elif y", "elif x").replace("Y", "y").replace("a()", "A").replace("b()", "a()").replace("A", "b()")}),
    "lost_override": (
        {"a.py": "class A:\n    def f(self): pass\n", "b.py": "from a import A\n\n\nclass B(A):\n    x = 1\n\n    def f(self):\n        g()\n"},
        {"a.py": "class A:\n    def f(self): pass\n", "b.py": "from a import A\n\n\nclass B(A):\n    x = 1\n\n"},
    ),
    "skipped_super": (
        {"a.py": "class B(A):\n    def f(self):\n        super().f()\n        g()\n"},
        {"a.py": "class B(A):\n    def f(self):\n        g()\n"},
    ),
    "swapped_steps": (
        {"a.py": "def f(x, y):\n    x.a()\n    y.b()\n    x.c()\n    x = 1\n"},
        {"a.py": "def f(x, y):\n    x.a()\n    y.b()\n    x = 1\n    x.c()\n"},
    ),
    "shared": ({"a.py": QUEUE}, {"a.py": QUEUE.replace("class Q:\n", "class Q:\n    x = []\n", 1).replace("        self.x = []\n", "        pass\n", 1)}),
    "stale": ({"a.py": QUEUE}, {"a.py": QUEUE.replace("        self.x = []\n        self.n", "        self.n")}),
    "cached": (
        {"a.py": "import os\n\n\nclass A:\n    @property\n    def b(self):\n        return self.c\n"},
        {"a.py": "import functools\nimport os\n\n\nclass A:\n    @functools.cached_property\n    def b(self):\n        return self.c\n"},
    ),
}  # fmt: skip


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_makes_what_it_says(kind):
    before, after = EXAMPLES[kind]
    package = WholePackage(before)
    made = [{**before, **package.after(spots)} for _, spots in KINDS[kind](package)]
    assert after in made


def test_steps_that_have_nothing_to_do_with_each_other_stay_where_they_are():
    kept = WholePackage({"a.py": "def f(x, y):\n    x.a()\n    y.b()\n    z = x\n    g(z)\n"})
    assert not list(KINDS["swapped_steps"](kept))


def test_the_tests_of_a_caller_that_nobody_told_count():
    """They alone fail: a bug is tried on the tests of its lines."""
    before, _ = EXAMPLES["drifted_arguments"]
    lines = {"b.py": {5: frozenset({"of g"}), 9: frozenset({"of h"})}}
    drawn = [bug for bug in deep_bugs(before, lines, Random(0)) if bug.operator == "drifted_arguments"]
    assert {bug.where for bug in drawn} == {"g", "h"}
    assert all({span.first for span in bug.spans if span.path == "b.py"} == {5, 9} for bug in drawn)


def test_methods_come_in_the_order_of_their_names_whatever_hashes_are():
    names = ("up", "down", "left", "right", "here", "there", "away")
    methods = "".join(f"    def {name}(self):\n        self.x = 1\n        self.y = 2\n\n" for name in names)
    package = WholePackage({"a.py": f"class A:\n    x = 0\n\n{methods}"})
    assert [where for where, _ in KINDS["stale"](package)] == [f"A.{name}" for name in sorted(names)]


@pytest.fixture
def drawing(monkeypatch):
    """Draws bugs of several files of a package whose tests all run every line."""
    lines = {
        f"purse/{name}.py": {line: frozenset({"t"}) for line in range(1, 60)}
        for name in ("amounts", "sharing")
    }
    base = Baseline(frozenset({"t"}), lines, frozenset(), 1.0, 1.0, 0.0, SandboxImage())
    monkeypatch.setattr("turnwise.envs.swe.draw.baseline_of", lambda *_: base)
    return Drawing(get_backend("bubblewrap"), get_package("purse"), hard=True, files=2)


def test_bugs_of_several_files_can_be_asked_for(drawing):
    drawn = list(drawing._bugs)
    wanted = [bug for bug in drawn if drawing._is_wanted(bug)]
    assert wanted
    assert (
        {len({edit.path for edit in bug.edits}) for bug in wanted} == {2} < {len(bug.edits) for bug in drawn}
    )


@pytest.mark.parametrize(("second", "shown"), [("test_settle_two", 2), ("test_of_a_base_class", 0)])
def test_an_issue_of_two_bugs_shows_both_or_there_is_none(drawing, second, shown):
    """Nobody could know the other: a failing test that is not in its file cannot be shown."""
    bug = next(bug for bug in drawing._bugs if bug.operator == "several")
    names = ["tests/test_amounts.py::test_add", f"tests/test_sharing.py::{second}"]
    drawing._first[bug.edits] = frozenset(names)
    issue = drawing._issue(bug, {name: TestResult("fail", "assert 1 == 2") for name in names}, "")
    assert issue.count("```python") == shown


def test_what_tests_call_keeps_its_interface():
    before, _ = EXAMPLES["drifted_arguments"]
    assert not list(KINDS["drifted_arguments"](WholePackage(before, used=frozenset({"f"}))))
    mentioned = {
        **before,
        "c.py": "from a import f\ntable = {'f': f}\n",
    }  # it is handed on: nobody knows to whom
    assert not list(KINDS["drifted_arguments"](WholePackage(mentioned)))


def test_drawn_bugs_parse_can_be_undone_and_several_have_pieces():
    texts = {"q.py": QUEUE, "b.py": BRANCHES.replace("a()", "return x + 1")}
    lines = {path: {line: frozenset({"t"}) for line in range(1, 20)} for path in texts}
    drawn = list(deep_bugs(texts, lines, Random(0)))
    assert drawn == list(deep_bugs(texts, lines, Random(0)))
    for bug in drawn:
        for edit in bug.edits:
            broken = edit.apply(texts[edit.path])
            ast.parse(broken)
            assert edit.undo(broken) == texts[edit.path]
    several = [bug for bug in drawn if bug.operator == "several"]
    assert several
    assert all(len(bug.pieces) == 2 and len(bug.edits) == 2 for bug in several)
    assert all({edit.path for edit in bug.edits} == {"q.py", "b.py"} for bug in several)


def test_nothing_is_changed_where_no_test_runs():
    assert not list(deep_bugs({"q.py": QUEUE}, {}, Random(0)))


def test_symptoms_are_values_without_calls():
    failures = {
        "tests/test_spans.py::TestMerge::test_touching[3-4]": TestResult("fail", "AssertionError: assert [1, 2] == [[1, 2]]"),
        "tests/test_spans.py::test_dull": TestResult("fail", "assert False"),
    }  # fmt: skip
    issue = write_symptoms(get_package("shelf"), failures)
    assert "spans, merge, touching (3-4)" in issue
    assert "assert [1, 2] == [[1, 2]]" in issue
    assert "test_" not in issue
    assert "1 other checks" in issue
    assert not write_symptoms(get_package("shelf"), {"t.py::test_dull": TestResult("fail", "assert False")})
