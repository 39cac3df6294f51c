"""Tells what goes on in a run, event by event (:mod:`turnwise.trainers.report.events` has the format)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.failures import causes
from turnwise.tasks.core import Json
from turnwise.trainers.report.events import EVENTS
from turnwise.trainers.report.records import json_lines
from turnwise.trainers.run.disk import disk_error, write_text

if TYPE_CHECKING:
    from turnwise.agents.remote.router import EngineHealth

STATE_S = 1.0
"""Seconds that a state stands before the next is written."""
_LASTING = ("start", "update", "evaluated", "end")


class Sampled(Protocol):
    """A policy that counts what it samples (:class:`~turnwise.agents.policies.model.ModelPolicy`)."""

    in_flight: int
    sampled: int


class Events:
    """Appends events to ``events.jsonl`` of a run's folder.

    Attributes:
        doing: what the learner does, in a word.
    """

    def __init__(self, run: Path) -> None:
        self._path = run / EVENTS
        self.doing = "starting"
        self._playing: dict[int, list[int]] = {}
        self._failures: Counter[str] = Counter()
        self._sampled, self._at = 0, time.monotonic()
        self._heard: dict[str, int] = {}

    def tell(self, kind: str, **values: Json) -> None:
        """Write one event.

        Raises:
            RunError: the disk is full or cannot be written.
        """
        line = json.dumps({"time": round(time.time(), 3), "kind": kind, **values})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise disk_error(self._path, error) from error

    def stage(self, doing: str) -> None:
        """Tell what the run does before its updates begin, when nothing ticks yet."""
        self.doing = doing
        self.tell("state", doing=doing)

    def changed(self, kind: str, update: int) -> None:
        """An update, counted from 0, was admitted or played."""
        self.tell(kind, update=update + 1)
        if kind == "played":
            self._playing.pop(update, None)

    def watch(self, update: int, episodes: int) -> Callable[[int, Episode], None]:
        """Counts the episodes of an update, which has about so many, as they finish; and why they fail."""
        done = self._playing.setdefault(update, [0, episodes])

        def on_episode(_: int, episode: Episode) -> None:
            done[0] += 1
            if not episode.outcome.counts:
                cause = causes([episode])[0]
                message = re.sub(r"\d+", "#", cause.message)[:120]
                self._failures[f"{cause.outcome}{cause.place and f' at {cause.place}'}: {message}"] += 1

        return on_episode

    def delete_before(self, before: int) -> None:
        """Delete what stood before the end of an update, counted from 1, but for starts, updates and evaluations.

        Raises:
            RunError: the file is damaged, or cannot be written; it is as it was then.
        """
        rows = list(json_lines(self._path, []))
        ends = [
            n for n, row in enumerate(rows) if row.get("kind") == "update" and row.get("update") == before
        ]
        last = ends[-1] if ends else 0
        left = [row for n, row in enumerate(rows) if n >= last or row.get("kind") in _LASTING]
        if len(left) < len(rows):
            write_text(self._path, "".join(json.dumps(row) + "\n" for row in left))

    @contextlib.asynccontextmanager
    async def ticking(
        self, policies: Sequence[Sampled], health: Callable[[], Sequence[EngineHealth]] = tuple
    ) -> AsyncIterator[None]:
        """Write the state about once a second, while the event loop turns; at the end that of the end.

        ``health`` tells how each engine is, where engines tell it.
        """

        async def tick() -> None:
            while True:
                self._tell_state(policies, health())
                await asyncio.sleep(STATE_S)

        task = asyncio.get_running_loop().create_task(tick())
        why = "stopped"
        try:
            yield
            why = "done"
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"[:200]
            raise
        finally:
            task.cancel()
            self._tell_state(policies, health())
            self.tell("end", why=why)

    def _tell_state(self, policies: Sequence[Sampled], engines: Sequence[EngineHealth]) -> None:
        now, sampled = time.monotonic(), sum(policy.sampled for policy in policies)
        passed = max(1e-6, now - self._at)
        rate = (sampled - self._sampled) / passed
        self._sampled, self._at = sampled, now
        rows = {engine.name: self._row(engine, passed) for engine in engines}
        self._heard = {engine.name: engine.tokens_heard for engine in engines}
        self.tell(
            "state",
            doing=self.doing,
            playing={str(update + 1): list(counts) for update, counts in sorted(self._playing.items())},
            in_flight=sum(policy.in_flight for policy in policies),
            tokens=sampled,
            tokens_per_second=round(rate, 1),
            failures=dict(self._failures),
            **({"engines": rows} if rows else {}),
        )

    def _row(self, engine: EngineHealth, passed: float) -> dict[str, Json]:
        """Return what is told of one engine, ``passed`` seconds after the last time."""
        new = engine.tokens_heard - self._heard.get(engine.name, 0)
        return {
            "serving": engine.serving,
            "version": engine.version,
            "in_flight": engine.in_flight,
            "answers": engine.answers,
            "tokens_per_second": round(max(0, new) / passed, 1),  # one that came anew counts from 0
            "stall": round(engine.stall_s, 4),
            "failures": dict(engine.failures),
            "cause": engine.cause,
        }
