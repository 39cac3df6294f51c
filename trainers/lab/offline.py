"""``turnwise credit-quality --episodes-log``: what each saved turn would have been given by other rules."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import torch

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import Record
from turnwise.errors import TurnwiseError
from turnwise.registry import components, get_component
from turnwise.tasks.core import Json
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.lab.truth import with_signals


@dataclass(frozen=True)
class Offline:
    """The advantages that rules give to saved episodes, as the rows of a table.

    Attributes:
        rules: one row per rule: how it agrees with what was logged, its size, its cost.
        episodes: every turn with its action, its reward, what was logged, and what each rule gives it.
        left_out: rules that need a signal which the log does not hold.
    """

    rules: list[dict[str, Json]]
    episodes: list[dict[str, Json]]
    left_out: dict[str, list[str]]

    def to_json(self) -> dict[str, Json]:
        return {"rules": self.rules, "episodes": self.episodes, "left_out": self.left_out}


def swap_credit(path: Path, rules: Sequence[str] = (), *, most: int = 512) -> Offline:
    """Recompute the advantages of the last ``most`` episodes of a log by each rule.

    Groups are those of the log; episodes that were saved outside training are grouped by task.

    Raises:
        TurnwiseError: the log is missing, damaged, or holds no episode that counts.
    """
    records = [record for record in LogReader(path) if record.episode.outcome.counts][-most:]
    if not records:
        raise TurnwiseError(f"{path} holds no episode that counts.", "Play or train first.")
    records.sort(key=_group)
    groups = [list(found) for _, found in groupby(records, _group)]
    batch = with_signals([[record.episode for record in group] for group in groups])
    logged_N = np.array([a for record in records for a in _logged(record)])
    given: dict[str, torch.Tensor] = {}
    rows: list[dict[str, Json]] = []
    left_out: dict[str, list[str]] = {}
    for entry in [get_component("credit", name) for name in rules] or components("credit"):
        missing = sorted(entry.needs_with({}) - batch.measured)
        if missing:
            left_out[entry.name] = missing
            continue
        began = time.perf_counter()
        advantage_BK = on_turns(entry.build({})(batch), batch)
        seconds = time.perf_counter() - began
        given[entry.name] = advantage_BK
        flat_N = advantage_BK[batch.mask_BK].numpy()
        rows.append(
            {
                "rule": entry.name,
                "correlation_with_logged": _correlation(flat_N, logged_N),
                "mean_size": round(float(np.abs(flat_N).mean()), 6),
                "share_zero": round(float((np.abs(flat_N) < 1e-9).mean()), 4),
                "milliseconds_per_1000_turns": round(1e6 * seconds / len(flat_N), 3),
            }
        )
    episodes = [_episode(record, b, given) for b, record in enumerate(records)]
    return Offline(rows, episodes, left_out)


def _group(record: Record) -> tuple[int, int, str]:
    update = -1 if record.update is None else record.update
    return update, -1 if record.group is None else record.group, record.episode.task.id


def _logged(record: Record) -> Sequence[float]:
    """Return the credit that the run gave each turn; NaN where nothing is recorded."""
    return record.given or [float("nan")] * len(record.episode.trajectory.turns)


def _correlation(a_N: np.ndarray, b_N: np.ndarray) -> float | None:
    """Pearson's, over the turns of which the log knows an advantage; None where either is constant."""
    both = np.isfinite(b_N)
    a_N, b_N = a_N[both], b_N[both]
    if len(a_N) < 2 or a_N.std() < 1e-9 or b_N.std() < 1e-9:
        return None
    return round(float(np.corrcoef(a_N, b_N)[0, 1]), 4)


def _episode(record: Record, b: int, given: dict[str, torch.Tensor]) -> dict[str, Json]:
    episode = record.episode
    trajectory = episode.trajectory
    logged = record.given or [None] * len(trajectory.turns)
    turns = [
        {
            "action": str(turn.action)[:200],
            "reward": turn.reward,
            "logged": logged[k],
            "credit": {name: round(x[b, k].item(), 6) for name, x in given.items()},
        }
        for k, turn in enumerate(trajectory.turns)
    ]
    where = {"update": record.update, "group": record.group, "task": episode.task.id, "seed": episode.seed}
    return {**where, "end": episode.end and episode.end.value, "turns": turns}
