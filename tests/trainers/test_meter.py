"""What parts take, in tokens: counted anew from a run's log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.trainers.run.loop import train

SHORT: dict[str, Any] = {
    "warm_start": None,
    "credit": "gae",
    "filter": "any",
    "updates": 2,
    "optimizer": {"learning_rate": 1e-3},
    "evaluate": {"every": 2, "dev": 2, "test": 2},
}


def read(episode: Episode) -> int:
    """The length of an episode's only row: what it was told and what it said."""
    (said,) = episode.trajectories.values()
    return sum(len(turn.reply.prompt_ids) + len(turn.reply.action_ids) for turn in said.turns)


def learned(recipe: dict[str, Any], run: Path) -> list[tuple[dict[str, float], int]]:
    """Of each update its metrics, and the tokens of the episodes that it learned from."""
    train(recipe, out=run, preflight=False, log=lambda line: None)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    records = list(LogReader(run / "episodes.jsonl.zst"))
    return [
        (row, sum(read(r.episode) for r in records if r.update == row["update"]))
        for row in rows
        if row["phase"] == "rl"
    ]


@pytest.mark.slow
def test_each_part_has_its_share_of_an_updates_tokens(letters: dict[str, Any], tmp_path: Path) -> None:
    """One forward pass for the signals, one with gradient, and one of a teacher, which says its likeliest tokens, too."""
    source, teacher = {"name": "demonstrations", "episodes": 2}, {"name": "told", "top": 4}
    loss = ["clip", {"name": "distill", "weight": 0.1}]
    rows = {**SHORT, "optimizer": {**SHORT["optimizer"], "share": "rows"}}
    found = learned({**letters, **rows, "source": [source], "teacher": teacher, "loss": loss}, tmp_path)
    assert len(found) == 2
    for row, tokens in found:
        assert row["strategy_tokens"] == row["tokens"] == row["signal_forward_pass_tokens"] == tokens > 0
        assert row["guide_tokens"] == row["signal_value_tokens"] == 0
        assert 0 < row["source_tokens"] < tokens
        assert row["descent_tokens"] == tokens + row["source_tokens"]
        told = row["teacher_tokens"] - (tokens + row["source_tokens"])
        assert told > 0, "it reads what it is told, too"
        assert told % 2 == 0
        parts = {name.removesuffix("_tokens") for name in row if name.endswith("_tokens")} - {"fork"}
        assert all(f"{part}_seconds" in row for part in parts)


@pytest.mark.slow
def test_what_a_guide_plays_is_the_guides(letters: dict[str, Any], tmp_path: Path) -> None:
    """It replaces all that was played, so that the strategy's tokens are those that the log lacks."""
    guide = [{"name": "prefix", "where": "all", "length": 0.5}]
    for row, tokens in learned({**letters, **SHORT, "guide": guide}, tmp_path):
        assert row["strategy_tokens"] + row["guide_tokens"] == row["tokens"]
        assert row["strategy_tokens"] > 0
        assert row["guide_tokens"] > tokens, "its demonstrations are among them"
