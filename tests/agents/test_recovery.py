"""A step that failed is repeated in a fresh environment: from the same state, or not at all."""

from __future__ import annotations

import asyncio
import itertools
import time
from random import Random

import pytest

from turnwise.agents.core import History, Outcome, Reply
from turnwise.agents.execution.calls import Fault
from turnwise.agents.multi_agent import MultiAgentEpisode
from turnwise.agents.rollout import Limits, Request, run_episodes
from turnwise.agents.workers.recovery import Deadlines, bring
from turnwise.envs import registry
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register
from turnwise.tasks.core import Json, Split, Task

NAME = "turnwise-test/Recovers-v0"
STEPS = itertools.count()
BEGUN: list[str] = []


class RecoversEnv(AgentEnv[int]):
    """Counts to two. ``drifts``: every step ever taken leads elsewhere; ``hangs``: the second never ends."""

    turn_limit, blocking = 5, True

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task(NAME, "count", {"does": "nothing"})

    def initial(self, task: Task) -> tuple[int, str]:
        BEGUN.append(task.options["does"])
        return 0, "begin"

    def transition(self, state: int, action: Message) -> Transition[int]:
        does = self.task.options["does"]
        if does == "hangs" and state == 1:
            time.sleep(1.5)
        after = state + 1 + (100 * next(STEPS) if does == "drifts" else 0)
        over = after >= 2 and does != "drifts"
        return Transition(after, "on", {"outcome": float(over)}, EndReason.SOLVED if over else None)

    def gold(self, state: int) -> str:
        return "on"


class Counter:
    """A policy that says the same."""

    name = "counter"

    async def act(self, history: History) -> Reply:
        return Reply(Message("assistant", "on"))

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(NAME, f"{__name__}:RecoversEnv", "For tests.")
    monkeypatch.setattr(registry, "load_class", lambda *_: RecoversEnv)
    BEGUN.clear()


async def _brought(does: str) -> MultiAgentEpisode:
    """An episode of one turn, brought into a fresh environment by playing it again."""
    task = Task(NAME, "count", {"does": does})
    env, fresh = RecoversEnv(), RecoversEnv()
    env.reset(seed=1, options={"task": task})
    episode = MultiAgentEpisode(env, task, 1)
    step = env.step(Message("assistant", "on"))
    episode.done.append((Message("assistant", "on"), step.info["state_key"]))
    await bring(episode, fresh, None, None, Deadlines(5, 5))
    return episode


def test_an_episode_is_brought_to_where_it_stood() -> None:
    episode = asyncio.run(_brought("nothing"))
    assert episode.env.state == 1


def test_another_state_than_before_is_a_fault() -> None:
    with pytest.raises(Fault, match=r"turn 0 led to another state \(E3\)") as caught:
        asyncio.run(_brought("drifts"))
    assert caught.value.outcome is Outcome.INFRA_ERROR


@pytest.mark.slow
def test_a_step_that_hangs_twice_does_not_cost_a_third_time() -> None:
    task = Task(NAME, "count", {"does": "hangs"})
    (episode,) = run_episodes([Request(task, 1)], Counter(), limits=Limits(step_s=0.3), retries=3)
    assert episode.outcome is Outcome.INFRA_ERROR
    assert BEGUN == ["hangs"], "the repetition starts from a snapshot, and the episode is not played again"
    assert episode.metrics["repeated_steps"] == 1
