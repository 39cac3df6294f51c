"""Cues that the policy writes itself: groups that nobody solved are played again, all but one row told an abstract hint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import actions_of, leaks, solutions, told_by_seed, unsolved, written

PATH = """\
Below are a task and what solves it. Explain step by step how one comes to this solution.

Task:
{task}

Solution:
{solution}"""
CUE = """\
Below are a task and an explanation of its solution. Write a cue of one or two lines: the idea that is needed, in general words. Do not
give the answer away, and repeat no step of the solution.

Task:
{task}

Explanation:
{path}"""


@component("guide", "nurl", paper="2509.25666")
class NuRL:
    """Plays unsolved groups again, all but ``unhinted`` rows told a cue that the policy wrote itself; learned as told.

    NuRL (2025): for each task the policy writes a path from the task to the gold answer, and of that an abstract cue that does not give
    the answer away. Where nobody solves a group, it is sampled again: G − 1 rollouts see the cue and one does not, and the new group's
    statistics count. The prompt with the cue is the one that is learned under (the paper leaves that open). A cue is written once for a task, when it is first
    needed (the paper writes all of them before training), and kept in checkpoints; one that holds an action of the solution word for word is thrown away, and its task gets none.
    The paper's two stages are `phases`. Tokens of the writing are not counted.

    It changes the objective: hard tasks are trained under other prompts than they are evaluated under.

    Worked by hand: the new group's rewards 0, 1, 1, 0, 1, 0, 0 and 0 of the row that saw no cue: mean 3/8, population deviation
    √(15/64); successes 1.2910, failures −0.7746.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo(turn_batch([[0], [1], [1], [0], [1], [0], [0], [0]])) * (8 / 7) ** 0.5, 4)[:2]
    [[-0.7746], [1.291]]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(NuRL(), "shop/quick", groups=1, size=2)
    >>> [{turn.reply.source for turn in episode.trajectory.turns} for episode in guided[0]]
    [{'guide/nurl'}, {''}]

    Raises:
        RecipeError: fewer than no row is to be without a cue.
    """

    def __init__(self, *, demonstrator: str = "gold", unhinted: int = 1) -> None:
        if unhinted < 0:
            raise RecipeError(f"guide 'nurl': unhinted={unhinted}.", "Give 0 or more.")
        self.demonstrator, self.unhinted = demonstrator, unhinted
        self.cues: dict[str, str] = {}

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """The groups, those that nobody solved played again where there is a cue for them."""
        hard = unsolved(groups)
        new = {n: group for n, group in hard.items() if group[0].task.id not in self.cues}
        await self._write(player, await solutions(player, new, self.demonstrator))
        asked = player.requests({n: g for n, g in hard.items() if self.cues.get(g[0].task.id)})
        told = {n: every[: max(0, len(every) - self.unhinted)] for n, every in asked.items()}
        alone = {n: every[len(told[n]) :] for n, every in asked.items()}
        cues = {one.seed: f"Hint: {self.cues[one.task.id]}" for every in told.values() for one in every}
        seen = await player.play(told, told_by_seed(player, "guide/nurl", cues, keeps=True))
        unseen = await player.play(alone, player.policy)
        return [[*seen[n], *unseen[n]] if n in asked else [*group] for n, group in enumerate(groups)]

    async def _write(self, player: GuidePlayer, shown: Mapping[int, Episode]) -> None:
        """Write the cues of tasks that have none; an empty one where it gave the answer away."""
        steps = {n: actions_of(one) for n, one in shown.items()}
        task = {n: one.task.prompt for n, one in shown.items()}
        asked = {n: PATH.format(task=task[n], solution="\n".join(steps[n])) for n in shown}
        path = await written(player.policy, asked, player.update)
        asked = {n: CUE.format(task=task[n], path=path[n]) for n in shown}
        cues = await written(player.policy, asked, player.update)
        self.cues |= {one.task.id: "" if leaks(cues[n], steps[n]) else cues[n] for n, one in shown.items()}

    def state(self) -> PartState:
        """The cues by task."""
        return PartState({**self.cues})

    def restore(self, state: PartState) -> None:
        """Go on with these cues."""
        self.cues = {task: str(cue) for task, cue in state.numbers.items()}
