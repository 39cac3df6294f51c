"""Who is blamed for an episode that went wrong, as an evaluation tells it."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, Literal, NamedTuple

import turnwise
from turnwise import Episode

Party = Literal["agent", "server", "author", "neither", "unbegun"]
TOLD_ANYWAY = {
    "suite", "policy", "episodes", "success", "success_interval", "mean_score", "mean_score_interval", "pass_at_k",
    "pass_hat_k", "outcomes", "ends", "turns", "split", "tasks", "k", "seed", "seconds", "results", "bounded",
    "success_bound",
}  # fmt: skip
"""Fields of an evaluation's JSON that say nothing of causes."""


ENDS = {"solved", "failed", "gave_up", "turn_limit", "token_limit", "time_limit"}
"""Ends that say nothing of causes."""


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        what: in words; the test's name.
        party: who caused it. "agent": the episode counts as a failure. "server": it is an ``infra_error`` and named. "author": an
            ``env_error`` or ``verifier_error``, named. "neither": it counts, and what happened is named.
            "unbegun": a program that never asked: it is named, and whether it counts is open.
        how: what plants it, in the form of its family.
        named: what must be told of it (a pattern); "" for the agent's own faults.
    """

    what: str
    party: Party
    how: Any
    named: str = ""


class Verdict(NamedTuple):
    """How an episode ended, and all that the evaluation tells of causes."""

    outcome: str
    success: bool
    told: str
    episode: Episode | None


def judged(make: Any, suite: str = "contact/desk", **options: Any) -> Verdict:
    """Play one episode, and see what an evaluation says of it.

    Args:
        make: the policy, or a partial function that makes it.
        suite: where.
        options: of the evaluation.
    """
    kept: list[Episode] = []

    def keep(_: int, episode: Episode) -> None:
        kept.append(episode)

    try:
        policy = make() if isinstance(make, functools.partial) else make
        done = turnwise.evaluate(
            suite, policy, episodes=1, retries=0, max_failed=1.0, on_episode=keep, **options
        )
        told = {name: value for name, value in done.to_json(results=False).items() if name not in TOLD_ANYWAY}
        told["ends"] = [end for end in done.ends if end not in ENDS]
        text = json.dumps(present(told))
    except turnwise.TurnwiseError as error:
        text = str(error)
    episode = kept[-1] if kept else None
    outcome = str(episode.outcome) if episode else "none"
    return Verdict(outcome, bool(episode and episode.end is turnwise.EndReason.SOLVED), text, episode)


def present(told: Any) -> Any:
    """What is there of it: a count of 0 and an empty field name nothing.

    >>> present({"refused": 0, "causes": {"cut_by_limit": 2}, "notes": []})
    {'causes': {'cut_by_limit': 2}}
    """
    if isinstance(told, dict):
        kept = {name: present(value) for name, value in told.items()}
        return {name: value for name, value in kept.items() if value}
    return [present(value) for value in told] if isinstance(told, list) else told


def check_blame(fault: Fault, verdict: Verdict) -> None:
    """The right party is blamed, and by name."""
    seen = (verdict.outcome, verdict.success, verdict.told)
    assert not verdict.success, seen
    expected = {
        "agent": {"ok", "limit"},
        "neither": {"ok", "limit"},
        "server": {"infra_error", "none"},  # none: refused before anything was played
        "author": {"env_error", "verifier_error"},
        "unbegun": {"ok", "limit", "env_error", "infra_error"},
    }[fault.party]
    assert verdict.outcome in expected, seen
    assert re.search(fault.named, verdict.told, re.IGNORECASE), seen
