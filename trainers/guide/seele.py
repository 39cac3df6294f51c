"""Hints of just the length that makes half of a group succeed, found in rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.prefix import PrefixedPolicy
from turnwise.trainers.guide.rows import expert, solutions
from turnwise.trainers.kit.item_response import Points, fitted

MARK = "guide/seele"
GUESSES = [n / 10 for n in range(5)]


@dataclass
class HintedTask:
    """A task of the update: the steps of its demonstration, its rows so far, and what came of each share of hints."""

    steps: int
    share: float
    rows: list[Episode] = field(default_factory=list[Episode])
    solved: dict[float, list[float]] = field(default_factory=lambda: defaultdict[float, list[float]](list))

    def points(self) -> Points:
        """Return the mean success by share."""
        return [(share, mean(found)) for share, found in self.solved.items()]

    def played(self, rows: Sequence[Episode], target: float) -> None:
        """Take up a round, and choose the share of the next one."""
        self.rows += rows
        self.solved[self.share] += [float(one.success) for one in rows if one.outcome.counts]
        self.solved = defaultdict(list, {share: found for share, found in self.solved.items() if found})
        if self.solved:
            points = self.points()
            self.share = fitted(points, GUESSES if len(points) > 2 else GUESSES[:1]).reaches(target)


@component("guide", "seele", paper="2509.06923")
class Seele:
    """Plays each group in rounds, after the first steps of a demonstration: more of them where few succeeded, fewer where many did.

    SEELE (2025): a step of the policy is worth most where half of a group succeeds. A task's first round has the first round(p·T) of the
    demonstrator's T turns for a beginning, p = (T − 1)/T, or what its last visit came to. After each of the ``rounds`` f(p) = b + (1 − b)/(1 + exp(−k·(p + μ))) is
    fitted to the mean success by p by least squares, and the next p is where f is ``target``: −μ − ln((1 − b)/(target − b) − 1)/k within
    0 and 1, and 0 where b is no less. A group's rows are dealt to the rounds evenly; paper: 4 rounds of 8. Ours: b is one of 0, 0.1 … 0.4, and
    0 until three shares were tried; of a single one k = 8 is taken. A task that the demonstrator does not solve is played plainly. Nothing is played before this guide.

    Advantages are `credit: dr_grpo` over all rounds. A hint's tokens are imitated with the weight 0.001, whatever came of them, and there is a KL of 0.001:
    `guide: [{name: seele, loss: [{name: expo, weight: 0.001}], correction: none}]` and `loss: [clip, {name: kl, weight: 0.001}]`. Groups that
    the filter leaves out are not imitated either.

    It changes the objective: tasks are trained from other first states than they are evaluated from.

    Worked by hand: a demonstration of ten turns begins with nine of them; all eight succeed, and with half of it three.

    >>> task = HintedTask(10, 0.9)
    >>> round(task.share * task.steps)
    9
    >>> task.solved |= {0.9: [1.0] * 8, 0.55: [1.0] * 3 + [0.0] * 5, 0.7: [1.0] * 6 + [0.0] * 2}
    >>> round(fitted(task.points(), [0.0]).reaches(0.5), 4)
    0.5972
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(Seele(), "shop/quick", groups=1, size=2)
    >>> [[turn.reply.source for turn in episode.trajectory.turns][:4] for episode in guided[0]]
    [['guide/seele', 'guide/seele', 'guide/seele', ''], ['guide/seele', 'guide/seele', 'guide/seele', 'guide/seele']]

    Raises:
        RecipeError: there is no round, or the target is not between 0 and 1.
    """

    instead = True

    def __init__(self, *, rounds: int = 4, target: float = 0.5, demonstrator: str = "gold") -> None:
        if rounds < 1 or not 0 < target < 1:
            raise RecipeError(
                f"guide 'seele': rounds={rounds}, target={target:g}.",
                "Give 1 round or more, and 0 < target < 1.",
            )
        self.rounds, self.target, self.demonstrator = rounds, target, demonstrator
        self.shares: dict[str, float] = {}

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Play the groups, round by round."""
        every = dict(enumerate(groups))
        shown = await solutions(player, every, self.demonstrator)
        tasks: dict[int, HintedTask] = {}
        for n, one in shown.items():
            T = len(one.trajectory.turns)
            tasks[n] = HintedTask(T, self.shares.get(one.task.id, (T - 1) / T))
        first = expert(self.demonstrator, player)
        for number in range(self.rounds):
            asked = player.requests({n: rows for n in tasks if (rows := groups[n][number :: self.rounds])})
            turns = {
                one.seed: round(tasks[n].share * tasks[n].steps) for n, some in asked.items() for one in some
            }
            by = PrefixedPolicy(MARK, first, player.policy, turns)
            for n, rows in (await player.play(asked, by)).items():
                tasks[n].played(rows, self.target)
        self.shares |= {shown[n].task.id: task.share for n, task in tasks.items()}
        plain = await player({n: group for n, group in every.items() if n not in tasks}, player.policy)
        return [tasks[n].rows if n in tasks else plain[n] for n in every]

    def state(self) -> PartState:
        """The shares by task."""
        return PartState({**self.shares})

    def restore(self, state: PartState) -> None:
        """Go on with these shares."""
        self.shares = {task: float(share) for task, share in state.numbers.items()}
