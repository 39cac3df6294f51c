"""``turnwise/Math-v0``: published problems of mathematics with an exact calculator: GSM8K, MATH, AIME (docs/benchmarks.md).

``gsm8k:FILE``, ``math:FILE`` and ``aime:FILE`` name the suite of a file, or of MATH's folder. Calls of ``calculate`` are answered; a message
without a call is the answer, and is judged as it was published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from turnwise.envs.acting import MOST_CALLS, calls_or_words
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.published import PublishedRows, published_suite, read_rows
from turnwise.envs.small.math_answers import boxed, math_equal
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task, digest
from turnwise.tools.calculator import calculate
from turnwise.tools.core import find_tool, tool

ENV = "turnwise/Math-v0"
_MARKED = re.compile(r"#### (-?[0-9.,]+)")
_RULES = "Solve the problem, step by step. calculate(expression) computes exactly; as many calls as you like may come first. {how}"
_BOXED = "Then answer in words, with the final answer in \\boxed{}."


class MathRow(NamedTuple):
    """A problem and its answer, as its benchmark writes answers."""

    question: str
    answer: str
    about: str = ""


class MathForm(NamedTuple):
    """A benchmark: how its rows are read, what the agent is told, and how answers are found and compared."""

    read: Callable[[Mapping[str, Any]], MathRow]
    how: str
    find: Callable[[str], str | None]
    equal: Callable[[str, str], bool]


class MathEnv(AgentEnv[int]):
    """One problem; the state is the number of calls so far."""

    tools = (tool(calculate),)
    turn_limit = 20
    words_end = "words without a call are the answer"

    @classmethod
    def generate(
        cls,
        rng: Random,
        split: Split,
        *,
        form: str = "",
        path: str = "",
        index: int | None = None,
        **knobs: Json,
    ) -> Task:
        """The problem of ``index``, or any."""
        if form not in FORMS or not path or knobs:
            raise EnvError(
                "Math-v0 has no tasks of its own.",
                "Name a file: gsm8k:test.jsonl, math:FOLDER, aime:2024.jsonl.",
            )
        rows = _rows(form, path).rows
        row = rows[rng.randrange(len(rows)) if index is None else index]
        return Task(ENV, row.question, {"form": form, "about": row.about}, {"answer": row.answer})

    def initial(self, task: Task) -> tuple[int, Messages]:
        rules = _RULES.format(how=FORMS[task.options["form"]].how)
        return 0, Messages((Message("system", rules), Message("user", task.prompt)))

    def transition(self, state: int, action: Message) -> Transition[int]:
        written = calls_or_words(action, self.tools, MOST_CALLS)
        if written.calls:
            checked = [find_tool(self.tools, call.name).validate(call) for call in written.calls]
            return Transition(state + len(checked), "\n".join(calculate(**given) for given in checked))
        form = FORMS[self.task.options["form"]]
        found = form.find(action.content)
        right = found is not None and form.equal(found, self.task.gold["answer"])
        details: dict[str, Json] = {"answer": found, "calls": state, "about": self.task.options["about"]}
        return Transition(
            state,
            "Noted.",
            {"outcome": float(right)},
            EndReason.SOLVED if right else EndReason.FAILED,
            details,
        )

    def gold(self, state: int) -> str:
        answer = self.task.gold["answer"]
        return f"#### {answer}" if self.task.options["form"] == "gsm8k" else f"\\boxed{{{answer}}}"

    def state_key(self, state: int) -> str:
        return digest(self.task.id, state)


def _gsm8k(row: Mapping[str, Any]) -> MathRow:
    found = _marked(row["answer"])
    if found is None:
        raise ValueError("its answer has no line #### N")
    return MathRow(_text(row["question"]), found)


def _math(row: Mapping[str, Any]) -> MathRow:
    """MATH's own files (problem, solution, level, type), and lists with ``answer`` beside it, such as MATH-500."""
    answer = row.get("answer") or boxed(row["solution"])
    if answer is None:
        raise ValueError("its solution has no \\boxed{}")
    about = " ".join(str(row[key]) for key in ("type", "subject", "level") if row.get(key))
    return MathRow(_text(row["problem"]), str(answer), about)


def _aime(row: Mapping[str, Any]) -> MathRow:
    row = {key.lower(): value for key, value in row.items()}  # some have Problem and Answer
    answer = row["answer"] if row.get("answer") not in (None, "") else boxed(row["solution"])
    number = int(str(answer))
    if not 0 <= number <= 999:
        raise ValueError(f"its answer {answer!r} is no whole number from 0 to 999")
    return MathRow(_text(row.get("problem") or row["question"]), str(number), str(row.get("id", "")))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"its question is {value!r:.40}")
    return value


def _marked(text: str) -> str | None:
    """The first number after ``####``, without commas, as GSM8K's own reader takes it.

    >>> _marked("So 2 + 2 = 4.\\n#### 1,204"), _marked("4")
    ('1204', None)
    """
    found = _MARKED.search(text)
    return found[1].replace(",", "") if found else None


def _same_number(said: str, answer: str) -> bool:
    digits = said.strip().strip("$").strip()
    return digits.isascii() and digits.isdigit() and len(digits) <= 9 and int(digits) == int(answer)


FORMS: Mapping[str, MathForm] = {
    "gsm8k": MathForm(
        _gsm8k, "Then answer in words, whose last line is #### and the number.", _marked, lambda a, b: a == b
    ),
    "math": MathForm(_math, _BOXED, boxed, math_equal),
    "aime": MathForm(_aime, f"{_BOXED} It is a whole number from 0 to 999.", boxed, _same_number),
}


@lru_cache(8)
def _rows(form: str, path: str) -> PublishedRows[MathRow]:
    others = ", ".join(f"{name}:{path}" for name in FORMS if name != form)
    return read_rows(
        path, f"a problem of {form}", FORMS[form].read, f"Name its JSONL file. Is it another form? {others}"
    )


def gsm8k_suite(path: str) -> Suite:
    """The suite ``gsm8k:PATH``: train.jsonl or test.jsonl as published (question, answer)."""
    return _suite("gsm8k", path)


def math_suite(path: str) -> Suite:
    """The suite ``math:PATH``: a folder of MATH's JSON files, or a list as JSONL, such as MATH-500."""
    return _suite("math", path)


def aime_suite(path: str) -> Suite:
    """The suite ``aime:PATH``: problems of a year as JSONL (problem, answer)."""
    return _suite("aime", path)


def _suite(form: str, path: str) -> Suite:
    rows = _rows(form, path)
    return published_suite(form, ENV, f"The problems of {path}.", {"form": form, "path": path}, rows)
