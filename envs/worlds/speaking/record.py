"""Answers by the hash of what was asked: the same question has the same answer, here, in a fork, and in a replay.

A record is a file of JSON lines, ``{"key", "who", "answer"}``; several processes may write to it. The first answer
to a question stays: whoever asks at the same time takes over what the other one wrote.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from turnwise.cache_folder import cache_folder
from turnwise.envs.messages import Message
from turnwise.errors import EnvError
from turnwise.tasks.core import Json


def key_of(body: Mapping[str, Json]) -> str:
    """The hash of a question: messages, tools and settings; not of the server's address or the model's name.

    >>> key_of({"model": "a", "messages": []}) == key_of({"messages": [], "model": "b"})
    True
    """
    kept = {name: value for name, value in body.items() if name != "model"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def default_path(who: str) -> Path:
    """Return the file of a model's answers unless another is named: ``spoken`` in the cache folder."""
    return cache_folder("spoken") / f"{hashlib.blake2b(who.encode(), digest_size=8).hexdigest()}.jsonl"


class AnswerRecord:
    """The answers of one model.

    Args:
        path: of the file; it is made when the first answer is kept.
        who: whose answers are read and kept; "" reads those of whoever is in the file, who must be one.
    """

    def __init__(self, path: Path | str, who: str) -> None:
        self.path, self.who = Path(path).expanduser(), who
        self._known: dict[str, Message] = {}
        self._read = 0  # bytes of the file that are known
        self._speakers: set[str] = set()

    def find(self, key: str) -> Message | None:
        """The answer to a question, if it was asked before.

        Raises:
            EnvError: the file is no record, or of several models while none is named.
        """
        if key not in self._known and self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read)
                self._catch_up(file.read())
        return self._known.get(key)

    def keep(self, key: str, answer: Message) -> Message:
        """Keep an answer; what counts is the one that was kept first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(self._read)
            self._catch_up(file.read())
            if key not in self._known:
                line = {"key": key, "who": self.who, "answer": answer.to_json()}
                written = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                file.write(written)
                file.flush()
                self._read += len(written)
                self._known[key] = answer
        return self._known[key]

    def _catch_up(self, new: bytes) -> None:
        whole = new[: new.rfind(b"\n") + 1]  # a last line without its end is still being written
        for number, line in enumerate(whole.split(b"\n")[:-1], 1):
            try:
                found = json.loads(line)
                who, key, answer = found["who"], found["key"], Message.from_json(found["answer"])
            except (ValueError, KeyError, TypeError):
                raise EnvError(
                    f"{self.path} is no record of answers (line {number} of what is new).",
                    'Its lines are {"key", "who", "answer"} in JSON; name another file.',
                ) from None
            if self.who in ("", who):
                self._known.setdefault(key, answer)
                self._speakers.add(who)
        self._read += len(whole)
        if not self.who and len(self._speakers) > 1:
            raise EnvError(
                f"{self.path} holds the answers of several models: {', '.join(sorted(self._speakers))}.",
                "Keep a record for each model.",
            )
