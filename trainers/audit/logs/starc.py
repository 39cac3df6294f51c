"""Distance between two rewards that shaping and scale do not change: what is paid against what is meant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from turnwise.agents.evaluation.statistics import Interval
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit
from turnwise.trainers.audit.reading import LoggedGroup, LoggedGroups
from turnwise.trainers.kit.spoken import spoken

_DRAWS = 400


@audit(111, paper="2309.15257")
def starc(played: LoggedGroups, *, meant: str = "outcome") -> AuditFinding:
    """STARC distance between the reward that was paid and one of its components (Skalse et al. 2023), by logged states.

    c(R)(s, a) = E[R + γV(s′)] − V(s), s(R) = c/‖c‖ (0 if c is), d = ‖s₁ − s₂‖ from 0 to 2; γ = 1 here. Potential shaping and positive scale
    change nothing. :func:`canonical` is the table's form with the uniform policy, to the book's numbers. On a log V(s) is the mean
    return from a state of a task on, by its ``state_key``, and c the mean over the visits of (s, a): the centring by state that the
    sample has. Only states that were left in two ways say anything. Ours: the interval, by bootstrap over tasks.

    >>> d = distance
    >>> R, P = [[0, 1], [0, 2]], [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]
    >>> c = canonical(R, P, 0.9)
    >>> [round(float(x), 4) for x in c.ravel()], round(float(np.linalg.norm(c)), 4)
    ([-0.725, 0.725, -1.225, 1.225], 2.0131)
    >>> shaped = [[r + 0.9 * (3, -1)[t] - (3, -1)[s] for t, r in enumerate(row)] for s, row in enumerate(R)]
    >>> rewards = (shaped, [[0, 5], [0, 10]], [[0, -1], [0, -2]], [[0, 0], [0, 1]])
    >>> [round(abs(d(c, canonical(other, P, 0.9))), 4) for other in rewards]
    [0.0, 0.0, 2.0, 0.2329]

    Args:
        meant: the component that stands for what is meant.
    """
    names = {name for e in played.episodes for t in e.trajectory.turns for name in t.rewards}
    if meant not in names:
        raise TurnwiseError(
            f"{played.label} has no reward component {meant!r}; it has {', '.join(sorted(names)) or 'none'}.",
            "`--set meant=NAME` names another.",
        )
    pairs = [
        pair
        for group in played.of(2, "a distance between rewards")
        if len((pair := centred(group, meant))[0])
    ]
    if not pairs:
        raise TurnwiseError(
            f"In {played.label} no state was left in two ways, so that rewards cannot be centred.",
            "Log several runs of each task: --k 8 or more.",
        )
    value = _over(pairs)
    rng = derive_rng("starc", len(pairs))
    drawn = sorted(_over([pairs[rng.randrange(len(pairs))] for _ in pairs]) for _ in range(_DRAWS))
    ends = Interval(drawn[int(0.025 * _DRAWS)], drawn[int(0.975 * _DRAWS) - 1])
    verdict = f"what is paid is {'far from' if value > 0.5 else 'near to'} {meant!r}, shaping and scale aside"
    return AuditFinding(
        [AuditFigure(f"distance to {meant}", value, ends, about="0 the same, 2 opposite")], said=[verdict]
    )


def _over(pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> float:
    return distance(np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs]))


def centred(group: LoggedGroup, meant: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """c of the paid reward and of the component on each pair of state and action, where a state was left in two ways."""
    visits: dict[str, dict[str, list[tuple[float, float]]]] = {}
    to_go: dict[str, list[tuple[float, float]]] = {}
    steps: list[tuple[str, str, float, float, str | None]] = []
    for episode in group.episodes:
        turns = episode.trajectory.turns
        left = [
            (sum(t.reward for t in turns[k:]), sum(t.rewards.get(meant, 0.0) for t in turns[k:]))
            for k in range(len(turns))
        ]
        for k, turn in enumerate(turns):
            to_go.setdefault(turn.state_key, []).append(left[k])
            after = turns[k + 1].state_key if k + 1 < len(turns) else None
            steps.append(
                (turn.state_key, spoken(turn.action), turn.reward, turn.rewards.get(meant, 0.0), after)
            )
    value = {s: np.mean(np.array(x), axis=0) for s, x in to_go.items()}
    for state, action, paid, wanted, after in steps:
        later = value[after] if after is not None else np.zeros(2)
        c = np.array([paid, wanted]) + later - value[state]
        visits.setdefault(state, {}).setdefault(action, []).append((float(c[0]), float(c[1])))
    found = [np.mean(np.array(x), axis=0) for of in visits.values() if len(of) > 1 for x in of.values()]
    both = np.array(found).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def canonical(reward: object, chance: object, gamma: float) -> NDArray[np.float64]:
    """c(R) on a table under the uniform policy: E[R + γV(s′)] − V(s), (S, A); R is by state and action or also by what follows.

    Args:
        reward: (S, A), or (S, A, S).
        chance: of the next state, (S, A, S).
        gamma: the discount, below 1.
    """
    p, r = np.asarray(chance, dtype=np.float64), np.asarray(reward, dtype=np.float64)
    r_SA = r if r.ndim == 2 else (p * r).sum(-1)
    value_S = np.linalg.solve(np.eye(len(p)) - gamma * p.mean(1), r_SA.mean(1))
    return r_SA + gamma * p @ value_S - value_S[:, None]


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """‖a/‖a‖ − b/‖b‖‖, where what is 0 stays 0."""
    parts = [x / n if (n := float(np.linalg.norm(x))) > 1e-9 else np.zeros_like(x) for x in (a, b)]
    return float(np.linalg.norm(parts[0] - parts[1]))
