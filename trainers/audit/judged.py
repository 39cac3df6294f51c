"""A log whose turns a judge has labelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from turnwise.errors import TurnwiseError
from turnwise.registry import get_component
from turnwise.trainers.audit.reading import LoggedGroup, LoggedGroups
from turnwise.trainers.kit.asking import judged_now, made_judge


def judged(played: LoggedGroups, judge: str, policy: str = "") -> LoggedGroups:
    """The same episodes with what the judge writes into their turns' signals.

    Raises:
        TurnwiseError: there is no such judge, it asks nobody though a policy is named, or it cannot be reached.
    """
    entry = get_component("judge", judge)
    options: dict[str, Any] = {"policy": policy} if policy else {}
    if policy and "policy" not in entry.options:
        raise TurnwiseError(
            f"The judge {judge} asks no policy, so that --judge-policy has no effect.", "Leave it out."
        )
    told = judged_now(made_judge(entry, options), [list(group.episodes) for group in played.groups])
    groups = [
        LoggedGroup(
            group.task, tuple(replace(r, episode=e) for r, e in zip(group.records, episodes, strict=True))
        )
        for group, episodes in zip(played.groups, told, strict=True)
    ]
    return LoggedGroups(played.label, tuple(groups))
