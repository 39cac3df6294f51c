"""The search that `turnwise eval` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnwise.errors import TurnwiseError

if TYPE_CHECKING:
    from turnwise.agents.rollout_tasks import EpisodeSearch


def search_of(spec: str, budget: int, scorer: str) -> EpisodeSearch | None:
    """The search that `--search`, `--budget` and `--scorer` ask for; None for plain play.

    Raises:
        TurnwiseError: one is missing, or they do not go together.
    """
    if not spec:
        if budget or scorer:
            raise TurnwiseError(
                f"{'--budget' if budget else '--scorer'} is of a search, and none is named.",
                "Name one with --search; `turnwise list search` shows all.",
            )
        return None
    if not budget:
        raise TurnwiseError(
            f"How many tokens the search {spec!r} may sample for an episode is not said.",
            "Say it with --budget.",
        )
    from turnwise.trainers.search.run import make_search

    return make_search(spec, budget=budget, scorer=scorer)
