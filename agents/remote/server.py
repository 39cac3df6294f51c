"""A server around an engine in this process, which speaks :mod:`turnwise.agents.remote.protocol`.

A request is known by its id: who asks again, because the connection broke, hears the same answer from its beginning,
and nothing is sampled twice. What nobody listens to any more is given up after a moment.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import pydantic
from aiohttp import web

from turnwise.agents.core import Completion, Kv, Sampling
from turnwise.agents.remote.guard import refusal
from turnwise.agents.remote.lease import Lease
from turnwise.agents.remote.protocol import (
    FACTS,
    GENERATE,
    LEASE,
    RUN,
    AnswerPiece,
    Choice,
    EngineFacts,
    FinishBody,
    GenerateBody,
    LeaseBody,
    Logprobs,
    PromptLogprob,
    SpanBody,
    TokenLogprob,
    UpdateBody,
    WeightsFacts,
)
from turnwise.agents.remote.transfer import WeightStore, checksum_of, entry_of, locality
from turnwise.errors import EngineError, TurnwiseError

if TYPE_CHECKING:
    from torch import Tensor

LINGER_S = 5.0
"""Seconds that a request that nobody listens to goes on, for who lost the connection and asks again."""
KEPT = 1024
"""Finished answers that can be heard again."""
WIDER, PACK_AT_LEAST = 4, 1 << 26
"""Size of the largest pack of weights: so many times what the engine computes with, which may be of a narrower type, and
this."""
SMALLEST_BODY, BYTES_A_TOKEN = 1 << 20, 24
"""Length of the longest body: so much, and for each token of the context so much more."""
_logger = logging.getLogger(__name__)
Body = TypeVar("Body", bound=pydantic.BaseModel)


class ServedEngine(Protocol):
    """The part of an engine that a server in its process needs."""

    version: int
    context_length: int
    dtype: str

    async def stream(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        *,
        stop_ids: Sequence[int],
        seed: int,
        drawn: int = 0,
        heard: Callable[[int, float, int], None] | None = None,
    ) -> Completion: ...

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]: ...

    def load_weights(
        self, weights: Iterable[tuple[str, Tensor]], version: int, *, kv: Kv | None = None
    ) -> None: ...

    def tensors(self) -> Iterable[tuple[str, Tensor]]:
        """The weights that it computes with, under the names of a checkpoint."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class _Answer:
    """An answer as far as it has been sampled, for all who listen to it."""

    def __init__(self, body: GenerateBody) -> None:
        self.body = body
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.spans: list[SpanBody] = []
        self.finished = ""
        self.error = ""
        self.listeners = 0
        self.task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    @property
    def over(self) -> bool:
        return bool(self.finished or self.error)

    def hear(self, token: int, logprob: float, version: int) -> None:
        """One more token."""
        label, end = str(version), len(self.ids) + 1
        if self.spans and self.spans[-1].version == label:
            self.spans[-1].end = end
        else:
            self.spans.append(SpanBody(version=label, start=end - 1, end=end))
        self.logprobs.append(logprob)
        self.ids.append(token)

    def tell(self) -> None:
        """Wake who listens."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait(self) -> None:
        await self._changed.wait()

    def piece(self, told: int) -> AnswerPiece:
        """Return the piece that comes after the first ``told`` tokens."""
        logprobs = [
            TokenLogprob(token_id=token, logprob=logp)
            for token, logp in zip(self.ids[told:], self.logprobs[told:], strict=True)
        ]
        choice = Choice(
            token_ids=self.ids[told:],
            logprobs=Logprobs(content=logprobs),
            finish_reason=self.finished or None,
            weight_versions=self.spans,
        )
        return AnswerPiece(request_id=self.body.request_id, choices=[choice])


class _Update(NamedTuple):
    """Weights that have come and are not in the engine yet."""

    tensors: list[tuple[str, Tensor]]
    checksum: str


class EngineServer:
    """The routes of one engine.

    Args:
        engine: what samples.
        kind: its name, for :class:`EngineFacts`.
        model: what it was started with.
        token: what callers must have; with an empty one nobody is answered.
        host: the address on which it listens.
    """

    def __init__(
        self, engine: ServedEngine, *, kind: str, model: str, token: str, host: str = "127.0.0.1"
    ) -> None:
        self.engine, self._host = engine, host
        self._kind, self._model, self._token = kind, model, token
        self._instance = secrets.token_hex(8)
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._checksum, self._settled = "", True
        self._kv: Kv = "recompute"
        own = sum(tensor.nbytes for _, tensor in engine.tensors())
        self._store = WeightStore(WIDER * own + PACK_AT_LEAST)
        self._update: _Update | None = None
        self._changing = asyncio.Lock()
        self._lease = Lease()

    def app(self) -> web.Application:
        """The application, to be run by aiohttp."""
        most = SMALLEST_BODY + BYTES_A_TOKEN * self.engine.context_length
        app = web.Application(client_max_size=most, middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get(FACTS, self._facts),
                web.post(LEASE, self._lend),
                web.post(GENERATE, self._generate),
                web.post("/pause", self._pause),
                web.post("/resume", self._resume),
                web.post("/start_weight_update", self._start),
                web.post("/update_weights", self._receive),
                web.post("/finish_weight_update", self._finish),
                web.post("/weight_checker", self._check),
            ]
        )
        app.on_shutdown.append(self._end)
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Tokens are asked for, and errors are told in one form."""
        headers = {k.lower(): v for k, v in request.headers.items()}
        refused = refusal(request.path, headers, self._token, self._host)
        if refused is not None:
            return web.json_response({"error": {"message": refused.why}}, status=refused.status)
        taken = self._lease.refusal(request.path, request.headers.get(RUN, ""))
        if taken:
            return web.json_response({"error": {"message": taken}}, status=409)
        try:
            return await handler(request)
        except pydantic.ValidationError as error:
            said = error.errors()[0]
            where = ".".join(map(str, said["loc"]))
            return web.json_response({"error": {"message": f"{where}: {said['msg']}"}}, status=400)
        except TurnwiseError as error:
            return web.json_response({"error": {"message": error.cause}}, status=409)

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _lend(self, request: web.Request) -> web.Response:
        return web.json_response(self._lease.ask(await _read(request, LeaseBody)).model_dump())

    async def _facts(self, _: web.Request) -> web.Response:
        weights = WeightsFacts(
            version=str(self.engine.version), checksum=self._checksum, settled=self._settled
        )
        facts = EngineFacts(
            kind=self._kind,
            instance=self._instance,
            model=self._model,
            dtype=self.engine.dtype,
            context_length=self.engine.context_length,
            vocabulary=getattr(self.engine, "vocabulary", 0),
            weights=weights,
            resumes=True,
            local=locality(),
            in_flight=sum(not answer.over for answer in self._answers.values()),
        )
        return web.json_response(facts.model_dump())

    # --- sampling --------------------------------------------------------------------------------

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        body = await _read(request, GenerateBody)
        if body.sampling_params.prompt_logprobs is not None:
            return await self._score(body)
        answer = self._answer(body)
        answer.listeners += 1
        try:
            return await (self._stream(request, answer) if body.stream else self._whole(answer))
        except ConnectionResetError:  # whoever listened is gone; the answer is kept for a moment
            return web.Response(status=499)
        finally:
            answer.listeners -= 1
            if not answer.listeners and not answer.over:
                asyncio.get_running_loop().call_later(LINGER_S, self._give_up, answer)

    def _answer(self, body: GenerateBody) -> _Answer:
        """The answer to this request, which is under way if it was asked before."""
        answer = self._answers.get(body.request_id)
        if answer is not None and not answer.error:
            if answer.body.model_copy(update={"stream": body.stream}) != body:
                raise EngineError(f"The id {body.request_id} is another request's.", "Give each its own.")
            return answer
        answer = self._answers[body.request_id] = _Answer(body)
        answer.task = asyncio.get_running_loop().create_task(self._sample(answer))
        if len(self._answers) > KEPT:
            for key in [key for key, found in self._answers.items() if found.over][
                : len(self._answers) - KEPT
            ]:
                del self._answers[key]
        return answer

    async def _sample(self, answer: _Answer) -> None:
        loop, asked = asyncio.get_running_loop(), answer.body.sampling_params

        def heard(token: int, logprob: float, version: int) -> None:  # in the thread that steps the engine
            answer.hear(token, logprob, version)
            loop.call_soon_threadsafe(answer.tell)

        try:
            done = await self.engine.stream(
                answer.body.token_ids,
                asked.sampling,
                stop_ids=asked.stop_token_ids,
                seed=asked.seed,
                drawn=asked.drawn,
                heard=heard,
            )
            answer.finished = "stop" if done.stopped else "length"
        except asyncio.CancelledError:
            answer.finished = "abort"
            raise
        except BaseException as error:  # whatever it is, those who wait must hear of it
            known = isinstance(error, TurnwiseError)
            answer.error = error.cause if known else f"{type(error).__name__}: {error!s:.300}"
            if not isinstance(error, Exception):
                raise
            if not known:
                _logger.exception("a request failed")
        finally:
            answer.tell()

    def _give_up(self, answer: _Answer) -> None:
        if not answer.listeners and answer.task is not None:
            answer.task.cancel()
            self._answers.pop(answer.body.request_id, None)

    async def _stream(self, request: web.Request, answer: _Answer) -> web.StreamResponse:
        """The answer as events, each with what has come since the one before."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        told = 0
        while True:
            over, count = answer.over, len(answer.ids)
            if answer.error:
                await response.write(_event(_failure(answer.error)))
                break
            if count > told or over:
                await response.write(_event(answer.piece(told).model_dump_json()))
                told = count
            if over:
                await response.write(b"data: [DONE]\n\n")
                break
            await answer.wait()
        await response.write_eof()
        return response

    async def _whole(self, answer: _Answer) -> web.Response:
        while not answer.over:
            await answer.wait()
        if answer.error:
            return web.Response(status=409, text=_failure(answer.error), content_type="application/json")
        return web.Response(text=answer.piece(0).model_dump_json(), content_type="application/json")

    async def _score(self, body: GenerateBody) -> web.Response:
        """The log-probabilities of the prompt, under its first token's None, as vLLM gives them."""
        if len(body.token_ids) > self.engine.context_length:
            raise EngineError(
                f"{len(body.token_ids)} tokens do not fit a context of {self.engine.context_length}.",
                "Score fewer.",
            )
        (scores,) = self.engine.score([body.token_ids])
        prompt: list[dict[int, PromptLogprob] | None] = [None]
        for token, logprob in zip(body.token_ids[1:], scores, strict=True):
            prompt.append({token: PromptLogprob(logprob=logprob)})
        piece = AnswerPiece(request_id=body.request_id, prompt_logprobs=prompt)
        return web.Response(text=piece.model_dump_json(), content_type="application/json")

    # --- weights ---------------------------------------------------------------------------------

    async def _pause(self, request: web.Request) -> web.Response:
        """Between two tokens nothing goes on until `/resume`; ``clear_cache=false`` keeps keys and values."""
        mode = request.query.get("mode", "keep")
        if mode != "keep":
            raise EngineError(f"There is no mode {mode!r} of pausing here.", "Pause with mode=keep.")
        self._kv = "keep" if request.query.get("clear_cache") == "false" else "recompute"
        self.engine.pause()
        return web.json_response({"status": "paused"})

    async def _resume(self, _: web.Request) -> web.Response:
        if not self._settled:
            raise EngineError("The weights are half changed.", "Publish them again.")
        self.engine.resume()
        return web.json_response({"status": "resumed"})

    async def _start(self, _: web.Request) -> web.Response:
        self._update = None
        return web.json_response({"message": "Weight update started"})

    async def _receive(self, request: web.Request) -> web.Response:
        """Fetch the weights; the engine still has the old ones."""
        info = (await _read(request, UpdateBody)).update_info
        self._update = _Update(await asyncio.to_thread(lambda: list(self._store.fetch(info))), info.whole)
        return web.json_response({"message": "Weights updated"})

    async def _finish(self, request: web.Request) -> web.Response:
        """Put them into the engine, and say which it then has."""
        body, update = await _read(request, FinishBody), self._update
        if update is None:
            raise EngineError("No weights have come.", "Begin with /start_weight_update.")
        async with self._changing:
            self._settled, self._update = False, None
            await asyncio.to_thread(
                self.engine.load_weights, update.tensors, int(body.weight_version), kv=self._kv
            )
            self._checksum = await asyncio.to_thread(self._attested, update)
            self._settled = True
        return web.json_response({"message": "Weight update finished"})

    def _attested(self, update: _Update) -> str:
        """The checksum of what came, if it is what the engine computes with; else of what it computes with."""
        mine = dict(self.engine.tensors())
        came = {name: tensor for name, tensor in update.tensors if name in mine}
        if all(_same(mine[name], tensor) for name, tensor in came.items()):
            return update.checksum
        return checksum_of(entry_of(name, mine[name])[0] for name in came)

    async def _check(self, _: web.Request) -> web.Response:
        """The digest of each tensor of the engine, as it is now."""
        found = await asyncio.to_thread(
            lambda: {name: entry_of(name, tensor)[0].sha256 for name, tensor in self.engine.tensors()}
        )
        return web.json_response({"checksums": found})

    async def _end(self, _: web.Application) -> None:
        for answer in self._answers.values():
            if answer.task is not None:
                answer.task.cancel()


def _same(mine: Tensor, came: Tensor) -> bool:
    return mine.equal(came.to(device=mine.device, dtype=mine.dtype))


async def _read(request: web.Request, body: type[Body]) -> Body:
    return body.model_validate_json(await request.read())


def _event(text: str) -> bytes:
    return f"data: {text}\n\n".encode()


def _failure(message: str) -> str:
    import json

    return json.dumps({"error": {"message": message}})
