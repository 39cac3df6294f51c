"""Weights of which each learner holds a part: the same bits as two shares in one process, and a run that goes on with either kind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from letter_runs import LetterRun

from turnwise.errors import RecipeError, RunError
from turnwise.tools.processes import module_path
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.ranks import Ranks
from turnwise.trainers.run.relearn import relearn

CASES = Path(__file__).with_name("shard_cases.py")
QUICK = ("full", "by trajectory", "lora", "one pass and nine", "value head", "push lora", "checkpoints")
"""Cases of `make test`; `make test-full` has them all."""
ALL = (
    "tied", "checkpointing", "trees", "lora and its reference", "one row for two", "a minibatch that says nothing", "two streams",
    "implicit rewards", "push", "push tied", "checkpoints of adapters",
)  # fmt: skip
ELSEWHERE = "local:engines=1"
PROGRAM = f"""
import sys
from letters import register_letters
register_letters()
from turnwise.cli import main
main(["train", sys.argv[1], "--out", sys.argv[2], "--no-preflight", "--on", "{ELSEWHERE}"])
"""


def cases(folder: Path, *asked: str) -> Mapping[str, Any]:
    """Run cases in two processes; what they found."""
    environment = {**os.environ, "PYTHONPATH": f"{CASES.parents[1]}:{module_path()}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(CASES), str(folder), *asked],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert (folder / "found.json").exists(), done.stderr[-4000:]
    found = json.loads((folder / "found.json").read_text())
    assert done.returncode == 0, f"{found}\n{done.stderr[-4000:]}"
    return found


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    return cases(tmp_path_factory.mktemp("quick"), *QUICK)


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    return cases(tmp_path_factory.mktemp("all"), *ALL)


def check_updates(found: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in names:
        assert found[name]["gap"] == 0, name
        assert found[name].get("metrics", 0) == 0, name
        assert found[name].get("moved", 1) > 1e-2, f"{name}: something was learned"
        assert found[name].get("kept", 0.5) == pytest.approx(0.5, abs=0.02), f"{name}: each holds half"


@pytest.mark.timeout(600)
def test_two_learners_with_half_the_weights_each_make_the_bits_of_two_shares_in_one_process(quick: Any):
    check_updates(quick, ("full", "by trajectory", "lora", "one pass and nine", "value head"))


@pytest.mark.timeout(600)
def test_engines_are_given_adapters_merged_into_weights_that_learners_hold_in_parts(quick: Any):
    assert quick["push lora"] == {"gap": 0, "canary": 0, "after": 0}


@pytest.mark.timeout(600)
def test_a_checkpoint_goes_from_two_learners_to_one_that_holds_everything_and_to_two_again(quick: Any):
    found = quick["checkpoints"]
    assert found["gaps"] == {"two to two": 0, "two to one": 0, "one to two": 0}
    assert found["damaged"] is None
    assert sum(name.startswith("shards/") for name in found["files"]) == 2, "each has written its part"
    assert all(Path(name).suffix in {".safetensors", ".json"} for name in found["files"]), (
        "nothing is pickled"
    )


@pytest.mark.full
@pytest.mark.timeout(900)
def test_all_that_learns_or_reads_with_parts_of_weights_has_the_bits_of_whole_ones(rest: Any):
    check_updates(rest, [name for name in ALL if not name.startswith(("push", "checkpoints"))])
    assert rest["implicit rewards"]["after"] == 0, "each kind reads the other's checkpoint"
    for name in ("push", "push tied"):
        assert rest[name] == {"gap": 0, "canary": 0, "after": 0}
    assert set(rest["checkpoints of adapters"]["gaps"].values()) == {0}


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_learner_that_is_killed_in_a_pass_is_noticed_within_seconds(tmp_path: Path):
    took = cases(tmp_path / "killed", "kill", "20")["kill"]
    assert len(took) == 20
    assert max(took) < 10


@pytest.mark.parametrize(("on", "kind"), [("", "torch"), ("", "vllm"), ("local:env_workers=2", "torch")])
def test_an_engine_in_the_learners_own_process_is_refused_before_anything_is_spent(
    tmp_path: Path, on: str, kind: str
):
    recipe = {"suite": "shop/quick", "engine": {"kind": kind}, "scale": {"learners": 2, "weights": "sharded"}}
    recipe["model"] = {"scratch": {"layers": 1, "width": 64, "heads": 2, "init": "random"}}
    with pytest.raises(RecipeError, match=f"takes an engine in another process, and this run's {kind}"):
        train(recipe, out=tmp_path / "run", on=on, log=lambda line: None)
    assert not (tmp_path / "run").exists()


def test_what_fails_in_a_pass_names_the_learner_that_is_gone_and_nothing_else_does():
    team: Any = SimpleNamespace(size=2)
    killed = Ranks([], team, why=lambda: "learner 1 was ended by SIGKILL")
    with (
        pytest.raises(RunError, match=r"Learner 0 of 2 waits .* learner 1 was ended by SIGKILL"),
        killed.named(),
    ):
        raise RuntimeError("Connection closed by peer")
    with pytest.raises(RuntimeError, match="out of memory"), Ranks([], team).named():
        raise RuntimeError("out of memory")


# --- whole runs, with a process for each learner and one for the engine ----------------------------------


class Letters(LetterRun):
    """The letters recipe, learned by two who hold half the weights each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch, 3)
        self.recipe |= {"scale": {"learners": 2, "weights": "sharded"}}
        (folder / "recipe.yaml").write_text(json.dumps(self.recipe))
        (folder / "program.py").write_text(PROGRAM)


@pytest.fixture
def letters_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Letters(tmp_path, monkeypatch)
    yield made
    made.end()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_run_goes_on_with_whole_weights_and_with_parts_and_is_learned_again_by_one(
    letters_run: Letters, monkeypatch: pytest.MonkeyPatch
):
    """A learner that is killed ends the run with its name; one that holds everything goes on for an update, then two again."""
    run = letters_run.folder / "run"

    def go_on(scale: Mapping[str, Any], log: Callable[[str], None] = lambda line: None) -> None:
        resume = (run / "recipe.yaml").exists()
        recipe = letters_run.recipe | {"scale": dict(scale)}
        train(recipe, out=run, resume=resume, preflight=False, on=ELSEWHERE, log=log)

    learn = Ranks.learn

    def doomed(ranks: Ranks, update: int, played: Any) -> None:
        if update == 1:
            os.kill(ranks.processes[0].pid, signal.SIGKILL)  # pyright: ignore
        learn(ranks, update, played)

    def stop(line: str) -> None:
        if "2/3" in line:
            raise KeyError(line)

    divided = letters_run.recipe["scale"]
    with monkeypatch.context() as patch:
        patch.setattr(Ranks, "learn", doomed)
        with pytest.raises(RunError, match="learner 1 was ended by SIGKILL"):
            go_on(divided)
    assert (run / "checkpoints" / "step-000001" / "shards").is_dir()
    with pytest.raises(KeyError, match="2/3"):
        go_on({"learners": 1, "weights": "replicated"}, stop)
    assert not (run / "checkpoints" / "step-000002" / "shards").exists()
    go_on(divided)
    assert relearn(run).equal == (0, 1, 2, 3)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row.get("learners") for row in rows if row["phase"] == "rl"] == [2, None, 2]


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_run_of_learners_that_torchrun_starts_with_parts_is_learned_again_by_one(letters_run: Letters):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    given = [str(letters_run.folder / name) for name in ("program.py", "recipe.yaml", "torchrun")]
    assert letters_run.launch("torchrun", *torchrun, *given).wait(800) == 0, letters_run.said()
    assert (letters_run.checkpoint("torchrun", 3) / "shards").is_dir()
    assert relearn(letters_run.folder / "torchrun").equal == (0, 1, 2, 3)
