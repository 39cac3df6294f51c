"""The judge that asks for chains of verdicts, and then how likely it is that the last one is yes."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from typing import Any

from judged import chance, judged_groups
from plain import mean, reference, refuses
from played import Part

from turnwise.agents.core import Episode

NOTHING = {"So": -0.5, "Well": -1.0}


def acts_in(question: str) -> int:
    """How many acts a question shows; none where it is another question."""
    assert question.split("\n\n")[-1].startswith("Is each act right ?"), question
    return len(re.findall(r"^\d+ > ", question, re.MULTILINE))


def chain(question: str, number: int) -> tuple[str, str | None]:
    """What is said to a question for the so-manieth time, and what stands before its last verdict; None where it is no chain."""
    n, rng = acts_in(question), chance(question, number)
    each = [rng.choice(["yes", "no"]) for _ in range(n)]
    last = rng.choice(["yes", "no"])
    thought = f"The answer: no, or is it yes? So {rng.randrange(99)}."
    return rng.choice(
        [
            (f"{thought}\nanswer: {' '.join([*each, last])}", f"{thought}\nanswer: {' '.join(each)}"),
            (
                f"{thought}\n**Answer: {', '.join([*each, last])}.**",
                f"{thought}\n**Answer: {', '.join(each)},",
            ),
            (" ".join([*each, last]).upper(), " ".join(each).upper()),
            (f"{thought}\nanswer: {' '.join(each)}", None),
            (f"{thought}\nanswer: {' '.join([*each, last, last])}", None),
            (f"{thought}\nanswer: {' '.join([*each, 'perhaps'])}", None),
        ]
    )


def likely(begun: str) -> dict[str, float]:
    """The likeliest words after what was said."""
    rng = chance(begun, 7)
    words = {" yes": rng.uniform(-3, 0), "Yes": rng.uniform(-5, -3), " no": rng.uniform(-3, 0), "Well": -6.5}
    return NOTHING if rng.random() < 0.2 else words


def share(begun: str) -> float | None:
    """P(yes) / (P(yes) + P(no)); None where neither is listed."""
    p = {word.strip().lower(): 0.0 for word in likely(begun)}
    for word, x in likely(begun).items():
        p[word.strip().lower()] += math.exp(x)
    return None if "yes" not in p else p["yes"] / (p["yes"] + p["no"])


@reference(
    "judge",
    "think_prm",
    policy=["another"],
    chains=[1, 3, 0],
    of=["turns"],
    also=[{"chains": 2, "of": "turns"}],
)
def think_prm(judge: Part, policy: str = "", chains: int = 4, of: str = "episode") -> None:
    from aiohttp import web
    from chat_server import said, serve  # pyright: ignore[reportMissingImports]

    groups = judged_groups()
    if chains < 1:
        refuses(lambda: asyncio.run(judge(groups)))
        return
    asked: list[str] = []
    opened: list[tuple[str, str]] = []
    odd: list[Any] = []  # an assertion within the server would only make it be asked again

    def reply(request: dict[str, Any]) -> Any:
        told = [(m["role"], str(m["content"])) for m in request["messages"]]
        if told[0][0] != "system" or "End with one line: answer:" not in told[0][1]:
            odd.append(told)
        if not request.get("logprobs"):
            question = told[-1][1]
            asked.append(question)
            return said(chain(question, asked.count(question) - 1)[0])
        if [role for role, _ in told] != ["system", "user", "assistant"] or (
            request["continue_final_message"],
            request["add_generation_prompt"],
        ) != (True, False):
            odd.append(request)
        opened.append((told[1][1], told[2][1]))
        top = [{"token": word, "logprob": x} for word, x in likely(told[2][1]).items()]
        place = {"token": "yes", "logprob": 0.0, "top_logprobs": top}
        message = {"role": "assistant", "content": "yes"}
        return web.json_response({"choices": [{"message": message, "logprobs": {"content": [place]}}]})

    with serve(reply) as server:
        found = asyncio.run(judge(groups, policy=f"openai:m@{server.url}"))
    assert not odd
    values = set[float]()
    by_acts = {_acts(question): question for question in asked}
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            turns = len(one.trajectory.turns)
            if not one.outcome.counts or not turns:
                assert other is one
                continue
            for k, turn in enumerate(other.trajectory.turns, 1):
                question = by_acts[_played(one, k if of == "turns" else turns)]
                begun = [chain(question, number)[1] for number in range(chains)]
                readable = [x for text in begun if text is not None and (x := share(text)) is not None]
                expected = mean(readable) if readable else 0.0
                assert math.isclose(turn.signals["think_prm"], expected, rel_tol=1e-9, abs_tol=1e-12)
                values.add(expected)
                assert {text for q, text in opened if q == question} == {t for t in begun if t is not None}
    assert len(values) > 2
    assert {asked.count(question) for question in asked} == {chains}


def _acts(question: str) -> tuple[str, Sequence[str]]:
    """The first line of the task, and the acts that a question shows."""
    return question.partition("\n")[0], tuple(re.findall(r"^\d+ > (.*)", question, re.MULTILINE))


def _played(one: Episode, turns: int) -> tuple[str, Sequence[str]]:
    first, *_ = [m.content for m in one.trajectory.turns[0].observation if m.role != "system"]
    said = [turn.action.content.removesuffix(".").rstrip() for turn in one.trajectory.turns[:turns]]
    return first.partition("\n")[0], tuple(said)
