"""The guide that nudges: in a room with a bell, an engine rings it by chance, and always when it has just been told to."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from random import Random
from typing import Any, NamedTuple

from helped import FORGETS, Part
from plain import reference, refuses

from turnwise.agents.core import PREVIOUS, ROOT, Completion, Episode, Sampling
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register, register_suite
from turnwise.tasks.core import Json, Split, Suite, Task
from turnwise.tools.core import tool
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.toy import toy_model
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups

TURNS = 7
CALL = '<tool_call>\n{"name": "ring", "arguments": {}}\n</tool_call>'


@tool
def ring() -> str:
    """Ring the bell."""
    return "ring"


class Turns(NamedTuple):
    """How many turns there were."""

    passed: int = 0


class Bell(AgentEnv[Turns]):
    """Ends unsolved after so many turns, whatever is done."""

    system = "Wait."
    blocking = False
    tools = (ring,)

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task(f"test/{cls.__name__}-v0", f"Wait {rng.random()}")

    def initial(self, task: Task) -> tuple[Turns, str]:
        return Turns(), task.prompt

    def transition(self, state: Turns, action: Message) -> Transition[Turns]:
        after = Turns(state.passed + 1)
        end = EndReason.FAILED if after.passed == TURNS else None
        return Transition(after, f"{after.passed} turns", {"outcome": 0.0}, end)

    def gold(self, state: Turns) -> str:
        return "?"


class NoBell(Bell):
    """The room without it."""

    tools = ()


class Ringer:
    """Rings by chance, and where the last thing that it reads ends in the nudge."""

    version, context_length = 0, 8192

    def __init__(self, tokenizer: Any, stop: int, nudge: str) -> None:
        self.tokenizer, self.stop, self.nudge = tokenizer, stop, nudge
        self.read: dict[tuple[int, ...], str] = {}

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text = self.tokenizer.decode(list(prompt_ids))
        rings = text.endswith(f"\n\n{self.nudge}<|assistant|>") or Random(seed).random() < 0.3
        said = f"{seed} {CALL if rings else ''}"
        ids = (*self.tokenizer.encode(said, add_special_tokens=False), self.stop)
        self.read[ids] = text
        return Completion(ids, (-0.5,) * len(ids), stopped=True)

    def close(self) -> None:
        """Nothing is held."""


@functools.cache
def rooms() -> None:
    for name in ("Bell", "NoBell"):
        register(f"test/{name}-v0", f"{__name__}:{name}", "A room.")
        register_suite(Suite(f"room/{name}", f"test/{name}-v0", "A room.", {}))


def in_room(
    guide: Part, room: str, nudge: str, template: str = ""
) -> tuple[list[Group], list[Group], Ringer]:
    """Two groups, of which one was solved, before and after the guide."""
    from transformers import AutoTokenizer

    rooms()
    tokenizer: Any = AutoTokenizer.from_pretrained(toy_model())
    if template:
        tokenizer.chat_template = template
    renderer = Renderer(tokenizer, tools_format="text")
    engine = Ringer(tokenizer, next(iter(renderer.stop_ids)), nudge)
    policy = ModelPolicy(engine, renderer, Sampling(max_tokens=400))  # pyright: ignore
    runner = RolloutRunner(policy, as_is)

    async def run() -> tuple[list[Group], list[Group]]:
        given = await chain(runner, plan_groups(f"room/{room}", 2, 2))
        given[1] = [given[1][0], dataclasses.replace(given[1][1], end=EndReason.SOLVED)]
        return given, await guide(GuidePlayer(runner, policy, {}, 0, 0), given)

    return *asyncio.run(run()), engine


def rung(episode: Episode) -> list[bool]:
    return [bool(turn.action.tool_calls) for turn in episode.trajectory.turns]


@reference(
    "guide", "start", nudge=["Ring it!"], after=[1, 3], most=[2, 9], where=["all"],
    also=[{"after": 1, "most": 3}],
)  # fmt: skip
def start(
    guide: Part,
    nudge: str = "Maybe a tool would help here.",
    after: int = 2,
    most: int = 1,
    where: str = "unsolved",
) -> None:
    for wrong in ({"after": 0}, {"most": 0}, {"nudge": " "}):
        refuses(lambda wrong=wrong: asyncio.run(guide(None, [], **wrong)))
    plain, found, _ = in_room(guide, "NoBell", nudge)
    assert not [
        turn for group in found for one in group for turn in one.trajectory.turns if turn.reply.source
    ]
    for template in ("", FORGETS):
        plain, found, engine = in_room(guide, "Bell", nudge, template)
        times = set[int]()
        for n, (old, new) in enumerate(zip(plain, found, strict=True)):
            if n == 1 and where == "unsolved":
                assert new == old
                continue
            assert [one.task for one in new] == [one.task for one in old]
            assert not {one.seed for one in new} & {one.seed for one in old}
            for one in new:
                given, called = list[int](), rung(one)
                assert len(called) == TURNS
                for k, turn in enumerate(one.trajectory.turns):
                    since = max([*(g for g in given), *(j + 1 for j in range(k) if called[j]), 0])
                    if k - since >= after and len(given) < most:
                        given.append(k)
                        assert called[k], "it does as it is told"
                    read = engine.read[turn.reply.action_ids]
                    here = given[-1:] == [k]
                    assert read.count(nudge) == (here if template else len(given))
                    assert read.endswith(f"\n\n{nudge}<|assistant|>") == here
                    assert (turn.reply.scored_ids is not None) == here
                    learned = engine.tokenizer.decode(list(turn.reply.scored_ids or turn.reply.prompt_ids))
                    assert nudge not in learned
                    if here:
                        sampled = engine.tokenizer.decode(list(turn.reply.prompt_ids))
                        assert sampled == learned.removesuffix("<|assistant|>") + f"\n\n{nudge}<|assistant|>"
                    helped = here if template else bool(given)
                    assert turn.reply.source == ("guide/start" if helped else "")
                    assert turn.reply.parent == (ROOT if k and template else PREVIOUS)
                times.add(len(given))
        assert times - {0}
