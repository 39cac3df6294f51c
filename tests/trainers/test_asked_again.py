"""A sampler that wants more episodes of what was just played: they are played, learned, logged and learned again; and what it is told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise import registry
from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.envs.core import EndReason
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component, get_component
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.again import asked_again, replayed
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SamplerSetup, SeenGroup, example_setup


def worse(episodes: Sequence[Episode]) -> bool:
    first, second = (one.trajectory.total_reward for one in episodes[:2])
    return first < second


class More(Sampler):
    """Two further episodes of each group whose first one earned less than its second, once."""

    adds = True

    def __init__(self, setup: SamplerSetup) -> None:
        super().__init__(setup)
        self.told: list[float] = []

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset({self.setup.group_size, self.setup.group_size + 2})

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        first = self.setup.first_new(update) + played
        return [self.setup.request(index) for index in range(first, first + groups)]

    def again(self, update: int, groups: Sequence[SeenGroup]) -> list[GroupRequest]:
        size = self.setup.group_size
        return [
            replace(g.request, episodes=size + 2)
            if len(g.episodes) == size and worse(g.episodes)
            else g.request
            for g in groups
        ]

    def evaluated(self, dev_success: float) -> None:
        self.told.append(dev_success)

    def figures(self) -> Mapping[str, float]:
        return {"evaluations": len(self.told)}


@pytest.fixture
def more() -> Iterator[None]:
    component("sampler", "more")(More)
    yield
    registry._components.pop(("sampler", "more"), None)


def test_added_episodes_are_played_logged_and_learned_again(
    more: None, letters: dict[str, Any], tmp_path: Path
) -> None:
    rollout = {"groups": 3, "group_size": 4, "concurrency": 16, "sampler": "more"}
    recipe = {**letters, "warm_start": None, "rollout": rollout, "updates": 3, "checkpoint": {"every": 1}}
    train(recipe, out=tmp_path / "run", preflight=False, log=lambda line: None)
    episodes = [one for one in LogReader(tmp_path / "run" / "episodes.jsonl.zst") if one.update is not None]
    sizes = Counter((one.update, one.group) for one in episodes)
    assert set(sizes.values()) == {4, 6}, "else nothing was added, or to all"
    for (update, group), size in sizes.items():
        seeds = {one.episode.seed for one in episodes if (one.update, one.group) == (update, group)}
        assert len(seeds) == size, "an episode is no copy of one before"
        first = [one for one in episodes if (one.update, one.group) == (update, group)][:4]
        assert (size == 6) == worse([one.episode for one in first])
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["more/evaluations"] for row in rows if row["phase"] == "rl"] == [0, 0, 1]
    assert relearn(tmp_path / "run").equal[-1] == 3


def test_a_guide_that_replaces_failures_leaves_a_log_that_is_learned_again(
    letters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 247: a group that nobody solved, whose last row was played with solved examples, had its episodes added before."""
    monkeypatch.setattr("letters.EARLY", frozenset("abcdefghijklmnopqrstuvwxyz"))  # half of a random model's
    rollout = {"groups": 4, "group_size": 2, "concurrency": 16, "sampler": {"name": "xrpo", "most": 6}}
    scratch = {**letters["model"]["scratch"], "context": 1024}
    recipe = {
        **letters,
        "model": {"scratch": scratch},
        "rollout": rollout,
        "updates": 3,
        "guide": ["xrpo"],
        "checkpoint": {"every": 1},
        "evaluate": {"every": 3, "dev": 2, "test": 2},
    }
    train(recipe, out=tmp_path / "run", preflight=False, log=lambda line: None)
    episodes = [one for one in LogReader(tmp_path / "run" / "episodes.jsonl.zst") if one.update is not None]
    helped = [
        one
        for one in episodes
        if any(turn.reply.source == "guide/xrpo" for turn in one.episode.trajectory.turns)
    ]
    assert helped
    assert max(Counter((one.update, one.group) for one in episodes).values()) > 2
    assert relearn(tmp_path / "run").equal[-1] == 3


def test_what_a_guide_played_in_place_of_a_failure_counts_as_one() -> None:
    """Else a group that nobody solved would look less certain, and have been given other episodes."""
    options = {"phases": 1, "each": 2, "bonus": 0.0}
    sampler = get_component("sampler", "xrpo").build(options)(example_setup(groups=2, group_size=4))
    asked = sampler.plan(0, 0, 2)
    ends = [[EndReason.FAILED] * 9, [EndReason.SOLVED, *[EndReason.FAILED] * 8]]
    every = [[episode([0.0], end=end) for end in some] for some in ends]
    requests = asked
    while True:
        played = [group[: one.episodes] for one, group in zip(requests, every, strict=True)]
        wanted = asked_again(sampler, 0, requests, played)
        if wanted == requests:
            break
        requests = wanted
    solved = episode([1.0], end=EndReason.SOLVED)
    (turn,) = solved.trajectory.turns
    by_guide = replace(turn, reply=turn.reply._replace(source="guide/xrpo"))
    helped = replace(solved, trajectories={"agent": replace(solved.trajectory, turns=(by_guide,))})
    sizes = [one.episodes for one in requests]
    for row, same in ((helped, True), (solved, False)):
        logged = [[row, *every[0][1 : sizes[0]]], every[1][: sizes[1]]]
        found = replayed(sampler, 0, asked, logged)
        assert ([one.episodes for one in found] == sizes) is same


def test_it_may_neither_change_tasks_nor_take_episodes_back() -> None:
    sampler = More(example_setup())
    asked = [sampler.setup.request(0), sampler.setup.request(1)]
    for wrong in ([asked[1], asked[1]], [replace(asked[0], episodes=1), asked[1]]):
        sampler.again = lambda update, groups, wrong=wrong: wrong
        with pytest.raises(RunError, match="was asked again in update 1"):
            asked_again(sampler, 0, asked, [[], []])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rollout": {"sampler": "more", "refill": {"informative": 8}}}, "refill"),
        ({"guide": ["prefix"]}, "guide"),
        ({"guide": ["xrpo"]}, "guide"),  # it goes by rewards
        ({"rollout": {"sampler": "more", "strategy": "vine"}, "credit": "vine"}, "strategy"),
    ],
)
def test_what_would_hide_how_the_first_ones_went_is_refused(
    more: None, changes: Mapping[str, Any], words: str
) -> None:
    recipe = {"suite": "shop/quick", "model": {"scratch": {}}, "rollout": {"sampler": "more"}}
    with pytest.raises(RecipeError, match=f"(?s)'more' adds episodes by how the first ones went.*{words}"):
        check_recipe({**recipe, **changes})
