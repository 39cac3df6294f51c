"""What is found is what the log holds, whatever happens to the log."""

import dataclasses
import re
import sqlite3

import places as made
import pytest

import turnwise
from turnwise.agents.log.episode_log import EpisodeLog, LogPlace, LogReader, lines_after, read_record
from turnwise.agents.log.episodes import load_episodes
from turnwise.errors import TurnwiseError
from turnwise.trainers.view import export
from turnwise.trainers.view.index import LogIndex
from turnwise.trainers.view.places import ViewedPlace
from turnwise.trainers.view.selection import PAGE, Selection, beside, choices, find, one, siblings


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    made.run(folder / "run", updates=8)
    return folder / "run" / "episodes.jsonl.zst"


@pytest.fixture(scope="module")
def index(log, tmp_path_factory):
    index = LogIndex(log, tmp_path_factory.mktemp("cache"))
    index.update()
    return index


def numbers(index, **asked):
    """All that a selection finds, page by page."""
    selection = Selection(**asked)
    total = find(index, selection).total
    found = [
        row.id
        for page in range(1, -(-total // PAGE) + 1)
        for row in find(index, selection._replace(page=str(page))).rows
    ]
    assert len(found) == total == len({*found})
    return found


def which(log, keep):
    """The same by looking at every record."""
    return [n for n, record in enumerate(load_episodes(log).records, 1) if keep(record, record.episode)]


def required(index, number):
    row = one(index, number)
    assert row is not None
    return row


def said(episode):
    turns = episode.trajectory.turns
    shown = [m for turn in turns for m in turn.observation if m.role != "system"]
    text = [episode.task.prompt, *(m.content for m in shown), *(t.action.content for t in turns)]
    return " ".join([*text, *(m.content for m in episode.trajectory.final)]).casefold()


@pytest.mark.parametrize(
    ("asked", "keep"),
    [
        ({}, lambda r, e: True),
        ({"ended": "solved"}, lambda r, e: e.success),
        ({"ended": "turn_limit"}, lambda r, e: str(e.end) == "turn_limit"),
        ({"outcome": "ok"}, lambda r, e: e.outcome.value == "ok"),
        ({"outcome": "env_error"}, lambda r, e: False),
        ({"turns_from": "5", "turns_to": "9"}, lambda r, e: 5 <= len(e.trajectory.turns) <= 9),
        ({"update": "3", "group": "1"}, lambda r, e: (r.update, r.group) == (3, 1)),
        ({"part": "outcome", "part_is": "≥", "part_value": "0.5"}, lambda r, e: e.score >= 0.5),
        ({"part": "outcome", "part_is": "≤", "part_value": "0.5"}, lambda r, e: e.score <= 0.5),
        ({"part": "outcome", "part_is": "=", "part_value": "0"}, lambda r, e: e.score == 0),
        ({"part": "nothing", "part_is": "≤", "part_value": "0"}, lambda r, e: True),
        ({"part": "nothing", "part_is": "≥", "part_value": "1"}, lambda r, e: False),
        ({"knob": "turn_limit", "knob_is": "≥", "knob_value": "1"}, lambda r, e: e.task.options.get("turn_limit", 0) >= 1),
        ({"suite": "half/1"}, lambda r, e: r.group == 1),
        ({"suite": "half/2"}, lambda r, e: False),
        ({"suite": "half/0", "words": "buy"}, lambda r, e: r.group == 0 and "buy" in said(e)),
        ({"knob": "pages", "knob_value": "0"}, lambda r, e: e.task.options["pages"] == 0),
        ({"words": "buy"}, lambda r, e: "buy" in said(e)),
        ({"words": "zebra-crossing"}, lambda r, e: False),
    ],
)  # fmt: skip
def test_filters_find_what_looking_at_every_record_finds(index, log, asked, keep):
    assert numbers(index, **asked) == which(log, keep)
    played = [record.episode for record in load_episodes(log).records if keep(record, record.episode)]
    tally = find(index, Selection(**asked)).tally
    turns = sum(len(episode.trajectory.turns) for episode in played) / max(1, len(played))
    assert tally == (
        len(played),
        sum(e.success for e in played),
        sum(e.outcome.counts for e in played),
        turns,
    )
    assert find(index, Selection(**asked, sort="turns")).tally == tally
    assert [*reversed(numbers(index, **asked, order="down"))] == which(log, keep)


@pytest.mark.parametrize("order", ["up", "down"])
@pytest.mark.parametrize(
    ("sort", "key"), [("return", "total"), ("turns", "turns"), ("update", "update"), ("tokens", "tokens")]
)
def test_lists_are_sorted_and_neighbours_follow_the_list(index, sort, key, order):
    selection = Selection(sort=sort, order=order, ended="solved")
    ids = numbers(index, **selection._asdict())
    values = [getattr(required(index, number), key) for number in ids]
    assert values == sorted(values, reverse=order == "down")
    assert len(ids) > 5
    for place in (0, 3, len(ids) - 1):
        row = required(index, ids[place])
        around = (ids[place - 1] if place else None, ids[place + 1] if place + 1 < len(ids) else None)
        assert beside(index, selection, row) == around


def test_groups_and_tallies_are_those_of_the_log(index, log):
    records = load_episodes(log).records
    row = required(index, 7)
    group = [n for n, r in enumerate(records, 1) if (r.update, r.group) == (row.update, row.group)]
    assert [sibling.id for sibling in siblings(index, row)] == group
    counted = find(index, Selection()).tally
    assert counted.solved == sum(r.episode.success for r in records)
    assert dict(choices(index).ends)["solved"] == counted.solved


def test_every_record_is_read_back_from_its_place(index, log):
    for number, record in enumerate(LogReader(log), 1):
        assert read_record(log, index.place(number)) == record
    with pytest.raises(TurnwiseError, match="no episode at byte"):
        read_record(log, LogPlace(0, 10_000))


@pytest.fixture
def played():
    return turnwise.rollout("shop/easy", "scripted:gold", episodes=6)


@pytest.fixture
def growing(tmp_path):
    return LogIndex(tmp_path / "episodes.jsonl.zst", tmp_path / "cache")


def write(index, episodes):
    with EpisodeLog(index.log, flush_every=2) as log:
        for episode in episodes:
            log.append(episode)


def test_an_index_grows_with_its_log_and_reads_nothing_twice(growing, played, monkeypatch):
    assert growing.update().episodes == 0
    write(growing, played[:2])
    assert growing.update().episodes == 2
    end = growing.progress().done
    starts = []
    monkeypatch.setattr(
        "turnwise.trainers.view.index.lines_after", lambda p, s: starts.append(s) or lines_after(p, s)
    )
    write(growing, played[2:])
    assert not growing.progress().whole
    assert growing.update().episodes == 6
    assert starts == [end]
    assert find(growing, Selection()).total == 6


def test_a_log_that_was_written_anew_is_indexed_anew(growing, played):
    write(growing, played)
    growing.update()
    growing.log.unlink()
    write(growing, [*played[3:], *played])
    assert growing.update().episodes == 9
    assert [row.task for row in find(growing, Selection()).rows[:3]] == [e.task.id for e in played[3:]]
    growing.log.unlink()
    write(growing, played[:1])
    assert (growing.update().episodes, dict(choices(growing).outcomes)) == (1, {"ok": 1})


def test_an_export_of_a_part_of_the_log_says_that_it_is_partial(growing, played):
    def exported(index=growing):
        page = "".join(export.export_pieces(ViewedPlace("0", "log", index.log, "played"), index, Selection()))
        return (
            page.count('<details class="group"'),
            "This file is partial" in page,
            "All episodes of the part that was indexed" in page,
        )

    write(growing, played[:2])
    growing.update()
    assert exported() == (2, False, False)
    write(growing, played[2:])
    assert exported() == (2, True, True)
    growing.update()
    assert exported() == (6, False, False)
    data = bytearray(growing.log.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(40)
    growing.log.write_bytes(bytes(data))
    found = LogIndex(growing.log, growing.path.parent / "anew")
    found.update()
    assert exported(found) == (found.progress().episodes, True, False)
    assert found.progress().episodes < 6


def test_a_torn_end_waits_until_it_is_whole(growing, played):
    write(growing, played)
    whole = growing.log.read_bytes()
    growing.log.write_bytes(whole[:-7])
    assert growing.update().episodes == 4
    assert growing.progress().whole
    growing.log.write_bytes(whole)
    assert not growing.progress().whole
    assert growing.update().episodes == 6


def test_what_is_damaged_is_named_and_what_was_before_it_is_found(growing, played):
    write(growing, played)
    data = bytearray(growing.log.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(40)
    growing.log.write_bytes(bytes(data))
    progress = growing.update()
    assert "turnwise repair" in progress.problem
    assert progress.whole
    assert find(growing, Selection()).total == progress.episodes < 6


def test_lines_that_are_no_episodes_are_named(growing):
    growing = LogIndex(growing.log.with_name("episodes.jsonl"), growing.path.parent)
    growing.log.write_text('{"format": 2}\n')
    assert "holds something else than an episode" in growing.update().problem


def test_two_processes_never_write_one_index(growing, played):
    write(growing, played)
    other = LogIndex(growing.log, growing.path.parent)
    from filelock import FileLock

    with FileLock(f"{growing.path}.lock"):
        assert other.update().episodes == 0
    assert other.update().episodes == growing.update().episodes == 6


def test_the_log_is_never_touched(growing, played):
    write(growing, played)
    before = growing.log.read_bytes(), growing.log.stat().st_mtime_ns
    growing.update()
    assert (growing.log.read_bytes(), growing.log.stat().st_mtime_ns) == before
    assert [path.name for path in growing.log.parent.iterdir() if path.is_file()] == [growing.log.name]


def test_readers_cannot_change_an_index(index):
    with index.reading() as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM episodes")


def test_an_index_of_another_release_is_made_anew(growing, played):
    """A server must not ask it for columns that it lacks, however complete it is."""
    write(growing, played)
    name, number, ending = growing.path.name.split(".")
    old = growing.path.with_name(f"{name}.{int(number) - 1}.{ending}")
    other = growing.path.with_name("another.3.sqlite")
    for file in (old, other):
        file.touch()
    assert not growing.progress().whole
    assert growing.update().episodes == 6
    assert not old.exists()
    assert other.exists()


def test_a_switch_is_found_by_its_word(growing, played):
    task = dataclasses.replace(played[0].task, options={"fast": True, "deep": {"size": 3}})
    write(growing, [dataclasses.replace(played[0], task=task), *played[1:]])
    growing.update()
    assert numbers(growing, knob="fast", knob_value="True") == [1]
    assert numbers(growing, knob="fast", knob_value="False") == []
    assert numbers(growing, knob="deep.size", knob_is="≥", knob_value="2.5") == [1]


@pytest.mark.slow
def test_an_export_holds_all_of_a_large_selection_and_reads_it_as_it_is_written(growing, played, monkeypatch):
    many = 600
    write(growing, [played[n % len(played)] for n in range(many)])
    growing.update()
    read = []

    def noted(log, place):
        read.append(place)
        return read_record(log, place)

    monkeypatch.setattr(export, "read_record", noted)
    pieces = export.export_pieces(
        ViewedPlace("0", "log", growing.log, "played"), growing, Selection(sort="number", order="down")
    )
    first = next(pieces)
    assert 0 < len(read) < many / 2
    page = first + "".join(pieces)
    assert len(read) == many
    assert re.findall(r'<details class="group" id="episode-(\d+)"', page) == [
        str(n) for n in range(many, 0, -1)
    ]
    assert page.rstrip().endswith("</html>")


def test_an_episode_that_cannot_be_exported_says_why_in_its_place(growing, played, monkeypatch):
    write(growing, played[:3])
    growing.update()

    def damaged(log, place):
        if place.line == 1:
            raise TurnwiseError("It is damaged here.", "repair it")
        return read_record(log, place)

    monkeypatch.setattr(export, "read_record", damaged)
    page = "".join(export.export_pieces(ViewedPlace("0", "log", growing.log, "played"), growing, Selection()))
    assert page.count('<details class="group"') == 3
    assert page.count("It is damaged here.") == 1
