"""A tiny environment that pays even a random model, and training on it as a program of its own.

``python letters.py RECIPE OUT [--resume]`` is what tests kill. LETTERS_PAUSE, in seconds per episode, gives them
the time to do it.
"""

from __future__ import annotations

import os
import sys
import time
from random import Random
from typing import NamedTuple

from turnwise import AgentEnv, EndReason, Message, Split, Suite, Task, Transition, register, register_suite

EARLY = frozenset("abcdefghijklm")
RECIPE = """\
suite: test/letters
seed: 3
device: cpu
model: {scratch: {layers: 1, width: 64, heads: 2, init: random, vocab_size: 300, context: 128, text_episodes: 10}}
engine: {kind: torch, max_sequences: 16}
sampling: {max_tokens: 6, tools: none}
warm_start: {episodes: 16, batch_size: 8}
rollout: {groups: 3, group_size: 4, concurrency: 16}
loss: [clip, {name: entropy, weight: 0.001}]
optimizer: {learning_rate: 3.0e-3, minibatches: 2}
updates: 5
evaluate: {every: 2, dev: 6, test: 6}
checkpoint: {every: 2}
"""


class State(NamedTuple):
    turn: int = 0
    early: float = 0.0


class Letters(AgentEnv[State]):
    """Three turns; each pays the share of its characters from the first half of the alphabet."""

    system = "Say letters."
    turn_limit = 4
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        number = 3 * rng.randrange(10**6) + list(Split).index(split)
        return Task("test/Letters-v0", f"Early letters, please ({number}).")

    def initial(self, task: Task) -> tuple[State, str]:
        time.sleep(float(os.environ.get("LETTERS_PAUSE", "0")))
        return State(), task.prompt

    def transition(self, state: State, action: Message) -> Transition[State]:
        said = action.content
        share = sum(letter in EARLY for letter in said) / max(1, len(said))
        after = State(state.turn + 1, state.early + share / 3)
        end = None
        if after.turn == 3 or not said:
            end = EndReason.SOLVED if after.early > 0.3 else EndReason.FAILED
        return Transition(after, f"{share:.1f}", {"outcome": share / 3}, end)

    def gold(self, state: State) -> str:
        return "abcabc"


def register_letters() -> None:
    """Make ``test/letters`` known to this process."""
    register("test/Letters-v0", "letters:Letters", "Say early letters.")
    register_suite(Suite("test/letters", "test/Letters-v0", "Any tasks."))


if __name__ == "__main__":
    from turnwise.cli.app import run as run_verb

    register_letters()
    recipe, out, *rest = sys.argv[1:]
    sys.exit(run_verb(["train", recipe, "--out", out, *rest, "--json"]))
