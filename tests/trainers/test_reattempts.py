"""A whole run in which what failed is attempted again: told how, learned as if untold, and counted apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch")

from turnwise.agents.log.episode_log import LogReader
from turnwise.blame import AuthorError
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register, register_suite
from turnwise.envs.returned import check_report
from turnwise.errors import RecipeError
from turnwise.tasks.core import Json, Split, Suite, Task
from turnwise.trainers.run.loop import train


class Attempt(NamedTuple):
    """A state."""

    number: int = 0


class Luck(AgentEnv[Attempt]):
    """One turn, which one of three episodes wins whatever it says."""

    system = "Try."
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task("test/Luck-v0", f"Try {3 * rng.randrange(10**6) + list(Split).index(split)}.")

    def initial(self, task: Task) -> tuple[Attempt, str]:
        return Attempt(), task.prompt

    def transition(self, state: Attempt, action: Message) -> Transition[Attempt]:
        won = self.rng("luck").random() < 1 / 3
        end = EndReason.SOLVED if won else EndReason.FAILED
        return Transition(Attempt(1), "over", {"outcome": float(won)}, end, {"said": len(action.content)})

    def gold(self, state: Attempt) -> str:
        return "x"

    @classmethod
    def failure_report(cls, task: Task, details: Mapping[str, Json]) -> str:
        return f"You said {details['said']} characters to {task.prompt}"


@pytest.fixture
def recipe(letters: dict[str, Any]) -> dict[str, Any]:
    register("test/Luck-v0", f"{__name__}:Luck", "Luck.")
    register_suite(Suite("test/luck", "test/Luck-v0", "Luck."))
    return letters | {
        "suite": "test/luck",
        "rollout": {"groups": 12, "group_size": 2},
        "guide": [{"name": "reattempt", "attempts": 3}],
        "updates": 2,
        "evaluate": {"every": 2, "dev": 2, "test": 2},
    }


@pytest.mark.slow
def test_a_run_attempts_again_what_failed_and_learns_it_as_if_untold(
    tmp_path: Path, recipe: dict[str, Any]
) -> None:
    from transformers import AutoTokenizer

    run = tmp_path / "run"
    train(recipe, out=run, preflight=False, log=lambda line: None)
    tokenizer: Any = AutoTokenizer.from_pretrained(run / "checkpoints/step-000002/model")
    helped: dict[int, int] = {1: 0, 2: 0}
    for record in LogReader(run / "episodes.jsonl.zst"):
        (turn,) = record.episode.trajectory.turns
        if record.update not in helped or not turn.reply.source:
            continue
        helped[record.update] += 1
        assert turn.reply.source == "guide/reattempt"
        assert turn.reply.scored_ids is not None
        read, scored = tokenizer.decode(turn.reply.prompt_ids), tokenizer.decode(turn.reply.scored_ids)
        prompt = record.episode.task.prompt
        assert f"characters to {prompt}" in read
        assert prompt in scored
        assert "guidance" not in scored
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    by_update = {row["update"]: row for row in metrics if "success_unguided" in row}
    for update, episodes in helped.items():
        assert episodes, "of twelve groups of two, five fail twice"
        row = by_update[update]
        assert row["guide/reattempt_share"] == episodes / 24
        assert row["success"] > row["success_unguided"]


def test_there_is_a_second_attempt() -> None:
    from turnwise.trainers.guide.reattempt import reattempt
    from turnwise.trainers.guide.toy import played_with

    with pytest.raises(RecipeError, match="the first of them was played already"):
        played_with(reattempt, "code/quick", groups=1, size=1, attempts=1)


def test_what_is_no_report_is_refused_with_the_line_of_its_author(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Luck, "failure_report", classmethod(lambda cls, task, details: details))
    with pytest.raises(AuthorError, match=r"Luck\.failure_report returned a dict"):
        check_report(Luck, Luck.failure_report(Task("test/Luck-v0", ""), {}))
    assert check_report(Luck, "\ud800!") == "\ufffd!"
