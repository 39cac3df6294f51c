"""The learning half of an update, on episodes made by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch

from turnwise.agents.core import Episode, Finish, Served
from turnwise.errors import RunError
from turnwise.trainers.core import Group
from turnwise.trainers.kit.payer import Payer, RewardInRow
from turnwise.trainers.kit.reward_edits import replace_turns
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import collate, collate_turns
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.reward.from_signal import from_signal
from turnwise.trainers.run.collect import describe, split_by_agent
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.paying import pay
from turnwise.trainers.run.update import UpdateResult
from turnwise.trainers.strategy.runner import Cost


def test_the_share_of_informative_groups_counts_each_group_by_its_own_members() -> None:
    sizes, weights = [3, 1, 2, 3, 2], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0]
    groups = [[episode([1.0]) for _ in range(size)] for size in sizes]
    played = split_by_agent(
        build_parts(check_recipe({"suite": "shop/easy", "model": {"scratch": {}}})), groups, Cost()
    )
    result = UpdateResult(groups, weights)
    assert result.kept == [True, False, False, True, True]
    assert describe(played, result)["informative"] == 3 / 5
    assert UpdateResult([[]], []).kept == [False]


def test_the_share_of_cut_answers_counts_turns() -> None:
    stopped, cut = episode([0.0, 1.0]), episode([0.0, 1.0])
    turns = [
        replace(turn, reply=turn.reply._replace(served=Served(Finish.LENGTH)))
        for turn in cut.trajectory.turns[:1]
    ]
    cut = replace(
        cut, trajectories={"agent": replace(cut.trajectory, turns=(*turns, *cut.trajectory.turns[1:]))}
    )
    groups = [[stopped, cut]]
    recipe = check_recipe({"suite": "shop/easy", "model": {"scratch": {}}})
    played = split_by_agent(build_parts(recipe), groups, Cost())
    assert describe(played, UpdateResult(groups, [1.0] * 4))["cut"] == 1 / 4


def test_a_reward_sees_the_signals_that_were_measured_of_turns_and_of_trajectories() -> None:
    groups = [[_said([1.0, 2.0]), _said([3.0])], [_said([0.5, 0.25])]]
    batch = collate(groups)
    signals = {
        "each": torch.tensor([[10.0, 20.0], [30.0, 0.0], [40.0, 50.0]]),
        "whole": torch.tensor([0.125, 0.25, 0.375]),
        "unasked": torch.zeros(3),
    }
    turns = dataclasses.replace(batch.turns, signals=signals)
    seen: list[Mapping[str, float]] = []

    def reward(group: Group) -> Group:
        seen.extend(turn.signals for episode in group for turn in episode.trajectory.turns)
        return from_signal(from_signal(group, signal="each"), signal="whole")

    found = pay(batch._replace(turns=turns), groups, Payer([RewardInRow("own", reward)]), {"whole", "each"})
    assert seen[:3] == [
        {"each": 10.0, "whole": 0.125},
        {"each": 20.0, "whole": 0.125},
        {"each": 30.0, "whole": 0.25},
    ]
    assert found.batch.turns.reward_BK.tolist() == [[11.125, 22.125], [33.25, 0.0], [40.875, 50.625]]
    assert found.batch.turns.signals is signals, "what was measured is not measured again"
    assert torch.equal(found.batch.turns.reward_BK, collate_turns(found.groups).reward_BK)


def test_a_reward_that_no_tensor_can_hold_is_refused() -> None:
    groups = [[_said([1.0])]]
    endless = RewardInRow("endless", lambda group: [_said([float("inf")]) for _ in group])
    with pytest.raises(RunError, match="has a reward of inf"):
        pay(collate(groups), groups, Payer([endless]), ())


def _said(rewards: list[float]) -> Episode:
    """An episode whose turns have a token each."""
    found = episode(rewards)
    return replace_turns(
        found,
        lambda turns: [
            dataclasses.replace(
                turn,
                reply=turn.reply._replace(prompt_ids=(1,), action_ids=(2,), logprobs=(-1.0,)),
            )
            for turn in turns
        ],
    )
