"""What a run writes down of its tokens, and what it deletes of its logs: nothing but what the recipe says."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.core import PREVIOUS, Episode
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.log.records import Record, from_line, to_line
from turnwise.errors import TurnwiseError
from turnwise.trainers.report.events import EVENTS, live_run, seconds_at_work
from turnwise.trainers.run.checkpoint import file_hashes
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn, weight_files

SHORT: dict[str, Any] = {
    "updates": 3,
    "warm_start": None,
    "checkpoint": {"every": 1, "keep": 9},
    "evaluate": {"every": 2, "dev": 1, "test": 1},
}
ONE: dict[str, Any] = {"updates": 1, "evaluate": {"every": 1, "dev": 1, "test": 1}}


def trained(folder: Path, recipe: dict[str, Any], *, said: list[str] | None = None, **changes: Any) -> Path:
    train(
        recipe | SHORT | changes, out=folder, preflight=False, log=(said if said is not None else []).append
    )
    return folder


def records(run: Path) -> list[Record]:
    return list(LogReader(run / "episodes.jsonl.zst"))


@pytest.mark.slow
def test_entropies_are_those_of_the_weights_before_the_update_and_change_no_weight(
    tmp_path: Path, letters: dict[str, Any]
) -> None:
    with_them = trained(tmp_path / "with", letters, log={"entropy": True}, **ONE)
    without = trained(tmp_path / "without", letters, **ONE)
    assert weights(with_them, 1) == weights(without, 1)
    assert not any(record.entropies for record in records(without))
    for record in records(with_them):
        model = model_of(with_them, (record.update or 1) - 1)
        said = record.entropies["agent"]
        for found, expected in zip(said, by_hand(model, record.episode), strict=True):
            assert found == pytest.approx(expected, abs=2e-4)
    assert relearn(with_them).equal == (0, 1)


def model_of(run: Path, step: int) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(run / f"checkpoints/step-{step:06d}/model").eval()


def by_hand(model: Any, episode: Episode) -> list[list[float]]:
    """−Σ p·log p at each sampled token, turn by turn, by one forward pass over the whole row."""
    ids: list[int] = []
    places: list[range] = []
    for turn in episode.trajectory.turns:
        assert turn.reply.parent == PREVIOUS
        ids += turn.reply.prompt_ids
        places.append(range(len(ids), len(ids) + len(turn.reply.action_ids)))
        ids += turn.reply.action_ids
    with torch.no_grad():
        logp_TV = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    entropy_T = -(logp_TV.exp() * logp_TV).sum(-1)
    return [[float(entropy_T[at - 1]) for at in place] for place in places]


@pytest.mark.slow
def test_old_logs_go_with_each_checkpoint_and_are_named_where_they_are_missed(
    tmp_path: Path, letters: dict[str, Any]
) -> None:
    said: list[str] = []
    run, whole = (
        trained(tmp_path / "run", letters, said=said, log={"keep": 1}),
        trained(tmp_path / "whole", letters),
    )
    assert {record.update for record in records(run)} == {3}
    assert {record.update for record in records(whole)} == {1, 2, 3}
    assert said[0] == f"training on {letters['suite']}, 3 updates"
    assert [line for line in said if line.startswith("deleted")] == [
        "deleted 12 episodes of updates up to 1 (log.keep: 1)",
        "deleted 12 episodes of updates up to 2 (log.keep: 1)",
    ]
    assert weights(run) == weights(whole)
    assert (run / "report.html").is_file()
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert [e["update"] for e in events if e["kind"] == "update"] == [1, 2, 3]
    assert [e["update"] for e in events if e["kind"] == "learning"] == [3]
    assert live_run(run).ended == "done"
    with pytest.raises(TurnwiseError, match=r"newest 1 updates alone \(log.keep\).*update 1"):
        relearn(run)

    def stop(line: str) -> None:
        if line.startswith("  update   2/3"):
            raise KeyboardInterrupt

    recipe, again = letters | SHORT | {"log": {"keep": 1}}, tmp_path / "again"
    with pytest.raises(KeyboardInterrupt):
        train(recipe, out=again, preflight=False, log=stop)
    assert {record.update for record in records(again)} == {1, 2}
    train(recipe, out=again, resume=True, log=lambda line: None)
    assert {record.update for record in records(again)} == {3}
    assert weights(again) == weights(whole)


def weights(run: Path, step: int = 3) -> list[str]:
    """The hashes of what a checkpoint has learned."""
    found = file_hashes(run / f"checkpoints/step-{step:06d}")
    return [found[name] for name in weight_files(found)]


@pytest.fixture(scope="module")
def played() -> list[Episode]:
    import turnwise

    return [*turnwise.rollout("shop/easy", "scripted:gold", episodes=5)]


@pytest.mark.parametrize("name", ["log.jsonl.zst", "log.jsonl"])
@pytest.mark.parametrize("flush_every", [1, 2, 16])
def test_a_log_loses_its_beginning_and_goes_on(
    tmp_path: Path, played: list[Episode], name: str, flush_every: int
) -> None:
    with EpisodeLog(tmp_path / name, flush_every=flush_every) as log:
        for update, episode in enumerate(played[:4]):
            log.append(episode, update=update)
        assert log.delete_first(lambda record: record.update is not None and record.update < 3) == 3
        assert log.delete_first(lambda record: record.update is not None and record.update < 3) == 0
        log.append(played[4], update=4)
    left = list(LogReader(tmp_path / name))
    assert [record.update for record in left] == [3, 4]
    assert [record.episode for record in left] == played[3:]
    with EpisodeLog(tmp_path / name) as log:
        assert log.delete_first(lambda record: True) == 2
        log.append(played[0], update=5)
    assert [record.update for record in LogReader(tmp_path / name)] == [5]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_log_that_cannot_be_written_anew_stays_as_it_is(
    tmp_path: Path, played: list[Episode], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with EpisodeLog(tmp_path / "log.jsonl.zst") as log:
        for update, episode in enumerate(played):
            log.append(episode, update=update)
        log.flush()
        before = log.path.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr("turnwise.agents.log.episode_log.shutil.copyfileobj", full)
            with pytest.raises(TurnwiseError, match="No space left"):
                log.delete_first(lambda record: record.update == 0)
        assert log.path.read_bytes() == before
        log.append(played[0], update=9)
    assert [record.update for record in LogReader(tmp_path / "log.jsonl.zst")] == [0, 1, 2, 3, 4, 9]


def test_entropies_survive_a_line_and_must_fit_the_tokens(played: list[Episode]) -> None:
    one = played[0].trajectory
    said = one.turns[0].reply._replace(prompt_ids=(5,), action_ids=(11, 12), logprobs=(-0.01, -3.5))
    first = dataclasses.replace(one.turns[0], reply=said)
    sampled = dataclasses.replace(one, turns=(first, *one.turns[1:]))
    episode, turns = dataclasses.replace(played[0], trajectories={one.agent: sampled}), len(one.turns)
    given = {"agent": ((0.25, 1.5), *((),) * (turns - 1))}
    assert from_line(to_line(Record(episode, entropies=given))).entropies == given
    assert "entropies" not in to_line(Record(episode))
    for wrong in (((0.25,), *((),) * (turns - 1)), ((0.25, 1.5),) * (turns + 1)):
        with pytest.raises(TurnwiseError, match="one per token"):
            to_line(Record(episode, entropies={"agent": wrong}))


def test_seconds_at_work_leave_out_what_lies_between_two_processes(tmp_path: Path) -> None:
    events = [
        (100.0, {"kind": "state"}),  # of a warm start
        (200.0, {"kind": "start", "update": 0}),
        (230.0, {"kind": "evaluated", "update": 2}),
        (240.0, {"kind": "evaluated", "update": 3}),
        (250.0, {"kind": "update", "update": 3}),  # killed here, and resumed after update 2
        (900.0, {"kind": "start", "update": 2}),
        (907.0, {"kind": "evaluated", "update": 3}),
    ]
    lines = [json.dumps({"time": time, **event}) + "\n" for time, event in events]
    (tmp_path / EVENTS).write_text("".join(lines))
    assert seconds_at_work(tmp_path) == {2: 30.0, 3: 57.0}
    assert seconds_at_work(tmp_path / "elsewhere") == {}
