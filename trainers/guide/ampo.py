"""AMPO: where a whole group failed, it is given the episodes of those teachers whom the policy understands best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from turnwise.agents.core import Episode, Turn
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.scoring import ScoredTokens
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tools.thoughts import left_open
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import MarkedPolicy, expert, solutions, unsolved
from turnwise.trainers.kit.reward_edits import is_formed, part_total, replace_turns, with_part
from turnwise.trainers.kit.thoughts import thought_length


@component("guide", "ampo", paper="2510.02227")
async def ampo(
    player: GuidePlayer, groups: Sequence[Group], *, teachers: tuple[str, ...] = ("gold",), rows: int = 2
) -> list[Group]:
    """Puts up to ``rows`` teachers' episodes in place of the first rows of groups that nobody solved, the best understood ones first.

    A teacher (a script, or any policy's spec) plays the task once; what solves it counts, and earns at least 1. How well the policy
    understands it is .9·c + .1·f: c the mean over the tokens of gold's last act of π(token | the teacher's episode up to its last act, with the thoughts
    that lead to it), f whether the episode is well-formed. AMPO (2025): help only where the policy fails by itself, and from those who think in a way that it can follow. Their
    losses are `guide: [{name: ampo, loss: [luffy], correction: none}]` with `credit: dr_grpo`. Ours: teachers play when they are needed,
    where theirs are stored; equal scores go by the order of ``teachers``.

    Worked by hand: p = .9 .5 .2 and .6 .6 .6 with a right format: .58 and .64; two of eight replaced have .75.

    >>> round(understood([0.9, 0.5, 0.2], True), 4), round(understood([0.6, 0.6, 0.6], True), 4), round(understood([0.9, 0.5, 0.2], False) / 0.9, 4)
    (0.58, 0.64, 0.5333)
    >>> from turnwise.trainers.credit.dr_grpo import dr_grpo
    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> dr_grpo(turn_batch([[1.0], [1.0], *[[0.0]] * 6]))[:, 0].tolist()[1:3]
    [0.75, -0.25]

    Raises:
        RecipeError: there is no teacher, or ``rows`` is below 1.
    """
    if not teachers or rows < 1:
        raise RecipeError(
            f"guide 'ampo': {len(teachers)} teachers for {rows} rows put nothing into a group.",
            "Name teachers: [gold, …], and rows from 1 on (2).",
        )
    hard = {n: group for n, group in unsolved(groups).items() if group}
    right = await solutions(player, hard, "gold")
    known = {n: hard[n] for n in right}
    found: dict[int, list[Episode]] = {n: [] for n in known}
    for spec in teachers:
        asked = {n: group[:1] for n, group in known.items()}
        for n, (one,) in (await player(asked, MarkedPolicy("guide/ampo", expert(spec, player)))).items():
            if one.success:
                found[n].append(one)
    scores = await comprehended(player.model, found, right)
    changed = [[*group] for group in groups]
    for n, shown in found.items():
        best = sorted(zip(scores[n], range(len(shown)), strict=True), key=lambda x: -x[0])
        for row, (_, i) in enumerate(best[: min(rows, len(changed[n]))]):
            changed[n][row] = paid_fully(shown[i])
    return [*changed]


async def comprehended(
    model: ModelPolicy, found: Mapping[int, Sequence[Episode]], right: Mapping[int, Episode]
) -> dict[int, list[float]]:
    """Return how well the policy understands each episode, by the number of its group."""
    every = [(n, one) for n, shown in found.items() for one in shown]
    decode: Any = model.renderer.tokenizer.decode
    opened = left_open(decode(list(model.renderer.opening)))
    texts: list[ScoredTokens] = []
    for n, one in every:
        answer = right[n].trajectory.turns[-1].reply.action_ids
        *before, last = one.trajectory.turns
        read = [token for turn in before for token in (*turn.reply.prompt_ids, *turn.reply.action_ids)]
        said = last.reply.action_ids
        thought = said[: thought_length(said, decode, opened)]
        room = model.engine.context_length - len(answer)
        texts.append(ScoredTokens([*read, *last.reply.prompt_ids, *thought][-room:], answer))
    scores: dict[int, list[float]] = {n: [] for n in found}
    for (n, one), logps in zip(every, await model.score_tokens(texts), strict=True):
        scores[n].append(understood([math.exp(x) for x in logps], is_formed(one, one.trajectory.turns)))
    return scores


def understood(probabilities: Sequence[float], formed: bool) -> float:
    """.9 of the mean probability of the right answer's tokens, and .1 for the form."""
    return 0.9 * sum(probabilities) / len(probabilities) + 0.1 * formed


def paid_fully(episode: Episode) -> Episode:
    """The episode with a score of at least 1."""

    def pay(turns: Sequence[Turn]) -> Sequence[Turn]:
        lacking = max(0.0, 1.0 - sum(turn.reward for turn in turns))
        last = turns[-1]
        return [*turns[:-1], with_part(last, "outcome", part_total([last], "outcome") + lacking)]

    return replace_turns(episode, pay)
