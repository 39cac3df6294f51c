"""Pick the turns of a batch that are worth looking at (see :mod:`turnwise.trainers.report.turns`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from turnwise.agents.core import Turn
from turnwise.trainers.lab.score import BatchScore
from turnwise.trainers.lab.truth import TrueAdvantageBatch
from turnwise.trainers.report.episodes import visible
from turnwise.trainers.report.turns import RuleNote, TrueEpisode, TrueGroup, TrueTurn

_EPISODES = 3  # of a group
_COLUMNS = 9  # rules in the table of an episode
_SEEN = 400  # characters of what the policy saw


def true_group(
    true_batch: TrueAdvantageBatch, grades: Mapping[str, BatchScore], forks: int, show: Sequence[str] = ()
) -> TrueGroup:
    """The group of an environment's batch whose turns differ most in worth, and three of its episodes.

    ``grades`` are what rules came to on the batch; those in ``show`` get columns, or without it a few whose patterns
    differ. What turns differ in is counted beyond the errors of measurement.
    """
    assert true_batch.episodes, "an batch on a process has no texts"
    mask_BK = true_batch.turns.mask_BK
    sure_B = ((true_batch.truth_BK**2 - true_batch.error_BK**2) * mask_BK).sum(-1)
    per_group = torch.zeros(int(true_batch.turns.group_B.max()) + 1, dtype=sure_B.dtype)
    per_group.index_add_(0, true_batch.turns.group_B, sure_B)
    members = (true_batch.turns.group_B == int(per_group.argmax())).nonzero().flatten().tolist()
    ranked = sorted(members, key=lambda b: -true_batch.episodes[b].trajectory.total_reward)
    shown = [ranked[i] for i in _spread(len(ranked), _EPISODES)]
    first = true_batch.episodes[members[0]]
    given = {name: grades[name].given_BK for name in sorted(grades, key=lambda n: -_correlation(grades[n]))}
    distinct = alike({name: torch.cat([x_BK[b][mask_BK[b]] for b in shown]) for name, x_BK in given.items()})
    columns = show or [[*distinct][i] for i in _spread(len(distinct), _COLUMNS)]
    return TrueGroup(
        source=true_batch.source,
        stage=true_batch.stage,
        task_id=first.task.id,
        goal=visible(first.task.prompt),
        forks=forks,
        reliability=round(true_batch.reliability, 4),
        rules=tuple(
            RuleNote(
                name=name,
                correlation=round(_correlation(grades[name]), 4),
                column=name in columns,
                like=() if show or name not in columns else tuple(distinct[name]),
            )
            for name in given
        ),
        episodes=tuple(_episode(true_batch, given, b, members.index(b) + 1) for b in shown),
    )


def _correlation(grade: BatchScore) -> float:
    return float(grade.figures["correlation"][0])


def alike(patterns: Mapping[str, Tensor], near: float = 0.995) -> dict[str, list[str]]:
    """The patterns that are not multiples of one before them, each with those that nearly are; none that is zero.

    >>> a, b = torch.tensor([1.0, -1.0, 0.0]), torch.tensor([0.0, 1.0, 1.0])
    >>> alike({"first": a, "twice": 2 * a, "other": b, "nothing": 0 * a, "against": -a})
    {'first': ['twice'], 'other': [], 'against': []}
    """
    chosen: dict[str, list[str]] = {}
    for name, pattern in patterns.items():
        if not pattern.any():
            continue
        same = (c for c in chosen if torch.cosine_similarity(patterns[c], pattern, dim=0) > near)
        if found := next(same, None):
            chosen[found].append(name)
        else:
            chosen[name] = []
    return chosen


def _spread(n: int, most: int) -> list[int]:
    """At most ``most`` of ``n`` places, evenly from the first to the last."""
    count = min(n, most)
    return [round(i * (n - 1) / max(1, count - 1)) for i in range(count)]


def _episode(true_batch: TrueAdvantageBatch, given: Mapping[str, Tensor], b: int, number: int) -> TrueEpisode:
    episode = true_batch.episodes[b]
    return TrueEpisode(
        number=number,
        total_reward=episode.trajectory.total_reward,
        end=str(episode.end or episode.outcome).replace("_", " "),
        turns=tuple(
            TrueTurn(
                saw=_last_line(turn),
                action=visible(str(turn.action)) or "(said nothing)",
                reward=turn.reward,
                truth=round(true_batch.truth_BK[b, k].item(), 5),
                error=round(true_batch.error_BK[b, k].item(), 5),
                given={name: round(x_BK[b, k].item(), 5) for name, x_BK in given.items()},
            )
            for k, turn in enumerate(episode.trajectory.turns)
        ),
    )


def _last_line(turn: Turn) -> str:
    """Return the last message that the policy read before it acted, cut to size."""
    text = visible(str(turn.observation[-1])) if turn.observation else ""
    return text if len(text) <= _SEEN else f"{text[:_SEEN]} …"
