"""Figures on searches: what they took beside the episodes that they chose, and what they looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from turnwise.agents.core import Episode, Usage
from turnwise.tasks.core import Json


class SearchFigures(NamedTuple):
    """The searches that chose the episodes of an evaluation; means are of an episode.

    Attributes:
        episodes: that were chosen by a search.
        forks: states of the test world were gone back to, which a deployment cannot do.
        oracle: the environment's verdict was looked at, which no deployment has.
        budget: tokens that policy and scorer might sample for an episode.
        tokens, scorer_tokens: mean tokens that the policy and the scorer sampled.
        most_tokens: the most that were sampled for an episode, both together.
        words: tokens are words, because the policy tells none.
        nodes, tries, steps, replayed: mean states reached, tries that ended, steps of the environment, and steps that had to be
            played once more to go back.
    """

    episodes: int = 0
    forks: bool = False
    oracle: bool = False
    budget: float = 0.0
    tokens: float = 0.0
    scorer_tokens: float = 0.0
    most_tokens: float = 0.0
    words: bool = False
    nodes: float = 0.0
    tries: float = 0.0
    steps: float = 0.0
    replayed: float = 0.0

    @property
    def label(self) -> str:
        """The line that a reader needs before the figures; "" without a search.

        >>> SearchFigures(3, forks=True).label
        'forks the test world'
        """
        if not self.episodes:
            return ""
        kind = "forks the test world" if self.forks else "chooses among whole episodes"
        return f"{kind}, oracle" if self.oracle else kind

    def to_json(self) -> dict[str, Json] | None:
        """With the label; None without a search."""
        return {**self._asdict(), "label": self.label} if self.episodes else None

    @classmethod
    def from_json(cls, data: Mapping[str, Json] | None) -> SearchFigures:
        """Read what :meth:`to_json` wrote."""
        return cls(**{name: data[name] for name in cls._fields if name in data}) if data else cls()


NO_SEARCH = SearchFigures()


def search_figures(episodes: Iterable[Episode]) -> SearchFigures:
    """Gather what the episodes' metrics say about the searches that chose them."""
    found = [episode.metrics for episode in episodes if "search_tokens" in episode.metrics]
    if not found:
        return NO_SEARCH

    def mean(name: str) -> float:
        return sum(one.get(f"search_{name}", 0.0) for one in found) / len(found)

    def any_of(name: str) -> bool:
        return any(one.get(f"search_{name}") for one in found)

    spent = [one["search_tokens"] + one.get("search_scorer_tokens", 0.0) for one in found]
    return SearchFigures(
        episodes=len(found),
        forks=any_of("forks"),
        oracle=any_of("oracle"),
        budget=max(one.get("search_budget", 0.0) for one in found),
        tokens=mean("tokens"),
        scorer_tokens=mean("scorer_tokens"),
        most_tokens=max(spent),
        words=any_of("words"),
        nodes=mean("nodes"),
        tries=mean("episodes"),
        steps=mean("steps"),
        replayed=mean("replayed"),
    )


def searched_usage(metrics: Mapping[str, float]) -> Usage | None:
    """Usage of all tries of a searched episode, its scorer's replies among them; None of an episode that was just played."""
    if "search_tokens" not in metrics:
        return None
    prompt = metrics.get("search_prompt_tokens")
    return Usage(
        prompt=None if prompt is None else int(prompt),
        completion=int(metrics["search_tokens"] + metrics.get("search_scorer_tokens", 0.0)),
        cost=metrics.get("search_cost"),
    )
