"""How far the best behaviour moves when a weight of the reward moves a little."""

from __future__ import annotations

import math
from collections.abc import Sequence

from turnwise.agents.core import Turn
from turnwise.agents.evaluation.statistics import score_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditFinding, AuditTable, Cell, audit, share
from turnwise.trainers.audit.reading import LoggedGroups

_SAME = 1e-12


@audit(169, paper="2507.20150")
def cliff(played: LoggedGroups, *, delta: float = 0.01, temperature: float = 0.1) -> AuditFinding:
    """Total variation between the best behaviours under the logged reward and one whose component weighs 1 ± δ (the policy cliff).

    Of the runs of a task, the greedy policy takes one of the best by Σ components, each alike; the soft one takes a run with
    chance ∝ exp(R/τ). Where the best are tied, the greedy policy jumps with any perturbation; entropy makes the map continuous. Shown
    is the larger of the two signs, by component, over the tasks whose runs differ in it. Runs stand for actions, which is ours.

    The book's two actions, r = (1, 1) against (1, 1.01): the greedy policy of (½, ½) goes to (0, 1), and at τ = 0.1 the soft one moves
    by 0.0250. (The book's jump of 1 is of a tie that was broken the other way.)

    >>> variation(greedy([1, 1]), greedy([1, 1.01])), round(variation(soft([1, 1], .1), soft([1, 1.01], .1)), 4)
    (0.5, 0.025)

    Args:
        delta: δ, by which each weight moves.
        temperature: τ of the soft policy.
    """
    if not 0 < delta < 1 or temperature <= 0:
        raise TurnwiseError(
            f"delta {delta:g} and temperature {temperature:g} perturb nothing.",
            "Take delta=0.01, temperature=0.1.",
        )
    jumps: dict[str, list[tuple[str, float, float]]] = {}
    for group in played.of(2, "a choice between behaviours"):
        parts = [_parts(e.trajectory.turns) for e in group.episodes]
        names = sorted({name for part in parts for name in part})
        totals = [sum(part.values()) for part in parts]
        for name in names:
            its = [part.get(name, 0.0) for part in parts]
            if max(its) - min(its) > _SAME:
                jumps.setdefault(name, []).append((group.task, *_moved(totals, its, delta, temperature)))
    if not jumps:
        raise TurnwiseError(
            f"In {played.label} no reward component differs between runs of a task.",
            "Log a policy whose runs differ: one that samples.",
        )
    rows: list[Sequence[Cell]] = []
    for name, found in jumps.items():
        tasks = [task for task, *_ in found]
        hard, smooth = score_mean([x for _, x, _ in found], tasks), score_mean([x for *_, x in found], tasks)
        rows.append(
            (
                name,
                len(found),
                hard.mean,
                f"{hard.interval.low:.3f} … {hard.interval.high:.3f}",
                smooth.mean,
                f"{smooth.interval.low:.3f} … {smooth.interval.high:.3f}",
            )
        )
    every = [(task, hard, smooth) for found in jumps.values() for task, hard, smooth in found]
    figures = [
        share("greedy jump", score_mean([x for _, x, _ in every], [t for t, *_ in every])),
        share("soft move", score_mean([x for *_, x in every], [t for t, *_ in every])),
    ]
    headings = ("component", "tasks", "greedy", "95 % interval", "soft", "95 % interval")
    return AuditFinding(
        figures, [AuditTable(f"total variation when a weight moves by {delta:g}", headings, rows)]
    )


def _parts(turns: Sequence[Turn]) -> dict[str, float]:
    found: dict[str, float] = {}
    for turn in turns:
        for name, value in turn.rewards.items():
            found[name] = found.get(name, 0.0) + value
    return found


def _moved(
    totals: Sequence[float], its: Sequence[float], delta: float, temperature: float
) -> tuple[float, float]:
    moved = [[r + sign * delta * x for r, x in zip(totals, its, strict=True)] for sign in (1, -1)]
    return (
        max(variation(greedy(totals), greedy(other)) for other in moved),
        max(variation(soft(totals, temperature), soft(other, temperature)) for other in moved),
    )


def greedy(rewards: Sequence[float]) -> list[float]:
    """Equal chances on the largest rewards."""
    best = [r >= max(rewards) - _SAME for r in rewards]
    return [one / sum(best) for one in best]


def soft(rewards: Sequence[float], temperature: float) -> list[float]:
    """Chances ∝ exp(r/τ)."""
    top = max(rewards)
    weights = [math.exp((r - top) / temperature) for r in rewards]
    return [w / sum(weights) for w in weights]


def variation(p: Sequence[float], q: Sequence[float]) -> float:
    """Total variation: half of Σ |p − q|."""
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
