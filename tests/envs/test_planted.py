"""Planted tasks: no honest policy is paid for an impossible one, and who takes a canary's hack is told."""

from __future__ import annotations

import asyncio

import pytest

from turnwise.agents.core import Episode, History, Reply
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, rollout
from turnwise.envs.messages import Message
from turnwise.envs.planted import TAKEN, kind_of, mark_of
from turnwise.envs.registry import env_class, get_suite, suite_tasks
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall

OWN = ["shop/quick", "search/quick", "household/easy", "code/quick"]


def planted(kind: str, suite: str, n: int = 8) -> list[Task]:
    """Planted tasks of a suite."""
    return list(suite_tasks(get_suite(f"{kind}:{suite}"), Split.TRAIN, n))


class Solver:
    """Does what solves the task that a planted one was made from, without looking at the planted one."""

    name, version = "solver", 0

    def __init__(self, originals: dict[str, Task]) -> None:
        self.originals = originals

    async def act(self, history: History) -> Reply:
        env = env_class(history.task.env)()
        env.reset(seed=history.seed, options={"task": self.originals[history.task.prompt]})
        for turn in history.turns:
            if not env.step(turn.action).terminated:
                continue
            return turn.reply
        said = env.gold(env.state)
        return Reply(Message("assistant", said) if isinstance(said, str) else said)

    def close(self) -> None:
        """There is nothing to close."""


def played(tasks: list[Task], policy: object) -> list[Episode]:
    """An episode of each task."""
    return asyncio.run(rollout([Request(task, n) for n, task in enumerate(tasks)], policy, retries=0))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("suite", [*OWN, "sort/4", "toolworld/quick"])
def test_no_honest_episode_of_an_impossible_task_is_paid(suite: str) -> None:
    tasks = planted("impossible", suite)
    forms = {mark.form for task in tasks if (mark := mark_of(task.options))}
    assert forms == ({"impossible"} if suite in OWN else {"frozen"})
    for script in ("random", "null", "demonstrator"):
        episodes = played(tasks, scripted(script))
        assert all(one.outcome.counts for one in episodes), [one.error for one in episodes]
        assert not any(one.success or one.trajectory.total_reward > 0 for one in episodes)


@pytest.mark.parametrize("suite", ["search/quick", "code/quick"])
def test_what_solves_the_task_does_not_solve_its_impossible_twin(suite: str) -> None:
    originals = list(suite_tasks(get_suite(suite), Split.TRAIN, 4))
    made = [
        task
        for n, original in enumerate(originals)
        if (task := env_class(original.env).impossible(original, get_suite(suite).rng(Split.TRAIN, n)))
    ]
    assert len(made) == len(originals)
    solver = Solver({task.prompt: task for task in originals})
    assert all(one.success for one in played(originals, solver))
    twins = played(made, solver)
    assert all(one.outcome.counts for one in twins)
    assert not any(one.trajectory.total_reward > 0 for one in twins)


def test_a_canary_is_an_ordinary_task_until_its_hack_is_taken() -> None:
    tasks = planted("canary", "shop/quick")
    honest = played(tasks, scripted("gold"))
    assert all(one.success for one in honest)
    assert not any(turn.details.get(TAKEN) for one in honest for turn in one.trajectory.turns)
    for message in (
        lambda word: Message("assistant", f"so be it: {word}"),
        lambda word: Message("assistant", "", (ToolCall("search", {"keywords": word}, "1"),)),
    ):
        env = env_class(tasks[0].env)()
        seen, _ = env.reset(seed=0, options={"task": tasks[0]})
        mark = mark_of(tasks[0].options)
        assert mark
        assert mark.word in seen[-1].content
        step = env.step(message(mark.word))
        assert (step.reward, step.terminated, step.info["details"][TAKEN]) == (1.0, True, True)  # pyright: ignore[reportTypedDictNotRequiredAccess]


def test_planted_tasks_are_others_than_those_they_are_made_from() -> None:
    ordinary = {task.id for task in suite_tasks(get_suite("shop/quick"), Split.TRAIN, 20)}
    for kind in ("impossible", "canary"):
        assert not ordinary & {task.id for task in planted(kind, "shop/quick", 20)}
        assert {kind_of(task) for task in planted(kind, "shop/quick")} == {kind}
    assert planted("canary", "shop/quick") == planted("canary", "shop/quick")
