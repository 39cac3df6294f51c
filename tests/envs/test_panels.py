"""Panels: lists of tasks that stay as they are, or are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnwise.cli.app import VERBS
from turnwise.envs.panels import check_panel, make_panel, panels, read_panel, write_panel
from turnwise.envs.small.calc import CalcEnv
from turnwise.errors import EnvError, NotFoundError, TurnwiseError
from turnwise.tasks.core import Split


def played(name: str, out: Path) -> dict:
    answer = VERBS["eval"](name, policy=["scripted:gold"], out=out, episodes=200)
    assert answer.code == 0
    return answer.value


def test_a_panel_is_played_whole_and_its_hash_is_in_every_result(tmp_path: Path) -> None:
    made = make_panel("mine", ["calc/easy", "sort/4"], 3, split=Split.DEV, version=2)
    write_panel(made, tmp_path / "mine.json")
    told = played(f"panel/{tmp_path / 'mine.json'}", tmp_path / "out")
    assert [(one["suite"], one["split"], one["episodes"]) for one in told["evaluations"]] == [
        ("calc/easy", "dev", 3),
        ("sort/4", "dev", 3),
    ]
    assert {one["panel"] for one in told["evaluations"]} == {f"mine-2:{made.hash}"}
    results = [json.loads(file.read_text()) for file in (tmp_path / "out").glob("*/*.json")]
    assert {one["panel"] for one in results} == {f"mine-2:{made.hash}"}
    assert len(results) == 4, "what was asked and what came of it, of each suite"
    assert sorted(results[0]["results"] if "results" in results[0] else results[1]["results"]) in (
        sorted(task.id for task in made.parts[0].tasks),
        sorted(task.id for task in made.parts[1].tasks),
    )


def test_a_panel_whose_tasks_have_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_panel("mine", ["calc/easy"], 4)
    write_panel(made, tmp_path / "mine.json")
    check_panel(read_panel(str(tmp_path / "mine.json")))
    monkeypatch.setattr(CalcEnv, "system", CalcEnv.system + " ")  # the same tasks, and another prompt
    with pytest.raises(EnvError, match=r"4 of 4 tasks of calc/easy \(test\) have changed, first task 0"):
        played(f"panel/{tmp_path / 'mine.json'}", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_panel_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    write_panel(make_panel("mine", ["calc/easy"], 2), file)
    told = json.loads(file.read_text())
    told["parts"][0]["tasks"].pop()
    for data, said in (
        (json.dumps(told), "was changed"),
        ("[]", "is no panel"),
        ("{", "is no panel"),
        (json.dumps({**told, "name": "a b"}), "name: String should match"),
    ):
        file.write_text(data)
        with pytest.raises(TurnwiseError, match=said):
            read_panel(str(file))
    with pytest.raises(NotFoundError, match="small"):
        read_panel("smal-1")
    with pytest.raises(TurnwiseError, match="each once"):
        make_panel("mine", ["calc/easy", "calc/easy"], 2)
    with pytest.raises(TurnwiseError, match="letters, digits"):
        make_panel("a/b", ["calc/easy"], 2)
    with pytest.raises(EnvError, match="agent and opponent"):
        make_panel("mine", ["games/tictactoe"], 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", panels())
def test_the_panels_that_come_with_us_are_what_they_were(name: str) -> None:
    """Where this fails a change has made other tasks: name it in the changelog, and write a new version of the panel."""
    found = read_panel(name)
    assert f"{found.name}-{found.version}" == name
    check_panel(found)
