"""A run that is killed and resumed ends where the uninterrupted run ends, to the last bit."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forked
import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import to_line
from turnwise.trainers.run.checkpoint import load_newest, verify

pytestmark = pytest.mark.slow

LETTERS = Path(__file__).parent.parent / "letters.py"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
CLOCK = ("seconds", "tokens_per_second")
"""What goes by the clock: names that end so."""


class Child:
    """Training in a process of its own."""

    def __init__(self, recipe: Path, out: Path, *more: str, pause: float = 0) -> None:
        self.out = out
        self.program = forked.Program(
            forked.script(LETTERS),
            (str(recipe), str(out), *more),
            cwd=recipe.parent,
            env=ENVIRONMENT | {"LETTERS_PAUSE": str(pause)},
            training=True,
        )
        self.process = self.program.process

    def wait_for(self, update: int, phase: str = "rl") -> None:
        """Until the metrics of this update are there."""
        while self.process.poll() is None:
            if any(
                row["phase"] == phase and row["update"] >= update for row in rows(self.out / "metrics.jsonl")
            ):
                return
            time.sleep(0.005)
        self.process.kill()
        raise AssertionError(f"update {update} never came: {self.program.communicate()[1]}")

    def end(self, *signals: int) -> tuple[int, dict[str, Any], str]:
        """Exit code, the one JSON value, stderr."""
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.1)
        out, err = self.program.communicate()
        return self.process.wait(0), json.loads(out) if out else {}, err


def rows(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not key.endswith(CLOCK)}


def files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def episodes(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(to_line(record)) for record in LogReader(path / "episodes.jsonl.zst")]
    for line in lines:
        del line["metrics"]["seconds"], line["policy"]
    return lines


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sys.path.insert(0, str(LETTERS.parent))
    try:
        from letters import RECIPE
    finally:
        sys.path.remove(str(LETTERS.parent))
    path = tmp_path_factory.mktemp("recipe") / "letters.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def whole(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing happened to."""
    out = tmp_path_factory.mktemp("whole") / "run"
    code, result, err = Child(recipe, out).end()
    assert code == 0, err
    assert not result["interrupted"]
    return out


@pytest.fixture
def child(recipe: Path, tmp_path: Path) -> Iterator[Any]:
    started: list[Child] = []

    def start(*more: str, pause: float = 0) -> Child:
        started.append(Child(recipe, tmp_path / "run", *more, pause=pause))
        return started[-1]

    yield start
    for one in started:
        one.program.close()


def assert_equal(found: Path, whole: Path) -> None:
    """Weights, optimizer, counters, and everything that was recorded on the way."""
    for name in sorted(path.name for path in (whole / "checkpoints").iterdir()):
        assert files(found / "checkpoints" / name) == files(whole / "checkpoints" / name), name
    assert os.readlink(found / "best") == os.readlink(whole / "best")
    assert episodes(found) == episodes(whole)
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        assert [timeless(r) for r in rows(found / name)] == [timeless(r) for r in rows(whole / name)]
    assert (found / "report.html").exists()


def test_the_run_that_is_compared_with_did_learn(whole: Path) -> None:
    metrics = [row for row in rows(whole / "metrics.jsonl") if row["phase"] == "rl"]
    assert [row["update"] for row in metrics] == [1, 2, 3, 4, 5]
    assert all(row["grad_norm"] > 0 and row["reward"] > 0 for row in metrics)
    records = list(LogReader(whole / "episodes.jsonl.zst"))
    assert {record.update for record in records} == {row["update"] for row in metrics}
    assert any(any(record.given) for record in records)
    assert [(row["name"], row["mode"], row["update"]) for row in rows(whole / "evaluations.jsonl")] == [
        ("warm start", "sampled", 0),
        ("warm start", "greedy", 0),
        ("after RL", "sampled", 5),
        ("after RL", "greedy", 5),
    ]


@pytest.mark.slow
def test_killed_twice_and_resumed_is_the_same_run(child: Any, whole: Path) -> None:
    first = child(pause=0.03)
    first.wait_for(1)
    first.end(signal.SIGKILL)
    second = child("--resume", pause=0.03)
    second.wait_for(3)
    second.end(signal.SIGKILL)
    with (second.out / "metrics.jsonl").open("a") as file:
        file.write('{"update": 4, "pha')  # as a kill in the middle of a write leaves it
    with (second.out / "episodes.jsonl.zst").open("ab") as log:
        log.write(b"\x28\xb5\x2f\xfd torn")
    code, result, err = child("--resume").end()
    assert code == 0, err
    assert [row["name"] for row in result["evaluations"]] == ["warm start"] * 2 + ["after RL"] * 2
    assert_equal(second.out, whole)


AHEAD = ("--set", "scale.staleness=2", "updates=7")


@pytest.mark.slow
def test_an_asynchronous_run_that_is_killed_twice_loses_nothing_and_is_learned_again(
    child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was half played is played again with the same seeds; no token is staler than the bound; the bits are the log's."""
    monkeypatch.syspath_prepend(str(LETTERS.parent))
    from letters import register_letters

    from turnwise.trainers.run.relearn import relearn

    register_letters()
    for update in (2, 4):
        one = child(*(("--resume",) if update > 2 else ()), *AHEAD, pause=0.03)
        one.wait_for(update)
        one.end(signal.SIGKILL)
    code, result, err = child("--resume", *AHEAD).end()
    assert code == 0, err
    assert not result["interrupted"]
    records = list(LogReader(one.out / "episodes.jsonl.zst"))
    seeds = [(record.update, record.group, record.episode.seed) for record in records]
    assert len(seeds) == len(set(seeds)) == 7 * 3 * 4
    for record in records:
        assert record.update is not None
        for turn in record.episode.trajectory.turns:
            for span in turn.reply.versions:
                assert 0 <= record.update - 1 - span.version <= 2
    metrics = [row["update"] for row in rows(one.out / "metrics.jsonl") if row["phase"] == "rl"]
    assert metrics == [1, 2, 3, 4, 5, 6, 7]
    assert relearn(one.out).equal[-1] == 7


WARM = (
    "--set",
    "warm_start.episodes=160",
    "warm_start.checkpoint_every=3",
    "updates=1",
    "evaluate.every=1",
    "loss=[clip, kl]",  # compares with the policy after the warm start
    "optimizer.minibatches=1",
)


@pytest.mark.slow
@pytest.mark.full
def test_killed_and_interrupted_in_the_warm_start_is_the_same_run(recipe: Path, tmp_path: Path) -> None:
    whole = Child(recipe, tmp_path / "whole", *WARM)
    assert whole.end()[0] == 0
    first = Child(recipe, tmp_path / "run", *WARM, pause=0.01)
    first.wait_for(5, phase="warm_start")
    first.end(signal.SIGKILL)
    saved = load_newest(first.out / "warm-start")
    assert saved is not None
    assert saved.state["warm_start_steps"] in range(3, 20, 3)
    code, problem, _ = Child(recipe, first.out, *WARM).end()
    assert (code, "holds a run already" in problem["cause"]) == (1, True)

    second = Child(recipe, first.out, "--resume", *WARM, pause=0.01)
    second.wait_for(11, phase="warm_start")
    code, result, err = second.end(signal.SIGINT)
    assert (code, result["interrupted"]) == (130, True), err
    assert f"after step {saved.state['warm_start_steps']}" in err
    assert "stopped in the warm start; go on with --resume" in err
    stopped = load_newest(first.out / "warm-start")
    assert stopped is not None
    assert stopped.state["warm_start_steps"] == rows(first.out / "metrics.jsonl")[-1]["update"] < 20

    code, _, err = Child(recipe, first.out, "--resume", *WARM).end()
    assert code == 0, err
    assert_equal(first.out, whole.out)
    assert not (first.out / "warm-start").exists()


@pytest.mark.slow
@pytest.mark.full
def test_a_flipped_byte_in_the_episodes_does_not_cost_the_checkpoint(child: Any, whole: Path) -> None:
    first = child(pause=0.03)
    first.wait_for(3)
    first.end(signal.SIGKILL)
    log = first.out / "episodes.jsonl.zst"
    data = bytearray(log.read_bytes())
    data[40] ^= 1
    log.write_bytes(data)
    code, _, err = child("--resume").end()
    assert code == 0, err
    assert "episodes.jsonl.zst is damaged" in err
    assert f"turnwise repair {first.out}" in err
    assert (first.out / "episodes-damaged-1.jsonl.zst").read_bytes() == data
    last = "checkpoints/step-000005"
    assert files(first.out / last) == files(whole / last)


@pytest.mark.slow
def test_a_damaged_checkpoint_is_noted_and_done_again(child: Any, whole: Path) -> None:
    first = child(pause=0.03)
    first.wait_for(3)
    first.end(signal.SIGKILL)
    newest = load_newest(first.out / "checkpoints")
    assert newest is not None
    weights = newest.path / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    code, _, err = child("--resume").end()
    assert code == 0, err
    assert f"{newest.path.name}/model/model.safetensors is damaged" in err
    assert_equal(first.out, whole)


@pytest.mark.slow
def test_ctrl_c_once_saves_and_resuming_goes_on(child: Any, whole: Path) -> None:
    first = child(pause=0.03)
    first.wait_for(1)
    code, result, err = first.end(signal.SIGINT)
    assert (code, result["interrupted"]) == (130, True), err
    assert "stopped after update" in err
    stopped = load_newest(first.out / "checkpoints")
    assert stopped is not None
    assert stopped.state["update"] == rows(first.out / "metrics.jsonl")[-1]["update"]

    code, problem, _ = child().end()
    assert (code, "holds a run already" in problem["cause"]) == (1, True)
    code, problem, _ = child("--resume", "--set", "seed=4", "optimizer.learning_rate=0.1").end()
    assert code == 1
    assert "in optimizer.learning_rate, seed" in problem["cause"]

    code, _, err = child("--resume").end()
    assert code == 0, err
    assert episodes(first.out) == episodes(whole)
    last = "checkpoints/step-000005"
    assert files(first.out / last) == files(whole / last)


@pytest.mark.slow
def test_a_second_run_is_refused_and_ctrl_c_twice_stops_at_once(child: Any) -> None:
    first = child("--set", "updates=300", pause=0.1)
    first.wait_for(2)
    code, problem, _ = child("--set", "updates=300", "--resume").end()
    assert code == 1
    assert "Another process trains" in problem["cause"]
    code, problem, err = first.end(signal.SIGINT, signal.SIGINT)
    assert (code, problem["error"]) == (130, "KeyboardInterrupt"), err
    newest = load_newest(first.out / "checkpoints")
    assert newest is not None
    assert 2 <= newest.state["update"] < 300
    assert all(verify(path) is None for path in (first.out / "checkpoints").glob("step-*"))


@pytest.mark.slow
def test_a_complete_run_says_so(recipe: Path, whole: Path) -> None:
    before = files(whole / "checkpoints")
    for name in ("episodes.parquet", "report.html"):  # as a kill after the last evaluation leaves it
        (whole / name).unlink()
    code, result, err = Child(recipe, whole, "--resume").end()
    assert code == 0
    assert "is complete" in err
    assert len(result["evaluations"]) == 4
    assert files(whole / "checkpoints") == before
    assert (whole / "episodes.parquet").exists()
    assert (whole / "report.html").exists()
