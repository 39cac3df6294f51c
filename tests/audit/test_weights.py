"""Weights of a score are searched on a log of several runs of each task."""

import itertools
from random import Random

import pytest

from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.by_hand import groups
from turnwise.trainers.audit.logs.weights import best_weights, simplex, weights


@pytest.mark.parametrize("seed", range(5))
def test_no_weights_of_the_grid_are_better(seed: int) -> None:
    """Against the best of all k of a task's runs, by hand, over every point of the grid."""
    rng = Random(seed)
    scores = [[[rng.random() for _ in range(4)] for _ in range(3)] for _ in range(3)]
    right = [[float(rng.random() < 0.4) for _ in range(4)] for _ in range(3)]

    def success(tried: tuple[float, ...]) -> float:
        found = []
        for task in range(3):
            mixed = [sum(w * scores[n][task][i] for n, w in enumerate(tried)) for i in range(4)]
            for chosen in itertools.combinations(range(4), 2):
                found.append(right[task][max(chosen, key=lambda i: mixed[i])])
        return sum(found) / len(found)

    grid = [(a / 5, b / 5, (5 - a - b) / 5) for a in range(6) for b in range(6 - a)]
    assert sorted(simplex(3, 5)) == pytest.approx(sorted(grid))
    found, value = best_weights(scores, right, 5, 2)
    assert value == pytest.approx(max(map(success, grid)))
    assert success(found) == pytest.approx(value)


def test_a_step_that_is_none_is_refused() -> None:
    with pytest.raises(TurnwiseError, match="no step"):
        weights(groups({"a": "10"}), score="confidence", step=0)
