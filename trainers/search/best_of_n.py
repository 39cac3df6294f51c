"""Best of n: whole episodes, of which a scorer likes one best."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher


@component("search", "best_of_n", needs=("scorer",))
async def best_of_n(searcher: Searcher, *, n: int = 8) -> None:
    """Plays up to n whole episodes and keeps the one that the scorer likes best; the first wins ties.

    The usual form: argmax_i s(y_i) over y_1 … y_n, as far as the budget goes. Nothing is gone back to, so that it can be
    had wherever the task can be tried again.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("best_of_n:n=3", budget=1000, scorer="votes")
    >>> e.metrics["search_episodes"], e.metrics["search_forked"]
    (3.0, 0.0)
    """
    await searcher.offer(searcher.first)
    for number in range(1, n):
        node = await searcher.again(number)
        if node is not None:
            await searcher.offer(node)
