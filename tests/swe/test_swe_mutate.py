"""Operators change what they say, the rest of the text stays, and every bug can be undone."""

import ast
import itertools
from random import Random

import pytest

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.issue import leaks, write_issue
from turnwise.envs.swe.mutate import Edit, bugs_of
from turnwise.envs.swe.operators import OPERATORS
from turnwise.envs.swe.packages import get_package, repository
from turnwise.envs.swe.probes import Probe
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.suite import TestResult
from turnwise.envs.swe.twins import TextEdit, Twin

# Each operator: a program, and one of the texts it makes of it.
EXAMPLES = {
    "flip_operator": ("x = a < b  # é\n", "x = a > b  # é\n"),
    "swap_operands": ("é = a - b\n", "é = b - a\n"),
    "change_constant": ("x = True\n", "x = False\n"),
    "break_chain": ("x = a + b + c\n", "x = a + b\n"),
    "invert_condition": ("if a:\n    b()  # why\nelse:\n    c()\n", "if a:\n    c()\nelse:\n    b()  # why\n"),
    "drop_condition": ("def f():\n    if a:\n        b()\n        c()\n", "def f():\n    b()\n    c()\n"),
    "drop_loop": ("def f():\n    for a in b:\n        c()\n    d()\n", "def f():\n    d()\n"),
    "drop_assignment": ("def f():\n    x = 1\n", "def f():\n    pass\n"),
    "drop_wrapper": ("with a:\n    b()\n", "b()\n"),
    "shuffle_lines": ("def f():\n    a = 1\n    b = 2\n", "def f():\n    b = 2\n    a = 1\n"),
    "drop_return": ("def f():\n    return 1 + 2\n", "def f():\n    1 + 2\n"),
    "shift_slice": ("x = a[1:]\n", "x = a[1 + 1:]\n"),
    "change_default": ("def f(a, b=True): pass\n", "def f(a, b=False): pass\n"),
    "swap_jump": ("for a in b:\n    break\n", "for a in b:\n    continue\n"),
    "swap_arguments": ("f(a, b, c)\n", "f(b, a, c)\n"),
    "drop_base": ("class A(B):\n    pass\n", "class A:\n    pass\n"),
    "drop_method": ("class A:\n    x = 1\n    def f(self):\n        pass\n", "class A:\n    x = 1\n"),
    "remove_feature": ('def f():\n    "Does."\n    a = 1\n    return a\n', 'def f():\n    "Does."\n    raise NotImplementedError\n'),
}  # fmt: skip


def test_every_operator_has_an_example():
    assert set(EXAMPLES) == set(OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_makes_what_it_says(name):
    before, after = EXAMPLES[name]
    made = set()
    for seed in range(20):
        source = SourceText(before)
        for node in source.nodes:
            if OPERATORS[name].fits(node) and (new := OPERATORS[name].make(source, node, Random(seed))):
                made.add(source.text[: new.start] + new.text + source.text[new.end :])
    assert after in made


@pytest.mark.parametrize("package", ["purse", "shelf"])
def test_bugs_parse_can_be_undone_and_repeat(package):
    for path, data in repository(get_package(package)).items():
        text = data.decode()
        if not path.endswith(".py"):
            continue
        bugs = list(itertools.islice(bugs_of(path, text, Random(1)), 60))
        assert bugs == list(itertools.islice(bugs_of(path, text, Random(1)), 60))
        for bug in bugs:
            broken = bug.edit.apply(text)
            ast.parse(broken)
            assert broken != text
            assert bug.edit.undo(broken) == text


def test_an_edit_refuses_another_text():
    with pytest.raises(ValueError, match="not the file"):
        Edit("a.py", 0, "x", "y").apply("z")


def test_an_issue_shows_what_happens_and_not_the_repair():
    package = get_package("purse")
    failures = {"tests/test_sharing.py::test_share_with_rest": TestResult("fail", "assert [1, 2] == [2, 1]")}
    issue = write_issue(package, repository(package), failures)
    assert "assert share(1000, 3) == [334, 333, 333]" in issue
    assert "assert [1, 2] == [2, 1]" in issue
    assert "sharing.py" not in issue
    assert leaks(issue, ["assert share(1000, 3) == [334, 333, 333]"])
    assert not leaks(issue, ["each, left = divmod(cents, people)"])


def test_a_long_test_is_cut_around_the_assertion_that_fails():
    lines = [f"    step({number})" for number in range(60)]
    lines[49] = "    assert answer() == [\n        1,\n        2,\n    ]"
    files = {"tests/test_a.py": ("def test_long():\n" + "\n".join(lines)).encode()}
    name = "tests/test_a.py::test_long"
    issue = write_issue(get_package("purse"), files, {name: TestResult("fail", "assert 0 == [1, 2]", 51)})
    shown = issue.partition("```python\n")[2].partition("```")[0]
    assert "assert answer() == [\n    1,\n    2,\n]" in shown
    assert "step(0)" not in shown
    assert shown.startswith("# …")
    assert len(shown.splitlines()) <= 24


def test_an_inherited_test_is_shown_and_one_that_cannot_be_makes_no_issue():
    files = {
        "tests/__init__.py": b"class Mixin:\n    def test_size(self):\n        assert len(self.made()) == 3\n",
        "tests/test_a.py": b"from . import Mixin\nclass TestA(Mixin):\n    made = list\n",
    }
    failed = TestResult("fail", "assert 0 == 3")
    assert "len(self.made()) == 3" in write_issue(
        get_package("purse"), files, {"tests/test_a.py::TestA::test_size": failed}
    )
    assert write_issue(get_package("purse"), files, {"tests/test_a.py::TestA::test_other": failed}) == ""


def test_instances_survive_json():
    edit = Edit("purse/sharing.py", 3, "a", "b")
    twin = Twin("t", "t::a", (TextEdit(3, "1", "2"),), (("t::a", "t::a", True),))
    judges = (twin,), (Probe("x", "1"),)
    tests = ("t::a",), ("t::b",), ("t",)
    made = Instance("purse", "1", (edit,), "flip_operator", "share", "text", *tests, 0.5, *judges)
    assert Instance.from_json(made.to_json()) == made
