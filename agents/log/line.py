"""The line of an episode: JSON text in which nothing is written twice.

Most of a line is token ids, and in training most of these are first prompts, which a group shares, as it shares its task. Their text is
made once. The line is the one that ``json.dumps`` writes of the same values.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnwise.tasks.core import Json, Task, text_encoder
from turnwise.text_cache import TextCache

MOST_KEPT = 1 << 21
"""Characters of tasks, and of first prompts, whose text is kept."""
MOST_NUMBERS = 1 << 20


class _Numbers(dict[int, str]):
    """Whole numbers as text; token ids come again and again."""

    def __missing__(self, number: int) -> str:
        if type(number) is not int:
            raise TypeError(f"{number!r:.40} is no token id")
        if len(self) >= MOST_NUMBERS:
            self.clear()
        self[number] = text = str(number)
        return text


encode: Final = text_encoder(separators=(",", ":"), allow_nan=False)
_HOLE: Final = 1 << 127 | secrets.randbits(127)
"""Stands in a line for a value that has a text already. Nobody knows it, so that no value of theirs is it."""
_numbers: Final = _Numbers()
_tasks: Final = TextCache[int, tuple[Task, str]](MOST_KEPT)
_prompts: Final = TextCache[int, tuple[Sequence[int], str]](MOST_KEPT)


def chain_link(chain: str, observation: str) -> str:
    """Return the hash of all observations up to this one, given as the text that :data:`encode` writes."""
    return hashlib.blake2b(f"{chain}{observation}".encode(), digest_size=8).hexdigest()


def written_line(data: Mapping[str, Any], task: Task) -> str:
    """The text of a record, whose turns and agents are given the ``chain`` of their observations.

    Raises:
        ValueError: a number is not finite, or something holds itself.
        TypeError: JSON has no such value.
    """
    texts = [_written_task(task, data["task"])]
    agents = {name: _with_holes(agent, texts) for name, agent in data["agents"].items()}
    around = encode({**data, "task": _HOLE, "agents": agents}).split(str(_HOLE))
    return "".join(itertools.chain(*zip(around, texts, strict=False), around[-1:]))


def _with_holes(agent: Mapping[str, Any], texts: list[str]) -> dict[str, Any]:
    """An agent with holes where its values have a text already; these are added to ``texts``, in their order."""
    chain, turns = "", list[dict[str, Any]]()
    for turn in agent["turns"]:
        observation = encode(turn["observation"])
        chain = chain_link(chain, observation)
        written = _written_ids if turns else _written_prompt
        texts += (written(turn["prompt_ids"]), _written_ids(turn["action_ids"]), observation)
        turns.append({**turn, "prompt_ids": _HOLE, "action_ids": _HOLE, "observation": _HOLE, "chain": chain})
    texts.append(encode(agent["final"]))
    return {**agent, "turns": turns, "final": _HOLE, "chain": chain_link(chain, texts[-1])}


def _written_ids(ids: Sequence[int]) -> str:
    return f"[{','.join(map(_numbers.__getitem__, ids))}]"


def _written_prompt(ids: Sequence[int]) -> str:
    """A first prompt, which those of its group have too: the same object."""
    if (found := _prompts.get(id(ids))) is not None and found[0] is ids:
        return found[1]
    text = _written_ids(ids)
    _prompts.keep(id(ids), (ids, text), len(text))
    return text


def _written_task(task: Task, data: Json) -> str:
    if (found := _tasks.get(id(task))) is not None and found[0] is task:
        return found[1]
    text = encode(data)
    _tasks.keep(id(task), (task, text), len(text))
    return text
