"""The second table of a stage: metrics of the updates that the plan names, and what was asked of finished runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from math import fsum
from statistics import fmean
from typing import Any, TypeAlias

from campaigning.plan import After, Plan, Way
from turnwise.agents.evaluation.summary import percent

Data: TypeAlias = Mapping[str, Any]
MISSING = "not recorded"
WAYS: Mapping[Way, Callable[[Sequence[float]], float]] = {
    "first": lambda xs: xs[0],
    "last": lambda xs: xs[-1],
    "mean": fmean,
    "sum": fsum,
    "min": min,
    "max": max,
    "fall": lambda xs: max(xs) - xs[-1],
    "count": len,
}
"""How the numbers of a metric, update by update, become one; ``fall`` is the greatest less the last: a collapse."""
TURNS = (0, 1, 2, 4, 9, 19)
"""The turns whose entropy is shown."""


def told(plan: Plan, cells: Mapping[str, Sequence[Data | None]]) -> list[dict[str, str]]:
    """A row for each method whose cells came to their end: heading → what it says, the mean over its seeds."""
    ended = {
        method: [data for data in rows if data is not None and not data["failed"]]
        for method, rows in cells.items()
    }
    every = [data for rows in ended.values() for data in rows]
    others = {name for name in plan.metrics if not any(data.get("metrics", {}).get(name) for data in every)}
    asked = columns(plan, others if len(plan.settings) > 1 else ())
    return [
        {"method": f"`{method}`", **{name: say(rows) for name, say in asked.items()}}
        for method, rows in ended.items()
        if rows and asked
    ]


def columns(plan: Plan, others: Collection[str] = ()) -> dict[str, Callable[[Sequence[Data]], str]]:
    """The headings that a plan asks for, each with what says it of the cells of a method; ``others`` are metrics of other settings."""
    found: dict[str, Callable[[Sequence[Data]], str]] = {}
    for metric, ways in plan.metrics.items():
        for way in ways if metric not in others else ():
            found[f"{metric}, {way}"] = lambda rows, m=metric, w=way: _over(
                [_metric(data, m, w) for data in rows]
            )
    after = plan.after
    if plan.area_steps:
        found[f"dev success, mean over {plan.area_steps:,} steps"] = lambda rows: _over(
            [area(data, plan.area_steps) for data in rows], percent
        )
    if after.pass_at:
        found[f"pass@{after.pass_at} on dev"] = lambda rows: _over(
            [_found(data, after).get("pass_at", {}).get("pass_at_k") for data in rows], percent
        )
        found["entropy by turn"] = lambda rows: _entropies(
            [_found(data, after).get("entropy_by_turn") for data in rows]
        )
    if after.demonstrations:
        for when in ("before", "after"):
            found[f"nll of demonstrations, {when}"] = lambda rows, w=when: _over(
                [_found(data, after).get("nll", {}).get(w) for data in rows]
            )
    if after.verdicts:
        for when in ("before", "after"):
            found[f"verdicts on own attempts, {when}"] = lambda rows, w=when: _verdicts(
                [_found(data, after).get("verdicts", {}).get(w) for data in rows]
            )
    return found


def area(data: Data, steps: int) -> float | None:
    """The mean over the first environment steps of success on dev, linear between validations; None for a run with fewer.

    It begins with success before training, which is that of sampled episodes on test tasks.
    """
    before = [e for e in data["evaluations"] if (e["name"], e["mode"]) == ("before", "sampled")]
    named = data["recipe"]["suite"]
    shares = {named: 1.0} if isinstance(named, str) else named
    weights = [shares[e["suite"]] for e in before]
    start = fmean([e["success"] for e in before], weights)
    points = [(0.0, start), *((at["steps"], at["success"]) for at in data["curve"])]
    if points[-1][0] < steps:
        return None
    total = 0.0
    for (x, y), (to, end) in pairwise(points):
        if x < steps:
            right = min(to, steps)
            last = y + (end - y) * (right - x) / (to - x)
            total += (right - x) * (y + last) / 2
    return total / steps


def _metric(data: Data, metric: str, way: Way) -> float | None:
    values = [value for _, value in data.get("metrics", {}).get(metric, ())]
    return WAYS[way](values) if values else None


def _found(data: Data, after: After) -> Data:
    """The answers to what the plan asks now; none where the cell was asked something else, or nothing."""
    said = data.get("after") or {}
    return said["found"] if said.get("asked") == after.model_dump(mode="json") else {}


def _over(values: Sequence[float | None], said: Callable[[float], str] = "{:.4g}".format) -> str:
    """The mean over seeds, or that a cell has no such number: it is older than the question."""
    known = [value for value in values if value is not None]
    return said(fmean(known)) if len(known) == len(values) else MISSING


def _verdicts(every: Sequence[Mapping[str, float] | None]) -> str:
    """The share of right ones among those that were asked, over all seeds."""
    known = [one for one in every if one]
    if len(known) < len(every):
        return MISSING
    asked = sum(one["asked"] for one in known)
    if not asked:
        return "none could be asked"
    right, mute = (
        fsum(one[name] * one["asked"] for one in known) / asked for name in ("right", "unanswered")
    )
    return f"{percent(right)} right of {asked:,.0f}" + (f", {percent(mute)} unanswered" if mute else "")


def _entropies(every: Sequence[Sequence[Sequence[float]] | None]) -> str:
    known = [one for one in every if one]
    if len(known) < len(every):
        return MISSING
    shown = [k for k in TURNS if all(k < len(one) for one in known)]
    return ", ".join(f"{k + 1}: {fmean(one[k][0] for one in known):.3f}" for k in shown)
