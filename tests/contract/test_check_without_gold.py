"""What published benchmarks are like is checked as far as it can be, and the report says how far that was."""

import threading
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from turnwise.envs import registry
from turnwise.envs.baselines import best_known, moment
from turnwise.envs.check.command import REQUIREMENTS, check_env
from turnwise.envs.check.survey import survey
from turnwise.envs.messages import Message
from turnwise.envs.registry import env_entries, get_suite, make, register, suite_task
from turnwise.envs.sources import load_class
from turnwise.errors import EnvError
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall

HERE = [requirement for requirement in REQUIREMENTS if requirement != "E3"]  # E3 starts a second interpreter


@pytest.fixture
def entered(monkeypatch):
    """Registers a class of goldless_envs for one test only."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(registry, "_envs", {entry.name: entry for entry in env_entries()})
    names = []

    def enter(cls: str) -> str:
        names.append(f"goldless/{cls}-v0")
        register(names[-1], f"goldless_envs:{cls}", "For tests.")
        return names[-1]

    yield enter
    for name in names:
        gymnasium.registry.pop(name, None)


def test_a_world_of_one_turn_that_any_wrong_text_ends_keeps_the_contract(entered):
    report = check_env(entered("OneAnswer"), tasks=5, only=HERE)
    assert report.ok, str(report)
    assert not [each for each in report.unseen if each.startswith(("E6", "E7"))]


def test_without_gold_everything_else_is_checked_and_the_rest_is_named(entered):
    report = check_env(entered("Rooms"), quick=True, only=HERE)
    assert report.ok, str(report)
    told = "\n".join(report.unseen)
    assert "that 9 of 9 tasks can be solved: no gold is known" in told
    assert "forks were tried at" in told
    assert "each requirement was tested on 1 task" in told
    assert "gold unknown" in report.requirements["E6"].detail
    assert report.to_json()["unseen"] == list(report.unseen)


@pytest.mark.slow
def test_without_gold_two_processes_still_play_the_same(entered):
    assert check_env(entered("Rooms"), quick=True, only=["E3"]).ok


@pytest.mark.slow
def test_a_solution_that_differs_from_process_to_process_is_refused_until_it_is_declared(entered):
    assert not check_env(entered("Wanderer"), quick=True, only=["E3"]).ok
    report = check_env(entered("DeclaredWanderer"), quick=True, only=["E3"])
    assert report.ok
    assert any("drawn anew in each process" in each for each in report.unseen)


def test_without_gold_floors_are_still_checked(entered):
    report = check_env(entered("RoomsThatPayTwice"), quick=True, only=["E6"])
    assert "succeeds at 100%" in report.requirements["E6"].detail


def test_a_recorded_episode_is_walked_where_no_gold_is_known(entered):
    env = make(entered("RecordedRooms"))
    task = suite_task(get_suite("goldless/RecordedRooms-v0"), Split.TRAIN, 0)
    said, _ = env.reset(seed=0, options={"task": task})
    env.step(best_known(moment(env, said, "best_known")))
    assert env.step(best_known(moment(env, said, "best_known"))).info.get("end") == "solved"


def test_a_task_may_say_itself_that_its_gold_is_known(entered):
    cls = registry.env_class(entered("Rooms"))
    task = suite_task(get_suite("goldless/Rooms-v0"), Split.TRAIN, 0)
    assert not cls.knows_gold(task)
    assert cls.knows_gold(replace(task, options={**task.options, "gold_known": True}))


def test_words_that_end_an_episode_with_tools_are_refused_until_they_are_declared(entered):
    assert (
        "ends the episode" in check_env(entered("Talker"), quick=True, only=["E7"]).requirements["E7"].detail
    )
    report = check_env(entered("DeclaredTalker"), quick=True, only=["E7"])
    assert report.ok
    assert "declared: words without a call are the final answer" in report.requirements["E7"].detail


def test_words_that_end_an_episode_may_be_paid_for_its_work_and_not_for_nothing(entered):
    report = check_env(entered("PaidTalker"), quick=True, only=["E6", "E7"])
    assert report.requirements["E7"].ok
    assert "succeeds at 100%" in report.requirements["E6"].detail


def test_calls_that_end_an_episode_are_refused_until_they_are_declared(entered):
    refused = check_env(entered("OneCall"), quick=True, only=["E7"]).requirements["E7"].detail
    assert "an unknown argument ends the episode" in refused
    report = check_env(entered("DeclaredOneCall"), quick=True, only=["E7"])
    assert report.ok, str(report)


def test_gold_that_nobody_knows_is_refused_in_words_and_a_survey_goes_without(entered):
    env = make(entered("Rooms"))
    env.reset(seed=0)
    with pytest.raises(EnvError, match="knows no solution"):
        env.gold(env.state)
    found = survey(get_suite("goldless/Rooms-v0"), gold=3, baselines=3, tasks=30)
    assert (found.gold, found.worst, found.played) == (None, None, 0)
    assert found.ok


def test_a_call_where_there_are_no_tools_is_answered_and_nothing_else_happens(entered):
    env = make(entered("OneAnswer"))
    env.turn_limit = 2
    env.reset(seed=0)
    step = env.step(Message("assistant", "", (ToolCall("calculator", {}, "c1"),)))
    assert not step.terminated
    assert "There is no tool 'calculator'" in step.observation[-1].content
    assert step.observation[-1].tool_call_id == "c1"


def test_a_file_that_takes_its_time_to_run_is_one_class_for_all_threads(tmp_path):
    file = tmp_path / "late.py"
    source = (Path(__file__).parent / "goldless_envs.py").read_text("utf-8")
    file.write_text(source.replace("from random", "import time\n\ntime.sleep(0.2)\nfrom random", 1))
    found: list[object] = []

    def load() -> None:
        try:
            found.append(load_class(f"{file}:OneAnswer"))
        except EnvError as error:
            found.append(str(error))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(each) for each in found}) == 1, found
