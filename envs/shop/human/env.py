"""``turnwise/ShopHuman-v0``: predict, page by page, what a described person does next in the shop (Shop-R1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Transition
from turnwise.envs.messages import Message
from turnwise.envs.shop.human.actions import TOOLS, possible, read_act, write_act
from turnwise.envs.shop.human.personas import Persona
from turnwise.envs.shop.human.reward import Layers, layers, same
from turnwise.envs.shop.human.sessions import LONGEST, habit
from turnwise.envs.shop.human.state import Watching
from turnwise.envs.shop.human.tasks import draw_task, session_of
from turnwise.envs.shop.render import render
from turnwise.tasks.core import Json, Split, Task, digest


class ShopHumanEnv(AgentEnv[Watching]):
    """One prediction per turn; then the page on which the person really came is shown.

    The outcome, at the end, is the share of predictions that were exactly right. ``hierarchy`` weighs Shop-R1's
    layers, paid at each turn, and ``scale`` is its difficulty scale D. What cannot be read is answered with why,
    and may be said again, a few times.
    """

    system = (
        "You watch a person in a web shop. Predict the next action of this person on the page that you see. Answer "
        'with JSON: {"rationale": "…", "action": {"type": "click", "name": "…"}}, or with the action '
        '{"type": "type_and_submit", "name": "search", "text": "…"} or {"type": "terminate"}. '
        "Then you see what the person did, and the next page."
    )
    tools = TOOLS
    reward_components: Mapping[str, RewardKind] = {
        "outcome": RewardKind.OUTCOME,
        **dict.fromkeys(Layers._fields, RewardKind.STEP),
    }
    turn_limit = LONGEST + 5
    max_trivial_score: ClassVar[float] = 0.02
    blocking: ClassVar[bool] = False

    def __init__(
        self,
        *,
        shaping: float = 0.0,
        hierarchy: float = 1.0,
        scale: float = 10.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.hierarchy, self.scale = hierarchy, scale

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, knobs, cls.turn_limit)

    def initial(self, task: Task) -> tuple[Watching, str]:
        session = session_of(task)
        return Watching(task.id), f"{task.prompt}\n\n{render(session.moments[0].shop)}"

    def transition(self, state: Watching, action: Message) -> Transition[Watching]:
        predicted = read_act(action)
        moments = session_of(self.task).moments
        done = moments[state.place].act
        paid = layers(predicted, done, self.scale)
        after = Watching(
            state.task,
            state.place + 1,
            state.exact + same(predicted, done),
            state.typed + (predicted.type == done.type),
        )
        rewards = (
            {name: self.hierarchy * part for name, part in paid._asdict().items()} if self.hierarchy else {}
        )
        told = f"The person did: {write_act(done)}"
        if after.place < len(moments):
            return Transition(after, f"{told}\n\n{render(moments[after.place].shop)}", rewards)
        share = after.exact / len(moments)
        end = EndReason.SOLVED if after.exact == len(moments) else EndReason.FAILED
        details = {"exact": share, "type": after.typed / len(moments), "actions": len(moments)}
        return Transition(after, f"{told}\nThe session is over.", {"outcome": share, **rewards}, end, details)

    def gold(self, state: Watching) -> str:
        return write_act(session_of(self.task).moments[state.place].act)

    def demonstrate(self, state: Watching, rng: Random) -> str:
        """An imperfect scripted policy that predicts an average shopper, whatever the persona."""
        moment = session_of(self.task).moments[state.place]
        return write_act(habit(Persona(), moment.shop, moment.mind))

    def potential(self, state: Watching) -> float:
        """The share of the session that was predicted exactly so far."""
        return state.exact / len(session_of(self.task).moments)

    def admissible(self, state: Watching) -> Sequence[str]:
        return [write_act(act) for act in possible(session_of(self.task).moments[state.place].shop)]

    def state_key(self, state: Watching) -> str:
        return digest(*state)
