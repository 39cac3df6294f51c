"""``turnwise/Judging-v0``: a question about recorded episodes, answered in one turn and graded by what is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Transition
from turnwise.envs.judging.actions import is_marked, said
from turnwise.envs.judging.reward import GRADES
from turnwise.envs.judging.state import JudgingState
from turnwise.envs.judging.tasks import draw_task
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json, Split, Task, digest

SKILL = 0.6
"""How often the demonstrator is right without luck."""


class JudgingEnv(AgentEnv[JudgingState]):
    """One answer, which ends the episode; the outcome says how near it comes, and is 1 where it is right.

    ``worst`` is paid for what is wrong and for what is no answer where less would be (RM-R1: −1, and +1 for what is right);
    ``marked`` is paid for the form, one ``answer:`` in the last 80 characters (UI-Shift and Think-RM: 1). Messages of fewer words than
    ``least``, or of more than ``most``, are no answer (ThinkPRM's bounds of a chain; 0: none).
    """

    system = "Read what an agent did. End with one line: answer: and what is asked for."
    turn_limit = 1
    max_trivial_score: ClassVar[float] = 0.55
    max_trivial_scores: ClassVar[Mapping[str, float]] = {
        "judging/first": 0.35, "judging/rank": 0.5, "judging/inverse": 0.35, "judging/fill": 0.35, "judging/order": 0.35,
        "judging/next": 0.35,
    }  # fmt: skip
    copies: ClassVar[str] = "A verdict is one of the words that the question offers."
    blocking: ClassVar[bool] = False

    def __init__(
        self, *, shaping: float = 0.0, worst: float = 0.0, marked: float = 0.0, least: int = 0, most: int = 0,
        render_mode: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.worst, self.marked, self.least, self.most = worst, marked, least, most
        if marked:
            self.reward_components = {**self.reward_components, "marked": RewardKind.STEP}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, **knobs)

    def initial(self, task: Task) -> tuple[JudgingState, str]:
        return JudgingState(task.id), task.prompt

    def transition(self, state: JudgingState, action: Message) -> Transition[JudgingState]:
        options, answer = self.task.options, said(action.content)
        length = len(action.content.split())
        bounded = length >= self.least and (not self.most or length <= self.most)
        grade = GRADES[options["ask"]](answer, options["truth"]) if bounded else None
        rewards = {"outcome": self._paid(options["ask"], grade)}
        if self.marked:
            rewards["marked"] = self.marked * is_marked(action.content)
        end = EndReason.SOLVED if grade == 1.0 else EndReason.FAILED
        details = {"ask": options["ask"], "said": answer[:200], "malformed": grade is None}
        return Transition(state._replace(answered=True), "noted .", rewards, end, details)

    def _paid(self, ask: str, grade: float | None) -> float:
        """Pay a grade; no answer is never better than the worst one."""
        if ask == "rank":
            return min(self.worst, -1.0) if grade is None else grade
        return grade or self.worst

    def gold(self, state: JudgingState) -> str:
        return f"answer: {self.task.gold}"

    def demonstrate(self, state: JudgingState, rng: Random) -> str:
        """Right six times in ten, otherwise one of the answers that might be given."""
        return self.gold(state) if rng.random() < SKILL else rng.choice(self.admissible(state))

    def admissible(self, state: JudgingState) -> Sequence[str]:
        return [f"answer: {one}" for one in self.task.options["offers"]]

    def state_key(self, state: JudgingState) -> str:
        return digest(*state)
