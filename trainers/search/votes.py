"""Weighted votes among whole episodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.trainers.search.core import Searcher, SearchNode
from turnwise.trainers.search.scorers import answer_of


def vote(answers: Sequence[str], scores: Sequence[float]) -> int:
    """The place of the best-scored try that carries the answer with the largest sum of min-max normalised scores.

    Where all scores are equal each counts 1, which is a majority; earlier ones win ties.

    >>> [round(x, 4) for x in normalised([0.2, 0.9, 0.5, 0.5])]
    [0.0, 1.0, 0.4286, 0.4286]
    >>> vote("ABCC", [0.2, 0.9, 0.5, 0.5])  # B 1.0, C .8571
    1
    >>> vote("ABB", [1, 1, 1])
    1
    """
    total: dict[str, float] = defaultdict(float)
    for answer, weight in zip(answers, normalised(scores), strict=True):
        total[answer] += weight
    winner = max(total, key=total.__getitem__)
    return max((i for i, answer in enumerate(answers) if answer == winner), key=lambda i: scores[i])


def normalised(scores: Sequence[float]) -> list[float]:
    """Scores between 0 and 1 by their least and their largest; 1 where all are equal."""
    low, high = min(scores), max(scores)
    return [(s - low) / (high - low) if high > low else 1.0 for s in scores]


@component("search", "votes")
async def votes(searcher: Searcher, *, n: int = 8) -> None:
    """Plays up to n whole episodes; tries that end with the same action vote together, weighted by a scorer if there is one.

    The weighted vote of Bag of tricks: scores are min-max normalised over the candidates (all equal: 1) and summed per answer;
    the result is the best-scored try that carries the answer which won. Without a scorer it is a majority. Final *actions* stand
    for answers (ours); the paper's tuning of the temperature is `--temperature`.

    >>> from turnwise.trainers.search.toy import toy_search
    >>> toy_search("votes:n=5", budget=1000).metrics["search_episodes"]
    5.0
    """
    tries: list[SearchNode] = [searcher.first]
    for number in range(1, n):
        node = await searcher.again(number)
        if node is None:
            continue
        tries.append(node)
        scores = await searcher.score(tries) if searcher.scorer else [1.0] * len(tries)
        searcher.keep(tries[vote([answer_of(one) for one in tries], scores)])
