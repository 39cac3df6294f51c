"""Episodes of two hundred turns that a small model plays through compactions of its context.

``python long_letters.py RECIPE OUT [--resume]`` trains on them. Where LONG_HOLD names a file that is there, an episode stops at
its 150th turn and says so in the file ``held`` beside it, so that a test can kill it there.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from random import Random

from letters import EARLY, Letters, State

from turnwise import EndReason, Message, Split, Suite, Task, Transition, register, register_suite

TURNS = 200
RECIPE = """\
suite: test/long-letters
seed: 3
device: cpu
model: {scratch: {layers: 1, width: 32, heads: 1, init: random, vocab_size: 300, context: 560, text_episodes: 1}}
engine: {kind: torch, max_sequences: 4}
sampling: {max_tokens: 3, tools: none, context: {name: summary, tokens: 470}}
warm_start: {episodes: 2, batch_size: 2}
rollout: {groups: 1, group_size: 2, concurrency: 4}
optimizer: {learning_rate: 3.0e-3}
credit: return_to_go
filter: any
updates: 2
evaluate: {every: 2, dev: 1, test: 1}
checkpoint: {every: 1, keep: 9}
"""


class LongLetters(Letters):
    """Two hundred turns in training, four elsewhere; each pays its share of early letters."""

    turn_limit = TURNS + 1

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        number = 3 * rng.randrange(10**6) + list(Split).index(split)
        turns = TURNS if split is Split.TRAIN else 4
        return Task("test/LongLetters-v0", f"Early letters, please ({number}).", {"turns": turns})

    def transition(self, state: State, action: Message) -> Transition[State]:
        turns = self.task.options["turns"]
        hold = Path(os.environ.get("LONG_HOLD", "/nonexistent"))
        if state.turn == 150 and hold.exists():
            hold.with_name("held").touch()
            time.sleep(600)
        said = action.content
        share = sum(letter in EARLY for letter in said) / max(1, len(said))
        after = State(state.turn + 1, state.early + share / turns)
        end = (EndReason.SOLVED if after.early > 0.3 else EndReason.FAILED) if after.turn == turns else None
        return Transition(after, f"{share:.1f}", {"outcome": share / turns}, end)


def register_long_letters() -> None:
    """Make ``test/long-letters`` known to this process."""
    register("test/LongLetters-v0", "long_letters:LongLetters", "Say early letters for long.")
    register_suite(Suite("test/long-letters", "test/LongLetters-v0", "Any tasks."))


if __name__ == "__main__":
    from turnwise.cli.app import run as run_verb

    register_long_letters()
    recipe, out, *rest = sys.argv[1:]
    sys.exit(run_verb(["train", recipe, "--out", out, *rest, "--json"]))
