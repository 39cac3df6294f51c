"""The ladder of scripts, and the suite that was made against its localisers."""

import dataclasses

import pytest

from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.ladder import LADDER, level_of, play
from turnwise.envs.swe.localise import LOCALISERS, LOOKS, look_of
from turnwise.envs.swe.redteam import subject
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.envs.swe.twins import function_of


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_scripts_play_through_the_tools_and_the_strongest_repairs_what_it_sees():
    env, task = SweEnv(), subject()
    try:
        seen = {name: play(env, task, name) for name in LADDER}
        blind = dataclasses.replace(task, issue="It is wrong.", where="add")
        lost = play(env, dataclasses.replace(blind, issue="share settle parts people"), "localise")
    finally:
        env.close()
    assert seen["localise"].resolved
    assert seen["localise"].calls <= 7
    assert not lost.resolved or lost.calls > 3  # it sees the place late, or not at all
    assert all(0 < one.calls < 10 for one in seen.values())


def test_a_level_is_the_first_script_that_solves():
    assert [
        level_of(dict(zip(LADDER, bits, strict=True)))
        for bits in ((1, 1, 1), (0, 1, 0), (0, 0, 1), (0, 0, 0))
    ] == [1, 2, 3, 4]


def test_hard_tasks_have_what_judges_them_and_say_nothing_of_the_place():
    tasks: tuple[Instance, ...] = load_instances(place_of("hard"))
    assert len({task.package for task in tasks}) >= 6
    assert len({task.operator for task in tasks}) >= 5
    assert any("```python" not in task.issue for task in tasks)
    assert any("```python" in task.issue for task in tasks)
    for task in tasks:
        twinned = {twin.function for twin in task.twins}
        assert twinned & {function_of(test) for test in task.fail_to_pass}
        assert not {path for path in task.hidden if task.source.is_source(path)}


@pytest.mark.full
def test_no_localiser_finds_a_hard_task_in_five_looks():
    for task in load_instances(place_of("hard")):  # fetches source distributions
        assert all(look_of(task, name) > LOOKS for name in LOCALISERS), task.where
