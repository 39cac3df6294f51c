"""Options that a caller may give to any policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from turnwise.agents.core import Sampling
from turnwise.agents.tokens.template import check_tools_format
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json


class PolicyOptions(NamedTuple):
    """Options for any policy; a policy ignores those that it cannot use.

    Attributes:
        temperature: 0 is greedy.
        top_p: the share of the probability that is sampled from.
        max_tokens: of one message; 0: as a model was trained, or 256.
        context_length: in tokens; 0: what the model was made for, at most 8192.
        max_sequences: how many an engine decodes at a time.
        seed: of an engine's own chance.
        tools: how tools are shown to a model (``sampling.tools`` of a recipe); "": as it was trained.
        instruction: a text below the first message of every episode (``sampling.instruction`` of a recipe); "": as it was trained.
        template: what a model's chat template is given, such as ``{"enable_thinking": False}``; on top of what it was trained with.
        clock: the time that a chat template is told, as ISO 8601 writes it; "": as the model was trained, or now.
        model: the spec of the policy that a program (``command:``) talks to.
        token_file: holds the token of an engine that runs elsewhere (``remote:``).
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 0
    context_length: int = 0
    max_sequences: int = 64
    seed: int = 0
    tools: str = ""
    instruction: str = ""
    template: Mapping[str, Json] = MappingProxyType({})
    clock: str = ""
    model: str = ""
    token_file: str = ""

    def sampling(self, trained: int = Sampling().max_tokens) -> Sampling:
        """How tokens are drawn of a model that was trained with messages of at most ``trained`` tokens."""
        return Sampling(self.temperature, self.top_p, self.max_tokens or trained)

    def check(self) -> None:
        """Refuse values that are invalid for every policy, even if this one would ignore them.

        Raises:
            TurnwiseError: with what it must be instead.
        """
        if not 0 <= self.temperature < math.inf:
            raise TurnwiseError(f"The temperature is {self.temperature:g}.", "Give 0 (greedy) or more.")
        if self.max_tokens < 0:
            raise TurnwiseError(
                f"max_tokens is {self.max_tokens}.", "Give 1 or more, or 0: as it was trained."
            )
        if self.tools:
            check_tools_format(self.tools)
