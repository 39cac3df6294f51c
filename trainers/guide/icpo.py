"""Worked examples: one row of each group is played with an episode of another task in its prompt, and learned without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import actions_of, masked, told_once, with_rows
from turnwise.trainers.kit.reward_edits import paid_on_last

EXAMPLE = "A solved example:\n{task}\n\nHint: {solution}"


@component("guide", "icpo", paper="2510.26519")
class ICPO:
    """Plays the last row of each group with one solved example of another task of its environment in the prompt; learned as untold.

    ICPO (2025): a group of 8 is 7 plain rows and 1 with one random worked example in its context, always. The row is learned under the plain prompt
    with the weight π/(π + 0.1), without clip: `guide: [{name: icpo, loss: [luffy], correction: none}]`. It counts only if its reward reaches
    ``gate``, else its turns are read and not learned; and a right one earns ``bonus``·(1 − t/``horizon``) more in update t, so that early training
    prefers it. The examples are the newest ``pool`` episodes of each environment in which the policy solved a task of training by itself, kept
    in checkpoints (the paper's are demonstrations). While there is none the row stays as it was played.

    It changes the objective: rows that were sampled with help are weighed otherwise than by their ratio, and paid more.

    Worked by hand: the reward 1 is worth 2 at t = 0, 1.75 at 100 and 1.0025 at 399 of 400; seven failures and 1.75 have −0.3536 and
    2.4749 sample deviations; π/(π + 0.1) is 0.0909, 0.5, 0.8333, 0.9 at π = 0.01, 0.1, 0.5, 0.9.

    >>> [1 + ICPO().paid(t) for t in (0, 100, 399)]
    [2.0, 1.75, 1.0025]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(ICPO(), "shop/quick", groups=1, size=2)
    >>> guided == plain  # nothing was solved yet that could be shown
    True

    Raises:
        RecipeError: the pool or the horizon is empty.
    """

    def __init__(self, *, gate: float = 1.0, bonus: float = 1.0, horizon: int = 400, pool: int = 64) -> None:
        if pool < 1 or horizon < 1:
            raise RecipeError(f"guide 'icpo': pool={pool}, horizon={horizon}.", "Give 1 or more of each.")
        self.gate, self.bonus, self.horizon, self.pool = gate, bonus, horizon, pool
        self.examples: dict[str, list[tuple[str, str]]] = {}

    def paid(self, update: int) -> float:
        """Return what a right row earns more."""
        return self.bonus * max(0.0, 1 - update / self.horizon)

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Play one row of each group with an example; then remember what was solved without help."""
        texts: dict[int, str] = {}
        for n, group in enumerate(groups):
            known = [
                (task, how)
                for task, how in self.examples.get(group[0].task.env, [])
                if task != group[0].task.prompt
            ]
            if known:
                task, how = player.rng(n).choice(known)
                texts[n] = EXAMPLE.format(task=task, solution=how)
        played = await told_once(player, dict(enumerate(groups)), "guide/icpo", texts, keeps=False)
        rows = {
            n: (len(groups[n]) - 1, self._counted(one, player.update))
            for n, one in played.items()
            if one.outcome.counts
        }
        self._remember(groups)
        return with_rows(groups, rows)

    def _counted(self, episode: Episode, update: int) -> Episode:
        """A row that reaches the gate, paid more; one that does not, read alone."""
        if episode.trajectory.total_reward < self.gate:
            return masked(episode, lambda k: True)
        first = episode.trajectory
        turns = tuple(paid_on_last(first.turns, "example", self.paid(update)))
        return replace(
            episode, trajectories={**episode.trajectories, first.agent: replace(first, turns=turns)}
        )

    def _remember(self, groups: Sequence[Group]) -> None:
        for group in groups:
            solved = next((one for one in group if one.success and one.outcome.counts and _own(one)), None)
            if solved is not None:
                shown = (solved.task.prompt, "\n".join(actions_of(solved)))
                self.examples[solved.task.env] = [*self.examples.get(solved.task.env, []), shown][
                    -self.pool :
                ]

    def state(self) -> PartState:
        """The examples by environment."""
        return PartState({env: [[*one] for one in every] for env, every in self.examples.items()})

    def restore(self, state: PartState) -> None:
        """Go on with these examples."""
        self.examples = {
            env: [(str(task), str(how)) for task, how in every] for env, every in state.numbers.items()
        }


def _own(episode: Episode) -> bool:
    """Say whether the policy chose all turns."""
    return not any(turn.reply.source for turn in episode.trajectory.turns)
