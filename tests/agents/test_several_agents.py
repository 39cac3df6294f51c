"""Episodes of several agents: each is told, paid, played, logged and trained as its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

import pytest

from turnwise.agents.core import Episode, History, Outcome, Reply
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.multi_agent import PolicyMap, policy_map
from turnwise.agents.replay import replay
from turnwise.agents.rollout import Request, rollout
from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register
from turnwise.errors import NotFoundError
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.collect import describe, log_groups, split_by_agent
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.update import UpdateResult
from turnwise.trainers.strategy.runner import Cost


class Pile(NamedTuple):
    left: int
    turn: int = 0


class Nim(AgentEnv[Pile]):
    """Take one or two; who takes the last wins. ``bottom`` moves second and hears only what ``top`` took."""

    agents = ("top", "bottom")
    reward_components: Mapping[str, RewardKind] = {"outcome": RewardKind.OUTCOME, "take": RewardKind.STEP}
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task("test/Nim-v0", "Take the last.", {"pile": 4 + 3 * rng.randrange(3), "split": split.value})

    def current_agent(self, state: Pile) -> str:
        return self.agents[state.turn % 2]

    def system_for(self, agent: str) -> str:
        return f"You are {agent}."

    def initial(self, task: Task) -> tuple[Pile, str]:
        return Pile(task.options["pile"]), f"{task.options['pile']} left"

    def transition(self, state: Pile, action: Message) -> Transition[Pile]:
        if action.content not in ("1", "2"):
            raise ToolError("Say 1 or 2.")
        left = max(0, state.left - int(action.content))
        me, other = self.current_agent(state), self.agents[(state.turn + 1) % 2]
        if left:
            told = {me: f"you took {action.content}"}
            return Transition(Pile(left, state.turn + 1), f"{left} left", {"take": 0.1}, messages_to=told)
        end = EndReason.SOLVED if me == "top" else EndReason.FAILED
        return Transition(
            Pile(0, state.turn + 1),
            "you win",
            {"outcome": 1.0},
            end,
            rewards_to={other: {"outcome": 0.0, "take": -0.5}},
            messages_to={other: "you lose"},
        )

    def gold(self, state: Pile) -> str:
        return str(state.left % 3 or 1)


@pytest.fixture(scope="module", autouse=True)
def nim() -> None:
    import sys

    sys.modules.setdefault(__name__, sys.modules[Nim.__module__])
    register("test/Nim-v0", f"{Nim.__module__}:Nim", "Nim")


class Says:
    version = 0

    def __init__(self, *words: str) -> None:
        self.name, self.words = "says", words
        self.heard: list[list[str]] = []

    async def act(self, history: History) -> Reply:
        self.heard.append([f"{m.role}: {m.content}" for m in history.messages()])
        return Reply(Message("assistant", self.words[len(history.turns) % len(self.words)]))

    def close(self) -> None:
        pass


def episode_of(policy: PolicyMap, pile: int = 4) -> Episode:
    task = Task("test/Nim-v0", "Take the last.", {"pile": pile})
    return asyncio.run(rollout([Request(task, 5)], policy))[0]


def test_each_agent_has_its_own_conversation_rewards_and_end() -> None:
    top, bottom = Says("1"), Says("2")
    episode = episode_of({"top": top, "bottom": bottom})
    assert (episode.outcome, episode.end) == (Outcome.OK, EndReason.SOLVED)  # 4 → 3 → 1 → 0
    assert top.heard == [
        ["system: You are top.", "user: 4 left"],
        ["system: You are top.", "user: 4 left", "assistant: 1", "user: you took 1", "user: 1 left"],
    ]
    assert bottom.heard == [["system: You are bottom.", "user: 3 left"]]
    first, second = episode.trajectories["top"], episode.trajectories["bottom"]
    assert [turn.reward for turn in first.turns] == [0.1, 1.0]
    assert [dict(turn.rewards) for turn in second.turns] == [{"take": 0.1 - 0.5, "outcome": 0.0}]
    assert [m.content for m in first.final] == ["you win"]
    assert [m.content for m in second.final] == ["you took 2", "you lose"]


def test_one_policy_plays_all_whom_nobody_else_plays() -> None:
    everyone, bottom = Says("1"), Says("2")
    assert len(episode_of(everyone).trajectories["bottom"].turns) == 2
    episode_of(policy_map(everyone, {"bottom": bottom}))
    assert len(bottom.heard) == 1
    with pytest.raises(NotFoundError, match="no policy for agent 'bottom'"):
        episode_of({"top": everyone})


def test_a_bad_action_is_answered_to_the_one_who_moved() -> None:
    top = Says("nine", "1")
    episode = episode_of({"top": top, "bottom": Says("1")})
    assert top.heard[1][-1] == "user: Say 1 or 2."
    assert [turn.bad_action for turn in episode.trajectories["top"].turns][:2] == [True, False]


def recipe(**changes: Any) -> Any:
    return check_recipe({"suite": "shop/easy", "model": {"scratch": {}}, "filter": "any", **changes})


def test_every_side_is_trained_logged_and_replayed(tmp_path: Any) -> None:
    group = [episode_of({"top": Says("1"), "bottom": Says(word)}) for word in ("1", "2")]
    found = split_by_agent(build_parts(recipe()), [group], Cost())
    assert [(agent_group.number, agent_group.agent) for agent_group in found.usable] == [
        (0, "top"),
        (0, "bottom"),
    ]
    lengths = [len(e.trajectory.turns) for agent_group in found.training for e in agent_group]
    assert lengths == [2, 2, 2, 1]
    result = UpdateResult(found.training, [1.0] * 4, [[float(i)] * n for i, n in enumerate(lengths)])
    assert describe(found, result)["success"] == pytest.approx(0.5)
    with EpisodeLog(tmp_path / "log.jsonl") as log:
        log_groups(log, 0, found, result)
    records = list(LogReader(tmp_path / "log.jsonl"))
    assert [dict(r.advantages) for r in records] == [
        {"top": (0.0, 0.0), "bottom": (2.0, 2.0)},
        {"top": (1.0, 1.0), "bottom": (3.0,)},
    ]
    assert [r.update for r in records] == [1, 1], "the first update, as in metrics"
    assert replay(tmp_path / "log.jsonl").ok


def test_an_opponent_is_not_trained() -> None:
    group = [episode_of({"top": Says("1"), "bottom": Says(word)}) for word in ("1", "2")]
    found = split_by_agent(build_parts(recipe()), [group], Cost(), ["bottom"])
    assert [agent_group.agent for agent_group in found.agent_groups] == ["top"]
