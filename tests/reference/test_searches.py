"""Each formula of a search gives what its second form gives, on numbers by chance; the book's numbers are in the docstrings."""

import random

import pytest
import searches as book

from turnwise.trainers.search import (
    bfs_prover,
    early_rejection,
    mcts,
    pav,
    propa,
    rest_mcts,
    rewind,
    saffron,
    search_r2,
    votes,
)
from turnwise.trainers.search.toy import node

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_and_priors(seed: int) -> None:
    rng = random.Random(seed)
    q, c, above, n = (
        rng.uniform(-1, 1),
        rng.uniform(0.1, 3),
        rng.choice([1, rng.randint(1, 60)]),
        rng.randint(0, 20),
    )
    logps = [-rng.random() * 3 for _ in range(rng.randint(1, 9))]
    prior = mcts.prior_of(node((0,), logps), 4)
    assert prior == pytest.approx(book.prior(logps))
    assert mcts.puct(q, prior, above, n, c) == pytest.approx(book.puct(q, prior, above, n, c))
    assert rest_mcts.uct(q, above, n, c) == pytest.approx(book.uct(q, above, n, c))
    assert propa.ucb(q, above, n, c) == pytest.approx(book.ucb(q, above, n, c))
    length, alpha = rng.choice([1, rng.randint(1, 40)]), rng.random()
    assert bfs_prover.priority(sum(logps), length, alpha) == pytest.approx(
        book.priority(sum(logps), length, alpha)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_progress_and_falls(seed: int) -> None:
    rng = random.Random(seed)
    values, k, alpha = (
        [rng.random() for _ in range(rng.randint(2, 9))],
        rng.randint(1, 6),
        rng.uniform(0.5, 6),
    )
    mu = [pav.best_of(v, k) for v in values]
    found = [pav.effective(values[i], mu[i], mu[i - 1], alpha) for i in range(1, len(values))]
    assert found == pytest.approx(book.progress(values, k, alpha))
    assert search_r2.cut_at(values) == book.worst_turn(values)
    drop = rng.uniform(0, 0.5)
    assert rewind.first_bad(values, drop) == book.bad_turn(values, drop)
    assert sum(rewind.halves(k)) == k
    rho, length = rng.random(), rng.randint(1, 60)
    assert early_rejection.least_turns(rho, length) == book.least_turns(rho, length)


@pytest.mark.parametrize("seed", SEEDS)
def test_votes_and_masks(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(1, 7)
    answers, scores = rng.choices("ABC", k=n), [rng.choice([0.1, 0.4, 0.9, rng.random()]) for _ in range(n)]
    assert votes.normalised(scores) == pytest.approx(book.weights(scores))
    assert votes.vote(answers, scores) == book.voted(answers, scores)
    mask, budget = rng.choices([0, 1], k=n), rng.randint(1, 3)
    assert saffron.best_allowed(scores, mask, budget) == book.allowed(scores, mask, budget)
    assert saffron.first_of_equal(answers) == [int(a not in answers[:i]) for i, a in enumerate(answers)]
