"""``turnwise/Lab-v0``: elementary science, step by step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import EndReason, RewardKind, Transition
from turnwise.envs.lab import render, solver
from turnwise.envs.lab.actions import FORMS, Wrong, do, possible, read, write
from turnwise.envs.lab.clock import tick
from turnwise.envs.lab.goals import advance, points, score, solved
from turnwise.envs.lab.knobs import LabKnobs
from turnwise.envs.lab.orders import needed, told
from turnwise.envs.lab.state import Laboratory, LabState, begin
from turnwise.envs.lab.tasks import draw_task
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import CommandAnswer, CommandEnv, WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.one_command import Forms
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_lab = WorldCache(Laboratory)


class LabEnv(CommandEnv[LabState]):
    """Boil, mix, measure, connect, grow, classify: ScienceWorld's kinds of tasks in procedural laboratories.

    ``score`` weighs a part of the reward of that name: ScienceWorld's points, of which a solved task has 100. A sub-goal
    pays its points once; a failure takes them back (there the score falls to -100, which papers read as 0).
    """

    turn_limit = 60
    max_trivial_score: ClassVar[float] = 0.1
    forms: ClassVar[Forms | None] = FORMS
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "standard": {"rooms": 6, "distractors": 10, "turn_limit": 100},
    }

    def __init__(
        self,
        *,
        score: float = 0.0,
        shaping: float = 0.0,
        grounding: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(shaping=shaping, grounding=grounding, render_mode=render_mode)
        self.score = score
        if score:
            self.reward_components = {**self.reward_components, "score": RewardKind.STEP}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(LabKnobs, knobs, "laboratory"))

    def begin(self, task: Task) -> LabState:
        return begin(_lab(task))

    def opening(self, state: LabState) -> tuple[str, str]:
        return render.SYSTEM["full" if state.lab.full else "compact"], render.opening(state)

    def transition(self, state: LabState, action: Message) -> Transition[LabState]:
        """A command carried out, with the score of 100 in ``details``, and as a reward component if it is weighed."""
        made = super().transition(state, action)
        failed = made.end is EndReason.FAILED
        now = 0 if failed else score(made.state)
        rewards = {**made.rewards, "score": self.score * (now - score(state))} if self.score else made.rewards
        goals, done = state.lab.goals, 0 if failed else made.state.done
        reached = [[goal.kind, worth] for goal, worth in zip(goals[:done], points(goals), strict=False)]
        details = {**made.details, "score": now, "reached": reached}
        return made._replace(rewards=rewards, details=details)

    def obey(self, state: LabState, words: Sequence[str]) -> CommandAnswer[LabState]:
        lab = state.lab
        try:
            act = read(state, words)
            if lab.slip and self.rng("slip").random() < lab.slip:
                return CommandAnswer(tick(state), render.styled(lab, "it slips and nothing happens ."))
            after, said = do(state, act)
        except ToolError as error:
            raise ToolError(render.styled(lab, str(error))) from None
        if isinstance(said, Wrong):
            text = f"{lab.names[said.thing]} is not it , or not yet : failed ."
            return CommandAnswer(after, render.styled(lab, text), EndReason.FAILED)
        # What holds at once counts, and so does what the turn's time brings about.
        before, after = state, advance(tick(advance(after)))
        if solved(after):
            return CommandAnswer(after, render.styled(lab, "done ."), EndReason.SOLVED)
        return CommandAnswer(after, "\n".join((render.tell(after, act, said), *told(before, after))))

    def gold(self, state: LabState) -> str:
        return write(state.lab, solver.gold(state))

    def needs(self, state: LabState) -> Sequence[str]:
        return needed(state)

    def demonstrate(self, state: LabState, rng: Random) -> str:
        """Does something else one time in three, and at times focuses on it."""
        return write(state.lab, solver.demonstrate(state, rng))

    def potential(self, state: LabState) -> float:
        """The share of the sub-goals that is reached."""
        return state.done / len(state.lab.goals)

    def admissible(self, state: LabState) -> Sequence[str]:
        return [write(state.lab, act) for act in possible(state)]

    def state_key(self, state: LabState) -> str:
        what = repr((state.lab.key, *state[1:]))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()
