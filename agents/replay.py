"""Replay logged episodes and check that the same task, seed and actions give the same bytes.

The recorded replies are played by :func:`turnwise.agents.rollout.rollout_episode`, the very loop that recorded them,
and what the environment answers is compared: observations as JSON bytes, rewards and their parts exactly,
state keys, bad-action marks, details, and how it ended.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.core import ROOT, Episode, History, Reply, Turn, after
from turnwise.agents.gateway.external_env import register_external
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.episodes import LOG_NAME
from turnwise.agents.log.records import Record, env_version
from turnwise.agents.rollout import rollout_episode
from turnwise.blocking import blocking
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import resolve
from turnwise.envs.trust import NO_TRUST, LogTrust, make_logged
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json

_CONTEXT = 80


class Difference(NamedTuple):
    """The first place where the replay differs from the record."""

    line: int  # of the log, from 1
    turn: int  # from 1; 0 is what the episode as a whole says
    what: str
    expected: str
    got: str
    code_changed: bool  # the environment's source is not the one that wrote the record

    def __str__(self) -> str:
        where = f"turn {self.turn}" if self.turn else "its end"
        changed = "\n  (the environment's code has changed since)" if self.code_changed else ""
        return (
            f"episode {self.line}, {where}: {self.what}\n"
            f"  expected {self.expected}\n  got      {self.got}{changed}"
        )


@dataclass(frozen=True)
class ReplayReport:
    """Counts of the episodes and turns that were replayed, and the first difference, if there is one."""

    episodes: int
    turns: int
    equal: int
    difference: Difference | None
    seconds: float

    @property
    def ok(self) -> bool:
        return self.equal == self.episodes

    def __str__(self) -> str:
        done = f"{self.equal} of {self.episodes} episodes ({self.turns} turns) replay byte for byte"
        return f"{done}." if self.difference is None else f"{done}; first difference:\n{self.difference}"

    def to_json(self) -> dict[str, Json]:
        return {
            "ok": self.ok,
            "episodes": self.episodes,
            "turns": self.turns,
            "equal": self.equal,
            "difference": self.difference and self.difference._asdict(),
            "seconds": self.seconds,
        }


class RecordedPolicy:
    """Plays the replies of one agent of a recorded episode, then ends it as the record does.

    Where a program stood between agent and environment, its actions are played between the replies as they were then.
    """

    name = "recorded"
    version = 0

    def __init__(self, episode: Episode, agent: str) -> None:
        self._episode = episode
        self._replies = iter(recorded_replies(episode.trajectories[agent].turns))

    async def act(self, history: History) -> Reply:
        reply = next(self._replies, None)
        if reply is not None:
            return reply
        if self._episode.end is None:
            raise TurnwiseError("The record stops here.", self._episode.error or "No reason is recorded.")
        return Reply(Message("assistant", ""), end=self._episode.end)

    async def leave(self, history: History, end: EndReason | None) -> Sequence[Reply]:
        """Return the replies that were still being sampled when the episode ended."""
        return list(itertools.takewhile(lambda reply: reply.silent, self._replies))

    def close(self) -> None:
        pass


def recorded_replies(turns: Sequence[Turn]) -> Iterator[Reply]:
    """Yield the replies by which a policy made these turns come about, in order."""
    acts = sorted((act.number, place) for place, turn in enumerate(turns) for act in turn.acts or ())
    said = {act.number: act for turn in turns for act in turn.acts or ()}
    stood = 0
    for number, place in acts:
        while stood < said[number].turns:
            yield _reply_of(turns[stood])
            stood += 1
        alone = place == stood  # it came before any reply, and made a turn
        yield Reply(said[number].message, of=ROOT if alone else after(place))
        stood += alone
    yield from map(_reply_of, turns[stood:])


def _reply_of(turn: Turn) -> Reply:
    return turn.reply._replace(silent=turn.acts is not None)


async def replay_async(
    log: Path | str | Iterable[Record],
    *,
    trust_log: bool = False,
    env: str = "",
    env_options: Mapping[str, Json] | None = None,
) -> ReplayReport:
    """Play all episodes of a log again, in fresh environments.

    >>> import turnwise
    >>> played = turnwise.rollout("shop/easy", "scripted:random", episodes=3)
    >>> turnwise.replay(played.records).ok
    True

    Args:
        log: an episode log, the folder that holds one, or its records.
        trust_log: carry out what it says of environments: code in files, options that loosen isolation, addresses, references.
        env: the file of its environment (``path/to/file.py``), where that is not installed.
        env_options: what environments are made with, in place of the same options in the log.

    Returns:
        How many episodes came out byte for byte the same, and the first difference.

    Raises:
        TurnwiseError: the log is missing, damaged or empty, or an environment is not installed.
        EnvError: the log asks for more than a log may that nobody trusts.
    """
    if isinstance(log, (str, Path)):
        log = Path(log)
        log = LogReader(log / LOG_NAME if log.is_dir() else log)
    register_external()
    if env:
        resolve(env)
    trust = LogTrust(trust_log, env_options or {})
    started = time.monotonic()
    episodes = turns = equal = 0
    first: Difference | None = None
    for line, record in enumerate(log, 1):
        await asyncio.sleep(0)  # a pure environment never waits: let Ctrl-C come between
        difference = await replay_one(record, line, trust)
        episodes += 1
        turns += len(record.episode.trajectory.turns)
        equal += difference is None
        first = first or difference
    if not episodes:
        raise TurnwiseError("There is no episode to replay.", "The log is empty; play some episodes first.")
    return ReplayReport(episodes, turns, equal, first, time.monotonic() - started)


replay = blocking(replay_async)


async def replay_one(record: Record, line: int = 1, trust: LogTrust = NO_TRUST) -> Difference | None:
    """The first difference between a record and its replay, or None.

    Raises:
        EnvError: the record asks for more than it may.
    """
    old = record.episode
    policy_map = {agent: RecordedPolicy(old, agent) for agent in old.trajectories}
    env = make_logged(record.logged, trust)
    try:
        new = await rollout_episode(env, policy_map, old.task, seed=old.seed)
    finally:
        env.close()
    for turn, what, expected, got in _all_pairs(old, new):
        if expected != got:
            now = env_version(old.task.env, record.env.options)
            return Difference(line, turn, what, *_around(expected, got), now.source != record.env.source)
    return None


def _all_pairs(old: Episode, new: Episode) -> Iterator[tuple[int, str, str, str]]:
    """Everything that must be equal, as text, agent by agent."""
    yield 0, "agents", ", ".join(old.trajectories), ", ".join(new.trajectories)
    for agent in old.trajectories:
        yield from _pairs(old, new, agent)


def _pairs(old: Episode, new: Episode, agent: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield the pairs to compare of one agent, in the order in which they happened."""
    before, after = old.trajectories[agent], new.trajectories[agent]
    for number, (a, b) in enumerate(zip(before.turns, after.turns, strict=False), 1):
        yield number, "observation", _text(a.observation), _text(b.observation)
        yield number, "state key", a.state_key, b.state_key
        yield number, "reward parts", _text(dict(a.rewards)), _text(dict(b.rewards))
        yield number, "reward", repr(a.reward), repr(b.reward)
        yield number, "bad action", repr(a.bad_action), repr(b.bad_action)
        yield number, "details", _text(dict(a.details)), _text(dict(b.details))
    if old.outcome.counts:  # a record that a fault cut short ends with that fault, which need not recur
        yield len(after.turns) + 1, "fault", "none", new.error or "none"
        yield 0, "last observation", _text(before.final), _text(after.final)
        yield 0, "end", str(old.end), str(new.end)
    yield 0, "number of turns", str(len(before.turns)), str(len(after.turns))


def _text(value: Messages | dict[str, Json]) -> str:
    return json.dumps(value.to_json() if isinstance(value, Messages) else value)


def _around(expected: str, got: str) -> tuple[str, str]:
    """Both texts, cut to the neighbourhood of the first character in which they differ."""
    at = next((i for i, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), -1)
    at = min(len(expected), len(got)) if at < 0 else at
    start, stop = max(0, at - _CONTEXT), at + _CONTEXT

    def cut(text: str) -> str:
        return f"{'…' if start else ''}{text[start:stop]}{'…' if len(text) > stop else ''}"

    return cut(expected), cut(got)
