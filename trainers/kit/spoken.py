"""Actions as texts that are equal where the actions are: for votes, and for comparing answers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from turnwise.agents.core import Episode
from turnwise.envs.messages import Message


def said(episode: Episode) -> str:
    """The last action in a form in which equal ones are equal texts; empty where there is none.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> said(episode([1]))
    '["!", []]'
    """
    turns = episode.trajectory.turns
    if not turns:
        return ""
    return spoken(turns[-1].action)


def spoken(message: Message) -> str:
    """An action as a text: its words, and its tools with their arguments, but for case and white space."""
    calls = [(call.name, dict(call.arguments)) for call in message.tool_calls]
    return " ".join(json.dumps([" ".join(message.content.split()), calls], sort_keys=True).lower().split())


def reranked(answers: Sequence[str], scores: Sequence[float]) -> int:
    """The place of the best score; of equal ones the first that gives the answer which most of all runs give.

    >>> "AAABB"[reranked("AAABB", [1, 0, 0, 1, 1])]  # two of the three best say B, three of all five say A
    'A'
    """
    best = max(scores)
    return max(
        (i for i, score in enumerate(scores) if score == best), key=lambda i: [*answers].count(answers[i])
    )
