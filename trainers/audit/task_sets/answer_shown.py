"""Tasks that show their answer."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted
from turnwise.trainers.audit.xray.leaks import plain_in_prompt, shown

_USUAL = 0.15


@audit()
def answer_shown(probed: ProbedSet) -> AuditFinding:
    """Tasks whose prompt or files hold the answer: behind a marker, as a whole, or as text where the set's other prompts do not hold theirs."""
    held = [one.task.id for one in probed.tasks if plain_in_prompt(one.task)]
    rare = {*held} if len(held) <= max(1, _USUAL * len(probed.tasks)) else set[str]()

    def detect(one: ProbedTask) -> Evidence | None:
        if told := one.shown or shown(one.task):
            return Evidence(told)
        paid = one.paid("leak")
        if (
            paid is not None
            and not one.always
            and not one.paid("garbage", "no-op", "empty", "formed")
            and one.task.gold
        ):
            return Evidence(
                f"what the prompt says behind a marker is paid: {quoted(paid.attempt.label, 80)!r}"
            )
        if one.task.id in rare and not one.task.hidden:
            return Evidence(
                f"the answer {quoted(one.task.core, 80)!r} stands in the prompt, and those of other tasks do not",
                "look",
            )
        return None

    return defects(probed, detect, unjudged=True)
