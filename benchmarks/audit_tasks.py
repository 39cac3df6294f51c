"""Does `turnwise audit tasks` see planted defects, and leave sound tasks alone? audit-tasks.json has both, and what it says of real sets.

    python benchmarks/audit_tasks.py planted FOLDER --seed 1     plants a seed's sets in FOLDER and writes what was seen
    python benchmarks/audit_tasks.py suites                      a sample of every suite of ours
    python benchmarks/audit_tasks.py set NAME PATH [OPTIONS]     one set of somebody else's, by the options of the command

Recall counts a planted task as seen where its own kind is named; the twin of a copy counts too. A sound task is a false alarm where any
kind is named, what is only worth a look aside. Figures are added to audit-tasks.json under the name of the seed or set.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from turnwise.agents.evaluation.statistics import wilson
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.trainers.audit.registry import audit_all
from turnwise.trainers.audit.xray.core import ProbedSet
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.reading import probe

RESULT = Path(os.environ.get("TURNWISE_AUDIT_TASKS") or Path(__file__).with_name("audit-tasks.json"))
NAMES = {
    "always 1": "always_one", "always 0": "always_zero", "gold refused": "gold_refused", "empty or no-op accepted": "empty_accepted",
    "only skipped tests": "only_skipped", "no assertion reached": "no_assertion", "answer in prompt or files": "answer_shown",
    "key word accepted": "key_word", "flaky": "flaky", "time-out as pass": "time_out_passes", "needs a network": "needs_network",
    "same task twice": "twice", "test task in train": "test_in_train", "broken set-up counted as 0": "broken_setup",
}  # fmt: skip


def seen(probed: ProbedSet) -> dict[str, dict[str, str]]:
    """Defects by task and kind, each with what was seen."""
    report = audit_all("tasks", probed, [probed.source.path])
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for kind, finding in report.findings.items():
        for row in finding.data.get("tasks", ()):
            if row["severity"] == "defect":
                found[row["id"]][kind] = row["seen"]
    return found


def _function(file: Path) -> str:
    """The name of a file's reward function: reward or compute_score."""
    names = [
        one.name
        for one in ast.parse(file.read_text("utf-8")).body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return next(
        (name for name in ("compute_score", "reward", "reward_func", "reward_function") if name in names),
        names[-1],
    )


def look(place: Path, form: str) -> dict[str, dict[str, str]]:
    """Audit one planted set, as a user would."""
    folder = place if place.is_dir() else place.parent
    rewards = sorted(folder.glob("reward*.py"))
    options = XrayOptions(reward=f"{rewards[0]}:{_function(rewards[0])}" if rewards else "", seconds=5.0)
    tests, train = folder / "test.jsonl", folder / "train.jsonl"
    if form.startswith("jsonl"):
        path = (
            place
            if place.is_file() and place.name != "train.jsonl"
            else tests
            if tests.is_file()
            else folder / "tasks.jsonl"
        )
        return seen(probe(str(path), options, str(train) if train.is_file() else ""))
    against = next(
        (one for one in (folder / "train", folder.parent / "train") if one.is_dir() and one != place), None
    )
    return seen(probe(str(place), options, str(against) if against else ""))


def planted(folder: Path, seed: int, only: Sequence[str], without: Sequence[str] = ()) -> dict[str, Any]:
    """Plant, look and compare."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from benchmarks.planted_tasks import SOUND, plant

    truth = plant(folder, seed)
    by_path: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for task in truth:
        by_path[task.path, task.format].append(task)
    asked = [
        (path, form, tasks)
        for (path, form), tasks in by_path.items()
        if not only or any(form.startswith(one) for one in only)
    ]
    asked = [one for one in asked if not any(f"/{name}-" in one[0] for name in without)]
    with ThreadPoolExecutor(3) as pool:
        rows = [row for made in pool.map(lambda one: _rows(folder, *one), asked) for row in made]
    return {"rows": rows, **summary(rows, SOUND)}


def _rows(folder: Path, path: str, form: str, tasks: Sequence[Any]) -> list[dict[str, Any]]:
    begun = time.monotonic()
    try:
        found = look(folder / path, form)
    except TurnwiseError as error:
        found = {task.task: {"unread": str(error)} for task in tasks}
    made: list[dict[str, Any]] = []
    for task in tasks:
        said = (
            {**found.get(task.twin, {}), **found.get(task.task, {})}
            if task.twin
            else found.get(task.task, {})
        )
        made.append(
            {
                "path": path,
                "format": form,
                "task": task.task,
                "kind": task.kind,
                "mechanism": task.mechanism,
                "said": said,
            }
        )
    print(f"{path}: {len(tasks)} tasks, {time.monotonic() - begun:.0f} s", flush=True)
    return made


def summary(rows: Sequence[Mapping[str, Any]], sound: str) -> dict[str, Any]:
    """Recall by kind and false alarms on sound tasks, with 95 % intervals."""
    recall: dict[str, Any] = {}
    bad = [row for row in rows if row["kind"] != sound]
    for kind in [*NAMES, "all"]:
        of = [row for row in bad if kind in (row["kind"], "all")]
        if of:
            hits = sum(NAMES[row["kind"]] in row["said"] for row in of)
            recall[kind] = {
                "seen": hits,
                "of": len(of),
                "share": round(hits / len(of), 4),
                "interval": [round(x, 4) for x in wilson(hits, len(of))],
            }
    good = [row for row in rows if row["kind"] == sound]
    alarms = sum(bool(row["said"]) for row in good)
    return {
        "recall": recall,
        "false_alarms": {
            "said": alarms,
            "of": len(good),
            "share": round(alarms / max(len(good), 1), 4),
            "interval": [round(x, 4) for x in wilson(alarms, max(len(good), 1))],
        },
    }


def one_set(path: str, options: XrayOptions, against: str = "") -> dict[str, Any]:
    """What is said of a set of somebody else's."""
    probed = probe(path, options, against)
    report = audit_all("tasks", probed, [path]).to_json()
    kinds = {
        kind: found["data"]["tasks"]
        for kind, found in report["findings"].items()
        if found.get("data", {}).get("tasks")
    }
    return {
        "form": probed.source.form, "rows": probed.source.total, "broken": [one.cause for one in probed.source.broken][:5], "asked": len(probed.tasks),
        "judged": len(probed.of_judged), "unjudged": sorted({one.unjudged for one in probed.tasks if one.unjudged})[:4],
        "bounds": {name: figure["value"] for name, figure in report["findings"]["bounds"]["figures"].items()},
        "kinds": {kind: {"tasks": len(told), "examples": [f"{row['id']} ({row['severity']}): {row['seen']}" for row in told[:3]]} for kind, told in kinds.items()},
    }  # fmt: skip


def write(section: str, name: str, value: Any) -> None:
    """Add a result to the file."""
    held = json.loads(RESULT.read_text("utf-8")) if RESULT.is_file() else {}
    held["machine"] = describe()
    held.setdefault(section, {})[name] = value
    RESULT.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("planted", "suites", "set"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=(), help="formats")
    parser.add_argument("--without", nargs="*", default=(), help="topics of sets that are left out")
    parser.add_argument("--reward", default="")
    parser.add_argument("--against", default="")
    parser.add_argument("--with", dest="packages", nargs="*", default=())
    parser.add_argument("--n", type=int, default=0)
    parser.add_argument("--label", default="")
    chosen = parser.parse_args()
    if chosen.what == "planted":
        found = planted(Path(chosen.names[0]), chosen.seed, chosen.only, chosen.without)
        rows = found.pop("rows")
        Path(f"{chosen.names[0].rstrip('/')}-seen.json").write_text(
            json.dumps(rows, indent=1, ensure_ascii=False)
        )
        write("planted", chosen.label or f"seed {chosen.seed}", found)
        print(json.dumps(found, indent=1))
    elif chosen.what == "suites":
        from turnwise.envs.registry import suites

        for name in chosen.names or [suite.name for suite in suites()]:
            try:
                write("suites", name, one_set(name, XrayOptions(n=chosen.n or 30)))
            except (TurnwiseError, OSError) as error:
                write("suites", name, {"error": str(error)})
            print(name, flush=True)
    else:
        name, path = chosen.names
        write(
            "sets",
            name,
            one_set(path, XrayOptions(chosen.reward, {}, chosen.packages, n=chosen.n), chosen.against),
        )


if __name__ == "__main__":
    main()
