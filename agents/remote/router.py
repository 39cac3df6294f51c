"""Choice of the engine that answers: the one that has computed the most of a prompt before, unless it has too much to do.

An engine that fails is taken out, with the cause, and is looked at again after a while: longer after each failure.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnwise.agents.remote.client import RemoteServer

BLOCK = 32
"""Tokens of a prompt that are known to an engine or not, together."""
REMEMBERED = 1 << 16
"""Blocks whose engine is remembered; the longest unused are forgotten."""
SLACK = 4
"""Requests that an engine may have beyond the least loaded and still be preferred for what it has cached; half of the
least loaded's are added."""
FIRST_ABSENCE_S, LONGEST_ABSENCE_S = 0.5, 120.0
START_S = 2.0
"""Seconds between looks at an engine that does not serve yet: has it been started, or given weights?"""

OTHERS = "other weights"
"""The cause where an engine has weights of another run, and gets ours when there are any."""
NOT_READY = "not ready"
"""The cause where an engine answers, and could not be given weights or score a prompt."""
WRONG_TOKEN = "wrong token"
"""The cause where an engine answers, and wants another token."""
TAKEN = "taken"
"""The cause where another run has the engine's lease."""


class Absence(NamedTuple):
    """Why an engine does not serve, since when, and when it is looked at again."""

    server: RemoteServer
    cause: str
    detail: str
    again: float  # by the monotonic clock


class EngineHealth(NamedTuple):
    """Health of an engine, for records and displays.

    Attributes:
        name: ``host:port``.
        serving: whether it is given prompts.
        version: of its weights.
        in_flight: answers that it has in hand, those that wait in its queue among them.
        answers: that it gave.
        tokens: of these answers.
        failures: how often it was taken out, by cause.
        cause: why it does not serve.
        stall_s: how long it sampled nothing for the newest weights, in seconds.
        tokens_heard: that came from it, those of answers that were lost as well.
    """

    name: str
    serving: bool
    version: int
    in_flight: int
    answers: int
    tokens: int
    failures: dict[str, int]
    cause: str = ""
    stall_s: float = 0.0
    tokens_heard: int = 0


class Prefixes:
    """Memory of the engines that have computed the beginning of a prompt.

    Prompts are cut into blocks, and each block is known by itself and all before it. So the turns of an episode and the
    episodes of a group, which begin alike, find the engine that has their beginning in its cache.
    """

    def __init__(self) -> None:
        self._owners: OrderedDict[int, str] = OrderedDict()

    def owner(self, prompt: Sequence[int]) -> str:
        """The engine that was given the longest beginning of this prompt last; empty if none is known."""
        found = ""
        for block in _blocks(prompt):
            owner = self._owners.get(block)
            if owner is None:
                break
            found = owner
        return found

    def note(self, prompt: Sequence[int], name: str) -> None:
        """The engine of this name is given this prompt now."""
        for block in _blocks(prompt):
            self._owners[block] = name
            self._owners.move_to_end(block)
        while len(self._owners) > REMEMBERED:
            self._owners.popitem(last=False)

    def forget(self, name: str) -> None:
        """An engine has lost what it computed."""
        for block in [block for block, owner in self._owners.items() if owner == name]:
            del self._owners[block]


def _blocks(prompt: Sequence[int]) -> Iterator[int]:
    known = 0
    for start in range(0, len(prompt) - BLOCK + 1, BLOCK):
        known = hash((known, *prompt[start : start + BLOCK]))
        yield known


class Router:
    """The engines that serve, those that are out, and the choice among the former. Used by one thread."""

    def __init__(self, servers: Sequence[RemoteServer]) -> None:
        self.serving: dict[str, RemoteServer] = {}
        self.absent: dict[str, Absence] = {server.name: _newcomer(server) for server in servers}
        self.leaving: dict[str, RemoteServer] = {}  # those that finish what they have in hand
        self.failures: dict[str, Counter[str]] = {server.name: Counter() for server in servers}
        self._answers: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._prefixes = Prefixes()

    def choose(self, prompt: Sequence[int]) -> RemoteServer | None:
        """The engine for this prompt; None where none serves."""
        if not self.serving:
            return None
        chosen = min(self.serving.values(), key=lambda server: (server.updating, server.in_flight))
        owner = self.serving.get(self._prefixes.owner(prompt))
        if owner is not None and not owner.updating and owner.in_flight <= chosen.in_flight * 1.5 + SLACK:
            chosen = owner
        self._prefixes.note(prompt, chosen.name)
        return chosen

    def answered(self, server: RemoteServer, tokens: int) -> None:
        """It has given an answer."""
        self._answers[server.name] += 1
        self._tokens[server.name] += tokens
        self._in_a_row.pop(server.name, None)

    def take_out(self, server: RemoteServer, cause: str, detail: str) -> bool:
        """It serves no more, until it is admitted again; returns whether it had served."""
        if server.name not in self.failures:  # it has left
            return False
        serving = self.serving.pop(server.name, None) is not None
        if serving or server.name in self.absent:
            self.failures[server.name][cause] += 1
            self._in_a_row[server.name] += 1
        wait = min(FIRST_ABSENCE_S * 2 ** (self._in_a_row[server.name] - 1), LONGEST_ABSENCE_S)
        self._out(server, cause, detail, wait)
        return serving

    def stays_out(self, server: RemoteServer, cause: str, detail: str) -> None:
        """One that is out does not serve yet; it is no further failure."""
        if server.name in self.absent:
            self._out(server, cause, detail, START_S)

    def failed(self, cause: str) -> list[RemoteServer]:
        """Those that are out for this cause."""
        return [absence.server for absence in self.absent.values() if absence.cause == cause]

    def of_others(self) -> list[RemoteServer]:
        """Those that are out for no other reason than that they have another run's weights."""
        return self.failed(OTHERS)

    def _out(self, server: RemoteServer, cause: str, detail: str, wait: float) -> None:
        self.absent[server.name] = Absence(server, cause, detail, time.monotonic() + wait)
        self._prefixes.forget(server.name)

    def admit(self, server: RemoteServer) -> None:
        """It serves from now on, unless it has left meanwhile."""
        if self.absent.pop(server.name, None) is not None:
            self.serving[server.name] = server

    def due(self) -> list[RemoteServer]:
        """Those that are out and to be looked at now."""
        now = time.monotonic()
        return [absence.server for absence in self.absent.values() if absence.again <= now]

    def join(self, server: RemoteServer) -> None:
        """One more engine, which is looked at before it serves."""
        if server.name not in self.failures:
            server = self.leaving.pop(server.name, server)  # back before it had finished
            self.failures[server.name] = Counter()
            self.absent[server.name] = _newcomer(server)

    def leave(self, name: str) -> None:
        """An engine is given nothing more; what it has in hand it finishes."""
        if self.failures.pop(name, None) is None:
            return
        absence = self.absent.pop(name, None)
        self.leaving[name] = absence.server if absence else self.serving.pop(name)
        self._prefixes.forget(name)

    def servers(self) -> list[RemoteServer]:
        """All engines, those that are out too, and those that leave."""
        absent = (absence.server for absence in self.absent.values())
        return [*self.serving.values(), *absent, *self.leaving.values()]

    def health(self) -> list[EngineHealth]:
        """Return the health of each engine."""
        rows: list[EngineHealth] = []
        for name, failures in self.failures.items():
            absence = self.absent.get(name)
            server = absence.server if absence else self.serving[name]
            counts = self._answers[name], self._tokens[name], dict(failures)
            cause = f"{absence.cause}: {absence.detail}" if absence else ""
            now = server.version, server.in_flight
            last = cause, server.stall_s, server.tokens_heard
            rows.append(EngineHealth(name, absence is None, *now, *counts, *last))
        return rows


def _newcomer(server: RemoteServer) -> Absence:
    return Absence(server, "new", "it has not been looked at yet", 0.0)
