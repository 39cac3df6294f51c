"""The checker passes what keeps the contract, and catches each way of breaking it."""

from pathlib import Path

import gymnasium
import pytest

from turnwise.envs import check, registry
from turnwise.envs.check import CLAUSES, check_env
from turnwise.envs.registry import env_entries, register

BROKEN = [
    ("E1", "PaysMoreThanItsLedger", "its parts sum to"),
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
    ("E6", "GoldFails", "gold scores 0"),
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


def test_a_sound_environment_passes_every_clause(broken):
    report = check_env(broken("Good"), tasks=60)
    assert report.ok, str(report)
    assert list(report.clauses) == list(CLAUSES) == [f"E{n}" for n in range(1, 10)]


@pytest.mark.parametrize(("clause", "cls", "told"), BROKEN, ids=[cls for _, cls, _ in BROKEN])
def test_each_way_of_breaking_a_clause_is_caught(broken, clause, cls, told):
    report = check_env(broken(cls), tasks=5, only=[clause])
    assert not report.ok, str(report)
    assert told in report.clauses[clause].detail


def test_every_clause_has_an_environment_that_breaks_it():
    assert {clause for clause, _, _ in BROKEN} == set(CLAUSES)


def test_the_card_as_json_and_as_text(broken):
    report = check_env(broken("GoldFails"), tasks=2, only=["E2", "E6"])
    card = report.to_json()
    assert card["env"] == "broken/GoldFails-v0"
    assert card["ok"] is False
    assert set(card["clauses"]["E6"]) == {"ok", "detail"}
    assert "BROKEN" in str(report)
    assert "✓ E2" in str(report)


@pytest.mark.parametrize(("name", "tasks"), [("turnwise/Sort-v0", "50"), ("turnwise/Code-v0", "10")])
def test_fewer_tasks_where_a_world_takes_its_time(name, tasks, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr(check, "CLAUSES", {"E6": ("Gold and floor", lambda subject: str(subject.tasks))})
    report = check_env(name, on_clause=lambda: told.append("one"))
    assert (report.clauses["E6"].detail, told) == (tasks, ["one"])
