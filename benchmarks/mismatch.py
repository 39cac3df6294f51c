"""How often `turnwise mismatch` names the fault that a helper planted who had not read its detectors: mismatch.json has the confusion matrix.

    python benchmarks/mismatch.py FOLDER… --seeds 6 --none 50      models that were not used while it was built
                                  --make                           makes a small one in each folder that is not there, which has read docs/

Each log is planted by benchmarks/mismatching and examined as the command would. A model that was done before is gone on with, at the seeds from
``--first`` on; what was looked at before detectors were corrected is kept apart, under ``before``.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from turnwise.agents.evaluation.statistics import wilson
from turnwise.agents.models.finding import find_model
from turnwise.agents.models.loading import load_causal, load_tokenizer
from turnwise.agents.models.vocabulary import end_ids
from turnwise.machine import describe
from turnwise.trainers.mismatch.asking import ends_of, examine
from turnwise.trainers.mismatch.case import MismatchModels
from turnwise.trainers.mismatch.core import FaultPlace
from turnwise.trainers.mismatch.reading import row_of

sys.path.insert(0, str(Path(__file__).parent))
from mismatching.core import FAULTS, PlantedLog
from mismatching.making import made
from mismatching.planting import plant

RESULT = Path(os.environ.get("TURNWISE_MISMATCH") or Path(__file__).with_name("mismatch.json"))


def look(planted: PlantedLog, tokenizer: Any, ends: tuple[int, ...]) -> dict[str, Any]:
    """Examine a log, given what a user would give."""
    rows = [row_of(json.loads(json.dumps(row)), number) for number, row in enumerate(planted.rows)]
    without = planted.without_adapter
    models = MismatchModels(
        planted.model,
        tokenizer,
        None if without is None else lambda: without,
        {name: lambda other=other: other for name, other in planted.also.items()},
        ends,
    )
    began = time.process_time()
    report = examine(rows, models)
    begins = planted.begins
    return {
        "named": report.fault,
        "confidence": round(report.confidence, 3),
        "begins": report.begins,
        "truth_begins": begins,
        "row_right": begins is not None and report.begins is not None and report.begins.row == begins[0],
        "turn_right": begins is not None
        and report.begins is not None
        and report.begins[:2] == tuple(begins[:2]),
        "token_right": begins is not None and report.begins == FaultPlace(*begins),
        "said": report.said[0],
        "ranked": [one._asdict() for one in report.ranked[:5]],
        "tokens": report.figures["tokens"],
        "mean_gap": round(report.figures["mean_gap"], 5),
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def run(name: str, first: int, seeds: int, none: int, found: list[dict[str, Any]]) -> None:
    """Plant and examine the logs of one model, and write after each."""
    path = find_model(name)
    model = load_causal(path, torch.float32).eval()
    tokenizer, ends = load_tokenizer(path), ()
    ends = ends_of(tokenizer, end_ids(path))
    label = Path(name).name if Path(name).exists() else name
    done = {(one["model"], one["fault"], one["seed"]) for one in found}
    wanted = [
        (fault, first + number)
        for number in range(max(seeds, none))
        for fault in FAULTS
        if number < (none if fault == "none" else seeds)
    ]
    asked = {label: len(wanted)}
    for fault, seed in wanted:
        if (label, fault, seed) in done:
            continue
        try:
            planted = plant(model, tokenizer, seed, fault)
        except ValueError as error:  # with few seeds a fault cannot be made large enough to be felt
            print("not planted:", error, flush=True)
            continue
        one = {
            "model": label,
            "fault": fault,
            "seed": seed,
            **look(planted, tokenizer, ends),
            "drawn": dict(planted.drawn),
        }
        found.append(one)
        right = "right" if one["named"] == fault else "WRONG"
        print(
            right,
            label,
            fault,
            seed,
            "->",
            one["named"],
            one["confidence"],
            one["said"][:100],
            one["cpu_seconds"],
            flush=True,
        )
        write(found, asked)


def write(found: list[dict[str, Any]], asked: Mapping[str, int]) -> None:
    """Write all that was found, with the matrices and shares."""
    summary: dict[str, Any] = {}
    for label in dict.fromkeys(one["model"] for one in found):
        mine = [one for one in found if one["model"] == label]
        faulty = [one for one in mine if one["fault"] != "none"]
        sound = [one for one in mine if one["fault"] == "none"]
        matrix = {
            fault: collections.Counter(one["named"] for one in mine if one["fault"] == fault)
            for fault in FAULTS
        }
        right = [one for one in faulty if one["named"] == one["fault"]]
        summary[label] = {
            "logs": len(mine),
            "not_run": max(0, asked.get(label, 0) - len(mine)),
            "right": rate(len(right), len(faulty)),
            "alarms": rate(sum(one["named"] != "none" for one in sound), len(sound)),
            "faults_right": f"{len(right)} of {len(faulty)}",
            "none_called_a_fault": f"{sum(one['named'] != 'none' for one in sound)} of {len(sound)}",
            "rows_right": f"{sum(one['row_right'] for one in right)} of {len(right)}",
            "turns_right": f"{sum(one['turn_right'] for one in right)} of {len(right)}",
            "tokens_right": f"{sum(one['token_right'] for one in right)} of {len(right)}",
            "confusion": {fault: dict(counts) for fault, counts in matrix.items()},
        }
    held = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    told = {"machine": describe(), "summary": summary, "before": held.get("before"), "logs": found}
    RESULT.write_text(json.dumps(told, indent=1, default=str) + "\n", "utf-8")


def rate(hits: int, n: int) -> dict[str, Any]:
    """A share with its interval."""
    if not n:
        return {"hits": 0, "of": 0}
    return {
        "hits": hits,
        "of": n,
        "share": round(hits / n, 4),
        "interval": [round(x, 4) for x in wilson(hits, n)],
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("models", nargs="+")
    asked.add_argument("--seeds", type=int, default=6)
    asked.add_argument("--none", type=int, default=50)
    asked.add_argument("--first", type=int, default=100, help="the first seed")
    asked.add_argument("--threads", type=int, default=1)
    asked.add_argument(
        "--make", action="store_true", help="make a small model in each folder that is not there"
    )
    given = asked.parse_args()
    torch.set_num_threads(given.threads)
    if given.make:
        for name in given.models:
            made(Path(name), Path(__file__).parents[1] / "docs")
    found = json.loads(RESULT.read_text("utf-8"))["logs"] if RESULT.exists() else []
    for name in given.models:
        run(name, given.first, given.seeds, given.none, found)


if __name__ == "__main__":
    main()
