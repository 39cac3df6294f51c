"""A model that always knows the right move at the desk: it reads what it was told, and nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from desk import written

_LEDGER = re.compile(r"lies in drawers (\w) and (\w)\.")
_TAG = re.compile(r"Drawer (\w): [\w ]+, tag (\d+)\.")
WRONG = {"name": "hand_over", "arguments": {"tag": 1}}
"""A call that the model weighs and drops: whoever carries it out has failed the task."""


class Move(NamedTuple):
    """What the model does next: calls, or words where the task is done."""

    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    words: str = ""


def next_move(messages: Sequence[Mapping[str, Any]], *, single: bool = False) -> Move:
    """The right move after a conversation in OpenAI's form.

    >>> next_move([{"role": "user", "content": "Find a red key."}]).calls
    (('look', {'place': 'ledger'}),)
    >>> next_move([{"role": "tool", "content": "Ledger: each red key lies in drawers b and d."}]).calls
    (('look', {'place': 'b'}), ('look', {'place': 'd'}))
    """
    told = "\n".join(text for one in messages if one.get("role") != "assistant" for text in read(one))
    if "Handed over:" in told:
        return Move(words="Done.")
    ledger = _LEDGER.search(told)
    if ledger is None:
        return Move((("look", {"place": "ledger"}),))
    tags = {place: int(tag) for place, tag in _TAG.findall(told)}
    missing = [place for place in ledger.groups() if place not in tags]
    if missing:
        one_only = single or "takes one action" in told
        return Move(tuple(("look", {"place": place}) for place in missing[: 1 if one_only else None]))
    return Move((("hand_over", {"tag": min(tags[place] for place in ledger.groups())}),))


def read(message: Mapping[str, Any]) -> Iterable[str]:
    """The texts of a message, those that its pictures carry too."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "image_url":
            where = part["image_url"]
            url = where if isinstance(where, str) else where["url"]
            yield written(base64.b64decode(url.partition(",")[2]))
        else:
            yield part.get("text", "")
