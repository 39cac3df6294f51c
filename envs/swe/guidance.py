"""Agent-RLVR's guidance: attempt, failure report, reattempt (:func:`reattempted`); or help within one episode.

Help stands between the marks of :data:`MARKS`, so that a trainer can take it out of what is learned from:
:func:`without_guidance` does with a text, :func:`unguided` with a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from turnwise.envs.swe.instance import Instance, instance_of
from turnwise.envs.swe.reward import RepairVerdict
from turnwise.tasks.core import Json, Task

MARKS = ("<guidance>", "</guidance>")


def plan(instance: Instance) -> str:
    """Where to look and in which order; not what to write."""
    return "\n".join([MARKS[0], *_plan(instance), MARKS[1]])


def _plan(instance: Instance) -> list[str]:
    where = f"`{instance.where}` in {instance.edit.path}" if instance.where else instance.edit.path
    return [
        "1. Write reproduce.py from the example in the issue and run it: it must fail.",
        f"2. Read {where}; the cause is there.",
        "3. Repair it with as small a change as does, run reproduce.py again, then submit.",
    ]


def feedback(verdict: RepairVerdict) -> str:
    """Why a submission is not accepted, and that one more is possible."""
    names = [*verdict.failed[:5], *verdict.broken[:5]]
    told = [f"Not yet: {verdict.why}.", *(f"- {name}" for name in names), "You may submit once more."]
    return "\n".join([MARKS[0], *told, MARKS[1]])


class GuidedAttempt(NamedTuple):
    """One episode of a loop: the task with the help that it was given, and the ``details`` of its last turn."""

    task: Task
    details: Mapping[str, Json]

    @property
    def is_solved(self) -> bool:
        return bool(self.details.get("resolved"))


def reattempted(
    play: Callable[[Task], Mapping[str, Json]], task: Task, *, attempts: int = 2
) -> Iterator[GuidedAttempt]:
    """Attempts at a task (Da et al. 2025, Agent-RLVR), until one is solved or there were so many.

    Each is an episode of its own from the beginning; from the second on its issue ends in a report of the last failure and a
    plan. ``play`` plays an episode and gives the ``details`` of its last turn (empty where it never submitted).
    """
    told = task
    for _ in range(attempts):
        attempt = GuidedAttempt(told, play(told))
        yield attempt
        if attempt.is_solved:
            return
        told = guided(task, attempt.details)


def guided(task: Task, details: Mapping[str, Json]) -> Task:
    """The same task for another attempt, after one that ended with these details."""
    lines = ["An earlier attempt failed; the repository is as it was before.", _report(details)]
    text = "\n".join([MARKS[0], *lines, *_plan(instance_of(task)), MARKS[1]])
    return Task(task.env, f"{task.prompt}\n\n{text}", task.options, task.gold)


def unguided(task: Task) -> Task:
    """The task without its help: the one that is to be learned, with the same id as before."""
    return Task(task.env, without_guidance(task.prompt), task.options, task.gold)


def _report(details: Mapping[str, Json]) -> str:
    if "verdict" not in details:
        return "It never submitted."
    names = [*details.get("failed", ())[:5], *details.get("broken", ())[:5]]
    return "\n".join([f"What was submitted: {details['verdict']}.", *(f"- {name}" for name in names)])


def without_guidance(text: str) -> str:
    """A text as it would be without help."""
    kept: list[str] = []
    place = 0
    while (begin := text.find(MARKS[0], place)) >= 0 and (end := text.find(MARKS[1], begin)) >= 0:
        kept.append(text[place:begin].rstrip())
        place = end + len(MARKS[1])
    return "".join([*kept, text[place:]])
