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
        labels: failed episodes that the judge is asked about, and as many solved ones where these matter. For ``error`` each is of a task of its own.
        reading: of the judge's signals.
    """

    most: Mapping[str, float]
    level: float
    labels: int
    reading: JudgeReading

    @property
    def tasks(self) -> int:
        """Tasks that are played: for ``error`` twice as many as labels, so that solved and failed episodes are independent of one another."""
        return self.labels * (2 if "error" in self.most and not self.reading.relative else 1)


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
    tasks = audit_tasks(suite, requirement.tasks)
    corpus = await play_corpus(suite, tasks, seed=seed, each=1, env_options=env_options)
    return judged_by(
        requirement, await ask_judge(judge, requirement.reading, corpus, asked_of(requirement, corpus))
    )


def asked_of(requirement: Requirement, corpus: KnownEpisodes) -> list[AuditItem]:
    """The items that a requirement is about: failed ones, and solved ones where these matter.

    For ``error`` there is one of each task, solved and failed in equal parts. A judge that compares sets each failed episode beside the
    solution of its task, which is a question about both.
    """
    failed = [item for item in corpus.of(*FAULTS) if not item.solved]
    solved = [item for item in corpus.of(GOLD) if item.solved]
    if requirement.reading.relative or not {"false_reject", "error"} & {*requirement.most}:
        return failed
    return _in_equal_parts(failed, solved) if "error" in requirement.most else [*failed, *solved]


def _in_equal_parts(failed: Sequence[AuditItem], solved: Sequence[AuditItem]) -> list[AuditItem]:
    """One item of each task, of the side that has fewer so far; tasks with one side alone come first."""
    sides = [{item.task: item for item in side} for side in (failed, solved)]
    chosen: tuple[list[AuditItem], list[AuditItem]] = ([], [])
    tasks = dict.fromkeys(item.task for item in (*solved, *failed))
    for task in sorted(tasks, key=lambda task: all(task in side for side in sides)):
        fewer = int(len(chosen[1]) < len(chosen[0]))
        side = fewer if task in sides[fewer] else 1 - fewer
        chosen[side].append(sides[side][task])
    return [*chosen[0], *chosen[1]]


def judged_by(requirement: Requirement, judged: Sequence[JudgedItem]) -> ExaminedJudge:
    """Return what a judge's verdicts say of it.

    The bounds are Clopper's and Pearson's, with the chance of a miss divided among them: for the labels of a rate are independent, one of each
    task. Solved and failed ones may be judged wrongly at different rates: the fewer errors than expected there are, the less likely they are than at
    one rate for all (Hoeffding 1956, "On the distribution of the number of successes in independent trials"), so that the bound holds. A kind of fault that is paid more often than ``false_accept`` (or ``error``) allows, with confidence,
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
    told = [one for one in judged if name == "error" or one.item.solved == (name == "false_reject")]
    wrong = sum(one.wrong for one in told)
    miss = requirement.level / len(requirement.most)
    if not told:
        return RateBound(0.0, 0, 1.0)
    return RateBound(wrong / len(told), len(told), clopper_pearson(wrong, len(told), miss))
