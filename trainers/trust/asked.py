"""A judge's verdicts on labelled episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.trainers.core import Judge
from turnwise.trainers.trust.corpus import AuditItem, KnownEpisodes
from turnwise.trainers.trust.reading import JudgeReading


class JudgedItem(NamedTuple):
    """An item, the judge's score of it, and whether it would be paid.

    Attributes:
        item: that was judged.
        score: between 0 and 1.
        paid: whether it would be paid.
        gap: what its score gains by being shown first, where the judge compares; 0 where it reads episodes one by one.
    """

    item: AuditItem
    score: float
    paid: bool
    gap: float = 0.0

    @property
    def wrong(self) -> bool:
        """True if what is paid is not what was solved."""
        return self.paid != self.item.solved


async def ask_judge(
    judge: Judge, reading: JudgeReading, corpus: KnownEpisodes, items: Sequence[AuditItem]
) -> list[JudgedItem]:
    """Let a judge assess items: each alone, or beside another episode of its task where the judge compares.

    A failed episode is then set beside the solution, in both orders, and counts as paid unless the judge puts it below; a solved one is set
    beside a floor, and counts as paid if the judge puts it above.
    """
    if not reading.relative:
        told = await judge([[item.episode] for item in items])
        scores = [reading.score(group[0]) for group in told]
        return [
            JudgedItem(item, score, reading.paid(score)) for item, score in zip(items, scores, strict=True)
        ]
    beside = {True: corpus.failure, False: corpus.gold}
    shown = [item for item in items if item.task in beside[item.solved]]
    pairs = [(item.episode, beside[item.solved][item.task]) for item in shown]
    told = await judge([list(pair) for pair in pairs] + [[b, a] for a, b in pairs])
    first = [reading.score(group[0]) for group in told[: len(pairs)]]
    second = [reading.score(group[1]) for group in told[len(pairs) :]]
    return [
        JudgedItem(item, (a + b) / 2, (a + b) / 2 > 0.5 if item.solved else (a + b) / 2 >= 0.5, a - b)
        for item, a, b in zip(shown, first, second, strict=True)
    ]


def misordered(reading: JudgeReading, group: Sequence[Episode]) -> float | None:
    """Return the share of pairs of a solved and a failed episode that a judge puts in the wrong order; a tie is half. None without such pairs.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> ends = [EndReason.SOLVED, EndReason.FAILED, EndReason.FAILED]
    >>> said = [with_signals(episode([0], end=end), [{"standing": x}]) for end, x in zip(ends, (0.5, 0.0, 1.0))]
    >>> misordered(JudgeReading("standing"), said)
    0.5
    """
    solved = [reading.score(one) for one in group if one.success]
    failed = [reading.score(one) for one in group if not one.success]
    pairs = [0.5 if a == b else float(a < b) for a in solved for b in failed]
    return fmean(pairs) if pairs else None


def errors_of(reading: JudgeReading, group: Sequence[Episode]) -> Mapping[str, float]:
    """Return the shares of a judged group that were judged wrongly, by the names that requirements have; those that it says nothing of are left out."""
    if reading.relative:
        found = misordered(reading, group)
        return {} if found is None else {"error": found}
    paid = [(reading.paid(reading.score(one)), one.success) for one in group]
    failed, solved = [p for p, s in paid if not s], [not p for p, s in paid if s]
    shares = {"false_accept": failed, "false_reject": solved, "error": [p != s for p, s in paid]}
    return {name: fmean(map(float, told)) for name, told in shares.items() if told}
