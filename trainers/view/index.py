"""Index by which the episodes of a log are found: an SQLite file in a cache, which grows as the log does.

The log stays as it is: another process may be writing it. Of each episode the index holds where it stands in the log, the
figures that lists show, the parts of its reward, its task's knobs, and the words that were said. The cache may be
removed at any time; it is made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from turnwise.agents.core import Outcome
from turnwise.agents.log.episode_log import LogPlace, lines_after
from turnwise.agents.log.forms import check_form, read_json
from turnwise.envs.steps import EndReason
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.texts import lines_with_ends

_FORMAT = 5
_TAIL = 4096  # bytes before the end of what is indexed, by which a log that was written anew is noticed
_COMMIT_SECONDS = 1.0
_PROMPT = 200
_KNOB = 80
_KNOBS = 24
_WORDS = 20_000  # characters of one episode that are searched

_SCHEMA = """
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS episodes (
    id INTEGER PRIMARY KEY, task TEXT, env TEXT, policy TEXT, outcome TEXT, ended TEXT, turns INT, total REAL, score REAL,
    tokens INT, bad INT, round INT, batch INT, suite TEXT);
CREATE TABLE IF NOT EXISTS brief (id INTEGER PRIMARY KEY, code INT);
CREATE TABLE IF NOT EXISTS texts (id INTEGER PRIMARY KEY, start INT, line INT, prompt TEXT, error TEXT);
CREATE TABLE IF NOT EXISTS names (
    id INTEGER PRIMARY KEY, kind TEXT, name TEXT, n INT, UNIQUE (kind, name));
CREATE TABLE IF NOT EXISTS marks (
    name INT, episode INT, number REAL, text TEXT, PRIMARY KEY (name, episode)) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(said, content='', detail='column');
CREATE INDEX IF NOT EXISTS by_task ON episodes (task);
CREATE INDEX IF NOT EXISTS by_group ON episodes (round, batch);
CREATE INDEX IF NOT EXISTS by_ended ON episodes (ended, outcome, turns);
CREATE INDEX IF NOT EXISTS by_outcome ON episodes (outcome, ended, turns);
CREATE INDEX IF NOT EXISTS by_total ON episodes (total);
CREATE INDEX IF NOT EXISTS by_score ON episodes (score);
CREATE INDEX IF NOT EXISTS by_turns ON episodes (turns, ended, outcome);
CREATE INDEX IF NOT EXISTS by_tokens ON episodes (tokens);
CREATE INDEX IF NOT EXISTS by_bad ON episodes (bad);
"""
_SOLVED, _COUNTS, _TURNS = 1, 2, 4  # what the code of an episode in brief is the sum of
TALLY = f"COUNT(*), SUM(code & {_SOLVED}), SUM(code & {_COUNTS}) / {_COUNTS}, SUM(code / {_TURNS})"
"""Of rows of ``brief``, a table of one number each: how many, solved, counting, and their turns; a third of the time that columns take."""
_MAPPED = 1 << 28  # bytes of an index that are read by mapping them into memory


class IndexProgress(NamedTuple):
    """Progress of indexing a log: bytes of it, and what stopped it, if anything did."""

    done: int
    size: int
    episodes: int
    problem: str = ""
    seen: int = -1  # how long the log was when it was last read to its end

    @property
    def whole(self) -> bool:
        """True if nothing is waiting; a torn end is waited for until the log grows."""
        return self.done >= self.size or self.seen == self.size


class LogIndex:
    """The index of one log.

    Args:
        log: an episode log, which may not be there yet.
        cache: the folder of all indexes; made where it is missing, for this user alone.
    """

    def __init__(self, log: Path, cache: Path) -> None:
        self.log = log
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = hashlib.blake2b(str(log.resolve()).encode(), digest_size=12).hexdigest()
        self.path = cache / f"{name}.{_FORMAT}.sqlite"

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that reads what has been committed; an index that was never begun is empty."""
        if not self.path.exists():
            self._create()
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=10)) as db:
            db.row_factory = sqlite3.Row
            db.execute(f"PRAGMA mmap_size={_MAPPED}")
            db.execute("PRAGMA temp_store=MEMORY")
            yield db

    def progress(self) -> IndexProgress:
        """Return how far the log is indexed."""
        size = self.log.stat().st_size if self.log.exists() else 0
        if not self.path.exists():
            return IndexProgress(0, size, 0)
        with self.reading() as db:
            state = dict(db.execute("SELECT name, value FROM state").fetchall())
        return IndexProgress(
            int(state.get("end", 0)),
            size,
            int(state.get("episodes", 0)),
            str(state.get("problem", "")),
            int(state.get("seen", -1)),
        )

    def place(self, number: int) -> LogPlace:
        """Return the place of an episode in the log.

        Raises:
            TurnwiseError: the index has no such episode.
        """
        with self.reading() as db:
            row = db.execute("SELECT start, line FROM texts WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise TurnwiseError(
                f"There is no episode {number} in {self.log}.", "The list of episodes has their numbers."
            )
        return LogPlace(row["start"], row["line"])

    def update(self) -> IndexProgress:
        """Read what was added to the log since. Where another process is at it, nothing is done here."""
        if not self.log.exists():
            return self.progress()
        try:
            with FileLock(f"{self.path}.lock", timeout=0):
                self._update()
        except Timeout:
            pass
        return self.progress()

    def _create(self) -> None:
        with closing(sqlite3.connect(self.path, timeout=10)) as db:
            self._prepare(db)

    def _prepare(self, db: sqlite3.Connection) -> None:
        for other in self.path.parent.glob(
            f"{self.path.name.partition('.')[0]}.*"
        ):  # of another release's format
            if not other.name.startswith(self.path.name):
                other.unlink(missing_ok=True)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(_SCHEMA)
        db.commit()

    def _update(self) -> None:
        with closing(sqlite3.connect(self.path, timeout=30)) as db:
            self._prepare(db)
            state = dict(db.execute("SELECT name, value FROM state").fetchall())
            end = int(state.get("end", 0))
            if end and state.get("tail") != _tail(self.log, end):
                self._forget(db)
                end = 0
            seen = self.log.stat().st_size
            writer = _IndexWriter(db, self.log, int(state.get("episodes", 0)) if end else 0)
            try:
                for start, after, lines in lines_after(self.log, end):
                    writer.add(start, lines_with_ends(lines))
                    writer.note(after)
                writer.commit("", seen)
            except TurnwiseError as error:
                writer.commit(str(error), seen)

    @staticmethod
    def _forget(db: sqlite3.Connection) -> None:
        """Drop all that is known: the log was cut or written anew."""
        for table in ("state", "episodes", "brief", "texts", "marks", "names"):
            db.execute(f"DELETE FROM {table}")
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        db.commit()


class _IndexWriter:
    """Adds episodes in transactions of about a second."""

    def __init__(self, db: sqlite3.Connection, log: Path, episodes: int) -> None:
        self.db, self.log, self.episodes = db, log, episodes
        self.names: Counter[tuple[str, str]] = Counter()
        self.numbers: dict[tuple[str, str], int] = {
            (kind, name): number for number, kind, name in db.execute("SELECT id, kind, name FROM names")
        }
        self.end: int | None = None
        self.committed = time.monotonic()

    def add(self, start: int, lines: Iterable[bytes]) -> None:
        for line, text in enumerate(lines):
            try:
                data = read_json(text)
                check_form(data)
                found = _entry(data)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise TurnwiseError(
                    f"{self.log} holds something else than an episode at byte {start}, line {line + 1}: {error!r:.200}.",
                    f"`turnwise repair {self.log}` cuts out what is damaged.",
                ) from None
            self.episodes += 1
            self._write(start, line, found)

    def note(self, end: int) -> None:
        """All before this offset is in."""
        self.end = end
        if time.monotonic() - self.committed > _COMMIT_SECONDS:
            self.commit("", -1)

    def commit(self, problem: str, seen: int) -> None:
        if self.end is not None:
            state = {
                "end": self.end,
                "episodes": self.episodes,
                "tail": _tail(self.log, self.end),
            }
            self.db.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", state.items())
        said = {"problem": problem, "seen": seen}
        self.db.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", said.items())
        self.db.executemany(
            "UPDATE names SET n = n + ? WHERE id = ?",
            [(n, self._number(*key)) for key, n in self.names.items()],
        )
        self.names.clear()
        self.db.commit()
        self.committed = time.monotonic()

    def _write(self, start: int, line: int, entry: _Entry) -> None:
        number = self.episodes
        row = (number, *entry.figures)
        self.db.execute(f"INSERT INTO episodes VALUES ({', '.join('?' * len(row))})", row)
        self.db.execute("INSERT INTO brief VALUES (?, ?)", (number, entry.code))
        self.db.execute(
            "INSERT INTO texts VALUES (?, ?, ?, ?, ?)", (number, start, line, entry.prompt, entry.error)
        )
        self.db.execute("INSERT INTO words (rowid, said) VALUES (?, ?)", (number, entry.said))
        self.db.executemany(
            "INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?)",
            [(self._number(mark.kind, mark.name), number, mark.number, mark.text) for mark in entry.marks],
        )
        self.names.update((mark.kind, mark.name) for mark in entry.marks)
        self.names.update(entry.names)

    def _number(self, kind: str, name: str) -> int:
        """Return the number that stands for a name in the table of marks; a new one for a new name."""
        if (kind, name) not in self.numbers:
            new = self.db.execute(
                "INSERT INTO names (kind, name, n) VALUES (?, ?, 0)", (kind, name)
            ).lastrowid
            assert new is not None
            self.numbers[kind, name] = new
        return self.numbers[kind, name]


class _Mark(NamedTuple):
    """A part of the reward with its sum, or a knob with its value."""

    kind: str
    name: str
    number: float | None
    text: str | None


class _Entry(NamedTuple):
    figures: tuple[Json, ...]  # the columns of ``episodes`` from ``task`` on
    code: int
    prompt: str
    error: str
    said: str
    marks: list[_Mark]
    names: list[tuple[str, str]]


def _entry(data: Mapping[str, Any]) -> _Entry:
    """Return what the index holds of an episode, from its line; whether the line is whole is tested when it is opened."""
    agent = next(iter(data["agents"].values()))
    turns: list[dict[str, Any]] = agent["turns"]
    parts: Counter[str] = Counter()
    for turn in turns:
        parts.update({name: float(value) for name, value in turn["rewards"].items()})
    task = data["task"]
    suite = _clean(str(data.get("suite", "")))
    ended = EndReason(data["end"]).value if data["end"] else ""
    outcome, counts = Outcome(data["outcome"]).value, Outcome(data["outcome"]).counts
    code = _TURNS * len(turns) + _COUNTS * counts + _SOLVED * (ended == EndReason.SOLVED.value)
    figures = (
        data["task_id"], task["env"], data["policy"], outcome, ended, len(turns),
        float(sum(turn["reward"] for turn in turns)), float(parts["outcome"]),
        sum(len(turn["action_ids"]) for turn in turns), sum(bool(turn["bad_action"]) for turn in turns),
        data["update"], data["group"], suite,
    )  # fmt: skip
    marks = [_Mark("part", _clean(name), value, None) for name, value in parts.items()]
    marks += _knobs(task["options"])
    names = [("outcome", outcome), ("env", task["env"]), ("policy", data["policy"])]
    if ended:
        names.append(("ended", ended))
    if suite:
        names.append(("suite", suite))
    if data["update"] is not None:
        names.append(("round", str(data["update"])))
    prompt, error = _clean(task["prompt"])[:_PROMPT], _clean(data["error"] or "")[:_PROMPT]
    return _Entry(figures, code, prompt, error, _said(data), marks, names)


def _knobs(options: Mapping[str, Json], before: str = "") -> list[_Mark]:
    """The plain values of a task's options, those of inner mappings with dotted names."""
    found: list[_Mark] = []
    for name, value in options.items():
        whole = _clean(f"{before}{name}")[:_KNOB]
        if isinstance(value, (bool, int, float, str)) and len(str(value)) <= _KNOB:
            number = float(value) if isinstance(value, (bool, int, float)) and abs(value) < 1e300 else None
            text = None if type(value) in (int, float) and number is not None else _clean(str(value))
            found.append(_Mark("knob", whole, number, text))
        elif isinstance(value, dict) and not before:
            found.extend(_knobs(value, f"{name}."))
    return found[:_KNOBS]


def _said(data: Mapping[str, Any]) -> str:
    """Return what was said in an episode: the task, observations, actions, the error; system messages are alike in all."""
    parts: list[str] = [data["task"]["prompt"], data["error"] or ""]
    for agent in data["agents"].values():
        for turn in agent["turns"]:
            parts.extend(_text(message) for message in turn["observation"] if message["role"] != "system")
            parts.append(_text(turn["action"]))
        parts.extend(_text(message) for message in agent["final"])
    return _clean("\n".join(parts))[:_WORDS]


def _text(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls", ())
    return " ".join(
        [message["content"], *(f"{call['name']} {json.dumps(call['arguments'])}" for call in calls)]
    )


def _clean(text: str) -> str:
    """Text that SQLite can hold: half a character of UTF-16 is none."""
    return text.encode("utf-8", "replace").decode()


def _tail(path: Path, end: int) -> str:
    """A hash of the bytes before an offset; empty where the file is shorter."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < end:
            return ""
        file.seek(max(0, end - _TAIL))
        return hashlib.blake2b(file.read(min(_TAIL, end)), digest_size=16).hexdigest()


def main() -> None:
    """Index a log in a process of its own: ``python -m turnwise.trainers.view.index LOG CACHE``."""
    log, cache = map(Path, sys.argv[1:3])
    LogIndex(log, cache).update()


if __name__ == "__main__":
    main()
