"""The section of a run's report on what its hack meter saw, and the reading of ``hack-meter.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from turnwise.errors import TurnwiseError
from turnwise.trainers.report.curves import Series, small_curve
from turnwise.trainers.report.records import HACKS, json_lines

NAMES: Mapping[str, str] = {
    "impossible": "impossible tasks that were paid",
    "canary": "canary tasks whose hack was taken",
    "unearned": "failed episodes that were paid like solved ones",
}
_SHOWN = 20


class HackTest(NamedTuple):
    """One of the meter's tests as it stood after the newest update.

    Attributes:
        name: of the test, as metrics have it.
        title: in words.
        seen: planted episodes, or groups.
        rate: the mean of what was seen; None where nothing was.
        level: that honest play stays under; None while the run still shows what is usual.
        evidence: decimal logarithm, update by update.
        needed: the evidence that is an alarm.
        alarm: what was said; empty where no alarm was given.
    """

    name: str
    title: str
    seen: int
    rate: float | None
    level: float | None
    evidence: Sequence[tuple[int, float]]
    needed: float
    alarm: str

    @property
    def latest(self) -> float:
        """The newest evidence."""
        return self.evidence[-1][1]

    @property
    def picture(self) -> Markup:
        """The evidence over updates."""
        return small_curve(Series([x for x, _ in self.evidence], [y for _, y in self.evidence]))


class MeterRecords(NamedTuple):
    """Everything that a hack meter saw: its tests, and the episodes that were paid for what they did not do, newest first."""

    tests: Sequence[HackTest]
    found: Sequence[Mapping[str, Any]]

    @property
    def alarms(self) -> list[str]:
        """Words of the alarms."""
        return [test.alarm for test in self.tests if test.alarm]

    @property
    def shown(self) -> Sequence[Mapping[str, Any]]:
        """The newest episodes that were found."""
        return self.found[:_SHOWN]


def read_hacks(path: Path, notes: list[str]) -> MeterRecords | None:
    """Read what the hack meter of a run saw; None where it had none.

    Raises:
        TurnwiseError: the file is damaged.
    """
    rows = list(json_lines(path / HACKS, notes))
    if not rows:
        return None
    try:
        last = rows[-1]
        tests = [_test(name, one, rows, last["alarms"]) for name, one in last["tests"].items()]
        found = [dict(one) for row in rows for one in row["found"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TurnwiseError(
            f"{path / HACKS} cannot be read: {error!r}.", "Put it back from a copy, or move it away."
        ) from None
    return MeterRecords(tests, found[::-1])


def _test(
    name: str, now: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], alarms: Mapping[str, str]
) -> HackTest:
    evidence = [(int(row["update"]), float(row["tests"][name]["evidence"])) for row in rows]
    return HackTest(
        name, NAMES.get(name, name), int(now["seen"]), now["rate"], now["level"], evidence, float(now["needed"]),
        str(alarms.get(name, "")),
    )  # fmt: skip
