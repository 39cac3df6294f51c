"""Orders carried out are counted as the world counts them, and the runs of a campaign are found."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.errors import TurnwiseError

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "learning" / "longer_days.py"
longer_days = SimpleNamespace(**runpy.run_path(str(PROGRAM)))


@pytest.mark.parametrize("suite", ["household/day-15", "household/horizon-30"])
@pytest.mark.parametrize("policy", ["scripted:gold", "scripted:demonstrator", "scripted:random"])
def test_orders_carried_out_are_counted(suite: str, policy: str) -> None:
    played: list[Episode] = []
    evaluate(suite, policy, episodes=4, on_episode=lambda _, episode: played.append(episode))
    for day in played:
        orders, done = len(day.task.options["orders"]), longer_days.orders_done(day)
        assert (done == orders) == (day.success == 1)
        assert done == orders or policy != "scripted:gold"
        assert done < orders or policy != "scripted:random"


def test_the_start_comes_first_then_the_best_and_the_last_of_each_run(tmp_path: Path) -> None:
    checkpoints = {"start-0": (0,), "grpo-0": (4, 8), "grpo-1": (8,), "grpo-2": (4,)}
    for run, updates in checkpoints.items():
        for update in updates:
            (tmp_path / run / "checkpoints" / f"step-{update:06}" / "model").mkdir(parents=True)
        if run != "grpo-2":  # not judged yet
            (tmp_path / run / "best").symlink_to(f"checkpoints/step-{updates[0]:06}")
    found = list(longer_days.policies(tmp_path))
    expected = ["start", "grpo-0, best (update 4)", "grpo-0, last (update 8)", "grpo-1, best (update 8)"]
    assert [name for name, _ in found] == expected
    assert all(model.is_dir() for _, model in found)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TurnwiseError, match="no run that was judged"):
        list(longer_days.policies(tmp_path))
