"""Logs that were made to exhaust whoever reads them, and lines of wrong form."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from pathlib import Path

import pytest

from turnwise import frames
from turnwise.agents.log import forms
from turnwise.agents.log.episode_log import EpisodeLog, LogReader, keep_records
from turnwise.agents.log.episodes import Episodes
from turnwise.agents.log.line import chain_link, encode
from turnwise.agents.log.records import Record, env_version, from_line, to_line
from turnwise.agents.log.repair import repair
from turnwise.errors import TurnwiseError
from turnwise.frames import MAGIC, compress, pieces
from turnwise.tasks.core import Task


@pytest.fixture
def handled(monkeypatch):
    """How many bytes decoders are given and give."""
    counts = {"in": 0, "out": 0}
    real = frames.zstd.ZstdDecompressor

    class Counting:
        def __init__(self):
            self.inner = real()

        def decompress(self, data, most=-1):
            found = self.inner.decompress(data, most)
            counts["in"] += len(data)
            counts["out"] += len(found)
            return found

        def __getattr__(self, name):
            return getattr(self.inner, name)

    monkeypatch.setattr(frames.zstd, "ZstdDecompressor", Counting)
    return counts


@pytest.fixture
def small(monkeypatch):
    """The same limits, a thousandth of their size."""
    monkeypatch.setattr(frames, "MOST_FRAME", 1 << 22)
    monkeypatch.setattr(frames, "SEARCH_AT_LEAST", 1 << 16)


def raw_frame(block: bytes = b"", size: int = 131_061) -> bytes:
    """The head of a frame, and of a raw block in it that is as long as the largest."""
    return MAGIC + b"\x00\x58" + (size << 3).to_bytes(3, "little") + block


def test_a_frame_unpacks_to_no_more_than_the_limit(tmp_path, episodes, handled, small):
    path = tmp_path / "e.jsonl.zst"
    whole = compress((to_line(Record(episodes[0])) + "\n").encode())
    bomb = compress(bytes(100_000_000))
    path.write_bytes(whole + bomb + whole)
    assert len(bomb) < 20_000
    with pytest.raises(TurnwiseError, match="it unpacks to more than"):
        list(LogReader(path))
    assert handled["out"] < frames.MOST_FRAME + (1 << 21)
    (found,) = repair(path)
    assert [cut.bytes for cut in found.cuts] == [len(bomb)]  # what lies behind it stays
    assert found.kept == 2


def test_a_bomb_at_the_end_is_no_torn_write_that_is_cut_off(tmp_path, episodes, small):
    path = tmp_path / "e.jsonl.zst"
    path.write_bytes(compress(bytes(100_000_000)))
    before = path.read_bytes()
    with pytest.raises(TurnwiseError, match="it unpacks to more than"):
        EpisodeLog(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("unit", [raw_frame(b"abc"), raw_frame()[:6], MAGIC, raw_frame(b"", 3) + b"abc"])
def test_what_a_crafted_file_costs_grows_as_the_file_does(tmp_path, handled, small, unit):
    path, costs = tmp_path / "e.jsonl.zst", []
    for size in (1 << 16, 1 << 17, 1 << 18):
        path.write_bytes(unit * (size // len(unit)))
        handled.update({"in": 0, "out": 0})
        with contextlib.suppress(TurnwiseError):
            assert all(piece.lines is None for piece in pieces(path))
        costs.append(handled["in"] + handled["out"])
    assert costs[2] < 1.1 * frames.SEARCH * size
    assert costs[2] < 2.5 * costs[1] < 6 * costs[0]


def test_a_file_that_is_searched_in_vain_is_left_as_it_is(tmp_path, small):
    path = tmp_path / "e.jsonl.zst"
    path.write_bytes(raw_frame(b"abc") * 30_000)
    before = path.read_bytes()
    for use in (lambda: EpisodeLog(path), lambda: list(LogReader(path)), lambda: repair(path)):
        with pytest.raises(TurnwiseError, match="no more of it is looked for"):
            use()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_frames_that_we_write_are_frames_that_we_read(tmp_path, episodes, monkeypatch):
    monkeypatch.setattr(frames, "FULL_FRAME", 4000)
    monkeypatch.setattr("turnwise.agents.log.episode_log.FULL_FRAME", 4000)
    path = tmp_path / "e.jsonl.zst"
    with EpisodeLog(path, flush_every=10**6) as log:
        for episode in episodes:
            log.append(episode)
    assert all(len(piece.lines or b"") < 12_000 for piece in pieces(path))
    kept = keep_records(path, lambda record: record.episode != episodes[0])
    assert len(kept) == len(episodes) - 1
    assert len(list(pieces(path))) > 1
    assert all(len(piece.lines or b"") < 12_000 for piece in pieces(path))


def test_a_line_of_any_length_is_refused_before_it_is_read(tmp_path, episodes, monkeypatch):
    line = to_line(Record(episodes[0]))
    monkeypatch.setattr(forms, "MOST_LINE", len(line) - 1)
    monkeypatch.setattr("turnwise.agents.log.episode_log.MOST_LINE", len(line) - 1)
    with pytest.raises(ValueError, match="is the most that a line may have"):
        from_line(line)
    with (
        EpisodeLog(tmp_path / "e.jsonl") as log,
        pytest.raises(TurnwiseError, match="the most that are read again"),
    ):
        log.append(episodes[0])


WILD = [None, True, False, 0, -1, 1.5, 2**70, 10**400, "", "x", "\ud800", [], {}, [[]], [{}], {"a": [1]}, float("nan"),
        1e308, [None], {"": ""}, -(2**63), "__del__"]  # fmt: skip


def places(value, path=()):
    """The way to each value inside of a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value[:3]):
            yield from places(inner, (*path, index))


def damaged(line: str, rng: random.Random) -> str:
    """A line with one or two values of another type, and hashes that fit."""
    data = json.loads(line)
    for _ in range(rng.choice((1, 1, 2))):
        *way, last = rng.choice([path for path in places(data) if path])
        inside = data
        for key in way:
            inside = inside[key]
        new = copy.deepcopy(rng.choice(WILD))
        if new == "__del__":
            del inside[last]
        else:
            inside[last] = new
    try:
        data["task_id"] = Task.from_json(data["task"]).id
        for agent in data["agents"].values():
            chain = ""
            for turn in agent["turns"]:
                turn["chain"] = chain = chain_link(chain, encode(turn["observation"]))
            agent["chain"] = chain_link(chain, encode(agent["final"]))
    except Exception:  # noqa: BLE001, S110 (what has no hash needs none)
        pass
    return json.dumps(data)


def test_a_line_is_damaged_or_can_be_used(episodes):
    lines = [
        to_line(Record(episode, env=env_version(episode.task.env, {"a": [1]}))) for episode in episodes[:3]
    ]
    rng, read = random.Random(7), 0
    for _ in range(600):
        line = damaged(rng.choice(lines), rng)
        try:
            record = from_line(line)
        except (ValueError, RecursionError, TurnwiseError):  # the last: of another format
            continue
        read += 1
        try:
            assert from_line(to_line(record)) == record
            Episodes([record]).to_arrow()
        except TurnwiseError:
            continue
        assert record.episode.trajectory.total_reward + record.episode.score < 1e309
    assert read > 50


@pytest.mark.parametrize(
    ("field", "value"), [("metrics", [1]), ("seed", True), ("agents", {}), ("update", 1.5)]
)
def test_a_field_of_another_type_is_damage_with_its_name(tmp_path: Path, episodes, field, value):
    path = tmp_path / "e.jsonl"
    data = json.loads(to_line(Record(episodes[0])))
    path.write_text(json.dumps(data | {field: value}) + "\n" + json.dumps(data) + "\n")
    with pytest.raises(TurnwiseError, match=f"line 1: {field} cannot be"):
        list(LogReader(path))
    assert [cut.why.split(" cannot")[0] for cut in repair(path)[0].cuts] == [f"a line: {field}"]
