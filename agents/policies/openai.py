"""Any OpenAI-compatible server, by its address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from turnwise.agents.contexts.core import make_context
from turnwise.agents.core import Policy
from turnwise.agents.policies.options import PolicyOptions
from turnwise.errors import TurnwiseError
from turnwise.registry import component

if TYPE_CHECKING:
    from turnwise.agents.policies.served.policy import Price

_ADDRESS = re.compile(r"@(?=https?://|\$\{)")  # names of models may hold an @


@component("policy", "openai", form="openai:MODEL@URL", told_context=True)
def openai(target: str, options: PolicyOptions) -> Policy:
    """Any OpenAI-compatible server (OPENAI_API_KEY)."""
    from turnwise.agents.policies.served.policy import OpenAIPolicy

    model, *rest = _ADDRESS.split(target, maxsplit=1)
    if not rest and "@" in target:
        model, _, url = target.rpartition("@")
        rest = [url]
    return OpenAIPolicy(
        model,
        *rest,
        request=options.request(),
        tools=options.tools,
        instruction=options.instruction,
        price=_price(options.price),
        context=make_context(options.context),
    )


def _price(said: str) -> Price | None:
    from turnwise.agents.policies.served.policy import Price

    if not said:
        return None
    try:
        prompt, completion = map(float, said.split("/"))
        if not (prompt >= 0 and completion >= 0):
            raise ValueError
    except ValueError:
        raise TurnwiseError(
            f"The price {said!r} cannot be read.",
            "Write PROMPT/COMPLETION for a million tokens, such as 0.25/2.",
        ) from None
    return Price(prompt, completion)
