"""Tasks whose judge reaches for the network."""

from __future__ import annotations

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, Judged, ProbedSet, ProbedTask, quoted


@audit()
def needs_network(probed: ProbedSet) -> AuditFinding:
    """Tasks whose judge wants to reach an address; installing what it needs while it judges is worth a look."""
    return defects(probed, _detect)


def _detect(one: ProbedTask) -> Evidence | None:
    reached = [(seen, places) for seen in one.judged if (places := _of_the_judge(seen))]
    if reached:
        places = dict.fromkeys(place for _, places in reached for place in places)
        first = reached[0][0]
        return Evidence(
            f"the judge reaches for {quoted(', '.join(places), 120)}; without a network {first.attempt.agent} gets {first.verdict.said}"
        )
    installs = dict.fromkeys(what for seen in one.judged for what in seen.verdict.installs)
    if installs:
        return Evidence(f"the judge installs when it judges: {quoted('; '.join(installs), 160)}", "look")
    return None


def _of_the_judge(seen: Judged) -> list[str]:
    """Places that no wrong answer names: a program that is tried may reach for one itself."""
    right = seen.attempt.agent == "gold"
    return [place for place in seen.verdict.network if right or place not in seen.attempt.text]
