"""One reply of the policy to a conversation that a client tells: the tokens that stand are kept, new ones are appended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeGuard

from turnwise.agents.core import (
    PREVIOUS,
    ROOT,
    Engine,
    History,
    Policy,
    Reply,
    Sampling,
    Served,
    Usage,
)
from turnwise.agents.gateway.core import ChatRequest, FixedSampling, RefusedError
from turnwise.agents.gateway.refusals import context_full
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool

SHORT = 1 << 16
"""Letters that are tokenised without asking whether they could fit."""
PICTURE = 1000
"""Tokens that a picture is told to be, where nobody here knows."""
MOST_PARTS = 50_000
"""Messages, calls and tools of a conversation, whoever reads it."""
LARGEST_REPLY = 1 << 22
"""Letters of a reply."""


class TokenPolicy(Protocol):
    """A policy that samples tokens (:class:`turnwise.agents.policies.model.ModelPolicy`)."""

    name: str
    engine: Engine
    renderer: Renderer
    sampling: Sampling

    async def reply(
        self, history: History, prompt: Sequence[int], kept: Sequence[int], max_tokens: int | None = None
    ) -> Reply: ...


def samples_tokens(policy: Policy | TokenPolicy) -> TypeGuard[TokenPolicy]:
    """Return whether a policy is a :class:`TokenPolicy`; :func:`isinstance` looks at all of a protocol's names for each
    request."""
    return all(hasattr(policy, name) for name in ("engine", "renderer", "sampling", "reply"))


class WishfulPolicy(Protocol):
    """A policy that tells its server what an agent asks for (:class:`turnwise.agents.policies.served.policy.OpenAIPolicy`)."""

    async def act(self, history: History, wishes: Mapping[str, Json] | None = None) -> Reply: ...


def takes_wishes(policy: Policy | WishfulPolicy) -> TypeGuard[WishfulPolicy]:
    """Return whether a policy is a :class:`WishfulPolicy`."""
    return getattr(policy, "takes_wishes", False) is True


@dataclass(slots=True)
class Call(History):
    """A request as policies see one: a history that consists of what the client tells, with the client's tools."""

    offered: tuple[Tool, ...] = ()

    @property
    def tools(self) -> Sequence[Tool]:
        return self.offered

    @property
    def calls_per_turn(self) -> int | None:
        return None


class SampledNode(NamedTuple):
    """A sampled reply in the tree of a session.

    Attributes:
        place: of the reply among the messages of its conversation.
        reply: with the tokens that it adds to those of its parent.
        parent: the reply whose tokens it extends; None: it began a row of tokens.
    """

    place: int
    reply: Reply
    parent: SampledNode | None

    def token_ids(self) -> list[int]:
        """All tokens of its row, from the first to the last one that was sampled."""
        found: list[int] = []
        for node in reversed(self.chain()):
            found += (*node.reply.prompt_ids, *node.reply.action_ids)
        return found

    def chain(self) -> list[SampledNode]:
        """The replies of its row, the newest first."""
        nodes: list[SampledNode] = [self]
        while (parent := nodes[-1].parent) is not None:
            nodes.append(parent)
        return nodes


class Drawn(NamedTuple):
    """A reply, what the client is told about it, and whether it goes on with the tokens of the node that was given."""

    reply: Reply
    served: Served
    extends: bool


def sampled_by(policy: Policy) -> FixedSampling:
    """Return the settings with which a policy samples, as far as clients must know."""
    if not samples_tokens(policy):
        return FixedSampling(hands_on=takes_wishes(policy))
    return FixedSampling(policy.sampling.temperature, policy.sampling.top_p)


class WrittenPrompt(NamedTuple):
    """A prompt in tokens: those that are new, all of them, and whether they go on with those of the node that was given."""

    new: tuple[int, ...]
    whole: Sequence[int]
    extends: bool


def written_prompt(policy: Policy, asked: ChatRequest, base: SampledNode | None) -> WrittenPrompt:
    """The prompt of a request, after the tokens of ``base`` where the chat template leaves them as they are.

    Raises:
        RefusedError: the template refuses the conversation.
    """
    if not samples_tokens(policy):
        return WrittenPrompt((), (), base is not None)
    new, extends = _prompt(policy.renderer, asked, base)
    return WrittenPrompt(new, [*base.token_ids(), *new] if base is not None and extends else [*new], extends)


async def draw(policy: Policy, call: Call, asked: ChatRequest, prompt: WrittenPrompt) -> Drawn:
    """Let the policy reply to a prompt.

    Raises:
        RefusedError: the context is full.
    """
    if not samples_tokens(policy):
        reply = await (policy.act(call, asked.wishes) if takes_wishes(policy) else policy.act(call))
        if len(reply.message.content) > LARGEST_REPLY:
            raise ValueError(f"the policy's reply has {len(reply.message.content):,} letters")
        return Drawn(reply, reply.served, prompt.extends)
    length = len(prompt.whole)
    reply = await policy.reply(call, prompt.whole, prompt.whole, asked.max_tokens)
    if reply.end is not None:
        raise context_full(length, policy.engine.context_length)
    served = reply.served._replace(usage=Usage(length, len(reply.action_ids)))
    parent = PREVIOUS if prompt.extends else ROOT
    return Drawn(reply._replace(prompt_ids=prompt.new, parent=parent), served, prompt.extends)


def check_readable(policy: Policy, asked: ChatRequest) -> None:
    """Refuse a conversation that the policy cannot read, before time is spent on its tokens.

    Raises:
        RefusedError: it has pictures, and the policy samples from tokens of text; it has more parts than any has; or more
            tokens than the context has room for, were all its letters in the longest ones, and each part at least one.
    """
    parts = len(asked.messages) + len(asked.tools) + sum(len(one.tool_calls) for one in asked.messages)
    if parts > MOST_PARTS:
        why = f"A conversation may have {MOST_PARTS:,} messages, calls and tools, and this one has {parts:,}."
        raise RefusedError(400, "context_length_exceeded", why, param="messages")
    if not samples_tokens(policy):
        return
    if any(message.images for message in asked.messages):
        why = f"{policy.name} reads tokens of text and cannot see pictures. A model that does is served by openai:MODEL@URL."
        raise RefusedError(400, "unsupported_parameter", why, param="messages")
    length = policy.engine.context_length
    if parts > length:
        raise context_full(parts, length)
    letters = sum(map(letters_of, asked.messages))
    letters += sum(len(tool.spec.description) + _letters(tool.spec.parameters) for tool in asked.tools)
    least = letters // policy.renderer.longest_token if letters > SHORT else 0
    if least > length:
        raise context_full(least, length)


def letters_of(message: Message) -> int:
    """Letters of a message and of its calls' arguments; a picture's bytes count as letters."""
    calls = sum(_letters(call.arguments) for call in message.tool_calls)
    return len(message.content) + calls + sum(len(image.data) for image in message.images)


def _letters(value: Json) -> int:
    """Letters of the words in a value; every other value counts as one."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return 1 + sum(len(key) + _letters(one) for key, one in value.items())
    return 1 + sum(map(_letters, value)) if isinstance(value, list) else 1


def count(policy: Policy, asked: ChatRequest) -> int:
    """The tokens of a prompt; of a policy without tokens, four characters count as one, and a picture as :data:`PICTURE`.

    Raises:
        RefusedError: as :func:`check_readable` does.
    """
    check_readable(policy, asked)
    if not samples_tokens(policy):
        pictures = sum(len(message.images) for message in asked.messages)
        words = sum(letters_of(replace(message, images=())) for message in asked.messages)
        return words // 4 + 1 + pictures * PICTURE
    return len(_prompt(policy.renderer, asked, None)[0])


def _prompt(renderer: Renderer, asked: ChatRequest, base: SampledNode | None) -> tuple[tuple[int, ...], bool]:
    """The tokens that are new, and whether they extend those of ``base``."""
    try:
        if base is None:
            return renderer.start(asked.messages, asked.tools), False
        messages = _as_sampled(asked.messages, base)
        said = base.reply.action_ids
        extension = renderer.extend(
            messages, len(messages) - base.place - 1, said[-1] if said else None, asked.tools
        )
    except TurnwiseError as error:
        raise RefusedError(400, "invalid_messages", f"{error.cause} {error.remedy}") from None
    except (TypeError, AttributeError, KeyError, ValueError) as error:  # a tool's schema that is none
        raise RefusedError(
            400, "invalid_tools", f"The conversation cannot be rendered: {error!r:.200}"
        ) from None
    return extension.ids, not extension.fresh


def _as_sampled(messages: Sequence[Message], base: SampledNode) -> list[Message]:
    """The conversation with the replies as they were sampled: clients trim white space."""
    found = [*messages]
    for node in base.chain():
        found[node.place] = node.reply.message
    return found
