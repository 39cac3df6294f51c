"""The ladder of scripts, and the suite that was made against its localisers."""

import dataclasses
import json
from random import Random

import pytest

from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.ladder import LADDER, level_of, play
from turnwise.envs.swe.levels import LEVELS, key_of
from turnwise.envs.swe.localise import LOCALISERS, LOOKS, look_of
from turnwise.envs.swe.redteam import subject
from turnwise.envs.swe.sweep import sweep
from turnwise.envs.swe.tasks import draw_task, load_instances, place_of
from turnwise.envs.swe.twins import function_of
from turnwise.errors import EnvError
from turnwise.tasks.core import Split


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


def test_a_sweep_goes_on_where_it_was_cut(tmp_path):
    file, seen = tmp_path / "rows.jsonl", []

    def note(task):
        seen.append(task.where)
        return {"where": task.where}

    def few(suite, tasks):
        return tasks[:3]

    assert sweep(["small"], file, note, seconds=-1, choose=few) == ({"small": []}, 3)
    whole = sweep(["small"], file, note, choose=few)
    assert whole.left == 0
    file.write_text(file.read_text()[:-9])  # interrupted while the last row was written
    assert sweep(["small"], file, note, choose=few) == whole
    assert len(seen) == 4
    assert [row["where"] for row in whole.rows["small"]] == seen[:3]


def test_levels_are_of_tasks_that_are_there_and_choose_among_them():
    known = {
        key_of(task): task for name in ("small", "history", "hard") for task in load_instances(place_of(name))
    }
    levels = json.loads(LEVELS.read_text("utf-8"))
    assert levels.keys() <= known.keys()
    assert set(levels.values()) <= {1, 2, 3, 4}
    some = {task.where for key, task in known.items() if levels.get(key) == 3}
    drawn = draw_task(Random(0), Split.TRAIN, tasks="small", levels=[3])
    assert drawn.options["where"] in some
    with pytest.raises(EnvError, match="No task of"):
        draw_task(Random(0), Split.TRAIN, tasks="small", levels=[7])


def test_hard_tasks_have_what_judges_them_and_say_nothing_of_the_place():
    tasks: tuple[Instance, ...] = load_instances(place_of("hard"))
    assert len({task.package for task in tasks}) >= 6
    assert len({task.operator for task in tasks}) >= 8
    assert any(len(task.edits) > 1 for task in tasks)
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
