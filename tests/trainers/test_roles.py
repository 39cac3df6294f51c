"""Roles: an agent that the policy plays and does not learn from, phases that change it, and advantages by role."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.agents.log.episode_log import LogReader
from turnwise.errors import RecipeError
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn

KUHN: dict[str, Any] = {
    "suite": "games/kuhn-self", "seed": 1, "device": "cpu", "credit": "trr", "filter": "any",
    "model": {"scratch": {"layers": 1, "width": 64, "heads": 2, "init": "random", "vocab_size": 300, "context": 256, "text_episodes": 10}},
    "engine": {"kind": "torch", "max_sequences": 16}, "sampling": {"max_tokens": 4, "tools": "none"},
    "rollout": {"groups": 3, "group_size": 4}, "evaluate": {"every": 9, "dev": 2, "test": 2}, "checkpoint": {"every": 1, "keep": 9},
}  # fmt: skip


@pytest.mark.slow
def test_the_policy_plays_an_agent_that_it_does_not_learn_from_and_stages_change_which(
    tmp_path: Path,
) -> None:
    """PilotRL's stages: first one agent learns, then the other, then both; the other half is the policy as it is."""
    stages = [
        {"name": "player", "updates": 1, "set": {"rollout.opponents": {"opponent": "self"}}},
        {"name": "opponent", "updates": 1, "set": {"rollout.opponents": {"agent": "self"}}},
        {"name": "both", "updates": 1, "set": {}},
    ]
    train({**KUHN, "phases": stages}, out=tmp_path / "run", preflight=False, log=lambda line: None)
    records = list(LogReader(tmp_path / "run" / "episodes.jsonl.zst"))
    learned = {u: {name for r in records if r.update == u for name in r.advantages} for u in (1, 2, 3)}
    assert learned == {1: {"agent"}, 2: {"opponent"}, 3: {"agent", "opponent"}}
    for record in records:
        for one in record.episode.trajectories.values():
            assert all(turn.reply.logprobs and not turn.reply.source for turn in one.turns), (
                "the policy sampled it"
            )
            versions = {span.version for turn in one.turns for span in turn.reply.versions}
            assert versions <= {(record.update or 1) - 1}
    assert relearn(tmp_path / "run").equal[-1] == 3
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["update"] for row in rows if row["phase"] == "rl"] == [1, 2, 3]


def test_an_evaluation_has_no_policy_called_self() -> None:
    check_recipe({**KUHN, "rollout": {"opponents": {"opponent": "self"}}})
    with pytest.raises(RecipeError, match="self"):
        check_recipe({**KUHN, "evaluate": {"opponents": {"opponent": "self"}}})
    with pytest.raises(RecipeError, match="nobody"):
        check_recipe({**KUHN, "rollout": {"opponents": {"opponent": "self", "agent": "self"}}})


def test_no_agent_is_paid_for_what_another_one_won() -> None:
    """`reward: success` is of the first agent: the opponent would learn to lose, and a pioneer to be idle."""
    for suite, other in (("games/kuhn-self", "opponent"), ("pair:shop/quick", "pioneer")):
        for reward in ("success", "rise"):
            with pytest.raises(RecipeError, match=f"{other} would be paid for it too"):
                check_recipe({**KUHN, "suite": suite, "reward": reward})
        check_recipe({**KUHN, "suite": suite, "reward": "as_is"})
        played = {**KUHN["rollout"], "opponents": {other: "self"}}
        check_recipe({**KUHN, "suite": suite, "reward": "success", "rollout": played})
    check_recipe({**KUHN, "suite": "advised:shop/quick", "reward": "success"})
