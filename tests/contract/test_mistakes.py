"""Every mistake of the table, made as its author would make it, gets its message: cause, place and remedy."""

import importlib.util
import re
import runpy
import sys
from pathlib import Path

import gymnasium
import pytest

from turnwise.cli.app import run
from turnwise.envs import registry
from turnwise.envs.check import walks
from turnwise.envs.check.command import check_env
from turnwise.envs.registry import env_entries
from turnwise.errors import TurnwiseError

SPEC = importlib.util.spec_from_file_location("mistakes", Path(__file__).with_name("mistakes.py"))
mistakes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mistakes)
MISTAKES, Mistake = mistakes.MISTAKES, mistakes.Mistake


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Writes a mistake into desk.py of an empty folder, in which one then is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_envs", {entry.name: entry for entry in env_entries()})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "desk", raising=False)

    def write(mistake):
        script = any(old == mistakes.RUN for old, _ in mistake.swaps)
        (tmp_path / "desk.py").write_text(mistakes.DESK if script else mistakes.source(mistake))
        (tmp_path / "script.py").write_text(mistakes.source(mistake))
        if "DeadlineError" in mistake.told:
            monkeypatch.setattr(walks, "CALL_S", 0.5)

    yield write
    gymnasium.registry.pop("library/Desk-v0", None)
    sys.modules.pop("desk", None)


def told(mistake, capfd) -> str:
    """What the verb says, on one line."""
    if mistake.swaps[0][0] == mistakes.RUN:
        with pytest.raises(TurnwiseError) as raised:
            runpy.run_path("script.py")
        return str(raised.value)
    if mistake.verb == "eval":
        assert run(["eval", "desk.py", "--policy", "scripted:gold", "--episodes", "4"]) == 1
        shown = capfd.readouterr()
        return f"{shown.out} {shown.err}"
    if mistake.verb.startswith("check"):
        name = mistake.verb.removeprefix("check").strip()
        with pytest.raises(TurnwiseError) as raised:
            check_env(f"desk.py:{name}" if name else "desk.py")
        return str(raised.value)
    report = check_env("desk.py", tasks=12, only=[mistake.verb])
    assert not report.ok, str(report)
    return report.requirements[mistake.verb].detail


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_each_mistake_is_told_with_cause_place_and_remedy(desk, mistake, capfd):
    desk(mistake)
    said = re.sub(r"\s+", " ", told(mistake, capfd))
    file = "script.py" if mistake.swaps[0][0] == mistakes.RUN else "desk.py"
    place = f"{file}:{mistakes.line(mistake)}" if mistake.at else file
    said = re.sub(r"\S*desk\.py(?!:\d)", "FILE", said)
    assert mistake.told.replace("LINE", place) in said
    if mistake.at:
        assert place in said
    assert "please report it" not in said


@pytest.mark.slow
def test_the_environment_of_the_table_is_sound(desk):
    desk(Mistake("none", (), "", ""))
    report = check_env("desk.py", tasks=20)
    assert report.ok, str(report)


def test_one_cause_is_told_once(desk):
    (mistake,) = (m for m in MISTAKES if m.what == "Gymnasium's five values are returned")
    desk(mistake)
    details = [result.detail for result in check_env("desk.py", tasks=4).requirements.values()]
    assert sum("a tuple of 5" in detail for detail in details) == 1
    assert "(also breaks E2, E3, E4, E5, E6, E7, E8, E9)" in details[0]
    assert details[1:] == ["broken by the same cause as E1"] * 8


def test_what_hangs_is_tried_once_and_named(desk):
    (mistake,) = (m for m in MISTAKES if m.what == "A loop without an end")
    desk(mistake)
    details = [result.detail for result in check_env("desk.py", tasks=4).requirements.values()]
    assert "it stood at" in details[0]
    assert "desk.py:4" in details[0]
    assert details[1:] == ["broken by the same cause as E1"] * 8


def test_the_table_is_long_and_its_page_is_up_to_date():
    assert len(MISTAKES) >= 30
    assert mistakes.PAGE.read_text("utf-8") == mistakes.page(), "run: python tests/contract/mistakes.py"
