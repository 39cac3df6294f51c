"""A chat template, with what it accepts found out and what it lacks made up for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import jinja2

from turnwise.agents.encoding import Encoder
from turnwise.envs.core import tool_specs
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError
from turnwise.tools.calls import parse_hermes
from turnwise.tools.core import Tool, ToolCall

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ToolsFormat: TypeAlias = Literal["auto", "template", "text", "none"]
"""How tools are described and called.

``template``: by the chat template. ``text``: in the system message and as hermes-JSON, for templates that
know no tools or write calls in another way. ``auto``: the first of these that works. ``none``: not at all;
replies stay text (``verb[argument]``).
"""
Entry: TypeAlias = dict[str, Any]
"""One message as templates expect it, its text guarded."""
Chat: TypeAlias = list[Entry]

SENTINEL = "\U0010fffc"
"""A character that no guarded text contains."""

_HERMES = """You may call tools. They are, as JSON schemas:
{tools}
To call one, write its name and arguments as JSON between tags:
<tool_call>
{{"name": "...", "arguments": {{...}}}}
</tool_call>"""


class Abilities(NamedTuple):
    """What a template accepts."""

    system: bool  # a system message
    repeats: bool  # two user messages in a row
    tool_role: bool  # a tool's result after a reply without a call
    calls: bool  # tools, calls in hermes-JSON and their results


class Template:
    """Renders messages to text, every piece of data guarded (E8)."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        encoder: Encoder,
        tools_format: ToolsFormat,
        options: Mapping[str, Any],
    ) -> None:
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._options = dict(options)
        self.can = Abilities(
            self._accepts("system", "user"),
            self._accepts("user", "user"),
            self._accepts("user", "assistant", "tool"),
            self._writes_hermes(),
        )
        if tools_format == "template" and not self.can.calls:
            raise TurnwiseError(
                "The chat template does not write tool calls as hermes-JSON.", 'Use tools_format="text".'
            )
        if tools_format == "auto":
            tools_format = "template" if self.can.calls else "text"
        self.tools_format: ToolsFormat = tools_format

    def render(
        self, said: Sequence[Message | Entry], tools: Sequence[Tool] = (), *, generate: bool = True
    ) -> str:
        """The text of a conversation; with ``generate`` up to where the next reply begins.

        Raises:
            TurnwiseError: the template refuses the conversation.
        """
        specs = self._encoder.guard_json(tool_specs(tools)) if self.tools_format != "none" else []
        chat: Chat = []
        if specs and self.tools_format == "text":
            lines = "\n".join(json.dumps(spec, ensure_ascii=False) for spec in specs)
            self._append(chat, {"role": "system", "content": _HERMES.format(tools=lines)})
        for message in said:
            self._append(chat, self._entry(message) if isinstance(message, Message) else message)
        return self._apply(chat, specs if self.tools_format == "template" else None, generate)

    def reply_text(self, message: Message) -> str:
        """A reply's own words, with its calls as hermes-JSON."""
        parts = [self._encoder.guard(message.content, own=True)] if message.content else []
        for call in message.tool_calls:
            function = self.call_entry(call)["function"]
            parts.append(f"<tool_call>\n{json.dumps(function, ensure_ascii=False)}\n</tool_call>")
        return "\n".join(parts)

    def writes_call(self, message: Message) -> bool:
        """Whether this message holds calls that the template writes."""
        return bool(message.tool_calls) and self.tools_format == "template"

    def call_entry(self, call: ToolCall) -> Entry:
        guard = self._encoder.guard_json
        function = {"name": guard(call.name), "arguments": guard(dict(call.arguments))}
        return {"type": "function", "id": _nine(call.id), "function": function}

    def _entry(self, message: Message) -> Entry:
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
        if self.tools_format == "text":
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
        try:
            text = self._tokenizer.apply_chat_template(
                chat, tools=specs or None, tokenize=False, add_generation_prompt=generate, **self._options
            )
        except (jinja2.TemplateError, TypeError, KeyError) as error:
            roles = ", ".join(entry["role"] for entry in chat[:8])
            raise TurnwiseError(
                f"The chat template refuses this conversation ({roles}): {error}.",
                "Use a template that accepts these roles.",
            ) from error
        assert isinstance(text, str)
        return text

    # --- trials ----------------------------------------------------------------------------------

    def _accepts(self, *roles: str) -> bool:
        chat: Chat = [{"role": role, "content": f"trial-{n}"} for n, role in enumerate(roles)]
        try:
            text = self._apply(chat, None, False)
        except TurnwiseError:
            return False
        return all(entry["content"] in text for entry in chat)

    def _writes_hermes(self) -> bool:
        call = ToolCall("trial-name", {"trial-argument": "trial-value"}, "call_0")
        chat: Chat = [
            {"role": "user", "content": "trial-request"},
            {"role": "assistant", "content": "", "tool_calls": [self.call_entry(call)]},
            {"role": "tool", "content": "trial-result", "tool_call_id": _nine(call.id)},
        ]
        spec = {
            "name": call.name,
            "description": "trial-about",
            "parameters": {"type": "object", "properties": {}},
        }
        try:
            text = self._apply(chat, [{"type": "function", "function": spec}], False)
        except TurnwiseError:
            return False
        written = text.partition("trial-request")[2]
        told, answered = "trial-about" in text, "trial-result" in written
        return told and answered and parse_hermes(written).calls == (call,)


def template_source(tokenizer: PreTrainedTokenizerFast) -> str:
    """The text of all of a tokeniser's chat templates.

    Raises:
        TurnwiseError: it has none, or no ``tokenizers`` backend.
    """
    if not tokenizer.is_fast:
        raise TurnwiseError(
            f"{type(tokenizer).__name__} has no `tokenizers` backend.",
            "Convert it: AutoTokenizer.from_pretrained(…, use_fast=True).",
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
