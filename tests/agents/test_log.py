import errno
import json
import os
import resource
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from turnwise.agents.core import (
    PREVIOUS,
    ROOT,
    Act,
    Episode,
    Finish,
    MemoryMark,
    Outcome,
    Reply,
    Served,
    Trajectory,
    Turn,
    Usage,
    VersionSpan,
    after,
)
from turnwise.agents.log import line
from turnwise.agents.log.episode_log import (
    EpisodeLog,
    LogPlace,
    LogReader,
    cut_log,
    read_episodes,
    read_record,
)
from turnwise.agents.log.parquet import to_parquet
from turnwise.agents.log.records import EnvVersion, Record, from_line, to_line
from turnwise.agents.log.repair import repair
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Image, Message, Messages
from turnwise.errors import EnvError, TurnwiseError
from turnwise.fault import FaultCause
from turnwise.frames import compress
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolCall, Verbatim
from turnwise.trainers.view.index import LogIndex

texts = st.text(st.characters(), max_size=20)  # surrogates, controls and all
finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, values, max_size=3)
beside = st.none() | st.builds(Verbatim.of, texts, objects)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    texts,
    st.lists(st.builds(ToolCall, texts, objects, texts, extra=beside), max_size=2).map(tuple),
    texts,
    st.lists(st.builds(Image, st.binary(max_size=9), texts), max_size=1).map(tuple),
    extra=beside,
)
observations = st.lists(messages, max_size=3).map(Messages)
ids = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
ends = st.none() | st.sampled_from(EndReason)
spans = st.lists(st.builds(VersionSpan, st.integers(0, 9), st.integers(0)), max_size=2).map(tuple)
served = st.builds(
    Served,
    st.sampled_from(Finish),
    texts,
    st.builds(Usage, *[st.none() | st.integers(0, 9)] * 4, st.none() | st.floats(0, 9)),
    *[texts] * 3,
)
replies = st.builds(
    Reply,
    message=messages,
    prompt_ids=ids,
    action_ids=ids,
    logprobs=st.lists(finite, max_size=4).map(tuple),
    versions=spans,
    parent=st.sampled_from([PREVIOUS, ROOT, after(0), after(3)]),
    served=served,
    scored_ids=st.none() | ids,
    source=texts,
    end=ends,
    silent=st.just(False),  # these two are of a reply on its way to a turn
    of=st.none(),
    memory=st.none(),
)
acts = st.builds(Act, messages, st.integers(0), st.integers(0), st.booleans())
turns = st.builds(
    Turn,
    observation=observations,
    reply=replies,
    reward=finite,
    rewards=st.dictionaries(texts, finite),
    state_key=texts,
    bad_action=st.booleans(),
    details=objects,
    weight=finite,
    acts=st.none() | st.lists(acts, max_size=2).map(tuple),
)


def remembered(turn: Turn, asked: int, told: list[Message] | None) -> Turn:
    """The turn as one of kind memory, if anything is told of that."""
    if told is None:
        return turn
    memory = MemoryMark(Messages(turn.observation[max(len(turn.observation) - asked, 0) :]), Messages(told))
    return replace(turn, reply=turn.reply._replace(memory=memory))


turns = st.builds(remembered, turns, st.integers(0, 2), st.none() | st.lists(messages, max_size=2))
trajectories = st.builds(Trajectory, st.lists(turns, max_size=3).map(tuple), st.just("agent"), observations)
plain = st.text(st.characters(codec="utf-8"), max_size=20)  # task hashes are made of UTF-8
records = st.builds(
    Record,
    st.builds(
        Episode,
        st.builds(Task, plain, plain, st.dictionaries(plain, st.integers() | plain), st.none() | plain),
        st.integers(),
        trajectories.map(lambda t: {"agent": t}),
        st.sampled_from(Outcome),
        ends,
        texts,
        st.dictionaries(texts, finite),
        st.none() | st.sampled_from(FaultCause),
    ),
    texts,
    st.builds(EnvVersion, texts, texts, objects),
    st.none() | st.integers(0),
    st.none() | st.integers(0),
)


@pytest.mark.slow
@given(records, st.lists(finite, min_size=3, max_size=3))
def test_a_record_survives_its_line_exactly(record, advantages):
    record = replace(
        record,
        advantages={
            name: tuple(advantages[: len(t.turns)])
            for name, t in record.episode.trajectories.items()
            if t.turns
        },
    )
    text = to_line(record)
    assert "\n" not in text
    assert text == json.dumps(json.loads(text), separators=(",", ":")), "it is put together of texts"
    assert from_line(text) == record
    assert to_line(from_line(text)) == text


def test_a_group_writes_its_task_and_its_first_prompt_once(monkeypatch):
    task, prompt = Task("turnwise/Shop-v0", "Buy a mug.", {"note": "x" * 2_000}), tuple(range(3_000))
    group = [
        Episode(task, seed, {"agent": Trajectory((_said(prompt), _said((seed, 7))))}, Outcome.OK)
        for seed in range(4)
    ]
    wrote, ids = list[int](), list[int]()
    encode, written_ids = line.encode, line._written_ids
    monkeypatch.setattr(line, "encode", lambda value: wrote.append(len(text := encode(value))) or text)
    monkeypatch.setattr(line, "_written_ids", lambda some: ids.append(len(some)) or written_ids(some))
    for episode in group:
        assert from_line(to_line(Record(episode))).episode == episode
    assert sum(wrote) < 2 * 2_000 + 4 * 1_000
    assert sum(ids) == 3_000 + 4 * 2 + 4 * 2 * 1


def _said(prompt: tuple[int, ...]) -> Turn:
    reply = Reply(Message("assistant", "a"), prompt, (5,), (-0.5,), (VersionSpan(0, 0),))
    return Turn(Messages([Message("user", "Go on.")]), reply, 0.0, {}, "key")


def test_a_log_of_another_format_is_told_as_such_and_never_cut(tmp_path, episodes):
    path = written(tmp_path / "e.jsonl", episodes[:2])
    path.write_text(path.read_text().replace('"format":3', '"format":2'))
    before = path.read_bytes()
    with pytest.raises(TurnwiseError, match="format 2, written by"):
        list(LogReader(path))
    with pytest.raises(TurnwiseError, match="format 2, written by"):
        repair(path)
    assert path.read_bytes() == before


def written(path: Path, episodes: list[Episode], **options) -> Path:
    with EpisodeLog(path, **options) as log:
        for episode in episodes:
            log.append(episode)
    return path


@pytest.mark.parametrize("name", ["e.jsonl", "e.jsonl.zst"])
def test_write_and_read(tmp_path, episodes, name):
    path = written(tmp_path / "deep" / name, episodes[:7], flush_every=3)
    written(path, episodes[7:])  # a second writer continues
    reader = LogReader(path)
    assert [record.episode for record in reader] == episodes
    assert reader.dropped == 0
    assert list(read_episodes(path)) == episodes
    record = next(iter(reader))
    assert record.env.entry.endswith(":GuessEnv")
    assert len(record.env.source) == 16


def test_the_file_is_plain_zstandard_of_json_lines(tmp_path, episodes):
    path = written(tmp_path / "e.jsonl.zst", episodes, flush_every=5)
    with path.open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read().decode()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["task_id"] for line in lines] == [episode.task.id for episode in episodes]
    action_ids = lines[0]["agents"]["agent"]["turns"][0]["action_ids"]
    assert tuple(action_ids) == episodes[0].trajectory.turns[0].reply.action_ids


def test_lines_end_at_line_feeds_alone_for_all_that_read_a_log(tmp_path, episodes):
    path = tmp_path / "e.jsonl.zst"
    lines = [to_line(Record(one)).replace("{", "{\r", 1) + "\r\n" for one in episodes[:3]]
    path.write_bytes(compress("".join(lines).encode()))
    assert list(read_episodes(path)) == episodes[:3]
    assert read_record(path, LogPlace(0, 1)).episode == episodes[1]
    assert repair(path, dry_run=True)[0].cuts == ()
    found = LogIndex(path, tmp_path / "cache").update()
    assert (found.episodes, found.problem) == (3, "")
    assert cut_log(path, lambda record: record.episode in episodes[:2]) == 2
    assert list(read_episodes(path)) == episodes[:2]


@pytest.mark.parametrize("name", ["e.jsonl", "e.jsonl.zst"])
def test_a_crash_at_any_byte_loses_at_most_the_last_frame(tmp_path, episodes, name):
    size = written(tmp_path / name, episodes[:4], flush_every=2).stat().st_size
    whole = (tmp_path / name).read_bytes()
    first = written(tmp_path / f"first-{name}", episodes[:2], flush_every=2).stat().st_size
    torn = tmp_path / f"torn-{name}"
    for cut in sorted({*range(first, size, 97), first + 1, first + 3, first + 5, size - 1}):
        torn.write_bytes(whole[:cut])
        reader = LogReader(torn)
        kept = [record.episode for record in reader]
        assert kept == episodes[: len(kept)]
        assert 2 <= len(kept) < 4
        assert reader.dropped == (cut > first and not (name == "e.jsonl" and whole[cut - 1 : cut] == b"\n"))
        written(torn, [episodes[5]])  # … and the log can be continued
        assert list(read_episodes(torn)) == [*kept, episodes[5]]


def test_zeros_after_a_power_cut_are_a_torn_end(tmp_path, episodes):
    path = written(tmp_path / "e.jsonl.zst", episodes[:4], flush_every=2)
    path.write_bytes(path.read_bytes() + bytes(500))
    reader = LogReader(path)
    assert len(list(reader)) == 4
    assert reader.dropped == 1


def test_damage_in_the_middle_is_named(tmp_path, episodes):
    path = written(tmp_path / "e.jsonl.zst", episodes, flush_every=4)
    data = bytearray(path.read_bytes())
    frames = [i for i in range(len(data)) if data[i : i + 4] == b"\x28\xb5\x2f\xfd"]
    data[frames[1] + 200] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(TurnwiseError, match=r"e\.jsonl\.zst is damaged at the lines from 5 on"):
        list(read_episodes(path))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda line: line[: len(line) // 2], "line 2: "),
        (lambda line: line.replace("higher", "HIGHER").replace("lower", "LOWER"), "does not match its hash"),
        (lambda line: line.replace('"secret":', '"secret":1'), "does not match its hash"),
        (lambda line: line.replace('"seed"', '"sed"'), "line 2: seed is missing"),
        (lambda line: '{"format":99}', "not an episode of format 3"),
        (lambda line: "[]", "not an episode of format 3"),
        (lambda line: "", "line 2: "),
    ],
)
def test_a_changed_line_is_named(tmp_path, episodes, change, why):
    longest = sorted(episodes, key=lambda episode: -len(episode.trajectory.turns))[:3]
    path = written(tmp_path / "e.jsonl", longest)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], change(lines[1]), lines[2]]) + "\n")
    with pytest.raises(TurnwiseError, match=why) as caught:
        list(read_episodes(path))
    assert "e.jsonl is damaged at line 2" in caught.value.cause


def test_a_file_that_is_no_log_is_left_alone(tmp_path, episodes):
    for name in ("notes.txt", "notes.jsonl.zst"):
        path = tmp_path / name
        path.write_text("my notes")
        with pytest.raises(TurnwiseError, match="no episode log"):
            EpisodeLog(path)
        assert path.read_text() == "my notes"
    with pytest.raises(TurnwiseError, match="There is no episode log"):
        list(read_episodes(tmp_path / "missing.jsonl"))


def test_what_json_cannot_hold_is_refused_by_name(tmp_path, episodes):
    with EpisodeLog(tmp_path / "e.jsonl") as log:
        with pytest.raises(TurnwiseError, match="must be finite"):
            log.append(replace(episodes[0], metrics={"loss": float("nan")}))
        with pytest.raises(TurnwiseError, match="one per turn"):
            log.append(episodes[0], advantages={"agent": [0.0] * 99})
        log.append(episodes[0])
    assert list(read_episodes(tmp_path / "e.jsonl")) == episodes[:1]


def with_turn(episode: Episode, number: int, **changes) -> Episode:
    trajectory = episode.trajectory
    turns = list(trajectory.turns)
    turns[number] = replace(turns[number], **changes)
    return replace(episode, trajectories={"agent": replace(trajectory, turns=tuple(turns))})


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"reward": float("nan")}, EnvError, "agents.agent.turns.1.reward is nan"),
        ({"rewards": {"cost": float("-inf")}}, EnvError, "turns.1.rewards.cost is -inf"),
        (
            {"details": {"when": [{"day": date(2026, 1, 2)}]}},
            EnvError,
            "details.when.1.day is datetime.date(2026",
        ),
        ({"details": {(1, 2): 3}}, EnvError, "details.(1, 2) is 3"),
        ({"state_key": b"raw"}, EnvError, "turns.1.state_key is b'raw'"),
        ({"observation": Messages([Message("user", b"raw")])}, EnvError, "observation.1.content is b'raw'"),
        (
            {"reply": Reply(Message("assistant", "x"), logprobs=(float("nan"),))},
            TurnwiseError,
            "the policy 'tester' gave",
        ),
    ],
)
def test_what_json_cannot_hold_names_whose_it_is_and_loses_nothing(tmp_path, episodes, change, kind, said):
    path = tmp_path / "e.jsonl.zst"
    with EpisodeLog(path, policy="tester") as log:
        log.append(episodes[0])
        with pytest.raises(kind, match="cannot be written to the log") as caught:
            log.append(with_turn(episodes[1], 0, **change))
    assert said in str(caught.value)
    if kind is EnvError:
        assert "turnwise-test/Guess-v0" in str(caught.value)
    assert list(read_episodes(path)) == episodes[:1]


@contextmanager
def file_size_limit(size: int):
    """A full disk without root: writes past ``size`` bytes of any file fail, after a partial write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def append_all(log: EpisodeLog, episodes: list[Episode]) -> None:
    for episode in episodes:
        log.append(episode)


def fill(log: EpisodeLog, episodes: list[Episode]) -> int:
    """Append until the disk is full; how many episodes were written."""
    before = len(list(read_episodes(log.path)))
    with pytest.raises(TurnwiseError, match="1 new episodes are not saved; earlier ones are intact") as full:
        append_all(log, episodes)
    assert "Free disk space" in full.value.remedy
    return len(list(read_episodes(log.path))) - before


@pytest.mark.parametrize("name", ["e.jsonl", "e.jsonl.zst"])
def test_a_full_disk_leaves_earlier_lines_intact_and_can_be_repaired(tmp_path, episodes, name):
    path = tmp_path / name
    with EpisodeLog(path, flush_every=1) as log:
        log.append(episodes[0])
        with file_size_limit(3 * path.stat().st_size):
            kept = 1 + fill(log, episodes[1:])
            assert list(read_episodes(path)) == episodes[:kept]
            reader = LogReader(path)
            assert (len(list(reader)), reader.dropped) == (kept, 0)
    # There is room again on closing: what waited is written.
    assert list(read_episodes(path)) == episodes[: kept + 1]


def test_a_disk_that_is_really_full(tmp_path, episodes):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        log = EpisodeLog(disk / "e.jsonl.zst", flush_every=1)
        kept = fill(log, episodes * 20)
        with pytest.raises(TurnwiseError, match=os.strerror(errno.ENOSPC)):
            log.close()
        assert list(read_episodes(disk / "e.jsonl.zst")) == (episodes * 20)[:kept]
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def within_64_bits(record: Record) -> Record:
    turns = [
        replace(
            turn,
            reply=turn.reply._replace(
                versions=tuple(span._replace(version=span.version % 2**62) for span in turn.reply.versions)
            ),
        )
        for turn in record.episode.trajectory.turns
    ]
    trajectory = replace(record.episode.trajectory, turns=tuple(turns))
    episode = replace(record.episode, seed=record.episode.seed % 2**62, trajectories={"agent": trajectory})
    return replace(record, episode=episode, update=1, group=None)


@pytest.mark.slow
@given(st.lists(records.map(within_64_bits), max_size=3))
def test_parquet_takes_any_text(tmp_path_factory, given_records):
    path = tmp_path_factory.mktemp("any") / "e.jsonl"
    path.write_text("".join(f"{to_line(record)}\n" for record in given_records))
    table = pq.read_table(to_parquet(path)).to_pylist()
    assert len(table) == sum(len(record.episode.trajectory.turns) for record in given_records)


def test_parquet_refuses_a_seed_of_seventy_bits_by_name(tmp_path, episodes):
    path = written(tmp_path / "e.jsonl", [replace(episodes[0], seed=2**70)])
    with pytest.raises(TurnwiseError, match="at most 63 bits"):
        to_parquet(path)
    assert not list(tmp_path.glob("*.parquet*"))


def test_parquet_escapes_half_a_surrogate_pair_as_the_log_does(tmp_path, episodes):
    half = Messages([Message("user", "a \ud800 b é")])
    episode = with_turn(episodes[0], 0, observation=half, rewards={"ou\udc80t": 1.0})
    path = written(tmp_path / "e.jsonl", [episode])
    assert list(read_episodes(path)) == [episode]
    assert r"a \ud800 b \u00e9" in path.read_text()
    row = pq.read_table(to_parquet(path)).to_pylist()[0]
    assert row["observation"] == r"user: a \ud800 b é"
    assert row["rewards"] == [(r"ou\udc80t", 1.0)]


def test_parquet_has_one_row_per_turn(tmp_path, episodes):
    path = tmp_path / "e.jsonl.zst"
    with EpisodeLog(path, policy="tester") as log:
        for number, episode in enumerate(episodes):
            advantages = [0.5 * i for i in range(len(episode.trajectory.turns))]
            log.append(episode, update=7, group=number // 4, advantages={"agent": advantages})
    table = pq.read_table(to_parquet(path)).to_pylist()
    assert (tmp_path / "e.parquet").exists()
    turns = [turn for episode in episodes for turn in episode.trajectory.turns]
    assert [row["action"] for row in table] == [str(turn.action) for turn in turns]
    assert [tuple(row["logprobs"]) for row in table] == [turn.reply.logprobs for turn in turns]
    assert [dict(row["rewards"]) for row in table] == [turn.rewards for turn in turns]
    assert [row["advantage"] for row in table if row["episode"] == 0] == [
        0.5 * i for i in range(len(episodes[0].trajectory.turns))
    ]
    assert {row["update"] for row in table} == {7}
    assert [row["group"] for row in table if row["turn"] == 0] == [i // 4 for i in range(12)]
    assert not list(tmp_path.glob(".e.parquet*"))
