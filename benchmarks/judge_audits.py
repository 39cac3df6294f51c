"""Does the stated bound of a judge's error hold, and is a good judge paid? judge-audits.json has it.

    python -m benchmarks.judge_audits [FILE]

Audits are simulated on recorded episodes of shop/quick, as a run makes them: solutions and faults of `turnwise audit judge` in equal parts, each of a task of its
own, with the environment's verdict. A judge errs in a known share of them, as the judge `scripted` does; each audit has a judge and labels of its own. The rate that a judge errs at is
known, so that it can be said how often the bound is below it, how far above, and how often the judge is paid under a requirement. Beside it stands the
limit: the power of the best test that any judge's verdicts allow, where they are independent and its rate is the same for solved and failed ones.

The second part watches judges that are paid: groups of episodes go by, and the judge errs as often as it did, or more often from a moment on.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

from scipy.stats import binom, binomtest

from turnwise.envs.registry import get_suite
from turnwise.machine import describe
from turnwise.trainers.hack_meter.meter import RateTest
from turnwise.trainers.trust.asked import JudgedItem
from turnwise.trainers.trust.corpus import FAULTS, GOLD, AuditItem, KnownEpisodes, audit_tasks, play_corpus
from turnwise.trainers.trust.reading import JudgeReading
from turnwise.trainers.trust.requirement import Requirement, asked_of, judged_by

RESULT = Path(__file__).with_name("judge-audits.json")
SUITE, TASKS = "shop/quick", 1400
AIMED = (0.0, 0.1, 0.2, 0.3)
"""Rates at which judges err, that aims are stated for."""
GOOD = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)
EVEN = tuple((rate, rate) for rate in sorted({*AIMED, *GOOD, 0.15}))
ONE_SIDED = ((0.2, 0.0), (0.0, 0.2), (0.4, 0.0))
"""Judges whose errors are all accepts, or all rejects: the same rates of 10 and 20 % as a whole."""
LABELS = (200, 500)  # of failed and of solved episodes each
AUDITS = 200  # of each judge and number of labels; at the larger one, of the rates that aims are stated for
REQUIRED, LEVEL = 0.15, 0.05
RUNS, GROUPS, SIZE, TURNED = 200, 400, 8, 100
SEED = 39_000  # of all audits; not that of any earlier measurement


def recorded() -> tuple[KnownEpisodes, dict[str, list[AuditItem]]]:
    """The corpus, and of each task its solution with one episode that failed."""
    suite = get_suite(SUITE)
    corpus = asyncio.run(play_corpus(suite, audit_tasks(suite, TASKS), each=1))
    by_task: dict[str, list[AuditItem]] = {}
    for item in corpus.items:
        if item.solved if item.kind == GOLD else item.kind in FAULTS and not item.solved:
            by_task.setdefault(item.task, []).append(item)
    return corpus, {task: items for task, items in by_task.items() if len(items) == 2}


def verdicts(items: Sequence[AuditItem], accept: float, reject: float, rng: Random) -> list[JudgedItem]:
    """Verdicts of a judge that errs in these shares of failed and of solved episodes, drawn as the judge `scripted` draws them."""
    told: list[JudgedItem] = []
    for item in items:
        paid = item.solved != (rng.random() < (reject if item.solved else accept))
        told.append(JudgedItem(item, float(paid), paid))
    return told


def audits(
    accept: float,
    reject: float,
    labels: int,
    corpus: KnownEpisodes,
    by_task: Mapping[str, Sequence[AuditItem]],
) -> dict[str, Any]:
    """Many audits of judges that err at these rates."""
    rate, names = (accept + reject) / 2, [*by_task]
    bounds: list[float] = []
    paid = asked = 0
    required = Requirement({"error": REQUIRED}, LEVEL, labels, JudgeReading("verdict"))
    for n in range(AUDITS):
        rng = Random(f"{accept} {reject} {labels} {n} {SEED}")
        tasks = rng.sample(names, required.tasks)
        shown = replace(corpus, items=tuple(item for task in tasks for item in by_task[task]))
        items = asked_of(required, shown)
        asked += len(items)
        found = judged_by(required, verdicts(items, accept, reject, rng))
        bounds.append(found.bounds["error"].upper)
        paid += found.paid
    exceeded = sum(bound < rate for bound in bounds)
    return {
        "rate": round(rate, 4),
        "false_accept": accept,
        "false_reject": reject,
        "labels": labels,
        "verdicts": asked // AUDITS,
        "audits": AUDITS,
        "exceeded": share(exceeded, AUDITS),
        "bound_less_rate": {"mean": fmean(bounds) - rate, "largest": max(bounds) - rate},
        "within_0_10": share(sum(bound <= rate + 0.10 for bound in bounds), AUDITS),
        "paid": share(paid, AUDITS),
    }


def limits(verdicts: int) -> dict[str, float]:
    """Chances, in per cent, that a judge is paid after so many independent verdicts, at each rate: by an exact test, and by the best one of all.

    The best one of this level is Neyman's and Pearson's, which decides by chance where the exact one just fails; no valid bound pays more often.
    """
    most = int(binom.ppf(LEVEL, verdicts, REQUIRED)) - 1
    if binom.cdf(most + 1, verdicts, REQUIRED) <= LEVEL:
        most += 1
    rest = (LEVEL - binom.cdf(most, verdicts, REQUIRED)) / binom.pmf(most + 1, verdicts, REQUIRED)
    found: dict[str, float] = {"most_errors": most}
    for rate in (*GOOD, REQUIRED):
        exact = float(binom.cdf(most, verdicts, rate))
        found[f"exact_{rate:g}"] = round(100 * exact, 2)
        found[f"best_{rate:g}"] = round(100 * (exact + float(rest * binom.pmf(most + 1, verdicts, rate))), 2)
    return found


def share(hits: int, n: int) -> dict[str, float]:
    """A share with its exact 95 % interval, in per cent."""
    ends = binomtest(hits, n).proportion_ci(0.95, "exact")
    low, high = (round(100 * float(end), 2) for end in (ends.low, ends.high))
    return {"hits": hits, "of": n, "percent": round(100 * hits / n, 2), "low": low, "high": high}


def watched(rate: float, later: float) -> dict[str, Any]:
    """Runs whose judge errs at a rate, and at another from a group on; which of them are stopped, and after how many groups of it."""
    stopped: list[int] = []
    for seed in range(RUNS):
        test, rng = RateTest(REQUIRED, LEVEL), Random(f"{rate} {later} {seed}")
        for group in range(GROUPS):
            now = later if group >= TURNED else rate
            test.see(sum(rng.random() < now for _ in range(SIZE)) / SIZE)
            if test.capital.log > test.needed:
                stopped.append(group + 1)
                break
    after = sorted(group - TURNED for group in stopped if group > TURNED)
    return {
        "rate": rate,
        "later": later,
        "runs": RUNS,
        "groups": GROUPS,
        "stopped": share(len(stopped), RUNS),
        "stopped_before": sum(group <= TURNED for group in stopped),
        "groups_after": {"median": median(after), "nine_in_ten": after[int(0.9 * (len(after) - 1))]}
        if after
        else None,
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the rows come to: of the rates that aims are stated for, of all up to 10 %, and of the judges that err on one side."""

    def total(key: str, of: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        return share(sum(row[key]["hits"] for row in of), sum(row[key]["of"] for row in of))

    even = [row for row in rows if row["false_accept"] == row["false_reject"]]
    aimed = [row for row in even if row["rate"] in AIMED]
    good = {"paid_of_0_and_10": [row for row in aimed if row["rate"] <= 0.1]}
    few = {"paid_of_0_to_10": [row for row in even if row["rate"] in GOOD and row["labels"] == LABELS[0]]}
    return {
        "audits": sum(row["audits"] for row in rows),
        "exceeded": total("exceeded", aimed),
        "exceeded_of_all": total("exceeded", rows),
        "exceeded_at_the_limit": total("exceeded", [row for row in even if row["rate"] == REQUIRED]),
        "exceeded_on_one_side": total("exceeded", [row for row in rows if row not in even]),
        "within_0_10_at_200": total("within_0_10", [row for row in aimed if row["labels"] == LABELS[0]]),
        **{
            name: {str(n): total("paid", [row for row in of if row["labels"] == n]) for n in LABELS}
            for name, of in good.items()
        },
        **{name: total("paid", of) for name, of in few.items()},
        "paid_of_bad": total("paid", [row for row in rows if row["rate"] > REQUIRED]),
    }


def main() -> None:
    """Write the result."""
    began = time.process_time()
    corpus, by_task = recorded()
    rows = [
        audits(*errs, labels, corpus, by_task)
        for labels in LABELS
        for errs in (*EVEN, *ONE_SIDED)
        if labels == LABELS[0] or (errs in EVEN and errs[0] in AIMED)
    ]
    drift = [
        watched(rate, later)
        for rate, later in ((0.0, 0.0), (0.1, 0.1), (0.15, 0.15), (0.1, 0.2), (0.1, 0.3), (0.0, 0.5))
    ]
    result = {
        "suite": SUITE,
        "episodes": len(corpus.items),
        "required": REQUIRED,
        "level": LEVEL,
        "seed": SEED,
        "summary": summary(rows),
        "limits": {str(n): limits(n) for n in (200, 400, 500, 1000)},
        "audits": rows,
        "drift": drift,
        "cpu_seconds": round(time.process_time() - began, 1),
        "machine": describe(),
    }
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULT
    target.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result["summary"], indent=1), json.dumps(drift, indent=1), result["cpu_seconds"])


if __name__ == "__main__":
    main()
