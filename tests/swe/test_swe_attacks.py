"""No attack of groups D, E and F scores, on either back end; what only the reading of the change stops is stated."""

import pytest

from turnwise.envs.code.attacks import traps
from turnwise.envs.swe.attacks import ATTACKS
from turnwise.envs.swe.grade import grade
from turnwise.envs.swe.guard import suspicions
from turnwise.envs.swe.instance import load_instances
from turnwise.envs.swe.place import definition
from turnwise.envs.swe.redteam import ELSEWHERE, HERE, RAIDS, judge_attack, play_raid, subject

TASKS = load_instances(HERE / "small.jsonl")
TASK = subject()
RUNS = [name for name, attack in ATTACKS.items() if attack.inside]  # which no reading stops


@pytest.fixture(scope="module")
def trap():
    with traps() as found:
        yield found


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_scores(backend, name):
    assert judge_attack(ATTACKS[name], backend).score == bool(ATTACKS[name].residual)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_what_an_attack_comes_to_where_the_change_is_not_read(backend, name):
    verdict = judge_attack(ATTACKS[name], backend, guard=False)
    assert verdict.score != ATTACKS[name].unguarded, verdict


@pytest.mark.slow
@pytest.mark.parametrize("raid", RAIDS, ids=lambda raid: raid.about)
def test_attacks_through_the_tools_get_and_reach_nothing(backend, raid, trap):
    verdict = play_raid(raid, backend.name, trap)
    assert verdict.ok, verdict


def test_the_battery_covers_its_rows():
    told = [attack.rows for attack in ATTACKS.values()] + [raid.rows for raid in RAIDS]
    rows = {int(row) for text in told for row in text.split(",")}
    assert rows | ELSEWHERE >= set(range(39, 85))
    assert not rows & ELSEWHERE


@pytest.mark.parametrize("text", ["-" * 50_000 + "1", "x = 1\n" * 2_700_000, "(" * 300, "x = '\ud800'", "\0"])
def test_no_text_ends_who_reads_it(text):
    data = text.encode("utf-8", "surrogatepass")
    assert suspicions({"a.py": b""}, {"a.py": data}, {}) == ["what cannot be read"]
    assert definition(data.decode("utf-8", "replace"), "f") == ""


@pytest.mark.parametrize("depth", [100, 900, 1200, 2000, 2700, 5000])
def test_no_depth_ends_who_compares_definitions(depth):
    assert "f" in definition("def f(): return " + "-" * depth + "1", "f") or depth > 500


def test_the_true_repair_passes(backend):
    verdict = grade(backend, TASK, TASK.fixed())
    assert verdict.resolved, verdict


def test_honest_repairs_are_not_suspicious():
    for task in TASKS:
        assert suspicions(task.broken(), task.fixed(), {}) == []
