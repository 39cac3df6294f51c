"""Decides by evidence whose fault it is that something went wrong; everything that talks to others asks here.

There are four parties. What the *agent* caused is scored: its context is full, its program failed after it acted. What the
*infrastructure* caused, a server, a network or a key, leaves no score and is played again. What the *environment* caused is
its author's. What is *neither* has a name, counts, and is told beside the figures: a reply that a limit cut, a refusal.

Evidence is taken in the order of its strength: the status that a server answers with, its codes and types, and only then its
words, in the forms that servers publish. Nothing here reads more than the first :data:`MOST_READ` characters.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.errors import DeadlineError, InfraError, VerifierError

MOST_READ = 20_000
"""Characters of an error that are looked at."""
_DEEPEST = 8
_SHOWN = 600


class Party(enum.StrEnum):
    """The party whose fault something is."""

    AGENT = "agent"  #                    scored
    INFRASTRUCTURE = "infrastructure"  #  played again, never scored
    ENVIRONMENT = "environment"  #        its author's, never scored
    NEITHER = "neither"  #                counts, and is named beside the figures


class FaultCause(enum.StrEnum):
    """Cause of a failure. The words are those of logs, tables and ``evaluation.json``."""

    CONTEXT_FULL = "context_full"
    CUT_BY_LIMIT = "cut_by_limit"
    THOUGHTS_ATE_BUDGET = "thoughts_ate_budget"
    REFUSED = "refused"
    CONTENT_FILTERED = "content_filtered"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    OUT_OF_CREDIT = "out_of_credit"
    KEY_REFUSED = "key_refused"
    NOT_FOUND = "not_found"
    PARAMETER_REFUSED = "parameter_refused"
    REQUEST_REFUSED = "request_refused"
    SERVER_FAILED = "server_failed"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    NO_COMPLETION = "no_completion"
    PROGRAM_FAILED = "program_failed"
    PROGRAM_NEVER_RAN = "program_never_ran"
    CALL_FAILED = "call_failed"
    ENVIRONMENT_BROKE = "environment_broke"
    JUDGEMENT_FAILED = "judgement_failed"
    WORLD_FAILED = "world_failed"
    POLICY_FAILED = "policy_failed"

    @property
    def party(self) -> Party:
        return _PARTIES.get(self, Party.INFRASTRUCTURE)

    @property
    def passes(self) -> bool:
        """True if the same request may be answered a moment later."""
        return self in _PASSING


_PARTIES = {
    FaultCause.CONTEXT_FULL: Party.AGENT,
    FaultCause.PROGRAM_FAILED: Party.AGENT,
    FaultCause.CALL_FAILED: Party.AGENT,
    FaultCause.ENVIRONMENT_BROKE: Party.ENVIRONMENT,
    FaultCause.JUDGEMENT_FAILED: Party.ENVIRONMENT,
    FaultCause.CUT_BY_LIMIT: Party.NEITHER,
    FaultCause.THOUGHTS_ATE_BUDGET: Party.NEITHER,
    FaultCause.REFUSED: Party.NEITHER,
    FaultCause.CONTENT_FILTERED: Party.NEITHER,
}
_PASSING = frozenset(
    {
        FaultCause.RATE_LIMITED,
        FaultCause.OVERLOADED,
        FaultCause.SERVER_FAILED,
        FaultCause.UNREACHABLE,
        FaultCause.TIMED_OUT,
        FaultCause.NO_COMPLETION,
    }
)


class Blame(NamedTuple):
    """Cause of a fault, and thereby the party to blame, with the words that say so.

    >>> str(of_answer(400, '{"error": {"code": "context_length_exceeded", "message": "Too long."}}'))
    'context_full: Too long.'
    """

    cause: FaultCause
    said: str = ""
    parameter: str = ""  # that a server refuses by its name

    @property
    def party(self) -> Party:
        return self.cause.party

    def __str__(self) -> str:
        return f"{self.cause}: {self.said}" if self.said else str(self.cause)


class _Evidence(NamedTuple):
    """Contents of an error's body: its codes and types, its words, both in lower case, and the places that it names."""

    codes: frozenset[str]
    said: str  # the words as they are written
    words: str
    places: tuple[str, ...]


_CODE_KEYS = frozenset(
    {"code", "type", "status", "reason", "error_type", "errorcode", "error_code", "__type", "status_code", "raw_status_code"}
)  # fmt: skip
_WORD_KEYS = frozenset(
    {"message", "msg", "error", "detail", "raw", "error_message", "reasons", "hint", "title", "body", "status_msg"}
)  # fmt: skip
_PLACE_KEYS = frozenset({"param", "loc", "path", "field", "parameter"})

_FULL_CODES = frozenset(
    {
        "context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "contextwindowexceedederror",
        "model_max_prompt_tokens_exceeded", "tokens_limit_reached", "prompt_too_long", "input_too_long", "max_context_length_exceeded",
        "1261", "request_too_large", "string_above_max_length",
    }
)  # fmt: skip
_FULL_WORDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"context[ _-]?(?:length|window|size|limit)",
        r"maximum (?:model|prompt|input) length",
        r"(?:prompt|input|request|message|conversation)s? (?:is|are|was|were) too (?:long|large)",
        r"(?:prompt|input) exceeds (?:the )?max(?:imum)? (?:length|tokens|number)",
        r"token count[^.]{0,60}exceeds the (?:limit|maximum)",
        r"exceed(?:ed|s)?[^.]{0,20} (?:model )?token limit",
        r"range of input length",
        r"(?:`?inputs`? tokens|input tokens?) ?\+ ?`?max_(?:new_)?tokens",
        r"input and `?max_new_tokens`?",
        r"too large for model with",
        r"too many tokens: ",
        r"reduce the length of (?:the|your) (?:messages|prompt|input)",
        r"input tokens exceed",
        r"max_tokens must be at least 1, got -",
    )
)
_RATE_CODES = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "rate_limited", "too_many_requests", "resource_exhausted", "throttlingexception",
     "throttling", "ratelimiterror", "rate_limit_reached_error", "engine_overloaded_error", "1302", "1305"}
)  # fmt: skip
_RATE_WORDS = re.compile(r"tokens per minute|requests per minute|rate limit|too many requests|per day")
_CREDIT_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error", "payment_required",
     "insufficient_balance", "billing_error", "arrearage", "1113", "insufficient_credits"}
)  # fmt: skip
_CREDIT_WORDS = re.compile(
    r"credit balance|insufficient (?:balance|credits?|quota|funds)|exceeded your current quota"
)
_REFUSAL_CODES = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt", "data_inspection_failed",
     "datainspectionfailed", "prohibited_content", "safety", "moderation", "moderation_error", "content_moderation", "1301", "1026", "1027",
     "guardrail_intervened", "contentfilter", "content_filtered"}
)  # fmt: skip
_REFUSAL_WORDS = re.compile(
    r"content exists risk|usage polic|usage guidelines|content (?:management|filter|safety|moderation) polic|content polic"
    r"|flagged (?:as|by|for)|(?:input|prompt|request|content) (?:was|is|has been) flagged|inappropriate content|considered high risk|blocked by (?:our|the) (?:content|safety)|new_sensitive"
)
_STATUS_OF = {"1002": 429, "1004": 401, "1008": 402, "1039": 429, "1041": 429, "2013": 400, "2049": 401}
"""Status of each number that stands in an answer of status 200 (MiniMax's)."""
_CALL_CODES = frozenset({"tool_use_failed", "malformed_function_call", "tool_call_parse_error"})
_CALL_WORDS = re.compile(
    r"(?:failed to parse|error parsing|could not parse|cannot parse|unable to parse) (?:the )?(?:tool|function)[ _]?calls?"
    r"|failed to call a function"
)
"""Words of servers that cannot read a call which their model has written."""
_OVERLOAD_CODES = frozenset(
    {"overloaded_error", "overloaded", "service_unavailable", "unavailable", "model_overloaded"}
)
_ASKED_AGAIN = frozenset({408, 409, 425})
_BY_REQUEST = frozenset({400, 413, 415, 422})
_WANTED = re.compile(
    r"missing|field required|is required|must be (?:passed|provided|present|preserved)|preserve"
)
"""Words that ask for more, so that what they name must not be left out."""
_REQUEST_WORDS = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|not permitted|not allowed|invalid|cannot"
    r"|must be|must not|should|only|deprecated|does not|is not|isn't|no longer|not available|forbidden|incompatible|exceeds?"
)


def of_answer(
    status: int, body: str | bytes | Mapping[str, Any] | list[Any] | None, *, sent: Sequence[str] = ()
) -> Blame:
    """The blame for an answer of a model's server that is an error.

    Args:
        status: of HTTP; 200 where the error came inside of an answer.
        body: of the answer, in whatever form.
        sent: the names of what was sent and could be left out, the most dispensable first: a refused one is the ``parameter``.
    """
    found = _evidence(body)
    said = _first_words(found.said)
    if status < 400:
        status = next(filter(None, map(_status_of, sorted(found.codes))), status)
    if cause := _by_code(status, found):
        return Blame(cause, said)
    if status == 403 and _REFUSAL_WORDS.search(found.words):
        return Blame(FaultCause.CONTENT_FILTERED, said)
    if status in (401, 403):
        return Blame(FaultCause.KEY_REFUSED, said)
    if status == 404:
        return Blame(FaultCause.NOT_FOUND, said)
    if cause := _by_words(status, found):
        return Blame(cause, said)
    if status in _BY_REQUEST:
        parameter = _parameter(found, sent)
        return Blame(
            FaultCause.PARAMETER_REFUSED if parameter else FaultCause.REQUEST_REFUSED, said, parameter
        )
    if status >= 500 or status in _ASKED_AGAIN:
        overloaded = status in (503, 529) or "overload" in found.words
        return Blame(FaultCause.OVERLOADED if overloaded else FaultCause.SERVER_FAILED, said)
    return Blame(FaultCause.REQUEST_REFUSED if status >= 400 else FaultCause.NO_COMPLETION, said)


def of_exit(code: int, *, acted: bool, replies: int, said: str = "") -> Blame | None:
    """The blame for how an agent's program ended; None: nobody's, it ended by itself.

    A program that acted, or was given a reply, has played: what it did afterwards, its own death included, is the agent's. One
    that did neither never ran, for whatever reason, so that nothing was measured.
    """
    if code == 0:
        return None
    played = acted or replies > 0
    return Blame(
        FaultCause.PROGRAM_FAILED if played else FaultCause.PROGRAM_NEVER_RAN, said or f"exit code {code}"
    )


def of_raised(error: BaseException, *, policy: bool) -> Blame:
    """The blame for an exception: of a policy and its engine, or of an environment.

    An environment says itself where what it runs on failed (``InfraError``) or where it could not judge (``VerifierError``); all
    else that it raises is its author's. Whatever a policy raises left no reply, so that nothing of it can be scored; where a
    server's answer was behind it, that says the cause.

    >>> of_raised(KeyError("shelf"), policy=False).party, of_raised(KeyError("shelf"), policy=True).party
    (<Party.ENVIRONMENT: 'environment'>, <Party.INFRASTRUCTURE: 'infrastructure'>)
    """
    said = _first_words(f"{error}")
    match error:
        case DeadlineError():
            return Blame(FaultCause.TIMED_OUT, said)
        case TimeoutError() if policy:
            return Blame(FaultCause.TIMED_OUT, said)
        case _ if policy:
            blame = getattr(error.__cause__, "blame", None)
            if isinstance(blame, Blame) and blame.party is Party.INFRASTRUCTURE:
                return Blame(blame.cause, said)
            return Blame(FaultCause.POLICY_FAILED, said)
        case VerifierError():
            return Blame(FaultCause.JUDGEMENT_FAILED, said)
        case InfraError():
            return Blame(FaultCause.WORLD_FAILED, said)
        case _:
            return Blame(FaultCause.ENVIRONMENT_BROKE, said)


def of_rpc(said: str, *, silent: bool = False, gone: bool = False) -> Blame:
    """The blame for a call of a tool that its server (JSON-RPC) did not carry out.

    An error that the server answers with is an answer, whatever its code, so the call is at fault; not so where the server was
    ``silent`` until the deadline, or is ``gone``.
    """
    if silent:
        return Blame(FaultCause.TIMED_OUT, said)
    return Blame(FaultCause.UNREACHABLE if gone else FaultCause.CALL_FAILED, said)


def _by_code(status: int, found: _Evidence) -> FaultCause | None:
    """Find the cause that statuses and codes tell by themselves."""
    codes = found.codes
    if codes & _CREDIT_CODES or status == 402:
        return FaultCause.OUT_OF_CREDIT
    if codes & _RATE_CODES and status < 500:
        return FaultCause.RATE_LIMITED
    if status == 429 or (status == 413 and _RATE_WORDS.search(found.words)):
        return FaultCause.OUT_OF_CREDIT if _CREDIT_WORDS.search(found.words) else FaultCause.RATE_LIMITED
    if codes & _FULL_CODES:
        return FaultCause.CONTEXT_FULL
    if codes & _REFUSAL_CODES:
        return FaultCause.CONTENT_FILTERED
    if codes & _CALL_CODES or _CALL_WORDS.search(found.words):
        return FaultCause.CALL_FAILED
    if codes & _OVERLOAD_CODES:
        return FaultCause.OVERLOADED
    return None


def _by_words(status: int, found: _Evidence) -> FaultCause | None:
    """Find the cause that words tell where no code did."""
    if status < 500 and _CREDIT_WORDS.search(found.words):
        return FaultCause.OUT_OF_CREDIT
    if any(pattern.search(found.words) for pattern in _FULL_WORDS) or status == 413:
        return FaultCause.CONTEXT_FULL
    if status < 500 and _REFUSAL_WORDS.search(found.words):
        return FaultCause.CONTENT_FILTERED
    return None


def _status_of(code: str) -> int | None:
    """The status that a code stands for, where an answer of status 200 holds an error."""
    if code.isdecimal() and len(code) == 3 and code >= "400":
        return int(code)
    return _STATUS_OF.get(code)


def _parameter(found: _Evidence, sent: Sequence[str]) -> str:
    """Return the one of the names that were sent that an error refuses; empty where it names none."""
    if _WANTED.search(found.words):
        return ""
    for place in found.places:
        parts = re.split(r"[^\w]+", place)
        for name in sent:
            if name in parts:
                return name
    if not _REQUEST_WORDS.search(found.words):
        return ""
    return next((name for name in sent if _names(found.words, name)), "")


def _names(words: str, name: str) -> bool:
    """Say whether words speak of a parameter, also without its underscores (``presencePenalty``)."""
    said = re.escape(name.lower()).replace("_", "_?")
    return re.search(rf"(?<![a-z0-9_-]){said}(?![a-z0-9_-])", words) is not None


def _evidence(body: str | bytes | Mapping[str, Any] | list[Any] | None) -> _Evidence:
    value: Any = body
    if isinstance(value, bytes):
        value = value[: 4 * MOST_READ].decode("utf-8", "replace")
    if isinstance(value, str):
        value = _read(value)
    codes, words, places = set[str](), list[str](), list[str]()
    for kind, text in _told(value, "message", 0):
        {"code": codes.add, "word": words.append, "place": places.append}[kind](text)
    whole = " ".join(words)[:MOST_READ]
    return _Evidence(frozenset(code.lower() for code in codes), whole, whole.lower(), tuple(places))


def _read(text: str) -> Any:
    try:
        return json.loads(text[: 4 * MOST_READ])
    except (ValueError, RecursionError):
        return text[:MOST_READ]


def _told(value: Any, key: str, depth: int) -> Iterator[tuple[str, str]]:
    """The codes, words and places in an error's body, wherever they stand in it."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, inside in value.items():
            yield from _told(inside, str(name).lower(), depth + 1)
    elif isinstance(value, list):
        if key in _PLACE_KEYS:
            yield "place", ".".join(map(str, value[:20]))
            return
        for inside in value[:100]:
            yield from _told(inside, key, depth + 1)
    elif isinstance(value, str) and value:
        yield from _text(value[:MOST_READ], key, depth)
    elif isinstance(value, int) and not isinstance(value, bool) and key in _CODE_KEYS:
        yield "code", str(value)


def _text(value: str, key: str, depth: int) -> Iterator[tuple[str, str]]:
    if key in _PLACE_KEYS:
        yield "place", value
    elif key in _CODE_KEYS and len(value) <= 80:
        yield "code", value
        if " " in value:
            yield "word", value
    elif key in _WORD_KEYS:
        inner = (
            _read(value) if value.lstrip()[:1] in ("{", "[") else value
        )  # a proxy that quotes what it was told
        if isinstance(inner, str):
            yield "word", inner
        else:
            yield from _told(inner, key, depth + 1)


def _first_words(words: str) -> str:
    said = " ".join(words.split())
    return said if len(said) <= _SHOWN else f"{said[: _SHOWN - 1]}…"
