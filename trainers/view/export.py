"""A selection of episodes as one HTML file that loads nothing, written piece by piece.

Thousands of episodes built at once keep a browser busy for seconds, so each stands in a ``<noscript>``: text to a browser that
runs scripts, which builds it when it is unfolded (``export.js``), and plain HTML to one that runs none.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.log.episode_log import read_record
from turnwise.errors import TurnwiseError
from turnwise.trainers.view.index import IndexProgress, LogIndex
from turnwise.trainers.view.pages import render_pieces
from turnwise.trainers.view.places import ViewedPlace
from turnwise.trainers.view.selection import EpisodeRow, Selection, SelectionTally, rows_of, selected
from turnwise.trainers.view.told import EpisodeShown, show_episode, tokenizer_of

_AT_ONCE = 200  # rows that are read together
_PIECE = 1 << 18  # characters
_SAMPLE = 16  # episodes of a log that are written to tell how large a file will be


class ExportedEpisode(NamedTuple):
    """An episode of the file, or why it could not be read."""

    row: EpisodeRow
    prompt: str
    shown: EpisodeShown | None
    problem: str = ""


class Exported(NamedTuple):
    """Episodes that the file holds, and how far the log was read before they were looked for; one episode at a time is in memory."""

    place: ViewedPlace
    known: LogIndex
    asked: tuple[tuple[str, str], ...]
    progress: IndexProgress
    tally: SelectionTally
    numbers: list[int]

    def rows(self) -> Iterator[EpisodeRow]:
        """The lines of the list, in the selection's order."""
        for start in range(0, len(self.numbers), _AT_ONCE):
            yield from rows_of(self.known, self.numbers[start : start + _AT_ONCE])

    def episodes(self) -> Iterator[ExportedEpisode]:
        """The episodes in the same order, each read from the log when its turn comes."""
        folder = self.place.path if self.place.path.is_dir() else self.place.path.parent
        for row in self.rows():
            yield _exported(self.place, self.known, row, folder)


def export_pieces(place: ViewedPlace, index: LogIndex, selection: Selection) -> Iterator[str]:
    """The file's text: all episodes of the selection in its order. One that was made of a part of the log says so, and an episode
    that cannot be read stands there with the reason."""
    progress = index.progress()  # before: what is whole now was so when they were looked for
    tally, numbers = selected(index, selection)
    view = Exported(place, index, _asked(selection), progress, tally, numbers)
    waiting, length = [], 0
    for text in _written(view):
        waiting.append(text)
        length += len(text)
        if length >= _PIECE:
            yield "".join(waiting)
            waiting, length = [], 0
    yield "".join(waiting)


def estimated_bytes(place: ViewedPlace, index: LogIndex, tally: SelectionTally) -> int:
    """About how large the file of a selection is: as much for each turn, and each episode, as in a sample of the log."""
    known = index.progress().episodes
    if not known or not place.log.exists():
        return 0
    upto = 1 << known.bit_length() - 1  # a log that grows is sampled again when it has doubled
    frame, each = _sampled(place, index.path.parent, place.log.stat().st_ino, upto)
    return round(frame + each * tally.total * (1 + tally.mean_turns))


@functools.lru_cache(maxsize=256)
def _sampled(place: ViewedPlace, cache: Path, file: int, upto: int) -> tuple[int, float]:
    """The bytes of a file without episodes, and of one turn more; an episode counts as a turn, for its line in the list."""
    index = LogIndex(place.log, cache)
    numbers = sorted({1 + upto * n // _SAMPLE for n in range(_SAMPLE)})
    rows = rows_of(index, numbers)
    tally = SelectionTally(len(rows), 0, 0, 0.0)
    empty = Exported(place, index, (), index.progress(), tally, [])
    frame, whole = (
        sum(len(text.encode("utf-8", "replace")) for text in _written(view))
        for view in (empty, empty._replace(numbers=[row.id for row in rows]))
    )
    return frame, (whole - frame) / max(1, sum(1 + row.turns for row in rows))


def _written(view: Exported) -> Iterator[str]:
    return render_pieces("export.html.j2", view, title=f"Episodes of {view.place.name}")


def _asked(selection: Selection) -> tuple[tuple[str, str], ...]:
    plain = Selection()
    return tuple(
        ("sorted by" if name == "sort" else name.replace("_", " "), value)
        for name, value in selection._asdict().items()
        if value != getattr(plain, name) and name != "page"
    )


def _exported(place: ViewedPlace, index: LogIndex, row: EpisodeRow, folder: Path) -> ExportedEpisode:
    try:
        record = read_record(place.log, index.place(row.id))
    except TurnwiseError as error:
        return ExportedEpisode(row, "", None, str(error))
    return ExportedEpisode(
        row, record.episode.task.prompt, show_episode(record, tokenizer_of(folder, row.policy))
    )
