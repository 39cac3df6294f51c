"""TQ and SACo of stored episodes, on episodes by hand and on logs that were played."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

pytest.importorskip("torch")

from turnwise.agents.core import Episode
from turnwise.envs.core import EndReason
from turnwise.errors import TurnwiseError
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.lab.stored_worth import main, quality, worth
from turnwise.trainers.source.toy import example_log


def played(states: list[str], said: list[str], solved: bool = False) -> Episode:
    one = episode([0] * len(states))
    turns = tuple(
        dataclasses.replace(
            turn,
            state_key=state,
            reply=turn.reply._replace(message=dataclasses.replace(turn.action, content=text)),
        )
        for turn, state, text in zip(one.trajectory.turns, states, said, strict=True)
    )
    return dataclasses.replace(
        one,
        trajectories={"agent": dataclasses.replace(one.trajectory, turns=turns)},
        end=EndReason.SOLVED if solved else EndReason.FAILED,
    )


def test_the_numbers_of_the_paper_come_out() -> None:
    assert quality(45, 5, 105) == pytest.approx(0.4)
    assert quality(5, 5, 5) is None
    stored = [played([str(i) for i in range(300)] + ["0"] * 700, ["go"] * 1000)]
    best = [played([str(i) for i in range(1000)], ["go"] * 1000, solved=True)]
    found = worth(stored, stored, best)
    assert found.turns == 1000
    assert found.coverage == pytest.approx(0.3)
    assert found.log_coverage == pytest.approx(0.8257, abs=5e-5)
    assert found.quality == 0


def test_pairs_are_counted_in_as_many_turns_of_each_and_actions_but_for_case_and_white_space() -> None:
    stored = [played(["a", "a", "a"], ["Go  left", "go LEFT ", "go right"]), played(["b"], ["go left"])]
    best = [played(["a", "b"], ["go left", "go left"], solved=True)]
    found = worth(stored, [played(["a"], ["no"])], best)
    assert (found.turns, found.coverage) == (2, 0.5), (
        "the first two turns of stored say the same in one state"
    )
    assert found.log_coverage == 0
    one = worth(stored, stored, [played(["a"], ["go left"])])
    assert one.log_coverage is None
    assert one.quality is None
    more = worth(stored, best, [played(["a", "a", "c"], ["x", "x", "x"])])
    assert more.coverage == 1
    assert more.log_coverage == pytest.approx(math.log(2) / math.log(2))


def test_logs_without_a_turn_or_an_episode_are_refused() -> None:
    silent = played([], [])
    with pytest.raises(TurnwiseError, match="without a turn"):
        worth([silent], [silent], [silent])
    with pytest.raises(TurnwiseError, match="no success rate"):
        worth([], [silent], [silent])


def test_the_command_reads_logs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = str(example_log())
    assert main([log, "--random", log, "--best", log]) == 0
    assert "SACo 1.0000, log SACo 1.0000" in capsys.readouterr().out
    assert main([str(tmp_path / "none"), "--random", log, "--best", log]) == 1
    assert "none" in capsys.readouterr().err
