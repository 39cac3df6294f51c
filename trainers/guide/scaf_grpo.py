"""Scaffolds: the weakest of a row of hints that leads to a success puts one row into a group that nobody solved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from turnwise.agents.core import Episode
from turnwise.agents.policies.told import verb_of
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import actions_of, solutions, told_once, unsolved, with_rows

STEPS = 4
Tier = Literal["knowledge", "plan", "solution"]


@component("guide", "scaf_grpo", paper="2510.19807")
async def scaf_grpo(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    start: int = 50,
    tiers: tuple[Tier, ...] = ("knowledge", "plan", "solution"),
    demonstrator: str = "gold",
) -> list[Group]:
    """Tries hints from weak to strong on unsolved groups; the first that leads to a success replaces the group's first row.

    Scaf-GRPO (2025): plain play before update ``start``, so that hard is not taken for not yet tuned. Then for a group without a success
    cumulative hints in tiers, each in 4 steps; one rollout per level; the weakest level whose rollout is right replaces exactly one
    row, with the prompt that holds the hint; if none is right the group stays. Levels are played one after the other until
    one succeeds, which picks the same level. The paper's hints are written by a stronger model; here they come from the
    demonstrator's solution (ours): `knowledge` are the kinds of action that it takes, `plan` their order, `solution` its actions. The released
    script has `tiers: [knowledge, solution]`, 8 levels.

    It changes the objective: the row is learned under a prompt that evaluations do not have.

    Worked by hand: outcomes 0, 0, 1 of the levels use level 3; a success beside 7 failures has 2.6458 population deviations, or
    2.4749 of a sample, and each failure −0.3780 or −0.3536.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> of_sample = grpo(turn_batch([[1]] + [[0]] * 7))
    >>> rounded(of_sample, 4)[:2], rounded(of_sample * (8 / 7) ** 0.5, 3)[:2]
    ([[2.4749], [-0.3536]], [[2.646], [-0.378]])
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(scaf_grpo, "shop/quick", groups=1, size=2, start=0)
    >>> guided == plain  # an untrained model solves nothing, whatever it is told
    True

    Raises:
        RecipeError: there is no tier, or one stands twice.
    """
    if not tiers or len({*tiers}) < len(tiers):
        raise RecipeError(
            f"guide 'scaf_grpo': tiers={list(tiers)}.", "Name each tier once, such as [knowledge, solution]."
        )
    left = unsolved(groups) if player.update >= start else {}
    hints = {n: scaffold(one, tiers) for n, one in (await solutions(player, left, demonstrator)).items()}
    rows: dict[int, tuple[int, Episode]] = {}
    for level in range(STEPS * len(tiers)):
        text = {n: f"Hint: {every[level]}" for n, every in hints.items() if n not in rows}
        if not text:
            break
        tried = await told_once(player, left, "guide/scaf_grpo", text, keeps=True)
        rows |= {n: (0, one) for n, one in tried.items() if one.success}
    return with_rows(groups, rows)


def scaffold(shown: Episode, tiers: Sequence[Tier]) -> list[str]:
    """The hints of all levels, each with all that those before it say.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> levels = scaffold(with_words(episode([0, 1]), ["search mug", "buy"]), ["knowledge", "plan", "solution"])
    >>> len(levels), levels[0], levels[3].split("\\n"), levels[-1].split("\\n")
    (12, 'buy', ['buy', 'search'], ['buy', 'search', 'search', 'buy', 'search mug', 'buy'])
    """
    verbs = [verb_of(turn.action) for turn in shown.trajectory.turns]
    items = {"knowledge": sorted({*verbs}), "plan": verbs, "solution": actions_of(shown)}
    levels: list[str] = []
    whole: list[str] = []
    for tier in tiers:
        of = items[tier]
        levels += [
            "\n".join([*whole, *of[: math.ceil(step / STEPS * len(of))]]) for step in range(1, STEPS + 1)
        ]
        whole += of
    return levels
