"""State of a run at this moment: ``events.jsonl`` in its folder, read back.

A line is one JSON object with ``time`` (seconds since 1970) and ``kind``:

=============  ====================================================================================================
``start``      a process begins or resumes: ``update`` (made so far), ``updates``, ``staleness``, ``episodes`` per update
``admitted``   ``update`` may be played from now on
``played``     all episodes of ``update`` are there
``learning``   the learner begins ``update``, for which it ``waited`` (s); mean ``lag`` and ``lag_most`` of its tokens
``published``  the engine samples with weights ``version`` from now on; ``stall`` (s): what loading and the canary took
``update``     ``update`` is done, in ``seconds``; ``success`` of its episodes
``evaluated``  ``dev_success`` after ``update``
``state``      about once a second: ``doing`` (what the learner does), ``playing`` ({update: [episodes done, of]}),
               ``in_flight`` (answers being sampled), ``tokens`` (sampled so far) and ``tokens_per_second``,
               ``failures`` ({cause: episodes so far}); with engines elsewhere ``engines``: {name: {``serving``,
               ``version`` of its weights, ``in_flight`` (answers that it has in hand or in its queue), ``answers``,
               ``tokens_per_second``, ``stall`` (s) of its last weights, ``failures`` ({cause: times}), ``cause`` (why it
               does not serve)}}
``end``        the process leaves; ``why``
=============  ====================================================================================================

Updates are counted from 1, as in ``metrics.jsonl``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.errors import TurnwiseError
from turnwise.trainers.report.records import json_lines

EVENTS = "events.jsonl"
RECENT = 8


class EngineNow(NamedTuple):
    """An engine elsewhere, as the newest state of a run tells it; ``lag``: by how many versions its weights are older than
    those that were published last. ``stall`` is in seconds."""

    name: str
    serving: bool
    version: int
    lag: int
    in_flight: int
    tokens_per_second: float
    stall: float
    failures: tuple[tuple[str, int], ...]
    cause: str


@dataclass
class LiveRun:
    """A run as its events show it.

    Attributes:
        start: the newest ``start``.
        state: the newest ``state``.
        learning: the newest ``learning``.
        published: the newest ``published``.
        updates: the newest few ``update`` events.
        evaluated: the newest ``evaluated``.
        ended: why the process left; empty while it is there.
        time: of the newest event, in seconds since 1970.
    """

    start: Mapping[str, Any] = field(default_factory=dict[str, Any])
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    learning: Mapping[str, Any] = field(default_factory=dict[str, Any])
    published: Mapping[str, Any] = field(default_factory=dict[str, Any])
    evaluated: Mapping[str, Any] = field(default_factory=dict[str, Any])
    updates: deque[Mapping[str, Any]] = field(default_factory=lambda: deque[Mapping[str, Any]](maxlen=RECENT))
    ended: str = ""
    time: float = 0.0

    @property
    def engines(self) -> list[EngineNow]:
        """The engines elsewhere; none where the engine is in the run's process.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: the events are not what a run writes.
        """
        newest = int(self.published.get("version", 0))
        return [
            EngineNow(
                str(name),
                bool(row["serving"]),
                int(row["version"]),
                max(0, newest - int(row["version"])),
                int(row["in_flight"]),
                float(row["tokens_per_second"]),
                float(row["stall"]),
                tuple((str(cause), int(count)) for cause, count in row["failures"].items()),
                str(row["cause"]),
            )
            for name, row in dict(self.state.get("engines", {})).items()
        ]

    def see(self, event: Mapping[str, Any]) -> None:
        """Take up one event."""
        kind = event.get("kind")
        self.time = float(event.get("time", self.time))
        if kind == "start":
            self.start, self.ended, self.state = event, "", {}
        elif kind == "update":
            self.updates.append(event)
        elif kind == "end":
            self.ended = str(event.get("why", "done"))
        elif kind in ("state", "learning", "published", "evaluated"):
            setattr(self, str(kind), event)


def seconds_at_work(run: Path) -> dict[int, float]:
    """After how many seconds at work on updates each validation on dev was done, by its update.

    Starts of processes, warm starts and the time between two processes are left out; updates that were repeated count each
    time. Empty where the run has no events.

    Raises:
        TurnwiseError: the events are damaged.
    """
    found: dict[int, float] = {}
    before, began, now = 0.0, None, 0.0
    for event in json_lines(run / EVENTS, []):
        if event.get("kind") == "start":
            before, began = before + (now - began if began is not None else 0.0), float(event["time"])
        now = float(event.get("time", now))
        if event.get("kind") == "evaluated" and began is not None:
            found[int(event["update"])] = before + now - began
    return found


def live_run(run: Path) -> LiveRun:
    """The present state of the run in a folder.

    Raises:
        TurnwiseError: it has no events.
    """
    path = run / EVENTS
    if not path.is_file():
        raise TurnwiseError(f"{run} has no {EVENTS}.", "Give the folder of a run that has begun.")
    found = LiveRun()
    for event in json_lines(path, []):
        found.see(event)
    return found
