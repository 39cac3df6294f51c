"""Messages ⇄ tokens, for any tokeniser with a chat template (T1, T2).

The tokens that the policy sampled are kept as they are. A new observation becomes tokens that are
appended to them; nothing that stands is tokenised again. Where a template would rewrite what stands
(Qwen3 drops the thoughts of earlier turns, Mistral moves the system message), the conversation is
rendered anew and says so. Structure that a template writes as ordinary text, without tokens of its own,
can be imitated by data; nothing on the token level can prevent that, so a warning tells of it.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from turnwise.agents.contexts.core import Look, TokenCounter
from turnwise.agents.tokens.encoding import MOST_KEPT, ControlToken, Encoder, plain
from turnwise.agents.tokens.frames import TailFrames
from turnwise.agents.tokens.growing import GrowingChat
from turnwise.agents.tokens.telling import told_below
from turnwise.agents.tokens.template import SENTINEL, Chat, ChatTemplate, Entry, ToolsFormat, template_source
from turnwise.envs.messages import Message
from turnwise.text_cache import TextCache
from turnwise.tools.core import Tool, ToolCall
from turnwise.tools.thoughts import closing, ends_a_tag, left_open

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_logger = logging.getLogger(__name__)
_OPENING = (Message("user", "x"),)
MOST_SIZES = 8192
"""Texts whose numbers of tokens are kept."""
_LONGEST_OPENING = 32
"""Tokens at the end of a prompt among which the opening tag of a thought is looked for."""


class Extension(NamedTuple):
    """Tokens to be appended to what stands or, if ``fresh``, to replace it."""

    ids: tuple[int, ...]
    fresh: bool = False


class Renderer:
    """Turns conversations into tokens and replies into messages.

    Args:
        tokenizer: a Hugging Face tokeniser with a ``tokenizers`` backend and a chat template.
        tools_format: how tools are described and called.
        options: passed to the template, such as ``{"enable_thinking": False}``.
        instruction: a text that stands below the first message of every conversation.
        ends: further tokens with which the model ends a reply (:func:`turnwise.agents.models.vocabulary.end_ids`). Those that
            are no added tokens of the tokeniser are the defaults of a config, and count for nothing.
        clock: the time that the template is told, whenever it asks; when the renderer was made, unless given.
        context: decides what of a conversation a policy is shown; all of it unless given.

    Attributes:
        stop_ids: tokens that end a reply: end of text, the template's end of turn, and ``ends``.
        append_only: the template never rewrites (as far as trials show), so the cost of a turn
            does not grow with the conversation.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        *,
        tools_format: ToolsFormat = "auto",
        options: Mapping[str, Any] | None = None,
        instruction: str = "",
        ends: Collection[int] = (),
        clock: datetime | None = None,
        context: Look | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.instruction = instruction
        self.context = context
        self.encoder = Encoder(tokenizer, template_source(tokenizer))
        self.clock = clock or datetime.now()
        self.template = ChatTemplate(tokenizer, self.encoder, tools_format, options or {}, self.clock)
        self._starts = TextCache[tuple[tuple[Message, ...], int], tuple[Sequence[Tool], tuple[int, ...]]](
            MOST_KEPT
        )
        self._end, self._end_inside = self._find_end()
        stops = {*ends} & tokenizer.added_tokens_decoder.keys()
        self._call_ends = self._find_call_ends()
        stops |= {one.id for one in (self._end, *self._call_ends) if one}
        if isinstance(tokenizer.eos_token_id, int):
            stops.add(tokenizer.eos_token_id)
        self.stop_ids: tuple[int, ...] = tuple(sorted(stops))
        _tell_of_imitable_roles(
            str(tokenizer.name_or_path or type(tokenizer).__name__), self.template.imitable()
        )
        self._opened = self.template.render(_OPENING)
        self.append_only = all(map(self._leaves_alone, _trials()))
        self._frames = TailFrames(self.template, template_source(tokenizer), self._continued)

    @functools.cached_property
    def longest_token(self) -> int:
        """Letters of the longest token, or a few more: a text of n letters is at least n / longest_token tokens."""
        return max(map(len, self.tokenizer.get_vocab()))

    @functools.cached_property
    def most_tokens(self) -> int:
        """A bound on how many tokens a model with this tokeniser has: models pad their tables, and none doubles it."""
        return 2 * (max(self.tokenizer.get_vocab().values()) + 1)

    @functools.cached_property
    def opening(self) -> tuple[int, ...]:
        """The tokens with which every prompt ends: the template's, after the last message."""
        one, other = (
            self.encoder.encode(self.template.render([Message("user", word)], ())) for word in ("a", "b")
        )
        same = itertools.takewhile(
            lambda pair: pair[0] == pair[1], zip(reversed(one), reversed(other), strict=False)
        )
        return tuple(token for token, _ in same)[::-1]

    @functools.cached_property
    def measure(self) -> TokenCounter:
        """Counts tokens for a context manager. A message's are those that it adds to a conversation, up to a few."""
        return TokenCounter(lambda messages: sum(map(self._size, messages)), self._frame)

    def _size(self, message: Message) -> int:
        text = message.content + "".join(
            f"{call.name}{json.dumps(dict(call.arguments))}" for call in message.tool_calls
        )
        return self._sizes(text) + self._around * (1 + len(message.tool_calls))

    @functools.cached_property
    def _sizes(self) -> Callable[[str], int]:
        """The tokens of a text; conversations are told again in every turn, so that some are kept."""
        return functools.lru_cache(MOST_SIZES)(
            lambda text: len(self.encoder.encode_after(self.encoder.guard(text)))
        )

    @functools.cached_property
    def _around(self) -> int:
        """Tokens that the template writes around a message."""
        talk = (*_OPENING, Message("assistant", "x"), *_OPENING)
        added = len(self._started(talk, ())) - len(self._started(_OPENING, ()))
        return -(-(added - 2 * self._sizes("x")) // 2)

    @functools.cached_property
    def _frame(self) -> Callable[[Sequence[Tool]], int]:
        """The tokens of a prompt that are of no message."""
        kept: dict[str, int] = {}

        def frame(tools: Sequence[Tool]) -> int:
            key = json.dumps([one.spec.to_json() for one in tools])
            if key not in kept:
                kept[key] = max(len(self._started(tuple(told_below(_OPENING, self.instruction)), tools)), 1)
            return kept[key]

        return frame

    @property
    def ends(self) -> str:
        """The tokens that end a reply, in words."""
        return " or ".join(str(self.tokenizer.convert_ids_to_tokens(one)) for one in self.stop_ids)

    def start(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), kept: GrowingChat | None = None
    ) -> tuple[int, ...]:
        """Tokens of a whole conversation, up to where the policy's reply begins; ``kept`` as in :meth:`extend`."""
        told = told_below(messages, self.instruction)
        if kept is None:
            return self._started(tuple(told), tools)
        known, kept.encoded = kept.encoded, None  # it is used up
        kept.encoded = self.encoder.encode_on(kept.begin(told, tools), known)
        return tuple(kept.encoded.ids)

    def _started(self, told: tuple[Message, ...], tools: Sequence[Tool]) -> tuple[int, ...]:
        """Tokens of a whole conversation; those of a first prompt, which a group shares, are made once."""
        lasting = isinstance(tools, tuple) and not any(message.tool_calls for message in told)
        key = (told, id(tools))
        if lasting and (known := self._starts.get(key)) is not None and known[0] is tools:
            return known[1]
        text = self.template.render(told, tools)
        ids = tuple(self.encoder.encode(text))
        if lasting:
            self._starts.keep(key, (tools, ids), len(text))
        return ids

    def instructed(self, instruction: str) -> Renderer:
        """The same renderer with another instruction."""
        other = copy.copy(self)
        other.instruction = instruction
        return other

    def conversation(self, known: object) -> GrowingChat | None:
        """Return the state of a conversation that is kept between its turns: ``known`` where that is it; None where
        nothing need be."""
        if self.append_only:
            return None
        if isinstance(known, GrowingChat) and known.template is self.template:
            return known
        return GrowingChat(self.template)

    def extend(
        self,
        messages: Sequence[Message],
        new: int,
        last_id: int | None,
        tools: Sequence[Tool] = (),
        kept: GrowingChat | None = None,
    ) -> Extension:
        """Tokens between the policy's last reply and its next one.

        Args:
            messages: the whole conversation; its last ``new`` messages follow the last reply.
            new: how many messages are new.
            last_id: the last token that was sampled. If it ended the turn it is not repeated; else the
                reply was cut, and the end of the turn is part of the extension.
            tools: as given to :meth:`start`.
            kept: what :meth:`conversation` gave for this conversation, in all of its turns.
        """
        place = len(messages) - new - 1
        reply = messages[place]
        if self.append_only:
            tail = self._frames.tail(reply, messages[place + 1 :])
            if tail is None:
                return Extension(self.start(messages, tools), fresh=True)
        else:
            kept = kept or GrowingChat(self.template)
            tail = self._tail_of(told_below(messages, self.instruction), place, tools, kept)
            if tail is None:
                return Extension(self.start(messages, tools, kept), fresh=True)
        ids = self.encoder.encode_after(tail)
        if last_id is not None and last_id in [one.id for one in self._ends_of(reply)]:
            if last_id in ids:
                ids = ids[ids.index(last_id) + 1 :]
            elif self._end_inside is not None and ids[:1] == [self._end_inside.id]:
                ids = ids[1:]  # it ended, if by another token than the template writes there
        return Extension(tuple(ids))

    def told_last(self, prompt_ids: Sequence[int], text: str) -> tuple[int, ...] | None:
        """A prompt whose last message ends in a paragraph more, all else as it stands; None where its end is not the template's.

        Where a message ends and how it goes on are encoded apart, so that the ids can differ from those of the whole text.
        """
        end = self.opening
        if not end or tuple(prompt_ids[-len(end) :]) != end:
            return None
        below = self.encoder.encode_after(self.encoder.guard(f"\n\n{text}"))
        return (*prompt_ids[: -len(end)], *below, *end)

    def reply_ids(self, message: Message) -> tuple[int, ...]:
        """Tokens of a reply that was written, not sampled (a demonstration), with its end of turn."""
        after = self.template.render((*_OPENING, message), generate=False)
        follows = after.startswith(self._opened)
        said = after[len(self._opened) :] if follows else self.template.reply_text(message)
        opened = self._left_open(self.opening)
        if opened and closing(opened) not in said:  # or the whole reply would be a thought that never ends
            said = f"\n{closing(opened)}\n\n{said}"
        ids = self.encoder.encode_after(said)
        ends = self._ends_of(message)
        for one in ends:
            if one.id in ids:
                return tuple(ids[: ids.index(one.id) + 1])
        return (*ids, ends[0].id if ends else self.stop_ids[0])

    def rest_ids(self, text: str) -> tuple[int, ...]:
        """Tokens of the rest of a reply that has begun, with its end of turn."""
        ends = self._ends_of(Message("assistant", text))
        ids = self.encoder.encode_after(self.encoder.guard(text, own=True))
        return (*ids, ends[0].id if ends else self.stop_ids[0])

    def parse(self, ids: Sequence[int], tools: Sequence[Tool] = (), prompt: Sequence[int] = ()) -> Message:
        """The message that sampled tokens stand for, without the token that ended it.

        Some dialects need ``tools`` to know calls, or the types of their arguments. Where ``prompt``, after which they were
        sampled, ends in the opening tag of a thought, the message begins with that tag.
        """
        opened = self._left_open(prompt)
        said = ids[:-1] if ids and ids[-1] in self.stop_ids else ids
        text = self._decoded(said)
        native = self.template.can.dialect
        if native is not None and native is not self.template.dialect:
            text = native.unwrap(text)
        if self.template.tools_format == "none":
            return Message("assistant", opened + text)
        parsed = self.template.dialect.parse(text, [tool.spec for tool in tools], opened)
        return Message("assistant", parsed.content, parsed.calls, malformed=parsed.error or "")

    def _left_open(self, prompt: Sequence[int]) -> str:
        """The opening tag of a thought in which a prompt ends."""
        if not prompt:
            return ""
        end = self.opening
        if self._always_open is not None and tuple(prompt[-len(end) :]) == end:
            return self._always_open
        return left_open(self._decoded(prompt[-_LONGEST_OPENING:]))

    @functools.cached_property
    def _always_open(self) -> str | None:
        """The opening tag in which a prompt ends that ends as the template lets it end; None: that depends on what is before."""
        end = self._decoded(self.opening)
        return None if ends_a_tag(end) else left_open(end)

    def _decoded(self, ids: Sequence[int]) -> str:
        """The text of tokens as it stands; the tokeniser's own method takes twice as long for the same."""
        return self.tokenizer.backend_tokenizer.decode(list(ids), skip_special_tokens=False)

    def _continued(self, reply: Message, new: Sequence[Message]) -> str | None:
        """The text after a reply where nothing that stands before it counts."""
        return self._tail(_OPENING, reply, new, ())

    def _tail(
        self, head: Sequence[Message], reply: Message, new: Sequence[Message], tools: Sequence[Tool]
    ) -> str | None:
        """The text from the end of ``reply`` to the next reply; None if what stands is rewritten."""
        before = self._opened if head is _OPENING else self.template.render(head, tools)
        now = self.template.render((*head, reply, *new), tools)
        if not now.startswith(before) or not self._holds(now[len(before) :], reply.content):
            return None
        return self._after(reply, self.template.render((*head, self._stand_in(reply), *new), tools))

    def _tail_of(
        self, messages: Sequence[Message], place: int, tools: Sequence[Tool], kept: GrowingChat
    ) -> str | None:
        """The same of a whole conversation, in which the reply stands at ``place``."""
        reply = messages[place]
        before, now = kept.advance(messages, place, tools)
        if not now.startswith(before) or not self._holds(now[len(before) :], reply.content):
            return None
        return self._after(reply, kept.ending(self._stand_in(reply), place))

    def _after(self, reply: Message, text: str) -> str:
        """Return the text after a reply, in a text in which the reply has a stand-in."""
        text = text.rpartition(SENTINEL)[2]
        if self.template.writes_call(reply):
            for end in self._ends_of(reply):
                if end.text in text:
                    return end.text + text.partition(end.text)[2]  # without the rest of the call
        return text

    def _holds(self, text: str, content: str) -> bool:
        """Say whether a reply's words still stand in a text, white space aside."""
        words = plain(self.encoder.guard(content))
        text = plain(text)
        return words.strip() in text or "".join(words.split()) in "".join(text.split())

    def _stand_in(self, reply: Message) -> Entry:
        """A reply of the same form in which the sentinel is the last thing said."""
        if not self.template.writes_call(reply):
            return {"role": "assistant", "content": SENTINEL}
        call = self.template.call_entry(reply.tool_calls[-1])
        call["function"] |= {"arguments": {"x": SENTINEL}}  # its result may name the tool
        return {"role": "assistant", "content": "", "tool_calls": [call]}

    # --- trials, once per renderer ---------------------------------------------------------------

    def _find_end(self) -> tuple[ControlToken | None, ControlToken | None]:
        """The token that the template writes after a reply, if it writes one: where that is the last thing said, and elsewhere."""
        said: Chat = [{"role": "user", "content": "x"}, {"role": "assistant", "content": SENTINEL}]
        alone = self.template.render(said, generate=False).rpartition(SENTINEL)[2]
        followed = self.template.render([*said, *_OPENING]).rpartition(SENTINEL)[2]
        inside = self.encoder.first_control(followed)
        last = self.encoder.first_control(alone)
        return last or inside, inside if last else None

    def _find_call_ends(self) -> tuple[ControlToken, ...]:
        """The tokens that end a reply after a call, where the template's own dialect has some."""
        if self.template.tools_format != "template":
            return ()
        return tuple(one for one in self.encoder.controls if one.text in self.template.dialect.ends)

    def _ends_of(self, reply: Message) -> tuple[ControlToken, ...]:
        """The tokens that may end a reply, the likeliest first."""
        of_calls = self._call_ends if self.template.writes_call(reply) else ()
        return (*of_calls, *([self._end] if self._end else []))

    def _leaves_alone(self, talk: Sequence[Message]) -> bool:
        """Say whether each reply of this conversation is continued as if nothing stood before it."""
        for place, reply in enumerate(talk[:-1]):
            if reply.role == "assistant":
                new = talk[place + 1 : place + 2]
                tail = self._tail(talk[:place], reply, new, ())
                if tail is None or tail != self._tail(_OPENING, reply, new, ()):
                    return False
        return True


@functools.cache  # once for each tokeniser
def _tell_of_imitable_roles(name: str, markers: tuple[str, ...]) -> None:
    if markers:
        shown = " and ".join(repr(marker[:60]) for marker in dict.fromkeys(markers))
        _logger.warning(
            "The chat template of %s writes who speaks as ordinary text (%s): an observation that contains it can pass "
            "for another speaker. Use a model whose template has control tokens for roles, or trust what it reads.",
            name,
            shown,
        )


def _trials() -> list[list[Message]]:
    """Conversations that make templates show whether they rewrite what stands."""
    system, user = Message("system", "s"), Message("user", "u")
    said, thought = Message("assistant", "a"), Message("assistant", "<think>\nh\n</think>\n\nb")
    call = Message("assistant", "", (ToolCall("f", {"x": 1}, "call_0"),))
    mused = Message("assistant", "<think>\nh\n</think>\n\n", call.tool_calls)
    result = Message("tool", "r", tool_call_id="call_0")
    return [
        [system, user, said, user, thought, user, said, user],
        [user, thought, user, said, user],
        [system, user, call, result, mused, result, said, user, call, result],
    ]
