"""Repairs: a failed episode is kept up to its first bad turn, and an expert finishes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component, get_component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import MarkedPolicy, expert, with_rows
from turnwise.trainers.kit.asking import made_judge
from turnwise.trainers.strategy.runner import TurnPoint


class Repair(NamedTuple):
    """A row of a group and the turn from which it is played anew."""

    row: int
    turn: int


@component("guide", "scope")
async def scope(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    judge: str = "gold",
    threshold: float = 0.6,
    demonstrator: str = "gold",
) -> list[Group]:
    """Lets an expert finish the failed episode with the longest good beginning of each group, from its first bad turn on.

    SCOPE: a judge scores the turns of episodes that failed; the first turn below ``threshold`` is where it went wrong. The
    policy's own turns before it are kept and learned as its own, the environment is brought back to that point, and the expert plays
    the rest, marked guide/scope: give these tokens an off-policy loss, `guide: [{name: scope, loss: [luffy], correction: none}]`. The repaired
    episode stands in place of the one that it repairs. Preferred is the longest good beginning; one row of a group, and the
    threshold, are ours, since the paper's are not known. ``judge`` is one whose signal is `principle` (`gold` needs no model:
    1 where the goal came nearer, 1/2 where it did not, 0 where it went away). Episodes that are bad from the start (the expert
    would play all), that have no bad turn, or that the expert does not solve, stay.

    It changes the objective: the likelihood of the expert's ends is added.

    Worked by hand: scores .9, .8, .3, .7 and the threshold .5: two own turns are kept and turn 2 is played anew; with no score
    below it there is nothing to repair.

    >>> first_bad([0.9, 0.8, 0.3, 0.7], 0.5), first_bad([0.9, 0.8], 0.5)
    (2, None)
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(scope, "shop/quick", groups=1, size=2)
    >>> guided == plain  # an untrained model is wrong from the start
    True

    Raises:
        RecipeError: the judge gives no `principle`.
    """
    entry = get_component("judge", judge)
    if "principle" not in entry.gives:
        raise RecipeError(
            f"guide 'scope': judge {judge!r} gives no signal 'principle'.",
            "Name one that does, such as gold.",
        )
    counting = [[e for e in group if e.outcome.counts] for group in groups]
    scored = await made_judge(entry, {})(counting)
    wanted: dict[int, tuple[Repair, TurnPoint]] = {}
    for n, (group, among, judged) in enumerate(zip(groups, counting, scored, strict=True)):
        found = _repair(group, among, judged, threshold)
        if found is not None:
            wanted[n] = found, TurnPoint(group[found.row], found.turn)
    points = await player.moments([point for _, point in wanted.values()])
    starts = {n: [point] for n, point in zip(wanted, points, strict=True) if point is not None}
    played = await player.go_on(starts, MarkedPolicy("guide/scope", expert(demonstrator, player)))
    return with_rows(groups, {n: (wanted[n][0].row, one) for n, (one,) in played.items() if one.success})


def first_bad(scores: Sequence[float], threshold: float) -> int | None:
    """The first turn whose score is below a threshold; None where there is none."""
    return next((k for k, score in enumerate(scores) if score < threshold), None)


def _repair(group: Group, among: Group, judged: Group, threshold: float) -> Repair | None:
    """The failed row with the longest good beginning; of equals the first."""
    place = {id(episode): row for row, episode in enumerate(group)}
    found = [
        Repair(place[id(old)], turn)
        for old, new in zip(among, judged, strict=True)
        if not old.success and (turn := first_bad(_scores(new), threshold))
    ]
    return max(found, key=lambda one: (one.turn, -one.row), default=None)


def _scores(episode: Episode) -> list[float]:
    return [turn.signals["principle"] for turn in episode.trajectory.turns]
