"""OmegaPRM: the first turn that cost an episode its success, found by halving what is left of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain as concatenate

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.rollout import fork
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.strategy.runner import Plan, RolloutRunner, RunnerResult


@dataclass
class Halving:
    """Looks for the first of so many places at which something is so; it is so from there on, and at the last one."""

    places: int

    def __post_init__(self) -> None:
        self.first, self._last = 0, self.places - 1

    @property
    def place(self) -> int | None:
        """The place to probe next; None when the first one is known."""
        return None if self.first == self._last else (self.first + self._last) // 2

    def told(self, later: bool) -> None:
        """Take up a probe of :attr:`place`: the first one is after it, or not."""
        middle = (self.first + self._last) // 2
        if later:
            self.first = middle + 1
        else:
            self._last = middle


@component("strategy", "omega", paper="2406.06592", gives=("wrong",), only_measures=True)
async def omega(runner: RolloutRunner, plan: Plan, *, forks: int = 16) -> list[Group]:
    """Chains; of each that failed the first turn is found after which none of ``forks`` fresh rollouts succeeds.

    ``wrong`` is 1 on that turn and 0 on all others, and on all turns of a success. OmegaPRM (Luo et al. 2024): the middle of what is left of
    the episode is probed; where a rollout succeeds, the error is later, else there or before. An episode of T turns takes at most ⌈log₂ T⌉
    probes of ``forks`` rollouts, where labels of all turns (`vine`) take T. It supposes that what failed once cannot be corrected later.
    The end of a failure is known and not probed. The rollouts are not trained on; they are in ``fork_steps`` and ``fork_tokens``.
    Where no rollout of a probe came through, the episode counts as an infrastructure fault.
    Every failed episode of an update is searched; the tree whose next rollout is chosen by Q + U is `turnwise.trainers.lab.prefix_labels`.

    The book's eight steps, whose chances are .9 .8 .8 .5 .3 0 0 0: three probes find the first 0, which is the sixth.

    >>> chances, search, probes = [0.9, 0.8, 0.8, 0.5, 0.3, 0, 0, 0], Halving(8), []
    >>> for _ in range(3):
    ...     probes.append(search.place)
    ...     search.told(chances[search.place] > 0)
    >>> probes, search.place, search.first
    ([3, 5, 4], None, 5)

    Raises:
        RecipeError: there is no rollout to probe with.
    """
    if forks < 1:
        raise RecipeError(f"strategy 'omega': forks={forks} probe nothing.", "Give 1 or more (16).")
    trunk = await runner(list(concatenate.from_iterable(plan)), branch_points=True)
    searches = {n: Halving(len(one.episode.trajectory.turns)) for n, one in enumerate(trunk) if _failed(one)}
    lost: dict[int, str] = {}
    while asked := {
        n: place for n, one in searches.items() if n not in lost and (place := one.place) is not None
    }:
        found = await _probed(runner, trunk, asked, forks)
        for n, place in asked.items():
            counted = [one for one in found.get(n, []) if one.outcome.counts]
            if not counted:
                lost[n] = f"no fork of turn {place + 1} came through"
            searches[n].told(any(one.success for one in counted))
    told = iter(_told(one.episode, searches.get(n), lost.get(n)) for n, one in enumerate(trunk))
    return [[next(told) for _ in group] for group in plan]


def _failed(played: RunnerResult) -> bool:
    episode = played.episode
    return episode.outcome.counts and not episode.success and bool(episode.trajectory.turns)


async def _probed(
    runner: RolloutRunner, trunk: Sequence[RunnerResult], asked: Mapping[int, int], forks: int
) -> dict[int, list[Episode]]:
    """Fresh rollouts from after these turns, by number of the episode; none where the point is not known."""
    points = {n: point for n, turn in asked.items() if (point := trunk[n].branch_point(turn + 1))}
    played = iter(await runner([fork(point, i) for point in points.values() for i in range(forks)]))
    return {n: [next(played).episode for _ in range(forks)] for n in points}


def _told(episode: Episode, search: Halving | None, lost: str | None) -> Episode:
    if not episode.outcome.counts:
        return episode
    if lost:
        return replace(episode, outcome=Outcome.INFRA_ERROR, error=lost)
    first = None if search is None else search.first
    return with_signals(episode, [{"wrong": float(k == first)} for k in range(len(episode.trajectory.turns))])
