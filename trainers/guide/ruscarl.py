"""Rubrics as scaffolding: each row of a group sees a share of the criteria, less from row to row and from update to update."""

from __future__ import annotations

from collections.abc import Sequence
from math import tanh

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import told_by_seed
from turnwise.trainers.kit.rubric import as_list, rubrics_of

SHOWN = "You are graded by these criteria:\n{criteria}"


@component("guide", "ruscarl", paper="2508.16949")
class RuscaRL:
    """Plays every row with some criteria of the task's rubric in its prompt: all of them in the first row, none in the last, and none late.

    RuscaRL (2025): row i of G sees a random choice of round(ρ·n) of the task's n criteria, ρ = (G − 1 − i)/(G − 1) · 1/(1 + exp(k·(x − x₀))), where
    x = (t − 1)/(T − 1) in update t of T = ``horizon``, x₀ = ``middle`` and k = ``steepness``. Halves are rounded to the even number; a
    group of one counts as a first row. They are learned under the prompt with their criteria (what the paper does is not in the book).
    The grade is judge `rubric`, paid by `reward: {name: from_signal, signal: rubric, form: last}`; which criteria a task has is said
    there. It plays in place of the policy alone.

    It changes the objective: tasks are trained under other prompts than they are evaluated under, until the criteria have faded.

    Worked by hand: G = 8, T = 350, rows 0, 3 and 7 in updates 1, 71 and 75.

    >>> [[round(RuscaRL().share(i, 8, t - 1), 4) for i in (0, 3, 7)] for t in (1, 71, 75)]
    [[1.0, 0.5714, 0.0], [0.4821, 0.2755, 0.0], [0.1818, 0.1039, 0.0]]
    >>> [round(12 * RuscaRL().share(i, 8, 70)) for i in (0, 3, 7)]
    [6, 3, 0]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(RuscaRL(), "shop/quick", groups=1, size=3)
    >>> [{turn.reply.source for turn in episode.trajectory.turns} for episode in guided[0]]
    [{'guide/ruscarl'}, {'guide/ruscarl'}, {''}]

    Raises:
        RecipeError: the horizon is below two updates.
    """

    instead = True

    def __init__(self, *, horizon: int = 350, middle: float = 0.2, steepness: float = 125.0) -> None:
        if horizon < 2:
            raise RecipeError(f"guide 'ruscarl': horizon={horizon}.", "Give 2 updates or more.")
        self.horizon, self.middle, self.steepness = horizon, middle, steepness

    def share(self, row: int, size: int, update: int) -> float:
        """Return the share of the criteria that a row of a group sees; updates are counted from 0."""
        among = (size - 1 - row) / (size - 1) if size > 1 else 1.0
        x = update / (self.horizon - 1)
        return among * (1 - tanh(self.steepness * (x - self.middle) / 2)) / 2

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Play the groups, each row with its criteria."""
        rubrics = await rubrics_of([group[0].task for group in groups])
        asked = player.requests(dict(enumerate(groups)))
        told: dict[int, str] = {}
        for n, every in asked.items():
            for i, request in enumerate(every):
                criteria, rng = rubrics[request.task.id], player.rng(n, i)
                shown = rng.sample(criteria, round(self.share(i, len(every), player.update) * len(criteria)))
                if shown:
                    told[request.seed] = SHOWN.format(criteria=as_list(shown))
        helped = {n: [one for one in every if one.seed in told] for n, every in asked.items()}
        alone = {n: [one for one in every if one.seed not in told] for n, every in asked.items()}
        seen = await player.play(helped, told_by_seed(player, "guide/ruscarl", told, keeps=True))
        unseen = await player.play(alone, player.policy)
        return [[*seen[n], *unseen[n]] for n in asked]  # no row sees more than the one before it

    def state(self) -> PartState:
        """It remembers nothing."""
        return PartState({})

    def restore(self, state: PartState) -> None:
        """There is nothing to go on with."""
