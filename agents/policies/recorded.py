"""A policy whose replies are kept by what they answer, and played again: a judge that was asked once is asked no more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from turnwise.agents.core import History, Policy, Reply
from turnwise.agents.policies.options import PolicyOptions
from turnwise.agents.policies.structured import StructuredPolicy
from turnwise.envs.messages import Message
from turnwise.errors import EngineError, TurnwiseError
from turnwise.registry import component
from turnwise.tasks.core import Json


class RecordingPolicy:
    """Answers as the file has it; what is not there is asked of another policy, and added.

    A reply is kept under a hash of the conversation, the tools and the episode's seed. Tokens are not kept: what is played again can be
    imitated and judged, and costs nothing.

    Args:
        file: JSON lines, one for each reply; made where it is not there and there is a policy to ask.
        other: the policy that answers what is new; None: nobody does.
    """

    def __init__(self, file: Path, other: Policy | None = None) -> None:
        self.name, self._file, self._other = f"recorded:{file}", file, other
        if other is None and not file.is_file():
            raise TurnwiseError(
                f"{file} is not there, and nobody is named who could be recorded.",
                "Name a policy: recorded:FILE {model: openai:MODEL@URL}.",
            )
        self._known = _read(file, mend=other is not None) if file.is_file() else {}

    @property
    def version(self) -> int:
        """That of the policy that is asked."""
        return self._other.version if self._other else 0

    async def act(self, history: History) -> Reply:
        """The reply that is known, or a new one.

        Raises:
            EngineError: there is none, and nobody who could be asked.
        """
        return await self._replied(history, None)

    async def act_as(self, history: History, schema: Mapping[str, Json]) -> Reply:
        """The same; a new one is asked for as JSON, where the other policy can be. It is kept as it came, JSON or words.

        Raises:
            EngineError: there is none, and nobody who could be asked.
        """
        return await self._replied(history, schema)

    async def _replied(self, history: History, schema: Mapping[str, Json] | None) -> Reply:
        key = _key(history)
        if key in self._known:
            return Reply(self._known[key])
        if self._other is None:
            raise EngineError(
                f"{self._file} has no reply to this conversation of task {history.task.id}.",
                "Record it: name the policy that answers, recorded:FILE {model: POLICY}.",
            )
        if schema is not None and isinstance(self._other, StructuredPolicy):
            reply = await self._other.act_as(history, schema)
        else:
            reply = await self._other.act(history)
        if reply.end is None:
            self._known[key] = reply.message
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "reply": reply.message.to_json()}) + "\n")
        return reply

    def close(self) -> None:
        """Close the policy that is asked."""
        if self._other is not None:
            self._other.close()


def _key(history: History) -> str:
    told = [message.to_json() for message in history.messages()]
    text = json.dumps([told, [tool.spec.name for tool in history.tools], history.seed], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _read(file: Path, *, mend: bool) -> dict[str, Message]:
    """The replies of a file; a last line that was not written to its end is left out, and removed where more are to follow."""
    found: dict[str, Message] = {}
    lines = file.read_text("utf-8").split("\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            row = json.loads(line)
            found[row["key"]] = Message.from_json(row["reply"])
        except (ValueError, KeyError, TypeError):
            raise TurnwiseError(
                f"{file}, line {number}: this is no recorded reply.",
                "Remove the line; what it answered is asked again.",
            ) from None
    if lines[-1] and mend:
        file.write_text("".join(f"{line}\n" for line in lines[:-1]), "utf-8")
    return found


@component("policy", "recorded", form="recorded:FILE")
def recorded(target: str, options: PolicyOptions) -> RecordingPolicy:
    """Replies that were recorded; what is new is asked of `{model: POLICY}` and added."""
    from turnwise.agents.policies.registry import make_policy

    given = options._asdict() | {"model": ""}
    return RecordingPolicy(Path(target), make_policy(options.model, **given) if options.model else None)
