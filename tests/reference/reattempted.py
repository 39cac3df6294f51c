"""The guide that attempts again what failed: on riddles whose failure report reveals one word more each time."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import re
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from helped import FORGETS, Part, actions, obedient
from plain import reference, refuses

from turnwise.agents.core import PREVIOUS, ROOT, Episode, Outcome, Trajectory
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register, register_suite
from turnwise.tasks.core import Json, Split, Suite, Task
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups

WORDS = ("buy", "search", "product")


class RiddleState(NamedTuple):
    """How many words were right so far."""

    right: int = 0


class Riddle(AgentEnv[RiddleState]):
    """Say so many words, one in each turn; the first that is wrong ends it. A right word is praised between marks of help.

    One that is ``paid`` pays at its end by chance, whether it is solved or not.
    """

    system = "Guess."
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        drawn = [rng.choice(WORDS) for _ in range(knobs.get("words", 1))]
        options = {"words": drawn, "silent": "silent" in knobs, "paid": "paid" in knobs}
        return Task("test/Riddle-v0", f"Riddle {rng.random()}", options)

    def initial(self, task: Task) -> tuple[RiddleState, str]:
        return RiddleState(), task.prompt

    def transition(self, state: RiddleState, action: Message) -> Transition[RiddleState]:
        words: list[str] = self.task.options["words"]
        pay = {"outcome": self.rng().choice((0.0, 0.25, 0.5))} if self.task.options["paid"] else {}
        if action.content != words[state.right]:
            return Transition(state, "wrong", pay, EndReason.FAILED, {"right": state.right})
        after = RiddleState(state.right + 1)
        if after.right == len(words):
            return Transition(after, "solved", pay or {"outcome": 1.0}, EndReason.SOLVED)
        return Transition(after, "and then? <guidance>right so far</guidance>")

    def gold(self, state: RiddleState) -> str:
        return self.task.options["words"][state.right]

    @classmethod
    def failure_report(cls, task: Task, details: Mapping[str, Json]) -> str:
        known: list[str] = task.options["words"][: details.get("right", 0) + 1]
        return "" if task.options["silent"] else "Hint: " + "\n".join(known)


@functools.cache
def riddles() -> None:
    register("test/Riddle-v0", f"{__name__}:Riddle", "Words.")
    for words in (1, 2, 5):
        register_suite(Suite(f"riddle/{words}", "test/Riddle-v0", "Words.", {"words": words}))
    register_suite(Suite("riddle/paid", "test/Riddle-v0", "Words.", {"paid": True}))
    register_suite(Suite("riddle/silent", "test/Riddle-v0", "Words.", {"silent": True}))


def again(guide: Part, suite: str, template: str, **options: Any) -> tuple[list[Group], list[Group]]:
    """Four groups of two: nobody solved the first, one of whose episodes had no room for a turn; then one that somebody solved, one that failed to be played, and one
    of which one episode did.
    """
    riddles()
    policy = obedient(template)
    runner = RolloutRunner(policy, as_is)

    async def run() -> tuple[list[Group], list[Group]]:
        given = await chain(runner, plan_groups(suite, 4, 2))
        cut = {"agent": Trajectory(())}
        given[0] = [
            given[0][0],
            dataclasses.replace(
                given[0][1], trajectories=cut, outcome=Outcome.LIMIT, end=EndReason.TOKEN_LIMIT
            ),
        ]
        given[1] = [dataclasses.replace(given[1][0], end=EndReason.SOLVED), given[1][1]]
        given[2] = [dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) for one in given[2]]
        given[3] = [given[3][0], dataclasses.replace(given[3][1], outcome=Outcome.INFRA_ERROR)]
        return given, await guide(GuidePlayer(runner, policy, {}, 0, 0), given, **options)

    return asyncio.run(run())


def plain(text: str) -> str:
    return re.sub(r"\s*<guidance>.*?</guidance>", "", text, flags=re.DOTALL)


def is_learned_as_untold(episode: Episode, told: str, template: str) -> None:
    """What was read is the conversation with the report; what it is learned under is the one without any help."""
    renderer = obedient(template).renderer
    said, scored, conversation = list[int](), list[int](), list[Message]()
    for k, turn in enumerate(episode.trajectory.turns):
        conversation += turn.observation
        reply = turn.reply
        assert (reply.source, turn.weight) == ("guide/reattempt", 1.0)
        assert reply.parent == (ROOT if k and template else PREVIOUS)
        if k == 0 or template:
            said, scored = [], []
        said += reply.prompt_ids
        scored += reply.prompt_ids if reply.scored_ids is None else reply.scored_ids
        first = dataclasses.replace(conversation[0], content=f"{conversation[0].content}{told}")
        assert said == [*renderer.start([first, *conversation[1:]], ())]
        without = [dataclasses.replace(one, content=plain(one.content)) for one in conversation]
        assert scored == [*renderer.start(without, ())]
        assert reply.scored_ids != reply.prompt_ids
        said += reply.action_ids
        scored += reply.action_ids
        conversation.append(turn.action)


@reference("guide", "reattempt", attempts=[3, 4])
def reattempt(guide: Part, attempts: int = 2) -> None:
    refuses(lambda: again(guide, "riddle/1", "", attempts=1))
    before, after = again(guide, "riddle/silent", "")
    assert after == before, "there is nothing to tell"
    for words, template in ((1, ""), (2, ""), (2, FORGETS)):
        before, after = again(guide, f"riddle/{words}", template)
        assert len(after) == len(before)
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if number in (1, 2) or words >= attempts:
                assert new == old
                continue
            assert [one.task.id for one in new] == [one.task.id for one in old]
            assert not {one.seed for one in new} & {one.seed for one in old}
            assert len({one.seed for one in new}) == len(new)
            known: list[str] = old[0].task.options["words"]
            for i, one in enumerate(new):
                assert one.success == old[i].outcome.counts, (
                    "of what failed to be played there is nothing to tell"
                )
                told = "\n".join(known if one.success else known[: words - 1])
                help_ = f"\n\n<guidance>\nHint: {told}\n</guidance>" if told else ""
                is_learned_as_untold(one, help_, template)
                if one.success:
                    assert actions(one) == known
