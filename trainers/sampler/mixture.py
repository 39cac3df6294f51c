"""Several suites as one: the suite of each task is drawn by weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from turnwise.envs.registry import get_suite, suite_task
from turnwise.tasks.core import Split, Suite, Task, derive_rng


class SuiteShare(NamedTuple):
    """A suite and its share of the tasks; the shares of a mixture sum to 1."""

    suite: Suite
    share: float


class Mixture:
    """Suites with weights, whose tasks are numbered together without end.

    Task ``index`` is task ``index`` of a suite that is drawn by weight from (seed, index) alone, so that all indices are
    alike before they are drawn. With one suite its tasks are that suite's, in its order.

    >>> mixture = Mixture({"sort/4": 1, "shop/quick": 3}, seed=0)
    >>> [share for _, share in mixture.shares]
    [0.25, 0.75]
    >>> names = [mixture.suite_of(index).name for index in range(400)]
    >>> 60 < names.count("sort/4") < 140
    True
    """

    def __init__(self, weights: Mapping[str, float], seed: int) -> None:
        total = sum(weights.values())
        self.shares = [SuiteShare(get_suite(name), weight / total) for name, weight in weights.items()]
        self._seed = seed

    @property
    def name(self) -> str:
        """Name of the mixture: the names of its suites, joined by plus signs."""
        return " + ".join(suite.name for suite, _ in self.shares)

    @property
    def envs(self) -> list[str]:
        """The environments of the suites, each once."""
        return list(dict.fromkeys(suite.env for suite, _ in self.shares))

    def suite_of(self, index: int) -> Suite:
        """The suite of task ``index``."""
        if len(self.shares) == 1:
            return self.shares[0].suite
        drawn = derive_rng("suite", self._seed, index).choices(
            self.shares, [share for _, share in self.shares]
        )
        return drawn[0].suite

    def task(self, index: int) -> Task:
        """Training task ``index``."""
        return suite_task(self.suite_of(index), Split.TRAIN, index)

    def tasks(self, n: int, *, start: int) -> Iterator[Task]:
        """Training tasks ``start … start + n − 1``, each made when it is asked for."""
        return (self.task(index) for index in range(start, start + n))
