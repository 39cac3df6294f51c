"""A cell's result: one committed JSON file, with all that a table needs and all that it was made on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from campaigning.after import answers
from campaigning.carry_out import Sessions
from campaigning.plan import Cell, Plan, asked_of
from turnwise.agents.evaluation.statistics import Estimate, Interval
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.trainers.compare.candidates import (
    Candidate,
    CandidateEvaluation,
    LearningCurve,
    Measure,
    Validation,
)
from turnwise.trainers.compare.sources import AFTER, DEV, RunRecords, run_conditions
from turnwise.trainers.report.events import seconds_at_work
from turnwise.trainers.report.records import EvaluationRow


def write_cell(plan: Plan, cell: Cell, runs: Path, cells: Path, failed: str = "") -> None:
    """Write the result of a run that came to its end; ``failed`` says why it came to none."""
    folder = cell.folder(runs)
    sessions = Sessions(folder)
    run, at_work = RunRecords(folder), seconds_at_work(folder)
    recipe = dict(run.recipe)
    if asked_of(plan, cell)["shared_start"]:
        recipe["model"] = "the setting's common start"  # instead of a path on that machine
    data = {
        "setting": cell.setting,
        "method": cell.method,
        "seed": cell.seed,
        "plan": plan.hash,
        "asked": asked_of(plan, cell),
        "failed": failed,
        "best_update": run.best_update,
        "evaluations": [_as_data(row) for row in run.rows],
        "curve": [v._replace(seconds=at_work.get(v.update))._asdict() for v in run.curve],
        "metrics": {name: metric_of(run, name) for name in plan.metrics},
        "after": answers(folder),
        "recipe": recipe,
        "commit": sessions.rows[-1]["commit"] if sessions.rows else "",
        "machine": describe(),
        "sessions": sessions.rows,
        "seconds": round(sessions.seconds, 1),
        "machine_hours": round(sessions.seconds / 3600, 4),
    }
    path = cell.file(cells)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def metric_of(run: RunRecords, name: str) -> list[tuple[int, float]]:
    """A metric of a run's updates: (update, value), to 6 significant digits; those that lack it are left out."""
    rows = [(row.update, row.values[name]) for row in run.metrics if row.phase == "rl" and name in row.values]
    return [(update, float(f"{value:.6g}")) for update, value in rows]


def read_cell(plan: Plan, cell: Cell, cells: Path) -> dict[str, Any] | None:
    """A cell's result; None where it was not run.

    Raises:
        TurnwiseError: it is damaged, or the answer to another question.
    """
    path = cell.file(cells)
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text("utf-8"))
        asked = data["asked"]
    except (ValueError, KeyError, TypeError):
        raise TurnwiseError(
            f"{path} is damaged.", "Put it back, or remove it and run the cell again."
        ) from None
    now = json.loads(json.dumps(asked_of(plan, cell)))
    if asked != now:
        changed = ", ".join(key for key in now if asked.get(key) != now[key])
        raise TurnwiseError(
            f"{path} was made with another {changed} than the plan has now.",
            "Give the setting or the method another name, or remove the file and run the cell again.",
        )
    return data


def candidate(data: dict[str, Any], *, wall_time: bool = False) -> Candidate:
    """A cell's result as one side of a comparison, with ``wall_time`` at equal seconds too."""
    recipe = data["recipe"]
    rows = [_evaluation(row, recipe) for row in data["evaluations"]]
    starts = {row.measure: row for name, row in rows if name != AFTER}
    finals = [row for name, row in rows if name == AFTER]
    dev = int((recipe.get("evaluate") or {}).get("dev") or 100)
    return Candidate(
        f"{data['method']}-{data['seed']}",
        tuple(CandidateEvaluation(**{**vars(e), "before": starts.get(e.measure)}) for e in finals),
        seed=data["seed"],
        curve=_curve(data["curve"], wall_time),
        dev=Measure(recipe["suite"], DEV, "sampled"),
        dev_conditions=run_conditions(recipe, "sampled"),
        dev_tasks=dev,
    )


def _curve(rows: list[dict[str, Any]], wall_time: bool) -> LearningCurve:
    untimed = {} if wall_time else {"seconds": None}
    return tuple(
        Validation(**{**row, **untimed, "interval": Interval(*row["interval"]) if row["interval"] else None})
        for row in rows
    )


def _as_data(row: EvaluationRow) -> dict[str, Any]:
    results = {task: "".join(str(int(x)) for x in runs) for task, runs in row.results.items()}
    return {
        "name": row.name,
        "mode": row.mode,
        "suite": row.suite,
        "split": row.split,
        "success": row.success,
        "success_interval": list(row.success_interval),
        "mean_score": row.mean_score,
        "turns": row.turns,
        "episodes": row.episodes,
        "tasks": row.tasks,
        "outcomes": dict(row.outcomes),
        "results": results,
    }


def _evaluation(row: dict[str, Any], recipe: dict[str, Any]) -> tuple[str, CandidateEvaluation]:
    success = Estimate(row["success"], Interval(*row["success_interval"]), row["episodes"], row["tasks"])
    found = CandidateEvaluation(
        Measure(row["suite"], row["split"], row["mode"]),
        success,
        row["mean_score"],
        row["turns"],
        {task: tuple(map(float, runs)) for task, runs in row["results"].items()},
        run_conditions(recipe, row["mode"]),
    )
    return row["name"], found
