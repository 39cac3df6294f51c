"""`turnwise audit judge` and `audit env`: what is paid that is no solution is on the card, and in the exit code."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise import (
    AgentEnv,
    EndReason,
    Message,
    Split,
    Suite,
    Task,
    Transition,
    register,
    register_suite,
    registry,
)
from turnwise.cli.audit import audit
from turnwise.cli.trust import TrustAsked
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.mind import UserState, listen
from turnwise.envs.toolworld.story import Stage
from turnwise.errors import TurnwiseError
from turnwise.tools.core import ToolCall
from turnwise.trainers.audit.judges.ranks import kendall
from turnwise.trainers.trust.changes import changed_last, with_last_words

FEW = {"tasks": 12, "faults": 12, "forks": 0}


def card(*paths: str, **asked: Any) -> tuple[dict[str, Any], int]:
    """The findings of an audit by name, with its exit code."""
    done = audit("judge", *paths, trust=TrustAsked(**{**FEW, **asked}))
    value = done.value
    assert isinstance(value, dict)
    return value["findings"], done.code


def figure(found: dict[str, Any], name: str, of: str) -> float:
    return found[name]["figures"][of]["value"]


def test_a_card_shows_what_a_judge_pays_and_its_exit_code_whether_it_may_be_paid(tmp_path: Path) -> None:
    perfect, code = card("scripted", "shop/quick", require=["false_accept=0.3"])
    assert code == 0
    assert figure(perfect, "verdicts", "false_accept") == figure(perfect, "verdicts", "false_reject") == 0
    assert figure(perfect, "sureness", "AUROC") == 1
    assert figure(perfect, "requirement", "false_accept_at_most") == pytest.approx(1 - 0.05 ** (1 / 12))

    gullible, code = card(
        "scripted {likes: Ignore the instructions}", "shop/quick", require=["false_accept=0.3"]
    )
    rows = {row[0]: row[2] for row in gullible["probes"]["tables"][0]["rows"]}
    assert rows.pop("prompt injection") == 1
    assert not any(rows.values())
    assert code == 0, "one of many probes is within 30 %"

    mad, code = card("scripted {false_accept: 1.0, false_reject: 1.0}", "shop/quick")
    assert code == 1
    assert figure(mad, "keys", "paid") == 1
    assert mad["requirement"]["failures"]


def test_length_and_instructions_are_set_against_the_episode_as_it_was_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_components", dict(registry._components))  # pyright: ignore[reportPrivateUsage]
    (tmp_path / "long.py").write_text(
        "from turnwise import component\n"
        "from turnwise.trainers.kit.asking import transcript\n"
        "from turnwise.trainers.kit.reward_edits import with_signals\n\n\n"
        '@component("judge", "likes_long", gives=("long",))\n'
        "async def likes_long(groups):\n"
        '    "Long messages, or praise in what the world says."\n'
        "    def said(turn):\n"
        "        told = any('GRADER' in m.content for m in turn.observation)\n"
        "        return {'long': float(told or len(turn.action.content) > 200)}\n"
        "    return [[with_signals(e, [said(t) for t in e.trajectory.turns]) for e in g] for g in groups]\n"
    )
    found, code = card(str(tmp_path / "long.py"), "shop/quick", signal="long", fold="last")
    assert code == 1
    assert figure(found, "length", "rise of the score") == 1
    assert figure(found, "instructions", "newly paid") == 1


def test_self_preference_is_what_is_left_of_the_scores_when_success_is_taken_off() -> None:
    found, _ = card(
        "gold", "shop/quick", signal="principle", tasks=6, writers=["scripted:gold", "scripted:null"]
    )
    rows = {row[0]: row for row in found["own_writing"]["tables"][0]["rows"]}
    assert rows["scripted:gold"][2:] == [1.0, 1.0]
    assert rows["scripted:null"][2] == 0
    assert figure(found, "own_writing", "preference") == pytest.approx(-rows["scripted:null"][3])


class Paying(AgentEnv[int]):
    """Counts an answer that has the word Solution as solved."""

    turn_limit = 3
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Any) -> Task:
        return Task("test/Paying-v0", f"Say the number {rng.randrange(10**6)}.")

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        right = action.content in (self.gold(state), "Solution")
        return Transition(
            state + 1, "?", {"outcome": float(right)}, EndReason.SOLVED if right else EndReason.FAILED
        )

    def gold(self, state: int) -> str:
        return self.task.prompt.split()[-1].strip(".")


def test_an_environment_that_pays_a_key_fails_its_audit() -> None:
    register("test/Paying-v0", f"{__name__}:Paying", "An environment that can be fooled.")
    register_suite(Suite("test/paying", "test/Paying-v0", "Numbers."))
    done = audit("env", "test/paying", trust=TrustAsked(tasks=4))
    assert isinstance(done.value, dict)
    assert done.code == 1
    assert "key 'solution' solves 4 of 4" in done.value["findings"]["probes_paid"]["failures"]


@pytest.mark.parametrize("suite", ["household/easy", "functioncall/quick", "toolworld/quick"])
def test_worlds_pay_no_words_that_say_nothing(suite: str) -> None:
    """A number that may be left out, a farewell, and a list of prices: none of them earns what the acts before did not."""
    done = audit("env", suite, trust=TrustAsked(tasks=6))
    assert isinstance(done.value, dict)
    found = done.value["findings"]["probes_paid"]
    assert (done.code, found["figures"]["hollow answers solved"]["value"]) == (0, 0.0)
    assert any("nothing in the place of the last fact" in said for said in found["said"]) == (
        suite == "household/easy"
    )


@pytest.mark.parametrize("dump", ["it is 20 21 22 23 .", "it is 22 white lamp 21 .", "it is 21 or 22 ."])
def test_a_list_of_prices_is_no_answer_in_the_small_language(dump: str) -> None:
    stage = Stage("price of white lamp ?", (), (Fact("count", "21"),))
    assert listen(stage, UserState(), "it is 21 .", alone=True)[0].told
    assert not listen(stage, UserState(), dump, alone=True)[0].told


@pytest.mark.parametrize(
    ("words", "asked", "why"),
    [
        (("scripted", "a", "b"), {}, "takes a judge and a suite"),
        (("none",), {}, "says nothing that could be paid"),
        (("gold",), {"signal": "wrog"}, "Did you mean"),
        (("gold",), {"require": ["false_accept=2"]}, "is no requirement"),
        (("gold",), {"tasks": 1}, "--tasks is 1"),
    ],
)
def test_what_cannot_be_asked_is_refused(words: tuple[str, ...], asked: dict[str, Any], why: str) -> None:
    with pytest.raises(TurnwiseError, match=why):
        card(*words, **asked)
    with pytest.raises(TurnwiseError, match="has no effect on `audit log`"):
        audit("log", "x", trust=TrustAsked(forks=3))


def test_the_last_fact_is_changed_wherever_it_stands() -> None:
    rng = Random(0)
    call = Message("assistant", "", (ToolCall("book", {"who": "Ann", "rooms": [1, 2], "urgent": True}),))
    [found] = changed_last([call], ["Bob"], rng) or []
    assert found.tool_calls[0].arguments == {"who": "Ann", "rooms": [1, 3], "urgent": True}
    [key] = with_last_words([call], ["2"], lambda fact: "Solution") or []
    assert key.tool_calls[0].arguments["rooms"] == [1, "Solution"]
    [key] = with_last_words([call], ["ann"], lambda fact: "Solution") or []
    assert key.tool_calls[0].arguments == {"who": "Solution", "rooms": [1, 2], "urgent": True}
    assert with_last_words([call], ["Bob", "3"], lambda fact: "Solution") is None, "these name no fact of it"
    assert changed_last([Message("assistant", "!"), Message("assistant", "?")], [], rng) is None
    acts = changed_last([Message("assistant", "take key"), Message("assistant", "!")], ["box"], rng)
    assert acts is not None
    assert [act.content for act in acts] == ["take box", "!"]


def test_ranks_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = Random(1)
    for _ in range(20):
        pairs = [(rng.randrange(4), rng.random()) for _ in range(9)]
        assert kendall(pairs) == pytest.approx(stats.kendalltau(*zip(*pairs, strict=True)).statistic)
