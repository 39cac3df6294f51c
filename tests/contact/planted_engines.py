"""Faults of engines that sample, and of models in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from blame import Fault

from turnwise.agents.core import Completion, Sampling, VersionSpan
from turnwise.agents.models.small import train_tokenizer
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.errors import EngineError

CALL = f"<tool_call>\n{json.dumps({'name': 'look', 'arguments': {'place': 'ledger'}})}\n</tool_call>"
Change = Callable[[Completion], Completion]


def renderer() -> Renderer:
    """A small tokenizer with a chat template."""
    texts = ["You keep a desk. Look into the ledger, a drawer, a red key. Use the tools.", CALL] * 4
    return Renderer(train_tokenizer(texts, vocab_size=512, context=1 << 14))


class FaultyEngine:
    """Says a call at first, and then whatever its fault makes of a reply."""

    def __init__(self, renderer: Renderer, fault: Any) -> None:
        self.renderer, self.fault = renderer, fault
        self.context_length = 700 if fault == "small context" else 1 << 14
        self.version, self.asked = 1, 0

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        self.asked += 1
        later = self.asked > 1
        text = self.fault if later and isinstance(self.fault, str) else CALL
        text = "so " * 4000 if text == "small context" else text
        ids = (
            *self.renderer.tokenizer(text, add_special_tokens=False)["input_ids"],
            self.renderer.stop_ids[0],
        )
        ids = tuple(ids[: sampling.max_tokens])
        done = Completion(ids, (-0.5,) * len(ids), ids[-1] in stop_ids, (VersionSpan(0, self.version),))
        if not later or isinstance(self.fault, str):
            return done
        if isinstance(self.fault, BaseException):
            raise self.fault
        if self.fault is None:
            await asyncio.sleep(60)
            return done
        return self.fault(done)

    def close(self) -> None:
        """Nothing is held."""


def policy(fault: Fault, made: Renderer) -> ModelPolicy:
    """A policy whose engine has the fault."""
    return ModelPolicy(FaultyEngine(made, fault.how), made, Sampling(1.0, 1.0, 120), name="small")


def logprob(value: float) -> Change:
    """The second token's log-probability is this."""
    return lambda done: done._replace(logprobs=(done.logprobs[0], value, *done.logprobs[2:]))


def token(value: int) -> Change:
    """The second token is this."""
    return lambda done: done._replace(token_ids=(done.token_ids[0], value, *done.token_ids[2:]))


LIES = "small|engine|log.?prob|token"
FAULTS = [
    Fault("an engine's own error", "server", EngineError("The engine has lost its GPU.", "Restart it."), "lost its GPU"),
    Fault("an error of its library", "server", RuntimeError("CUDA error: device-side assert triggered"), "CUDA"),
    Fault("an engine that died", "server", ConnectionResetError("engine process died"), "died"),
    Fault("an engine without memory", "server", MemoryError("out of memory"), "memory"),
    Fault("an engine that never answers", "server", None, "more than|time|deadline"),
    Fault("a log-probability that is NaN", "server", logprob(float("nan")), LIES),
    Fault("a log-probability above 0", "server", logprob(0.5), LIES),
    Fault("a log-probability of infinity", "server", logprob(float("inf")), LIES),
    Fault("a log-probability of minus infinity", "server", logprob(float("-inf")), LIES),
    Fault("a token that there is not", "server", token(10**9), LIES),
    Fault("a token below 0", "server", token(-1), LIES),
    Fault("fewer log-probabilities than tokens", "server", lambda done: done._replace(logprobs=done.logprobs[:-1]), LIES),
    Fault("more tokens than were asked for", "server", lambda done: done._replace(token_ids=(5,) * 300, logprobs=(-1.0,) * 300), LIES),
    Fault("no tokens at all", "server", lambda done: done._replace(token_ids=(), logprobs=()), LIES),
    Fault("a model that babbles", "agent", "the red key is in the ledger so it is"),
    Fault("a model that says nothing", "agent", ""),
    Fault("a model that is cut each time", "neither", "so " * 400, "length|limit|cut|budget"),
    Fault("a context that the model has filled", "agent", "small context"),
]  # fmt: skip
"""How: an error, what becomes of a completion, a text that the model says from then on, or None: nothing comes."""
