"""Guides that remember, give signals, are named several times, play in place of the policy, or go on from moments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise import registry
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component
from turnwise.tasks.core import Split
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer, check_played, only_read
from turnwise.trainers.guide.prefix import prefix
from turnwise.trainers.guide.toy import played_with, untrained_policy
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.run.collect import collect
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.relearn import relearn
from turnwise.trainers.run.schedules import CLOCK
from turnwise.trainers.sampler.core import example_setup
from turnwise.trainers.sampler.uniform import Uniform
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, TurnPoint, plan_groups

SHOP: dict[str, Any] = {"suite": "shop/quick", "model": {"path": "Qwen/Qwen3-0.6B"}}


class Counting:
    """Plays the first episode of each group again, as often as it was asked."""

    def __init__(self, *, instead: bool = False, forgets: int = 0) -> None:
        self.instead, self.forgets, self.asked = instead, forgets, 0

    async def __call__(self, player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Play them; what ``forgets`` names is left as it is."""
        self.asked += 1
        found: dict[int, Any] = {}
        for _ in range(self.asked):
            found = await player(dict(enumerate(groups)), player.policy)
        return [
            [*found[n][: len(group) - self.forgets], *group[len(group) - self.forgets :]]
            for n, group in enumerate(groups)
        ]

    def state(self) -> PartState:
        """The count."""
        return PartState({"asked": self.asked})

    def restore(self, state: PartState) -> None:
        """Go on from it."""
        self.asked = int(state.numbers.get("asked", 0))


class Forgetful:
    """Remembers nothing that a checkpoint could keep."""

    def __init__(self, *, rate: float = 1.0) -> None: ...


@pytest.fixture
def own() -> Iterator[Any]:
    added: list[tuple[str, str]] = []

    def register(kind: str, name: str, target: Any, **said: Any) -> Any:
        added.append((kind, name))
        return component(kind, name, **said)(target)

    yield register
    for key in added:
        registry._components.pop(key, None)


@pytest.mark.parametrize("kind", ["guide", "judge"])
def test_a_guide_or_judge_that_is_a_class_and_has_no_state_is_refused(own: Any, kind: str) -> None:
    own(kind, "forgetful", Forgetful)
    named = ["forgetful"] if kind == "guide" else "forgetful"
    with pytest.raises(
        RecipeError,
        match=rf"(?s){kind} 'forgetful' is a class without __call__, state and restore.*forgotten",
    ):
        check_recipe({**SHOP, kind: named})


def test_a_guide_is_named_several_times_with_other_options(own: Any) -> None:
    own("guide", "counting", Counting)
    prefixes = [{"name": "prefix", "length": length} for length in (0.25, 0.5)]
    parts = build_parts(
        check_recipe({**SHOP, "guide": [*prefixes, "counting", {"name": "counting", "forgets": 1}]})
    )
    assert [*parts.stateful] == ["guide/counting", "guide/counting/2"]
    parts.stateful["guide/counting"].restore(PartState({"asked": 3}))
    later = build_parts(check_recipe({**SHOP, "guide": ["counting", {"name": "counting", "forgets": 1}]}))
    kept = later.remembering(parts)
    assert [one.state().numbers for one in kept.stateful.values()] == [{"asked": 3}, {"asked": 0}]
    hint = {"name": "hint", "loss": ["told_clip"], "correction": "none"}
    for several, said in (
        (["prefix", "prefix"], "guide 'prefix' is named twice with the same options"),
        (
            [hint, {"name": "hint", "turns": 2}],
            "guide 'hint' is named 2 times with other losses or corrections",
        ),
    ):
        with pytest.raises(RecipeError, match=said):
            check_recipe({**SHOP, "guide": several})
    with pytest.raises(RecipeError, match="names 'prefix' 2 times"):
        check_recipe(
            {**SHOP, "guide": prefixes, "schedule": {"guide.prefix.share": {"name": "linear", "to": 0.1}}}
        )


def test_a_signal_that_a_guide_gives_is_known_to_the_recipe(own: Any) -> None:
    async def marking(player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        """Marks turns."""
        return list(groups)

    def marked(batch: Any) -> Any:
        """Reads the marks."""
        return batch.reward_BK + batch.signals["mark_of_help"]

    own("guide", "marking", marking, gives=("mark_of_help",))
    own("credit", "marked", marked, needs=("mark_of_help",), bias="biased: marks")
    assert "mark_of_help" in check_recipe({**SHOP, "guide": ["marking"], "credit": "marked"}).needs
    with pytest.raises(RecipeError, match=r"(?s)mark_of_help, which a guide gives.*Add guide: \[marking\]"):
        check_recipe({**SHOP, "credit": "marked"})


def test_what_remembers_is_not_played_ahead_of_learning(own: Any) -> None:
    own("guide", "counting", Counting)
    with pytest.raises(RecipeError, match="guide 'counting' remembers what was played"):
        check_recipe({**SHOP, "guide": ["counting"], "scale": {"staleness": 1}})


def test_help_plays_instead_of_the_plain_play(own: Any) -> None:
    """Nothing is played before it, and nothing may be left that was not played."""
    own("guide", "counting", Counting)
    played = {}
    for name, options in (
        ("after", {}),
        ("instead", {"instead": True}),
        ("left", {"instead": True, "forgets": 1}),
    ):
        recipe = check_recipe(
            {**SHOP, "guide": [{"name": "counting", **options}], "rollout": {"groups": 2, "group_size": 2}}
        )
        work = collect(
            recipe.rollout,
            Uniform(example_setup(groups=2, group_size=2, most=2)),
            untrained_policy(),
            build_parts(recipe),
            0,
            0,
        )
        if name == "left":
            with pytest.raises(RunError, match=r"left an episode of task .* unplayed"):
                asyncio.run(work)
            continue
        played[name] = asyncio.run(work)
    after, instead = played["after"], played["instead"]
    assert after.cost.steps > instead.cost.steps > 0
    assert [[e.seed for e in group] for group in after.played] == [
        [e.seed for e in group] for group in instead.played
    ]
    assert "success_unguided" in after.figures
    assert "success_unguided" not in instead.figures


def test_a_turn_that_two_episodes_share_is_not_learned_twice() -> None:
    async def both(player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        points = await player.moments([TurnPoint(groups[0][0], 2)])
        assert points[0] is not None
        on = await player.go_on({0: [points[0]]}, player.policy)
        return [[groups[0][0], on[0][0]]]

    _, (shared,) = played_with(both, "shop/quick", groups=1, size=2)
    with pytest.raises(RunError, match="share a turn after a guide, which would be learned twice"):
        check_played([shared], (), shared_turns=False)
    check_played([shared], (), shared_turns=True)
    turns = shared[1].trajectory.turns
    read = replace(
        shared[1].trajectory, turns=tuple(replace(t, weight=0.0) if k < 2 else t for k, t in enumerate(turns))
    )
    check_played([[shared[0], replace(shared[1], trajectories={read.agent: read})]], (), shared_turns=False)
    assert only_read(shared[0]) == shared[0]


def test_a_guide_plays_no_other_task_than_those_of_its_update() -> None:
    policy = untrained_policy()
    runner = RolloutRunner(policy, as_is)
    (strange,) = suite_tasks(get_suite("shop/quick"), Split.TEST, 1)

    async def run() -> None:
        plain = await chain(runner, plan_groups("shop/quick", 1, 1))
        player = GuidePlayer(runner, policy, {}, 0, 0, 0, frozenset({plain[0][0].task.id}))
        await prefix(player, plain)
        await player({0: [replace(plain[0][0], task=strange)]}, policy)

    with pytest.raises(RunError, match="which is none of update 1"):
        asyncio.run(run())


@pytest.mark.full
def test_a_run_whose_guide_remembers_is_resumed_and_learned_again(
    own: Any, letters: dict[str, Any], tmp_path: Path
) -> None:
    own("guide", "counting", Counting)
    recipe = {**letters, "warm_start": None, "guide": ["counting"], "updates": 3, "checkpoint": {"every": 1}}
    train(recipe, out=tmp_path / "whole", preflight=False, log=lambda line: None)

    def stop(line: str) -> None:
        if "2/3" in line:
            raise KeyError(line)

    with pytest.raises(KeyError):
        train(recipe, out=tmp_path / "run", preflight=False, log=stop)
    train(recipe, out=tmp_path / "run", preflight=False, resume=True, log=lambda line: None)
    one, other = (
        [
            {k: v for k, v in json.loads(line).items() if not k.endswith(CLOCK)}
            for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        ]
        for name in ("whole", "run")
    )
    assert one == other
    states = [
        json.loads((tmp_path / name / "checkpoints" / "step-000003" / "state.json").read_text())["parts"]
        for name in ("whole", "run")
    ]
    assert states[0] == states[1]
    assert states[0]["guide/counting"] == {"asked": 3}
    assert relearn(tmp_path / "run").equal[-1] == 3
