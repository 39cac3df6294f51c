"""Results of other evaluators, by task: inspect_ai logs, τ² and τ-bench simulations, SWE-bench reports, tables (CSV), and our own."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile  # inspect (0.3.285) writes zstandard into its archives

from turnwise.errors import TurnwiseError
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
        return _collected(path, "τ² results", map(_of_simulation, data["simulations"]))
    if (
        isinstance(data, list)
        and data
        and isinstance(data[0], dict)
        and {"task_id", "reward"} <= data[0].keys()
    ):
        return _collected(path, "τ-bench results", map(_of_simulation, data))
    if isinstance(data, dict) and "resolved_ids" in data:
        return _of_report(path, data)
    return _ours(path)


def _ours(path: Path) -> TaskResults:
    """An evaluation of ours; a run has several, and no one of them is meant."""
    evaluations = read_candidate(str(path)).evaluations
    if len(evaluations) != 1 or not evaluations[0].results:
        raise TurnwiseError(f"{path} is not one evaluation with results by task.", FORMS)
    return TaskResults(str(path), "evaluation", evaluations[0].results)


def _collected(path: Path, form: str, rows: Iterable[tuple[str, float, float | None]]) -> TaskResults:
    """Rows of task, trial and score by task; a score of None is left out and counted."""
    by_task, left_out = defaultdict[str, list[tuple[float, float]]](list), 0
    for task, trial, score in rows:
        if score is None or not math.isfinite(score):
            left_out += 1
        else:
            by_task[task].append((trial, score))
    if not by_task:
        raise TurnwiseError(f"{path} holds no scored episode.", FORMS)
    scores = {task: tuple(score for _, score in sorted(rows)) for task, rows in sorted(by_task.items())}
    return TaskResults(str(path), form, scores, left_out)


def _of_table(path: Path) -> Iterator[tuple[str, float, float | None]]:
    rows = csv.DictReader(io.StringIO(path.read_text("utf-8-sig")))
    names = {str(name).strip().lower(): name for name in rows.fieldnames or ()}
    task, score, trial = (
        next((names[one] for one in known if one in names), None) for known in (_TASK, _SCORE, _TRIAL)
    )
    if task is None or score is None:
        raise TurnwiseError(
            f"{path} has the columns {', '.join(names) or 'none'}.",
            "It needs task and score, and may have trial.",
        )
    for number, row in enumerate(rows, 2):
        try:
            value = _number(row[score])
            yield str(row[task]), float(row[trial] or 0) if trial else number, value
        except (TypeError, ValueError):
            raise TurnwiseError(
                f"{path}, line {number}: {row[score]!r} is no score.", "Write numbers, or true and false."
            ) from None


def _number(value: Any) -> float | None:
    """A score as it may be written; None where there is none.

    >>> _number("True"), _number("C"), _number(""), _number("0.25"), _number({"value": 1})
    (1.0, 1.0, None, 0.25, 1.0)
    """
    if isinstance(value, Mapping):
        value = value.get("value")
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


def _of_inspect(samples: Iterable[Any], path: Path) -> Iterator[tuple[str, float, float | None]]:
    """Rows of samples; where a sample has several scorers, the first that all of them have is meant."""
    listed = [sample for sample in samples if isinstance(sample, dict)]
    scored = [set(sample["scores"]) for sample in listed if sample.get("scores")]
    shared = sorted(set.intersection(*scored)) if scored else []
    if scored and not shared:
        raise TurnwiseError(f"The samples of {path} share no scorer.", "Score them by one scorer.")
    first = next((name for sample in listed for name in sample.get("scores") or () if name in shared), "")
    for sample in listed:
        score = (sample.get("scores") or {}).get(first)
        value = None if sample.get("error") and score is None else _inspect_value(score)
        yield str(sample.get("id")), float(sample.get("epoch") or 1), value


def _inspect_value(score: Any) -> float | None:
    value = score.get("value") if isinstance(score, Mapping) else score
    if isinstance(value, Mapping | list):
        raise TurnwiseError(
            "A scorer gives several values for a sample.",
            "Reduce them to one (inspect's `value_to_float`), or write a .csv.",
        )
    return _number(value)


def _of_simulation(row: Any) -> tuple[str, float, float | None]:
    reward = row.get("reward_info") if "reward_info" in row else {"reward": row.get("reward")}
    value = (reward or {}).get("reward")
    return str(row.get("task_id")), float(row.get("trial") or 0), None if value is None else float(value)


def _of_report(path: Path, data: Mapping[str, Any]) -> TaskResults:
    """A SWE-bench report: what was submitted and is not resolved failed, whatever the reason, as its own rate has it."""
    resolved = {str(one) for one in data["resolved_ids"]}
    submitted = {str(one) for one in data.get("submitted_ids") or data.get("completed_ids") or resolved}
    scores = {task: (float(task in resolved),) for task in sorted(submitted | resolved)}
    if not scores:
        raise TurnwiseError(f"{path} names no instance.", FORMS)
    return TaskResults(str(path), "SWE-bench report", scores)
