"""Several suites as one: the suite of each task is drawn by weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from turnwise.envs.registry import get_suite, suite_task
from turnwise.errors import RecipeError
from turnwise.tasks.core import Json, Split, Suite, Task, derive_rng


class SuiteShare(NamedTuple):
    """A suite and its share of the tasks; the shares of a mixture sum to 1."""

    suite: Suite
    share: float


class Mixture:
    """Suites with weights, whose tasks are numbered together without end.

    Task ``index`` is task ``index`` of a suite that is drawn by weight from (seed, index) alone, so that all indices are
    alike before they are drawn. With one suite its tasks are that suite's, in its order. Whoever names a suite gets task
    ``index`` of that one, whatever the shares say.

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

    def suite(self, name: str) -> Suite:
        """The suite of this name.

        Raises:
            RecipeError: the mixture has none.
        """
        for suite, _ in self.shares:
            if suite.name == name:
                return suite
        raise RecipeError(f"No suite {name!r} is trained on, but {self.name}.", "Name one of these.")

    def task(self, index: int, suite: str = "", knobs: Mapping[str, Json] | None = None) -> Task:
        """Training task ``index`` of ``suite`` (of the one that is drawn for it, if empty), with these of its knobs otherwise."""
        chosen = self.suite(suite) if suite else self.suite_of(index)
        if knobs:
            chosen = dataclasses.replace(chosen, knobs={**chosen.knobs, **knobs})
        return suite_task(chosen, Split.TRAIN, index)

    def tasks(self, n: int, *, start: int) -> Iterator[Task]:
        """Training tasks ``start … start + n − 1``, each made when it is asked for."""
        return (self.task(index) for index in range(start, start + n))
