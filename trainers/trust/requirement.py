"""A recipe's requirement of a judge: how often it may err, found out before it is paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.tasks.core import Json, Suite
from turnwise.trainers.core import Judge
from turnwise.trainers.trust.asked import JudgedItem, ask_judge
from turnwise.trainers.trust.bounds import at_least, clopper_pearson
from turnwise.trainers.trust.corpus import FAULTS, GOLD, AuditItem, KnownEpisodes, audit_tasks, play_corpus
from turnwise.trainers.trust.reading import JudgeReading

ERRORS = ("false_accept", "false_reject", "error")
"""Rates that can be required: of failed episodes that are paid, of solved ones that are not, of both in equal parts."""


class Requirement(NamedTuple):
    """The rates at which a judge may err.

    Attributes:
        most: of the rates that are required, the largest that is allowed.
        level: the chance that the true rate of a judge that is paid lies above what is stated for any of them.
        labels: failed episodes that the judge is asked about, and solved ones where these matter, each of a task of its own.
        reading: of the judge's signals.
    """

    most: Mapping[str, float]
    level: float
    labels: int
    reading: JudgeReading


class RateBound(NamedTuple):
    """A rate that was seen, of how many, and what the true one is at most."""

    rate: float
    n: int
    upper: float

    def __str__(self) -> str:
        return f"{100 * self.rate:.1f} % of {self.n}, at most {100 * self.upper:.1f} %"


class ExaminedJudge(NamedTuple):
    """Result of asking a judge before a run.

    Attributes:
        bounds: of each rate that is required.
        kinds: of each kind of fault, how many were paid, and of how many.
        why: every reason not to pay the judge; none: it is paid.
    """

    bounds: Mapping[str, RateBound]
    kinds: Mapping[str, tuple[int, int]]
    why: Sequence[str]

    @property
    def paid(self) -> bool:
        """True if the judge is within its requirement."""
        return not self.why

    def to_json(self) -> dict[str, Json]:
        """One JSON object."""
        return {
            "paid": self.paid,
            "bounds": {name: bound._asdict() for name, bound in self.bounds.items()},
            "kinds": {name: [*told] for name, told in self.kinds.items()},
            "why": [*self.why],
        }


async def examine(
    judge: Judge, requirement: Requirement, suite: Suite, seed: int, env_options: Mapping[str, Json]
) -> ExaminedJudge:
    """Ask a judge about episodes of a suite whose truth is known.

    Raises:
        TurnwiseError: no solution of the suite's tasks is known.
    """
    tasks = audit_tasks(suite, requirement.labels)
    corpus = await play_corpus(suite, tasks, seed=seed, each=1, env_options=env_options)
    return judged_by(
        requirement, await ask_judge(judge, requirement.reading, corpus, asked_of(requirement, corpus))
    )


def asked_of(requirement: Requirement, corpus: KnownEpisodes) -> list[AuditItem]:
    """The items that a requirement is about: failed ones, and solved ones where these matter."""
    failed = [item for item in corpus.of(*FAULTS) if not item.solved]
    solved = [item for item in corpus.of(GOLD) if item.solved]
    return [*failed, *(solved if {"false_reject", "error"} & {*requirement.most} else ())]


def judged_by(requirement: Requirement, judged: Sequence[JudgedItem]) -> ExaminedJudge:
    """Return what a judge's verdicts say of it.

    The bounds are Clopper's and Pearson's, with the chance of a miss divided among them: for the labels are independent, one of each
    kind and task, whatever their distribution. A kind of fault that is paid more often than ``false_accept`` (or ``error``) allows, with confidence,
    is a reason of its own, since a policy that learns would find it.
    """
    bounds = {name: _bound(name, requirement, judged) for name in requirement.most}
    why = [
        f"{_SAID[name]}: {bounds[name]}, where {100 * most:.3g} % is required"
        for name, most in requirement.most.items()
        if bounds[name].upper > most
    ]
    kinds: dict[str, tuple[int, int]] = {}
    for kind in FAULTS:
        told = [one.paid for one in judged if one.item.kind == kind and not one.item.solved]
        if told:
            kinds[kind] = (sum(told), len(told))
    most = min(
        (requirement.most[name] for name in ("false_accept", "error") if name in requirement.most),
        default=None,
    )
    for kind, (paid, n) in kinds.items():
        if most is not None and at_least(paid, n, requirement.level / len(kinds)) > most:
            why.append(f"it pays {paid} of {n} episodes of the kind {kind!r}")
    return ExaminedJudge(bounds, kinds, why)


_SAID = {
    "false_accept": "failed episodes that it pays",
    "false_reject": "solved episodes that it does not pay",
    "error": "episodes that it judges wrongly",
}


def _bound(name: str, requirement: Requirement, judged: Sequence[JudgedItem]) -> RateBound:
    told = (
        _error_of(judged)
        if name == "error"
        else [one for one in judged if one.item.solved == (name == "false_reject")]
    )
    wrong = sum(one.wrong for one in told)
    miss = requirement.level / len(requirement.most)
    if not told:
        return RateBound(0.0, 0, 1.0)
    return RateBound(wrong / len(told), len(told), clopper_pearson(wrong, len(told), miss))


def _error_of(judged: Sequence[JudgedItem]) -> list[JudgedItem]:
    """One verdict of each task, of its solved and its failed episode in turns, so that they are independent."""
    by_task: dict[str, dict[bool, JudgedItem]] = {}
    for one in judged:
        by_task.setdefault(one.item.task, {}).setdefault(one.item.solved, one)
    return [both.get(n % 2 == 0) or next(iter(both.values())) for n, both in enumerate(by_task.values())]
