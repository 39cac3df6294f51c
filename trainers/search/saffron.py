"""Saffron: one call scores all next actions, and the best few of them go on."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.kit.spoken import spoken
from turnwise.trainers.search.beam import beam_search
from turnwise.trainers.search.core import Searcher, SearchNode

_MASKED = -1e9


def best_allowed(rewards: Sequence[float], mask: Sequence[int], budget: int) -> list[int]:
    """The places of the best ``budget`` rewards among those that the mask allows, the best first.

    >>> best_allowed([0.2, 0.9, 0.5], [1, 0, 1], 1)
    [2]
    """
    allowed = [i for i, on in enumerate(mask) if on]
    return sorted(allowed, key=lambda i: -rewards[i])[:budget]


def first_of_equal(actions: Sequence[str]) -> list[int]:
    """1 for each action that no earlier one equals.

    >>> first_of_equal(["look", "go", "look"])
    [1, 1, 0]
    """
    return [int(action not in actions[:i]) for i, action in enumerate(actions)]


@component("search", "saffron", paper="2506.06444", needs=("scorer",), forks=True)
async def saffron(searcher: Searcher, *, beams: int = 1, children: int = 4) -> None:
    """Tries several next turns, has a scorer see the actions side by side, and keeps the best few, no action twice.

    After Saffron, whose model of rewards scores every next token in one call: here one call of `--scorer listed:POLICY` scores
    all actions that were sampled. Candidates that are masked (there: tokens unseen in its training; here: actions that equal
    an earlier one) are never kept. The bar on early ends and the trie of shared caches are the engine's.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("saffron:children=2", budget=300, scorer="listed")
    >>> e.metrics["search_scorer_tokens"] > 0
    True
    """

    async def side_by_side(_: SearchNode, found: Sequence[SearchNode]) -> list[float]:
        rewards = await searcher.score(found)
        mask = first_of_equal([spoken(node.turns[-1].action) for node in found])
        allowed = best_allowed(rewards, mask, beams)
        return [reward if i in allowed else _MASKED for i, reward in enumerate(rewards)]

    await beam_search(searcher, side_by_side, beams=beams, children=children)
