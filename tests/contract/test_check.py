"""The checker passes what keeps the contract, and catches each way of breaking it."""

import io
import re
from pathlib import Path

import gymnasium
import pytest

from turnwise.cli.environments import show_card
from turnwise.console import SafeConsole
from turnwise.envs import registry
from turnwise.envs.baselines import astray, moment
from turnwise.envs.check import command, play
from turnwise.envs.check.command import REQUIREMENTS, CheckReport, RequirementResult, check_env
from turnwise.envs.lab.env import LabEnv
from turnwise.envs.registry import env_entries, get_suite, register, suite_task
from turnwise.tasks.core import Split

BROKEN = [
    ("E1", "PaysMoreThanItsComponents", "its parts sum to"),
    ("E1", "PaysInfinity", "finite"),
    ("E1", "PaysUndeclared", "tip"),
    ("E1", "PotentialThatWobbles", "shaping sums to"),
    ("E2", "EndsBothWays", "terminated=True, truncated=True"),
    ("E2", "EndsWithoutName", "end None"),
    ("E2", "CallsTheLimitATermination", "turn_limit"),
    ("E2", "PlaysOnAfterTheLimit", "12 turns where 9 are allowed"),
    ("E3", "UsesTheGlobalRng", "global RNG"),
    ("E3", "ReadsTheClock", "a second run"),
    ("E3", "OrdersBySet", "PYTHONHASHSEED"),
    ("E4", "ChangesItsState", "restore"),
    ("E4", "KeepsASecretCounter", "restore"),
    ("E4", "ForksSlowly", "µs"),
    ("E5", "KeysByAddress", "key"),
    ("E5", "KeyIsConstant", "one key"),
    ("E6", "GoldFails", "gold does not solve"),
    ("E6", "ChangesItsTask", "is changed by those who play it"),
    ("E6", "GivesItAway", "succeeds at 100%"),
    ("E6", "SplitsOverlap", "share task"),
    ("E7", "FallsOverGarbage", "raises KeyError"),
    ("E7", "EndsOnGarbage", "ends the episode"),
    ("E7", "AnswersNothing", "is not answered"),
    ("E8", "TellsTheAnswer", "shows the gold"),
    ("E8", "SpeaksAsTheAssistant", "speaks as 'assistant'"),
    ("E8", "EchoesWithoutLimit", "are allowed"),
    ("E8", "EchoesBadUnicode", "Unicode"),
    ("E9", "GymnasiumRefusesIt", "gymnasium warns"),
    ("E9", "MakesOthersTasks", "makes tasks of 'turnwise/Shop-v0'"),
]


@pytest.fixture
def broken(monkeypatch):
    """Registers a class of broken_envs for one test only."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(registry, "_envs", {entry.name: entry for entry in env_entries()})
    names = []

    def enter(cls: str) -> str:
        names.append(f"broken/{cls}-v0")
        register(names[-1], f"broken_envs:{cls}", "For tests.")
        return names[-1]

    yield enter
    for name in names:
        gymnasium.registry.pop(name, None)


@pytest.mark.slow
def test_a_sound_environment_passes_every_clause(broken):
    report = check_env(broken("Good"), tasks=60)
    assert report.ok, str(report)
    assert list(report.requirements) == list(REQUIREMENTS) == [f"E{n}" for n in range(1, 10)]


@pytest.mark.parametrize(("requirement", "cls", "told"), BROKEN, ids=[cls for _, cls, _ in BROKEN])
def test_each_way_of_breaking_a_requirement_is_caught(broken, requirement, cls, told):
    report = check_env(broken(cls), tasks=5, only=[requirement])
    assert not report.ok, str(report)
    assert told in report.requirements[requirement].detail


def test_every_clause_has_an_environment_that_breaks_it():
    assert {requirement for requirement, _, _ in BROKEN} == set(REQUIREMENTS)


def test_the_card_as_json_and_as_text(broken):
    report = check_env(broken("GoldFails"), tasks=2, only=["E2", "E6"])
    card = report.to_json()
    assert card["env"] == "broken/GoldFails-v0"
    assert card["ok"] is False
    assert set(card["requirements"]["E6"]) == {"ok", "detail"}
    assert "BROKEN" in str(report)
    assert "✓ E2" in str(report)


@pytest.mark.parametrize(("name", "tasks"), [("turnwise/Sort-v0", "50"), ("turnwise/Code-v0", "10")])
def test_fewer_tasks_where_a_world_takes_its_time(name, tasks, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr(
        command, "REQUIREMENTS", {"E6": ("Gold and baselines", lambda subject: str(subject.tasks))}
    )
    report = check_env(name, on_requirement=lambda: told.append("one"))
    assert (report.requirements["E6"].detail, told) == (tasks, ["one"])


def test_a_baseline_is_judged_by_its_interval_and_says_it(broken, monkeypatch):
    """One lucky episode of five is 20 %, and 4 % to 62 % is what five episodes can tell."""
    lucky = lambda suite, agent, subject: play.BaselineScore(
        agent, int(agent == "random"), subject.tasks, 0.2
    )
    monkeypatch.setattr(play, "_play_baseline", lucky)
    result = check_env(broken("Good"), tasks=5, only=["E6"]).requirements["E6"]
    assert result.ok
    assert (
        "random at 20% of 5 tasks, 95% interval 4% to 62%: the bound of 10% may still hold" in result.detail
    )
    many = lambda suite, agent, subject: play.BaselineScore(agent, subject.tasks // 5, subject.tasks, 0.2)
    monkeypatch.setattr(play, "_play_baseline", many)
    result = check_env(broken("Good"), tasks=60, only=["E6"]).requirements["E6"]
    assert not result.ok
    assert (
        "null succeeds at 20% of 60 tasks, 95% interval 12% to 32%, above the bound of 10%" in result.detail
    )


def test_no_markup_and_no_emoji_eats_a_name_on_the_card():
    told = "AssertionError (m_gold.py:100:) in [bold]state[/bold] :smile:"
    shown = io.StringIO()
    report = CheckReport("desk/:100:[red]-v0", {"E1": RequirementResult(False, told)})
    show_card(SafeConsole(file=shown, width=200), report)
    assert told in shown.getvalue()
    assert "desk/:100:[red]-v0 breaks the contract" in shown.getvalue()


def test_an_authors_own_timeout_is_theirs(broken, monkeypatch):
    import broken_envs

    def late(self, state, action):
        raise TimeoutError("the printer does not answer")

    monkeypatch.setattr(broken_envs.Good, "transition", late)
    detail = check_env(broken("Good"), tasks=3, only=["E1"]).requirements["E1"].detail
    assert "raises TimeoutError: the printer does not answer (" in detail
    assert "took more than" not in detail


def test_an_agent_that_goes_astray_begins_a_task_once_and_keeps_each_environments_own_beginning(monkeypatch):
    env, other = (LabEnv(), LabEnv())
    tasks = [suite_task(get_suite("lab/easy"), Split.TRAIN, index) for index in range(2)]
    begun: list[str] = []
    reset = LabEnv.reset
    monkeypatch.setattr(
        LabEnv, "reset", lambda env, **given: begun.append(env.__class__) or reset(env, **given)
    )
    for one, task in zip((env, other), tasks, strict=True):
        one.reset(seed=0, options={"task": task})
    gold = [one.gold(one.state) for one in (env, other)]
    begun.clear()
    seen: list[list[str]] = [[], []]
    for _ in range(3):  # by turns, and then the second alone
        for place, one in enumerate((env, other)):
            seen[place].append(numberless(astray(moment(one, (), "astray"))))
            one.step("look")
    for _ in range(3):
        seen[1].append(numberless(astray(moment(other, (), "astray"))))
        other.step("look")
    assert seen == [[numberless(gold[0])] * 3, [numberless(gold[1])] * 6]
    assert gold[0] != gold[1]
    assert len(begun) == 2, "once for each episode, though they are played by turns"


def numberless(action: str) -> str:
    return re.sub(r"\d+", "N", action)
