"""The judge that has two policies argue: who is asked what, in which order, and what comes of it."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from compared import groups_to_compare, playing, unjudged
from judged import chance, told
from plain import reference, refuses
from played import Part

from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import quoted, transcript

SAYS = ("It bought at once.\nBETTER: A", "It looked first.", "It asked nobody.\nBETTER: B")


def read(question: str) -> tuple[str, str, list[str], str]:
    """Attempt A, attempt B, the arguments so far, and what is wanted."""
    found = re.fullmatch(
        r"Two agents tried the same task\.\n\n=== Attempt A\n(.*)\n\n=== Attempt B\n(.*)\n\n=== Arguments\n(.*?)\n\n([^\n]*)",
        question,
        re.DOTALL,
    )
    assert found, question
    first, second, said, wanted = found.groups()
    lines = [] if said == "(none yet)" else re.split(r"\n(?=\[[AB]\] )", said)
    return first, second, lines, wanted


def verdict(question: str, salt: int) -> str:
    return chance(question, salt).choice(
        [
            "BETTER: A",
            "BETTER: B",
            "BETTER: tie",
            "A",
            "BETTER: B\nNo.\n**Better:** a",
            "Better: tie\nBETTER: B",
        ]
    )


def preferred(answer: str) -> str:
    """Read as the judge was told to write: A, B, or neither."""
    return {
        "BETTER: A": "A",
        "BETTER: B": "B",
        "BETTER: B\nNo.\n**Better:** a": "A",
        "Better: tie\nBETTER: B": "B",
    }.get(answer, "")


def held(
    judge: Part, groups: Sequence[Group], salt: int, debater: str
) -> tuple[list[Group], list[tuple[str, str]]]:
    """The groups as they were judged, and all questions with the model that was asked, in order."""
    from chat_server import said, serve  # pyright: ignore[reportMissingImports]

    heard: list[tuple[str, str]] = []

    def reply(request: dict[str, Any]) -> Any:
        question = str(request["messages"][-1]["content"])
        heard.append((request["model"], question))
        return said(verdict(question, salt) if decides(question) else chance(question, salt).choice(SAYS))

    with serve(reply) as server:
        named = {"debater": f"openai:{debater}@{server.url}"} if debater else {}
        return asyncio.run(judge(groups, policy=f"openai:m@{server.url}", **named)), heard


def decides(question: str) -> bool:
    """Say whether a judge is asked; the server must answer whatever it is asked, or it would be asked again."""
    return "Decide which attempt is better" in question.rsplit("\n", 1)[-1]


def was_argued(questions: Sequence[str], decided: str, arguments: int, salt: int) -> None:
    """Every argument was asked for by its side, A first, of somebody who saw the earlier ones; none can pass for a line of its own."""
    first, second, said, _ = read(decided)
    assert len(said) == arguments
    for n in range(arguments):
        (one,) = [q for q in questions if not decides(q) and read(q)[:3] == (first, second, said[:n])]
        side = "AB"[n % 2]
        assert f"You argue that attempt {side} is the better one" in read(one)[3]
        assert f"for attempt {side}," in read(one)[3]
        assert said[n] == f"[{side}] {quoted(chance(one, salt).choice(SAYS))}"


@reference("judge", "debate", policy=["another"], debater=["a debater"], arguments=[0, 2])
def debate(judge: Part, policy: str = "", debater: str = "", arguments: int = 6) -> None:
    for wrong in (1, 7, -2):
        refuses(lambda wrong=wrong: asyncio.run(judge([], arguments=wrong)))
    baselines, sides, values = set[int](), set[str](), set[float]()
    groups: list[Group] = groups_to_compare()
    for salt in range(3):
        groups = [[dataclasses.replace(one, seed=one.seed + salt) for one in group] for group in groups]
        found, heard = held(judge, groups, salt, debater)
        questions = [question for _, question in heard]
        for before, after in zip(groups, found, strict=True):
            unjudged(before, after)
            members = playing(before)
            shown = {transcript(before[i]): i for i in members}
            value = {i: after[i].trajectory.turns[0].signals["debate"] for i in members}
            for i in members:
                assert [turn.signals["debate"] for turn in after[i].trajectory.turns] == [value[i]] * len(
                    before[i].trajectory.turns
                )
            mine = [q for q in questions if decides(q) and {*read(q)[:2]} <= shown.keys()]
            assert len(mine) == max(0, len(members) - 1)
            held_ = [[shown[text] for text in read(one)[:2]] for one in mine]
            every = [i for i in members if all(i in pair for pair in held_)]
            if members:
                rng = derive_rng("debate", sorted(before[i].seed for i in members))
                against = rng.choice(members)
                assert sorted(held_) == sorted(
                    [i, against] if rng.random() < 0.5 else [against, i] for i in members if i != against
                )
            for one, pair in zip(mine, held_, strict=True):
                was_argued(questions, one, arguments, salt)
                chosen = [pair["AB".index(x)] for x in preferred(verdict(one, salt))]
                if len(every) == 1:
                    (i,) = {*pair} - {*every}
                    assert value[i] == float(chosen == [i])
                    sides.add("AB"[pair.index(i)])
                    values.add(value[i])
            if len(every) == 1:
                assert value[every[0]] == 0.0
                baselines.add(members.index(every[0]))
            if len(members) == 2:
                assert sum(value.values()) <= 1.0
        assert len(questions) == (arguments + 1) * sum(max(0, len(playing(group)) - 1) for group in groups)
        asked_ = {(model, decides(question)) for model, question in heard}
        assert asked_ == {("m", True)} | ({(debater or "m", False)} if arguments else set())
        if salt == 0:
            again, _ = held(judge, groups, salt, debater)
            assert told(again, "debate") == told(found, "debate")
    assert len(baselines) > 1
    assert sides == {"A", "B"}
    assert values == {0.0, 1.0}
