"""Writes JSONL sets in the shapes in which TRL, verl and plain rewards want them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from .kinds import SOUND, Draft, PlantedTask, Row
from .sources import CONVENTIONS, PLAIN, TRL, VERL, reward_file

Json = Mapping[str, Any]


def write_set(root: Path, number: int, draft: Draft, rng: Random) -> Iterator[PlantedTask]:
    """Write a set to ``root``; what is true of its tasks."""
    convention = draft.convention or rng.choice(CONVENTIONS)
    folder = root / "jsonl" / f"{draft.topic}-{number:03d}"
    folder.mkdir(parents=True)
    (folder / "reward.py").write_text(reward_file(draft, convention))
    for name, text in draft.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    train, test = _shuffled(draft.train, rng), _shuffled(draft.rows, rng)
    originals = {row.twin for row in (*train, *test)}
    files = (("train.jsonl", train), ("test.jsonl", test)) if train else (("tasks.jsonl", test),)
    ids = {row.key: f"{draft.topic}-{number:03d}-{at:02d}" for at, row in enumerate((*train, *test))}
    for name, rows in files:
        lines = [json.dumps(columns(row, ids[row.key], convention, name.split(".")[0])) for row in rows]
        (folder / name).write_text("\n".join(lines) + "\n")
        path = f"jsonl/{folder.name}/{name}"
        for row in rows:
            if row.kind != SOUND or row.key not in originals:
                twin = ids[row.twin] if row.twin else ""
                gold = row.gold or row.answer
                yield PlantedTask(
                    path, f"jsonl/{convention}", ids[row.key], row.kind, row.mechanism, gold, twin
                )


def _shuffled(rows: Sequence[Row], rng: Random) -> list[Row]:
    return rng.sample(list(rows), len(rows))


def columns(row: Row, name: str, convention: str, split: str) -> Json:
    """The columns of a row in a convention."""
    worked = {"solution": row.gold} if row.gold and row.shown else {}
    if convention == VERL:
        system = [{"role": "system", "content": row.system}] if row.system else []
        return {
            "id": name,
            "data_source": row.source or name.rpartition("-")[0],
            "prompt": [*system, {"role": "user", "content": row.prompt}],
            "reward_model": {"style": "rule", "ground_truth": row.answer},
            "extra_info": {
                "split": "train" if split == "tasks" else split,
                "index": int(name[-2:]),
                **worked,
            },
        }
    asked: Any = (
        [{"role": "user", "content": row.prompt}] if convention == TRL and name[-1] in "02468" else row.prompt
    )
    return {"id": name, "prompt": asked, "answer": row.answer, **worked}


__all__ = ["PLAIN", "columns", "write_set"]
