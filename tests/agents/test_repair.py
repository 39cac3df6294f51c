"""What `turnwise repair` cuts, keeps aside and leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from filelock import FileLock

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import EpisodeLog, LogReader, read_episodes
from turnwise.agents.log.records import to_line
from turnwise.agents.log.repair import repair
from turnwise.errors import TurnwiseError
from turnwise.frames import MAGIC, compress, pieces


def written(path: Path, episodes: list[Episode], every: int = 3) -> Path:
    with EpisodeLog(path, flush_every=every) as log:
        for episode in episodes:
            log.append(episode)
    return path


def flip(path: Path, at: int, bit: int = 7) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def starts(path: Path) -> list[int]:
    data = path.read_bytes()
    return [i for i in range(len(data)) if data.startswith(MAGIC, i)]


def test_a_flipped_byte_costs_its_frame_and_nothing_else(tmp_path, episodes):
    path = written(tmp_path / "episodes.jsonl.zst", episodes)
    frames = starts(path)
    flip(path, frames[1] + 100)
    damaged = path.read_bytes()
    with pytest.raises(TurnwiseError, match="lines from 4 on") as caught:
        list(read_episodes(path))
    assert f"turnwise repair {path}" in caught.value.remedy

    (seen,) = repair(path, dry_run=True)
    assert path.read_bytes() == damaged
    assert not seen.aside.exists()

    (done,) = repair(path)
    assert done == seen
    assert [(cut.at, cut.bytes, cut.after) for cut in done.cuts] == [(frames[1], frames[2] - frames[1], 3)]
    assert f"after line 3, {frames[2] - frames[1]} bytes" in str(done)
    assert list(read_episodes(path)) == [*episodes[:3], *episodes[6:]]
    assert path.read_bytes() == damaged[: frames[1]] + damaged[frames[2] :]
    assert done.aside.read_bytes() == damaged[frames[1] : frames[2]]
    assert repair(path)[0].cuts == ()


def as_it_was(path: Path, episodes: list[Episode]) -> bool:
    """Whether a log reads as it was; otherwise it must say that it is damaged."""
    try:
        assert list(read_episodes(path)) == episodes
    except TurnwiseError:
        return False
    return True


@pytest.mark.slow
def test_no_flipped_bit_of_a_frame_loses_anything_in_silence(tmp_path, episodes):
    """Bits of the header too: a frame that seems to be longer than the file is damage, no torn end."""
    path = written(tmp_path / "e.jsonl.zst", episodes[:3], every=1)
    whole, frames = path.read_bytes(), starts(path)
    head, silent = range(frames[1], frames[1] + 24), 0
    for at in [*head, *range(frames[1] + 24, frames[2], 37), *range(frames[2] - 5, frames[2])]:
        for bit in range(8):
            path.write_bytes(whole)
            flip(path, at, bit)
            if as_it_was(path, episodes[:3]):  # a bit that says nothing; the checksum agrees
                silent += 1
                continue
            with pytest.raises(TurnwiseError, match="damaged"):
                EpisodeLog(path)  # to continue it would cut the rest off
            repair(path)
            left = list(read_episodes(path))
            if (at, bit) == (frames[1] + 4, 2):  # says that there is no checksum, and the rest is whole
                assert left == episodes[:3]
            else:
                assert left == [episodes[0], episodes[2]], (at, bit)
    assert silent < 30


def test_one_damaged_line_of_a_frame_costs_itself(tmp_path, episodes):
    path = tmp_path / "episodes.jsonl.zst"
    written(path, episodes[:6])
    lines = [to_line(record) for record in LogReader(path)]
    lines[1] = lines[1].replace("number", "nomber", 1)
    path.write_bytes(b"".join(compress("".join(f"{x}\n" for x in lines[i : i + 3]).encode()) for i in (0, 3)))
    second = starts(path)[1]
    untouched = path.read_bytes()[second:]
    (done,) = repair(path)
    (cut,) = done.cuts
    assert (cut.after, done.kept) == (1, 5)
    assert "does not match its hash" in str(cut)
    assert list(read_episodes(path)) == [episodes[0], *episodes[2:6]]
    assert path.read_bytes().endswith(untouched)
    assert done.aside.read_text() == f"{lines[1]}\n"


def test_a_folder_is_repaired_file_by_file(tmp_path, episodes):
    written(tmp_path / "episodes.jsonl.zst", episodes)
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_bytes(b'{"update": 1}\n\xff\x00garbage\n[1]\n' + b"[" * 99_999 + b'\n{"update": 2}\n{"upd')
    (tmp_path / "notes.txt").write_text("mine")
    done = {file.path.name: file for file in repair(tmp_path)}
    assert set(done) == {"episodes.jsonl.zst", "metrics.jsonl"}
    assert done["episodes.jsonl.zst"].cuts == ()
    assert not done["episodes.jsonl.zst"].aside.exists()
    assert metrics.read_text() == '{"update": 1}\n{"update": 2}\n'
    assert done["metrics.jsonl"].aside.read_bytes() == b"\xff\x00garbage\n[1]\n" + b"[" * 99_999 + b'\n{"upd'
    assert [cut.after for cut in done["metrics.jsonl"].cuts] == [1, 1, 1, 2]
    assert "torn end" in done["metrics.jsonl"].cuts[-1].why
    assert json.loads(json.dumps(done["metrics.jsonl"].to_json()))["kept"] == 2


def test_a_file_that_is_all_damage(tmp_path):
    path = tmp_path / "e.jsonl.zst"
    path.write_bytes(MAGIC + bytes(100))
    (done,) = repair(path)
    assert (done.kept, path.read_bytes(), len(done.aside.read_bytes())) == (0, b"", 104)
    assert list(pieces(path)) == []
    assert list(read_episodes(path)) == []


def test_repair_refuses_where_it_could_do_harm(tmp_path, episodes):
    with pytest.raises(TurnwiseError, match="nothing to repair"):
        repair(tmp_path)
    with pytest.raises(TurnwiseError, match="nothing to repair"):
        repair(tmp_path / "missing")
    path = written(tmp_path / "episodes.jsonl.zst", episodes)
    with FileLock(tmp_path / ".lock"), pytest.raises(TurnwiseError, match="Another process writes"):
        repair(path)
