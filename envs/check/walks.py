"""Play an environment with a script and write down everything that happened, for the checker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, ParamSpec, TypeVar

from turnwise.envs.baselines import SCRIPTS, TRIVIAL_BASELINES, Script, moment
from turnwise.envs.core import AgentEnv, Snapshot, Step
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class, environment_suites, suite_task
from turnwise.tasks.core import Json, Split, Suite, Task, digest
from turnwise.watchdog import limited_or_fatal

Args = ParamSpec("Args")
Result = TypeVar("Result")

GIVEN = "the action "
"""Beginning of the note on an error that says which action it was the answer to."""
CALL_S, BLOCKING_S = 60.0, 900.0
"""Most seconds of an environment's call: with short steps, and where it may wait for a world."""


class Walk(NamedTuple):
    """One episode. Lists have one entry per turn; ``keys`` and ``moments`` also one for the end."""

    task: Task
    seed: int
    first: Messages
    actions: list[Message]
    steps: list[Step]
    keys: list[str]
    moments: list[Snapshot[Any]]
    actors: list[str]
    agent: str  # the one that is evaluated

    @property
    def score(self) -> float:
        """The first agent's."""
        earned = [
            step.info.get("rewards", {})
            if actor == self.agent
            else step.info.get("rewards_to", {}).get(self.agent, {})
            for actor, step in zip(self.actors, self.steps, strict=True)
        ]
        return sum(rewards.get("outcome", 0.0) for rewards in earned)

    @property
    def success(self) -> bool:
        return bool(self.steps) and self.steps[-1].info.get("end") == "solved"


class SuiteTasks:
    """The tasks of a suite, each made once for all agents that play it: some families search long for one."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self._made: dict[tuple[Split, int], Task] = {}

    def task(self, split: Split, index: int) -> Task:
        if (split, index) not in self._made:
            self._made[split, index] = suite_task(self.suite, split, index)
        return self._made[split, index]

    def changed(self) -> list[str]:
        """Name the tasks that are no longer what was made: a group of episodes shares its task."""
        return [
            f"task {index} of {split}"
            for (split, index), task in self._made.items()
            if digest(task.env, task.prompt, dict(task.options), task.gold) != task.id
        ]


def in_time(
    env: AgentEnv[Any], what: str, call: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
) -> Result:
    """Call an environment with a deadline that depends on whether it blocks.

    Raises:
        DeadlineError: it hangs. (Where it cannot be interrupted, the process ends and says why.)
    """
    return limited_or_fatal(what, BLOCKING_S if env.blocking else CALL_S, call, *args, **kwargs)


def walk(
    env: AgentEnv[Any],
    task: Task,
    script: str,
    *,
    seed: int = 0,
    play: Script | None = None,
    others: Script | None = None,
) -> Walk:
    """Play one episode with a script of :mod:`turnwise.envs.baselines`, or with ``play``, whose name ``script`` is.

    It plays all agents, or the first alone where ``others`` plays the others.

    Raises:
        DeadlineError: a call of the environment hangs.
    """
    observation, info = in_time(env, f"reset() of {task.env}", env.reset, seed=seed, options={"task": task})
    walked = Walk(task, seed, observation, [], [], [info["state_key"]], [env.snapshot()], [], env.agents[0])
    ended, play = False, play or SCRIPTS[script]
    while not ended:
        now = moment(env, observation, script)
        player = play if others is None or env.agent == walked.agent else others
        said = in_time(env, f"the {script} agent of {task.env}", player, now)
        action = Message("assistant", said) if isinstance(said, str) else said
        walked.actors.append(env.agent)
        try:
            step = in_time(env, f"step() of {task.env}", env.step, action)
        except Exception as error:
            error.add_note(f"{GIVEN}{str(action)[:200]!r}")  # which action it was, for the report
            raise
        walked.actions.append(action)
        walked.steps.append(step)
        walked.keys.append(step.info.get("state_key", ""))
        walked.moments.append(env.snapshot())
        observation, ended = step.observation, step.terminated or step.truncated
    return walked


def sample_tasks(name: str, split: Split, n: int) -> Iterator[Task]:
    """``n`` tasks of an environment, taken from its suites in turn."""
    own = environment_suites(name)
    for index in range(n):
        yield suite_task(own[index % len(own)], split, index // len(own))


def step_json(step: Step) -> Json:
    """Everything a step says, as JSON."""
    info = dict(step.info)
    if "messages_to" in step.info:
        info["messages_to"] = {
            name: messages.to_json() for name, messages in step.info["messages_to"].items()
        }
    return [step.observation.to_json(), step.reward, step.terminated, step.truncated, info]


def transcript(walked: Walk) -> Json:
    """A walk as JSON: equal transcripts, equal episodes."""
    actions = Messages(walked.actions).to_json()
    steps = [step_json(step) for step in walked.steps]
    return [walked.task.to_json(), walked.first.to_json(), actions, steps, walked.keys]


def transcripts(name: str, n: int) -> list[str]:
    """The digests of the best known and random episodes on ``n`` training tasks: one line per episode.

    The checker compares what two processes say here.
    """
    env = env_class(environment_suites(name)[0].env)()
    lines: list[str] = []
    try:
        for index, task in enumerate(sample_tasks(name, Split.TRAIN, n)):
            for script in (*(() if env.gold_varies else ("best_known", "astray")), *TRIVIAL_BASELINES):
                lines.append(f"{script} {index} {digest(transcript(walk(env, task, script, seed=index)))}")
    finally:
        env.close()
    return lines
