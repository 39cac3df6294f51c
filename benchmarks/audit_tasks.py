"""Does `turnwise audit tasks` see planted defects, and leave sound tasks alone? audit-tasks.json has both, and what it says of real sets.

    python benchmarks/audit_tasks.py planted FOLDER --seed 1     plants a seed's sets in FOLDER and writes what was seen; goes on where it was ended
                                     --least 10                  only so many sets that there are ten tasks of each kind in each format, or all that there are
    python benchmarks/audit_tasks.py suites                      a sample of every suite of ours
    python benchmarks/audit_tasks.py set NAME PATH [OPTIONS]     one set of somebody else's, by the options of the command
                                     --read-only                 what reading alone tells of it: broken tasks, copies, shown answers; nothing is run

Recall counts a planted task as seen where its own kind is named; the twin of a copy counts too. A sound task is a false alarm where any
kind is named, what is only worth a look aside. Figures are added to audit-tasks.json under the name of the seed or set.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from turnwise.agents.evaluation.statistics import wilson
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.trainers.audit.registry import audit_all
from turnwise.trainers.audit.xray.core import ProbedSet
from turnwise.trainers.audit.xray.leaks import shown
from turnwise.trainers.audit.xray.likeness import Likeness
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.reading import probe, read_tasks

RESULT = Path(os.environ.get("TURNWISE_AUDIT_TASKS") or Path(__file__).with_name("audit-tasks.json"))
NAMES = {
    "always 1": "always_one", "always 0": "always_zero", "gold refused": "gold_refused", "empty or no-op accepted": "empty_accepted",
    "only skipped tests": "only_skipped", "no assertion reached": "no_assertion", "answer in prompt or files": "answer_shown",
    "key word accepted": "key_word", "flaky": "flaky", "time-out as pass": "time_out_passes", "needs a network": "needs_network",
    "same task twice": "twice", "test task in train": "test_in_train", "broken set-up counted as 0": "broken_setup",
}  # fmt: skip


def seen(probed: ProbedSet) -> tuple[dict[str, dict[str, str]], set[str]]:
    """Defects by task and kind, each with what was seen, and the tasks of which something was judged or whose set-up broke."""
    report = audit_all("tasks", probed, [probed.source.path])
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for kind, finding in report.findings.items():
        for row in finding.data.get("tasks", ()):
            if row["severity"] == "defect":
                found[row["id"]][kind] = row["seen"]
    return found, {one.task.id for one in probed.tasks if not one.unjudged or one.setup}


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


def look(place: Path) -> tuple[dict[str, dict[str, str]], set[str]]:
    """Audit one planted set, as a user would."""
    folder = place if place.is_dir() else place.parent
    rewards = sorted(folder.glob("reward*.py"))
    options = XrayOptions(reward=f"{rewards[0]}:{_function(rewards[0])}" if rewards else "", seconds=5.0)
    beside = [folder / "train.jsonl", folder / "train", folder.parent / "train"]
    against = next((str(one) for one in beside if one.exists() and one != place), "")
    return seen(probe(str(place), options, against))


def planted(
    folder: Path, seed: int, only: Sequence[str], least: int = 0, *, so_far: bool = False
) -> dict[str, Any]:
    """Plant, look and compare; what was seen is kept beside the folder, set by set."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from benchmarks.planted_tasks import SOUND, plant

    kept = folder.with_name(f"{folder.name}-seen.jsonl")
    if not kept.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        truth = [task._asdict() for task in plant(folder, seed)]
        (folder.with_name(f"{folder.name}-truth.json")).write_text(json.dumps(truth))
        kept.touch()
    truth = json.loads(folder.with_name(f"{folder.name}-truth.json").read_text("utf-8"))
    rows = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
    by_path: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for task in truth:
        by_path[task["path"], task["format"]].append(task)
    asked = [
        (path, form, tasks)
        for (path, form), tasks in by_path.items()
        if not only or any(form.startswith(one) for one in only)
    ]
    chosen = enough(asked, least, seed, SOUND) if least else asked
    done = {row["path"] for row in rows}
    todo = [] if so_far else [one for one in chosen if one[0] not in done]
    with ThreadPoolExecutor(2) as pool:
        for asking in as_completed([pool.submit(_rows, folder, *one) for one in todo]):
            rows += asking.result()
            with kept.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in asking.result())
    wanted = {path for path, _, _ in chosen}
    rows = [row for row in rows if row["path"] in wanted]
    return {
        "looked": len({row["path"] for row in rows}),
        "sets": len(asked),
        "seconds": round(sum({row["path"]: row["seconds"] for row in rows}.values())),
        **summary(rows, SOUND),
        "formats": {
            name: summary([row for row in rows if row["format"].startswith(name)], SOUND)
            for name in FORMATS
            if any(row["format"].startswith(name) for row in rows)
        },
    }


FORMATS = ("jsonl", "harbor", "swe")


def enough(sets: Sequence[Any], least: int, seed: int, sound: str) -> list[Any]:
    """Sets in an order that is drawn, those left out that bring no kind of which there are too few yet."""
    have: Counter[tuple[str, str]] = Counter()
    chosen: list[Any] = []
    for one in random.Random(f"sets {seed}").sample(sets, len(sets)):
        form = next(name for name in FORMATS if one[1].startswith(name))
        kinds = Counter((form, task["kind"]) for task in one[2] if task["kind"] != sound)
        # Sets of sound tasks alone are taken until there are ten times as many, so that false alarms are told to a few percent.
        wanted = any(have[kind] < least for kind in kinds) or (not kinds and have[form, sound] < 10 * least)
        if wanted:
            chosen.append(one)
            have.update(kinds)
            have[form, sound] += sum(task["kind"] == sound for task in one[2])
    return chosen


def _rows(folder: Path, path: str, form: str, tasks: Sequence[Any]) -> list[dict[str, Any]]:
    begun = time.monotonic()
    try:
        found, looked = look(folder / path)
    except TurnwiseError as error:
        found, looked = {task["task"]: {"unread": str(error)} for task in tasks}, set[str]()
    took = round(time.monotonic() - begun, 1)
    print(f"{path}: {len(tasks)} tasks, {took:.0f} s", flush=True)
    return [
        {
            **{name: task[name] for name in ("path", "format", "task", "kind", "mechanism")},
            "said": {**found.get(task["twin"] or "", {}), **found.get(task["task"], {})},
            "judged": task["task"] in looked,
            "seconds": took,
        }
        for task in tasks
    ]


def summary(rows: Sequence[Mapping[str, Any]], sound: str) -> dict[str, Any]:
    """Recall by kind and false alarms on sound tasks, with 95 % intervals; tasks that nothing could be asked of are counted as missed, and named."""
    recall: dict[str, Any] = {}
    bad = [row for row in rows if row["kind"] != sound]
    for kind in [*NAMES, "all"]:
        of = [row for row in bad if kind in (row["kind"], "all")]
        if of:
            recall[kind] = told(sum(NAMES[row["kind"]] in row["said"] for row in of), len(of))
    good = [row for row in rows if row["kind"] == sound]
    alarms = told(sum(bool(row["said"]) for row in good), len(good)) if good else None
    return {"recall": recall, "false_alarms": alarms, "not_judged": sum(not row["judged"] for row in rows)}


def told(hits: int, n: int) -> dict[str, Any]:
    """A share with its interval."""
    return {
        "seen": hits,
        "of": n,
        "share": round(hits / n, 4),
        "interval": [round(x, 4) for x in wilson(hits, n)],
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


def only_read(path: str) -> dict[str, Any]:
    """Words about a set, before anything of it is run."""
    source = read_tasks(path, XrayOptions())
    known, copies = Likeness(), list[str]()
    for task in source.tasks:
        if (first := known.find(task)) is not None:
            copies.append(f"{task.id} is {first}")
        known.add(task)
    shows = [f"{task.id}: {told}" for task in source.tasks if (told := shown(task))]
    return {
        "form": source.form, "rows": source.total, "broken": [one.cause.replace(f"{path}/", "") for one in source.broken], "read": len(source.tasks),
        "judged": 0, "twice": copies, "answer_shown": shows,
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
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--so-far", action="store_true", help="sum up the sets that were looked at")
    parser.add_argument("--reward", default="")
    parser.add_argument("--against", default="")
    parser.add_argument("--with", dest="packages", nargs="*", default=())
    parser.add_argument("--n", type=int, default=0)
    parser.add_argument("--label", default="")
    parser.add_argument("--read-only", action="store_true")
    chosen = parser.parse_args()
    if chosen.what == "planted":
        found = planted(Path(chosen.names[0]), chosen.seed, chosen.only, chosen.least, so_far=chosen.so_far)
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
        options = XrayOptions(chosen.reward, {}, chosen.packages, n=chosen.n)
        write("sets", name, only_read(path) if chosen.read_only else one_set(path, options, chosen.against))


if __name__ == "__main__":
    main()
