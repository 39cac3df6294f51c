"""Self-PRM: the policy grades its own whole attempts."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.trainers.kit.spoken import reranked
from turnwise.trainers.search.core import Searcher, SearchNode
from turnwise.trainers.search.scorers import Judge, answer_of


@component("search", "self_prm", paper="2505.11227")
async def self_prm(searcher: Searcher, *, n: int = 8) -> None:
    """Plays up to n whole episodes; the same policy grades each from 0 to 1, and the best is kept, ties by the majority's answer.

    Self-PRM: argmax_i V(x, y_i), where V is asked of the model that played; among equal grades the answer that most of all
    tries give. Its precision on hard tasks is told by `turnwise audit log … best_of`. What it says about itself is a help in
    ranking and no more: the paper measured less than 10 % precision on hard problems.

    >>> "ABA"[reranked("ABA", [1, 0, 1])]
    'A'
    >>> from turnwise.trainers.search.toy import toy_search
    >>> e = toy_search("self_prm:n=2", budget=1000)
    >>> e.metrics["search_scorer_tokens"] > 0
    True
    """
    tries: list[SearchNode] = []
    judge, grades = Judge(), list[float]()
    for number in range(n):
        node = await searcher.again(number) if number else searcher.first
        if node is None:
            continue
        grades += await judge.score(searcher, [node])
        tries.append(node)
        searcher.keep(tries[reranked([answer_of(one) for one in tries], grades)])
