"""Decides what a client is told that gets no reply: what it asked for or wrote is refused (4xx), anything else is our failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from turnwise.agents.core import Finish, Reply
from turnwise.agents.gateway.core import RefusedError
from turnwise.errors import EngineError, PictureError, WishRefusedError
from turnwise.fault import Blame, FaultCause
from turnwise.secrets import redact

_OF_THE_REQUEST = (FaultCause.REQUEST_REFUSED, FaultCause.PARAMETER_REFUSED)


def context_full(tokens: int, length: int) -> RefusedError:
    """The refusal of a prompt for which there is no room; OpenAI's and Anthropic's programs know the words."""
    said = f"prompt is too long: {tokens} tokens, and this model's maximum context length is {length} tokens."
    return RefusedError(400, "context_length_exceeded", said, param="messages")


def not_answered(reply: Reply) -> RefusedError:
    """The refusal of a conversation to which the policy's server has no reply: its context is full, or it was filtered."""
    served = reply.served
    if served.finish is Finish.CONTENT_FILTER:
        why = f"The policy's server filtered this conversation: {served.refusal or 'it says no more'}"
        return RefusedError(400, "content_filter", redact(why), param="messages")
    said = f"prompt is too long for this model's maximum context length: {served.said or 'its server says no more'}"
    return RefusedError(400, "context_length_exceeded", redact(said), param="messages")


class Pictures(NamedTuple):
    """Number of pictures in a conversation, and of those among them that the environment did not show."""

    all: int
    own: int


def of_the_client(error: Exception, pictures: Callable[[], Pictures]) -> RefusedError | None:
    """The refusal of what the policy's server does not take of a request; None: the client is not to blame for the error.

    Were it an infrastructure failure, an agent could leave an episode out of the score by a request that no server takes.

    Args:
        error: of the policy.
        pictures: in the conversation; whoever passes on the environment's alone is not to blame for what a server makes of them.
    """
    if not isinstance(error, EngineError):
        return None
    said, blame = redact(error.cause), getattr(error.__cause__, "blame", None)
    if isinstance(error, PictureError):
        return RefusedError(400, "invalid_image", said, param="messages") if pictures().own else None
    if isinstance(error, WishRefusedError):
        return RefusedError(400, "unsupported_parameter", said, param=error.parameter)
    if not isinstance(blame, Blame) or blame.cause not in _OF_THE_REQUEST:
        return None
    seen = pictures()
    return None if seen.all and not seen.own else RefusedError(400, "invalid_request", said)
