"""Rows of JSON as tasks: which column is the prompt and which the answer, and rows that are no tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.errors import FileError, NotFoundError, TurnwiseError
from turnwise.tasks.core import Json
from turnwise.texts import lines_with_ends, reading, utf8
from turnwise.trainers.audit.xray.answers import core_of, gold_forms
from turnwise.trainers.audit.xray.core import BrokenRow, XTask, quoted

PROMPTS = (
    "prompt",
    "question",
    "problem",
    "instruction",
    "input",
    "query",
    "task",
    "messages",
    "problem_statement",
)
GOLDS = ("answer", "solution", "ground_truth", "gold", "target", "reward_model", "label", "expected", "final_answer", "reference", "gold_answer",
         "reference_answer", "canonical_solution", "expected_answer", "output", "completion", "code")  # fmt: skip
_IDS = ("id", "task_id", "uid", "name", "instance_id", "index", "question_id")
_AS_ROWS = 'Write one JSON object a line, such as {"question": "…", "answer": "…"}.'


class ReadRows(NamedTuple):
    """Tasks and what was left out."""

    tasks: Sequence[XTask]
    broken: Sequence[BrokenRow]
    total: int


def read_rows(path: Path, named: Mapping[str, str]) -> ReadRows:
    """The tasks of a file of rows (.jsonl, .json, .parquet); ``named`` says which columns are prompt and answer.

    Raises:
        TurnwiseError: no row of it is a task; the first one's cause is named.
    """
    return rows_as_tasks(str(path), [*file_rows(path)], named)


def rows_as_tasks(
    path: str, rows: Sequence[tuple[str, Mapping[str, Json] | BrokenRow]], named: Mapping[str, str]
) -> ReadRows:
    """Rows with their places as tasks.

    Raises:
        NotFoundError: ``named`` has a column that no row has.
        TurnwiseError: none is one; the first one's cause is named.
    """
    _check_named(rows, named)
    tasks: list[XTask] = []
    broken: list[BrokenRow] = []
    wants_gold = _has_gold(rows, named)
    seen: set[str] = set()
    for place, row in rows:
        made = row if isinstance(row, BrokenRow) else _task(place, row, named, wants_gold)
        if isinstance(made, BrokenRow):
            broken.append(made)
        else:
            name = made.id if made.id not in seen else f"{made.id} ({place})"
            seen.add(name)
            tasks.append(made._replace(id=name))
    if not tasks:
        first = broken[0] if broken else BrokenRow(str(path), f"{path} holds no rows.", _AS_ROWS)
        raise TurnwiseError(f"No row of {path} is a task. {first.cause}", first.remedy)
    return ReadRows(tasks, broken, len(rows))


def _check_named(
    rows: Sequence[tuple[str, Mapping[str, Json] | BrokenRow]], named: Mapping[str, str]
) -> None:
    there = {column for _, row in rows if not isinstance(row, BrokenRow) for column in row}
    for what, column in named.items():
        if what not in ("prompt", "answer"):
            raise NotFoundError("part of a task to be named by --columns", what, ("prompt", "answer"))
        if there and column not in there:
            raise NotFoundError(f"column for the {what}", column, there)


def file_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Json] | BrokenRow]]:
    """The rows of a file with their places; a line that is none comes as what is wrong with it."""
    if path.suffix == ".parquet":
        yield from _parquet(path)
        return
    with reading(path, "Name a file of rows: .jsonl, .json or .parquet.") as place:
        data = place.read_bytes()
    if path.suffix == ".json" and data.lstrip()[:1] == b"[":
        try:
            values = json.loads(utf8(data, str(path)))
        except ValueError as error:
            raise FileError(f"{path} is no JSON: {error}.", _AS_ROWS) from None
        for at, value in enumerate(values):
            yield _object(f"{path.name}[{at}]", value)
        return
    for number, line in enumerate(lines_with_ends(data), 1):
        if line.strip():
            yield _line(f"{path.name}:{number}", line, number)


def _line(place: str, line: bytes, number: int) -> tuple[str, Mapping[str, Json] | BrokenRow]:
    try:
        text = utf8(line, place.partition(":")[0], number).removeprefix("\ufeff")
        return _object(place, json.loads(text))
    except FileError as error:
        return place, BrokenRow(place, error.cause, error.remedy)
    except (ValueError, RecursionError) as error:
        return place, BrokenRow(place, f"{place} is no JSON: {error}.", _AS_ROWS)


def _object(place: str, value: Any) -> tuple[str, Mapping[str, Json] | BrokenRow]:
    if isinstance(value, dict):
        return place, value
    return place, BrokenRow(place, f"{place} is {type(value).__name__}, not a JSON object.", _AS_ROWS)


def _parquet(path: Path) -> Iterator[tuple[str, Mapping[str, Json] | BrokenRow]]:
    from turnwise.extras import needing

    with needing("rows of a parquet file"):
        from pyarrow import parquet
    with reading(path, "Name a file of rows: .jsonl, .json or .parquet.") as place:
        table = parquet.read_table(place)
    for at, row in enumerate(table.to_pylist()):
        yield f"{path.name}[{at}]", row


def _has_gold(rows: Sequence[tuple[str, Any]], named: Mapping[str, str]) -> bool:
    whole = [row for _, row in rows if isinstance(row, dict)]
    return sum(_truth(row, named) is not None for row in whole) > len(whole) / 2


def _truth(row: Mapping[str, Json], named: Mapping[str, str]) -> Json:
    if "answer" in named:
        return row.get(named["answer"])
    prompt = _prompt_column(row, named)
    empty: Json = None
    for name in GOLDS:
        value = row.get(name)
        if name == "reward_model" and isinstance(value, dict):
            value = value.get("ground_truth")
        if value not in (None, "") and name != prompt:
            return value
        empty = "" if value == "" and name != prompt else empty
    return empty


def _prompt_column(row: Mapping[str, Json], named: Mapping[str, str]) -> str:
    return named.get("prompt") or next((name for name in PROMPTS if name in row), "")


def _task(
    place: str, row: Mapping[str, Json], named: Mapping[str, str], wants_gold: bool
) -> XTask | BrokenRow:
    column = _prompt_column(row, named)
    if not column or column not in row:
        there = ", ".join(row) or "none"
        asked = f"no column {column!r}" if column else "no prompt"
        return BrokenRow(
            place,
            f"{place} has {asked} (columns: {quoted(there, 100)}).",
            "Name the column: --columns prompt=NAME answer=NAME.",
        )
    prompt = prompt_text(row[column])
    if not prompt.strip():
        return BrokenRow(
            place, f"{place} has an empty {column}.", "Write the prompt as text or as a list of messages."
        )
    truth = _truth(row, named)
    if truth is None and wants_gold:
        return BrokenRow(
            place,
            f"{place} has no answer, and most rows have one.",
            "Add its answer, or name the column: --columns answer=NAME.",
        )
    extra = row.get("extra_info")
    beside = (
        [extra[name] for name in ("solution", "answer") if extra.get(name)] if isinstance(extra, dict) else []
    )
    named_gold = [] if "answer" in named else [row.get("solution"), *beside]
    forms = [form for value in (*named_gold, truth) for form in gold_forms(value)]
    name = next((str(row[key]) for key in _IDS if isinstance(row.get(key), (str, int))), place)
    return XTask(
        name,
        place,
        prompt,
        [*dict.fromkeys(forms)],
        truth,
        row,
        core=core_of(next((one for one in named_gold if one), truth)),
    )


def prompt_text(value: Json) -> str:
    """A prompt as text: a string, or the contents of messages."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [one.get("content", "") if isinstance(one, dict) else one for one in value]
        return "\n".join(part if isinstance(part, str) else prompt_text(part) for part in parts)
    if isinstance(value, dict):
        return prompt_text(value.get("text") or value.get("content") or "")
    return ""
