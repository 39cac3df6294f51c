"""Scripts that look for a bug by its issue: what they find says how hard a suite is, and which bugs are kept as hard."""

import dataclasses

import pytest

from turnwise.envs.swe.draw import Drawing
from turnwise.envs.swe.localise import LOCALISERS, calls, compared, grep, look_of, named, places_of
from turnwise.envs.swe.mutate import Edit
from turnwise.envs.swe.packages import get_package
from turnwise.envs.swe.redteam import subject
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.tools.sandbox.registry import isolated_backend

TASK = subject()


def test_places_are_the_functions_of_the_package_and_what_is_outside_of_them():
    names = {(place.path.rpartition("/")[2], place.name) for place in places_of(TASK)}
    assert ("amounts.py", "add") in names
    assert ("amounts.py", "") in names
    assert not any("test" in path for path, _ in names)


def test_each_localiser_finds_what_it_is_made_for():
    places = places_of(TASK)
    by_name = dataclasses.replace(TASK, issue="`add` is wrong")
    assert look_of(by_name, "named") == look_of(by_name, "calls") == 1
    told = next(place for place in places if place.name == TASK.where)
    rare = max(told.words, key=lambda word: (-sum(word in place.words for place in places), told.words[word]))
    assert grep(f"{rare} {rare}", places)[0].words[rare]
    assert named("nothing that is known here", places) == []
    assert len(calls("nothing", places)) == len(places)
    assert look_of(dataclasses.replace(TASK, issue="It is wrong."), "named") > 5


def test_a_bug_in_a_second_file_counts_as_a_place():
    other = Edit("purse/sharing.py", 0, "", "")
    two = dataclasses.replace(TASK, where="nowhere", edits=(*TASK.edits, other), issue="share parts")
    assert any(look_of(two, name) <= 30 for name in LOCALISERS)


def test_drawn_bugs_are_mostly_found_by_the_names_in_their_issues():
    (row, *_) = compared({"small": load_instances(place_of("small"))})
    assert (row.localiser, row.tasks) == ("named", 30)
    assert row.first > 0.7 < row.five


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_hard_bugs_are_those_that_no_localiser_finds():
    drawing = Drawing(isolated_backend(), get_package("purse"), seed=3, hard=True)
    made = list(drawing.draw(1))
    assert drawing.tally.found > 0
    assert all(look_of(task, name) > 5 for task in made for name in LOCALISERS)
