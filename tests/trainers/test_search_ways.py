"""Which ways each search goes, and which try it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from turnwise.agents.core import Episode
from turnwise.trainers.search.core import Searcher, SearchNode
from turnwise.trainers.search.mcts import puct
from turnwise.trainers.search.toy import ToyScorer, toy_searches
from turnwise.trainers.search.tree import TreeNode, grow


class By(ToyScorer):
    """Scores nodes by a function of them, and remembers what it was asked about."""

    def __init__(self, worth: Callable[[SearchNode], float]) -> None:
        self._worth, self.asked = worth, list[SearchNode]()

    async def score(self, searcher: object, nodes: Sequence[SearchNode]) -> list[float]:
        self.asked += nodes
        return [self._worth(node) for node in nodes]


def said(episode: Episode) -> list[str]:
    return [str(turn.action) for turn in episode.trajectory.turns]


def one(spec: str, scorer: Any = "", budget: float = 2000, seed: int = 5) -> Episode:
    return toy_searches(spec, budget=budget, scorer=scorer, seed=seed)[0]


def plain(seed: int = 5) -> Episode:
    return one("best_of_n:n=1", "votes", seed=seed)


def test_best_of_n_solves_what_any_try_solves_if_its_scorer_knows() -> None:
    for seed in range(6):
        tries = [toy_searches("best_of_n:n=1", budget=900, scorer="votes", seed=seed)[0]]
        found, oracle = one("best_of_n:n=6", "oracle", seed=seed), tries[0].success
        again = By(lambda node: float(len(node.path) and node.path[0]))
        last = one("best_of_n:n=6", again, seed=seed)
        assert found.success >= oracle
        assert len(again.asked) >= 6
        assert said(last) != said(tries[0]) or len({str(n.messages()) for n in again.asked}) == 1


def test_the_first_of_equal_tries_stays() -> None:
    assert said(one("best_of_n:n=5", By(lambda _: 0.5))) == said(plain())
    assert said(one("turn_beam:children=3", By(lambda _: 0.5))) == said(plain())


def test_votes_keep_the_best_scored_of_the_winners() -> None:
    scorer = By(lambda node: -float(node.path[0]) if node.path else 0.0)
    assert said(one("votes:n=5", scorer)) == said(plain())
    assert {node.over for node in scorer.asked} == {True}


@pytest.mark.parametrize("spec", ["search_r2:revisions=1,accept=2.0", "rewind:n=2,drop=0.5"])
def test_an_episode_is_cut_before_its_worst_turn_and_keeps_what_stood_before(spec: str) -> None:
    """The value falls after turn 2 of plain play (counted from 0); all else is worth more than plain play's end."""
    first = plain()
    assert len(first.trajectory.turns) > 3

    def worth(node: SearchNode) -> float:
        on_plain = not any(node.path)
        return (1.0 if len(node.path) <= 2 else 0.0) if on_plain else 5.0

    found = one(spec, By(worth))
    assert said(found)[:2] == said(first)[:2]
    assert found.trajectory.turns[:2] == first.trajectory.turns[:2]
    assert found.trajectory.turns[2].reply != first.trajectory.turns[2].reply
    assert found.metrics["search_forked"] == 1


def test_what_is_accepted_is_not_revised() -> None:
    assert one("search_r2:revisions=3,accept=0.5", By(lambda _: 0.5)).metrics["search_forked"] == 0


def test_early_rejection_goes_on_with_the_best_tries_alone() -> None:
    scorer = By(lambda node: float(node.path[0]) if node.path else -1.0)
    found = one("early_rejection:n=4,expand=2,correlation=0.4", scorer)
    ends = [node for node in scorer.asked if node.over]
    assert {node.path[0] for node in ends} <= {0, 2, 3}, "0 is plain play; of four tries two go on"
    assert found.metrics["search_episodes"] <= 1 + 2 * 2


def test_a_beam_goes_where_its_scorer_points() -> None:
    """Every second way is worth most: each turn of the result is the last sample of its state, but for plain play's rest."""
    scorer = By(lambda node: float(sum(node.path)))
    found = one("turn_beam:children=2", scorer)
    best = max((node for node in scorer.asked if node.over), key=lambda node: sum(node.path))
    assert said(found) == [str(turn.action) for turn in best.turns]
    assert set(best.path) == {1}


def test_saffron_keeps_no_action_twice() -> None:
    scorer = By(lambda node: 1.0)
    one("saffron:children=4,beams=2", scorer)
    one_level = [node for node in scorer.asked if len(node.path) == 2]
    parents = {node.path[:1] for node in one_level}
    first = {node.path: str(node.turns[0].action) for node in scorer.asked if len(node.path) == 1}
    kept = [first[path] for path in parents if path in first]
    assert len(set(kept)) == len(kept)


def test_pav_ranks_by_a_prover_of_its_own() -> None:
    with_own = one("pav:children=2,alpha=1000.0", By(lambda node: float(sum(node.path)) / 50))
    other = one("pav:children=2,alpha=1000.0,prover=logp", By(lambda node: float(sum(node.path)) / 50))
    assert said(with_own) != said(other) or with_own.metrics["search_nodes"] != other.metrics["search_nodes"]


def test_best_first_goes_on_from_the_likeliest_state() -> None:
    found = one("bfs_prover:children=3,alpha=0.0", budget=200)
    assert found.metrics["search_nodes"] > len(plain().trajectory.turns)
    ends = [one(f"bfs_prover:children=3,alpha={alpha}", budget=300) for alpha in (0.0, 2.0)]
    logp = [sum(sum(turn.reply.logprobs) for turn in e.trajectory.turns) for e in (plain(), *ends)]
    assert logp[1] >= logp[0], "with α = 0 the likeliest end is kept"


def test_a_tree_counts_values_up_and_closes_what_is_done() -> None:
    root = TreeNode(SearchNode(()))
    root.children = [TreeNode(SearchNode((0,)), root), TreeNode(SearchNode((1,)), root)]
    deep = TreeNode(SearchNode((0, 0)), root.children[0])
    root.children[0].children = [deep]
    deep.count(0.5)
    root.children[1].count(1.0)
    assert [(n.visits, n.total, n.mean) for n in (root, *root.children, deep)] == [
        (2, 1.5, 0.75), (1, 0.5, 0.5), (1, 1.0, 1.0), (1, 0.5, 0.5),
    ]  # fmt: skip
    deep.close()
    assert (root.children[0].closed, root.closed) == (True, False)
    root.children[1].close()
    assert root.closed


def test_a_tree_search_opens_states_by_its_rule_and_keeps_the_best_children() -> None:
    """PUCT with two children: the order in which states are opened, computed here from the values that were scored."""
    scorer = By(lambda node: 0.9 if node.path[:1] == (1,) else 0.1)
    opened: list[tuple[int, ...]] = []

    async def search(searcher: Searcher) -> None:
        """Grows a tree and notes what it opens."""
        expand = searcher.expand

        async def noted(node: SearchNode, ways: int) -> list[SearchNode]:
            opened.append(node.path)
            return await expand(node, ways)

        searcher.expand = noted  # pyright: ignore[reportAttributeAccessIssue]
        await grow(
            searcher,
            lambda above, child: puct(child.mean, 1.0, above.visits, child.visits, 0.5),
            children=3,
            keep=2,
        )

    from turnwise.registry import Component

    entry = Component("search", "noted", search, __name__, __file__, needs=("scorer",), forks=True)
    toy_searches(entry, budget=400, scorer=scorer, seed=5)
    assert opened[:2] == [(), (1,)]
    # Q + .5·√3/2 of the two kept ways: .9 beats .1; below (1,) all are worth .9, and the first is gone on from
    assert opened[2] == (1, 0)
    assert all(path[0] != 2 for path in opened[1:]), "of three ways the worst is not kept"


def test_rollouts_of_a_tree_end_and_their_ends_are_scored() -> None:
    scorer = By(lambda node: float(sum(node.path[:1])))
    found = one("propa:children=2", scorer, budget=600)
    assert all(node.over for node in scorer.asked)
    assert found.metrics["search_episodes"] > 3
    assert said(found) != said(plain())
