"""The small exact processes as an environment, and a tabular policy in them: for tests of strategies and of help."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from turnwise.agents.core import Episode, History, Reply
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import env_entries, register
from turnwise.tasks.core import Json, Split, Task, derive_rng
from turnwise.trainers.lab.exact import Process
from turnwise.trainers.lab.processes import PROCESSES, lopsided

ENV = "turnwise-test/Process-v0"


class ProcessEnv(AgentEnv[tuple[int, int]]):
    """A process of trainers/lab/processes.py as an environment; its state is (state, turns left)."""

    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task(ENV, "?", {"process": "chain", "turn_limit": 9, "salt": rng.getrandbits(30)})

    def initial(self, task: Task) -> tuple[tuple[int, int], str]:
        return (0, named(task).horizon), "0"

    def transition(self, state: tuple[int, int], action: Message) -> Transition[tuple[int, int]]:
        branches = named(self.task).branches[state[0], int(action.content)]
        found = self.rng("branch").choices(branches, [b.probability for b in branches])[0]
        over = found.state is None or state[1] == 1
        end = None if not over else EndReason.FAILED if found.state is None else EndReason.TURN_LIMIT
        return Transition((found.state or 0, state[1] - 1), str(found.state), {"outcome": found.reward}, end)


def register_processes() -> None:
    """Make the environment known; again is nothing."""
    if ENV not in {entry.name for entry in env_entries()}:
        register(ENV, "process_worlds:ProcessEnv", about="decision processes, for tests")


NAMED = {process.name: process for process in PROCESSES}
CHANCES_SA = {name: lopsided(p).softmax(-1).tolist() for name, p in NAMED.items()}
"""The softmax policy ``lopsided``, as lists: it acts a hundred thousand times."""


def named(task: Task) -> Process:
    return NAMED[task.options["process"]]


def task_of(process: Process) -> Task:
    return Task(ENV, "?", {"process": process.name, "turn_limit": 9})


@dataclass
class Tabular:
    """The softmax policy ``lopsided``, with one token per turn."""

    process: Process
    name: str = "tabular"
    version: int = 0

    async def act(self, history: History) -> Reply:
        p_A = CHANCES_SA[self.process.name][history.env.state[0]]
        rng = derive_rng("act", history.seed, len(history.turns))
        action = rng.choices(range(len(p_A)), p_A)[0]
        history.token_ids.append(action)
        return Reply(Message("assistant", str(action)), (9,), (action,), (math.log(p_A[action]),))

    def close(self) -> None:
        pass


def steps(episode: Episode) -> list[tuple[int, int]]:
    """(state, action) of each turn; the state from what the policy was told."""
    return [(int(str(t.observation[-1].content)), int(t.action.content)) for t in episode.trajectory.turns]
