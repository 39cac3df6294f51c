"""Training-Free GRPO: experience in words, written by comparing attempts at one task, in place of a change of weights.

python -m turnwise.trainers.lab.experiences SUITE OUT.txt --policy openai:MODEL@URL   # learns and writes OUT.txt
turnwise eval SUITE --policy primed:OUT.txt=openai:MODEL@URL                            # plays with it

Cai et al. 2025 (2510.08191): the policy is a frozen model and a library of short experiences that stands above every task. Each task is attempted
``size`` times; only groups of which some and not all attempts succeeded go on. (1) The model sums up each attempt. (2) Comparing winners
and losers it writes up to ``lessons`` lessons, the group's advantage in words. (3) For each lesson it names an operation on the library: add,
update an entry, delete one, or keep all as it is. (4) Over the batch the operations are consolidated once: duplicates merged, conflicts resolved. The
entries are numbered anew, and the next attempts read the new library. Ours: answers are JSON; what cannot be read changes nothing, and an unreadable
consolidation leaves the operations as they were named.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple, cast

from turnwise.agents.core import Episode, Policy
from turnwise.agents.policies.primed import PrimedPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import rollout
from turnwise.durable import write_whole
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split, Suite
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask, transcript
from turnwise.trainers.strategy.runner import plan_episodes

HEAD = "Experience from earlier attempts at other tasks :"
SUMMARY = """\
Below is an attempt at a task, which {verdict}. Sum up in a few lines what was done, which decisions mattered and where it went wrong, if it did.

{transcript}"""
COMPARE = """\
Below are summaries of {count} attempts at one task. Compare those that succeeded with those that failed, and write up to {lessons} short lessons
that would help with other tasks of this kind. What is known already needs no lesson. Answer with a JSON list of texts.

Known already:
{library}

{summaries}"""
OPERATE = """\
A library of experiences:
{library}

A new lesson: {lesson}

Answer with one JSON object, {{"operation": "add" or "update" or "delete" or "keep", "id": "G0", "text": "the entry as it is to be"}}: add the lesson,
update the entry that it improves, delete one that it refutes, or keep all as it is."""
CONSOLIDATE = """\
A library of experiences:
{library}

Operations on it that were proposed one by one:
{operations}

Merge duplicates and resolve conflicts. Answer with the JSON list of the operations that are to be carried out, in the same form."""
NAMES = ("add", "update", "delete", "keep")
LONGEST = 600
"""Characters of an experience."""


class ExperienceEdit(NamedTuple):
    """A change of the library: its name, the number of the entry that it is of (-1: none), and the entry's text."""

    name: str
    at: int = -1
    text: str = ""

    def to_json(self) -> dict[str, str]:
        """The form in which it is asked for."""
        return {"operation": self.name, "id": f"G{self.at}" if self.at >= 0 else "", "text": self.text}


class Experiences(NamedTuple):
    """Short experiences, numbered from G0.

    >>> print(Experiences(("look first", "say the word")))
    G0. look first
    G1. say the word
    """

    entries: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(f"G{number}. {text}" for number, text in enumerate(self.entries)) or "(nothing)"

    @property
    def text(self) -> str:
        """The text above a task; empty where nothing is known."""
        return f"{HEAD}\n{self}" if self.entries else ""

    def after(self, operations: Iterable[ExperienceEdit]) -> Experiences:
        """The library once these were carried out, numbered anew; their numbers are those of this one.

        Worked by hand: add a, update G0, delete G1 on G0, G1.

        >>> print(Experiences(("x", "y")).after([ExperienceEdit("add", -1, "a"), ExperienceEdit("update", 0, "x'"), ExperienceEdit("delete", 1)]))
        G0. x'
        G1. a
        """
        entries: list[str | None] = [*self.entries]
        added: list[str] = []
        for name, at, text in operations:
            if name == "add" and text and text not in entries and text not in added:
                added.append(text)
            elif 0 <= at < len(entries) and (name == "delete" or (name == "update" and text)):
                entries[at] = text if name == "update" else None
        return Experiences((*(one for one in entries if one is not None), *added))


def goes_on(rewards: Sequence[float]) -> bool:
    """Say whether a group of attempts, paid 0 to 1, has winners and losers.

    >>> goes_on([1, 0, 0, 1, 0]), goes_on([1] * 5), goes_on([0] * 5), goes_on([])
    (True, False, False, False)
    """
    return bool(rewards) and 0 < mean(rewards) < 1


def read_operations(answer: str) -> list[ExperienceEdit]:
    """The operations of an answer: those that can be read.

    >>> read_operations('I would say [{"operation": "update", "id": "G3", "text": "b"}, {"operation": "burn"}, 7]')
    [ExperienceEdit(name='update', at=3, text='b')]
    >>> read_operations('{"operation": "add", "text": "a"}'), read_operations("none")
    ([ExperienceEdit(name='add', at=-1, text='a')], [])
    """
    found = _json_in(answer)
    rows = cast("list[Any]", found) if isinstance(found, list) else [found]
    return [one for row in rows if (one := _operation(row)) is not None]


def _operation(row: Any) -> ExperienceEdit | None:
    if not isinstance(row, dict):
        return None
    said = {str(key): value for key, value in cast("dict[Any, Any]", row).items()}
    name, number = str(said.get("operation", "")).lower(), str(said.get("id") or "").strip().removeprefix("G")
    if name not in NAMES:
        return None
    at = int(number) if number.isascii() and number.isdigit() and len(number) < 6 else -1
    text = said.get("text")
    return ExperienceEdit(name, at, _short(text) if isinstance(text, str) else "")


def read_lessons(answer: str, most: int) -> list[str]:
    """The lessons of an answer, as many as are wanted at most.

    >>> read_lessons('Here: ["look first", "say the word", "run"]', 2), read_lessons("no", 2)
    (['look first', 'say the word'], [])
    """
    found = _json_in(answer)
    rows = cast("list[Any]", found) if isinstance(found, list) else []
    return [_short(row) for row in rows if isinstance(row, str) and row.strip()][:most]


def _short(text: str) -> str:
    return " ".join(text.split())[:LONGEST]


def _json_in(answer: str) -> Any:
    """The first JSON list or object of a text; None where it has none."""
    begins = [at for at in (answer.find("["), answer.find("{")) if at >= 0]
    try:
        return json.JSONDecoder().raw_decode(answer, min(begins))[0] if begins else None
    except (ValueError, RecursionError):
        return None


async def learned(policy: Policy, groups: Sequence[Group], library: Experiences, lessons: int) -> Experiences:
    """The library after a batch of groups, as the policy itself would have it."""
    counted = [[one for one in group if one.outcome.counts] for group in groups]
    mixed = [group for group in counted if goes_on([float(one.success) for one in group])]
    proposed = [
        operation
        for found in await asyncio.gather(*(_operations(policy, group, library, lessons) for group in mixed))
        for operation in found
    ]
    if not proposed:
        return library
    told = json.dumps([one.to_json() for one in proposed], ensure_ascii=False)
    (answer,) = await ask(policy, [CONSOLIDATE.format(library=library, operations=told)])
    return library.after(read_operations(answer) or proposed)


async def _operations(
    policy: Policy, group: Group, library: Experiences, lessons: int
) -> list[ExperienceEdit]:
    summed = await ask(policy, [_asked_of(one) for one in group])
    told = "\n\n".join(
        f"Attempt {number}, which {_verdict(one)}:\n{said}" for number, (one, said) in enumerate(zip(group, summed, strict=True), 1)
    )  # fmt: skip
    compare = COMPARE.format(count=len(group), lessons=lessons, library=library, summaries=told)
    (answer,) = await ask(policy, [compare])
    found = read_lessons(answer, lessons)
    answers = await ask(policy, [OPERATE.format(library=library, lesson=lesson) for lesson in found])
    return [one for said in answers for one in read_operations(said)[:1]]


def _verdict(one: Episode) -> str:
    return "succeeded" if one.success else "failed"


def _asked_of(one: Episode) -> str:
    return SUMMARY.format(verdict=_verdict(one), transcript=transcript(one))


class Practice(NamedTuple):
    """Amounts that are played: batches of so many tasks, each attempted so often, and lessons of a group."""

    batches: int = 2
    groups: int = 50
    size: int = 5
    lessons: int = 2
    epochs: int = 1


async def practise(
    suite: Suite,
    policy: Policy,
    how: Practice,
    told: Callable[[str, Experiences], None] = lambda line, library: None,
) -> Experiences:
    """Learn a library on training tasks; ``told`` hears of every batch, with the library after it."""
    library = Experiences()
    for epoch in range(how.epochs):
        for batch in range(how.batches):
            tasks = suite_tasks(suite, Split.TRAIN, how.groups, start=batch * how.groups)
            plan = plan_episodes(tasks, how.size, epoch, batch)
            primed = PrimedPolicy(f"primed:{policy.name}", policy, library.text)
            played = iter(await rollout([one for group in plan for one in group], primed))
            groups = [[next(played) for _ in group] for group in plan]
            rate = mean(one.success for group in groups for one in group)
            library = await learned(policy, groups, library, how.lessons)
            told(
                f"epoch {epoch + 1}, batch {batch + 1}: success {rate:.3f}, {len(library.entries)} experiences",
                library,
            )
    return library


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m turnwise.trainers.lab.experiences")
    parser.add_argument("suite")
    parser.add_argument("out", type=Path)
    parser.add_argument("--policy", required=True)
    for name, default in Practice()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--temperature", type=float, default=0.7)
    asked = parser.parse_args()
    policy = make_policy(asked.policy, temperature=asked.temperature)

    def told(line: str, library: Experiences) -> None:
        print(line, flush=True)
        write_whole(asked.out, library.text.encode())

    how = Practice(*(getattr(asked, name) for name in Practice._fields))
    try:
        asyncio.run(practise(get_suite(asked.suite), policy, how, told))
    finally:
        policy.close()


if __name__ == "__main__":
    main()
