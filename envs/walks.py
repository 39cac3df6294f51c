"""Play an environment with a script and write down everything that happened, for the checker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from turnwise.envs.core import AgentEnv, Snapshot, Step
from turnwise.envs.floors import FLOORS, SCRIPTS, moment
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class, suite_task, suites
from turnwise.tasks.core import Json, Split, Suite, Task, digest


class Walk(NamedTuple):
    """One episode. Lists have one entry per turn; ``keys`` and ``moments`` also one for the end."""

    task: Task
    seed: int
    first: Messages
    actions: list[Message]
    steps: list[Step]
    keys: list[str]
    moments: list[Snapshot[Any]]
    movers: list[str]
    agent: str  # the one that is evaluated

    @property
    def score(self) -> float:
        """The first agent's."""
        earned = [
            step.info.get("rewards", {})
            if mover == self.agent
            else step.info.get("others", {}).get(self.agent, {})
            for mover, step in zip(self.movers, self.steps, strict=True)
        ]
        return sum(rewards.get("outcome", 0.0) for rewards in earned)

    @property
    def success(self) -> bool:
        return bool(self.steps) and self.steps[-1].info.get("end") == "solved"


def walk(env: AgentEnv[Any], task: Task, script: str, *, seed: int = 0) -> Walk:
    """Play one episode with a script of :mod:`turnwise.envs.floors`."""
    observation, info = env.reset(seed=seed, options={"task": task})
    walked = Walk(task, seed, observation, [], [], [info["state_key"]], [env.snapshot()], [], env.agents[0])
    ended = False
    while not ended:
        said = SCRIPTS[script](moment(env, observation, script))
        action = Message("assistant", said) if isinstance(said, str) else said
        walked.movers.append(env.agent)
        step = env.step(action)
        walked.actions.append(action)
        walked.steps.append(step)
        walked.keys.append(step.info.get("state_key", ""))
        walked.moments.append(env.snapshot())
        observation, ended = step.observation, step.terminated or step.truncated
    return walked


def environment_suites(name: str) -> list[Suite]:
    """The suites of an environment, or one with the generator's own defaults if it has none."""
    own = [suite for suite in suites() if suite.env == name]
    return own or [Suite(name, name, "the generator's defaults")]


def sample_tasks(name: str, split: Split, n: int) -> Iterator[Task]:
    """``n`` tasks of an environment, taken from its suites in turn."""
    own = environment_suites(name)
    for index in range(n):
        yield suite_task(own[index % len(own)], split, index // len(own))


def step_json(step: Step) -> Json:
    """Everything a step says, as JSON."""
    info = dict(step.info)
    if "told" in step.info:
        info["told"] = {name: messages.to_json() for name, messages in step.info["told"].items()}
    return [step.observation.to_json(), step.reward, step.terminated, step.truncated, info]


def transcript(walked: Walk) -> Json:
    """A walk as JSON: equal transcripts, equal episodes."""
    actions = Messages(walked.actions).to_json()
    steps = [step_json(step) for step in walked.steps]
    return [walked.task.to_json(), walked.first.to_json(), actions, steps, walked.keys]


def transcripts(name: str, n: int) -> list[str]:
    """The digests of gold and random episodes on ``n`` training tasks: one line per episode.

    The checker compares what two processes say here.
    """
    env = env_class(name)()
    lines: list[str] = []
    try:
        for index, task in enumerate(sample_tasks(name, Split.TRAIN, n)):
            for script in ("gold", *FLOORS):
                lines.append(f"{script} {index} {digest(transcript(walk(env, task, script, seed=index)))}")
    finally:
        env.close()
    return lines
