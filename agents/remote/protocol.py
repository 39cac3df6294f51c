"""Requests to an engine's server and its answers: the part of vLLM's protocol that sampling for training needs.

Token ids go in; token ids, their log-probabilities and the versions of the weights that sampled them come out. Bodies
that lack what an answer needs are refused here, at the edge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Self

import pydantic
from pydantic import BaseModel, Field

from turnwise.agents.core import Sampling, VersionSpan

GENERATE = "/inference/v1/generate"
FACTS = "/turnwise/engine"
"""Beside vLLM's routes, one of ours: what the engine is, and what weights it has (:class:`EngineFacts`)."""
RUN = "turnwise-run"
"""The header that says in which run's name an engine is steered."""
LEASE = "/turnwise/lease"
"""And another: whose the engine is (:class:`LeaseBody`, :class:`LeaseFacts`)."""
_LONGEST_VERSION = 18
FIRST = "default"
"""vLLM's name for the weights that a server was started with; ours is version 0."""


MOST_TOKENS = 1 << 28
"""Tokens that anything of a request may count; an engine's context is far below."""
MOST_STOPS = 1 << 10
MOST_TEMPERATURE, LEAST_TEMPERATURE = 1e4, 1e-4
"""Beyond them what is divided by the temperature is no number any more; 0 is greedy."""
TokenId = Annotated[int, Field(ge=0, lt=2**31)]


class ExtraBody(BaseModel):
    """Arguments that our engines take beside vLLM's fields.

    ``drawn``: how many tokens the request's random stream has given already (engines that can enter it midway).
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    drawn: int = Field(default=0, ge=0, lt=MOST_TOKENS)


class SamplingBody(BaseModel):
    """Settings with which tokens are drawn. Further fields of vLLM's are not ours to send, and are refused."""

    model_config = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)

    temperature: float = Field(ge=0, le=MOST_TEMPERATURE)
    top_p: float = Field(gt=0, le=1)
    max_tokens: int = Field(ge=1, lt=MOST_TOKENS)
    seed: int = Field(default=0, ge=-(2**63), lt=2**64)
    stop_token_ids: list[TokenId] = Field(default=[], max_length=MOST_STOPS)
    ignore_eos: bool = True  # only the caller's stop ids stop
    logprobs: int | None = 0  # of the sampled token alone
    prompt_logprobs: int | None = None
    detokenize: bool = False
    extra_args: ExtraBody | None = None

    @classmethod
    def of(cls, sampling: Sampling, limit: int, stop_ids: Sequence[int], seed: int) -> SamplingBody:
        """The body of a request for at most ``limit`` tokens."""
        return cls(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=limit,
            seed=seed % 2**63,
            stop_token_ids=list(stop_ids),
        )

    @pydantic.field_validator("temperature")
    @classmethod
    def _no_denormal(cls, value: float) -> float:
        if 0 < value < LEAST_TEMPERATURE:
            raise ValueError(f"a temperature is 0 or at least {LEAST_TEMPERATURE:g}")
        return value

    @property
    def drawn(self) -> int:
        return self.extra_args.drawn if self.extra_args else 0

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_p, self.max_tokens)


class GenerateBody(BaseModel):
    """``POST /inference/v1/generate``. The same ``request_id`` again is the same request, not another one."""

    model_config = pydantic.ConfigDict(extra="forbid")

    request_id: str = Field(min_length=1, max_length=200)
    token_ids: list[TokenId] = Field(min_length=1)
    sampling_params: SamplingBody
    stream: bool = True
    cache_salt: str | None = Field(default=None, max_length=200)
    priority: int = Field(default=0, ge=-(2**31), lt=2**31)

    @pydantic.model_validator(mode="after")
    def _drawn_before(self) -> Self:
        if self.sampling_params.drawn > len(self.token_ids):
            raise ValueError("drawn tokens stand at the end of token_ids, and there are not so many")
        return self


class TokenLogprob(BaseModel):
    """A sampled token and its log-probability, in nats."""

    token_id: int
    logprob: float


class Logprobs(BaseModel):
    """One entry for each token."""

    content: list[TokenLogprob] | None = None


class SpanBody(BaseModel):
    """Tokens ``[start, end)`` of the answer come from this version of the weights."""

    version: str
    start: int
    end: int


class Choice(BaseModel):
    """A piece of an answer, or all of it; ``finish_reason`` is in the last piece alone."""

    index: int = 0
    token_ids: list[int] | None = None
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    weight_versions: list[SpanBody] | None = None


class AnswerPiece(BaseModel):
    """One event of a stream, or a whole answer."""

    request_id: str = ""
    choices: list[Choice] = []
    prompt_logprobs: list[dict[int, PromptLogprob] | None] | None = None


class PromptLogprob(BaseModel):
    """The log-probability of a token of the prompt, in nats."""

    logprob: float


class PackInfo(BaseModel):
    """The place at which an engine fetches a pack of weights: a file in shared memory, or a sender that waits on TCP."""

    path: str = Field(default="", max_length=4000)
    host: str = Field(default="", max_length=255)
    port: int = Field(default=0, ge=0, lt=1 << 16)
    key: str = Field(default="", max_length=64, pattern="^[0-9a-f]*$")
    checksum: str = Field(max_length=128)


class UpdateInfo(PackInfo):
    """The place at which an engine fetches new weights; with a ``base`` they are adapters, to be added to it."""

    base: PackInfo | None = None

    @property
    def whole(self) -> str:
        """The checksum of the weights that the engine then has."""
        return whole_checksum(self.checksum, self.base.checksum if self.base else None)


def whole_checksum(pack: str, base: str | None) -> str:
    """The checksum of weights that came in one pack, or of adapters in one and their base in another."""
    return pack if base is None else hashlib.sha256(f"{base}+{pack}".encode()).hexdigest()


class LeaseBody(BaseModel):
    """``POST /turnwise/lease``: a run wants the engine to itself, has it still, or gives it back (``release``).

    ``process`` and ``local`` name the run's process, for a server that sees whether it lives.
    """

    run: str = Field(min_length=1, max_length=4000)
    holder: str = Field(max_length=4000)
    process: str = Field(default="", max_length=4000)
    local: str = Field(default="", max_length=4000)
    release: bool = False


class LeaseFacts(BaseModel):
    """Answer to a run that asks for the lease of an engine: granted, or else its holder, and for how long that has said
    nothing."""

    granted: bool
    holder: str = ""
    silent_s: float = 0.0


class UpdateBody(BaseModel):
    """``POST /update_weights``."""

    update_info: UpdateInfo


class FinishBody(BaseModel):
    """``POST /finish_weight_update``."""

    weight_version: str = Field(pattern="^[0-9]{1,18}$")


class WeightsFacts(BaseModel):
    """The weights that an engine has. ``settled`` is False between the start of an update and its end."""

    version: str
    checksum: str = ""  # of what was loaded last; empty: those that it was started with
    settled: bool = True


class EngineFacts(BaseModel):
    """``GET /turnwise/engine``: what the engine is and how it is.

    ``instance`` is another one after each start. ``resumes``: a request's random stream can be entered midway. ``gpus``: the
    ids of its workers' GPUs, where these take weights from GPU to GPU.
    """

    kind: str
    instance: str
    model: str = ""
    dtype: str
    context_length: int = Field(ge=1, lt=MOST_TOKENS)
    vocabulary: int = Field(default=0, ge=0, lt=2**31)  # how many tokens the model has; 0: it does not say
    weights: WeightsFacts
    resumes: bool = False
    gpus: list[str] = []
    local: str = ""  # names the machine, if it is asked about from where its files are
    in_flight: int = 0


def version_of(label: str) -> int | None:
    """The number of a version by its label; None for a label that is not ours.

    >>> version_of("7"), version_of("default"), version_of("step-7"), version_of("9" * 5000)
    (7, 0, None, None)
    """
    if label == FIRST:
        return 0
    return int(label) if label.isascii() and label.isdigit() and len(label) <= _LONGEST_VERSION else None


def spans_of(bodies: Sequence[SpanBody], tokens: int, start: int = 0) -> tuple[VersionSpan, ...] | None:
    """The spans of ``tokens`` tokens that begin at ``start``; None where they are not whole or a version is none of ours.

    >>> spans_of([SpanBody(version="1", start=0, end=2), SpanBody(version="2", start=2, end=5)], 5)
    (VersionSpan(start=0, version=1), VersionSpan(start=2, version=2))
    """
    spans: list[VersionSpan] = []
    end = start
    for body in bodies:
        version = version_of(body.version)
        if version is None or body.start != end or body.end <= body.start:
            return None
        spans.append(VersionSpan(body.start, version))
        end = body.end
    return tuple(spans) if end == start + tokens else None
