"""The line of an episode: JSON text in which nothing is written twice.

Most of a line is token ids, and in training most of these are first prompts, which a group shares, as it shares its task. Their text is
made once. The line is the one that ``json.dumps`` writes of the same values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnwise.tasks.core import Json, Task
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


encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
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
    agents = ",".join(f"{encode(name)}:{_written_agent(agent)}" for name, agent in data["agents"].items())
    return _written(data, {"task": _written_task(task, data["task"]), "agents": f"{{{agents}}}"})


def _written_agent(agent: dict[str, Any]) -> str:
    chain, turns = "", list[str]()
    for number, turn in enumerate(agent["turns"]):
        observation = encode(turn["observation"])
        turn["chain"] = chain = chain_link(chain, observation)
        prompt = _written_prompt(turn["prompt_ids"]) if number == 0 else _written_ids(turn["prompt_ids"])
        known = {
            "prompt_ids": prompt,
            "action_ids": _written_ids(turn["action_ids"]),
            "observation": observation,
            "chain": f'"{chain}"',
        }
        turns.append(_written(turn, known))
    final = encode(agent["final"])
    agent["chain"] = chain_link(chain, final)
    return _written(agent, {"turns": f"[{','.join(turns)}]", "final": final})


def _written(data: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """The text of an object, some of whose values are known as text, under names of our own."""
    parts, plain = list[str](), dict[str, Any]()
    for key, value in data.items():
        if key not in known:
            plain[key] = value
            continue
        if plain:
            parts.append(encode(plain)[1:-1])
            plain = {}
        parts.append(f'"{key}":{known[key]}')
    if plain:
        parts.append(encode(plain)[1:-1])
    return f"{{{','.join(parts)}}}"


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
