"""An environment of your own: a first state, and what an action changes. Then it is checked, and played.

Run it: ``python examples/own_environment.py``; test it: ``turnwise check examples/own_environment.py``
"""

from random import Random
from typing import Any, NamedTuple

import turnwise
from turnwise import AgentEnv, EndReason, Message, Messages, Split, Suite, Task, ToolError, Transition

WORDS = ("cable", "cabin", "camel", "candy", "canoe", "cargo", "carol", "carpet", "castle")


class State(NamedTuple):
    """Immutable, so that a fork is a reference."""

    word: str
    shown: int = 1  # letters that are known


class Spelling(AgentEnv[State]):
    """Guess a word whose letters are uncovered one by one."""

    system, turn_limit, blocking = "Guess the word. A wrong guess uncovers one more letter.", 6, False
    max_trivial_score = 0.6

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Any) -> Task:
        word = rng.choice(WORDS[list(Split).index(split) :: 3])  # splits share no word
        return Task("examples/Spelling-v0", "What is the word?", {"word": word})

    def initial(self, task: Task) -> tuple[State, str | Messages]:
        return (state := State(task.options["word"])), f"{task.prompt} {self.visible(state)}"

    def transition(self, state: State, action: Message) -> Transition[State]:
        guess = action.content.strip().lower()
        if not guess.isalpha():
            raise ToolError("Write one word.")  # becomes the observation, and the episode goes on
        if guess == state.word:
            return Transition(state, "Yes!", {"outcome": 1.0}, EndReason.SOLVED)
        after = state._replace(shown=min(state.shown + 1, len(state.word)))
        return Transition(after, f"No. {self.visible(after)}", {"outcome": 0.0})

    def gold(self, state: State) -> str:
        return state.word

    @staticmethod
    def visible(state: State) -> str:
        return state.word[: state.shown] + "_" * (len(state.word) - state.shown)


turnwise.register("examples/Spelling-v0", f"{__file__}:Spelling", "Guess a word, letter by letter.")
turnwise.register_suite(Suite("spelling", "examples/Spelling-v0", "Nine words."))

if __name__ == "__main__":
    for split in Split:
        gold = turnwise.evaluate("spelling", "scripted:gold", split=split, episodes=9)
        print(f"{split.value}: gold {gold.success:.0%} in {gold.turns:.1f} turns")
