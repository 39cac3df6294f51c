"""Reward that was not earned, as the hack meter of a run saw it."""

from __future__ import annotations

from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import AuditCurve, AuditFigure, AuditFinding, AuditTable, audit
from turnwise.trainers.audit.running import AuditedRuns
from turnwise.trainers.report.hacks import read_hacks

_FOUND = ("test", "update", "suite", "task", "seed", "paid")


@audit()
def hacks(played: AuditedRuns) -> AuditFinding:
    """The evidence of the run's hack meter that planted tasks or failed episodes were paid more often than honest play is.

    Evidence is a decimal logarithm of an e-value, which may be looked at at any time; an honest run reaches what is needed with the
    probability alpha of its recipe at most. Nothing is tested anew here.
    """
    run = played.one("what a hack meter saw")
    seen = read_hacks(run.path, [])
    if seen is None:
        raise TurnwiseError(
            f"{run.path} was trained without a hack meter.",
            "Train with hack_meter: {} (docs/how-to/hack-meter.md).",
        )
    figures = [AuditFigure(f"{one.name}: evidence", one.latest, about=one.title) for one in seen.tests]
    figures += [AuditFigure(f"{one.name}: rate", one.rate, None, "share", one.title) for one in seen.tests]
    tests = [(one.name, one.seen, one.rate, one.level, one.latest, one.needed) for one in seen.tests]
    found = [(x["test"], x["update"], x["suite"], x["task"], str(x["seed"]), x["paid"]) for x in seen.shown]
    return AuditFinding(
        figures,
        [
            AuditTable("tests", ("test", "seen", "rate", "honest at most", "evidence", "alarm at"), tests),
            *([AuditTable("newest episodes found", _FOUND, found)] if found else ()),
        ],
        [
            AuditCurve(one.name, [float(x) for x, _ in one.evidence], [y for _, y in one.evidence])
            for one in seen.tests
        ],
        ("update", "evidence (log10)"),
        said=seen.alarms or ["no alarm was given"],
        data={"found": [dict(one) for one in seen.found]},
    )
