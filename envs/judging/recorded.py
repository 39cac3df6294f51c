"""Episodes of a log as they are judged: what was seen, what was done, how it ended, which turns were wrong."""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.frames import MOST_FRAME, pieces
from turnwise.tasks.core import Split
from turnwise.texts import lines_with_ends

LOG_NAME = "episodes.jsonl.zst"
SHOWN = 1500
"""Characters of one message that are shown: its beginning and its end."""
_SENTENCE = re.compile(r"\w(?:[^\n.!?。！？]|[.!?](?=\S))*")
_COUNT = ("ok", "limit")  # outcomes of episodes that say something of the agent
_REMEDY = (
    "Name an episode log (episodes.jsonl.zst), or the folder of a run or an evaluation, which holds one."
)


class RecordedTurn(NamedTuple):
    """A turn: the observation, the act, whether that was wrong (None: nobody has said), and the first sentence of all that was said."""

    seen: str
    act: str
    wrong: bool | None
    begun: str = ""


class Recorded(NamedTuple):
    """An episode: its environment, its task's id, its turns, what was seen in the end, what it was paid, and whether it solved the task."""

    env: str
    task: str
    turns: tuple[RecordedTurn, ...]
    last: str
    reward: float
    solved: bool

    def seen_after(self, turn: int) -> str:
        """Return what was seen after a turn, from 0."""
        return self.turns[turn + 1].seen if turn + 1 < len(self.turns) else self.last


class EpisodeBook(NamedTuple):
    """The episodes of one split, and those of each task."""

    episodes: tuple[Recorded, ...]
    by_task: Mapping[str, Sequence[Recorded]]


@functools.lru_cache(24)
def book_of(env: str, log: str, split: Split) -> EpisodeBook:
    """The episodes of a log whose tasks are of this split; an empty name is the log that ships with the package.

    Raises:
        EnvError: there is no such log, or none of its episodes is of this split.
    """
    episodes = tuple(one for one in read_log(log) if in_split(split, env, one.task))
    if not episodes:
        raise EnvError(
            f"{log or 'The shipped log'} has no episode whose task belongs to the {split} split.",
            "Episodes are cut into splits by their tasks, eight tenths to train: record more tasks.",
        )
    by_task: defaultdict[str, list[Recorded]] = defaultdict(list)
    for one in episodes:
        by_task[one.task].append(one)
    return EpisodeBook(episodes, dict(by_task))


@functools.lru_cache(8)
def read_log(log: str) -> tuple[Recorded, ...]:
    """The episodes of a log that count, in its order; read once in a process.

    Raises:
        EnvError: there is no such log, or a line is no episode.
    """
    if not log:
        return tuple(_read(Path(__file__).with_name("recorded.jsonl.zst")))
    path = Path(log).expanduser()
    return tuple(_read(path / LOG_NAME if path.is_dir() else path))


def _read(path: Path) -> Iterator[Recorded]:
    if not path.is_file():
        raise EnvError(f"There is no episode log {path}.", _REMEDY)
    number = 0
    for piece in pieces(path):
        if piece.lines is None:
            if piece.last:
                return  # a write that a crash tore
            raise EnvError(
                f"{path} is damaged behind line {number}.",
                f"`turnwise repair {path}` cuts out what is damaged.",
            )
        for line in lines_with_ends(piece.lines):
            number += 1
            try:
                data = json.loads(line) if len(line) <= MOST_FRAME else None
                found = recorded_episode(data)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
                raise EnvError(f"{path}:{number} is no episode of a log.", _REMEDY) from None
            if found is not None:
                yield found


def recorded_episode(data: Any) -> Recorded | None:
    """What a log's line says of its first agent; None where it failed for reasons that are not the agent's, or nothing was done."""
    agent = next(iter(data["agents"].values()))
    if data["outcome"] not in _COUNT or not agent["turns"]:
        return None
    turns = tuple(
        RecordedTurn(
            _seen(turn["observation"]),
            _act(turn["action"]),
            _wrong(turn.get("signals", {})),
            first_sentence(_text(turn["action"])),
        )
        for turn in agent["turns"]
    )
    paid = sum(float(turn["rewards"].get("outcome", 0.0)) for turn in agent["turns"])
    return Recorded(
        str(data["task"]["env"]), str(data["task_id"]), turns, _seen(agent["final"]), paid, data["end"] == "solved"
    )  # fmt: skip


def _wrong(signals: Mapping[str, Any]) -> bool | None:
    return float(signals["wrong"]) >= 0.5 if "wrong" in signals else None


def _seen(observation: Sequence[Mapping[str, Any]]) -> str:
    texts = (_text(one) for one in observation if one["role"] != "system")
    return _short("\n".join(text for text in texts if text).strip())


def _act(message: Mapping[str, Any]) -> str:
    """The last line of what was said, without its full stop, and its calls: what came before was thought, and a stop is a policy's manner."""
    said = _text(message).strip().rpartition("\n")[2].removesuffix(".").rstrip()
    called = " ".join(
        f"{call['name']}({json.dumps(call['arguments'], ensure_ascii=False)})"
        for call in message.get("tool_calls") or ()
    )
    return _short(f"{said} {called}".strip()) or "(nothing)"


def first_sentence(text: str) -> str:
    """The first sentence or line of a text, without its last stop; empty where it has no word.

    >>> [first_sentence(text) for text in (" Let me see. search 2.5 mm", "open box\\nso", "答。二", "...")]
    ['Let me see', 'open box', '答', '']
    """
    found = _SENTENCE.search(text)
    return _short(found[0]) if found else ""


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if not isinstance(content, str):
        raise TypeError("a message's content is text")
    return content


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
