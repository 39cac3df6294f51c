"""Difficulty that widens where the hardest level is solved, and narrows where nothing of it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from turnwise.registry import component
from turnwise.tasks.core import Json, canonical, derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import require_option


def moved(edge: int, levels: int, outcomes: Sequence[int], window: int, low: float, high: float) -> int:
    """The edge after these outcomes at it: one further from ``high`` on, one back up to ``low``, once ``window`` of them are there.

    >>> [moved(1, 4, outcomes, 3, 0.2, 0.8) for outcomes in ([1, 1, 1], [0, 0, 0], [1, 0, 1], [1, 1])]
    [2, 0, 1, 1]
    """
    if len(outcomes) < window:
        return edge
    rate = mean(outcomes)
    return min(edge + 1, levels - 1) if rate >= high else max(edge - 1, 0) if rate <= low else edge


@component("sampler", "adr", paper="1910.07113")
class WideningLevels(Sampler):
    """Tasks of the levels up to an edge that moves: harder where the hardest level is solved, easier where it is not.

    Automatic domain randomisation (OpenAI 2019): with the chance ``at_edge`` a task is of the edge, else of any level up to it, each as
    likely as another. Once ``window`` episodes were played at the edge, their success moves it: one level on at ``high`` or more, one
    back at ``low`` or less; then the count begins anew. Levels are the ``values`` of a ``knob``, from easy to hard, of whatever suite
    the mixture draws; without a knob they are the mixture's suites in their order, and its weights are no matter. One knob, with an
    edge at its hard end, where the paper moves both ends of many; all episodes at the edge count, not those of workers of its own (ours).

    Worked by hand from the paper's rule, where one or three of four episodes succeed, between ¼ and ¾:

    >>> moved(1, 4, [1, 1, 0, 1], 4, 0.25, 0.75), moved(3, 4, [1, 1, 0, 1], 4, 0.25, 0.75), moved(1, 4, [0, 0, 0, 1], 4, 0.25, 0.75)
    (2, 3, 0)
    """

    by_success = True
    over = "the training tasks of the levels up to an edge, which follows success there"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        knob: str = "",
        values: tuple[Json, ...] = (),
        at_edge: float = 0.5,
        window: int = 64,
        low: float = 0.2,
        high: float = 0.8,
    ) -> None:
        super().__init__(setup)
        require_option(
            "adr",
            bool(knob) == bool(values),
            "a knob goes with its values",
            "Give both, such as knob: steps, values: [2, 4, 6], or neither: then the suites are the levels.",
        )
        require_option(
            "adr", len({*map(canonical, values)}) == len(values), "a value stands twice", "Give each once."
        )
        require_option("adr", 0 < at_edge <= 1, f"at_edge {at_edge:g} never plays the edge", "Give up to 1.")
        require_option("adr", window > 0, f"window={window} holds no episode", "Give 1 or more.")
        require_option("adr", 0 <= low < high <= 1, f"low {low:g}, high {high:g}", "Give 0 ≤ low < high ≤ 1.")
        self.knob, self.values = knob, [*values]
        self.at_edge, self.window, self.low, self.high = at_edge, window, low, high
        self.levels = len(values) or len(setup.suites)
        self.edge, self.outcomes = 0, list[int]()

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        rng = derive_rng("adr", self.setup.seed, update)
        first = self.setup.first_new(update)
        drawn = [
            self.edge if rng.random() < self.at_edge else rng.randrange(self.edge + 1)
            for _ in range(self.setup.most)
        ]
        return [
            self._request(i, level) for i, level in [*enumerate(drawn, start=first)][played : played + groups]
        ]

    def _request(self, index: int, level: int) -> GroupRequest:
        if self.knob:
            return self.setup.request(index, knobs={self.knob: self.values[level]})
        return self.setup.request(index, suite=self.setup.suites[level])

    def _level(self, request: GroupRequest) -> int:
        return (
            self.values.index(request.knobs[self.knob])
            if self.knob
            else self.setup.suites.index(request.suite)
        )

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            if self._level(group.request) == self.edge:
                self.outcomes += [int(episode.success) for episode in group.episodes]
        edge = moved(self.edge, self.levels, self.outcomes, self.window, self.low, self.high)
        if len(self.outcomes) >= self.window:
            self.edge, self.outcomes = edge, []

    def figures(self) -> Mapping[str, float]:
        return {"edge": float(self.edge)}

    def state(self) -> PartState:
        return PartState({"edge": self.edge, "outcomes": self.outcomes})

    def restore(self, state: PartState) -> None:
        self.edge = int(state.numbers.get("edge", 0))
        self.outcomes = [int(one) for one in state.numbers.get("outcomes", [])]
