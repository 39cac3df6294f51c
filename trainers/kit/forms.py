"""Forms of a judge's verdict: the same as JSON, for servers that hold a model to a schema, and as the lines that judges are read by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import pydantic
from pydantic_core import from_json

from turnwise.tasks.core import Json


class JsonVerdict(pydantic.BaseModel):
    """An answer in JSON: every field is there, and no other."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)


class VerdictForm(NamedTuple):
    """A form of answers.

    Attributes:
        answer: the fields of the JSON.
        told: a sentence below the question, for a model that is asked for JSON.
        lines: from the fields to the lines that a judge reads.
    """

    answer: type[JsonVerdict]
    told: str
    lines: Callable[[Any], Sequence[str]]

    @property
    def schema(self) -> dict[str, Json]:
        """The JSON schema of an answer."""
        return self.answer.model_json_schema()


def in_lines(answer: str, form: VerdictForm) -> str:
    """Return the lines that an answer in JSON stands for. An answer in words is itself; JSON of another form says nothing.

    Explanations are left out, so that nothing that they quote is read as a verdict.

    >>> in_lines('{"explanation": "Turn 2 is one.\\\\nWRONG: none", "wrong": [2]}', WRONG_TURNS), in_lines("So.\\nWRONG: 1", WRONG_TURNS)
    ('WRONG: 2', 'So.\\nWRONG: 1')
    >>> in_lines('{"wrong": "none"}', WRONG_TURNS)
    ''
    """
    if not answer.lstrip().startswith("{"):
        return answer
    try:
        said = from_json(answer)
    except ValueError:
        return answer
    try:
        return "\n".join(form.lines(form.answer.model_validate(said)))
    except ValueError:
        return ""


class _WrongTurns(JsonVerdict):
    explanation: str
    wrong: list[int]


class _CriticalTurns(JsonVerdict):
    explanation: str
    critical: list[int]


class _Points(JsonVerdict):
    explanation: str
    a: pydantic.FiniteFloat = pydantic.Field(description="points of attempt A, from 0 to 10")
    b: pydantic.FiniteFloat = pydantic.Field(description="points of attempt B, from 0 to 10")


class _TurnKept(JsonVerdict):
    turn: int
    principles: list[str]
    kept: int
    of: int


class _TurnsKept(JsonVerdict):
    turns: list[_TurnKept]


class _Criterion(JsonVerdict):
    number: int
    met: bool


class _Criteria(JsonVerdict):
    criteria: list[_Criterion]


class _YesOrNo(JsonVerdict):
    explanation: str
    answer: Literal["yes", "no"]


def _points(said: _Points) -> list[str]:
    return [f"POINTS: {said.a:.3f} {said.b:.3f}"] if min(said.a, said.b) >= 0 else []


WRONG_TURNS = VerdictForm(
    _WrongTurns,
    "Where your answer is held to JSON, `wrong` lists the numbers of the wrong turns; it is empty where none is.",
    lambda said: [f"WRONG: {', '.join(str(n) for n in said.wrong if n > 0) or 'none'}"],
)
CRITICAL_TURNS = VerdictForm(
    _CriticalTurns,
    "Where your answer is held to JSON, `critical` lists the numbers of the critical turns; it is empty where none is.",
    lambda said: [f"CRITICAL: {', '.join(str(n) for n in said.critical if n > 0) or 'none'}"],
)
POINTS = VerdictForm(_Points, "Where your answer is held to JSON, `a` and `b` are the two numbers.", _points)
KEPT = VerdictForm(
    _TurnsKept,
    "Where your answer is held to JSON, `turns` has every turn with its principles: `kept` is s, `of` is m.",
    lambda said: [f"TURN {t.turn}: {t.kept}/{t.of}" for t in said.turns if min(t.turn, t.kept, t.of) >= 0],
)
CRITERIA = VerdictForm(
    _Criteria,
    "Where your answer is held to JSON, `criteria` has every criterion by its number, and whether it is `met`.",
    lambda said: [f"CRITERION {c.number}: {'yes' if c.met else 'no'}" for c in said.criteria if c.number > 0],
)
YES_OR_NO = VerdictForm(
    _YesOrNo,
    "Where your answer is held to JSON, `answer` is yes or no.",
    lambda said: [f"ANSWER: {said.answer}"],
)
