"""Results of other evaluators, by task: inspect_ai logs, τ² and τ-bench simulations, SWE-bench reports, tables (CSV), and our own."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile  # inspect (0.3.285) writes zstandard into its archives

from turnwise.errors import TurnwiseError
from turnwise.texts import read_utf8
from turnwise.trainers.compare.sources import read_candidate

FORMS = (
    "Give an inspect log (.eval or .json), a τ² or τ-bench results file, a SWE-bench report, a .csv with the columns task and score, "
    "or an evaluation of ours."
)
_VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_TASK, _SCORE, _TRIAL = (
    ("task", "task_id", "instance_id", "id"),
    ("score", "reward", "success", "resolved", "correct"),
    ("trial", "epoch", "run", "seed"),
)


class TaskResults(NamedTuple):
    """Results of one evaluation.

    Attributes:
        label: the file.
        form: the format that it has.
        scores: of each task, one for each trial, in the order of the trials.
        left_out: episodes without a score, such as those that an error ended.
    """

    label: str
    form: str
    scores: Mapping[str, tuple[float, ...]]
    left_out: int = 0


class FoundRow(NamedTuple):
    """An episode as it stands in a file: where, the task, the trial and the score, not yet read."""

    place: str
    task: Any
    trial: Any
    score: Any


def read_results(path: Path) -> TaskResults:
    """Read the results in a file or folder, whose format is known by what it holds.

    Raises:
        TurnwiseError: there is none, or it is damaged or of another format.
    """
    if not path.exists():
        raise TurnwiseError(f"There is no {path}.", FORMS)
    if path.is_dir():
        return _ours(path)
    if path.suffix == ".csv":
        return _collected(path, "table", _of_table(path))
    if zipfile.is_zipfile(path):
        return _collected(path, "inspect log", _of_inspect(_inspect_samples(path), path))
    try:
        data: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TurnwiseError(f"{path} is not JSON: {error}.", FORMS) from None
    if isinstance(data, dict) and "samples" in data and "eval" in data:
        return _collected(path, "inspect log", _of_inspect(data["samples"] or [], path))
    if isinstance(data, dict) and isinstance(data.get("simulations"), list):
        return _collected(path, "τ² results", _of_simulations(data["simulations"], path))
    if (
        isinstance(data, list)
        and data
        and isinstance(data[0], dict)
        and {"task_id", "reward"} <= data[0].keys()
    ):
        return _collected(path, "τ-bench results", _of_simulations(data, path))
    if isinstance(data, dict) and isinstance(data.get("resolved_ids"), list):
        return _of_report(path, data)
    if not isinstance(data, dict) or "success" not in data:
        raise TurnwiseError(f"{path} is no evaluation of a format that is known.", FORMS)
    return _ours(path)


def _ours(path: Path) -> TaskResults:
    """An evaluation of ours; a run has several, and no one of them is meant."""
    evaluations = read_candidate(str(path)).evaluations
    if len(evaluations) != 1 or not evaluations[0].results:
        raise TurnwiseError(f"{path} is not one evaluation with results by task.", FORMS)
    return TaskResults(str(path), "evaluation", evaluations[0].results)


def _collected(path: Path, form: str, rows: Iterable[FoundRow]) -> TaskResults:
    """Rows by task; those without a score are left out and counted.

    Raises:
        TurnwiseError: a row names no task, or its score or trial is none, or there is no row with a score.
    """
    by_task, left_out = defaultdict[str, list[tuple[float, float]]](list), 0
    for place, task, trial, given in rows:
        score = _told(_number, given, f"{path}, {place}", "score", "Write numbers, or true and false.")
        at = _told(float, trial or 0, f"{path}, {place}", "trial", "Number the trials of a task.")
        if task is None or task == "":
            raise TurnwiseError(f"{path}, {place} names no task.", "Give each episode the id of its task.")
        if score is None or not math.isfinite(score):
            left_out += 1
        else:
            by_task[str(task)].append((at or 0.0, score))
    if not by_task:
        raise TurnwiseError(f"{path} holds no scored episode.", FORMS)
    scores = {task: tuple(score for _, score in sorted(rows)) for task, rows in sorted(by_task.items())}
    return TaskResults(str(path), form, scores, left_out)


def _told(
    read: Callable[[Any], float | None], value: Any, place: str, what: str, remedy: str
) -> float | None:
    try:
        return read(value)
    except (TypeError, ValueError):
        raise TurnwiseError(f"{place}: {str(value)[:80]!r} is no {what}.", remedy) from None


def _of_table(path: Path) -> Iterator[FoundRow]:
    text = read_utf8(path, "Save the table as UTF-8.")
    head = text.partition("\n")[0]
    # Spreadsheets of many countries put semicolons, since their decimals have commas.
    between = max(",;\t", key=head.count)
    rows = csv.DictReader(io.StringIO(text), delimiter=between)
    try:
        names = {str(name).strip().lower(): name for name in rows.fieldnames or ()}
        task, score, trial = (
            next((names[one] for one in known if one in names), None) for known in (_TASK, _SCORE, _TRIAL)
        )
        if task is None or score is None:
            raise TurnwiseError(
                f"{path} has the columns {', '.join(names) or 'none'}.",
                "It needs task and score, and may have trial.",
            )
        for row in rows:
            number = rows.line_num
            value = (row[score] or "").replace(",", ".") if between == ";" else row[score]
            yield FoundRow(f"line {number}", row[task], row[trial] if trial else number, value)
    except csv.Error as error:
        raise TurnwiseError(
            f"{path}, line {rows.line_num}: {error}.", "Write one episode a line, cells in quotes if need be."
        ) from None


def _number(value: Any) -> float | None:
    """A score as it may be written; None where there is none.

    >>> _number("True"), _number("C"), _number(""), _number("0.25")
    (1.0, 1.0, None, 0.25)
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        known = {**_VALUES, "TRUE": 1.0, "FALSE": 0.0, "YES": 1.0, "NO": 0.0}.get(value.strip().upper())
        return float(value) if known is None else known
    return float(value)


def _inspect_samples(path: Path) -> list[Any]:
    """Samples of an .eval archive: the summaries, or where it was not finished each sample by itself."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "summaries.json" in names:
                return json.loads(archive.read("summaries.json"))
            return [
                json.loads(archive.read(name))
                for name in names
                if name.startswith("samples/") and name.endswith(".json")
            ]
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise TurnwiseError(
            f"{path} is a damaged inspect log: {error}.",
            "Write it again with `inspect log dump` or evaluate again.",
        ) from None


def _of_inspect(samples: Iterable[Any], path: Path) -> Iterator[FoundRow]:
    """Rows of samples; where a sample has several scorers, the first that all of them have is meant."""
    listed = [_object(one, f"{path}, sample {n}") for n, one in enumerate(samples, 1)]
    scored = [
        _object(one["scores"], f"{path}, the scores of a sample") for one in listed if one.get("scores")
    ]
    shared = set.intersection(*map(set, scored)) if scored else set[str]()
    if scored and not shared:
        raise TurnwiseError(f"The samples of {path} share no scorer.", "Score them by one scorer.")
    first = next((name for scores in scored for name in scores if name in shared), "")
    for number, sample in enumerate(listed, 1):
        score = (sample.get("scores") or {}).get(first)
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping | list):
            raise TurnwiseError(
                f"{path}, sample {number}: its scorer gives several values.",
                "Reduce them to one (inspect's `value_to_float`), or write a .csv.",
            )
        yield FoundRow(f"sample {number}", sample.get("id"), sample.get("epoch") or 1, value)


def _of_simulations(rows: Iterable[Any], path: Path) -> Iterator[FoundRow]:
    for number, one in enumerate(rows, 1):
        row = _object(one, f"{path}, simulation {number}")
        reward = row.get("reward_info") if "reward_info" in row else row.get("reward")
        if isinstance(reward, Mapping):
            reward = reward.get("reward")
        yield FoundRow(f"simulation {number}", row.get("task_id"), row.get("trial") or 0, reward)


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TurnwiseError(f"{place}: {str(value)[:80]!r} is no object.", FORMS)
    return value


def _of_report(path: Path, data: Mapping[str, Any]) -> TaskResults:
    """A SWE-bench report: what was submitted and is not resolved failed, whatever the reason, as its own rate has it."""
    resolved = {str(one) for one in data["resolved_ids"]}
    submitted = {str(one) for one in data.get("submitted_ids") or data.get("completed_ids") or resolved}
    scores = {task: (float(task in resolved),) for task in sorted(submitted | resolved)}
    if not scores:
        raise TurnwiseError(f"{path} names no instance.", FORMS)
    return TaskResults(str(path), "SWE-bench report", scores)
