"""``turnwise credit-bench``: every credit rule on the same episodes, against the truth."""

from __future__ import annotations

import itertools
import re
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from turnwise.agents.policies.registry import make_policy
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.exam import Exam, process_exams, suite_exam
from turnwise.trainers.grade import FIGURES, MEDIANS, Draws, Grade, bootstrap, grade
from turnwise.trainers.registry import Component, components, get_component
from turnwise.trainers.report_turns import TrueGroup
from turnwise.trainers.true_turns import true_group

STAGES = (
    "mix:demonstrator=0.2,random=0.8",
    "mix:demonstrator=0.5,random=0.5",
    "mix:demonstrator=0.8,random=0.2",
)
"""Policies of rising skill, where none are given."""
BRANCHES = (1, 2)  # the turns at which trees go on in two ways
DRAWS = 400
Say = Callable[[str], None]


class Scale(NamedTuple):
    """How much is played and forked.

    ``groups`` tasks of ``size`` episodes each per policy; ``forks`` of every state for the truth and
    ``vine_forks`` for the signal ``fork_value``; ``process_groups`` groups on each process and stage.
    """

    groups: int = 16
    size: int = 8
    forks: int = 24
    vine_forks: int = 4
    process_groups: int = 48


class Interval(NamedTuple):
    """A figure with its 95 % bootstrap interval over groups; NaN where it is not defined."""

    value: float
    low: float
    high: float

    def to_json(self) -> Json:
        return [round(x, 4) if np.isfinite(x) else None for x in self] if np.isfinite(self.value) else None


@dataclass(frozen=True)
class Score:
    """A rule on all exams of one source."""

    rule: Component
    source: str
    figures: dict[str, Interval]
    by_stage: dict[str, dict[str, Interval]]
    extra_steps: float  # per environment step of the episodes themselves
    extra_tokens: float
    milliseconds: float  # per 1,000 turns

    def to_json(self) -> dict[str, Json]:
        return {
            "rule": self.rule.name,
            "source": self.source,
            "bias_declared": self.rule.bias,
            "figures": {name: found.to_json() for name, found in self.figures.items()},
            "by_stage": {
                stage: {name: found.to_json() for name, found in figures.items()}
                for stage, figures in self.by_stage.items()
            },
            "extra_steps": self.extra_steps,
            "extra_tokens": self.extra_tokens,
            "milliseconds_per_1000_turns": round(self.milliseconds, 3),
        }


@dataclass(frozen=True)
class Report:
    """What the bench found: a score per rule and source, the exams, and rules that could not sit them."""

    scores: list[Score]
    exams: list[dict[str, Json]]
    left_out: dict[str, dict[str, list[str]]]  # source → rule → missing signals
    seconds: float
    shown: tuple[TrueGroup, ...] = ()  # one group of each suite and stage, turn by turn

    def of(self, source: str) -> list[Score]:
        """The scores of one source, best correlation first."""
        found = [score for score in self.scores if score.source == source]
        return sorted(found, key=lambda score: -score.figures["correlation"].value)

    def stages(self, source: str) -> list[str]:
        """The policies that played a source, in order."""
        return [str(exam["stage"]) for exam in self.exams if exam["source"] == source]

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(score.source for score in self.scores))

    def to_json(self) -> dict[str, Json]:
        return {
            "figures": dict(FIGURES),
            "exams": self.exams,
            "scores": [score.to_json() for score in self.scores],
            "left_out": self.left_out,
            "seconds": round(self.seconds, 1),
        }


def credit_bench(
    suites: Sequence[str] = ("shop/easy",),
    policies: Sequence[str] = STAGES,
    *,
    rules: Sequence[str] = (),
    show: Sequence[str] = (),
    processes: bool = True,
    trees: bool = True,
    scale: Scale | None = None,
    seed: int = 0,
    say: Say = lambda line: None,
) -> Report:
    """Score the rules (all without ``rules``) on the processes and on ``suites`` played by ``policies``.

    With ``trees`` each suite is also played in episodes that branch, which rules for trees are made for. ``show`` are
    the rules that get columns where turns are shown.

    Raises:
        NotFoundError: a rule, suite or policy is unknown.
        TurnwiseError: episodes failed.
    """
    began, scale = time.monotonic(), scale or Scale()
    entries = [get_component("credit", name) for name in rules] or components("credit")
    for name in show:
        get_component("credit", name)
    scores: list[Score] = []
    described: list[dict[str, Json]] = []
    left_out: dict[str, dict[str, list[str]]] = {}
    shown: list[TrueGroup] = []
    for exams in _sources(suites, policies, processes, trees, scale, seed, say):
        source = exams[0].source
        described += [_describe(exam) for exam in exams]
        weights = [bootstrap(int(e.turns.group_B.max()) + 1, DRAWS, seed) for e in exams]
        given: list[dict[str, Grade]] = [{} for _ in exams]
        for entry in entries:
            missing = sorted({*entry.needs} - exams[0].turns.measured)
            if missing:
                left_out.setdefault(source, {})[entry.name] = missing
                continue
            credit = entry.build({})
            grades = [grade(credit, exam, w) for exam, w in zip(exams, weights, strict=True)]
            scores.append(_score(entry, exams, grades))
            for found, of_exam in zip(given, grades, strict=True):
                found[entry.name] = of_exam
        if source in suites:
            pairs = zip(exams, given, strict=True)
            shown += [true_group(exam, grades, scale.forks, show) for exam, grades in pairs]
        say(f"{source}: {len(exams)} exams graded after {time.monotonic() - began:.0f} s")
    return Report(scores, described, left_out, time.monotonic() - began, tuple(shown))


def _sources(
    suites: Sequence[str],
    policies: Sequence[str],
    processes: bool,
    trees: bool,
    scale: Scale,
    seed: int,
    say: Say,
) -> Iterable[list[Exam]]:
    if processes:
        yield list(process_exams(scale.process_groups, scale.size, scale.vine_forks, seed))
    for suite, branch_at in itertools.product(suites, ((), BRANCHES) if trees else ((),)):
        exams: list[Exam] = []
        for spec in policies:
            policy = make_policy(spec)
            try:
                exams.append(
                    suite_exam(
                        suite, policy, groups=scale.groups, size=scale.size,
                        forks=scale.forks, vine_forks=scale.vine_forks, seed=seed, branch_at=branch_at,
                    )
                )  # fmt: skip
            finally:
                policy.close()
            say(f"{exams[-1].source}: {spec} played and forked")
        yield exams


def _describe(exam: Exam) -> dict[str, Json]:
    turns = exam.turns
    return {
        "source": exam.source,
        "stage": exam.stage,
        "episodes": len(turns.group_B),
        "groups": int(turns.group_B.max()) + 1,
        "turns": int(turns.mask_BK.sum()),
        "mean_return": round(turns.return_B.mean().item(), 4),
        "truth_std": round(exam.truth_BK[turns.mask_BK].std().item(), 4),
        "reliability": round(exam.reliability, 4),
        "signals": sorted(turns.measured),
    }


def _score(entry: Component, exams: Sequence[Exam], grades: Sequence[Grade]) -> Score:
    """The mean over exams of each figure; draws are averaged before the interval is taken."""
    names = list(grades[0].figures)
    pooled = {name: interval(_pooled(name, [g.figures[name] for g in grades])) for name in names}
    by_stage = {
        exam.stage: {name: interval(draws) for name, draws in g.figures.items()}
        for exam, g in zip(exams, grades, strict=True)
    }
    turns = sum(int(exam.turns.mask_BK.sum()) for exam in exams)
    forks = "fork_value" in entry.needs
    steps, tokens = (sum(getattr(exam.cost, name) for exam in exams) for name in ("steps", "tokens"))
    more_steps, more_tokens = (
        sum(getattr(exam.fork_cost, name) for exam in exams) * forks for name in ("steps", "tokens")
    )
    return Score(
        entry,
        exams[0].source,
        pooled,
        by_stage,
        round(more_steps / max(steps, 1), 3),
        round(more_tokens / max(tokens, 1), 3),
        1e6 * sum(g.seconds for g in grades) / turns,
    )


def _pooled(name: str, draws: Sequence[Draws]) -> Draws:
    """The mean over exams, or the median where single ones may be without bounds."""
    stacked = np.stack(draws)
    if name not in MEDIANS:
        return stacked.mean(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all NaN, or inf − inf between two
        return np.nanmedian(stacked, axis=0)


def stage_labels(stages: Sequence[str]) -> list[str]:
    """Stages without what they all begin and end with.

    >>> stage_labels(["torch:runs/a/checkpoints/step-000010/model", "torch:runs/a/checkpoints/step-000050/model"])
    ['step-000010', 'step-000050']
    >>> stage_labels(["scripted:gold"])
    ['scripted:gold']
    """
    if len(stages) < 2:
        return list(stages)
    cut = [re.split(r"([/:,])", stage) for stage in stages]
    head = 0
    while all(len(parts) > head + 1 and parts[head] == cut[0][head] for parts in cut):
        head += 1
    tail = 0
    while all(len(parts) > head + tail + 1 and parts[-1 - tail] == cut[0][-1 - tail] for parts in cut):
        tail += 1
    return ["".join(parts[head : len(parts) - tail]).strip("/:,") for parts in cut]


def checkpoints(run: Path, most: int = 4) -> list[str]:
    """Policies of at most ``most`` checkpoints of a run, spread evenly from the first to the last.

    Raises:
        TurnwiseError: the run has none.
    """
    found = sorted((run / "checkpoints").glob("step-*"))
    if not found:
        raise TurnwiseError(
            f"{run} has no checkpoints.", "Give the directory of a run (`turnwise train --out`)."
        )
    last, count = len(found) - 1, min(most, len(found))
    chosen = dict.fromkeys(round(i * last / max(1, count - 1)) for i in range(count))
    return [f"torch:{found[i] / 'model'}" for i in chosen]


def interval(draws: Draws) -> Interval:
    """The figure on the whole and the middle 95 % of its draws."""
    usual = draws[1:][~np.isnan(draws[1:])]
    if not np.isfinite(draws[0]) or not len(usual):
        return Interval(float("nan"), float("nan"), float("nan"))
    low, high = np.quantile(usual, [0.025, 0.975], method="nearest")
    return Interval(float(draws[0]), float(low), float(high))
