"""Cards of shipped judges and of environments' own rewards, in short; judge-cards.json has them.

    python -m benchmarks.judge_cards env SUITE ...
    python -m benchmarks.judge_cards judge SUITE NAME:SIGNAL:FOLD ...
    python -m benchmarks.judge_cards model SUITE POLICY NAME:SIGNAL:FOLD ...

Each adds to the file, or replaces what is there of the same name. `model` lets a judge ask a model, about few episodes, with a few faults of
two tasks: enough to see that it fails, not how often.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnwise.machine import describe
from turnwise.trainers.audit.asking import AuditPlan, audit_judge
from turnwise.trainers.audit.core import AuditFinding
from turnwise.trainers.audit.registry import AuditReport, audit_all
from turnwise.trainers.trust.corpus import suite_corpus

RESULT = Path(__file__).with_name("judge-cards.json")
ENV_TASKS = 12
PLAN = AuditPlan(tasks=70, faults=8, forks=64)
FEW = AuditPlan(tasks=2, faults=2, forks=0)


def short(report: AuditReport) -> dict[str, Any]:
    """The figures of a card, with its verdict and what could not be measured."""
    return {
        "figures": {name: _figures(finding) for name, finding in report.findings.items()},
        "said": [line for finding in report.findings.values() for line in finding.said],
        "failures": report.failures,
        "not_measured": [one.name for one in report.refused],
    }


def _figures(finding: AuditFinding) -> dict[str, Any]:
    return {
        f.name: [_round(f.value), *(map(_round, f.interval) if f.interval else ())] for f in finding.figures
    }


def _round(x: float | None) -> float | None:
    return None if x is None else round(x, 4)


def env_card(suite: str) -> dict[str, Any]:
    """What an environment's own reward pays."""
    began = time.process_time()
    played = suite_corpus(suite, ENV_TASKS)
    card = short(audit_all("env", played, [suite]))
    return {"episodes": len(played.items), **card, "cpu_seconds": round(time.process_time() - began, 1)}


def judge_card(named: str, suite: str, plan: AuditPlan, policy: str = "") -> dict[str, Any]:
    """What a judge pays."""
    began = time.process_time()
    name, signal, fold = named.split(":")
    asked = audit_judge(name, suite, plan, policy=policy, signal=signal, fold=fold)
    card = short(audit_all("judge", asked, [named, suite]))
    told = {"suite": suite, **asked.reading._asdict(), "asks": policy, "episodes": len(asked.judged)}
    return {**told, **card, "cpu_seconds": round(time.process_time() - began, 1)}


def main(words: Sequence[str]) -> None:
    """Make the cards that are named."""
    found: dict[str, Any] = (
        json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {"envs": {}, "judges": {}}
    )
    found["machine"] = describe()
    what, *names = words
    if what == "env":
        for suite in names:
            found["envs"][suite] = env_card(suite)
            _write(found)
    elif what == "judge":
        for named in names[1:]:
            found["judges"][f"{named} on {names[0]}"] = judge_card(named, names[0], PLAN)
            _write(found)
    else:
        for named in names[2:]:
            found["judges"][f"{named} by {names[1]} on {names[0]}"] = judge_card(
                named, names[0], FEW, names[1]
            )
            _write(found)


def _write(found: dict[str, Any]) -> None:
    RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
