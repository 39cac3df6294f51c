"""Plays made-up conversations with an engine that has a fault in some places, and writes them as a trainer's log."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from mismatching.sampling import Engine, Reply, sample
from mismatching.talk import Message, Reader, encode, end_id, question, system_message

Rewrite: TypeAlias = Literal["", "engine read others", "row has others"]
Ending: TypeAlias = Literal["", "stops elsewhere", "cut off", "put there"]


class Place(NamedTuple):
    """Where a fault is: in these episodes, from this turn on, and in that turn from this token on."""

    episodes: frozenset[int]
    turn: int = 0
    token: int = 0

    def holds(self, episode: int, turn: int) -> bool:
        """Say whether an episode's turn is at or behind the place."""
        return episode in self.episodes and turn >= self.turn


class Wrong(NamedTuple):
    """An engine that is not as the trainer believes, and the way in which the log is not what it read.

    Attributes:
        reader: how the engine renders what it reads.
        writer: how the row is rendered.
        rewrite: whose history was decoded and encoded again.
        strip: spaces around a reply are lost on the way.
        ending: how turns end.
        stop: the token at which an engine stops that stops elsewhere.
        in_the_row: the row is rendered as the engine reads it, and not as the template does.
    """

    engine: Engine
    reader: Reader
    writer: Reader
    rewrite: Rewrite = ""
    strip: bool = False
    ending: Ending = ""
    stop: int = -1
    in_the_row: bool = False


class Size(NamedTuple):
    """How much is played."""

    episodes: int
    turns: int
    most_tokens: int
    calls: bool


@dataclass
class Turn:
    """A reply in its row: its place, what was reported, and which tokens the fault changes."""

    start: int
    ids: list[int]
    logprobs: list[float | None]
    cut: list[float]
    faulty: list[bool]


@dataclass
class Episode:
    """A conversation while it is played."""

    number: int
    messages: list[Message]
    row: list[int] = field(default_factory=list[int])
    read: list[int] = field(default_factory=list[int])
    turns: list[Turn] = field(default_factory=list[Turn])
    before: list[list[int]] = field(default_factory=list[list[int]])
    """Each call's row up to its reply."""
    ended: bool = False
    differs: bool = False
    """Whether what the engine read is by now other than the row."""


def play(
    size: Size, right: Engine, wrong: Wrong, place: Place, tokenizer: Any, context: int, rng: random.Random
) -> list[Episode]:
    """Play all episodes, turn by turn; an episode ends early where the next turn may not fit."""
    draws = torch.Generator().manual_seed(rng.getrandbits(40))
    system = rng.random() < 0.6
    episodes = [
        Episode(n, [{"role": "system", "content": system_message(rng)}] if system else [])
        for n in range(size.episodes)
    ]
    for turn in range(size.turns):
        going: list[Episode] = []
        for episode in episodes:
            if len(episode.turns) == turn and _ask(
                episode, turn, size, wrong, place, tokenizer, context, rng
            ):
                going.append(episode)
        _reply(going, turn, size, right, wrong, place, end_id(tokenizer), draws)
        for episode in going:
            _keep(episode, turn, wrong, place, tokenizer)
    return [episode for episode in episodes if episode.turns]


def _ask(
    episode: Episode,
    turn: int,
    size: Size,
    wrong: Wrong,
    place: Place,
    tokenizer: Any,
    context: int,
    rng: random.Random,
) -> bool:
    messages = [*episode.messages, {"role": "user", "content": question(rng)}]
    right, bad = Reader(tokenizer), place.holds(episode.number, turn)
    reader, writer = (wrong.reader, wrong.writer) if episode.number in place.episodes else (right, right)
    written = writer.before(messages, turn, episode.ended)
    row = [*episode.row, *written]
    read = [*episode.read, *reader.before(messages, turn, episode.ended)]
    other = wrong.in_the_row and written != right.before(messages, turn, episode.ended)
    if max(len(row), len(read)) + size.most_tokens + 2 > context:
        return False
    episode.messages, episode.row, episode.read = messages, row, read
    episode.differs |= bad and (row != read or other)
    return True


def _reply(
    going: Sequence[Episode],
    turn: int,
    size: Size,
    right: Engine,
    wrong: Wrong,
    place: Place,
    end: int,
    draws: torch.Generator,
) -> None:
    """Sample this turn's replies: with the right engine, the wrong one, or first the one and then the other."""
    bad = [e for e in going if place.holds(e.number, turn)]
    first = place.token if turn == place.turn else 0
    stops = [wrong.stop] if wrong.ending == "stops elsewhere" else [end]
    most = size.most_tokens
    good = [e for e in going if e not in bad]
    for episode, reply in zip(
        good, sample(right, [e.read for e in good], [end], [most] * len(good), draws), strict=True
    ):
        _add(episode, reply, faulty=False)
    begun = sample(right, [e.read for e in bad], [end], [first] * len(bad), draws)
    rests = [0 if reply.ids[-1:] == [end] else most - len(reply.ids) for reply in begun]
    prompts = [[*e.read, *reply.ids] for e, reply in zip(bad, begun, strict=True)]
    for episode, reply, rest in zip(
        bad, begun, sample(wrong.engine, prompts, stops, rests, draws), strict=True
    ):
        _add(episode, reply, faulty=False)
        _extend(episode.turns[-1], rest)


def _add(episode: Episode, reply: Reply, *, faulty: bool) -> None:
    told: list[float | None] = [*reply.logprobs]
    flags = [faulty or episode.differs] * len(reply.ids)
    episode.turns.append(Turn(len(episode.row), [*reply.ids], told, [*reply.cut], flags))


def _extend(turn: Turn, reply: Reply) -> None:
    turn.ids += reply.ids
    turn.logprobs += reply.logprobs
    turn.cut += reply.cut
    turn.faulty += [True] * len(reply.ids)


def _keep(episode: Episode, turn: int, wrong: Wrong, place: Place, tokenizer: Any) -> None:
    """Put a reply into both histories, as the fault has it."""
    last, end = episode.turns[-1], end_id(tokenizer)
    bad = place.holds(episode.number, turn)
    if bad and wrong.ending:
        _end_otherwise(last, wrong, end)
    elif wrong.ending:
        last.faulty = [False] * len(last.ids)
    episode.ended = last.ids[-1:] == [end]
    body = last.ids[:-1] if episode.ended else last.ids
    text = tokenizer.decode(body, skip_special_tokens=True)
    others = encode(tokenizer, text.strip() if wrong.strip else text) if bad and wrong.rewrite else body
    tail = [end] if episode.ended else []
    episode.before.append([*episode.row])
    episode.row += [*(others if wrong.rewrite == "row has others" else body), *tail]
    episode.read += [*(others if wrong.rewrite == "engine read others" else body), *tail]
    if wrong.rewrite:
        last.faulty = [episode.differs] * len(last.ids)
        episode.differs |= others != body
    episode.messages = [*episode.messages, {"role": "assistant", "content": text}]


def _end_otherwise(last: Turn, wrong: Wrong, end: int) -> None:
    """Cut the end token off, or put one there; ``faulty`` then holds where."""
    last.faulty = [False] * len(last.ids)
    if wrong.ending == "cut off" and last.ids[-1:] == [end] and len(last.ids) > 1:
        for part in (last.ids, last.logprobs, last.cut, last.faulty):
            part.pop()
        last.faulty[-1] = True
    elif wrong.ending == "put there" and last.ids[-1:] != [end]:
        last.ids.append(end)
        last.logprobs.append(0.0)
        last.cut.append(0.0)
        last.faulty.append(True)
    elif wrong.ending == "stops elsewhere" and (last.ids[-1:] == [wrong.stop] or end in last.ids):
        last.faulty[-1] = True
