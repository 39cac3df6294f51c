"""PAR: a judge's scores against those of stored episodes of the same task, bounded and centred."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean
from typing import Any

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import read_episodes
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component, get_component
from turnwise.tasks.core import Json
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.asking import counting, made_judge
from turnwise.trainers.kit.reward_edits import signal_of, with_signals


@component("judge", "par", gives=("par",))
class Par:
    """(1/M)·Σ_m σ(``scale``·(s − s_m)) on every turn, s the score of an episode by the judge ``by`` and s_m those of M stored ones of its task.

    PAR (preference as reward): bounded, steep where the policy is as good as the reference and flat where it is far better, so that
    a judge's mistakes at the far end are worth little. A score is the mean of ``signal`` over the turns. The stored episodes are the first
    ``references`` of each task in the log at ``path``, such as an evaluation of the policy where reinforcement begins; the same judge, which asks
    ``policy`` if it asks one, scores them when their task first comes up, and their scores are kept. Without a log they are the first ones of the
    group in which a task first came up (ours). Paid alone it is
    `reward: {name: own_probability, signal: par, weight: 1, format: 0}`. Left out: their other shapings (clipping, ceiling, tanh and so on).

    Worked by hand: 2 against 1, .5 and 3, and against 1 alone.

    >>> round(preferred(2, [1, 0.5, 3], 1.0), 4), round(preferred(2, [1], 1.0), 4)
    (0.6059, 0.7311)

    Raises:
        RecipeError: ``references`` is below 1, or the judge gives no such signal.
        RunError: when it is asked: the log has no episode of a task.
    """

    def __init__(
        self,
        *,
        policy: str = "openai:judge",
        by: str = "principles",
        signal: str = "principle",
        path: str = "",
        references: int = 1,
        scale: float = 1.0,
    ) -> None:
        entry = get_component("judge", by)
        if signal not in entry.gives or references < 1:
            raise RecipeError(
                f"judge 'par': {by!r} gives {', '.join(entry.gives) or 'nothing'}, not {signal!r} against {references} episodes.",
                "Name a judge and a signal that it gives (by, signal), and references from 1 on.",
            )
        self.judge = made_judge(entry, {"policy": policy} if "policy" in entry.options else {})
        self.signal, self.path = signal, path
        self.references, self.scale = references, scale
        self.scores: dict[str, list[float]] = {}

    async def __call__(self, groups: Sequence[Group]) -> list[Group]:
        judged = [list(group) for group in await self.judge(groups)]
        scores = [{i: self._score(told[i]) for i in counting(told)} for told in judged]
        if self.path:
            every = {told[i].task.id for told, found in zip(judged, scores, strict=True) for i in found}
            await self._take_up(every - {*self.scores})
        for told, found in zip(judged, scores, strict=True):
            for i, score in found.items():
                own = [*found.values()][: self.references]
                against = self.scores.setdefault(told[i].task.id, own)
                chance = preferred(score, against, self.scale)
                told[i] = with_signals(told[i], [{"par": chance}] * len(told[i].trajectory.turns))
        return [*judged]

    async def _take_up(self, wanted: set[str]) -> None:
        """Have the stored episodes of these tasks scored.

        Raises:
            RunError: a task has none.
        """
        if not wanted:
            return
        stored: dict[str, list[Episode]] = {name: [] for name in sorted(wanted)}
        for one in read_episodes(self.path):
            if one.task.id in stored and len(stored[one.task.id]) < self.references and counting([one]):
                stored[one.task.id].append(one)
        for name, episodes in stored.items():
            if not episodes:
                raise RunError(
                    f"judge 'par': {self.path} has no episode of the task {name}.",
                    "Let the reference policy play the tasks that are trained on, or train on those of the log.",
                )
        for name, group in zip(stored, await self.judge([*stored.values()]), strict=True):
            self.scores[name] = [self._score(one) for one in group]

    def _score(self, episode: Episode) -> float:
        return mean(signal_of(turn, self.signal) for turn in episode.trajectory.turns)

    def state(self) -> PartState:
        kept: dict[str, Json] = {name: [*scores] for name, scores in self.scores.items()}
        return PartState({"scores": kept})

    def restore(self, state: PartState) -> None:
        kept: Any = state.numbers["scores"]
        self.scores = {str(name): [float(x) for x in scores] for name, scores in kept.items()}


def preferred(score: float, references: Sequence[float], scale: float) -> float:
    """The mean chance that an episode of this score is preferred to one of the references."""
    return mean(0.5 + 0.5 * math.tanh(scale * (score - other) / 2) for other in references)
