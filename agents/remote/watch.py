"""The watch over engines: who has fallen silent, who comes, who goes, and whose weights an engine has."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from turnwise.agents.remote.client import FACTS_S, Address, RemoteServer, WrongTokenError, parse_url
from turnwise.agents.remote.lease import BEAT_S, Taken
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.remote.own_weights import OwnWeights, of_another, untouched
from turnwise.agents.remote.protocol import EngineFacts
from turnwise.agents.remote.publishing import Publishing
from turnwise.agents.remote.roster import Roster
from turnwise.agents.remote.router import NOT_READY, OTHERS, TAKEN, WRONG_TOKEN
from turnwise.agents.remote.serving import Serving
from turnwise.errors import EngineError, TurnwiseError

LOOK_S = 0.2
_logger = logging.getLogger(__name__)


class Watch:
    """Looks at engines all the time, in their thread, so that only those are given prompts that answer them.

    Args:
        urls: of engines that stay, whatever the file of engines says.
        options: how they are found and watched.

    Attributes:
        serving: the engines.
        publishing: brings them weights.
        roster: the file of engines.
        dtype: the type of the weights of all engines; empty until they have agreed on one.
        context_length: what all of them can hold; 0 until then.
        vocabulary: how many tokens the model has: as the run's own folder says, or as the engines do; 0 until then.
    """

    def __init__(self, urls: Sequence[str], options: RemoteOptions) -> None:
        self.dtype, self.context_length, self.vocabulary = "", 0, options.vocabulary
        self._options = options
        self.roster, self._staying = Roster(options.urls_file, parse_url), {parse_url(url) for url in urls}
        self.serving = Serving([self.server(url) for url in dict.fromkeys([*urls, *self.roster.first()])])
        self.publishing = Publishing(self.serving, options)
        self._router, self._own = self.serving.router, OwnWeights()

    def server(self, url: str) -> RemoteServer:
        """Return a fresh record of the engine at this address; nothing is known of it yet."""
        address = Address(parse_url(url), self._options.token)
        return RemoteServer(address, max(FACTS_S, self._options.silence_s))

    # --- what others ask -----------------------------------------------------------------------

    def agree(self, context_length: int) -> None:
        """Take note of the type of weights and the context of all engines.

        Raises:
            EngineError: none serves, they differ, or their context is too short.
        """
        servers = [*self._router.serving.values(), *self._router.of_others()]
        facts = [server.facts for server in servers if server.facts is not None]
        if not facts:
            raise EngineError("None of the engines serves.", self.causes())
        if len({found.dtype for found in facts}) > 1:
            said = ", ".join(f"{s.name} {s.facts.dtype}" for s in servers if s.facts)
            raise EngineError(
                f"The engines compute in different types: {said}.", "Start all with one --dtype."
            )
        least = min(found.context_length for found in facts)
        if context_length > least:
            raise EngineError(
                f"The engines hold {least} tokens where {context_length} are asked for.",
                f"Start them with --context-length {context_length}, or set engine.context_length to {least}.",
            )
        self.dtype, self.context_length = facts[0].dtype, context_length or least
        self.vocabulary = self.vocabulary or min(found.vocabulary for found in facts)

    def causes(self) -> str:
        """Why no engine serves, and what to do."""
        said = [f"{name} ({absence.detail})" for name, absence in self._router.absent.items()]
        if self.publishing.published is None and self._router.of_others():
            said.append(
                "train with them, which gives them weights, or start them anew to sample with their own"
            )
        if self._router.failed(WRONG_TOKEN):
            said.append(
                "give the token that they were started with (engine.options.token_file, --token-file)"
            )
        if not said and self._options.urls_file:
            return f"Have one write its address into {self._options.urls_file} (engine.options.urls_file)."
        return "; ".join(said) + "." if said else "Give engine.options.urls the address of one."

    def hope(self, until: float) -> bool:
        """Say whether an engine may serve yet, while none does."""
        theirs = self._router.failed(OTHERS if self.publishing.published is None else TAKEN)
        return time.monotonic() <= until and not (theirs and len(theirs) == len(self._router.absent))

    def check(self) -> None:
        """Refuse to sample where nobody would see that an engine fails, or one has failed in a way that cannot be made good.

        Raises:
            EngineError: that is so.
        """
        self.check_own()
        if self.task.done():
            why = "" if self.task.cancelled() else repr(self.task.exception())
            raise EngineError(
                f"Nobody watches the engines any more: {why or 'they were let go'}.",
                "This is a defect of Turnwise, please report it; a run goes on with --resume.",
            )

    def check_own(self) -> None:
        """See that engines which sampled with weights of their own were given no others meanwhile.

        Raises:
            EngineError: they were.
        """
        if self._own.disturbed:
            raise self._own.error()

    # --- the watch -----------------------------------------------------------------------------

    async def begin(self) -> None:
        """Look at all engines, wait for one that serves, and begin to watch."""
        await self.serving.open()
        until, told = time.monotonic() + self._options.patience_s, ""
        await self._look_at_due()
        while self._may_come() and time.monotonic() < until:
            names = ", ".join(self._router.absent) or f"an address in {self._options.urls_file}"
            if names != told:
                patience = self._options.patience_s
                _logger.warning("waiting up to %g s for an engine: %s. %s", patience, names, self.causes())
            told = names
            await asyncio.sleep(LOOK_S)
            self._follow_roster()
            await self._look_at_due()
        self.task = asyncio.create_task(self._watch())

    async def compare_all(self) -> None:
        """Compare what has sampled for this one, and was never given weights by it."""
        if not self.publishing.begun:
            unsure = self._own.unsure(self._router.servers())
            await asyncio.gather(*(self._guarded(self._compare, server) for server in unsure))

    def _may_come(self) -> bool:
        """Say whether a start waits: nobody serves, and who is not there may be loading its model yet."""
        return not (self._router.serving or self._router.of_others() or self._router.failed(WRONG_TOKEN))

    async def _look_at_due(self) -> None:
        await asyncio.gather(*(self._guarded(self._look_at, server) for server in self._router.due()))

    async def _watch(self) -> None:
        """Find engines that have fallen silent, and look at those that are out, which may take each its time."""
        looks, beats, goodbyes, comparisons = (dict[str, asyncio.Task[None]]() for _ in range(4))
        while True:
            self._tend(beats, [server for server in self._router.servers() if server.run], self._beat)
            for server in [*self._router.serving.values(), *self._router.leaving.values()]:
                if server.silence > self._options.silence_s:
                    said = f"nothing for {server.silence:.0f} s while {server.in_flight} requests wait"
                    self.serving.take_out(server, "wedged", said)
            self._follow_roster()
            leaving = [s for s in self._router.leaving.values() if s.idle and s.name not in looks]
            self._tend(goodbyes, leaving, self._let_go)
            self._tend(looks, [s for s in self._router.due() if s.name not in goodbyes], self._look_at)
            own = [] if self.publishing.begun else list(self._router.serving.values())
            self._tend(comparisons, own, self._compare_again)
            await asyncio.sleep(LOOK_S)

    def _tend(
        self,
        tasks: dict[str, asyncio.Task[None]],
        servers: Iterable[RemoteServer],
        work: Callable[[RemoteServer], Awaitable[None]],
    ) -> None:
        """Begin work on those of these servers on which it is not under way; ``tasks`` are those that are."""
        for name in [name for name, task in tasks.items() if task.done()]:
            tasks.pop(name).result()
        for server in servers:
            if server.name not in tasks:
                tasks[server.name] = asyncio.create_task(self._guarded(work, server))

    async def _guarded(self, work: Callable[[RemoteServer], Awaitable[None]], server: RemoteServer) -> None:
        """Work on a server. Nothing that one of them says or is ends the watch over all."""
        try:
            await work(server)
        except Exception as error:
            _logger.exception("the engine %s cannot be dealt with", server.name)
            said = f"{type(error).__name__} {error}"[:300]
            if server in (*self._router.serving.values(), *self._router.leaving.values()):
                self.serving.take_out(server, "broken", said)
            self._router.stays_out(server, "broken", said)
            await asyncio.sleep(BEAT_S)

    def _follow_roster(self) -> None:
        """Take in the engines that have come into the file of engines, and let those go that are no longer in it."""
        joined, left = self.roster.look()
        for url in joined:
            self._router.join(self.server(url))
        for url in left:
            if url not in self._staying:
                server = self.server(url)
                _logger.info("the engine %s leaves", server.name)
                self._router.leave(server.name)

    async def _let_go(self, server: RemoteServer) -> None:
        """Give back the lease of an engine that has left and has nothing in hand."""
        try:
            await self.serving.blocking_long(lambda: self.publishing.let_go(server))
        finally:
            self._router.leaving.pop(server.name, None)

    async def _beat(self, server: RemoteServer) -> None:
        """Keep an engine's lease; one that another run has taken meanwhile, for this one was silent, is out."""
        with contextlib.suppress(TurnwiseError):  # whether it is there at all, others see
            if not await self.serving.blocking(self.publishing.keep, server):
                server.run = ""
                self.serving.take_out(server, TAKEN, "another run has it, since this one was silent too long")
        await asyncio.sleep(BEAT_S)

    async def _look_at(self, server: RemoteServer) -> None:
        try:
            facts = await self.serving.blocking(server.look)
        except WrongTokenError as error:
            self._router.stays_out(server, WRONG_TOKEN, error.cause)
            return
        except TurnwiseError as error:
            self._router.stays_out(server, "absent", error.cause)
            return
        if unfit := self._unfit(facts):
            self._router.stays_out(server, "unfit", unfit)
            return
        if self.publishing.published is None and not untouched(facts):
            self._router.stays_out(server, OTHERS, of_another(server, facts))
            if not self.publishing.begun:
                self._own.lost(server, facts)
            return
        try:
            await self.serving.blocking(self.publishing.make_ready, server, facts)
        except Taken as error:
            self._router.stays_out(server, TAKEN, error.cause)
        except TurnwiseError as error:
            self._router.take_out(server, NOT_READY, error.cause)
        else:
            published = self.publishing.published
            if published is None or server.version == published.version:  # else there are newer ones
                self._router.admit(server)
                self.serving.changed.set()

    def _unfit(self, facts: EngineFacts) -> str:
        """Why an engine cannot be one of these; empty where it can."""
        if not (self.vocabulary or facts.vocabulary):  # or its tokens would be believed, whatever they are
            return "neither it nor the run says how many tokens the model has: start it with a newer Turnwise, or give the run the model's folder"
        if self.dtype and facts.dtype != self.dtype:
            return f"it computes in {facts.dtype}, the others in {self.dtype}: start it with --dtype {self.dtype}"
        if facts.context_length < self.context_length:
            return f"it holds {facts.context_length} tokens where {self.context_length} are asked for"
        return ""

    # --- weights that are not ours to change -----------------------------------------------------

    async def _compare_again(self, server: RemoteServer) -> None:
        await self._compare(server)
        await asyncio.sleep(BEAT_S)

    async def _compare(self, server: RemoteServer) -> None:
        """See that an engine still samples with the weights that it was started with."""
        with contextlib.suppress(TurnwiseError):  # whether it is there at all, others see
            heard = server.tokens_heard  # before it is looked at: what comes meanwhile is not proven by it
            facts = await self.serving.blocking(server.look)
            if untouched(facts):
                self._own.seen(server, heard)
            elif not self.publishing.begun:
                self._own.lost(server, facts)
                self.serving.take_out(server, OTHERS, of_another(server, facts))
