"""From a judge's name to its verdicts on a suite's labelled episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.evaluation.statistics import Estimate, proportion
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.policies.registry import make_policy, spec_options
from turnwise.envs.registry import get_suite
from turnwise.envs.sources import load_module
from turnwise.errors import TurnwiseError
from turnwise.registry import Component, components_in, get_component
from turnwise.trainers.core import Judge
from turnwise.trainers.kit.asking import judged_now, made_judge
from turnwise.trainers.lab.truth import suite_batch
from turnwise.trainers.trust.asked import JudgedItem, ask_judge
from turnwise.trainers.trust.bounds import hoeffding_bentkus
from turnwise.trainers.trust.corpus import (
    FAULTS,
    GOLD,
    PADDED,
    AuditItem,
    KnownEpisodes,
    audit_tasks,
    play_corpus,
    play_written,
)
from turnwise.trainers.trust.reading import JudgeReading, reading_of
from turnwise.trainers.trust.requirement import ERRORS

FORKED_TASKS, FORKED_SIZE = 6, 2
"""Tasks, and episodes of each, whose true advantages are found by forks."""


class AuditPlan(NamedTuple):
    """Size of an audit of a judge.

    Attributes:
        tasks: of the suite.
        faults: of each task; 0: every one.
        forks: from every state of a few episodes, for true advantages; 0: none.
        writers: policies whose episodes are judged beside.
        require: the rates that the judge may have at most.
        level: the chance that the true rate lies above a bound.
    """

    tasks: int = 60
    faults: int = 12
    forks: int = 64
    writers: Sequence[str] = ()
    require: Mapping[str, float] = {"false_accept": 0.05}
    level: float = 0.05


class KnownTurn(NamedTuple):
    """A turn's task, what the judge says of it, and its true advantage with its standard error."""

    task: str
    said: float
    advantage: float
    error: float


@dataclass(frozen=True)
class JudgeAudit:
    """A judge's verdicts on all items of a corpus.

    Attributes:
        judge: its name.
        asks: the policy that it asks; "" where it asks none.
        reading: of its signals.
        corpus: the items.
        judged: verdicts on them.
        plain: of an item that was edited, the verdict on the episode as it was played, by its place among ``judged``.
        turns: with their true advantages.
        plan: the size of the audit.
    """

    judge: str
    asks: str
    reading: JudgeReading
    corpus: KnownEpisodes
    judged: Sequence[JudgedItem]
    plain: Mapping[int, JudgedItem]
    turns: Sequence[KnownTurn]
    plan: AuditPlan

    def of(self, *kinds: str) -> list[JudgedItem]:
        """The verdicts on items of these kinds."""
        return [one for one in self.judged if one.item.kind in kinds]

    def edited(self, kind: str) -> list[tuple[JudgedItem, JudgedItem]]:
        """The verdicts on edited items of a kind, each with that on the episode as it was played.

        Raises:
            TurnwiseError: there are none.
        """
        pairs = [
            (one, self.plain[n])
            for n, one in enumerate(self.judged)
            if one.item.kind == kind and n in self.plain
        ]
        if not pairs:
            raise TurnwiseError(
                f"No episode of the kind {kind!r} was judged.", "Audit more tasks, or more faults of each."
            )
        return pairs

    def bound(self, rate: str) -> tuple[Estimate, float]:
        """A rate of errors with its interval by task, and what the true one is at most.

        Raises:
            TurnwiseError: no episode is of the side that it is about.
        """
        sides = {"false_accept": (False,), "false_reject": (True,), "error": (False, True)}[rate]
        told = [one for one in self.of(GOLD, *FAULTS) if one.item.solved in sides]
        if not told:
            raise TurnwiseError(f"No episode says anything of {rate}.", "Audit more tasks.")
        by_task: dict[str, list[float]] = {}
        for one in told:
            by_task.setdefault(one.item.task, []).append(float(one.wrong))
        means = [sum(x) / len(x) for x in by_task.values()]
        miss = self.plan.level / max(1, len(self.plan.require))
        found = proportion([one.wrong for one in told], [one.item.task for one in told])
        return found, hoeffding_bentkus(means, miss)


def paid_share(judged: Sequence[JudgedItem]) -> Estimate:
    """Return the share of items that are paid, with its interval by task."""
    return proportion([one.paid for one in judged], [one.item.task for one in judged])


def audit_judge(
    spec: str,
    suite: str,
    plan: AuditPlan,
    *,
    policy: str = "",
    signal: str = "",
    fold: str = "mean",
    threshold: float = 0.5,
) -> JudgeAudit:
    """Ask a judge about a suite's labelled episodes.

    Args:
        spec: its name or its file, with options in braces: ``scripted {false_accept: 0.1}``, ``polite.py``.
        suite: whose tasks are played.
        plan: the size of the audit.
        policy: that the judge asks, where it asks one.
        signal: that is paid; else the first that it gives.
        fold: of the turns' values to the episode's.
        threshold: above which an episode counts as paid.

    Raises:
        TurnwiseError: something that is named is not there, or the judge cannot be reached.
    """
    name, options = spec_options(spec)
    entry = judge_of(name)
    if policy:
        if "policy" not in entry.options:
            raise TurnwiseError(
                f"The judge {name} asks no policy, so that --judge-policy has no effect.", "Leave it out."
            )
        options |= {"policy": policy}
    if not entry.gives:
        raise TurnwiseError(
            f"The judge {name} says nothing that could be paid.", "Name another (`turnwise list judge`)."
        )
    reading = reading_of(entry.gives, signal, fold, threshold)
    judge = made_judge(entry, options)
    check_plan(plan)
    corpus, judged, plain = asyncio.run(_asked(judge, reading, suite, plan))
    asks = str(options.get("policy", entry.options.get("policy", "")))
    turns = true_turns(judge, reading, suite, plan.forks) if plan.forks else ()
    return JudgeAudit(entry.name, asks, reading, corpus, judged, plain, turns, plan)


def judge_of(name: str) -> Component:
    """The judge of this name, or the one that a file of Python has: path/to/file.py, path/to/file.py:NAME.

    Raises:
        TurnwiseError: there is none, or the file has several.
    """
    where, _, wanted = (name, "", "") if name.endswith(".py") else name.rpartition(":")
    if not where.endswith(".py"):
        return get_component("judge", name)
    module = load_module(str(Path(where).expanduser().resolve()))
    found = [one for one in components_in(module) if one.kind == "judge" and wanted in ("", one.name)]
    if len(found) != 1:
        raise TurnwiseError(
            f"{where} has {len(found)} judges{f' of the name {wanted}' if wanted else ''}.",
            'Name one of them, path/to/file.py:NAME, that is registered with @component("judge", NAME, gives=…).',
        )
    return found[0]


def check_plan(plan: AuditPlan) -> None:
    """Refuse sizes that are none.

    Raises:
        TurnwiseError: with what it must be instead.
    """
    for name, least, value in (
        ("--tasks", 2, plan.tasks),
        ("--faults", 0, plan.faults),
        ("--forks", 0, plan.forks),
    ):
        if value < least:
            raise TurnwiseError(f"{name} is {value}.", f"Give {least} or more.")
    for name, most in plan.require.items():
        if name not in ERRORS or not 0 < most < 1:
            raise TurnwiseError(
                f"{name}={most:g} is no requirement of a judge.",
                f"Write --require {ERRORS[0]}=0.02 (also {', '.join(ERRORS[1:])}), above 0 and below 1.",
            )


async def _asked(
    judge: Judge, reading: JudgeReading, suite: str, plan: AuditPlan
) -> tuple[KnownEpisodes, list[JudgedItem], dict[int, JudgedItem]]:
    found = get_suite(suite)
    tasks = audit_tasks(found, plan.tasks)
    corpus = await play_corpus(found, tasks, each=plan.faults, kinds=(*FAULTS, PADDED))
    if plan.writers:
        writers = {spec: make_policy(spec) for spec in plan.writers}
        try:
            corpus = corpus.with_items(await play_written(tasks, writers))
        finally:
            for one in writers.values():
                one.close()
    judged = await ask_judge(judge, reading, corpus, corpus.items)
    edited = [(n, one.item) for n, one in enumerate(judged) if one.item.plain is not None]
    plain_items = [
        AuditItem(item.kind, item.name, item.plain) for _, item in edited if item.plain is not None
    ]
    told = await ask_judge(judge, reading, corpus, plain_items)
    return corpus, judged, {n: one for (n, _), one in zip(edited, told, strict=True)}


def true_turns(judge: Judge, reading: JudgeReading, suite: str, forks: int) -> list[KnownTurn]:
    """Return what a judge says of each turn of a few mediocre episodes, with the turn's advantage by so many forks."""
    policy = mixture("demonstrator=0.5,random=0.5")
    batch = suite_batch(
        suite, policy, groups=FORKED_TASKS, size=FORKED_SIZE, forks=forks, vine_forks=1, seed=0
    )
    groups = [list(batch.episodes[g : g + FORKED_SIZE]) for g in range(0, len(batch.episodes), FORKED_SIZE)]
    told = [one for group in judged_now(judge, groups) for one in group]
    return [
        KnownTurn(one.task.id, said, float(batch.truth_BK[b, k]), float(batch.error_BK[b, k]))
        for b, one in enumerate(told)
        for k, said in enumerate(reading.of_turns(one))
    ]
