"""What constant play earns under a run's reward, against what the policy earned at its start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.statistics import clustered_mean
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, rollout
from turnwise.errors import RecipeError, TurnwiseError
from turnwise.registry import get_component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit
from turnwise.trainers.audit.running import AuditedRuns
from turnwise.trainers.compare.sources import RunRecords
from turnwise.trainers.report.records import EPISODES

SCRIPTS = ("null", "constant", "random")


@audit(259)
def constants(played: AuditedRuns, *, tasks: int = 32, runs: int = 2) -> AuditFinding:
    """The pay of constant and of random play on the tasks of the first update, against the policy's own (the reward of ATS).

    Harsh penalties made the paper's model refuse everybody: a constant answer earned more than trying. Here the environment's
    trivial scripts play the tasks of the run's first update with its options, are paid by its reward, and are compared with what its
    log says that the policy earned there, after the warm start and before reinforcement. None may earn more.

    A reward that compares siblings sees a script's episodes alone; one that needs a signal cannot be paid here. Ours: the paired test.

    By hand, in tests/audit/test_constants.py: a penalty of 2 for each turn, under which a policy that tries loses to one that does nothing.

    Args:
        tasks: of the first update, at most.
        runs: of each script on each.
    """
    run = played.one("the pay of constant play")
    start = _start(run, tasks)
    reward = _reward(run)
    before = {task: tuple(e.trajectory.total_reward for e in group) for task, group in start.items()}
    rows: list[Sequence[Cell]] = []
    own = clustered_mean(
        [x for its in before.values() for x in its], [t for t, its in before.items() for _ in its]
    )
    figures = [AuditFigure("pay of the start", own.mean, own.interval)]
    said: list[str] = []
    for name in SCRIPTS:
        found = asyncio.run(
            _play(name, {task: group[0] for task, group in start.items()}, runs, _options(run))
        )
        paid = {
            task: tuple(e.trajectory.total_reward for e in reward(group))
            for task, group in found.items()
            if group
        }
        if not paid:
            raise TurnwiseError(
                f"No episode of scripted:{name} counts in {run.suite}.",
                "See why: `turnwise eval SUITE --policy scripted:null`.",
            )
        difference = paired_difference({t: before[t] for t in paid}, paid)
        figures.append(AuditFigure(f"{name} less start", difference.difference, difference.interval))
        rows.append((name, len(paid), difference.before, difference.after, difference.test))
        if difference.difference > 0:
            sure = "significantly" if difference.significant else "by chance perhaps"
            said.append(
                f"{name} play earns more than the policy did at its start ({sure}): this reward teaches to do nothing"
            )
    if not said:
        said = ["no trivial script earns more than the policy did at its start"]
    return AuditFinding(
        figures, [AuditTable("pay", ("script", "tasks", "start", "script's", "test"), rows)], said=said
    )


def _start(run: RunRecords, tasks: int) -> dict[str, list[Episode]]:
    """The counting episodes of the first update, by task."""
    found: dict[str, list[Episode]] = {}
    for record in LogReader(run.path / EPISODES):
        if record.update != 1:
            break
        if record.episode.outcome.counts and (record.episode.task.id in found or len(found) < tasks):
            found.setdefault(record.episode.task.id, []).append(record.episode)
    if not found:
        raise TurnwiseError(
            f"The log of {run.path} does not begin with its first update, so that the pay of the start is unknown.",
            "Keep all episodes (`log` in the recipe), and train anew.",
        )
    return found


def _reward(run: RunRecords) -> Callable[[list[Episode]], list[Episode]]:
    """The rewards of the run's frozen recipe, one after the other."""
    given = run.recipe.get("reward", "as_is")
    built: list[Callable[[list[Episode]], list[Episode]]] = []
    for part in given if isinstance(given, list) else [given]:
        options: dict[str, Any] = dict(part) if isinstance(part, dict) else {"name": part}
        entry = get_component("reward", str(options.pop("name", "")))
        if asked := entry.needs_with(options):
            raise RecipeError(
                f"The reward {entry.name} of {run.path} pays {', '.join(sorted(asked))}, which scripts have not.",
                "Audit a run whose reward reads the environment's own.",
            )
        built.append(entry.build(options))

    def paid(group: list[Episode]) -> list[Episode]:
        for one in built:
            group = list(one(group))
        return group

    return paid


def _options(run: RunRecords) -> dict[str, Any]:
    rollouts = run.recipe.get("rollout")
    return dict(rollouts.get("env_options") or {}) if isinstance(rollouts, dict) else {}


async def _play(
    script: str, tasks: Mapping[str, Episode], runs: int, options: Mapping[str, Any]
) -> dict[str, list[Episode]]:
    asked = [
        Request(episode.task, derive_rng("constants", script, task, n).getrandbits(62))
        for task, episode in tasks.items()
        for n in range(runs)
    ]
    played: dict[str, list[Episode]] = {task: [] for task in tasks}
    for episode in await rollout(asked, scripted(script), retries=0, env_options=options):
        if episode.outcome.counts and episode.trajectory.turns:
            played[episode.task.id].append(episode)
    return played
