"""Check that engines that are given no weights here still sample with those that they were started with.

An evaluation takes engines as they are. Another run may train with one of them meanwhile: what it has sampled since it was last seen with its
own weights is then of nobody knows which model.
"""

from __future__ import annotations

from collections.abc import Iterable

from turnwise.agents.remote.client import RemoteServer
from turnwise.agents.remote.protocol import EngineFacts, version_of
from turnwise.errors import EngineError


class OwnWeights:
    """Record of the engines that are known to have sampled with their own weights only.

    Attributes:
        disturbed: which engine was given others while it sampled; empty where none was.
    """

    def __init__(self) -> None:
        self.disturbed = ""
        self._sure: dict[str, int] = {}  # so many tokens of each engine are of the weights that it began with

    def is_sure(self, server: RemoteServer) -> bool:
        """Say whether all that was heard of an engine is of its own weights."""
        return server.tokens_heard <= self._sure.get(server.name, 0)

    def seen(self, server: RemoteServer, tokens: int) -> None:
        """It had them when so many tokens had been heard of it."""
        self._sure[server.name] = tokens

    def lost(self, server: RemoteServer, facts: EngineFacts) -> None:
        """It has others now."""
        if not self.is_sure(server):
            self.disturbed = of_another(server, facts)

    def unsure(self, servers: Iterable[RemoteServer]) -> list[RemoteServer]:
        """Those of which more was heard since they were last seen with them."""
        return [server for server in servers if not self.is_sure(server)]

    def error(self) -> EngineError:
        """Return the error to raise for whoever samples."""
        return EngineError(
            f"What was sampled may not all be of one model: {self.disturbed}, which gave it them meanwhile.",
            "Sample anew, an evaluation into another --out, with engines that no run trains with.",
        )


def of_another(server: RemoteServer, facts: EngineFacts) -> str:
    """Describe an engine that has the weights of another run."""
    weights = facts.weights
    digest = f" ({weights.checksum[:8]})" if weights.checksum else ""
    return f"the engine at {server.name} has weights {weights.version} of another run{digest}"


def untouched(facts: EngineFacts) -> bool:
    """Return whether an engine has the weights that it was started with."""
    return facts.weights.settled and not facts.weights.checksum and version_of(facts.weights.version) == 0
