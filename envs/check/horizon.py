"""How far back a solution must remember: ``python -m turnwise.envs.check.horizon > docs/horizon.md``.

An environment says which lines of its observations the next action of its solution rests on (``AgentEnv.needs``). For each
such action it is counted how long ago the last of these lines was shown that is oldest: in turns, and in tokens of all text since then. A
scripted agent that remembers a certain number of tokens acts as the solution does where it has all of these lines, and blindly elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from turnwise.envs.check.walks import walk
from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import make, suite_tasks, suites
from turnwise.tasks.core import Split, Suite, Task, derive_rng

TASKS = 20
MEMORIES = (250, 500, 1000, 2000, 4000, 8000, 16000)
"""Tokens that the scripted agent remembers."""
FAR = {30: (15, 1000), 100: (0, 4000), 200: (0, 4000)}
"""By the length of a suite's episodes: turns and tokens beyond which a needed line counts as far back."""
_PIECE = re.compile(r"\w+|[^\w\s]")


class Age(NamedTuple):
    """Turns and tokens since the oldest of the lines was last shown that an action rests on."""

    turns: int
    tokens: int


class Horizon(NamedTuple):
    """Findings about one task, played by its solution.

    Attributes:
        ages: of its actions that rest on lines which were shown after the beginning; None: on others alone.
        unshown: actions that rest on a line which was not shown before.
        padding: turns that changed no state and whose observation no later action rests on.
        tokens: of all text.
    """

    ages: tuple[Age | None, ...]
    unshown: int
    padding: int
    tokens: int

    def far(self, turns: int, tokens: int) -> float:
        """The share of all actions that rest on something this far back."""
        found = [age for age in self.ages if age and age.turns >= turns and age.tokens >= tokens]
        return len(found) / len(self.ages)


def count(text: str) -> int:
    """Count words, numbers and signs: what tokenisers of any size have about as many tokens for.

    >>> count("Order 3: put ball 12 in drawer 2.")
    10
    """
    return len(_PIECE.findall(text))


class _ToldLines:
    """The text of an episode so far, line by line, with the turn and the tokens up to its end."""

    def __init__(self, head: Messages) -> None:
        self.head = _lines(head)
        self.lines: list[tuple[str, int, int]] = []
        self.tokens = 0

    def hear(self, turn: int, action: Message | str, observation: Messages) -> None:
        self.tokens += count(str(action))
        for line in _lines(observation):
            self.tokens += count(line)
            self.lines.append((line, turn, self.tokens))

    def since(self, line: str, turn: int) -> Age | None:
        """The turn that last showed a line after the beginning; None: it stands there."""
        if any(line in one for one in self.head):
            return None
        for one, shown, tokens in reversed(self.lines):
            if line in one:
                return Age(turn - shown, self.tokens - tokens)
        raise LookupError(line)


def _lines(messages: Messages) -> list[str]:
    return [line for message in messages for line in message.content.splitlines()]


def horizon(env: AgentEnv[Any], task: Task, seed: int = 0) -> Horizon:
    """The turns that the solution of a task must remember back."""
    walked = walk(env, task, "gold", seed=seed)
    told, ages, unshown = _ToldLines(walked.first), list[Age | None](), 0
    used = set[int]()  # turns whose observation was needed
    for turn, (action, step) in enumerate(zip(walked.actions, walked.steps, strict=True)):
        env.restore(walked.moments[turn])
        oldest: Age | None = None
        for line in env.needs(env.state):
            try:
                age = told.since(line, turn)
            except LookupError:
                unshown += 1
                continue
            if age is not None:
                used.add(turn - age.turns)
                oldest = max(oldest or age, age)
        ages.append(oldest)
        told.hear(turn, action, step.observation)
    padding = sum(
        walked.keys[turn] == walked.keys[turn + 1] and turn not in used for turn in range(len(walked.steps))
    )
    return Horizon(tuple(ages), unshown, padding, told.tokens)


def remembers(env: AgentEnv[Any], task: Task, tokens: int, seed: int = 0) -> bool:
    """Play a task with a memory of so many tokens; say whether it was solved."""
    first, _ = env.reset(seed=seed, options={"task": task})
    told, turn = _ToldLines(first), 0
    while True:
        rng = derive_rng("forgetful", task.id, seed, turn)
        action = (
            env.gold(env.state) if _knows(told, env, turn, tokens) else rng.choice(env.admissible(env.state))
        )
        step = env.step(action)
        if step.terminated or step.truncated:
            return step.info.get("end") == "solved"
        told.hear(turn, action, step.observation)
        turn += 1


def _knows(told: _ToldLines, env: AgentEnv[Any], turn: int, tokens: int) -> bool:
    try:
        ages = [told.since(line, turn) for line in env.needs(env.state)]
    except LookupError:
        return False
    return all(age is None or age.tokens <= tokens for age in ages)


class SuiteHorizon(NamedTuple):
    """Findings about a suite: the solution's turns and tokens, shares far back, padding, and who solves it with which memory."""

    suite: str
    turns: float
    tokens: float
    far: float
    unshown: int
    padding: float
    solved: tuple[float, ...]  # by MEMORIES

    def row(self) -> str:
        """A row of the page's table."""
        memories = " | ".join(f"{share:.2f}" for share in self.solved)
        return f"| {self.suite} | {self.turns:.0f} | {self.tokens:,.0f} | {self.far:.2f} | {self.padding:.2f} | {memories} |"


def horizon_suites() -> list[Suite]:
    """The suites that are named by how many turns their episodes take, shortest first."""
    named = [suite for suite in suites() if "/horizon-" in suite.name]
    return sorted(named, key=lambda suite: (suite.name.partition("/")[0], length(suite)))


def length(suite: Suite) -> int:
    """The turns in a suite's name."""
    return int(suite.name.rpartition("-")[2])


def measure(suite: Suite, tasks: int = TASKS, memories: Sequence[int] = MEMORIES) -> SuiteHorizon:
    """Measure tasks of a suite's test split."""
    env, drawn = make(suite.env), list(suite_tasks(suite, Split.TEST, tasks))
    found = [horizon(env, task) for task in drawn]
    far = FAR[length(suite)]
    solved = tuple(sum(remembers(env, task, most) for task in drawn) / tasks for most in memories)
    env.close()
    turns = sum(len(one.ages) for one in found)
    return SuiteHorizon(
        suite.name,
        turns / tasks,
        sum(one.tokens for one in found) / tasks,
        sum(one.far(*far) * len(one.ages) for one in found) / turns,
        sum(one.unshown for one in found),
        sum(one.padding for one in found) / turns,
        solved,
    )


def report() -> str:
    """The page."""
    memories = " | ".join(f"{tokens:,}" for tokens in MEMORIES)
    table = "\n".join(measure(suite).row() for suite in horizon_suites())
    return f"""# Suites with horizon

This page is written by `python -m turnwise.envs.check.horizon`.

In these suites a solution needs what was told long ago, and told once: earlier orders of a day in a household, a laboratory or a workshop, earlier answers of an
inquiry in a library ([worlds](worlds.md)). For every action of the scripted solution it is known which
lines of earlier observations it rests on; what stands beside the task is left out, since every context shows it. *Far back* is the share
of all its actions whose oldest needed line was last shown at least 15 turns and 1,000 tokens ago (`horizon-30`), or 4,000 tokens ago (`horizon-100`
and `-200`). *Padding* is the share of its turns that change no state and whose observation no later action rests on. Tokens are words,
numbers and signs of observations and actions. Means over {TASKS} tasks of the test split.

The other columns are the success of a scripted agent that remembers so many tokens beside the task: it acts as the solution does where it
has every line that the action rests on, and at random elsewhere.

| suite | turns | tokens | far back | padding | {memories} |
|---|---|---|---|---|{"---|" * len(MEMORIES)}
{table}
"""


if __name__ == "__main__":
    print(report(), end="")
