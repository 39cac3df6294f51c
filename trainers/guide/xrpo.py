"""Solved examples that are alike, told where nobody solved the task; learned without them."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.icpo import EXAMPLE, ICPO
from turnwise.trainers.guide.rows import told_once, unsolved, with_rows
from turnwise.trainers.kit.sets import overlap

Example = tuple[str, str]


def likest(prompt: str, known: Sequence[Example], shots: int) -> list[Example]:
    """The examples whose tasks share the most words with a task, the likest first; of equals the newest, which is the last."""

    asked = prompt.lower().split()
    order = [(-overlap(asked, task.lower().split()), -place) for place, (task, _) in enumerate(known)]
    return [known[-place] for _, place in sorted(order)[:shots]]


@component("guide", "xrpo", paper="2510.06672")
class XRPO(ICPO):
    """Plays the last row that counts of each group that nobody solved again, with solved examples of alike tasks in its prompt; learned as untold.

    The seeding of XRPO (Bamba et al. 2025), whose other parts are the sampler `xrpo` and the shape `xrpo`: a prompt with no success is retried with
    K = ``shots`` solved similar examples in its context, by nearness of embeddings. Ours: nearness is the share of words in both, one row is
    played so, and it is weighed like an episode of somebody else, `guide: [{name: xrpo, loss: [luffy], correction: none}]`, for the prompt that
    is learned has no examples. They are the newest ``pool`` episodes of each environment that the policy solved by itself in training,
    kept in checkpoints. While there is none the row stays. It may stand beside a sampler that adds episodes, for what it replaces had failed.

    It changes the objective: rows that were sampled with help are weighed otherwise than by their ratio.

    Worked by hand: "buy a red mug" shares three of five words with "buy a blue mug", two of six with "sell a mug".

    >>> [task for task, _ in likest("buy a red mug", [("sell a mug", "1"), ("buy a blue mug", "2"), ("wait", "3")], 2)]
    ['buy a blue mug', 'sell a mug']
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(XRPO(), "shop/quick", groups=1, size=2)
    >>> guided == plain  # nothing was solved yet that could be shown
    True

    Raises:
        RecipeError: no example is told, or the pool is empty.
    """

    replaces_failures = True

    def __init__(self, *, shots: int = 2, pool: int = 64) -> None:
        if shots < 1 or pool < 1:
            raise RecipeError(f"guide 'xrpo': shots={shots}, pool={pool}.", "Give 1 or more of each.")
        super().__init__(pool=pool)
        self.shots = shots

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Play one row of each group that nobody solved with examples; then remember what was solved without help."""
        texts: dict[int, str] = {}
        for n, group in unsolved(groups).items():
            task = group[0].task
            known = [one for one in self.examples.get(task.env, []) if one[0] != task.prompt]
            if known:
                told = likest(task.prompt, known, self.shots)
                texts[n] = "\n\n".join(EXAMPLE.format(task=one, solution=how) for one, how in told)
        played = await told_once(player, dict(enumerate(groups)), "guide/xrpo", texts, keeps=False)
        rows = {n: (_last(groups[n]), one) for n, one in played.items() if one.outcome.counts}
        self._remember(groups)
        return with_rows(groups, rows)


def _last(group: Group) -> int:
    """The last row of a group that counts."""
    return max(i for i, one in enumerate(group) if one.outcome.counts)
