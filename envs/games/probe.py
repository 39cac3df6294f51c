"""Strategy of a policy at Kuhn poker, out of its action probabilities or out of its games.

A policy's exploitability (kuhn.py) is exact once its strategy is known. ``situations()`` gives the conversation in
which a policy decides at each of the twelve information sets, exactly as an episode of ``games/kuhn-self`` has it;
``counted()`` estimates the strategy from moves that were made, with their ``details["held"]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from turnwise.envs.games.env import GamesEnv
from turnwise.envs.games.kuhn import CARDS, OPTIONS, Knowledge, information_sets
from turnwise.envs.games.tasks import ENV
from turnwise.envs.messages import Message
from turnwise.tasks.core import Task


class Situation(NamedTuple):
    """Conversation that a player of Kuhn poker has had when it must move."""

    knowledge: Knowledge
    agent: str  # whose seat it is in the episode
    messages: tuple[Message, ...]
    options: tuple[str, str]  # the passive and the active move


def situations(text: Literal["compact", "full"] = "compact") -> list[Situation]:
    """The situation of each information set."""
    return [_situation(held, text) for held in information_sets()]


def strategy_of(
    active: Callable[[Situation], float], text: Literal["compact", "full"] = "compact"
) -> dict[Knowledge, float]:
    """The strategy of a policy, given the probability of its active move in a situation."""
    return {situation.knowledge: active(situation) for situation in situations(text)}


def counted(moves: Iterable[tuple[str, str]], prior: float = 1.0) -> dict[Knowledge, float]:
    """The strategy that moves show: pairs of ``details["held"]`` and what was done; what is no move is left out.

    ``prior`` is how many moves of either kind are added to each information set, so that one that was never seen
    counts as even.
    """
    counts = {held: [prior, prior] for held in information_sets()}
    for held, said in moves:
        knowledge = Knowledge.parse(held)
        passive, active = OPTIONS[knowledge.history]
        words = said.lower().split()
        if (passive in words) != (active in words):
            counts[knowledge][active in words] += 1
    return {held: active / (passive + active) for held, (passive, active) in counts.items()}


def _situation(held: Knowledge, text: str) -> Situation:
    other = next(card for card in range(len(CARDS)) if card != held.card)  # unseen, so any will do
    deal = [held.card, other] if held.seat == 0 else [other, held.card]
    options = {
        "game": "kuhn", "text": text, "commands": "hidden", "turn_limit": 6, "deals": [deal], "seat": 0,
        "match": 0, "two_sided": True,
    }  # fmt: skip
    prompt = "Win chips." if text == "full" else "win chips ."
    env = GamesEnv()
    observation, _ = env.reset(seed=0, options={"task": Task(ENV, prompt, options)})
    heard: dict[str, list[Message]] = {name: [] for name in env.agents}
    heard[env.agent].extend(observation)
    for move in held.history:
        heard[env.agent].append(Message("assistant", move))
        step = env.step(move)
        heard[env.agent].extend(step.observation)
    return Situation(held, env.agent, tuple(heard[env.agent]), OPTIONS[held.history])
