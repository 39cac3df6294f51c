"""A group that lost episodes to failures: the others are trained on, unless the parts ask for whole groups."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.registry import components
from turnwise.tasks.core import Task
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.collect import split_by_agent
from turnwise.trainers.run.parts import Parts, build_parts
from turnwise.trainers.strategy.runner import Cost


def episode(reward: float, outcome: Outcome = Outcome.OK) -> Episode:
    reply = Reply(Message("assistant", "x"), (1, 2), (3, 4), (-0.5, -0.25))
    turn = Turn(Messages(), reply, reward, {"outcome": reward}, "key")
    end = EndReason.SOLVED if outcome.counts else None
    return Episode(Task("test/x", "x"), 0, {"agent": Trajectory((turn,))}, outcome, end)


def parts(**keys: object) -> Parts:
    recipe = {"suite": "calc/easy", "model": {"scratch": {}}, "filter": "any", **keys}
    return build_parts(check_recipe(recipe))


GROUP: Group = [episode(1.0), episode(0.0, Outcome.INFRA_ERROR), episode(0.0), episode(1.0)]


def test_the_others_are_kept_and_numbered_as_they_were_played() -> None:
    (agent_group,) = split_by_agent(parts(credit="rloo"), [GROUP], Cost()).agent_groups
    assert agent_group.members == (0, 2, 3)
    assert agent_group.episodes is not None
    assert [e.score for e in agent_group.episodes] == [1.0, 0.0, 1.0]


def test_two_must_be_left() -> None:
    lost = [episode(1.0), *(replace(e, outcome=Outcome.ENV_ERROR) for e in GROUP[1:])]
    (agent_group,) = split_by_agent(parts(credit="rloo"), [lost], Cost()).agent_groups
    assert agent_group.episodes is None
    (agent_group,) = split_by_agent(
        parts(credit="rloo"), [[episode(1.0)]], Cost()
    ).agent_groups  # groups of one are meant
    assert agent_group.episodes is not None


def test_trees_are_dropped_whole() -> None:
    tree = parts(credit="tree", rollout={"strategy": "tree"})
    (agent_group,) = split_by_agent(tree, [GROUP], Cost()).agent_groups
    assert agent_group.episodes is None


def test_a_failed_episode_changes_nothing_for_the_others() -> None:
    """The advantages of the others are those of the group without it: it is neither a 0 nor a baseline."""
    built = parts(credit="rloo")
    (lost,) = split_by_agent(built, [GROUP], Cost()).agent_groups
    (without,) = split_by_agent(built, [[GROUP[0], *GROUP[2:]]], Cost()).agent_groups
    assert lost.episodes is not None
    assert without.episodes is not None
    ours, theirs = (built.credit(collate([agent_group.episodes]).turns) for agent_group in (lost, without))
    assert isinstance(ours, torch.Tensor)
    assert isinstance(theirs, torch.Tensor)
    assert ours.tolist() == theirs.tolist()
    assert ours[:, 0].tolist() == pytest.approx([0.5, -1.0, 0.5])


@pytest.mark.parametrize(
    "rule", [c.name for c in components("credit") if not c.needs_with({}) and not c.whole_groups]
)
def test_every_rule_that_needs_no_signal_takes_groups_of_unequal_size(rule: str) -> None:
    built = parts(credit=rule)
    groups = [[episode(1.0), episode(0.0)], [episode(1.0), episode(0.0), episode(1.0), episode(0.25)]]
    found = split_by_agent(built, groups, Cost())
    advantage = built.credit(
        collate([agent_group.episodes for agent_group in found.agent_groups if agent_group.episodes]).turns
    )
    assert isinstance(advantage, torch.Tensor)
    assert bool(torch.isfinite(advantage).all())
