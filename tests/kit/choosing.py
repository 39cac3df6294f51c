"""Of the tests that are dear, `make test` runs as many as ``--budget`` has seconds of processor time for; `make test-full` all.

What is cheap always runs, and counts; where it alone costs more than the budget, as in `make test-fast`, one case of each cheap test always
runs, and the others are drawn as the dear ones are. Those of a part that has changed since the last recorded `make test` always run. The others are drawn by the commit, so that each
has its turn: rather near a change than far from it, rather cheap than dear, rather one of few than one of many alike.
``--half 1`` and ``--half 2`` divide what is run by its recorded processor time.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import sha256
from math import sqrt
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
RECORD = (
    ROOT / "benchmarks" / "tests.json"
)  # of the last `make test`: where its commit is, what changes are counted from
COSTS = ROOT / "benchmarks" / "test-costs.json"
DEAR = 0.5  # seconds of processor time: a test that has cost as much is drawn, as one that is marked `slow`
UNKNOWN = 1.0  # what one costs of which nothing is known
OTHERS = 0.1  # of the budget is for other tests, however much the cheap ones and those of changed parts cost
LAST, NEAR, FAR = (
    0.05,
    0.2,
    1.0,
)  # how much less a test counts that the last commit, that any change is near to
LETTERS = re.compile(r"[A-Za-z0-9]+")
GROUP = re.compile(r"@[^@\]]+$")


class Costs(NamedTuple):
    """Seconds of processor time: of each test that costs ``DEAR``, and on average of a file's others."""

    tests: Mapping[str, float]
    files: Mapping[str, float]

    def of(self, test: str) -> float:
        return self.tests.get(test) or self.files.get(test.partition("::")[0], UNKNOWN)


class Plan(NamedTuple):
    """What the tests are drawn by; worked out once, and told to the workers."""

    budget: float
    seed: str
    weights: Mapping[str, float]  # by file of tests; ``FAR`` where it is not here
    parts: list[str]  # names of the components, recipes and environments that have changed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budget", type=float, default=0.0, metavar="SECONDS")
    parser.addoption("--half", choices=["1", "2"], default="")


def pytest_configure_node(node: Any) -> None:
    """Tell a worker the plan, in types that cross to it."""
    found = plan(node.config.getoption("budget"))
    node.workerinput["plan"] = tuple(found) if found else None


def choose(config: pytest.Config, items: list[pytest.Item], group_of: Callable[[pytest.Item], str]) -> None:
    """Leave out what is not drawn, and the other half."""
    told = getattr(config, "workerinput", {})
    found = told["plan"] if "plan" in told else plan(config.getoption("budget"))
    wanted = items
    if found:
        slow = {name_of(item.nodeid): item.get_closest_marker("slow") is not None for item in items}
        drawn = draw(slow, Plan(*found), costs())
        wanted = [item for item in wanted if name_of(item.nodeid) in drawn]
    if half := config.getoption("half"):
        mine = halves(spent_by({name_of(item.nodeid): group_of(item) for item in items}, costs()))
        wanted = [item for item in wanted if mine[group_of(item)] == int(half)]
    if len(wanted) < len(items):
        kept = set(wanted)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = wanted


def name_of(test: str) -> str:
    """A test's name, without the group that pytest-xdist writes behind it.

    >>> name_of("tests/a.py::test_it[me@home]@tests/a.py")
    'tests/a.py::test_it[me@home]'
    """
    return GROUP.sub("", test)


def draw(slow: Mapping[str, bool], plan: Plan, costs: Costs) -> set[str]:
    """What runs of these tests, which are slow or not: all that are cheap, and of the dear ones what the budget is enough for."""
    dear = [test for test, is_slow in slow.items() if is_slow or test in costs.tests]
    cheap = set(slow).difference(dear)
    if sum(map(costs.of, cheap)) > plan.budget * (1 - OTHERS):
        cheap = _one_of_each(cheap, plan.seed)
        dear = [test for test in slow if test not in cheap]
    alike: dict[str, list[str]] = defaultdict(list)
    for test in sorted(dear, key=lambda test: _hash(plan.seed, test)):
        alike[test.partition("[")[0]].append(test)
    rank: dict[str, float] = {}
    for name, tests in alike.items():
        weight = plan.weights.get(name.partition("::")[0], FAR) * sqrt(len(tests))
        start = _hash(plan.seed, name)
        for number, test in enumerate(tests):
            rank[test] = weight * costs.of(test) * (number + start) / len(tests)
    drawn = {test for test in dear if is_of(test, plan.parts)}
    always = cheap | drawn
    left = max(plan.budget - sum(map(costs.of, always)), plan.budget * OTHERS)
    for test in sorted(set(dear) - drawn, key=lambda test: rank[test]):
        left -= costs.of(test)
        if left < 0:
            break
        drawn.add(test)
    return always | drawn


def _one_of_each(tests: Iterable[str], seed: str) -> set[str]:
    """One case of each test, drawn by the seed."""
    cases = sorted(tests, key=lambda test: _hash(seed, test))
    return {*{test.partition("[")[0]: test for test in cases}.values()}


def is_of(test: str, parts: Iterable[str]) -> bool:
    """Whether a test is one of these parts': its case, or its file, has the part's name.

    >>> is_of("tests/contract/test_parts.py::test_kind[guide-acnchor-a_requirement]", ["acnchor"])
    True
    >>> is_of("tests/trainers/test_tree.py::test_it", ["tree"]), is_of("tests/trainers/test_tree.py::test_it", ["re"])
    (True, False)
    """
    file, _, rest = test.partition("::")
    case, stem = _words(rest.partition("[")[2]), _words(Path(file).stem.removeprefix("test_"))
    return any(words in case or words == stem for words in map(_words, parts))


@cache
def _words(text: str) -> str:
    return f" {' '.join(LETTERS.findall(text))} "


def _hash(seed: str, name: str) -> float:
    """A number in [0, 1) that each worker finds for itself."""
    return int.from_bytes(sha256(f"{seed} {name}".encode()).digest()[:8]) / 2**64


@cache
def plan(budget: float) -> Plan | None:
    """What tests are drawn by; nothing, which is all tests, without a budget or where the changes are not known."""
    script = _changed_tests()
    since = recorded() if budget else ""
    if not since or not script.git("cat-file", "-t", since):
        return None
    new = script.git("ls-files", "--others", "--exclude-standard")
    tree = script.Tree([*script.git("ls-files", "--cached"), *new])
    every, last = (
        {*script.git("diff", "--name-only", "--no-renames", commit), *new} for commit in (since, "HEAD~1")
    )
    weights = dict.fromkeys(near(tree, every), NEAR) | dict.fromkeys(near(tree, last), LAST)
    return Plan(budget, script.git("rev-parse", "HEAD")[0], weights, parts_of(tree, every))


def near(tree: Any, changed: Iterable[str]) -> list[str]:
    """The files of tests that have changed, that are fewest steps away from what has changed, or that are called after it."""
    own = {f"test_{Path(name).stem}" for name in changed}
    called = {name for name in tree.texts if name.startswith("tests/") and Path(name).stem in own}
    return sorted(called.union(*map(tree.nearest_tests, changed)))


def parts_of(tree: Any, changed: Iterable[str]) -> list[str]:
    """The names of the components, recipes and environments among changed files."""
    components = set[str]().union(*tree.kinds.values()) - tree.requirements
    homes = {str(Path(home).parent) for home in tree.families if Path(home).parent.name != "envs"}
    found: set[str] = set()
    for name in changed:
        path = Path(name)
        if name in components or (path.suffix == ".yaml" and not name.startswith(("docs/", "tests/"))):
            found.add(path.stem)
        found |= {Path(home).name for home in homes if path.is_relative_to(home)}
        found |= {path.stem} if name in tree.families else set()
    return sorted(found - {"__init__", "core", "env"})


def recorded() -> str:
    """The commit of the last recorded `make test`; nothing where there is none."""
    row = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    return str(row.get("commit", "")).removesuffix("-dirty")


def _changed_tests() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changed_tests", ROOT / "scripts" / "changed_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def costs() -> Costs:
    found = json.loads(COSTS.read_text("utf-8")) if COSTS.exists() else {}
    return Costs(found.get("tests", {}), found.get("files", {}))


def spent_by(groups: Mapping[str, str], costs: Costs) -> dict[str, float]:
    """What each group of tests costs."""
    found: dict[str, float] = defaultdict(float)
    for test, group in groups.items():
        found[group] += costs.of(test)
    return found


def halves(cost: Mapping[str, float]) -> dict[str, int]:
    """Which half each group is in: the dearest first, each to the half that has less.

    >>> halves({"a": 5.0, "b": 3.0, "c": 1.0})
    {'a': 1, 'b': 2, 'c': 2}
    """
    found: dict[str, int] = {}
    spent = {1: 0.0, 2: 0.0}
    for group in sorted(cost, key=lambda name: (-cost[name], name)):
        found[group] = min(spent, key=lambda half: spent[half])
        spent[found[group]] += cost[group]
    return found
