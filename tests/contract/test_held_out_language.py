"""What a suite says of its language holds: where it is held out, no test task is worded as a training task is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from turnwise.envs.registry import suite_tasks, suites
from turnwise.tasks.core import Json, Split, Suite, Task

TASKS = 24
FEW = 12  # of which `make test` draws
HELD_OUT = [suite for suite in suites() if suite.language == "held out"]
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|\u201c[^\u201d]*\u201d")
_NUMBER = re.compile(r"\S*\d\S*")
_NAME = re.compile(r"(?<=\s)[A-Z][\w\u2019'-]*(?: (?:of |the )?[A-Z][\w\u2019'-]*)*")
_LONGEST = 4  # words of a name


def strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield from (key, *strings(inner))
        case list() | tuple():
            for inner in value:
                yield from strings(inner)
        case _:
            pass


def template(task: Task) -> str:
    """A task's wording without what differs from task to task: quotations, numbers, and the names of its world."""
    text = _NAME.sub("_", _NUMBER.sub("_", _QUOTED.sub("_", task.prompt)))
    names = {one for one in strings(task.options) if one and len(one.split()) <= _LONGEST}
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "_", text)
    return text


def templates(suite: Suite, split: Split, count: int) -> set[str]:
    return {template(task) for task in suite_tasks(suite, split, count)}


def test_names_numbers_and_quotations_are_no_part_of_a_template():
    task = Task(
        "turnwise/Craft-v0", 'Send "a b" to Ada Holm, then make 3 gears of tin.', {"raw": ["tin"], "n": 3}
    )
    assert template(task) == "Send _ to _, then make _ gears of _."


def test_every_suite_of_ours_says_what_of_its_language_is_held_out_or_why_nothing_is():
    ours = [suite for suite in suites() if suite.env.startswith("turnwise/")]
    assert not [suite.name for suite in ours if not suite.language]
    reasons = {suite.language for suite in ours} - {"held out"}
    assert all(len(reason.split()) >= 4 for reason in reasons)


def test_every_family_that_speaks_holds_language_out():
    families = {suite.name.partition("/")[0] for suite in HELD_OUT}
    assert families >= {
        "code",
        "craft",
        "deduce",
        "dialogue",
        "functioncall",
        "lab",
        "search",
        "shop",
        "toolworld",
    }


@pytest.mark.slow
@pytest.mark.parametrize("count", [FEW, pytest.param(TASKS, marks=pytest.mark.full)])
@pytest.mark.parametrize("suite", HELD_OUT, ids=lambda suite: suite.name)
def test_no_test_task_is_worded_as_a_training_task(suite: Suite, count: int):
    shared = templates(suite, Split.TRAIN, count) & templates(suite, Split.TEST, count)
    assert not shared, sorted(shared)[:3]
