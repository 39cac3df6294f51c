"""Episode logs as Parquet: one row per turn, for notebooks and SQL engines.

Parquet's text is UTF-8, which has no half of a surrogate pair; where an observation or a reply holds one, it
stands there as it stands in the log: escaped, ``\\ud800``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import Record
from turnwise.errors import TurnwiseError

_EPISODES_PER_GROUP = 256

SCHEMA = pa.schema(
    [
        ("episode", pa.int64()),
        ("task_id", pa.string()),
        ("env", pa.string()),
        ("seed", pa.int64()),
        ("policy", pa.string()),
        ("update", pa.int64()),
        ("group", pa.int64()),
        ("outcome", pa.string()),
        ("end", pa.string()),
        ("score", pa.float64()),
        ("agent", pa.string()),
        ("turn", pa.int32()),
        ("observation", pa.string()),
        ("action", pa.string()),
        ("reward", pa.float64()),
        ("rewards", pa.map_(pa.string(), pa.float64())),
        ("advantage", pa.float64()),
        ("state_key", pa.string()),
        ("bad_action", pa.bool_()),
        ("kind", pa.string()),
        ("prompt_ids", pa.list_(pa.int32())),
        ("action_ids", pa.list_(pa.int32())),
        ("logprobs", pa.list_(pa.float64())),
        ("entropies", pa.list_(pa.float64())),  # null: not measured
        ("version", pa.int64()),
        ("source", pa.string()),
        ("weight", pa.float64()),
    ]
)


def to_parquet(log: Path | str, parquet: Path | str | None = None) -> Path:
    """Write a log's turns beside it (``episodes.jsonl.zst`` → ``episodes.parquet``), or to ``parquet``.

    The file is written aside and renamed, so that a reader never meets half of one.

    Raises:
        TurnwiseError: the log is missing or damaged, or the disk is full.
    """
    log = Path(log)
    target = Path(parquet) if parquet else log.with_name(log.name.partition(".")[0] + ".parquet")
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with pq.ParquetWriter(aside, SCHEMA, compression="zstd") as writer:
            records = enumerate(LogReader(log))
            while batch := list(islice(records, _EPISODES_PER_GROUP)):
                writer.write_table(_table(batch))
        aside.replace(target)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise _too_large(f"{log} cannot be written as Parquet", error) from error
    except OSError as error:
        raise TurnwiseError(
            f"Cannot write {target}: {error.strerror or error}.", "Free disk space and try again."
        ) from error
    finally:
        aside.unlink(missing_ok=True)
    return target


def to_table(records: Iterable[tuple[int, Record]]) -> pa.Table:
    """One row per turn of numbered records, in memory.

    Raises:
        TurnwiseError: a number is beyond what its column can hold.
    """
    try:
        return _table(records)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise _too_large("The episodes cannot be written as a table", error) from error


def _table(records: Iterable[tuple[int, Record]]) -> pa.Table:
    rows = [_writable(row) for number, record in records for row in _rows(number, record)]
    return pa.Table.from_pylist(rows, SCHEMA)


def _too_large(what: str, error: Exception) -> TurnwiseError:
    return TurnwiseError(
        f"{what}: {' '.join(str(error).split())}.",
        "Seeds and versions have at most 63 bits there, token ids 31; the log itself is whole.",
    )


def _writable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _escaped(value) for name, value in row.items()}


def _escaped(value: Any) -> Any:
    """Text, alone or as a reward part's name, without what UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):  # reward parts
        return [(_escaped(name), amount) for name, amount in value]
    return value


def _rows(number: int, record: Record) -> Iterator[dict[str, Any]]:
    episode = record.episode
    common = {
        "episode": number,
        "task_id": episode.task.id,
        "env": episode.task.env,
        "seed": episode.seed,
        "policy": record.policy,
        "update": record.update,
        "group": record.group,
        "outcome": episode.outcome.value,
        "end": episode.end and episode.end.value,
    }
    for agent, trajectory in episode.trajectories.items():
        advantages = dict(enumerate(record.advantages.get(agent, ())))
        entropies = dict(enumerate(record.entropies.get(agent, ())))
        for index, turn in enumerate(trajectory.turns):
            yield common | {
                "score": trajectory.score,
                "agent": agent,
                "turn": index,
                "observation": str(turn.observation),
                "action": str(turn.action),
                "reward": float(turn.reward),
                "rewards": list(turn.rewards.items()),
                "advantage": advantages.get(index),
                "state_key": turn.state_key,
                "bad_action": turn.bad_action,
                "kind": turn.kind,
                "prompt_ids": turn.reply.prompt_ids,
                "action_ids": turn.reply.action_ids,
                "logprobs": turn.reply.logprobs,
                "entropies": entropies.get(index) or None,
                "version": turn.reply.versions[-1].version if turn.reply.versions else None,
                "source": turn.reply.source,
                "weight": turn.weight,
            }
