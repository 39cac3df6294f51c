"""Help for who failed, as Agent-RLVR gives it: a plan before the next attempt, what went wrong after one.

Both stand between the marks of :data:`MARKS`, so that a trainer can take them out of what is learned from.
"""

from __future__ import annotations

import re

from turnwise.envs.swe.grade import Verdict
from turnwise.envs.swe.instance import Instance

MARKS = ("<guidance>", "</guidance>")
_MARKED = re.compile(r"\s*<guidance>.*?</guidance>", re.DOTALL)


def plan(instance: Instance) -> str:
    """Where to look and in which order; not what to write."""
    where = f"`{instance.where}` in {instance.edit.path}" if instance.where else instance.edit.path
    steps = [
        "1. Write reproduce.py from the example in the issue and run it: it must fail.",
        f"2. Read {where}; the cause is there.",
        "3. Repair it with as small a change as does, run reproduce.py again, then submit.",
    ]
    return "\n".join([MARKS[0], *steps, MARKS[1]])


def feedback(verdict: Verdict) -> str:
    """Why a submission is not accepted, and that one more is possible."""
    names = [*verdict.failed[:5], *verdict.broken[:5]]
    told = [f"Not yet: {verdict.why}.", *(f"- {name}" for name in names), "You may submit once more."]
    return "\n".join([MARKS[0], *told, MARKS[1]])


def without_guidance(text: str) -> str:
    """A text as it would be without help."""
    return _MARKED.sub("", text)
