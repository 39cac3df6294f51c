"""Does the stated bound of a judge's error hold, and is a good judge paid? judge-audits.json has it.

    python -m benchmarks.judge_audits [FILE]

Audits are simulated on recorded episodes of shop/quick, each of a task of its own: its solution, or one of the faults of `turnwise audit judge`, with the
environment's verdict. The scripted judge errs in a known share of them; each audit has a judge and labels of its own. The rate that a judge errs at is known, so
that it can be said how often the bound is below it, how far above, and how often the judge is paid under a requirement.

The second part watches judges that are paid: groups of episodes go by, and the judge errs as often as it did, or more often from a moment on.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

from scipy.stats import binomtest

from turnwise.envs.registry import get_suite
from turnwise.machine import describe
from turnwise.trainers.hack_meter.meter import RateTest
from turnwise.trainers.judge.scripted import scripted
from turnwise.trainers.trust.asked import JudgedItem, ask_judge
from turnwise.trainers.trust.corpus import FAULTS, GOLD, AuditItem, KnownEpisodes, audit_tasks, play_corpus
from turnwise.trainers.trust.reading import JudgeReading
from turnwise.trainers.trust.requirement import Requirement, judged_by

RESULT = Path(__file__).with_name("judge-audits.json")
SUITE, TASKS = "shop/quick", 1000
RATES = (0.0, 0.1, 0.2, 0.3)
LABELS = (200, 500)
AUDITS = 120  # of each rate and number of labels
REQUIRED, LEVEL = 0.15, 0.05
RUNS, GROUPS, SIZE, TURNED = 200, 400, 8, 100


def recorded() -> tuple[KnownEpisodes, list[tuple[AuditItem, AuditItem]]]:
    """The corpus, and of each task its solution with one episode that failed."""
    suite = get_suite(SUITE)
    corpus = asyncio.run(play_corpus(suite, audit_tasks(suite, TASKS), each=1))
    failed = {item.task: item for item in corpus.of(*FAULTS) if not item.solved}
    return corpus, [
        (item, failed[item.task]) for item in corpus.of(GOLD) if item.solved and item.task in failed
    ]


def verdicts(corpus: KnownEpisodes, items: Sequence[AuditItem], rate: float, seed: int) -> list[JudgedItem]:
    """Verdicts of a judge that errs in this share of all episodes."""

    async def judge(groups: Any) -> Any:
        return await scripted(groups, false_accept=rate, false_reject=rate, seed=seed)

    return asyncio.run(ask_judge(judge, JudgeReading("verdict"), corpus, items))


def audits(
    rate: float, labels: int, corpus: KnownEpisodes, pairs: Sequence[tuple[AuditItem, AuditItem]]
) -> dict[str, Any]:
    """Many audits of judges that err at one rate."""
    bounds: list[float] = []
    paid = 0
    required = Requirement({"error": REQUIRED}, LEVEL, labels, JudgeReading("verdict"))
    for n in range(AUDITS):
        drawn = Random(f"{rate} {labels} {n}").sample(range(len(pairs)), labels)
        items = [pairs[i][k % 2] for k, i in enumerate(drawn)]
        found = judged_by(required, verdicts(corpus, items, rate, n))
        bounds.append(found.bounds["error"].upper)
        paid += found.paid
    exceeded = sum(bound < rate for bound in bounds)
    return {
        "rate": rate,
        "labels": labels,
        "audits": AUDITS,
        "exceeded": share(exceeded, AUDITS),
        "bound_less_rate": {"mean": fmean(bounds) - rate, "largest": max(bounds) - rate},
        "within_0_10": share(sum(bound <= rate + 0.10 for bound in bounds), AUDITS),
        "paid": share(paid, AUDITS),
    }


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
    """What the rows come to."""

    def total(key: str, of: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        return share(sum(row[key]["hits"] for row in of), sum(row[key]["of"] for row in of))

    good = [row for row in rows if row["rate"] <= 0.1]
    return {
        "audits": sum(row["audits"] for row in rows),
        "exceeded": total("exceeded", rows),
        "within_0_10_at_200": total("within_0_10", [row for row in rows if row["labels"] == LABELS[0]]),
        "paid_of_good": {str(n): total("paid", [row for row in good if row["labels"] == n]) for n in LABELS},
        "paid_of_bad": total("paid", [row for row in rows if row["rate"] > REQUIRED]),
    }


def main() -> None:
    """Write the result."""
    began = time.process_time()
    corpus, pairs = recorded()
    rows = [audits(rate, labels, corpus, pairs) for labels in LABELS for rate in RATES]
    drift = [
        watched(rate, later)
        for rate, later in ((0.0, 0.0), (0.1, 0.1), (0.15, 0.15), (0.1, 0.2), (0.1, 0.3), (0.0, 0.5))
    ]
    result = {
        "suite": SUITE,
        "episodes": len(corpus.items),
        "required": REQUIRED,
        "level": LEVEL,
        "summary": summary(rows),
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
