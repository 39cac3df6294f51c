"""Weights from the run to its engines: whose the engines are, what was published last, and who has it."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from turnwise.agents.core import Kv
from turnwise.agents.remote.client import FACTS_S, RemoteServer, Unreachable
from turnwise.agents.remote.lease import LeaseHolder, Taken
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.remote.protocol import EngineFacts
from turnwise.agents.remote.publishers import PUBLISHERS, Offered, WeightPublisher
from turnwise.agents.remote.serving import Serving
from turnwise.errors import EngineError, TurnwiseError

_logger = logging.getLogger(__name__)


class PublishedWeights(NamedTuple):
    """Weights that engines are to have."""

    version: int
    offer: Offered

    def are(self, facts: EngineFacts) -> bool:
        """Say whether an engine reports that it has them, whole."""
        weights = facts.weights
        return (weights.version, weights.checksum, weights.settled) == (
            str(self.version),
            self.offer.whole,
            True,
        )


class Publishing:
    """Brings weights to engines, from any thread; one thread at a time changes an engine's weights.

    Attributes:
        version: of what was published last; 0: the engines have those that they were started with.
        published: what that is; None: nothing was published.
        begun: whether this run gives its engines weights at all.
    """

    def __init__(self, serving: Serving, options: RemoteOptions) -> None:
        self.version = 0
        self.published: PublishedWeights | None = None
        self._serving, self._options = serving, options
        self._lease = LeaseHolder()
        self._publisher: WeightPublisher[Any] | None = None
        self._one_at_a_time = threading.Lock()

    @property
    def begun(self) -> bool:
        return self._publisher is not None

    @property
    def bytes_published(self) -> int:
        """Bytes that have been packed for engines so far; each fetches them."""
        return self._publisher.written if self._publisher else 0

    def belongs_to(self, run: str) -> None:
        """Name the run that will publish weights: one that is resumed has its engines still."""
        self._lease = LeaseHolder(f"{socket.gethostname()}:{run}", run)

    def publish(self, offer: Callable[[WeightPublisher[Any]], Offered], version: int, kv: Kv | None) -> None:
        """Bring what the publisher is made to offer to every engine that serves.

        Raises:
            EngineError: there is no room to pack it, all engines refused it, or another run uses one of them.
        """
        with self._one_at_a_time:
            if self._publisher is None:
                self.take_leases()
                self._publisher = PUBLISHERS[self._options.publish](self._options.publish_host)
            offered = offer(self._publisher)
            self.published, before = PublishedWeights(version, offered), self.published
            serving = self._all()
            pushed = self._serving.pool.map(lambda server: self._push(server, kv), serving)
            failed = [error for error in pushed if error]
            refused = [error for error in failed if not isinstance(error, Unreachable)]
            if refused and len(failed) == len(serving):
                self.published = before
                self._publisher.withdraw()
                raise EngineError(
                    f"No engine took weights {version}: {refused[0].cause}", refused[0].remedy
                ) from refused[0]
            self._publisher.settle()
            self.version = version

    def take_leases(self) -> None:
        """Have the engines for this run alone, but for those that do not answer: they are out.

        Raises:
            Taken: another run has one of them.
        """
        for server in self._all():
            try:
                self._lease.take(server)
            except Taken:
                raise
            except EngineError as error:
                self._serving.miss(server, error)

    def make_ready(self, server: RemoteServer, facts: EngineFacts) -> None:
        """See that an engine, which is as ``facts`` say, samples, with the weights that were published last.

        Raises:
            EngineError: it does not.
        """
        published = self.published
        if published is None:
            server.version = self.version
        else:
            self._lease.take(server)
            if published.are(facts):
                server.version = published.version
            else:
                has = facts.weights.version
                _logger.info("the engine %s has weights %s: it gets %s", server.name, has, published.version)
                self._bring(server, published, "recompute")
        server.call("POST", "/resume", seconds=FACTS_S)  # an update that failed has left it held
        server.score([1, 1], seconds=max(FACTS_S, self._options.silence_s / 2))

    def keep(self, server: RemoteServer) -> bool:
        """Keep an engine's lease; whether it is still this run's."""
        return self._lease.beat(server)

    def let_go(self, server: RemoteServer) -> None:
        """Give an engine's lease back, after the update that is under way."""
        with self._one_at_a_time:
            self._give_back(server)

    def close(self) -> None:
        """Let all engines go; their servers run on."""
        for server in self._serving.router.servers():
            self._give_back(server)
        if self._publisher is not None:
            self._publisher.close()

    def _all(self) -> list[RemoteServer]:
        router = self._serving.router
        return [*router.serving.values(), *router.of_others()]

    def _give_back(self, server: RemoteServer) -> None:
        if server.run:
            with contextlib.suppress(TurnwiseError):  # one that is gone needs none
                self._lease.give_back(server)

    def _push(self, server: RemoteServer, kv: Kv | None) -> EngineError | None:
        assert self.published is not None
        try:
            if not server.run:  # it has come since the leases were taken
                self._lease.take(server)
            self._bring(server, self.published, kv or "recompute")
        except Unreachable as error:
            self._serving.miss(server, error)
            return error
        except EngineError as error:
            failed = error
            self._serving.call(lambda: self._serving.take_out(server, "not updated", failed.cause))
            return failed
        self._serving.call(lambda: self._admit_with_ours(server))
        return None

    def _admit_with_ours(self, server: RemoteServer) -> None:
        if server in self._serving.router.of_others():
            self._serving.router.admit(server)

    def _bring(self, server: RemoteServer, published: PublishedWeights, kv: Kv) -> None:
        assert self._publisher is not None
        delivery = self._publisher.delivery(published.offer, server)
        server.publish(delivery, published.version, kv, seconds=self._options.publish_s)
