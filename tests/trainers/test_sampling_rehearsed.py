"""`turnwise explain --sampling`: a sampler against made-up outcomes."""

import contextlib
import json

import pytest

pytest.importorskip("torch")

from turnwise.cli import main
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.recipe.sampling import PlayedTask, rehearse_sampling, sampling_lines


def rehearsed(sampler: object, updates: int = 45) -> list[list[PlayedTask]]:
    suites = {"sort/4": 1, "shop/quick": 1}
    return rehearse_sampling(
        load_recipe("shop-quick", {"suite": suites, "rollout.sampler": sampler}), updates
    )


def test_curricula_play_what_can_be_learned() -> None:
    plain, again = rehearsed("uniform"), rehearsed("plr")
    assert not any(task.visits for update in plain for task in update)
    late = [[task for update in found[30:] for task in update] for found in (plain, again)]
    middle = [sum(0 < task.chance < 1 for task in tasks) / len(tasks) for tasks in late]
    assert middle[0] == pytest.approx(0.6, abs=0.1)
    assert middle[1] > middle[0] + 0.1
    assert again == rehearsed("plr")


def test_added_episodes_and_knobs_are_shown() -> None:
    added = rehearsed({"name": "dars", "most": 32}, 4)
    assert {task.episodes for update in added for task in update} > {8}
    assert "8 to " in "\n".join(sampling_lines(added))
    levels = {"name": "adr", "window": 16, "low": 0.1, "high": 0.4}
    told = "\n".join(sampling_lines(rehearsed(levels, 3)))
    assert told.index("sort/4 100%") < told.index("shop/quick")


def test_the_verb_says_it(capfd: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(SystemExit):
        main(["explain", "shop-quick", "--sampling", "3", "--json"])
    answer = json.loads(capfd.readouterr().out)
    assert len(answer["sampling"]) == 3
    assert "updates 1 to 1" in answer["text"]
