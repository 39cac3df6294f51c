"""Chats out of an episode log, for fine-tuning elsewhere: one JSON object a line, with messages and tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.core import Trajectory, Turn
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import Record
from turnwise.durable import written_whole
from turnwise.envs.core import tool_specs
from turnwise.envs.messages import Message
from turnwise.envs.registry import env_class
from turnwise.errors import RunError, TurnwiseError
from turnwise.tasks.core import Json


class ChatsWritten(NamedTuple):
    """Counts of the chats that were written, that were not wanted, and that have no single conversation."""

    written: int
    unwanted: int
    programs: int


def write_chats(
    log: Path | str, out: Path | str, *, solved: bool = False, least: float = float("-inf")
) -> ChatsWritten:
    """Write a log's episodes as chats, a line for each agent of each episode that counts.

    Args:
        log: an episode log.
        out: the file that is written.
        solved: only episodes whose task was solved.
        least: only those whose score is at least this.

    Raises:
        TurnwiseError: the log is missing or damaged, or holds no such episode.
        RunError: the file cannot be written.
    """
    written = unwanted = programs = 0
    out = Path(out)
    try:
        with written_whole(out) as file:
            for record in LogReader(log):
                episode = record.episode
                if not episode.outcome.counts or (solved and not episode.success) or episode.score < least:
                    unwanted += 1
                    continue
                for chat in chats_of(record):
                    programs += chat is None
                    if chat is not None:
                        file.write(json.dumps(chat, ensure_ascii=True).encode() + b"\n")
                        written += 1
            if not written:
                raise TurnwiseError(
                    f"{log} holds no chat to write: {unwanted} episodes are not wanted, {programs} are of programs.",
                    "Ask for less: without --solved, or with a smaller --least.",
                )
    except OSError as error:
        raise RunError(f"{out} cannot be written: {error.strerror or error}.", "Check the path.") from error
    return ChatsWritten(written, unwanted, programs)


def chats_of(record: Record) -> Iterator[dict[str, Json] | None]:
    """A chat for each agent of an episode; None where it was not shown all of it: a program or a context manager stood between."""
    episode = record.episode
    for trajectory in episode.trajectories.values():
        if any(_shown_apart(turn) for turn in trajectory.turns):
            yield None
        elif trajectory.turns:
            yield {
                "messages": [_plain(message) for message in _messages(trajectory)],
                "tools": _tools(episode.task.env),
                "env": episode.task.env,
                "task": episode.task.id,
                "agent": trajectory.agent,
                "score": trajectory.score,
                "end": episode.end.value if episode.end else None,
            }


def _shown_apart(turn: Turn) -> bool:
    """Say whether a turn's prompt is another than the whole conversation before it."""
    reply = turn.reply
    return turn.acts is not None or reply.caller is not None or reply.continues is not None


def _messages(trajectory: Trajectory) -> Iterator[Message]:
    """Yield all that the agent saw and said, up to the last thing that it said."""
    for turn in trajectory.turns:
        yield from turn.observation
        yield turn.action


def _plain(message: Message) -> dict[str, Json]:
    """A message as chat templates of transformers read it: arguments are objects."""
    said: dict[str, Json] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = [
            {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.tool_calls
        ]  # fmt: skip
    return said | ({"tool_call_id": message.tool_call_id} if message.tool_call_id else {})


def _tools(env: str) -> list[Json]:
    """The tools that an environment's class declares; none where it is not installed, or they are the task's."""
    try:
        tools: Any = env_class(env).tools
    except TurnwiseError:
        return []
    return list(tool_specs(tools)) if isinstance(tools, tuple) else []
