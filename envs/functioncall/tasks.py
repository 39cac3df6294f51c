"""Tasks of function calling: interfaces, data, rounds of requests with the calls they want, and what goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from turnwise.envs.functioncall.data import CallData, draw_tables
from turnwise.envs.functioncall.drafting import ImpossibleRequest, RequestDraft, RequestLanguage
from turnwise.envs.functioncall.interfaces import ORDERS, DataFunction, functions, tables
from turnwise.envs.functioncall.knobs import FunctionCallKnobs
from turnwise.envs.functioncall.requests import (
    DEEDS,
    QUESTIONS,
    UserRequest,
    ask_for,
    offered_of,
)
from turnwise.envs.worlds.knobs import first_drawn
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/FunctionCall-v0"
_FAILURES = ("busy", "session")
_ATTEMPTS = 40  # to draw one request
_MOST_CALLS = 14  # of one request


def draw_task(rng: Random, split: Split, knobs: FunctionCallKnobs) -> Task:
    """A conversation that no other split can draw: its names and its wording belong to the split."""
    language = RequestLanguage(split, knobs.spoken, knobs.text == "compact", knobs.recalled)

    def draw(rng: Random) -> Task | None:
        names = rng.sample(knobs.apis, min(knobs.offered, len(knobs.apis)))
        names += ["memory"] if knobs.memory and "memory" not in names else []
        mine = offered_of(names)
        withheld = rng.sample([one for one in mine if one.writes], 2) if knobs.irrelevant else []
        offered = [one for one in mine if one not in withheld]
        stored = [name for name, one in tables().items() if one.api in names]
        drawn = draw_tables(rng, split, stored, knobs.rows, ordered=not language.compact)
        data, rounds = CallData(drawn), list[UserRequest]()
        for _ in range(rng.randint(*knobs.rounds)):
            made = _request(rng, language, knobs, data, offered, withheld)
            if made is None:
                return None
            rounds.append(made)
            data = made.data
        if not any(one.plan for one in rounds):
            return None
        used = {functions()[call.words].api for one in rounds for call in one.plan}
        if knobs.recalled and "memory" not in used:
            return None
        others = [one for one in functions().values() if one.api not in names]
        shown = [*offered, *rng.sample(others, min(knobs.distractors, len(others)))]
        said = [
            _worded(rng, language, one, before)
            for one, before in zip(rounds, [None, *rounds[:-1]], strict=True)
        ]
        options: dict[str, Json] = {
            "text": knobs.text,
            "case": rng.choice(knobs.cases),
            "dialect": rng.choice(knobs.dialects),
            "order": rng.randrange(1, ORDERS) if knobs.shuffled else 0,
            "functions": [one.words for one in rng.sample(shown, len(shown))],
            "tables": drawn,
            "rounds": [_data(rng, one, text, knobs) for one, text in zip(rounds, said, strict=True)],
            "patience": knobs.patience,
            "turn_limit": knobs.turn_limit,
        }
        gold = {"calls": sum(len(one.plan) for one in rounds), "kinds": [one.kind for one in rounds]}
        return Task(ENV, said[0], options, gold)

    return first_drawn(draw, rng, split, "function calling")


def _request(
    rng: Random,
    language: RequestLanguage,
    knobs: FunctionCallKnobs,
    data: CallData,
    offered: Sequence[DataFunction],
    withheld: Sequence[DataFunction],
) -> UserRequest | None:
    """A request; None where this data allows none."""
    luck = rng.random()
    for _ in range(_ATTEMPTS):
        try:
            if luck < knobs.irrelevant:
                return _impossible(rng, language, data, [*offered, *withheld], withheld)
            return _possible(
                rng, language, knobs, data, offered, leave_out=luck < knobs.irrelevant + knobs.missing
            )
        except ImpossibleRequest:
            continue
    return None


def _possible(
    rng: Random,
    language: RequestLanguage,
    knobs: FunctionCallKnobs,
    data: CallData,
    offered: Sequence[DataFunction],
    *,
    leave_out: bool,
) -> UserRequest:
    draft = RequestDraft(rng, language, data, offered)
    shape = "plain" if leave_out else rng.choice(knobs.shapes)
    answer = None
    if shape in QUESTIONS:
        text, answer = QUESTIONS[shape](draft)
    else:
        text = DEEDS[shape](draft)
    if not draft.plan or len(draft.plan) > _MOST_CALLS:
        raise ImpossibleRequest("no call, or too many")
    ask = None
    if leave_out:
        text, ask = ask_for(draft, text)
    kind = " ".join((shape, *draft.kind))
    return UserRequest(text, tuple(draft.plan), draft.data, kind, ask, answer)


def _impossible(
    rng: Random,
    language: RequestLanguage,
    data: CallData,
    known: Sequence[DataFunction],
    withheld: Sequence[DataFunction],
) -> UserRequest:
    """A request for a function that is not offered."""
    draft = RequestDraft(rng, language, data, known)
    text = DEEDS["plain"](draft)
    if draft.plan[-1].words not in {one.words for one in withheld}:
        raise ImpossibleRequest("it can be done")
    return UserRequest(text, (), data, f"impossible {' '.join(draft.kind)}", declines=True)


def _worded(rng: Random, language: RequestLanguage, one: UserRequest, before: UserRequest | None) -> str:
    """The request as the user says it, after the one before it."""
    draft = RequestDraft(rng, language, one.data, ())
    if language.compact:
        return f"{one.say} ."
    text = draft.phrase("question" if one.answer else "please").format(one.say)
    text = text[0].upper() + text[1:]
    if before is None:
        return text
    return f"{draft.phrase('after_refusal' if before.declines else 'next')}{text}"


def _data(rng: Random, one: UserRequest, text: str, knobs: FunctionCallKnobs) -> dict[str, Json]:
    fails = {call.words: rng.choice(_FAILURES) for call in one.plan if rng.random() < knobs.failing}
    return {
        "say": text,
        "plan": [call.to_json() for call in one.plan],
        "ask": one.ask,
        "answer": one.answer,
        "declines": one.declines,
        "fails": fails,
    }
