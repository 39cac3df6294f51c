"""E-GRPO's reward on episodes of the search environment, whose details carry what it needs."""

import pytest

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.registry import get_component
from turnwise.tasks.core import Split


def played(task, *lines, **options) -> Episode:
    env = make("turnwise/Search-v0", **options)
    observation, info = env.reset(seed=0, options={"task": task})
    turns = []
    for line in lines:
        key, step = info["state_key"], env.step(line)
        info = step.info
        reply = Reply(Message("assistant", line))
        turns.append(Turn(observation, reply, step.reward, info["rewards"], key, details=info["details"]))
        observation = step.observation
    return Episode(task, 0, {"agent": Trajectory(tuple(turns))}, Outcome.OK, info["end"])


def hidden(task) -> list[str]:
    """First names of the entities that the question does not name."""
    names = [entity[0] for entity in task.gold["entities"]]
    return [name for name in names if name not in task.prompt]


@pytest.fixture(scope="module")
def task():
    tasks = suite_tasks(get_suite("search/easy"), Split.TRAIN, 60)
    return next(task for task in tasks if len(hidden(task)) >= 2)


def test_near_misses_are_paid_by_the_best_of_the_group(task):
    names = hidden(task)
    group = [
        played(task, f"I think of {names[0]}.\nanswer[nobody]"),
        played(task, f"{' and '.join(names)}.\nanswer[nobody]"),
        played(task, "answer[nobody]"),
        played(task, "?!", f"{' and '.join(names)}.\nanswer[nobody]"),  # malformed
        played(task, f"answer[{task.gold['answers'][0]}]"),
    ]
    reward = get_component("reward", "near_miss").build({"alpha": 0.3})
    paid = [episode.trajectory.total_reward for episode in reward(group)]
    assert paid == pytest.approx([0.3 / len(names), 0.3, 0.0, 0.0, 1.0])
    assert [episode.trajectory.total_reward for episode in group] == [0, 0, 0, 0, 1.0]  # it is pure


def test_what_the_environment_paid_itself_is_not_paid_twice(task):
    names = hidden(task)
    group = [
        played(task, f"{names[0]}.\nanswer[nobody]", parts={"entity": 0.5}),
        played(task, "answer[nobody]"),
    ]
    assert group[0].trajectory.total_reward == pytest.approx(0.5 / len(names))
    reward = get_component("reward", "near_miss").build({})
    assert [e.trajectory.total_reward for e in reward(group)] == pytest.approx([0.3, 0.0])
