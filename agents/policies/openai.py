"""Any OpenAI-compatible server, by its address."""

from __future__ import annotations

from turnwise.agents.core import Policy
from turnwise.agents.policies.options import PolicyOptions
from turnwise.registry import component


@component("policy", "openai", form="openai:MODEL@URL")
def openai(target: str, options: PolicyOptions) -> Policy:
    """Any OpenAI-compatible server (OPENAI_API_KEY)."""
    from turnwise.agents.policies.served.policy import OpenAIPolicy

    model, _, url = target.partition("@")
    return OpenAIPolicy(model, url, sampling=options.sampling(), instruction=options.instruction)
