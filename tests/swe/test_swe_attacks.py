"""No attack of groups D, E and F scores, on either backend, and no text of a change is read."""

import pytest

from turnwise.envs.code.attacks import traps
from turnwise.envs.swe import actions, reward
from turnwise.envs.swe.attacks import ATTACKS
from turnwise.envs.swe.impostors import IMPOSTORS
from turnwise.envs.swe.place import definition
from turnwise.envs.swe.redteam import ELSEWHERE, RAIDS, judge_attack, play_raid, subject
from turnwise.envs.swe.reward import grade

TASK = subject()
AUDITED = ("equal by type", "equal by setattr", "frame by getattr")
SANDBOXED = {
    *range(39, 63),
    76,
    82,
}  # rows that are about what holds a process, which each back end does in its own way


def _marks(backend, number, name):
    """A few impostors of each kind, and on Docker what is about the back end; `make test-full` has all of them on both."""
    rows = {int(row) for row in ATTACKS[name].rows.split(",")}
    is_few = name not in IMPOSTORS or number % 6 == 0
    is_needed = bool(rows & SANDBOXED) if backend == "docker" else is_few
    return () if name in AUDITED or (is_needed and is_few) else pytest.mark.full


FEW = [
    pytest.param(backend, name, marks=_marks(backend, number, name))
    for backend in ("bubblewrap", "docker")
    for number, name in enumerate(ATTACKS)
]

ENDLESS = ("fork bomb", "spins", "hangs", "stops the warden", "stops the clocks")


@pytest.fixture
def soon(request, monkeypatch):
    """What would never end is ended sooner; the others keep their time, since being ended looks like failing."""
    if request.node.callspec.params.get("name") in ENDLESS:
        monkeypatch.setattr(reward, "LEAST_SECONDS", 3.0)
    if getattr(request.node.callspec.params.get("raid"), "rows", "") == "43":
        monkeypatch.setattr(actions, "SHELL_SECONDS", 3.0)


@pytest.fixture(scope="module")
def trap():
    with traps() as found:
        yield found


@pytest.mark.parametrize(("backend", "name"), FEW, indirect=["backend"])
def test_no_attack_scores(backend, name, soon):
    verdict = judge_attack(ATTACKS[name], backend)
    assert verdict.score == 0, verdict.why


@pytest.mark.slow
@pytest.mark.parametrize("raid", RAIDS, ids=lambda raid: raid.about)
def test_attacks_through_the_tools_get_and_reach_nothing(backend, raid, trap, soon):
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
    assert definition(data.decode("utf-8", "replace"), "f") == ""


@pytest.mark.parametrize("depth", [100, 900, 1200, 2000, 2700, 5000])
def test_no_depth_ends_who_compares_definitions(depth):
    assert "f" in definition("def f(): return " + "-" * depth + "1", "f") or depth > 500


def test_the_true_repair_passes(backend):
    verdict = grade(backend, TASK, TASK.fixed())
    assert verdict.resolved, verdict
