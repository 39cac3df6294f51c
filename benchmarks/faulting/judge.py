"""What came of a trial: the final records beside those of the run that nothing happened to.

Each function returns what is wrong, in sentences; nothing wrong is an empty list. Figures are computed anew here, from
the episodes, with nothing of the code that is judged but the reader of its logs.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import to_line

CLOCK = ("seconds", "tokens_per_second")
"""What goes by the clock: names that end so."""
COUNTING = ("ok", "limit")
Hit = Callable[[str], bool]
"""Whether the fault meets the task with this prompt."""


def records(log: Path) -> list[dict[str, Any]]:
    """The lines of an episode log that is whole; a torn end is left out."""
    return [json.loads(to_line(record)) for record in LogReader(log)] if log.exists() else []


def rows(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of JSON lines."""
    lines = path.read_text("utf-8", "replace").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def counts(line: Mapping[str, Any]) -> bool:
    return line["outcome"] in COUNTING


def prompt(line: Mapping[str, Any]) -> str:
    return line["task"]["prompt"]


def timeless(line: Mapping[str, Any]) -> dict[str, Any]:
    """An episode without what differs each time it is played: its seconds, steps that were repeated, who is named."""
    kept = {key: value for key, value in line.items() if key not in ("policy", "env", "metrics", "error")}
    metrics = {k: v for k, v in line["metrics"].items() if k not in ("seconds", "repeated_steps")}
    return kept | {"metrics": metrics}


def key(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """Which episode it is: of an evaluation (task, seed), of training with its update and group."""
    return line["task_id"], line["seed"], line["update"], line["group"]


def kept(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> list[str]:
    """Whether each counting episode that was on the disk when a process ended is there still, not played anew."""
    final = {key(line): line for line in after}
    lost = [line for line in before if counts(line) and final.get(key(line)) != line]
    return [f"{len(lost)} finished episodes were lost or played again after a resume"] if lost else []


# --- evaluations -------------------------------------------------------------------------------------


def evaluation(out: Path, reference: Path, expect: str, hit: Hit) -> list[str]:
    """Judge an evaluation that came to its end."""
    lines, sound = records(out / "episodes.jsonl.zst"), records(reference / "episodes.jsonl.zst")
    wrong = _episodes(lines, sound, expect, hit)
    summary = json.loads((out / "evaluation.json").read_text())
    return wrong + _figures(summary, [line for line in lines if counts(line)], len(sound))


def _episodes(lines: list[dict[str, Any]], sound: list[dict[str, Any]], expect: str, hit: Hit) -> list[str]:
    wrong: list[str] = []
    times = Counter(key(line) for line in lines)
    wanted = {key(line): line for line in sound}
    if twice := [k for k, n in times.items() if n > 1]:
        wrong.append(f"{len(twice)} episodes are in the log more than once")
    if missing := wanted.keys() - times.keys():
        wrong.append(f"{len(missing)} episodes are not in the log")
    if times.keys() - wanted.keys():
        wrong.append("episodes are in the log that were never asked for")
    for line in lines:
        if key(line) in wanted and (
            said := _one(line, wanted[key(line)], expect if hit(prompt(line)) else "same")
        ):
            wrong.append(said)
    return wrong


def _one(line: dict[str, Any], sound: dict[str, Any], expect: str) -> str:
    told = f"{line['outcome']}: {line['error'][:120]}"
    if expect == "costs":
        expect = "same" if counts(line) else "masked"
    match expect:
        case "same" if timeless(line) != timeless(sound):
            return f"a sound episode differs ({told})"
        case "masked" if counts(line):
            return f"an episode that failed counts ({told})"
        case "masked" if not line["error"]:
            return "an episode that failed has no cause"
        case "mistake" if not counts(line) or line["end"] == "solved":
            return f"a malformed answer is not the agent's failure ({told}, {line['end']})"
        case "counted" if not counts(line) or _paid(line) != _paid(sound):
            return f"an episode does not count as it should ({told})"
        case _:
            return ""


def _paid(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["end"], [turn["rewards"] for turn in line["agents"]["agent"]["turns"]]


def _figures(summary: Mapping[str, Any], counting: list[dict[str, Any]], asked: int) -> list[str]:
    """The figures, from the counting episodes alone."""
    runs: dict[str, list[float]] = {}
    for line in counting:
        runs.setdefault(line["task_id"], []).append(float(line["end"] == "solved"))
    success = sum(map(sum, runs.values())) / max(1, len(counting))
    score = sum(sum(r.get("outcome", 0) for r in _paid(line)[1]) for line in counting) / max(1, len(counting))
    wrong: list[str] = []
    if not math.isclose(summary["success"], success, abs_tol=1e-12):
        wrong.append(f"success is {summary['success']}, {success} by the episodes that count")
    if not math.isclose(summary["mean_score"], score, abs_tol=1e-12):
        wrong.append(f"the score is {summary['mean_score']}, {score} by the episodes that count")
    if {task: sorted(r) for task, r in summary["results"].items()} != {t: sorted(r) for t, r in runs.items()}:
        wrong.append("the results by task are not those of the episodes that count")
    if summary["episodes"] != asked or sum(summary["outcomes"].values()) != asked:
        wrong.append(f"{summary['episodes']} of {asked} episodes are in the figures")
    failed = asked - len(counting)
    if sum(cause["episodes"] for cause in summary["causes"]) != failed and len(summary["causes"]) < 5:
        wrong.append(f"{failed} episodes do not count, and their causes are not all told")
    return wrong


# --- training ----------------------------------------------------------------------------------------


def newest(checkpoints: Path) -> int:
    """The update of the newest checkpoint whose files are what its manifest says; -1 if there is none."""
    for folder in sorted(checkpoints.glob("step-*"), reverse=True):
        try:
            manifest = json.loads((folder / "MANIFEST.json").read_text())
            whole = all(
                hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
                for name, digest in manifest.items()
            )
        except (OSError, ValueError):
            continue
        if whole:
            return int(folder.name.removeprefix("step-"))
    return -1


def resumed(said: str, checkpoint: int) -> list[str]:
    """Whether a run went on from its newest checkpoint."""
    if checkpoint < 0 or f"resumed after update {checkpoint}" in said or "is complete" in said:
        return []
    return [f"the checkpoint of update {checkpoint} was not used"]


def same_run(out: Path, reference: Path) -> list[str]:
    """Whether a run is the uninterrupted one: weights, optimizer, counters, and all that was recorded on the way."""
    wrong: list[str] = []
    for step in sorted((reference / "checkpoints").iterdir()):
        if _files(out / "checkpoints" / step.name) != _files(step):
            wrong.append(f"{step.name} differs")
    if not (out / "best").is_symlink() or os.readlink(out / "best") != os.readlink(reference / "best"):
        wrong.append("another checkpoint is the best")
    log = "episodes.jsonl.zst"
    if [timeless(r) for r in records(out / log)] != [timeless(r) for r in records(reference / log)]:
        wrong.append("the episodes differ")
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        if [_unclocked(r) for r in rows(out / name)] != [_unclocked(r) for r in rows(reference / name)]:
            wrong.append(f"{name} differs")
    return wrong + _written(out)


def faulty_run(out: Path, expect: str, hit: Hit, group_size: int) -> list[str]:
    """Judge a run in which episodes failed, or saw what they else had not, by itself."""
    lines = records(out / "episodes.jsonl.zst")
    groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault((line["update"], line["group"]), []).append(line)
    wrong = [f"group {g} has {len(m)} episodes" for g, m in groups.items() if len(m) != group_size]
    if len({key(line) for line in lines}) != len(lines):
        wrong.append("an episode is in the log more than once")
    for line in lines:
        if expect == "masked" and hit(prompt(line)) and counts(line) and _reached(line):
            wrong.append(f"an episode that failed counts ({line['outcome']})")
        if (expect == "counted" or not hit(prompt(line))) and not counts(line):
            wrong.append(f"a sound episode does not count ({line['outcome']}: {line['error'][:120]})")
    if any(map(_impossible, lines)):
        wrong.append("what no engine can have sampled is in the log")
    if any(_advantages(line) for line in lines if not counts(line)):
        wrong.append("an episode that failed has advantages")
    by_update: dict[int, list[list[dict[str, Any]]]] = {}
    for (update, _), members in groups.items():
        by_update.setdefault(update, []).append(members)
    for row in rows(out / "metrics.jsonl"):
        if row["phase"] == "rl":
            wrong += _update(row, by_update.get(row["update"], []))
    for row in rows(out / "evaluations.jsonl"):
        wrong += _evaluated(row)
    return wrong + _written(out)


def _reached(line: dict[str, Any]) -> bool:
    """Whether the episode came to the step in which it happens."""
    turns = line["agents"]["agent"]["turns"]
    return len(turns) > 1


def _impossible(line: dict[str, Any]) -> bool:
    """Whether a turn has a log-probability above 0, or a token that no small model has."""
    turns = [turn for agent in line["agents"].values() for turn in agent["turns"]]
    return any(logp > 1e-3 for turn in turns for logp in turn["logprobs"]) or any(
        not 0 <= token < 100_000 for turn in turns for token in turn["action_ids"]
    )


def _advantages(line: dict[str, Any]) -> bool:
    return any("advantage" in turn for agent in line["agents"].values() for turn in agent["turns"])


def _update(row: Mapping[str, Any], groups: list[list[dict[str, Any]]]) -> list[str]:
    sound = [[line for line in members if counts(line)] for members in groups]
    useful = [members for members in sound if len(members) > 1]  # one alone has no baseline
    whole = [line for members in useful for line in members]
    failed = sum(not counts(line) for members in groups for line in members)
    n = max(1, len(whole))
    wanted = {
        "reward": sum(turn["reward"] for line in whole for turn in line["agents"]["agent"]["turns"]) / n,
        "success": sum(line["end"] == "solved" for line in whole) / n,
        "episodes_failed": failed,
        "groups_dropped": len(groups) - len(useful),
    }
    return [
        f"update {row['update']}: {name} is {row[name]}, {value} by the episodes"
        for name, value in wanted.items()
        if not math.isclose(row[name], value, abs_tol=1e-9)
    ]


def _evaluated(row: Mapping[str, Any]) -> list[str]:
    runs = [value for results in row["results"].values() for value in results]
    wrong: list[str] = []
    if not math.isclose(row["success"], sum(runs) / max(1, len(runs)), abs_tol=1e-12):
        wrong.append(f"{row['name']}, {row['mode']}: success is not that of the episodes that count")
    if len(runs) != sum(row["outcomes"][name] for name in COUNTING):
        wrong.append(f"{row['name']}, {row['mode']}: an episode that failed is in the results")
    return wrong


def _written(out: Path) -> list[str]:
    return [f"{name} is missing" for name in ("report.html", "episodes.parquet") if not (out / name).exists()]


def _unclocked(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.endswith(CLOCK)}


def _files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
