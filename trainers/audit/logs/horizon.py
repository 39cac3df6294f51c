"""The effective horizon of logged play: how many backups a greedy policy needs."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from turnwise.agents.core import Trajectory
from turnwise.agents.evaluation.statistics import proportion
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, audit, count, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.kit.spoken import spoken

Actions: TypeAlias = dict[str, "TriedAction"]
States: TypeAlias = Mapping[str, Actions]
_SAME = 1e-9
_TRIES = 200
_MOST_SAMPLES = 4096


class TriedAction(NamedTuple):
    """An action at a state, as often as it was tried: its reward, the state after it (None: the end), and what was earned from it on."""

    rewards: list[float]
    after: list[str | None]
    returns: list[float]


@audit(204, paper="2312.08369")
def horizon(played: LoggedGroups, *, most: int = 10) -> AuditFinding:
    """The smallest k for which acting greedily on Q_k is as good as any logged way (effective horizon, SQIRL).

    Q₁(s, a) is the mean return from a on; Q_{j+1}(s, a) = r + max Q_j(s′); what is greedy on Q_k is followed through the log's
    transitions from each task's start. k = 1 on most tasks: rewards of whole episodes suffice, and a rule like GRPO will learn; a large
    k asks for shaping or a curriculum. States are equal by their ``state_key``, actions by their words; chance of the world is averaged.
    The paper's Q₁ is of a random policy: log one (``--policy scripted:random``), for another policy's log gives *its* horizon. Its regression
    is here the mean of each state and action, the least squares over their indicators: many distinct states need many runs per task.

    The effective horizon counts samples too: H = min over such k of k + log_A m_k (Laidlaw et al. 2023), A being the most actions at a
    state and m_k the returns that each action needs so that the policy is as good in half of the tries, found by drawing from the logged ones.

    The book's world: at s0, a ends with 1, b leads to s1, where c pays 0 and d 1.5. Q₁(s0) = (1, 0.75) takes a, Q₂(s0) = (1, 1.5) takes b.

    >>> from turnwise.trainers.audit.by_hand import episode, logged, turn
    >>> ways = [[turn("a", 1, state="s0")], [turn("b", 0, state="s0"), turn("c", 0, state="s1")], [turn("b", 0, state="s0"), turn("d", 1.5, state="s1")]]
    >>> found = horizon(logged({"x": [episode(way, solved=True) for way in ways]}))
    >>> found.value("median horizon"), found.value("k = 1 suffices"), found.value("median with samples")
    (2, 0.0, 2.0)

    Args:
        most: the largest k that is tried.
    """
    found: dict[str, int | None] = {}
    sampled: list[float] = []
    for group in played.of(2, "a horizon"):
        ways = [episode.trajectory for episode in group.episodes]
        totals = [way.total_reward for way in ways]
        if max(totals) > min(totals) + _SAME:
            found[group.task] = of_ways(ways, most)
            sampled.append(with_samples(ways, most, derive_rng("horizon", group.task)))
    if not found:
        raise TurnwiseError(
            f"In {played.label} all runs of a task earn the same, so that no action is better than another.",
            "Log a random policy, more often: `turnwise eval SUITE --policy scripted:random --k 32 --out FOLDER`.",
        )
    names = [*range(1, most + 1), None]
    counts = [sum(k == name for k in found.values()) for name in names]
    rows = [(str(name or f"over {most}"), n) for name, n in zip(names, counts, strict=True) if n]
    ones = proportion([k == 1 for k in found.values()], [*found])
    median = statistics.median_low(k or most + 1 for k in found.values())
    verdict = (
        "returns of whole episodes suffice"
        if ones.mean > 0.5
        else "shaping, a curriculum or values are worth their cost"
    )
    return AuditFinding(
        [
            count("median horizon", median),
            share("k = 1 suffices", ones),
            count("tasks with a choice", len(found)),
            AuditFigure("median with samples", finite(statistics.median_low(sampled)), about="k + log_A m"),
        ],
        [AuditTable("effective horizon", ("k", "tasks"), rows)],
        said=[f"a median of k = {median}: {verdict}"],
    )


def of_ways(ways: list[Trajectory], most: int) -> int | None:
    """The effective horizon of one task by its logged ways; None if it is larger than ``most``."""
    states = table(ways)
    start = ways[0].turns[0].state_key
    best = optimal(states)[start]
    q = _means(states)
    for k in range(1, most + 1):
        if followed(states, q, start) >= best - _SAME:
            return k
        q = backup(states, q)
    return None


def with_samples(ways: list[Trajectory], most: int, rng: random.Random) -> float:
    """The least k + log_A m over the k that suffice; infinite if none does with as many samples as are tried.

    By hand: a returns 2; b 2.9, 2.9 and 0, which is less in the mean. One return of b calls it better in ⅔ of the tries, the mean of
    two in 4/9 of them, so that m = 2 and H = 1 + log₂ 2.

    >>> from turnwise.trainers.audit.by_hand import episode, turn
    >>> acts = ("a", 2), ("b", 2.9), ("b", 2.9), ("b", 0)
    >>> with_samples([episode([turn(*act, state="s")], solved=True).trajectory for act in acts], 3, derive_rng("x"))
    2.0
    """
    states = table(ways)
    start = ways[0].turns[0].state_key
    best = optimal(states)[start]
    actions = max(2, max(map(len, states.values())))
    found, q = math.inf, _means(states)
    for k in range(1, most + 1):
        if k >= found:  # no number of samples makes a larger one smaller
            break
        if followed(states, q, start) >= best - _SAME and (m := samples(states, start, best, k, rng)):
            found = min(found, k + math.log(m, actions))
        q = backup(states, q)
    return found


def samples(states: States, start: str, best: float, k: int, rng: random.Random) -> int:
    """The fewest returns of each action, by doubling, with which k backups find the best way in half of the tries; 0 if more are needed."""
    m = 1
    while m <= _MOST_SAMPLES:
        right = 0
        for _ in range(_TRIES):
            q = {
                s: {a: statistics.fmean(rng.choices(tried.returns, k=m)) for a, tried in of.items()}
                for s, of in states.items()
            }
            for _ in range(k - 1):
                q = backup(states, q)
            right += followed(states, q, start) >= best - _SAME
        if 2 * right >= _TRIES:
            return m
        m *= 2
    return 0


def finite(x: float) -> float | None:
    """None in place of what is infinite."""
    return x if math.isfinite(x) else None


def _means(states: States) -> dict[str, dict[str, float]]:
    return {s: {a: statistics.fmean(tried.returns) for a, tried in of.items()} for s, of in states.items()}


def table(ways: list[Trajectory]) -> States:
    """What was tried at each state."""
    states: dict[str, Actions] = defaultdict(dict)
    for way in ways:
        left = way.total_reward
        for number, turn in enumerate(way.turns):
            tried = states[turn.state_key].setdefault(spoken(turn.action), TriedAction([], [], []))
            later = way.turns[number + 1].state_key if number + 1 < len(way.turns) else None
            tried.rewards.append(turn.reward)
            tried.after.append(later)
            tried.returns.append(left)
            left -= turn.reward
    return states


def backup(states: States, q: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Q_{j+1}(s, a) = mean of r + max Q_j(s′)."""
    best = {s: max(of.values()) for s, of in q.items()}
    return {
        s: {
            a: statistics.fmean(
                r + (best[after] if after is not None else 0.0)
                for r, after in zip(t.rewards, t.after, strict=True)
            )
            for a, t in of.items()
        }
        for s, of in states.items()
    }


def optimal(states: States) -> dict[str, float]:
    """The value of the best way through the log from each state, by as many backups as there are states."""
    q = {s: dict.fromkeys(of, 0.0) for s, of in states.items()}
    for _ in range(len(states)):
        q, before = backup(states, q), q
        if all(abs(q[s][a] - before[s][a]) < _SAME for s in q for a in q[s]):
            break
    return {s: max(of.values()) for s, of in q.items()}


def followed(states: States, q: Mapping[str, Mapping[str, float]], start: str) -> float:
    """The mean return of acting greedily on q from the start, by as many turns as there are states."""
    value = dict.fromkeys(states, 0.0)
    for _ in range(len(states)):
        before = value
        value = {}
        for s, of in states.items():
            tried = of[max(of, key=lambda a: q[s][a])]
            value[s] = statistics.fmean(
                r + (before[after] if after is not None else 0.0)
                for r, after in zip(tried.rewards, tried.after, strict=True)
            )
        if all(abs(value[s] - before[s]) < _SAME for s in value):
            break
    return value[start]
