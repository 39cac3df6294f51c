"""Manners of a server, as learned from its refusals: parameters, the form of messages, how many tokens.

A refusal that names a parameter is obeyed once and remembered; one that speaks of messages leads to the next form that servers are
known to want. Nothing is learned unless the request that follows from it is answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.agents.policies.served.written import SILENCES, MessageForm
from turnwise.fault import Blame, FaultCause
from turnwise.tasks.core import Json
from turnwise.tools.dialects.hermes import HERMES

LIMITS = ("max_tokens", "max_completion_tokens")
"""The names under which servers take a limit of tokens."""
OWN_LIMIT = 32_000
"""Tokens that are asked for where a server requires a number: what models that require one write at most, or it says less."""
_KEPT = frozenset({"model", "messages", "tools"})
_DISPENSABLE = ("parallel_tool_calls", "seed", "stream_options", "top_p", "top_k", "stop")
_LIMIT_WANTED = re.compile(
    r"max_tokens[^.]{0,40}(?:required|missing|must be (?:set|specified|provided))|(?:missing|required)[^.]{0,40}max_tokens"
)
_MOST = re.compile(
    r"(?:<=|at most|maximum (?:allowed|of|value)[^0-9]{0,40}|less than or equal to|less than|up to|supports at most|range[^0-9]{0,30}\[?1,|>)\s*([0-9][0-9,_]{0,11})"
)  # fmt: skip
_UNKNOWN = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|extra (?:inputs|fields)|unexpected|not permitted|not supported|not a valid field|property"
)
_NO_TOOLS = re.compile(
    r"tool(?:s| call(?:s|ing)?| choice|_choice)?\b[^.]{0,60}(?:not support|unsupported|not available|requires --|is not enabled)|does not support (?:tools|tool|function)|--jinja"
)
_CONTENT = re.compile(r"content|null|<nil>|none")
_IDS = re.compile(r"(?:tool|function)[ _]?call[ _]id|tool_call_id|call_id|toolcallid")
_ID_FORM = re.compile(r"length|pattern|a-z|format|characters|match|too long")
_SINGLE = re.compile(r"single tool|one tool|multiple tool|parallel (?:tool|function)|only supports single")
_ROLES = re.compile(
    r"\broles?\b[^.]{0,80}(?:alternat|after role)|should alternate|must alternate|unexpected role|conversation roles|consecutive"
)
_NO_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s?[^.]{0,40}(?:not|unsupported)|developer instruction is not enabled"
)


class Manners(NamedTuple):
    """Parameters, limits and forms of messages that a server takes.

    Attributes:
        left_out: parameters and keys of messages that it refuses.
        limit_key: the name of a limit of tokens, where it takes another than it was given.
        needs_limit: it answers no request without one.
        most: tokens that it takes for a limit; 0: nobody knows.
        words_for_tools: tools are described and called in the text.
        form: of messages.
        no_limit: of this request alone: there is less room than the limit.
    """

    left_out: frozenset[str] = frozenset()
    limit_key: str = ""
    needs_limit: bool = False
    most: int = 0
    words_for_tools: bool = False
    form: MessageForm = MessageForm()
    no_limit: bool = False

    def apply(self, asked: Mapping[str, Json]) -> dict[str, Json]:
        """The parameters of a request as the server takes them."""
        sent = {name: value for name, value in asked.items() if name not in self.left_out}
        limit = next((sent.pop(name) for name in LIMITS if name in sent), None)
        if limit is None and self.needs_limit:
            limit = OWN_LIMIT
        if limit is not None and not self.no_limit:
            key = self.limit_key or next((name for name in LIMITS if name in asked), LIMITS[0])
            sent[key] = min(limit, self.most) if self.most and isinstance(limit, int) else limit
        return sent

    def learned(self, other: Manners) -> Manners:
        """These, and what a request that was answered has taught."""
        mine, theirs = self.form, other.form
        form = theirs._replace(
            silence=max(mine.silence, theirs.silence),
            left_out=mine.left_out | theirs.left_out,
            short_ids=mine.short_ids or theirs.short_ids,
            single_calls=mine.single_calls or theirs.single_calls,
            joined=mine.joined or theirs.joined,
            no_system=mine.no_system or theirs.no_system,
        )
        return Manners(
            self.left_out | other.left_out,
            other.limit_key or self.limit_key,
            self.needs_limit or other.needs_limit,
            min(filter(None, (self.most, other.most)), default=0),
            self.words_for_tools or other.words_for_tools,
            form,
        )


def droppable(request: Mapping[str, Json]) -> list[str]:
    """The names in a request that could be left out, the most dispensable first: parameters, and keys that were given back."""
    names = [name for name in _DISPENSABLE if name in request]
    names += [name for name in request if name not in _KEPT and name not in names]
    beside = dict.fromkeys(_given_back(request["messages"]))
    return [*names, *(name for name in beside if name not in names)]


def after_refusal(
    manners: Manners, blame: Blame, request: Mapping[str, Any], unasked: frozenset[str]
) -> Iterator[Manners]:
    """Yield the manners that could be tried after a refusal, the likeliest first.

    Args:
        manners: by which the request was made.
        blame: for its refusal.
        request: as it was sent.
        unasked: parameters of it that nobody asked for.
    """
    words, form = blame.said.lower(), manners.form
    limited = next((name for name in LIMITS if name in request), "")
    if blame.cause is FaultCause.CONTEXT_FULL:
        if limited and not manners.needs_limit:
            yield manners._replace(no_limit=True)
        return
    if blame.cause not in (
        FaultCause.PARAMETER_REFUSED,
        FaultCause.REQUEST_REFUSED,
        FaultCause.SERVER_FAILED,
    ):
        return
    if not limited and _LIMIT_WANTED.search(words):
        yield manners._replace(needs_limit=True)
    if limited and (blame.parameter == limited or (not blame.parameter and limited in words)):
        yield from _other_limit(manners, limited, words, request[limited])
    elif blame.parameter:
        yield _without(manners, blame.parameter)
    if "tools" in request and not manners.words_for_tools and _NO_TOOLS.search(words):
        dialect = form.dialect or HERMES
        yield manners._replace(words_for_tools=True, form=form._replace(dialect=dialect))
    yield from _other_forms(manners, words, request["messages"])
    if blame.cause is not FaultCause.SERVER_FAILED and (unused := unasked & request.keys()):
        yield _without(manners, *unused)


def _without(manners: Manners, *names: str) -> Manners:
    form = manners.form._replace(left_out=manners.form.left_out | {*names})
    return manners._replace(left_out=manners.left_out | {*names}, form=form)


def _other_limit(manners: Manners, limited: str, words: str, value: Json) -> Iterator[Manners]:
    """The limit under its other name, no larger than the server says, or not at all."""
    other = LIMITS[1 - LIMITS.index(limited)]
    most = [int(found.replace(",", "").replace("_", "")) for found in _MOST.findall(words) if found[0] != "_"]
    below = [one for one in most if isinstance(value, int) and 0 < one < value]
    if below:
        yield manners._replace(most=min(below))
    elif other in words or (manners.limit_key != limited and _UNKNOWN.search(words)):
        yield manners._replace(limit_key=other)
    if not manners.needs_limit:
        yield _without(manners, *LIMITS)


def _other_forms(manners: Manners, words: str, messages: Sequence[Mapping[str, Any]]) -> Iterator[Manners]:
    """Other forms of messages that the words of a refusal speak of."""
    form = manners.form
    calls = [message for message in messages if message.get("tool_calls")]
    if calls and not form.short_ids and _IDS.search(words) and _ID_FORM.search(words):
        yield manners._replace(form=form._replace(short_ids=True))
    if not form.single_calls and any(len(one["tool_calls"]) > 1 for one in calls) and _SINGLE.search(words):
        yield manners._replace(form=form._replace(single_calls=True))
    if not form.joined and _ROLES.search(words):
        yield manners._replace(form=form._replace(joined=True))
    if not form.no_system and messages[0]["role"] == "system" and _NO_SYSTEM.search(words):
        yield manners._replace(form=form._replace(no_system=True))
    silent = any(message.get("content") in SILENCES for message in calls)
    if silent and form.silence + 1 < len(SILENCES) and _CONTENT.search(words):
        yield manners._replace(form=form._replace(silence=form.silence + 1))


def _given_back(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Keys of messages and of calls that only their server knows."""
    for message in messages:
        if message["role"] != "assistant":
            continue
        yield from (key for key in message if key not in ("role", "content", "tool_calls"))
        for call in message.get("tool_calls") or ():
            yield from (key for key in call if key not in ("id", "type", "function"))
