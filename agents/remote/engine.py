"""Many engines elsewhere as one :class:`~turnwise.agents.core.Engine`, whose weights can be replaced.

A thread of its own speaks to them, so that answers are read and engines are watched while the caller's event loop is
held up by a learner, and weights can be published from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from turnwise.agents.core import Completion, Kv, Sampling
from turnwise.agents.remote.answer import Job, Lost, SampledTokens
from turnwise.agents.remote.client import (
    FACTS_S,
    Address,
    RemoteServer,
    Unreachable,
    WrongTokenError,
    new_session,
    parse_url,
)
from turnwise.agents.remote.lease import BEAT_S, LeaseHolder, Taken
from turnwise.agents.remote.own_weights import OwnWeights, of_another, untouched
from turnwise.agents.remote.protocol import EngineFacts
from turnwise.agents.remote.publishers import PUBLISHERS, Offered, WeightPublisher
from turnwise.agents.remote.roster import Roster
from turnwise.agents.remote.router import NOT_READY, OTHERS, TAKEN, WRONG_TOKEN, EngineHealth, Router
from turnwise.errors import EngineError, TurnwiseError

if TYPE_CHECKING:
    from torch import Tensor

    from turnwise.agents.remote.adapters import AdaptedWeights

MOST_LOSSES = 16
"""How often one answer may be lost before it is given up: it may be what kills the engines."""
LOOK_S = 0.2
MOST_ENGINES = 64
_logger = logging.getLogger(__name__)
Result = TypeVar("Result")


class RemoteOptions(NamedTuple):
    """How engines are found and watched.

    Attributes:
        token: that the engines ask for.
        urls_file: a file with the URLs of more engines, one a line. It is read again all the time: engines join and leave.
        publish_host: the address of this machine as engines on other machines reach it, to fetch weights.
        silence_s: an engine that has work, or is asked how it is, and says nothing for so long is taken to be wedged.
        patience_s: how long an answer waits for an engine while none serves, and a start while none is there.
        publish_s: what an engine may take to fetch weights, and to load them.
        vocabulary: how many tokens the model of the run has; 0: each engine says it of its own.
        publish: the way in which it gets them, one of :data:`~turnwise.agents.remote.publishers.PUBLISHERS`.
    """

    token: str = ""
    urls_file: str = ""
    publish_host: str = "127.0.0.1"
    silence_s: float = 60.0
    patience_s: float = 120.0
    publish_s: float = 600.0
    publish: str = "auto"
    vocabulary: int = 0


class _Published(NamedTuple):
    version: int
    offer: Offered


class RemoteFleet:
    """Engines at ``urls``, behind one :class:`Router`.

    Answers are those of one engine: where an engine fails, another continues or repeats what it was sampling
    (docs/engines.md), and whoever awaits the answer does not notice.

    Args:
        urls: of the engines' servers.
        context_length: longest prompt plus answer, in tokens; 0: what all engines can hold.
        options: how they are found and watched.

    Raises:
        EngineError: no engine answers, or they do not fit together.
    """

    def __init__(
        self, urls: Sequence[str], *, context_length: int = 0, options: RemoteOptions | None = None
    ) -> None:
        self.options = options or RemoteOptions()
        self.version = 0
        self.dtype, self.context_length = "", 0  # until engines have agreed on them
        self._roster, self._staying = (
            Roster(self.options.urls_file, parse_url),
            {parse_url(url) for url in urls},
        )
        servers = [self._server(url) for url in dict.fromkeys([*urls, *self._roster.first()])]
        self._router = Router(servers)
        self._publisher: WeightPublisher[Any] | None = None
        self._published: _Published | None = None
        self._lease = LeaseHolder()
        self._publishing = threading.Lock()  # one at a time changes an engine's weights
        self._pool = ThreadPoolExecutor(MOST_ENGINES, "turnwise-remote")
        self._asked: set[str] = set()  # the answers that callers wait for
        self._own = OwnWeights()
        self._running: dict[RemoteServer, set[asyncio.Task[Completion]]] = {}
        self._changed = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="turnwise-remote", daemon=True)
        self._thread.start()
        self._closed = False
        try:
            self._on_loop(self._open())
            self.dtype, self.context_length = self._agreed(context_length)
        except BaseException:
            self.close()
            raise

    def belongs_to(self, run: str) -> None:
        """Name the run that will publish weights: one that is resumed has its engines still."""
        self._lease = LeaseHolder(f"{socket.gethostname()}:{run}", run)

    # --- what an engine does -------------------------------------------------------------------

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        """Sample one answer; a stop id that ends it is its last token.

        Raises:
            EngineError: the prompt leaves no room in the context, or no engine can answer.
        """
        room = self.context_length - len(prompt_ids)
        if room < 1 or not prompt_ids:
            raise EngineError(
                f"A prompt of {len(prompt_ids)} tokens does not fit a context of {self.context_length}.",
                "Raise context_length, or keep less history.",
            )
        limit = min(sampling.max_tokens, room)
        asked = tuple(prompt_ids), sampling, tuple(stop_ids), seed, limit, self.options.vocabulary
        job = Job(secrets.token_hex(12), *asked)
        self._asked.add(job.request_id)  # counted here: a caller that gives an answer up may publish at once
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._play(job), self._loop))
        finally:
            self._asked.discard(job.request_id)

    def load_weights(
        self, weights: Iterable[tuple[str, Tensor]], version: int, *, kv: Kv | None = None
    ) -> None:
        """Publish weights to every engine that serves, and see by their checksum that each has them.

        Blocks; with ``kv`` from any thread. An engine that cannot take them, or does not answer, is taken out and named in
        the log; it gets them before it serves again.

        Raises:
            EngineError: requests are in flight and ``kv`` does not say what becomes of them, there is no room to pack the
                weights, engines refused them and none took them, or another run uses one of them.
        """
        self._publish(lambda publisher: publisher.offer(weights, self.dtype), version, kv)

    def load_adapters(self, weights: AdaptedWeights, version: int, *, kv: Kv | None = None) -> None:
        """As :meth:`load_weights`, of a base that engines have, or get once, and the adapters that are added to it.

        Raises:
            EngineError: as :meth:`load_weights`.
        """
        self._publish(lambda publisher: publisher.offer_adapters(weights, self.dtype), version, kv)

    @property
    def bytes_published(self) -> int:
        """How much has been packed for engines so far; each fetches it."""
        return self._publisher.written if self._publisher else 0

    def _publish(self, offer: Callable[[WeightPublisher[Any]], Offered], version: int, kv: Kv | None) -> None:
        if kv is None and self._asked:
            raise EngineError(
                f"{len(self._asked)} requests are in flight.", "Await them, or say what becomes of them: kv."
            )
        with self._publishing:
            if self._publisher is None:
                self._take_leases()
                self._publisher = PUBLISHERS[self.options.publish](self.options.publish_host)
            offered = offer(self._publisher)
            self._published, before = _Published(version, offered), self._published
            serving = [*self._router.serving.values(), *self._router.of_others()]
            failed = [error for error in self._pool.map(lambda s: self._push(s, kv), serving) if error]
            refused = [error for error in failed if not isinstance(error, Unreachable)]
            if refused and len(failed) == len(serving):
                self._published = before
                self._publisher.withdraw()
                raise EngineError(
                    f"No engine took weights {version}: {refused[0].cause}", refused[0].remedy
                ) from refused[0]
            self._publisher.settle()
            self.version = version

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """log p(token | all before it) at temperature 1, for every token but the first of each sequence. Blocks.

        Every engine scores all of them, and answers for every n-th token: what one computes wrongly is seen. One that
        does not answer is taken out; while none serves, this waits for one.

        Raises:
            EngineError: no engine serves, or one cannot score.
        """
        until = time.monotonic() + self.options.patience_s

        def all_of(server: RemoteServer) -> list[tuple[float, ...]] | None:
            try:
                return [server.score(ids) for ids in sequences]
            except Unreachable as error:
                self._miss(server, error)
                return None

        while not (found := list(filter(None, self._pool.map(all_of, list(self._router.serving.values()))))):
            if not self._hope(until):
                raise EngineError("No engine serves.", self._causes())
            time.sleep(LOOK_S)
        return [
            tuple(found[place % len(found)][row][place] for place in range(len(ids) - 1))
            for row, ids in enumerate(sequences)
        ]

    def close(self) -> None:
        """Let the engines go; their servers run on.

        Raises:
            EngineError: engines that sampled with weights of their own were given others meanwhile.
        """
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(RuntimeError):
            self._on_loop(self._compare_all())
            self._on_loop(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for server in self._router.servers():
            if server.run:
                with contextlib.suppress(TurnwiseError):  # one that is gone needs none
                    self._lease.give_back(server)
        self._pool.shutdown(cancel_futures=True)
        if self._publisher is not None:
            self._publisher.close()
        if self._own.disturbed:
            raise self._own.error()

    # --- who serves ----------------------------------------------------------------------------

    def health(self) -> list[EngineHealth]:
        """How each engine is."""
        return self._on_loop(_soon(self._router.health))

    def join(self, url: str) -> None:
        """Take one more engine in. It gets the weights that were published last before it serves."""
        self._on_loop(_soon(lambda: self._router.join(self._server(url))))

    def leave(self, name: str) -> None:
        """Give nothing more to the engine of this name (``host:port``); it finishes what it has in hand, and is free then."""
        self._on_loop(_soon(lambda: self._router.leave(name)))

    def _server(self, url: str) -> RemoteServer:
        return RemoteServer(Address(parse_url(url), self.options.token), max(FACTS_S, self.options.silence_s))

    def _agreed(self, context_length: int) -> tuple[str, int]:
        """The type of weights and the context of all engines.

        Raises:
            EngineError: none serves, they differ, or their context is too short.
        """
        servers = [*self._router.serving.values(), *self._router.of_others()]
        facts = [server.facts for server in servers if server.facts is not None]
        if not facts:
            raise EngineError("None of the engines serves.", self._causes())
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
        return facts[0].dtype, context_length or least

    def _unfit(self, facts: EngineFacts) -> str:
        """Why an engine that comes later cannot be one of these; empty where it can."""
        if self.dtype and facts.dtype != self.dtype:
            return f"it computes in {facts.dtype}, the others in {self.dtype}: start it with --dtype {self.dtype}"
        if facts.context_length < self.context_length:
            return f"it holds {facts.context_length} tokens where {self.context_length} are asked for"
        return ""

    def _causes(self) -> str:
        said = [f"{name} ({absence.detail})" for name, absence in self._router.absent.items()]
        if self._published is None and self._router.of_others():
            said.append(
                "train with them, which gives them weights, or start them anew to sample with their own"
            )
        if self._router.failed(WRONG_TOKEN):
            said.append(
                "give the token that they were started with (engine.options.token_file, --token-file)"
            )
        if not said and self.options.urls_file:
            return f"Have one write its address into {self.options.urls_file} (engine.options.urls_file)."
        return "; ".join(said) + "." if said else "Give engine.options.urls the address of one."

    # --- sampling, in the thread of the engines ------------------------------------------------

    async def _open(self) -> None:
        self._session = new_session()
        until, told = time.monotonic() + self.options.patience_s, ""
        await asyncio.gather(*(self._guarded(self._look_at, server) for server in self._router.due()))
        while self._may_come() and time.monotonic() < until:
            names = ", ".join(self._router.absent) or f"an address in {self.options.urls_file}"
            if names != told:
                _logger.warning(
                    "waiting up to %g s for an engine: %s. %s", self.options.patience_s, names, self._causes()
                )
            told = names
            await asyncio.sleep(LOOK_S)
            self._follow_roster()
            await asyncio.gather(*(self._guarded(self._look_at, server) for server in self._router.due()))
        self._watching = asyncio.create_task(self._watch())

    def _may_come(self) -> bool:
        """Whether a start waits: nobody serves, and who is not there may be loading its model yet."""
        return not (self._router.serving or self._router.of_others() or self._router.failed(WRONG_TOKEN))

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if hasattr(self, "_session"):
            await self._session.close()

    async def _play(self, job: Job) -> Completion:
        kept, causes, last = SampledTokens(), list[str](), ""
        while len(causes) < MOST_LOSSES:
            answer = job.whole(kept) if kept.ids else None
            if answer is not None:  # only the word that it was all had been lost
                return answer
            server = await self._server_for(job)
            try:
                answer = await self._from(server, job, kept)
            except Lost as lost:
                kept = lost.kept
                causes.append(lost.cause)
                last = f"{server.name}, {lost.detail}"
                self._take_out(server, lost.cause, lost.detail)
            else:
                self._router.answered(server, len(answer.token_ids))
                return answer
        raise EngineError(
            f"An answer was lost {len(causes)} times: {', '.join(causes)}; the last time: {last}.",
            "It may be what ends the engines.",
        )

    async def _server_for(self, job: Job) -> RemoteServer:
        until = time.monotonic() + self.options.patience_s
        self._check_watched()
        while (server := self._router.choose(job.prompt_ids)) is None:
            self._check_watched()
            if not self._hope(until):
                raise EngineError("No engine serves.", self._causes())
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._changed.wait()
        return server

    def _check_watched(self) -> None:
        """Refuse to sample where nobody would see that an engine fails, or one has failed in a way that cannot be made good.

        Raises:
            EngineError: that is so.
        """
        if self._own.disturbed:
            raise self._own.error()
        if self._watching.done():
            why = "" if self._watching.cancelled() else repr(self._watching.exception())
            raise EngineError(
                f"Nobody watches the engines any more: {why or 'they were let go'}.",
                "This is a defect of Turnwise, please report it; a run goes on with --resume.",
            )

    def _hope(self, until: float) -> bool:
        """Whether an engine may serve yet, while none does."""
        theirs = self._router.failed(OTHERS if self._published is None else TAKEN)
        return time.monotonic() <= until and not (theirs and len(theirs) == len(self._router.absent))

    async def _from(self, server: RemoteServer, job: Job, kept: SampledTokens) -> Completion:
        """The answer from this engine.

        Raises:
            Lost: it does not come; among others because the engine is taken out meanwhile.
        """
        reading = server.begin(job, kept)
        task = asyncio.create_task(server.sample(self._session, reading))
        running = self._running.setdefault(server, set())
        running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            mine = asyncio.current_task()
            if mine is not None and mine.cancelling():
                raise
            raise reading.lost("taken out", f"{server.name} was taken out") from None
        finally:
            running.discard(task)
            server.readings.discard(reading)

    def _take_out(self, server: RemoteServer, cause: str, detail: str) -> None:
        """Send no more to an engine, and let others go on with what it was sampling."""
        if cause == "taken out":  # this was told when it was
            return
        if self._router.take_out(server, cause, detail) or server is self._router.leaving.get(server.name):
            _logger.warning("the engine %s is out (%s): %s", server.name, cause, detail)
            for task in self._running.pop(server, set()):
                task.cancel()

    async def _watch(self) -> None:
        """Find engines that have fallen silent, and look at those that are out, which may take each its time."""
        looks, beats, goodbyes, comparisons = (dict[str, asyncio.Task[None]]() for _ in range(4))
        while True:
            self._tend(beats, [server for server in self._router.servers() if server.run], self._beat)
            for server in [*self._router.serving.values(), *self._router.leaving.values()]:
                if server.silence > self.options.silence_s:
                    said = f"nothing for {server.silence:.0f} s while {server.in_flight} requests wait"
                    self._take_out(server, "wedged", said)
            self._follow_roster()
            leaving = [s for s in self._router.leaving.values() if s.idle and s.name not in looks]
            self._tend(goodbyes, leaving, self._let_go)
            self._tend(looks, [s for s in self._router.due() if s.name not in goodbyes], self._look_at)
            own = [] if self._publisher is not None else list(self._router.serving.values())
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
                self._take_out(server, "broken", said)
            self._router.stays_out(server, "broken", said)
            await asyncio.sleep(BEAT_S)

    def _follow_roster(self) -> None:
        """Take in the engines that have come into the file of engines, and let those go that are no longer in it."""
        joined, left = self._roster.look()
        for url in joined:
            self._router.join(self._server(url))
        for url in left:
            if url not in self._staying:
                server = self._server(url)
                _logger.info("the engine %s leaves", server.name)
                self._router.leave(server.name)

    async def _let_go(self, server: RemoteServer) -> None:
        """Give back the lease of an engine that has left and has nothing in hand."""

        def give_back() -> None:
            with self._publishing, contextlib.suppress(TurnwiseError):  # one that is gone needs none
                if server.run:
                    self._lease.give_back(server)

        try:
            await self._loop.run_in_executor(None, give_back)
        finally:
            self._router.leaving.pop(server.name, None)

    async def _beat(self, server: RemoteServer) -> None:
        """Keep an engine's lease; one that another run has taken meanwhile, for this one was silent, is out."""
        with contextlib.suppress(TurnwiseError):  # whether it is there at all, others see
            if not await self._loop.run_in_executor(self._pool, self._lease.beat, server):
                server.run = ""
                self._take_out(server, TAKEN, "another run has it, since this one was silent too long")
        await asyncio.sleep(BEAT_S)

    async def _look_at(self, server: RemoteServer) -> None:
        try:
            facts = await self._loop.run_in_executor(self._pool, server.look)
        except WrongTokenError as error:
            self._router.stays_out(server, WRONG_TOKEN, error.cause)
            return
        except TurnwiseError as error:
            self._router.stays_out(server, "absent", error.cause)
            return
        if unfit := self._unfit(facts):
            self._router.stays_out(server, "unfit", unfit)
            return
        if self._published is None and not untouched(facts):
            self._router.stays_out(server, OTHERS, of_another(server, facts))
            if self._publisher is None:
                self._own.lost(server, facts)
            return
        try:
            await self._loop.run_in_executor(self._pool, self._make_ready, server, facts)
        except Taken as error:
            self._router.stays_out(server, TAKEN, error.cause)
        except TurnwiseError as error:
            self._router.take_out(server, NOT_READY, error.cause)
        else:
            if (
                self._published is None or server.version == self._published.version
            ):  # else there are newer ones
                self._router.admit(server)
                self._changed.set()

    # --- weights that are not ours to change -----------------------------------------------------

    async def _compare_again(self, server: RemoteServer) -> None:
        await self._compare(server)
        await asyncio.sleep(BEAT_S)

    async def _compare_all(self) -> None:
        """Compare what has sampled for this one, and was never given weights by it."""
        if self._publisher is None:
            unsure = self._own.unsure(self._router.servers())
            await asyncio.gather(*(self._guarded(self._compare, server) for server in unsure))

    async def _compare(self, server: RemoteServer) -> None:
        """See that an engine still samples with the weights that it was started with."""
        with contextlib.suppress(TurnwiseError):  # whether it is there at all, others see
            heard = server.tokens_heard  # before it is looked at: what comes meanwhile is not proven by it
            facts = await self._loop.run_in_executor(self._pool, server.look)
            if untouched(facts):
                self._own.seen(server, heard)
            elif self._publisher is None:
                self._own.lost(server, facts)
                self._take_out(server, OTHERS, of_another(server, facts))

    # --- weights, in any thread ----------------------------------------------------------------

    def _make_ready(self, server: RemoteServer, facts: EngineFacts) -> None:
        """See that an engine, which is as ``facts`` say, samples, with the weights that were published last.

        Raises:
            EngineError: it does not.
        """
        published = self._published
        if published is None:
            server.version = self.version
        else:
            self._lease.take(server)
        if published is None:
            pass
        elif (has := facts.weights) != has.model_copy(update=_expected(published)):
            _logger.info(
                "the engine %s has weights %s: it gets %s", server.name, has.version, published.version
            )
            self._publish_to(server, published, "recompute")
        else:
            server.version = published.version
        server.call("POST", "/resume", seconds=FACTS_S)  # an update that failed has left it held
        server.score([1, 1], seconds=max(FACTS_S, self.options.silence_s / 2))

    def _take_leases(self) -> None:
        """Have the engines for this run alone, but for those that do not answer: they are out.

        Raises:
            Taken: another run has one of them.
        """
        for server in [*self._router.serving.values(), *self._router.of_others()]:
            try:
                self._lease.take(server)
            except Taken:
                raise
            except EngineError as error:
                self._miss(server, error)

    def _miss(self, server: RemoteServer, error: EngineError) -> None:
        """Take out an engine that does not answer as one."""
        self._on_loop(_soon(lambda: self._take_out(server, "dead", error.cause)))

    def _push(self, server: RemoteServer, kv: Kv | None) -> EngineError | None:
        assert self._published is not None
        try:
            if not server.run:  # it has come since the leases were taken
                self._lease.take(server)
            self._publish_to(server, self._published, kv or "recompute")
        except Unreachable as error:
            self._miss(server, error)
            return error
        except EngineError as error:
            failed = error
            self._on_loop(_soon(lambda: self._take_out(server, "not updated", failed.cause)))
            return failed
        self._on_loop(_soon(lambda: self._admit_with_ours(server)))
        return None

    def _admit_with_ours(self, server: RemoteServer) -> None:
        if server in self._router.of_others():
            self._router.admit(server)

    def _publish_to(self, server: RemoteServer, published: _Published, kv: Kv) -> None:
        assert self._publisher is not None
        delivery = self._publisher.delivery(published.offer, server)
        server.publish(delivery, published.version, kv, seconds=self.options.publish_s)

    def _on_loop(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run in the engines' thread and wait."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _expected(published: _Published) -> dict[str, object]:
    return {"version": str(published.version), "checksum": published.offer.whole, "settled": True}


async def _soon(call: Callable[[], Result]) -> Result:
    return call()
