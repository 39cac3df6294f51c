"""``turnwise.compare``: differences with their intervals and tests, by task, by knob, by seed, and at equal cost."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.evaluation.comparison import (
    SuccessDifference,
    difference_over_seeds,
    paired_difference,
    unpaired_difference,
)
from turnwise.agents.evaluation.statistics import Estimate, holm
from turnwise.envs.registry import resolve
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.compare.alike import no_measure, other_sources, played_otherwise, refuse
from turnwise.trainers.compare.at_cost import CostComparison, compare_costs
from turnwise.trainers.compare.candidates import (
    SCRIPTED,
    CandidateEvaluation,
    Contender,
    Measure,
    mean_success,
    pooled_results,
)
from turnwise.trainers.compare.knobs import KnobDifference, Levels, differences_by_knob, levels_of
from turnwise.trainers.compare.sources import Source, read_contender


class SeedRow(NamedTuple):
    """One seed of a group: success of both sides."""

    seed: int
    before: float
    after: float


@dataclass(frozen=True)
class Contrast:
    """A contender against the base, by one measure.

    Attributes:
        base, other: their labels.
        difference: other − base in success, over seeds where both are groups, else over tasks.
        adjusted_p: the difference's p value after Holm's adjustment over the contrasts of this measure.
        won, lost, tied: ids of the tasks that the other solves more often than the base, less often, as often.
        knobs: the difference by difficulty; intervals over tasks, not adjusted.
        seeds: success by seed, where both are groups with equal seeds.
        start: the same difference before reinforcement, where both measured it.
    """

    base: str
    other: str
    difference: SuccessDifference
    adjusted_p: float
    won: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    tied: tuple[str, ...] = ()
    knobs: tuple[KnobDifference, ...] = ()
    seeds: tuple[SeedRow, ...] = ()
    start: SuccessDifference | None = None

    @property
    def significant(self) -> bool:
        """True if the difference is significant after the adjustment, at its ``alpha`` (0.05)."""
        return self.adjusted_p < self.difference.alpha

    @property
    def verdict(self) -> str:
        """In plain words."""
        return f"The difference is {'' if self.significant else 'not '}significant"


class Standing(NamedTuple):
    """Results of a contender by a measure; a group's intervals are over its runs."""

    label: str
    runs: int
    success: Estimate
    before: Estimate | None
    mean_score: float
    turns: float


@dataclass(frozen=True)
class MeasureComparison:
    """Everything by one measure: suite, split and mode."""

    measure: Measure
    standings: tuple[Standing, ...]
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True)
class Comparison:
    """Two contenders or more against the first, the base.

    Attributes:
        contenders: what was compared, the base first.
        measures: by suite, split and mode: success, differences, tasks won and lost, knobs, seeds.
        costs: runs on dev at equal updates, steps and tokens.
        notes: what is missing, and what is unlike where that was allowed.
    """

    contenders: tuple[Contender, ...]
    measures: tuple[MeasureComparison, ...]
    costs: tuple[CostComparison, ...]
    notes: tuple[str, ...]

    @property
    def base(self) -> str:
        """The label of the base."""
        return self.contenders[0].label

    def to_json(self) -> dict[str, Json]:
        """One JSON object; an end that is not known is null."""
        data = {
            "base": self.base,
            "contenders": [
                {"label": side.label, "members": [member.label for member in side.members]}
                for side in self.contenders
            ],
            "measures": self.measures,
            "costs": self.costs,
            "notes": self.notes,
        }
        return _plain(data)


def compare(
    *sources: Source | Sequence[Source],
    baseline: Source | None = None,
    allow_unlike: bool = False,
    env: str = "",
) -> Comparison:
    """Compare runs, checkpoints and evaluations with the first of them, like with like.

    ``compare("runs/a", "runs/b")``, ``compare("runs/a@best", "runs/a@0")``, ``compare(evaluation, "evals/b")``,
    ``compare("runs/a-*", "runs/b-*")`` (groups: over seeds) or ``compare(["runs/a-0", "runs/a-1"], [...])``.

    Differences are paired by task, with McNemar's or a sign-flip test and its interval over tasks; groups of two
    runs or more are compared over their seeds. Several p values of one measure are adjusted by Holm's method.

    Args:
        sources: each a run's folder, ``RUN@best``, ``RUN@UPDATE``, a checkpoint's folder, an evaluation's folder or JSON
            file, an :class:`turnwise.Evaluation`, a pattern of paths, or a sequence of these, which stands as a group.
        baseline: with what the others are compared; the first source if not given.
        allow_unlike: compare also what was played otherwise, and say so in ``notes``.
        env: the file of the environment (``path/to/file.py``), where that is not installed: its tasks are sorted by their knobs.

    Returns:
        Differences by suite, split and mode, with what each rests on.

    Raises:
        TurnwiseError: fewer than two sources, one is not there or damaged, or unlike would be compared with unlike
            (``UnlikeError``).
    """
    if env:
        resolve(env)
    named = [*sources]
    if baseline is not None:
        named = [baseline, *(source for source in named if _key(source) != _key(baseline))]
    if len(named) < 2:
        raise TurnwiseError(
            f"There is nothing to compare {_key(named[0]) if named else 'it'} with.",
            "Name two or more, the base first; a pattern in quotes is one group.",
        )
    return compare_contenders([read_contender(source) for source in named], allow_unlike=allow_unlike)


def compare_contenders(read: Sequence[Contender], *, allow_unlike: bool = False) -> Comparison:
    """:func:`compare` for contenders that have been read.

    Raises:
        UnlikeError: unlike would be compared with unlike.
    """
    contenders = _with_short_labels(read)
    base, *others = contenders
    problems: list[str] = []
    notes = [note for side in contenders for member in side.members for note in member.notes]
    notes += other_sources(contenders)
    found: list[MeasureComparison] = []
    levels = _levels(contenders, notes)
    for measure in _measures(contenders):
        sides = [side for side in contenders if side.evaluations(measure)]
        problems += played_otherwise(measure, sides)
        if base.evaluations(measure) and len(sides) > 1:
            known = levels.get((measure.suite, measure.split), {})
            its = [(side, side.evaluations(measure)) for side in sides]
            found.append(_by_measure(measure, its, known, notes))
    costs, unlike = compare_costs(contenders, notes)
    problems += unlike
    tested = {contrast.other for one in found for contrast in one.contrasts}
    curved = {standing.label for cost in costs for standing in cost.standings}
    for side in others:
        unfinished = side.label in curved and not (base.measures and side.measures)
        if side.label not in tested and not unfinished:
            problems.append(no_measure(base, side))
            found += _across(base, side, notes) if allow_unlike else []
    if problems and not allow_unlike:
        raise refuse(problems)
    notes += [f"Unlike: {problem}" for problem in problems]
    return Comparison(tuple(contenders), tuple(found), tuple(costs), tuple(dict.fromkeys(notes)))


def _measures(contenders: Sequence[Contender]) -> list[Measure]:
    """All measures; scripted ones only where nobody sampled, since they are like any mode."""
    every = list(dict.fromkeys(measure for side in contenders for measure in side.measures))
    sampled = [measure for measure in every if measure.mode != SCRIPTED]
    return sampled or every


def _across(base: Contender, other: Contender, notes: list[str]) -> list[MeasureComparison]:
    """Two contenders that share no measure, each by its own first one; only where that was asked for."""
    if not base.measures or not other.measures:
        return []
    sides = [(side, side.evaluations(side.measures[0])) for side in (base, other)]
    return [_by_measure(base.measures[0], sides, {}, notes)]


def _by_measure(
    measure: Measure,
    sides: Sequence[tuple[Contender, list[CandidateEvaluation]]],
    levels: Levels,
    notes: list[str],
) -> MeasureComparison:
    (base, known), *others = sides
    plain = [_contrast(base, known, side, its, levels, notes) for side, its in others]
    adjusted = holm([contrast.difference.p_value for contrast in plain])
    contrasts = [dataclasses.replace(c, adjusted_p=p) for c, p in zip(plain, adjusted, strict=True)]
    return MeasureComparison(measure, tuple(_standing(*side) for side in sides), tuple(contrasts))


def _levels(contenders: Sequence[Contender], notes: list[str]) -> dict[tuple[str, str], Levels]:
    """The knobs' levels of all tasks, by suite and split."""
    ids: dict[tuple[str, str], dict[str, None]] = {}
    for evaluation in (e for side in contenders for member in side.members for e in member.evaluations):
        where = evaluation.measure.suite, evaluation.measure.split
        ids.setdefault(where, {}).update(dict.fromkeys(evaluation.results))
    found: dict[tuple[str, str], Levels] = {}
    for where, tasks in ids.items():
        found[where], missing = levels_of(*where, tasks) if tasks else ({}, "")
        notes += [missing] if missing else []
    return found


def _contrast(
    base: Contender,
    known: list[CandidateEvaluation],
    other: Contender,
    its: list[CandidateEvaluation],
    levels: Levels,
    notes: list[str],
) -> Contrast:
    before, after = pooled_results(known), pooled_results(its)
    shared = [task for task in before if task in after]
    both = len(known) > 1 and len(its) > 1
    seeds: tuple[SeedRow, ...] = ()
    if both:
        a, b = (
            side.by_seed([e.success.mean for e in found]) for side, found in ((base, known), (other, its))
        )
        difference = difference_over_seeds(a, b)
        seeds = tuple(SeedRow(s, a[s], b[s]) for s in sorted(a)) if a.keys() == b.keys() else ()
    elif shared:
        difference = paired_difference(before, after)
    else:
        difference = unpaired_difference(mean_success(known), mean_success(its))
        notes.append(f"{other.label} and {base.label} share no results per task, so they are not paired")
    if not both and max(len(known), len(its)) > 1:
        notes.append(
            f"{other.label} against {base.label}: over tasks, not over seeds, for one of them is one run"
        )
    if shared and (left_out := len(before.keys() ^ after.keys())):
        notes.append(f"{left_out} tasks that only one of {base.label} and {other.label} has are left out")
    signs = {task: _mean(after[task]) - _mean(before[task]) for task in shared}
    return Contrast(
        base.label,
        other.label,
        difference,
        difference.p_value,
        won=tuple(task for task, sign in signs.items() if sign > 0),
        lost=tuple(task for task, sign in signs.items() if sign < 0),
        tied=tuple(task for task, sign in signs.items() if sign == 0),
        knobs=differences_by_knob(levels, before, after) if shared else (),
        seeds=seeds,
        start=_start(base, known, other, its),
    )


def _start(
    base: Contender, known: list[CandidateEvaluation], other: Contender, its: list[CandidateEvaluation]
) -> SuccessDifference | None:
    """Return how far apart the two were before reinforcement; None where this is not known of all."""
    a, b = ([e.before for e in found if e.before is not None] for found in (known, its))
    if len(a) != len(known) or len(b) != len(its):
        return None
    if len(a) > 1 and len(b) > 1:
        sides = ((base, a), (other, b))
        return difference_over_seeds(
            *(side.by_seed([e.success.mean for e in found]) for side, found in sides)
        )
    before, after = pooled_results(a), pooled_results(b)
    if before.keys() & after.keys():
        return paired_difference(before, after)
    return unpaired_difference(mean_success(a), mean_success(b))


def _standing(side: Contender, its: list[CandidateEvaluation]) -> Standing:
    starts = [evaluation.before for evaluation in its if evaluation.before is not None]
    return Standing(
        side.label,
        len(its),
        mean_success(its),
        mean_success(starts) if len(starts) == len(its) else None,
        _mean([evaluation.mean_score for evaluation in its]),
        _mean([evaluation.turns for evaluation in its]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _key(source: Source | Sequence[Source]) -> str:
    return os.path.normpath(source) if isinstance(source, (str, Path)) else str(id(source))


def _with_short_labels(contenders: Sequence[Contender]) -> list[Contender]:
    """The labels without the folders that all of them share; equal ones are numbered."""
    labels = [side.label for side in contenders]
    parts = [label.split("/") for label in labels]
    alike = [len(set(names)) == 1 for names in zip(*(names[:-1] for names in parts), strict=False)]
    shared = (*alike, False).index(False)
    short = ["/".join(names[shared:]) for names in parts]
    numbered = [
        f"{label} ({short[:place].count(label) + 1})" if short.count(label) > 1 else label
        for place, label in enumerate(short)
    ]
    return [dataclasses.replace(side, label=label) for side, label in zip(contenders, numbered, strict=True)]


def _plain(value: Any) -> Json:
    """Dataclasses and tuples as JSON."""
    if isinstance(value, SuccessDifference):
        return value.to_json()
    if isinstance(value, Contrast):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return fields | {"significant": value.significant}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and (as_dict := getattr(value, "_asdict", None)):
        return {name: _plain(item) for name, item in as_dict().items()}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
