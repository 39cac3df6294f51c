"""Options that a caller may give to any policy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from turnwise.agents.contexts.core import make_context
from turnwise.agents.core import Sampling
from turnwise.agents.tokens.template import check_tools_format
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Json

_LIMITS = ("max_tokens", "max_completion_tokens")


class PolicyOptions(NamedTuple):
    """Options for any policy; a policy ignores those that it cannot use.

    A model's server is sent what is given here and nothing else; for models that are sampled from here, what is left out has a
    default.

    Attributes:
        temperature: 0 is greedy; None: 1, or as a server chooses.
        top_p: the share of the probability that is sampled from; None: all, or as a server chooses.
        max_tokens: of one message; 0: as a model was trained, or 256, or as many as a server gives.
        max_completion_tokens: the same under the name that some servers want.
        reasoning_effort: of a server's model, such as ``low``.
        parallel_tool_calls: whether a server's model may make several calls at once; None: not where a turn takes one.
        extra_body: further keys of each request to a server, such as ``{"seed": "auto"}``.
        price: of a million tokens, ``PROMPT/COMPLETION``, where a server tells no cost.
        context_length: in tokens; 0: what the model was made for, at most 8192.
        max_sequences: how many an engine decodes at a time.
        seed: of an engine's own chance.
        tools: how tools are shown to a model (``sampling.tools`` of a recipe); "": as it was trained.
        instruction: a text below the first message of every episode (``sampling.instruction`` of a recipe); "": as it was trained.
        template: what a model's chat template is given, such as ``{"enable_thinking": False}``; on top of what it was trained with.
        context: the context manager that chooses what of a long conversation a model is shown, its ``name`` and options; {}: as it
            was trained, or all of it.
        clock: the time that a chat template is told, as ISO 8601 writes it; "": as the model was trained, or now.
        model: the spec of the policy that a program (``command:``) talks to.
        token_file: holds the token of an engine that runs elsewhere (``remote:``).
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 0
    max_completion_tokens: int = 0
    reasoning_effort: str = ""
    parallel_tool_calls: bool | None = None
    extra_body: Mapping[str, Json] = {}
    price: str = ""
    context_length: int = 0
    max_sequences: int = 64
    seed: int = 0
    tools: str = ""
    instruction: str = ""
    template: Mapping[str, Json] = MappingProxyType({})
    context: Mapping[str, Json] = MappingProxyType({})
    clock: str = ""
    model: str = ""
    token_file: str = ""

    def sampling(self, trained: int = Sampling().max_tokens) -> Sampling:
        """Return the sampling of a model that was trained with messages of at most ``trained`` tokens."""
        asked = {"temperature": self.temperature, "top_p": self.top_p}
        limit = self.max_tokens or self.max_completion_tokens or trained
        given = {name: value for name, value in asked.items() if value is not None}
        return Sampling(max_tokens=limit, **given)

    def request(self) -> dict[str, Json]:
        """The keys of a request to a server that are asked for."""
        names = ("temperature", "top_p", *_LIMITS, "reasoning_effort", "parallel_tool_calls")
        asked = {name: getattr(self, name) for name in names}
        given = {name: value for name, value in asked.items() if value is not None and value not in (0, "")}
        zero = {"temperature": 0.0} if self.temperature == 0 else {}
        no = {"parallel_tool_calls": False} if self.parallel_tool_calls is False else {}
        return {**given, **zero, **no, **self.extra_body}

    def check(self) -> None:
        """Refuse values that are invalid for every policy, even if this one would ignore them.

        Raises:
            TurnwiseError: with what it must be instead.
        """
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise TurnwiseError(f"The temperature is {self.temperature:g}.", "Give 0 (greedy) or more.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise TurnwiseError(f"top_p is {self.top_p:g}.", "Give more than 0, and 1 at most.")
        for name in _LIMITS:
            if getattr(self, name) < 0:
                raise TurnwiseError(
                    f"{name} is {getattr(self, name)}.", "Give 1 or more, or 0: as it was trained."
                )
        if self.max_tokens and self.max_completion_tokens:
            raise TurnwiseError(
                "max_tokens and max_completion_tokens are both given.",
                "They are two names of one limit: give one.",
            )
        _check_extra_body(self.extra_body)
        if self.tools:
            check_tools_format(self.tools)
        make_context(self.context)


def options_of(given: Mapping[str, Any]) -> PolicyOptions:
    """The options of these names, checked.

    Raises:
        TurnwiseError: a name is none, or a value is invalid.
    """
    for name in given:
        if name not in PolicyOptions._fields:
            raise NotFoundError("option of a policy", name, PolicyOptions._fields)
    options = PolicyOptions(**given)
    options.check()
    return options


def _check_extra_body(given: Any) -> None:
    try:
        text = json.dumps(given, allow_nan=False) if isinstance(given, Mapping) else ""
    except (TypeError, ValueError):
        text = ""
    if not text:
        raise TurnwiseError(f"extra_body is {given!r:.80}.", 'Give keys with values of JSON, {"KEY": VALUE}.')
    if taken := {"model", "messages", "tools"} & {*given}:
        raise TurnwiseError(
            f"extra_body has {', '.join(sorted(taken))}, which Turnwise writes itself.", "Leave it out."
        )
    if given.get("stream") or given.get("n", 1) != 1:
        raise TurnwiseError(
            "extra_body asks for a stream, or for several replies.", "One whole reply is read: leave it out."
        )
