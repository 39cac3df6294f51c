"""Conversations that are made up, and the ids that a chat template makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

Message: TypeAlias = dict[str, str]
NAMES = [
    "Ada",
    "Bo",
    "Cleo",
    "Dara",
    "Emil",
    "Fay",
    "Gus",
    "Hana",
    "Ivo",
    "June",
    "Kofi",
    "Lena",
    "Milo",
    "Nina",
    "Otto",
    "Pia",
]
THINGS = [
    "lamp",
    "kettle",
    "bicycle",
    "jacket",
    "map",
    "ladder",
    "notebook",
    "ticket",
    "guitar",
    "tent",
    "basket",
    "clock",
    "boat",
    "scarf",
    "drill",
    "mirror",
]
PLACES = [
    "kitchen",
    "harbour",
    "library",
    "garage",
    "garden",
    "station",
    "market",
    "attic",
    "office",
    "bridge",
    "museum",
    "cellar",
]
SYSTEMS = (
    "You are a helpful assistant.",
    "Answer in one or two short sentences.",
    "You help customers of a small shop. Be brief and friendly.",
    "You are a careful guide to an old town. Never guess.",
)
QUESTIONS = (
    "Where did {name} leave the {thing}?",
    "Write a sentence about a {thing} in the {place}.",
    "How much does a {thing} cost, and would {name} like it?",
    "{name} lost a {thing} near the {place}. What should be done first?",
    "Name three things one finds in a {place}.",
    "Is the {place} open today? {name} wants to bring a {thing}.",
    "Tell {name} how to repair a {thing}.",
    "Compare the {place} with the {other}.",
)
REPLY = "\x02reply\x02"
"""Stands for a reply in a rendered text, and occurs in no conversation."""


def question(rng: random.Random) -> str:
    """A question of a user."""
    place, other = rng.sample(PLACES, 2)
    return rng.choice(QUESTIONS).format(
        name=rng.choice(NAMES), thing=rng.choice(THINGS), place=place, other=other
    )


def system_message(rng: random.Random) -> str:
    """A system message."""
    return rng.choice(SYSTEMS)


Change: TypeAlias = Callable[[str], str]


class Reader(NamedTuple):
    """Renders what stands before each reply, as a template writes it or otherwise.

    Attributes:
        change: made to each rendered piece, from ``since`` on.
        system: takes the place of the system message; None keeps it, "" leaves it out.
        opening: whether a reply is opened.
        shift: 1 puts a token before the first one, -1 leaves the first one out.
        since: the first turn that is rendered otherwise.
    """

    tokenizer: Any
    change: Change | None = None
    system: str | None = None
    opening: bool = True
    shift: int = 0
    since: int = 0

    def before(self, messages: Sequence[Message], turn: int, ended: bool) -> list[int]:
        """The ids between the reply before this turn and this turn's reply; of turn 0 from the first token on.

        Args:
            messages: up to the user's message of this turn.
            turn: from 0.
            ended: the reply before was ended by a sampled end token, which is then no part of the piece.
        """
        other = turn >= self.since
        hidden = [
            {**m, "content": REPLY} if m["role"] == "assistant" else m for m in self._told(messages, other)
        ]
        text = self._render(hidden, opening=self.opening or not other)
        piece = text.rpartition(REPLY)[2]
        end = end_text(self.tokenizer)
        if turn and ended:
            piece = piece.removeprefix(end)
        if self.change and other:
            piece = self.change(piece)
        ids = encode(self.tokenizer, piece)
        if turn == 0 and self.shift > 0:
            return [first_id(self.tokenizer), *ids]
        return ids[1:] if turn == 0 and self.shift < 0 else ids

    def _told(self, messages: Sequence[Message], other: bool) -> list[Message]:
        if self.system is None or not other:
            return [*messages]
        rest = [m for m in messages if m["role"] != "system"]
        return [{"role": "system", "content": self.system}, *rest] if self.system else rest

    def _render(self, messages: Sequence[Message], *, opening: bool) -> str:
        return self.tokenizer.apply_chat_template([*messages], tokenize=False, add_generation_prompt=opening)


def encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text, with nothing put before or after it."""
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def end_id(tokenizer: Any) -> int:
    """The token with which the template ends a reply, or the tokeniser's end of text where it ends none."""
    ids = encode(tokenizer, _after_reply(tokenizer))
    special = {*tokenizer.all_special_ids, tokenizer.eos_token_id}
    return ids[0] if ids and ids[0] in special else tokenizer.eos_token_id


def end_text(tokenizer: Any) -> str:
    """The text of the end token."""
    return tokenizer.decode([end_id(tokenizer)], skip_special_tokens=False)


def first_id(tokenizer: Any) -> int:
    """A token that engines put before a prompt by mistake."""
    return tokenizer.bos_token_id if tokenizer.bos_token_id is not None else end_id(tokenizer)


def _after_reply(tokenizer: Any) -> str:
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": REPLY}]
    return tokenizer.apply_chat_template(talk, tokenize=False).rpartition(REPLY)[2]
