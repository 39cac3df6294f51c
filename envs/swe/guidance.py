"""Agent-RLVR's guidance after a failure: a plan before the next attempt, and feedback after one.

Both stand between the marks of :data:`MARKS`, so that a trainer can take them out of what is learned from.
"""

from __future__ import annotations

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.reward import RepairVerdict

MARKS = ("<guidance>", "</guidance>")


def plan(instance: Instance) -> str:
    """Where to look and in which order; not what to write."""
    where = f"`{instance.where}` in {instance.edit.path}" if instance.where else instance.edit.path
    steps = [
        "1. Write reproduce.py from the example in the issue and run it: it must fail.",
        f"2. Read {where}; the cause is there.",
        "3. Repair it with as small a change as does, run reproduce.py again, then submit.",
    ]
    return "\n".join([MARKS[0], *steps, MARKS[1]])


def feedback(verdict: RepairVerdict) -> str:
    """Why a submission is not accepted, and that one more is possible."""
    names = [*verdict.failed[:5], *verdict.broken[:5]]
    told = [f"Not yet: {verdict.why}.", *(f"- {name}" for name in names), "You may submit once more."]
    return "\n".join([MARKS[0], *told, MARKS[1]])


def without_guidance(text: str) -> str:
    """A text as it would be without help."""
    kept: list[str] = []
    place = 0
    while (begin := text.find(MARKS[0], place)) >= 0 and (end := text.find(MARKS[1], begin)) >= 0:
        kept.append(text[place:begin].rstrip())
        place = end + len(MARKS[1])
    return "".join([*kept, text[place:]])
