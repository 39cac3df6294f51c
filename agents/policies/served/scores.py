"""Log-probabilities as servers tell them: of the first token of an answer, and of a given reply (vLLM's ``prompt_logprobs``)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from turnwise.agents.core import SURE
from turnwise.agents.policies.scoring import NEITHER, YesNo
from turnwise.errors import EngineError
from turnwise.tasks.core import Json

LISTED = 20
"""Tokens that are asked for; servers list no more."""
FIRST: Mapping[str, Json] = {"logprobs": True, "top_logprobs": LISTED, "max_tokens": 1}
"""Keys with which the likeliest first tokens of an answer are asked for."""
NEXT: Mapping[str, Json] = {**FIRST, "add_generation_prompt": False, "continue_final_message": True}
"""The same of the next token of an answer that is the prompt's last message, and goes on."""
OPENED: Mapping[str, Json] = {"prompt_logprobs": 0, "max_tokens": 1, "add_generation_prompt": True}
"""Keys with which the tokens of a prompt are asked for, up to where the answer begins."""
WHOLE: Mapping[str, Json] = {**OPENED, "add_generation_prompt": False}
"""The same where the answer is the prompt's last message."""


def yes_no_of(answer: Any, name: str) -> YesNo:
    """Chances that an answer begins with yes and with no, by the tokens that the server lists in its first place.

    A word that is not listed is at most as likely as the last that is.

    >>> told = {"content": [{"top_logprobs": [{"token": "Yes", "logprob": -0.25}, {"token": " YES", "logprob": -3.0}, {"token": "So", "logprob": -4.0}]}]}
    >>> found = yes_no_of({"choices": [{"logprobs": told}]}, "it")
    >>> round(found.yes, 4), found.no
    (-0.188, -4.0)

    Raises:
        EngineError: it tells none.
    """
    try:
        listed = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        said = [(str(one["token"]).strip().lower(), _logp(one)) for one in listed]
    except (LookupError, TypeError, ValueError):
        said = []
    if not said:
        raise refusal(name, "the likeliest tokens (logprobs, top_logprobs)")
    yes, no = (_either([x for word, x in said if word == wanted]) for wanted in ("yes", "no"))
    if max(yes, no) == -math.inf:
        return NEITHER
    least = min(x for _, x in said)
    return YesNo(max(yes, least), max(no, least))


def _logp(told: Any) -> float:
    logp = float(told["logprob"])
    if not -math.inf < logp <= SURE:
        raise ValueError(f"{logp} is no log-probability")
    return logp


def _either(logps: Iterable[float]) -> float:
    chance = sum(map(math.exp, logps))
    return math.log(chance) if chance else -math.inf


def prompt_logps(answer: Any, name: str) -> list[float]:
    """The log-probability of each token of a prompt but the first, as vLLM tells them.

    >>> prompt_logps({"prompt_logprobs": [None, {"7": {"logprob": -0.5}}, {"9": {"logprob": -2}}]}, "it")
    [-0.5, -2.0]

    Raises:
        EngineError: it tells none.
    """
    try:
        told: list[float] = []
        for place in answer["prompt_logprobs"][1:]:
            (only,) = place.values()
            told.append(_logp(only))
    except (LookupError, TypeError, ValueError, AttributeError):
        told = []
    if not told:
        raise refusal(name, "log-probabilities of a prompt (prompt_logprobs, which vLLM has)")
    return told


def refusal(name: str, what: str) -> EngineError:
    """The error of a server that does not tell this."""
    return EngineError(
        f"{name} does not tell {what}.",
        "Use a server that does (vLLM), a model that is sampled here (torch:PATH, vllm:PATH), or a judge that is asked in words.",
    )
