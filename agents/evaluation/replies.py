"""Figures on the replies of an evaluation: cut, refused, withheld; and what they took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from turnwise.agents.core import Episode, Usage
from turnwise.agents.evaluation.searched import searched_usage
from turnwise.fault import FaultCause

MOST = 0.5
"""Above this share of the replies a cause is told before the figures, which are then of it and not of the policy."""
_WORDS = {
    FaultCause.CUT_BY_LIMIT: "cut by max_tokens",
    FaultCause.THOUGHTS_ATE_BUDGET: "thoughts took all of max_tokens",
    FaultCause.REFUSED: "refused by the model",
    FaultCause.CONTENT_FILTERED: "withheld by the provider's filter",
    FaultCause.CONTEXT_FULL: "context full",
}
_BY_A_LIMIT = (FaultCause.CUT_BY_LIMIT, FaultCause.THOUGHTS_ATE_BUDGET)


class ReplyFigures(NamedTuple):
    """The replies of the agent that is evaluated.

    Attributes:
        replies: how many, those that ended their episode without a turn among them.
        causes: how many of them came to what, by the names of :class:`turnwise.fault.FaultCause`.
        usage: what all agents' replies took, as far as their servers tell; sampled tokens otherwise.
    """

    replies: int = 0
    causes: Mapping[str, int] = {}
    usage: Usage = Usage()


NO_REPLIES = ReplyFigures()


def reply_figures(episodes: Iterable[Episode]) -> ReplyFigures:
    """Gather what is said about the replies of these episodes."""
    causes, replies, usage = Counter[str](), 0, Usage()
    for episode in episodes:
        said = [turn.reply for turn in episode.trajectory.turns]
        found = [*(reply.cause for reply in said), episode.cause]
        replies += len(said) + (episode.cause is not None)
        causes.update(cause.value for cause in found if cause is not None)
        usage |= usage_of(episode)
    return ReplyFigures(replies, dict(causes.most_common()), usage)


def usage_of(episode: Episode) -> Usage:
    """Add up the tokens and the cost of an episode's replies; where it was searched for, of all that were tried."""
    if (searched := searched_usage(episode.metrics)) is not None:
        return searched
    total = Usage()
    for trajectory in episode.trajectories.values():
        for turn in trajectory.turns:
            told = turn.reply.served.usage
            if told.completion is None and turn.reply.action_ids:
                told = told._replace(completion=len(turn.reply.action_ids))
            total |= told
    return total


def cause_lines(figures: ReplyFigures) -> list[str]:
    """The causes in words, the most frequent first.

    >>> cause_lines(ReplyFigures(240, {"cut_by_limit": 240}))
    ['cut by max_tokens: 240 of 240 replies']
    """
    return [
        f"{_WORDS.get(FaultCause(name), name)}: {number} of {figures.replies} replies"
        for name, number in figures.causes.items()
    ]


def headline(figures: ReplyFigures) -> str:
    """Write the sentence to be read before the figures, where most replies are not what the policy would have said; ""
    where they are."""
    cut = sum(figures.causes.get(cause.value, 0) for cause in _BY_A_LIMIT)
    named = sum(figures.causes.values()) - figures.causes.get(FaultCause.CONTEXT_FULL.value, 0)
    if not figures.replies or named <= MOST * figures.replies:
        return ""
    lines = "; ".join(cause_lines(figures))
    remedy = " Allow longer replies (--max-tokens)." if cut > MOST * figures.replies else ""
    return f"The figures are not the policy's: {lines}.{remedy}"
