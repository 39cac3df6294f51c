"""A chat template: probes what it accepts, and works around what it lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from turnwise import watchdog
from turnwise.agents.tokens.encoding import Encoder
from turnwise.agents.tokens.telling import told_of_tools
from turnwise.agents.tokens.template_options import check_options
from turnwise.envs.core import tool_specs
from turnwise.envs.messages import Message
from turnwise.errors import DeadlineError, TurnwiseError
from turnwise.registry import not_found
from turnwise.tools.core import Tool, ToolCall, ToolSpec
from turnwise.tools.dialects.core import Dialect
from turnwise.tools.dialects.hermes import HERMES
from turnwise.tools.dialects.registry import dialect_names, dialects, get_dialect

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ToolsFormat: TypeAlias = str
"""Form in which tools are described and called: one of :data:`WAYS`, or the name of a dialect.

``template``: by the chat template, in the dialect that it writes (found out by trial). The name of a dialect
(:mod:`turnwise.tools.dialects`): in the system message and in that dialect; ``text`` is ``hermes``. ``auto``:
``template`` if it works, else ``text``. ``none``: not at all; replies stay text (``verb[argument]``).
"""
WAYS = ("auto", "template", "text", "none")
Entry: TypeAlias = dict[str, Any]
"""One message as templates expect it, its text guarded."""
Chat: TypeAlias = list[Entry]

SENTINEL = "\U0010fffc"
"""A character that no guarded text contains."""

RENDER_S = 10.0
"""Seconds that a template may take for one conversation; those that are known take milliseconds."""
_MOST_CHARACTERS = 1 << 25

MOST_TOLD = 512
"""So many tuples of tools are remembered as the template is told of them."""
_OTHER = "Use another template, or another model: a template is a program that comes with the model."
_TALK = ("user", "assistant", "user")
_REPLY_ENDS = re.compile(r"(?:\s*<\|?\w+\|?>)+\s*$")  # tokens such as <|eot_id|>


def check_tools_format(name: str) -> None:
    """Refuse an unknown way to show tools.

    Raises:
        NotFoundError: with the nearest way or dialect.
    """
    if name not in WAYS and name not in dialect_names():
        raise not_found("way to show tools", name, (*WAYS, *dialect_names()))


class _RefusedError(TurnwiseError):
    """The template raised an error, which says what it does not accept."""


class Abilities(NamedTuple):
    """Abilities of a chat template, as found out by trial."""

    system: bool  # a system message
    repeats: bool  # two user messages in a row
    tool_role: bool  # a tool's result after a reply without a call
    dialect: Dialect | None  # in which it writes calls, with tools and results; None: in none that is known

    @property
    def calls(self) -> bool:
        return self.dialect is not None


class ToldTools(NamedTuple):
    """Tools as a template is told of them: by their schemas, or in words of the first message."""

    specs: list[Any] | None
    words: str


class ChatTemplate:
    """Renders messages to text, every piece of data guarded (E8)."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        encoder: Encoder,
        tools_format: ToolsFormat,
        options: Mapping[str, Any],
        clock: datetime,
    ) -> None:
        self._tokenizer = tokenizer
        self._encoder = encoder
        check_options(options, template_source(tokenizer), self._name)
        self._told: dict[int, tuple[Sequence[Tool], ToldTools]] = {}
        # What the template asks for the time is told the same time always, or its text would change under what stands.
        self._given = {**options, "strftime_now": clock.strftime}
        with watchdog.guard(RENDER_S):  # it is a stranger's program, and here it runs for the first time
            self.can = Abilities(
                self._accepts("system", "user"),
                self._accepts("user", "user"),
                self._accepts("user", "assistant", "tool"),
                self._native(),
            )
            written = self._accepts("user")
        if (
            not written
        ):  # those of models that see often want a list of parts, and some drop a text without a word
            raise TurnwiseError(
                f"The chat template of {self._name} does not write what a message says.",
                "Use a template for text, such as that of the language model of the same family.",
            )
        if tools_format == "template" and not self.can.calls:
            raise TurnwiseError(
                "The chat template does not write tool calls in a dialect that is known.",
                f'Use tools_format="text" or a dialect: {", ".join(dialect_names())}.',
            )
        if tools_format == "auto":
            tools_format = "template" if self.can.calls else "text"
        self.tools_format: ToolsFormat = tools_format
        chosen = HERMES if tools_format in WAYS else get_dialect(tools_format)
        self.dialect = (tools_format == "template" and self.can.dialect) or chosen

    @property
    def as_text(self) -> bool:
        """Tools are described and called in the text of messages."""
        return self.tools_format not in ("template", "none")

    def render(
        self, said: Sequence[Message | Entry], tools: Sequence[Tool] = (), *, generate: bool = True
    ) -> str:
        """The text of a conversation; with ``generate`` up to where the next reply begins.

        Raises:
            TurnwiseError: the template refuses the conversation, takes too long, or writes far too much.
        """
        return self.render_entries([*map(self.entry, said)], tools, generate=generate)

    def render_entries(
        self, said: Iterable[Entry], tools: Sequence[Tool] = (), *, generate: bool = True
    ) -> str:
        """:meth:`render` of messages as templates expect them."""
        told = self._told_of(tools)
        chat: Chat = []
        if told.words:
            self._append(chat, {"role": "system", "content": told.words})
        for entry in said:
            self._append(chat, entry)
        return self._apply(chat, told.specs, generate)

    def _told_of(self, tools: Sequence[Tool]) -> ToldTools:
        """Return the form in which the template is told of tools; made once for the tools of an episode, or of all of an
        environment's."""
        if not tools or self.tools_format == "none":
            return ToldTools(None, "")
        known = self._told.get(id(tools))
        if known is not None and known[0] is tools:
            return known[1]
        specs = self._encoder.guard_json(tool_specs(tools))
        told = ToldTools(specs, "")
        if self.as_text:
            lines = [json.dumps(spec, ensure_ascii=False) for spec in specs]
            told = ToldTools(None, told_of_tools(lines, self.dialect))
        if isinstance(tools, tuple):  # what can change is looked at each time
            while len(self._told) >= MOST_TOLD:
                self._told.pop(next(iter(self._told)), None)
            self._told[id(tools)] = (tools, told)
        return told

    def reply_text(self, message: Message) -> str:
        """A reply's own words, with its calls in the dialect of this template."""
        parts = [self._encoder.guard(message.content, own=True)] if message.content else []
        if message.tool_calls:
            said = [self.call_entry(call)["function"] for call in message.tool_calls]
            parts.append(self.dialect.render([ToolCall(one["name"], one["arguments"]) for one in said]))
        return "\n".join(parts)

    def guarded(self, text: str) -> str:
        """The words of data, as they may be put into a template."""
        return self._encoder.guard(text)

    def writes_call(self, message: Message) -> bool:
        """Say whether this message holds calls that the template writes."""
        return bool(message.tool_calls) and self.tools_format == "template"

    def call_entry(self, call: ToolCall) -> Entry:
        guard = self._encoder.guard_json
        function = {"name": guard(call.name), "arguments": guard(dict(call.arguments))}
        return {"type": "function", "id": _nine(call.id), "function": function}

    def entry(self, message: Message | Entry) -> Entry:
        """A message as templates expect it; one that already is stays."""
        if not isinstance(message, Message):
            return message
        if message.images:
            raise TurnwiseError(
                "This policy reads tokens of text; it cannot see images.",
                "Use the environment's text mode, or serve a model that sees and play it as openai:MODEL@URL.",
            )
        if self.writes_call(message):
            calls = [self.call_entry(call) for call in message.tool_calls]
            content = self._encoder.guard(message.content, own=True)
            return {"role": "assistant", "content": content, "tool_calls": calls}
        if message.role == "assistant":
            return {"role": "assistant", "content": self.reply_text(message)}
        content = self._encoder.guard(message.content)
        if message.role != "tool":
            return {"role": message.role, "content": content}
        if self.as_text:
            return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
        if not (self.can.tool_role or self.can.calls):
            return {"role": "user", "content": content}
        return {"role": "tool", "content": content, "tool_call_id": _nine(message.tool_call_id)}

    def _append(self, chat: Chat, entry: Entry) -> None:
        """Add a message in a way that the template accepts: under another role, or to the last one."""
        if entry["role"] == "system" and not self.can.system:
            entry = {**entry, "role": "user"}
        role = entry["role"]
        joins = role == "system" or (role == "user" and not self.can.repeats)
        if chat and joins and chat[-1]["role"] == role:
            chat[-1] = {**chat[-1], "content": f"{chat[-1]['content']}\n\n{entry['content']}"}
        else:
            chat.append(entry)

    def _apply(self, chat: Chat, specs: list[Any] | None, generate: bool) -> str:
        import jinja2  # with transformers, for whoever renders; not for whoever reads a recipe

        self._encoder.work.renderings += 1
        self._encoder.work.rendered += len(chat)
        roles = ", ".join(entry["role"] for entry in chat[:8])
        try:
            with watchdog.limit(f"the chat template of {self._name}", RENDER_S, fatal=True):
                text = self._tokenizer.apply_chat_template(
                    chat, tools=specs or None, tokenize=False, add_generation_prompt=generate, **self._given
                )
        except DeadlineError:
            raise TurnwiseError(
                f"The chat template of {self._name} took more than {RENDER_S:g} s for {len(chat)} messages ({roles}).",
                _OTHER,
            ) from None
        except (MemoryError, OverflowError, RecursionError) as error:
            raise TurnwiseError(
                f"The chat template of {self._name} asks for too much: {error!r}.", _OTHER
            ) from None
        except (
            jinja2.TemplateError,
            TypeError,
            KeyError,
            ValueError,
            AttributeError,
            ZeroDivisionError,
        ) as error:
            raise _RefusedError(
                f"The chat template refuses this conversation ({roles}): {error}.",
                "Use a template that accepts these roles.",
            ) from error
        assert isinstance(text, str)
        if len(text) > _MOST_CHARACTERS:
            raise TurnwiseError(
                f"The chat template of {self._name} writes {len(text)} characters for {len(chat)} messages.",
                _OTHER,
            )
        return text

    @property
    def _name(self) -> str:
        return str(self._tokenizer.name_or_path or type(self._tokenizer).__name__)

    def imitable(self) -> tuple[str, ...]:
        """Role markers that the template writes as ordinary text, so that a message can contain them too.

        A border between two messages is safe if a control token of its own opens the next one; the control token
        that closes the last one does not say whose turn begins.
        """
        said = ("trial-first", "trial-second", "trial-third")
        chat: Chat = [{"role": role, "content": text} for role, text in zip(_TALK, said, strict=True)]
        try:
            text = self._apply(chat, None, False)
        except _RefusedError:
            return ()
        if any(text.count(one) != 1 for one in said):
            return ()
        first, second, third = (text.index(one) for one in said)
        borders = (text[first + len(said[0]) : second], text[second + len(said[1]) : third])
        return tuple(marker for border in borders if (marker := self._unprotected(border)) is not None)

    def _unprotected(self, border: str) -> str | None:
        closing = self._encoder.first_control(border)
        if closing is None:
            return border.strip()
        opening = border.partition(closing.text)[2]
        plain_text = self._encoder.first_control(opening) is None
        return (opening.strip() or None) if plain_text else None

    # --- trials ----------------------------------------------------------------------------------

    def _accepts(self, *roles: str) -> bool:
        chat: Chat = [{"role": role, "content": f"trial-{n}"} for n, role in enumerate(roles)]
        try:
            text = self._apply(chat, None, False)
        except _RefusedError:
            return False
        return all(entry["content"] in text for entry in chat)

    def _native(self) -> Dialect | None:
        """The dialect in which the template writes calls, if it also tells of tools and of results."""
        call = ToolCall("trial_name", {"trial_argument": "trial-value"}, "call_0")
        chat: Chat = [
            {"role": "user", "content": "trial-request"},
            {"role": "assistant", "content": "", "tool_calls": [self.call_entry(call)]},
            {"role": "tool", "content": "trial-result", "tool_call_id": _nine(call.id)},
        ]
        parameters = {"type": "object", "properties": {"trial_argument": {"type": "string"}}}
        spec = ToolSpec(call.name, "trial-about", parameters)
        try:
            text = self._apply(chat, [spec.to_json()], False)
            asked = self._apply(chat[:1], [spec.to_json()], True)
            called = self._apply(chat[:2], [spec.to_json()], False)
        except _RefusedError:
            return None
        if "trial-about" not in text or "trial-result" not in text.partition("trial-request")[2]:
            return None
        begins = (
            len(asked) if called.startswith(asked) else called.find("trial-request") + len("trial-request")
        )
        reply = _REPLY_ENDS.sub("", called[begins:])
        for dialect in dialects():
            found = dialect.parse(reply, [spec]).calls
            if [(one.name, one.arguments) for one in found] == [(call.name, call.arguments)]:
                return dialect
        return None


def template_source(tokenizer: PreTrainedTokenizerFast) -> str:
    """The text of all of a tokeniser's chat templates.

    Raises:
        TurnwiseError: it has none, or no ``tokenizers`` backend.
    """
    if not getattr(tokenizer, "is_fast", False):  # a backend of mistral-common knows no such word
        raise TurnwiseError(
            f"{type(tokenizer).__name__} has no `tokenizers` backend.",
            "The model's folder needs a tokenizer.json: take one from a model of the same family (of Mistral's models "
            "with a tekken.json alone, there are copies with one), or convert it with AutoTokenizer and save_pretrained.",
        )
    template: Any = tokenizer.chat_template
    if not template:
        raise TurnwiseError(
            f"The tokenizer {tokenizer.name_or_path or type(tokenizer).__name__!r} has no chat template.",
            "Use an instruction-tuned model, or set tokenizer.chat_template.",
        )
    return template if isinstance(template, str) else "\n".join(template.values())


def _nine(call_id: str) -> str:
    """A call's id in nine letters and digits, which is what Mistral's templates accept."""
    return "".join(filter(str.isalnum, call_id)).rjust(9, "0")[-9:]
