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


def test_the_start_comes_first_and_runs_that_are_not_done_are_left_out(tmp_path: Path) -> None:
    for made in (longer_days.START, "grpo-0/best/model", "start-0/best/model", "grpo-1/checkpoints"):
        (tmp_path / made).mkdir(parents=True)
    assert [name for name, _ in longer_days.policies(tmp_path)] == ["start", "grpo-0"]


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TurnwiseError, match="no run with a best model"):
        list(longer_days.policies(tmp_path))
