"""A text above every task, and the experience that a policy writes for it by comparing its own attempts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from turnwise.agents.core import History, Reply
from turnwise.agents.policies.primed import PrimedPolicy
from turnwise.agents.policies.registry import fingerprint, make_policy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split
from turnwise.trainers.lab.experiences import HEAD, ExperienceEdit, Experiences, Practice, practise

WORD = "say nothing twice"


class Reader:
    """Plays gold where its first message has the word, else by the seed; answers what it is asked of its attempts."""

    name, version = "reader", 0

    def __init__(self) -> None:
        self.read: list[list[Message]] = []
        self.asked: list[str] = []

    async def act(self, history: History) -> Reply:
        said = history.messages()
        if history.task.env == "judge":
            return Reply(Message("assistant", self.answer(said[-1].content)))
        self.read.append(said)
        knows = WORD in next(one.content for one in said if one.role == "user")
        gold = history.env.gold(history.env.state) if knows or history.seed % 2 else "nothing"
        return Reply(Message("assistant", gold) if isinstance(gold, str) else gold)

    def answer(self, question: str) -> str:
        self.asked.append(question)
        if question.startswith("Below is an attempt"):
            return "It " + ("went well." if "which succeeded" in question else "said nothing.")
        if question.startswith("Below are summaries"):
            assert "which succeeded:\nIt went well." in question
            assert "which failed:\nIt said nothing." in question
            return json.dumps([WORD, "another", "a third"])
        if "A new lesson" in question:
            return json.dumps({"operation": "add", "text": WORD if WORD in question else "another"})
        return "I cannot" if len(self.asked) % 2 else '[{"operation": "add", "text": "' + WORD + '"}]'

    def close(self) -> None:
        self.read.append([])


def test_two_tasks_begin_with_the_same_text_and_every_turn_reads_it(tmp_path: Path) -> None:
    reader = Reader()
    tasks = [*suite_tasks(get_suite("shop/quick"), Split.TEST, 2)]
    episodes = run_episodes(
        [Request(task, 1) for task in tasks], PrimedPolicy("primed", reader, f"Examples : {WORD}")
    )
    assert all(one.success for one in episodes)
    assert not any(WORD in m.content for one in episodes for t in one.trajectory.turns for m in t.observation)
    begins = [[one.content for one in said[:2]] for said in reader.read]
    assert {system for system, _ in begins} == {begins[0][0]}
    assert {first for _, first in begins} == {
        f"Examples : {WORD}\n\n{one.trajectory.turns[0].observation[-1].content}" for one in episodes
    }
    assert len(reader.read) == sum(len(one.trajectory.turns) for one in episodes) > 4


def test_a_spec_names_the_text_and_the_policy_within(tmp_path: Path) -> None:
    file = tmp_path / "examples.txt"
    file.write_text("Look first.\n")
    policy = make_policy(f"primed:{file}=scripted:gold")
    assert isinstance(policy, PrimedPolicy)
    assert (policy.name, policy.text) == ("primed:examples.txt=scripted:gold", "Look first.")
    before = fingerprint(f"primed:{file}=scripted:gold")
    file.write_text("Look twice.\n")
    assert before not in ("", fingerprint(f"primed:{file}=scripted:gold")), (
        "an evaluation notices another text"
    )
    for spec, said in (
        (f"primed:{file}", "not complete"),
        ("primed:no/such=scripted:gold", "cannot be read"),
        (f"primed:{file}=scripted:golt", "gold"),
    ):
        with pytest.raises(TurnwiseError, match=said):
            make_policy(spec)


def test_experience_is_written_by_comparing_attempts_and_helps_the_next_ones() -> None:
    reader, lines = Reader(), list[tuple[str, Experiences]]()
    how = Practice(batches=2, groups=3, size=4, lessons=2)
    library = asyncio.run(
        practise(get_suite("calc/easy"), reader, how, lambda line, after: lines.append((line, after)))
    )
    assert WORD in library.entries
    assert len(library.entries) <= 2, "a third lesson is not asked for"
    assert "success 1.000" in lines[1][0]
    assert "success 1.000" not in lines[0][0]
    assert lines[0][1] == library, "where all succeed, nothing is asked"
    assert library.text.startswith(f"{HEAD}\nG0. ")
    last = [said for said in reader.read if said][-1]
    assert any(message.content.startswith(library.text) for message in last)


def test_operations_that_name_no_entry_change_nothing() -> None:
    known = Experiences(("x", "y"))
    for one in (
        ExperienceEdit("delete", 2),
        ExperienceEdit("update", 0, ""),
        ExperienceEdit("update", -1, "z"),
        ExperienceEdit("keep", 0),
        ExperienceEdit("add", -1, "x"),
    ):
        assert known.after([one]) == known, one
    assert known.after(
        [
            ExperienceEdit("delete", 0),
            ExperienceEdit("update", 1, "z"),
            ExperienceEdit("add", 0, "w"),
            ExperienceEdit("add", 0, "w"),
        ]
    ).entries == ("z", "w")
