"""A training whose episodes a program plays is the training that the same recipe is without it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

torch = pytest.importorskip("torch")

from safetensors.torch import load_file

import turnwise
from turnwise.agents.core import PREVIOUS, Outcome, after
from turnwise.agents.core import ROOT as NEW
from turnwise.agents.log.episode_log import LogReader
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn

ROOT = Path(__file__).parents[2]
AGENT = {
    "command": [sys.executable, "-S", "-E", str(ROOT / "examples" / "plain_agent.py")],
    "prompt": "messages",
    "preload": ["http.client", "json"],
}


def sampled(folder: Path) -> list[list[tuple[int, ...]]]:
    """The tokens that were sampled, turn by turn, episode by episode."""
    log = LogReader(folder / "episodes.jsonl.zst")
    return [[turn.reply.action_ids for turn in record.episode.trajectory.turns] for record in log]


@pytest.mark.slow
def test_a_program_that_knows_nothing_of_us_trains_the_weights_that_the_policy_alone_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    from letters import RECIPE, register_letters

    register_letters()
    recipe = tmp_path / "letters.yaml"
    small = {
        "updates": 2,
        "checkpoint": {"every": 1, "keep": 9},
        "evaluate": {"every": 2, "dev": 1, "test": 2},
    }
    recipe.write_text(yaml.safe_dump(yaml.safe_load(RECIPE) | small))
    results = {name: train(recipe, out=tmp_path / name, preflight=False, **more) for name, more in
               (("alone", {}), ("program", {"agent": AGENT}))}  # fmt: skip

    assert sampled(tmp_path / "program") == sampled(tmp_path / "alone")
    start, alone, program = (
        load_file(tmp_path / name / f"checkpoints/step-{step:06d}/model/model.safetensors")
        for name, step in (("alone", 0), ("alone", 2), ("program", 2))
    )
    moved = max(float((alone[name] - start[name]).abs().max()) for name in alone)
    apart = max(float((alone[name] - program[name]).abs().max()) for name in alone)
    assert moved > 1e-3
    assert apart < 1e-5  # the engine's batches differ, and with them its rounding
    judged = [
        [
            (one.name, one.mode, one.evaluation.success, one.evaluation.mean_score)
            for one in result.evaluations
        ]
        for result in results.values()
    ]
    assert judged[0] == judged[1]

    assert turnwise.replay(tmp_path / "program" / "episodes.jsonl.zst").ok
    assert relearn(tmp_path / "program", out=tmp_path / "again").equal == (0, 1, 2)


BRANCHING = AGENT | {
    "command": [*AGENT["command"][:-1], str(ROOT / "tests" / "gateway" / "branching_agent.py")]
}
TREE = [PREVIOUS, NEW, NEW, after(0), NEW, after(0), NEW, NEW, NEW]
"""Parents of its nine replies: three times a reply, a sub-agent's and a second sample; the third time its history is another."""


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [0, 1])
def test_a_tree_of_conversations_is_trained_replayed_and_learned_again(
    staleness: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With staleness 1 the weights change while programs play; their requests wait in the engine meanwhile."""
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    from letters import RECIPE, register_letters

    register_letters()
    recipe = tmp_path / "letters.yaml"
    small = {
        "updates": 3,
        "checkpoint": {"every": 1, "keep": 9},
        "evaluate": {"every": 3, "dev": 1, "test": 2},
        "scale": {"staleness": staleness},
    }
    recipe.write_text(yaml.safe_dump(yaml.safe_load(RECIPE) | small))
    train(recipe, out=tmp_path / "run", preflight=False, agent=BRANCHING)

    log = tmp_path / "run" / "episodes.jsonl.zst"
    episodes = [record.episode for record in LogReader(log)]
    assert {one.outcome for one in episodes} == {Outcome.OK}
    mixed = 0
    for episode in episodes:
        turns = episode.trajectory.turns
        assert [turn.reply.parent for turn in turns] == TREE[: len(turns)]  # what was sent again is nothing
        versions = {span.version for turn in turns for span in turn.reply.versions}
        assert max(versions) - min(versions) <= staleness
        mixed += len(versions) > 1
    assert any(len(one.trajectory.turns) == len(TREE) for one in episodes)
    assert bool(mixed) == bool(staleness)
    assert turnwise.replay(log).ok
    assert relearn(tmp_path / "run", out=tmp_path / "again").equal == (0, 1, 2, 3)
