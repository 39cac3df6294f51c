"""``turnwise bench update RUN``: the last update of a run, played and learned again by Turnwise and by TRL.

A model that has learned ends its messages and its episodes, so turns are ragged and siblings share more of what they say than
those of the model by chance that :mod:`turnwise.trainers.bench.update` measures. Here both sides hold the run's best model and go over
the run's last update again and again: they **play** its tasks, each by its own sampling, and then **learn the log**, which is the same tokens, groups
and rewards for both, by GRPO's advantages and PPO's clipped loss in as many optimizer steps. The learning rate is so small that the
model stays what it is. What a side happens to sample differs by chance, so seconds of play are scaled to the tokens that the log has.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch

from turnwise.agents.core import Episode, Sampling
from turnwise.agents.engines.registry import open_engine
from turnwise.agents.models.loading import load_config, load_tokenizer, longest_sequence
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.errors import RunError, TurnwiseError
from turnwise.registry import get_component
from turnwise.tasks.core import Task
from turnwise.trainers.bench.apart import Apart
from turnwise.trainers.bench.laps import RECIPE, TRL, UpdateLap, UpdateWorkload, middle, token_ratio
from turnwise.trainers.bench.prefix_batches import best_of, last_groups
from turnwise.trainers.bench.trl_update import Rollouts, told_to_trl, trl_updates
from turnwise.trainers.learn.collate import collate, collate_rows
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import choose_device, load_model
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.run.learning import learning_setup

STILL = 1e-12
"""A learning rate that costs what any does and moves no weight."""
PLAYED_ALIKE = 0.1
"""By how much the tokens that two sides sample from the same model may differ."""
LEARNS: Mapping[str, Any] = {
    "credit": "grpo", "loss": ["clip"], "reduce": "token_mean", "optimizer.learning_rate": STILL
}  # fmt: skip


class LoggedUpdate(NamedTuple):
    """What both sides are given: groups of a log, of equal size, and the model's folder; tokens without padding."""

    file: Path
    groups: list[list[Episode]]
    model: Path
    sampled: int
    read: int


def bench_log(logged: LoggedUpdate, load: UpdateWorkload, *, repeats: int = 2) -> dict[str, BenchmarkFigure]:
    """Seconds of playing and learning a run's last update, and ratios; medians over rounds, spread = largest − smallest.

    * ``log_torch``, ``log_vllm``: Turnwise with this engine in process: ``…_play``, ``…_learn`` and ``…_push``, and their sum.
    * ``log_trl_transformers``: TRL, ``…_play`` and ``…_learn``, and their sum.
    * ``log_times_trl_ENGINE``: TRL's sum divided by Turnwise's of the same round; ``…_learn`` of learning alone.
    * ``log_sampled``, ``log_read``: tokens of the log's update, of the policy and in all.
    * ``log_token_ratio``: the latter divided by the distinct prefixes of each group.

    Raises:
        RunError: the sides did not sample about as much.
    """
    own = load._replace(groups=len(logged.groups), group_size=len(logged.groups[0]))
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder, ExitStack() as stack:
        sides = [*own.engines, *([TRL] if own.trl else [])]
        processes = {side: stack.enter_context(Apart()) for side in sides}
        rounds = [_round(Path(folder, str(i)), logged, own, processes) for i in range(repeats)]
    return {name: _figure([one[name] for one in rounds], _unit(name)) for name in rounds[0]}


def logged_update(file: Path) -> LoggedUpdate:
    """Read the last update of a log.

    Raises:
        TurnwiseError: its groups are not alike, or an episode has several rows.
    """
    groups = last_groups(file)
    rows = collate_rows([episode.trajectory for group in groups for episode in group])
    episodes = sum(map(len, groups))
    if {len(group) for group in groups} != {len(groups[0])} or len(rows.length_R) != episodes:
        raise TurnwiseError(
            f"The last update of {file} has groups of several sizes, or episodes of several rows, which TRL cannot be given.",
            "turnwise bench update runs/quickstart, after make quickstart",
        )
    return LoggedUpdate(file, groups, best_of(file), int(rows.mask_RT.sum()), int(rows.length_R.sum()))


def _round(
    out: Path, logged: LoggedUpdate, load: UpdateWorkload, processes: Mapping[str, Apart]
) -> dict[str, float]:
    figures = {"log_sampled": float(logged.sampled), "log_read": float(logged.read)}
    figures["log_token_ratio"] = token_ratio(logged.groups)
    laps = {kind: processes[kind].call(our_updates, logged.file, kind, load) for kind in load.engines}
    if load.trl:
        tasks = [group[0].task for group in logged.groups] * (load.skipped + load.updates)
        given = functools.partial(
            trl_updates, rollouts=functools.partial(LoggedRollouts, logged.file), learning_rate=STILL
        )
        laps[TRL] = [*processes[TRL].call(given, RECIPE, logged.model, out, tasks, load).laps]
    check_played(laps)
    for side, own in laps.items():
        figures |= _parts(f"log_{side}", own, logged.sampled)
    if load.trl:
        for kind in load.engines:
            for part in ("", "_learn"):
                figures[f"log_times_trl_{kind}{part}"] = (
                    figures[f"log_{TRL}{part}"] / figures[f"log_{kind}{part}"]
                )
    return figures


def check_played(laps: Mapping[str, Sequence[UpdateLap]]) -> None:
    """Refuse to compare sides that did not play alike.

    Raises:
        RunError: a side sampled more than :data:`PLAYED_ALIKE` fewer tokens than another.
    """
    sampled = {side: middle(own, "sampled") for side, own in laps.items()}
    if min(sampled.values()) < (1 - PLAYED_ALIKE) * max(sampled.values()):
        said = ", ".join(f"{side} {count:g}" for side, count in sampled.items())
        raise RunError(
            f"The sides sampled unlike numbers of tokens ({said}): their times compare nothing.",
            "Report it: the benchmark means them to play alike.",
        )


def _parts(name: str, laps: Sequence[UpdateLap], sampled: int) -> dict[str, float]:
    """Seconds of a side: of play for as many tokens as the log has."""
    play = statistics.median(lap.play_s * sampled / lap.sampled for lap in laps)
    parts = {f"{name}_play": play, f"{name}_learn": middle(laps, "learn_s")}
    if any(lap.push_s for lap in laps):
        parts[f"{name}_push"] = middle(laps, "push_s")
    return {name: sum(parts.values()), **parts}


# --- Turnwise's side -----------------------------------------------------------------------------------


def our_updates(file: Path, kind: str, load: UpdateWorkload) -> list[UpdateLap]:
    """Play a log's last update by an engine in this process, learn the log and push the weights, several times."""
    torch.set_num_threads(load.threads)
    logged, setup = logged_update(file), learning_setup(RECIPE, LEARNS)
    model: Any = load_model(logged.model, choose_device("auto"))
    learner = Learner(model, setup.optimizer, temperature=setup.temperature)
    room = longest_sequence(load_config(logged.model)) or 2048
    tasks = [episode.task for group in logged.groups for episode in group]
    engine = open_engine(kind, str(logged.model), context_length=room, max_sequences=len(tasks))
    renderer = Renderer(load_tokenizer(logged.model), tools_format=setup.tools)
    policy = ModelPolicy(engine, renderer, Sampling(setup.temperature, 1.0, setup.max_tokens))
    rule, laps = get_component("credit", "grpo").build({}), list[UpdateLap]()
    try:
        for number in range(load.skipped + load.updates):
            start = time.perf_counter()
            first = number * len(tasks)
            requests = [Request(task, first + i) for i, task in enumerate(tasks)]
            played = run_episodes(requests, policy, concurrency=len(tasks), retries=0)
            learns = time.perf_counter()
            batch = collate(logged.groups)
            learner.update(batch, rule(batch.turns), setup.objective)
            pushes = time.perf_counter()
            push_weights(model, engine, number + 1)
            end = time.perf_counter()
            seconds = end - start, learns - start, pushes - learns, end - pushes
            laps.append(UpdateLap(*seconds, *_counts(played), setup.optimizer.minibatches))
    finally:
        engine.close()
    return laps[load.skipped :]


def _counts(episodes: Sequence[Episode]) -> tuple[int, int, int, int]:
    """Count episodes, turns, sampled tokens, all tokens."""
    rows = collate_rows([episode.trajectory for episode in episodes])
    turns = sum(len(episode.trajectory.turns) for episode in episodes)
    return len(episodes), turns, int(rows.mask_RT.sum()), int(rows.length_R.sum())


# --- TRL's side ----------------------------------------------------------------------------------------


class LoggedRollouts(Rollouts):
    """Plays as ever, and hands TRL a log's last update to learn in place of what was played."""

    def __init__(self, file: Path, tasks: Sequence[Task], renderer: Renderer, sampling: Sampling) -> None:
        super().__init__(tasks, renderer, sampling)
        self.logged = [episode for group in logged_update(file).groups for episode in group]

    def _told(self, episodes: Sequence[Episode]) -> dict[str, Any]:
        self.counts.append(_counts(episodes))
        return told_to_trl(collate_rows([episode.trajectory for episode in self.logged]), self.logged)


# --- figures -------------------------------------------------------------------------------------------


def _unit(name: str) -> str:
    if "token_ratio" in name or "times_trl" in name:
        return "×"
    return "tokens" if name in ("log_sampled", "log_read") else "s"


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
