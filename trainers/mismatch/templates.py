"""Conversations as text: what a model's own template writes around replies, and the forms of others."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.trainers.mismatch.core import LoggedRow

_MARK = "\u2402{}\u2403"
EARLIER = _MARK.format("")
Chat = Sequence[Mapping[str, Any]]


class ChatForm(NamedTuple):
    """A form of conversations: what stands before and after the words of each role, and what opens a reply."""

    name: str
    user: tuple[str, str]
    system: tuple[str, str]
    opening: str
    after_reply: str = ""
    start: str = ""

    def written(self, messages: Chat) -> str:
        """The text of messages of the user and the system, up to where the reply begins."""
        frames = {"system": self.system, "user": self.user}
        said = [frames.get(str(one.get("role")), self.user) for one in messages]
        return (
            "".join(f"{a}{text_of(one)}{b}" for (a, b), one in zip(said, messages, strict=True))
            + self.opening
        )


FORMS = (
    ChatForm(
        "ChatML",
        ("<|im_start|>user\n", "<|im_end|>\n"),
        ("<|im_start|>system\n", "<|im_end|>\n"),
        "<|im_start|>assistant\n",
        "<|im_end|>\n",
    ),
    ChatForm(
        "that of Llama 3",
        ("<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"),
        ("<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"),
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|eot_id|>",
        "<|begin_of_text|>",
    ),
    ChatForm("that of Llama 2", ("[INST] ", " [/INST]"), ("<<SYS>>\n", "\n<</SYS>>\n\n"), "", "</s>", "<s>"),
    ChatForm("that of Mistral", ("[INST]", "[/INST]"), ("[INST]", "\n\n"), "", "</s>", "<s>"),
    ChatForm(
        "that of Gemma",
        ("<start_of_turn>user\n", "<end_of_turn>\n"),
        ("<start_of_turn>user\n", "<end_of_turn>\n"),
        "<start_of_turn>model\n",
        "<end_of_turn>\n",
        "<bos>",
    ),
    ChatForm(
        "that of Zephyr", ("<|user|>\n", "</s>\n"), ("<|system|>\n", "</s>\n"), "<|assistant|>\n", "</s>\n"
    ),
    ChatForm(
        "that of Phi",
        ("<|user|>\n", "<|end|>\n"),
        ("<|system|>\n", "<|end|>\n"),
        "<|assistant|>\n",
        "<|end|>\n",
    ),
    ChatForm("role marks alone", ("<|user|>", ""), ("<|system|>", ""), "<|assistant|>", "<|end|>"),
    ChatForm("User: … Assistant: …", ("User: ", "\n"), ("", "\n"), "Assistant:", "\n"),
    ChatForm("User: … Assistant: … with a space", ("User: ", "\n"), ("", "\n"), "Assistant: ", "\n"),
    ChatForm("USER: … ASSISTANT: …", ("USER: ", " "), ("", " "), "ASSISTANT:", "</s>"),
    ChatForm("Human: … Assistant: …", ("Human: ", "\n\n"), ("", "\n\n"), "Assistant:", "\n\n"),
    ChatForm("### Instruction", ("### Instruction:\n", "\n\n"), ("", "\n\n"), "### Response:\n", "\n\n"),
    ChatForm("the words alone", ("", ""), ("", ""), "", ""),
    ChatForm("the words on lines", ("", "\n"), ("", "\n"), "", "\n"),
)
SYSTEMS = (
    "You are a helpful assistant.",
    "You are a helpful AI assistant.",
    "You are a helpful, respectful and honest assistant.",
)


def text_of(message: Mapping[str, Any]) -> str:
    """The words of a message."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


class OwnTemplate:
    """The chat template of a model's tokeniser."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def render(self, messages: Chat, tools: Chat | None = None, *, opened: bool = True) -> str | None:
        """The text of a conversation; None where the template refuses it, or where there is none."""
        if not getattr(self.tokenizer, "chat_template", None):
            return None
        try:
            return str(
                self.tokenizer.apply_chat_template(
                    list(messages),
                    tools=list(tools) if tools else None,
                    add_generation_prompt=opened,
                    tokenize=False,
                )
            )
        except Exception:  # noqa: BLE001 - a template is a program of strangers
            return None

    def encode(self, text: str) -> tuple[int, ...]:
        """Tokens of a text, of control tokens too."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))

    @functools.cached_property
    def opening(self) -> str:
        """The text with which the template opens a reply."""
        said = [{"role": "user", "content": "x"}]
        closed, opened = self.render(said, opened=False), self.render(said)
        return (
            opened[len(closed) :]
            if closed is not None and opened is not None and opened.startswith(closed)
            else ""
        )

    @functools.cached_property
    def end(self) -> int | None:
        """The token that the template writes after a reply, where it writes a control token."""
        text = self.render(
            [{"role": "user", "content": "x"}, {"role": "assistant", "content": _MARK.format(0)}],
            opened=False,
        )
        after = "" if text is None else text.rpartition(_MARK.format(0))[2]
        special = {
            *self.tokenizer.all_special_ids,
            *(getattr(self.tokenizer, "added_tokens_decoder", None) or {}),
        }
        return next((one for one in self.encode(after) if one in special), None)

    def between(self, messages: Chat, tools: Chat | None, turns: int) -> list[str] | None:
        """The texts before each of the last ``turns`` replies of a conversation; None where the template does not tell them apart.

        :data:`EARLIER` stands for each earlier reply: of what was sampled there, words may have lost something.
        """
        places = [i for i, one in enumerate(messages) if one.get("role") == "assistant"]
        if len(places) < turns:
            return None
        earlier = {"role": "assistant", "content": EARLIER}
        marked = [earlier if one.get("role") == "assistant" else dict(one) for one in messages]
        places = places[len(places) - turns :]
        for number, place in enumerate(places):
            marked[place] = {"role": "assistant", "content": _MARK.format(number)}
        texts = list[str]()
        for number, place in enumerate(places):  # each turn's prompt by itself, as the engine was given it
            whole = self.render(marked[:place], tools)
            if whole is None:
                return None
            if number:
                _, mark, rest = whole.partition(_MARK.format(number - 1))
                if not mark:
                    return None
                whole = rest
            texts.append(whole)
        return texts

    def read(self, row: LoggedRow, turn: int) -> list[dict[str, Any]] | None:
        """The messages between a turn of a row and the one before, from the text of its tokens; None where they are not in the template's form."""
        piece = next(itertools.islice(row.pieces, turn, None))
        text = str(self.tokenizer.decode(list(piece), skip_special_tokens=False))
        for roles, frame in self._frames(first=turn == 0):
            found = _inside(text, frame)
            if found is not None:
                return [{"role": role, "content": words} for role, words in zip(roles, found, strict=True)]
        return None

    def with_system(self, row: LoggedRow, system: str) -> tuple[int, ...] | None:
        """The tokens of a row with a system prompt in place of its own, if any; None where its beginning is not in the template's form."""
        ids, decode = row.ids[: row.turns[0][0]], self.tokenizer.decode
        text = str(decode(list(ids), skip_special_tokens=False))
        said = [{"role": "system", "content": system}, {"role": "user", "content": _MARK.format(0)}]
        head, mark, _ = (self.render(said, row.tools) or "").partition(_MARK.format(0))
        for _, (before, *between, _) in self._frames(first=True):
            if not mark or not text.startswith(before) or not all(one in text for one in between):
                continue
            at = text.find(between[0], len(before)) + len(between[0]) if between else len(before)
            for k in range(1, len(ids)):
                own = str(decode(list(ids[:k]), skip_special_tokens=False))
                if own == text[:at]:
                    return (*self.encode(head), *row.ids[k:])
                if len(own) > at:
                    break
        return None

    def _frames(self, *, first: bool) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        """Roles of messages, and the texts before, between and after their words."""
        for roles in (
            (("user",), ("system", "user"))
            if first
            else (("user",), ("tool",), ("user", "user"), ("tool", "tool"))
        ):
            said = [{"role": role, "content": _MARK.format(i)} for i, role in enumerate(roles)]
            ahead = (
                []
                if first
                else [{"role": "user", "content": "x"}, {"role": "assistant", "content": _MARK.format(9)}]
            )
            text = self.render([*ahead, *said])
            if text is None:
                continue
            if not first:
                text = text.partition(_MARK.format(9))[2]
            frame, rest = list[str](), text
            for i in range(len(roles)):
                before, _, rest = rest.partition(_MARK.format(i))
                frame.append(before)
            yield roles, [*frame, rest]


def _inside(text: str, frame: Sequence[str]) -> list[str] | None:
    """The words between the parts of a frame; the first part may have lost a token that the reply before had as its last."""
    first = frame[0]
    starts = next((i for i in range(len(first) + 1) if text.startswith(first[i:])), len(first))
    if starts and first and not first[starts:]:
        return None
    rest, found = text[len(first) - starts :], list[str]()
    for part in frame[1:-1]:
        words, mark, rest = rest.partition(part)
        if part and not mark:
            return None
        found.append(words)
    if not rest.endswith(frame[-1]):
        return None
    return [*found, rest[: len(rest) - len(frame[-1])]]
