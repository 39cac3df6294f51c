"""Judges of what was hidden, of which turn was critical, and of one's own attempts: who is asked what, and what it is worth."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from judged import asked, chance, judged_groups
from plain import reference, refuses
from played import Part

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import run_episodes
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import quoted, transcript
from turnwise.trainers.kit.toy_batches import with_words
from turnwise.trainers.strategy.runner import plan_groups

JUDGING = "turnwise/Judging-v0"


def outcome(one: Episode) -> float:
    return sum(turn.rewards.get("outcome", 0.0) for turn in one.trajectory.turns)


def told_of(one: Episode, name: str) -> list[float | None]:
    return [turn.signals.get(name) for turn in one.trajectory.turns]


def asks(one: Episode) -> bool:
    return one.outcome.counts and bool(one.trajectory.turns)


def answers_to(suite: str) -> list[Group]:
    return [run_episodes(plan, scripted("demonstrator")) for plan in plan_groups(suite, 2, 3)]


def with_hidden() -> list[Group]:
    """Replies that were hidden, verdicts, and play; one was not played, and answers that say nothing."""
    groups = [*answers_to("judging/next"), *answers_to("judging:middle:"), *answers_to("judging/verdict")]
    first, second, *others = groups[0]
    groups[0] = [
        dataclasses.replace(first, outcome=Outcome.INFRA_ERROR),
        with_words(second, ["Answer: . "]),
        *others,
    ]
    long = with_words(groups[2][0], ["I think.\nanswer: a\nanswer: box 1\nis open."])
    groups[2] = [long, with_words(groups[2][1], [""]), *groups[2][2:]]
    return [*groups, *judged_groups()]


SAID = ("It fits.\nANSWER: yes", "ANSWER: yes\nNo:\n**Answer:** no", "It may be.", "ANSWER: Yes.")


@reference("judge", "rlpt", policy=["another"])
def rlpt(judge: Part, policy: str = "") -> None:
    groups = with_hidden()
    found, questions = asked(judge, groups, lambda question, before: chance(question).choice(SAID))
    due, values = set[str](), list[float]()
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not asks(one):
                assert other is one
                continue
            expected = outcome(one)
            if one.task.env == JUDGING and one.task.options["ask"] in ("next", "middle"):
                said = one.trajectory.turns[-1].action.content.lower().rpartition("answer:")[2].strip(" .\n")
                expected = 0.0
                if said:
                    words = " ".join(one.task.options["truth"]["words"])
                    (question,) = {
                        q
                        for q in questions
                        if f"What was shown\n{quoted(one.task.prompt)}\n\n" in q
                        and f"truly goes on\n{quoted(words)}\n\n" in q
                        and f"what was said\n{quoted(said)}\n\n" in q.lower().replace("\n> ", "\n> ")
                    }
                    due.add(question)
                    expected = float(chance(question).choice(SAID) in (SAID[0], SAID[3]))
                values.append(expected)
            assert told_of(other, "goes_on") == [expected] * len(one.trajectory.turns)
    assert {*questions} == due
    assert {0.0, 1.0} == {*values}
    assert 0 < len(due) < len(values)


CRITICAL = (
    "It led.\nCRITICAL: 1, 3",
    "**Critical:** 2",
    "CRITICAL: 1\nRather:\nCRITICAL: none",
    "Turn 1.",
    "CRITICAL: 4, 17",
)
NAMED = ({1, 3}, {2}, set[int](), set[int](), {4, 17})


@reference("judge", "epo_strategic", policy=["another"])
def epo_strategic(judge: Part, policy: str = "") -> None:
    groups = judged_groups()
    groups.append([dataclasses.replace(one, seed=one.seed + 1) for one in groups[0]])
    found, questions = asked(judge, groups, lambda question, before: chance(question).choice(CRITICAL))
    due, seen = set[str](), set[tuple[float, ...]]()
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not asks(one):
                assert other is one
                continue
            (question,) = {q for q in questions if f"\n\n{transcript(one)}\n\n" in q}
            due.add(question)
            assert f"it was worth {outcome(one):.2f}." in question
            named = NAMED[CRITICAL.index(chance(question).choice(CRITICAL))]
            turns = len(one.trajectory.turns)
            expected = [float(k in named) for k in range(1, turns)] + [outcome(one)]
            assert told_of(other, "critical") == expected
            seen.add(tuple(expected))
    assert {*questions} == due
    assert len(seen) > 2


def graded(question: str) -> str:
    """As many numbers as are asked for, but for one answer in four."""
    rng = chance(question)
    wanted = question.rpartition("do the task ? ")[2]
    count = 1 if wanted.startswith("a number") else int(wanted.split()[0])
    if rng.random() < 0.25:
        return rng.choice(["They are alike.", "answer: 3 4 5 6 7 8 9 1 2"])
    return f"I read it.\nanswer: {' '.join(str(rng.choice([-2, 0, 2.5, 7, 10, 11])) for _ in range(count))}"


def shown_in(question: str, one: Episode) -> bool:
    """Whether an attempt's acts stand in a part of the question, each with its number, and nothing behind them."""
    acts = "\n".join(f"{k} > {turn.action.content}" for k, turn in enumerate(one.trajectory.turns, 1))
    blocks = re.split(r"(?:^|\n\n)[A-H] :\n", question.rpartition("\n\nHow well")[0])
    said = ["\n".join(re.findall(r"^\d+ > .*", block, re.MULTILINE)) for block in blocks]
    return one.trajectory.turns[0].observation[-1].content.splitlines()[0] in question and acts in said


def sizes(attempts: int, together: int) -> list[int]:
    """Parts of attempts, dealt out in turns."""
    parts = [0] * -(-attempts // together)
    for n in range(attempts):
        parts[n % len(parts)] += 1
    return parts


@reference(
    "judge", "urpo", policy=["another"], checked=[(), (JUDGING, "turnwise/Shop-v0")], together=[2, 8, 0, 9], also=[{"together": 1, "checked": ()}],
)  # fmt: skip
def urpo(judge: Part, policy: str = "", checked: Sequence[str] = (JUDGING,), together: int = 3) -> None:
    from chat_server import said, serve  # pyright: ignore[reportMissingImports]

    if not 1 <= together <= 8:
        assert "'urpo'" in refuses(lambda: asyncio.run(judge([])))
        return
    groups = [*answers_to("judging/verdict"), *judged_groups()]
    groups += [[*groups[2], *groups[3]], [*groups[2], groups[3][0]]]
    heard: list[list[dict[str, Any]]] = []

    def reply(request: dict[str, Any]) -> Any:
        heard.append(request["messages"])
        return said(graded(str(request["messages"][-1]["content"])))

    with serve(reply) as server:
        found = asyncio.run(judge(groups, policy=f"openai:m@{server.url}"))
    questions = [str(messages[-1]["content"]) for messages in heard]
    assert all("answer: and what is asked for" in str(messages[0]["content"]) for messages in heard)
    due, values = set[str](), set[float]()
    for before, after in zip(groups, found, strict=True):
        open_ = [one for one in before if asks(one) and one.task.env not in checked]
        parts, scored = sizes(len(open_), together), list[float]()
        for n, size in enumerate(parts):
            some = open_[sum(parts[:n]) : sum(parts[: n + 1])]
            (question,) = {
                q for q in questions if all(shown_in(q, one) for one in some) and q.count(" :\n") == size
            }
            due.add(question)
            numbers = re.findall(r"-?[\d.]+", graded(question).partition("answer:")[2])
            right = len(numbers) == size
            scored += [min(10.0, max(0.0, float(x))) / 10 for x in numbers] if right else [0.0] * size
        given = iter(scored)
        for one, other in zip(before, after, strict=True):
            if not asks(one):
                assert other is one
                continue
            expected = outcome(one) if one.task.env in checked else next(given)
            values.add(expected)
            assert told_of(other, "self_score") == [expected] * len(one.trajectory.turns)
    assert {*questions} == due
    assert len(values) > 2 or len(checked) > 1
