"""`turnwise eval` with several suites and policies: one table, a folder each, one limit, and one that fails costs no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnwise.agents.core import Finish, Reply, Served, Usage
from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.agents.evaluation.spending import Spending
from turnwise.cli.app import run
from turnwise.cli.evaluating import Pair
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError

SUITES = ("calc/easy", "shop/easy")
BOTH = ("--policy", "scripted:gold", "--policy", "scripted:null")
PLAYER = """
from turnwise.agents.core import Finish, Reply, Served, Usage
from turnwise.envs.messages import Message

def act(history):
    return Reply(Message("assistant", "x"), served=Served(Finish.STOP, usage=Usage(10, 5)))

def broken(history):
    raise ValueError("no such word")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "player.py").write_text(PLAYER)
    return tmp_path


def asked(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict]:
    code = run(["eval", *arguments, "--json"])
    return code, json.loads(capfd.readouterr().out)


def played(folder: Path) -> bytes:
    return (folder / "episodes.jsonl.zst").read_bytes()


def test_every_policy_plays_every_suite_into_a_folder_of_its_own_and_a_resume_plays_nothing_again(
    here, capfd
):
    assert run(["eval", *SUITES, *BOTH, "--episodes", "6", "--out", "o"]) == 0
    table = " ".join(capfd.readouterr().out.split())
    assert "calc/easy, scripted:null against scripted:gold: The difference is" in table
    folders = sorted((here / "o").iterdir())
    assert [json.loads((one / "asked.json").read_text())["suite"] for one in folders] == sorted([*SUITES] * 2)
    logs = [*map(played, folders)]
    code, value = asked(capfd, *SUITES, *BOTH, "--episodes", "6", "--out", "o", "--resume")
    assert (code, [*map(played, folders)]) == (0, logs)
    found = [(one["suite"], one["policy"], one["success"]) for one in value["evaluations"]]
    assert found == [
        (suite, f"scripted:{name}", won) for name, won in (("gold", 1.0), ("null", 0.0)) for suite in SUITES
    ]
    assert {str(here / one["folder"]) for one in value["evaluations"]} == {*map(str, folders)}
    assert run(["eval", *SUITES, *BOTH, "--episodes", "6", "--out", "o"]) == 1
    assert "Go on with --resume" in capfd.readouterr().err
    assert run(["eval", SUITES[0], "--policy", "scripted:gold", "--out", "o", "--resume"]) == 1
    assert "holds evaluations of several pairs" in capfd.readouterr().err
    assert asked(capfd, SUITES[0], "--policy", "scripted:gold", "--episodes", "6", "--out", "one")[0] == 0
    assert run(["eval", *SUITES, *BOTH, "--out", "one", "--resume"]) == 1
    assert "holds the evaluation of one pair" in capfd.readouterr().err


def test_a_mistake_in_any_name_is_told_before_the_first_is_played(here, capfd):
    for names, told in (
        ((*SUITES, "calc/eazy", *BOTH), "Did you mean 'calc/easy'"),
        ((*SUITES, *BOTH, "--policy", "scripted:goldd"), "Did you mean 'gold'"),
        ((*SUITES, SUITES[0], *BOTH), "scripted:gold on calc/easy is named twice"),
        (BOTH, "No suite is named"),
    ):
        assert run(["eval", *names, "--out", "o"]) == 1
        assert told in capfd.readouterr().err
    assert not (here / "o").exists()


def test_a_pair_that_cannot_be_judged_costs_no_other_and_makes_the_call_end_with_1(here, capfd):
    code, value = asked(
        capfd, "calc/easy", "--policy", "player.py:broken", "--policy", "scripted:gold", "--episodes", "4",
        "--retries", "0",
    )  # fmt: skip
    (lost,) = value["not_judged"]
    assert (code, lost["policy"], [one["success"] for one in value["evaluations"]]) == (
        1,
        "player.py:broken",
        [1.0],
    )
    assert "None of the 4 episodes can be judged" in lost["why"]


def test_all_pairs_together_take_no_more_than_the_limit_and_go_on_later(here, capfd):
    command = (
        *SUITES,
        "--policy",
        "player.py:act",
        "--policy",
        "scripted:null",
        "--episodes",
        "8",
        "--concurrency",
        "2",
        "--out",
        "o",
    )
    code, value = asked(capfd, *command, "--max-total-tokens", "500")
    first = value["evaluations"][0]
    assert code == 3
    assert "max_total_tokens 500" in value["stopped"]
    usage = [one["said"]["usage"] for one in value["evaluations"]]
    assert sum((one["prompt"] or 0) + (one["completion"] or 0) for one in usage) <= 500
    assert first["episodes"] + len(value["not_judged"]) > 0
    code, value = asked(capfd, *command, "--resume")
    assert (code, [one["episodes"] for one in value["evaluations"]]) == (0, [8, 8, 8, 8])


class Saying:
    """A policy whose replies take so many tokens."""

    name, version = "saying", 0

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens

    async def act(self, _: object) -> Reply:
        return Reply(Message("assistant", "x"), served=Served(Finish.STOP, usage=Usage(self.tokens, 0)))

    def close(self) -> None: ...


def test_what_an_episode_takes_is_estimated_by_those_of_the_same_policy():
    spending = Spending(max_total_tokens=20_000)
    cheap = evaluate("calc/easy", Saying(1), episodes=20, concurrency=1, spending=spending)
    dear = evaluate("calc/easy", Saying(1000), episodes=20, concurrency=1, spending=spending)
    assert (cheap.episodes, cheap.stopped) == (20, "")
    took = dear.said.usage.prompt
    assert took is not None
    assert took + 20 <= 20_000 < took + 20 + 2 * took / dear.episodes
    with pytest.raises(TurnwiseError, match="limits of its own"):
        evaluate("calc/easy", Saying(1), episodes=1, spending=spending, max_cost=1.0)


def test_a_folder_s_name_holds_no_key_and_is_another_one_for_every_pair():
    pairs = [
        Pair("a/b", "openai:m@http://h:1/v1"),
        Pair("a-b", "openai:m@http://h:1/v1"),
        Pair("a/b", "x" * 300),
    ]
    names = [pair.folder for pair in pairs]
    assert len({*names}) == 3
    assert all(len(name) < 100 and "/" not in name for name in names)
    key = "sk-very-secret-0123456789abcdef"
    assert key not in Pair("a/b", f"openai:m@http://me:{key}@h/v1").folder
