"""Logs as rows: JSON lines that any framework can write, and episode logs of ours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.episodes import LOG_NAME
from turnwise.errors import FileError, TurnwiseError
from turnwise.texts import read_json_lines
from turnwise.trainers.mismatch.core import PLAIN, DeclaredSampling, LoggedRow
from turnwise.trainers.mismatch.dialects import in_our_words

FORM = "docs/how-to/mismatch.md describes the lines of a log."
SURE = 1e-3
"""By how much rounding may lift a log-probability above 0."""
Given = Mapping[str, Any]


class NoRowError(Exception):
    """A line that is no row, and why."""


def read_rows(path: Path, declared: DeclaredSampling = PLAIN) -> list[LoggedRow]:
    """Read the rows of a log that have sampled tokens with log-probabilities.

    Args:
        path: a file of JSON lines, an episode log of ours, or the folder of a run or evaluation that holds one.
        declared: the settings of rows that declare none.

    Raises:
        TurnwiseError: there is none, a line is no row, or no token has a log-probability.
    """
    log = path / LOG_NAME if path.is_dir() else path
    if not log.is_file():
        raise TurnwiseError(f"There is no log {log}.", "Check the path.")
    ours = log.suffix == ".zst" or log.name == "episodes.jsonl"
    rows = list(_of_ours(log, declared) if ours else of_lines(log, declared))
    if not rows:
        raise TurnwiseError(f"{log} holds no rows with tokens that were sampled.", FORM)
    if not any(math.isfinite(x) for row in rows for x in row.logprobs):
        raise TurnwiseError(
            f"{log} has no sampled token with a log-probability.",
            "Log them where the engine answers: vLLM and SGLang give them on request. " + FORM,
        )
    return rows


def of_lines(path: Path, declared: DeclaredSampling) -> Iterator[LoggedRow]:
    """Read JSON lines of the form that the page describes."""
    number = 0
    for line, value in read_json_lines(path, FORM):
        for row in in_our_words(value):
            try:
                yield row_of(row, number, declared)
            except NoRowError as error:
                raise FileError(f"{path}:{line} is no row: {error}.", FORM) from None
            number += 1


def row_of(value: object, number: int, declared: DeclaredSampling = PLAIN) -> LoggedRow:
    """Read one row.

    Raises:
        NoRowError: it is none; the message says why.
    """
    if not isinstance(value, dict):
        raise NoRowError("it is no object")
    given: Given = value
    if "token_ids" in given:
        before, own = (), _ids(given, "token_ids")
    elif "completion_ids" in given:
        before, own = _ids(given, "prompt_ids"), _ids(given, "completion_ids")
    else:
        raise NoRowError("it has neither token_ids nor prompt_ids and completion_ids")
    spans = _spans(given, len(own), everything="completion_ids" in given and "token_ids" not in given)
    logps = _logprobs(given, len(own), spans)
    turns = tuple((start + len(before), stop + len(before)) for start, stop in spans)
    if any(start == 0 for start, _ in turns):
        raise NoRowError("its first token is sampled, after no prompt")
    raw = given.get("logprobs_mode")
    if raw not in (None, "raw", "processed"):
        raise NoRowError(f"logprobs_mode is {raw!r:.40}, and it is raw or processed")
    return LoggedRow(
        number,
        (*before, *own),
        turns,
        (*([math.nan] * len(before)), *logps),
        _declared(given, declared),
        None if raw is None else raw == "raw",
        _objects(given, "messages"),
        _objects(given, "tools"),
        "" if given.get("episode") is None else str(given["episode"]),
        _whole(given, "turn"),
        _whole(given, "version"),
    )


def _ids(given: Given, name: str) -> tuple[int, ...]:
    value = given.get(name)
    if not isinstance(value, list) or not all(_is_whole(one) and one >= 0 for one in value):
        raise NoRowError(f"{name} is no list of token ids")
    return tuple(value)


def _spans(given: Given, length: int, *, everything: bool) -> tuple[tuple[int, int], ...]:
    if "sampled" in given:
        spans = given["sampled"]
        if not isinstance(spans, list) or not all(_is_pair(one) for one in spans):
            raise NoRowError("sampled is no list of pairs [start, end)")
        found = [(start, stop) for start, stop in spans if stop > start]
        ends = [0, *(stop for _, stop in found)]
        if any(start < end for (start, _), end in zip(found, ends, strict=False)) or ends[-1] > length:
            raise NoRowError(f"the spans of sampled overlap, or leave the {length} tokens")
        return tuple(found)
    mask = given.get("mask")
    if mask is None:
        if everything:
            return ((0, length),) if length else ()
        raise NoRowError("it has neither sampled nor mask")
    if (
        not isinstance(mask, list)
        or len(mask) != length
        or not {*map(str, mask)} <= {"0", "1", "True", "False"}
    ):
        raise NoRowError(f"mask is no list of {length} times 0 or 1")
    spans, at = list[tuple[int, int]](), 0
    for sampled, run in itertools.groupby(map(bool, mask)):
        size = sum(1 for _ in run)
        if sampled:
            spans.append((at, at + size))
        at += size
    return tuple(spans)


def _logprobs(given: Given, length: int, spans: Sequence[tuple[int, int]]) -> list[float]:
    """One for each token; NaN where none was sampled or known."""
    value = given.get("logprobs")
    sampled = [position for start, stop in spans for position in range(start, stop)]
    if not isinstance(value, list) or len(value) not in (length, len(sampled)):
        counts = f"{len(sampled)} sampled tokens or {length} tokens"
        told = f"has {len(value)} entries" if isinstance(value, list) else "is no list"
        raise NoRowError(f"logprobs {told}, and the row has {counts}")
    found = [math.nan] * length
    for position, one in zip(
        sampled, value if len(value) == len(sampled) else [value[p] for p in sampled], strict=True
    ):
        if one is None:
            continue
        if not isinstance(one, int | float) or isinstance(one, bool) or not -math.inf < one <= SURE:
            raise NoRowError(f"a log-probability is {one!r:.40}")
        found[position] = float(one)
    return found


def _declared(given: Given, default: DeclaredSampling) -> DeclaredSampling:
    read: dict[str, float] = {}
    for name, usual in default._asdict().items():
        value = given.get(name)
        if value is None:
            read[name] = usual
        elif not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise NoRowError(f"{name} is {value!r:.40}, and it is a number")
        else:
            read[name] = value
    return settled(**read)


def settled(temperature: float, top_p: float, top_k: float, min_p: float) -> DeclaredSampling:
    """Settings in one form: a top-k that cuts nothing is 0, whether it was written as -1 or as 0.

    Raises:
        NoRowError: they are none.

    >>> settled(1, 1.0, -1, 0)
    DeclaredSampling(temperature=1.0, top_p=1.0, top_k=0, min_p=0.0)
    """
    if not 0 <= temperature < math.inf:
        raise NoRowError(f"temperature is {temperature}, and it is 0 or more")
    if not 0 < top_p <= 1:
        raise NoRowError(f"top_p is {top_p}, and it lies above 0, up to 1")
    if not 0 <= min_p < 1:
        raise NoRowError(f"min_p is {min_p}, and it lies from 0 to below 1")
    return DeclaredSampling(float(temperature), float(top_p), max(0, int(top_k)), float(min_p))


def _objects(given: Given, name: str) -> tuple[Given, ...] | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise NoRowError(f"{name} is no list of objects")
    return tuple(value)


def _whole(given: Given, name: str) -> int | None:
    value = given.get(name)
    if value is not None and not _is_whole(value):
        raise NoRowError(f"{name} is {value!r:.40}, and it is a whole number")
    return value


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_whole(one) and one >= 0 for one in value)


def _of_ours(path: Path, declared: DeclaredSampling) -> Iterator[LoggedRow]:
    """Read the rows of an episode log: what the policy chose itself, in the rows that are trained on."""
    from turnwise.trainers.learn.collate import collate_rows

    number = 0
    for record in LogReader(path):
        for agent in record.episode.trajectories.values():
            if not any(turn.reply.logprobs for turn in agent.turns):
                continue
            rows = collate_rows([agent])
            for r, length in enumerate(rows.length_R.tolist()):
                turn_T = rows.turn_RT[r, :length].tolist()
                own_T = (rows.source_RT[r, :length] == 0) & rows.known_RT[r, :length]
                spans, at = list[tuple[int, int]](), 0
                for turn, run in itertools.groupby(turn_T):
                    size = sum(1 for _ in run)
                    if turn >= 0 and bool(own_T[at]) and at:
                        spans.append((at, at + size))
                    at += size
                logp_T = rows.behaviour_logp_RT[r, :length].tolist()
                known = {p for start, stop in spans for p in range(start, stop)}
                if spans:
                    yield LoggedRow(
                        number,
                        tuple(rows.token_RT[r, :length].tolist()),
                        tuple(spans),
                        tuple(x if p in known else math.nan for p, x in enumerate(logp_T)),
                        declared,
                        version=_version(agent.turns),
                    )
                number += 1


def _version(turns: Sequence[Any]) -> int | None:
    return next((turn.reply.versions[0].version for turn in turns if turn.reply.versions), None)
