"""Many engines elsewhere as one :class:`~turnwise.agents.core.Engine`, whose weights can be replaced.

A thread of its own speaks to them (:mod:`~turnwise.agents.remote.serving`), so that answers are read and engines are watched
(:mod:`~turnwise.agents.remote.watch`) while the caller's event loop is held up by a learner, and weights can be published
(:mod:`~turnwise.agents.remote.publishing`) from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from turnwise.agents.core import Completion, Kv, Sampling
from turnwise.agents.remote.answer import Job, Lost, SampledTokens
from turnwise.agents.remote.client import RemoteServer, Unreachable
from turnwise.agents.remote.options import RemoteOptions
from turnwise.agents.remote.router import EngineHealth
from turnwise.agents.remote.watch import LOOK_S, Watch
from turnwise.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor

    from turnwise.agents.remote.adapters import AdaptedWeights

MOST_LOSSES = 16
"""Losses of one answer after which it is given up: it may be what kills the engines."""


class RemoteFleet:
    """Engines at ``urls``, which sample as one.

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
        self._watch = Watch(urls, self.options)
        self._serving, self._publishing = self._watch.serving, self._watch.publishing
        self._asked: set[str] = set()  # the answers that callers wait for
        self._closed = False
        try:
            self._serving.on_loop(self._watch.begin())
            self._watch.agree(context_length)
        except BaseException:
            self.close()
            raise

    @property
    def version(self) -> int:
        """Of the weights that were published last."""
        return self._publishing.version

    @property
    def dtype(self) -> str:
        """The type of the weights of all engines."""
        return self._watch.dtype

    @property
    def context_length(self) -> int:
        """The longest prompt plus answer, in tokens."""
        return self._watch.context_length

    @property
    def vocabulary(self) -> int:
        """The number of tokens that the model has."""
        return self._watch.vocabulary

    def belongs_to(self, run: str) -> None:
        """Name the run that will publish weights: one that is resumed has its engines still."""
        self._publishing.belongs_to(run)

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
        asked = tuple(prompt_ids), sampling, tuple(stop_ids), seed, limit, self.vocabulary
        job = Job(secrets.token_hex(12), *asked)
        self._asked.add(job.request_id)  # counted here: a caller that gives an answer up may publish at once
        try:
            return await asyncio.wrap_future(self._serving.begin(self._play(job)))
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
        self._check_idle(kv)
        self._publishing.publish(lambda publisher: publisher.offer(weights, self.dtype), version, kv)

    def load_adapters(self, weights: AdaptedWeights, version: int, *, kv: Kv | None = None) -> None:
        """As :meth:`load_weights`, of a base that engines have, or get once, and the adapters that are added to it.

        Raises:
            EngineError: as :meth:`load_weights`.
        """
        self._check_idle(kv)
        self._publishing.publish(lambda publisher: publisher.offer_adapters(weights, self.dtype), version, kv)

    @property
    def bytes_published(self) -> int:
        """Bytes that have been packed for engines so far; each fetches them."""
        return self._publishing.bytes_published

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
                self._serving.miss(server, error)
                return None

        router, pool = self._serving.router, self._serving.pool
        while not (found := list(filter(None, pool.map(all_of, list(router.serving.values()))))):
            if not self._watch.hope(until):
                raise EngineError("No engine serves.", self._watch.causes())
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
            self._serving.on_loop(self._watch.compare_all())
        self._serving.end_thread()
        self._publishing.close()
        self._serving.pool.shutdown(cancel_futures=True)
        self._watch.check_own()

    # --- who serves ----------------------------------------------------------------------------

    def health(self) -> list[EngineHealth]:
        """Return the health of each engine."""
        return self._serving.call(self._serving.router.health)

    def join(self, url: str) -> None:
        """Take one more engine in. It gets the weights that were published last before it serves."""
        self._serving.call(lambda: self._serving.router.join(self._watch.server(url)))

    def leave(self, name: str) -> None:
        """Give nothing more to the engine of this name (``host:port``); it finishes what it has in hand, and is free then."""
        self._serving.call(lambda: self._serving.router.leave(name))

    def _check_idle(self, kv: Kv | None) -> None:
        if kv is None and self._asked:
            raise EngineError(
                f"{len(self._asked)} requests are in flight.", "Await them, or say what becomes of them: kv."
            )

    # --- sampling, in the thread of the engines ------------------------------------------------

    async def _play(self, job: Job) -> Completion:
        kept, causes, last = SampledTokens(), list[str](), ""
        while len(causes) < MOST_LOSSES:
            answer = job.whole(kept) if kept.ids else None
            if answer is not None:  # only the word that it was all had been lost
                return answer
            server = await self._server_for(job)
            try:
                answer = await self._serving.answer(server, job, kept)
            except Lost as lost:
                kept = lost.kept
                causes.append(lost.cause)
                last = f"{server.name}, {lost.detail}"
                self._serving.take_out(server, lost.cause, lost.detail)
            else:
                self._serving.router.answered(server, len(answer.token_ids))
                return answer
        raise EngineError(
            f"An answer was lost {len(causes)} times: {', '.join(causes)}; the last time: {last}.",
            "It may be what ends the engines.",
        )

    async def _server_for(self, job: Job) -> RemoteServer:
        until, changed = time.monotonic() + self.options.patience_s, self._serving.changed
        self._watch.check()
        while (server := self._serving.router.choose(job.prompt_ids)) is None:
            self._watch.check()
            if not self._watch.hope(until):
                raise EngineError("No engine serves.", self._watch.causes())
            changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await changed.wait()
        return server
