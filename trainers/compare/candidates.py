"""Candidates of a comparison: a run, a run's checkpoint or an evaluation; several runs of one method stand as a group."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from turnwise.agents.evaluation.statistics import Estimate, Interval, share_mean
from turnwise.tasks.core import Json

SCRIPTED = "scripted"
"""The mode of a policy that is no model: it samples nothing, so it is like any other mode."""


class Measure(NamedTuple):
    """Suite, split and mode that a figure is of; only equal measures are compared."""

    suite: str
    split: str
    mode: str  # "sampled", "greedy" or "scripted"

    def __str__(self) -> str:
        return f"{self.suite} · {self.split} · {self.mode}"


@dataclass(frozen=True)
class CandidateEvaluation:
    """One evaluation of a candidate.

    Attributes:
        measure: what it is of.
        success: with its 95 % interval.
        mean_score, turns: of an episode.
        results: each task's 1.0 or 0.0 for each counting episode; empty where it was not recorded.
        conditions: how it was played, as far as that is recorded: temperature, limits, options of the environment.
        before: success before reinforcement, where the candidate is a run that measured it.
    """

    measure: Measure
    success: Estimate
    mean_score: float
    turns: float
    results: Mapping[str, tuple[float, ...]]
    conditions: Mapping[str, Json]
    before: CandidateEvaluation | None = None


class Validation(NamedTuple):
    """One validation on dev: what the run had cost until then, and its success."""

    update: int
    steps: float | None  # of environments, forks included; None where the run did not count them
    tokens: float | None  # read and sampled, forks included
    success: float
    interval: Interval | None
    seconds: float | None = (
        None  # at work on updates; campaigns alone, whose cells share a machine, know them
    )

    def cost(self, unit: str) -> float | None:
        return self.update if unit == "updates" else getattr(self, unit)


COSTS = ("updates", "steps", "tokens", "seconds")
LearningCurve: TypeAlias = Sequence[Validation]


@dataclass(frozen=True)
class Candidate:
    """A run, a checkpoint or an evaluation.

    Attributes:
        label: how it is called in tables.
        evaluations: of its final policy, one for each measure.
        seed: of the run; None for an evaluation.
        curve: its validations on dev, in their order; empty for an evaluation.
        dev: what the curve is of.
        dev_conditions: how its validations were played.
        dev_tasks: how many tasks a validation plays.
        source: a hash of the environment's source it was played with, where that is recorded.
        notes: what is missing of it.
    """

    label: str
    evaluations: tuple[CandidateEvaluation, ...]
    seed: int | None = None
    curve: LearningCurve = ()
    dev: Measure | None = None
    dev_conditions: Mapping[str, Json] = field(default_factory=dict[str, Json])
    dev_tasks: int = 0
    source: str = ""
    notes: tuple[str, ...] = ()

    def on(self, measure: Measure) -> CandidateEvaluation | None:
        """Its evaluation by this measure; a scripted one stands for every mode."""
        fits = (measure.mode, SCRIPTED) if measure.mode != SCRIPTED else (SCRIPTED, "sampled", "greedy")
        where = {evaluation.measure: evaluation for evaluation in self.evaluations}
        return next((found for mode in fits if (found := where.get(measure._replace(mode=mode)))), None)


@dataclass(frozen=True)
class Contender:
    """One side of a comparison: a candidate, or the runs of one method with different seeds."""

    label: str
    members: tuple[Candidate, ...]

    @property
    def measures(self) -> list[Measure]:
        """Measures by which all of its members were measured."""
        every = list(dict.fromkeys(e.measure for member in self.members for e in member.evaluations))
        return [measure for measure in every if all(member.on(measure) for member in self.members)]

    def evaluations(self, measure: Measure) -> list[CandidateEvaluation]:
        """Of each member, where every member has one; else empty."""
        found = [member.on(measure) for member in self.members]
        return [evaluation for evaluation in found if evaluation is not None] if all(found) else []

    def by_seed(self, values: Sequence[float]) -> dict[int, float]:
        """A value for each member, by its seed; where seeds are unknown or occur twice, by its place."""
        seeds = [member.seed for member in self.members]
        known = [seed for seed in seeds if seed is not None]
        keys = known if len(set(known)) == len(seeds) else [-1 - place for place in range(len(seeds))]
        return dict(zip(keys, values, strict=True))


def mean_success(evaluations: Sequence[CandidateEvaluation]) -> Estimate:
    """One candidate's success with its interval over tasks, or a group's with its interval over seeds."""
    if len(evaluations) == 1:
        return evaluations[0].success
    return share_mean([evaluation.success.mean for evaluation in evaluations])


def pooled_results(evaluations: Sequence[CandidateEvaluation]) -> dict[str, tuple[float, ...]]:
    """Each task's results in all evaluations; a group's task counts as its mean over seeds. Empty if one has none."""
    if not all(evaluation.results for evaluation in evaluations):
        return {}
    if len(evaluations) == 1:
        return dict(evaluations[0].results)
    pooled: dict[str, list[float]] = defaultdict(list)
    for evaluation in evaluations:
        for task, runs in evaluation.results.items():
            pooled[task].append(statistics.fmean(runs))
    return {task: tuple(runs) for task, runs in pooled.items()}
