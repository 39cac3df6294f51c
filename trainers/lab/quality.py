"""``turnwise credit-quality``: every credit rule on the same episodes, against the truth."""

from __future__ import annotations

import itertools
import re
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.registry import make_policy
from turnwise.errors import TurnwiseError
from turnwise.registry import Component, components, get_component
from turnwise.tasks.core import Json
from turnwise.trainers.lab.score import FIGURES, MEDIANS, BatchScore, Draws, bootstrap, score_rule
from turnwise.trainers.lab.true_turns import true_group
from turnwise.trainers.lab.truth import TrueAdvantageBatch, logged_batch, process_batches, suite_batch
from turnwise.trainers.report.turns import TrueGroup

STAGES = (
    "mix:demonstrator=0.2,random=0.8",
    "mix:demonstrator=0.5,random=0.5",
    "mix:demonstrator=0.8,random=0.2",
)
"""Policies of rising skill, where none are given."""
BRANCHES = (1, 2)  # the turns at which trees go on in two ways
DRAWS = 400
Log = Callable[[str], None]


class Scale(NamedTuple):
    """The size of the benchmark: how many episodes are played and how often each state is forked.

    ``groups`` tasks of ``size`` episodes each per policy; ``forks`` of every state for the truth and
    ``vine_forks`` for the signal ``fork_value``; ``process_groups`` groups on each process and stage.
    """

    groups: int = 16
    size: int = 8
    forks: int = 24
    vine_forks: int = 4
    process_groups: int = 48


class LoggedStage(NamedTuple):
    """Groups of a run's log, and the policy of the checkpoint that sampled them."""

    policy: str
    groups: tuple[tuple[Episode, ...], ...]


class LoggedRun(NamedTuple):
    """Episodes that a run logged at some of its checkpoints: a source of its own beside suites."""

    source: str
    stages: tuple[LoggedStage, ...]
    env_options: Mapping[str, Any]


class ScoreInterval(NamedTuple):
    """A figure with its 95 % bootstrap interval over groups; NaN where it is not defined."""

    value: float
    low: float
    high: float

    def to_json(self) -> Json:
        return [round(x, 4) if np.isfinite(x) else None for x in self] if np.isfinite(self.value) else None


@dataclass(frozen=True)
class RuleScore:
    """A rule on all batches of one source."""

    rule: Component
    source: str
    figures: dict[str, ScoreInterval]
    by_stage: dict[str, dict[str, ScoreInterval]]
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
    """Results of the benchmark: a score per rule and source, the batches, and rules that could not be given them."""

    scores: list[RuleScore]
    batches: list[dict[str, Json]]
    left_out: dict[str, dict[str, list[str]]]  # source → rule → missing signals
    seconds: float
    shown: tuple[TrueGroup, ...] = ()  # one group of each suite and stage, turn by turn

    def of(self, source: str) -> list[RuleScore]:
        """The scores of one source, best correlation first."""
        found = [score for score in self.scores if score.source == source]
        return sorted(found, key=lambda score: -score.figures["correlation"].value)

    def stages(self, source: str) -> list[str]:
        """The policies that played a source, in order."""
        return [str(true_batch["stage"]) for true_batch in self.batches if true_batch["source"] == source]

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(score.source for score in self.scores))

    def to_json(self) -> dict[str, Json]:
        return {
            "figures": dict(FIGURES),
            "batches": self.batches,
            "scores": [score.to_json() for score in self.scores],
            "left_out": self.left_out,
            "seconds": round(self.seconds, 1),
        }


def credit_quality(
    suites: Sequence[str] = ("shop/easy",),
    policies: Sequence[str] = STAGES,
    *,
    run: LoggedRun | None = None,
    rules: Sequence[str] = (),
    show: Sequence[str] = (),
    processes: bool = True,
    trees: bool = True,
    scale: Scale | None = None,
    seed: int = 0,
    log: Log = lambda line: None,
) -> Report:
    """Score the rules (all without ``rules``) on the processes and on ``suites`` played by ``policies``.

    With ``trees`` each suite is also played in episodes that branch, which rules for trees are made for. Of a ``run`` nothing is
    played anew: its episodes are forked as they were logged. ``show`` are the rules that get columns where turns are shown.

    Raises:
        NotFoundError: a rule, suite or policy is unknown.
        TurnwiseError: episodes failed.
    """
    began, scale = time.monotonic(), scale or Scale()
    entries = [get_component("credit", name) for name in rules] or components("credit")
    for name in show:
        get_component("credit", name)
    scores: list[RuleScore] = []
    described: list[dict[str, Json]] = []
    left_out: dict[str, dict[str, list[str]]] = {}
    shown: list[TrueGroup] = []
    logged = _logged(run, scale, log) if run else ()
    for true_batches in [*_sources(suites, policies, processes, trees, scale, seed, log), *logged]:
        source = true_batches[0].source
        described += [_describe(true_batch) for true_batch in true_batches]
        weights = [bootstrap(int(e.turns.group_B.max()) + 1, DRAWS, seed) for e in true_batches]
        given: list[dict[str, BatchScore]] = [{} for _ in true_batches]
        for entry in entries:
            missing = sorted(entry.needs_with({}) - true_batches[0].turns.measured)
            if missing:
                left_out.setdefault(source, {})[entry.name] = missing
                continue
            credit = entry.build({})
            grades = [
                score_rule(credit, true_batch, w) for true_batch, w in zip(true_batches, weights, strict=True)
            ]
            scores.append(_score(entry, true_batches, grades))
            for found, of_batch in zip(given, grades, strict=True):
                found[entry.name] = of_batch
        if source in suites or (run and source == run.source):
            pairs = zip(true_batches, given, strict=True)
            shown += [true_group(true_batch, grades, scale.forks, show) for true_batch, grades in pairs]
        log(f"{source}: {len(true_batches)} batches scored after {time.monotonic() - began:.0f} s")
    return Report(scores, described, left_out, time.monotonic() - began, tuple(shown))


def _sources(
    suites: Sequence[str],
    policies: Sequence[str],
    processes: bool,
    trees: bool,
    scale: Scale,
    seed: int,
    log: Log,
) -> Iterable[list[TrueAdvantageBatch]]:
    if processes:
        yield list(process_batches(scale.process_groups, scale.size, scale.vine_forks, seed))
    for suite, branch_at in itertools.product(suites, ((), BRANCHES) if trees else ((),)):
        true_batches: list[TrueAdvantageBatch] = []
        for spec in policies:
            policy = make_policy(spec)
            try:
                true_batches.append(
                    suite_batch(
                        suite, policy, groups=scale.groups, size=scale.size,
                        forks=scale.forks, vine_forks=scale.vine_forks, seed=seed, branch_at=branch_at,
                    )
                )  # fmt: skip
            finally:
                policy.close()
            log(f"{true_batches[-1].source}: {spec} played and forked")
        yield true_batches


def _logged(run: LoggedRun, scale: Scale, log: Log) -> Iterable[list[TrueAdvantageBatch]]:
    found: list[TrueAdvantageBatch] = []
    for stage in run.stages:
        policy = make_policy(stage.policy)
        try:
            found.append(
                logged_batch(
                    run.source, policy, stage.groups,
                    forks=scale.forks, vine_forks=scale.vine_forks, env_options=run.env_options,
                )
            )  # fmt: skip
        finally:
            policy.close()
        log(f"{run.source}: forked as {stage.policy} played it")
    yield found


def _describe(true_batch: TrueAdvantageBatch) -> dict[str, Json]:
    turns = true_batch.turns
    return {
        "source": true_batch.source,
        "stage": true_batch.stage,
        "episodes": len(turns.group_B),
        "groups": int(turns.group_B.max()) + 1,
        "turns": int(turns.mask_BK.sum()),
        "mean_return": round(turns.return_B.mean().item(), 4),
        "truth_std": round(true_batch.truth_BK[turns.mask_BK].std().item(), 4),
        "reliability": round(true_batch.reliability, 4),
        "signals": sorted(turns.measured),
    }


def _score(
    entry: Component, true_batches: Sequence[TrueAdvantageBatch], grades: Sequence[BatchScore]
) -> RuleScore:
    """The mean over batches of each figure; draws are averaged before the interval is taken."""
    names = list(grades[0].figures)
    pooled = {name: interval(_pooled(name, [g.figures[name] for g in grades])) for name in names}
    by_stage = {
        true_batch.stage: {name: interval(draws) for name, draws in g.figures.items()}
        for true_batch, g in zip(true_batches, grades, strict=True)
    }
    turns = sum(int(true_batch.turns.mask_BK.sum()) for true_batch in true_batches)
    forks = "fork_value" in entry.needs
    steps, tokens = (
        sum(getattr(true_batch.cost, name) for true_batch in true_batches) for name in ("steps", "tokens")
    )
    more_steps, more_tokens = (
        sum(getattr(true_batch.fork_cost, name) for true_batch in true_batches) * forks
        for name in ("steps", "tokens")
    )
    return RuleScore(
        entry,
        true_batches[0].source,
        pooled,
        by_stage,
        round(more_steps / max(steps, 1), 3),
        round(more_tokens / max(tokens, 1), 3),
        1e6 * sum(g.seconds for g in grades) / turns,
    )


def _pooled(name: str, draws: Sequence[Draws]) -> Draws:
    """The mean over batches, or the median where single ones may be without bounds."""
    stacked = np.stack(draws)
    if name not in MEDIANS:
        return stacked.mean(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all NaN, or inf − inf between two
        return np.nanmedian(stacked, axis=0)


def stage_labels(stages: Sequence[str]) -> list[str]:
    """The names of stages without their common prefix and suffix.

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


def logged_run(run: Path, groups: int, env_options: Mapping[str, Any]) -> LoggedRun:
    """The first ``groups`` whole groups that each of the run's checkpoints sampled, of at most four checkpoints.

    Raises:
        TurnwiseError: the run has no checkpoints, or kept no episodes of theirs.
    """
    by_version: dict[int, dict[int, list[Episode]]] = defaultdict(lambda: defaultdict(list))
    for record in LogReader(run / "episodes.jsonl.zst"):
        versions = {span.version for turn in record.episode.trajectory.turns for span in turn.reply.versions}
        if record.group is not None and len(versions) == 1:
            by_version[versions.pop()][record.group].append(record.episode)
    stages: list[LoggedStage] = []
    for policy in checkpoints(run):
        of_step = by_version[int(re.findall(r"step-(\d+)", policy)[-1])]
        whole = [tuple(group) for group in of_step.values() if all(one.outcome.counts for one in group)]
        if whole:
            stages.append(LoggedStage(policy, tuple(whole[:groups])))
    if not stages:
        raise TurnwiseError(
            f"{run} keeps no episodes that one of its checkpoints sampled.",
            "Keep them (log.keep: all, checkpoint.keep), or have fresh ones played: --suite NAME.",
        )
    return LoggedRun(f"{run.resolve().name}, as logged", tuple(stages), env_options)


def interval(draws: Draws) -> ScoreInterval:
    """The figure on the whole and the middle 95 % of its draws."""
    usual = draws[1:][~np.isnan(draws[1:])]
    if not np.isfinite(draws[0]) or not len(usual):
        return ScoreInterval(float("nan"), float("nan"), float("nan"))
    low, high = np.quantile(usual, [0.025, 0.975], method="nearest")
    return ScoreInterval(float(draws[0]), float(low), float(high))
