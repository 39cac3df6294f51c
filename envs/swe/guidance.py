"""Agent-RLVR's guidance: what an attempt that failed is told before another, and help within one episode.

Help within an episode stands between the marks of :func:`turnwise.envs.messages.guidance`.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnwise.envs.messages import guidance
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.reward import RepairVerdict
from turnwise.tasks.core import Json

_NAMED = 5  # tests of each kind that a report names


def plan(instance: Instance) -> str:
    """Say where to look and in which order; not what to write."""
    return guidance(_plan(instance))


def feedback(verdict: RepairVerdict) -> str:
    """Say why a submission is not accepted, and that one more is possible."""
    names = [*verdict.failed[:_NAMED], *verdict.broken[:_NAMED]]
    told = [f"Not yet: {verdict.why}.", *(f"- {name}" for name in names), "You may submit once more."]
    return guidance("\n".join(told))


def report(instance: Instance, details: Mapping[str, Json]) -> str:
    """Tell what failed in an attempt that ended with these details, and a plan, before another attempt."""
    lines = ["An earlier attempt failed; the repository is as it was before."]
    if "verdict" in details:
        names = [*details.get("failed", ())[:_NAMED], *details.get("broken", ())[:_NAMED]]
        lines += [f"What was submitted: {details['verdict']}.", *(f"- {name}" for name in names)]
    else:
        lines.append("It never submitted.")
    return "\n".join([*lines, _plan(instance)])


def _plan(instance: Instance) -> str:
    where = f"`{instance.where}` in {instance.edit.path}" if instance.where else instance.edit.path
    return "\n".join(
        [
            "1. Write reproduce.py from the example in the issue and run it: it must fail.",
            f"2. Read {where}; the cause is there.",
            "3. Repair it with as small a change as does, run reproduce.py again, then submit.",
        ]
    )
