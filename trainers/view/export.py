"""A selection of episodes as one HTML file that loads nothing and runs nothing, written piece by piece."""

from __future__ import annotations

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


class ExportedEpisode(NamedTuple):
    """An episode of the file, or why it could not be read."""

    row: EpisodeRow
    prompt: str
    shown: EpisodeShown | None
    problem: str = ""


class Exported(NamedTuple):
    """What the file holds, and how far the log was read before they were looked for; one episode at a time is in memory."""

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
    plain = Selection()
    asked = tuple(
        ("sorted by" if name == "sort" else name.replace("_", " "), value)
        for name, value in selection._asdict().items()
        if value != getattr(plain, name) and name != "page"
    )
    view = Exported(place, index, asked, progress, tally, numbers)
    waiting, length = [], 0
    for text in render_pieces("export.html.j2", view, title=f"Episodes of {place.name}"):
        waiting.append(text)
        length += len(text)
        if length >= _PIECE:
            yield "".join(waiting)
            waiting, length = [], 0
    yield "".join(waiting)


def _exported(place: ViewedPlace, index: LogIndex, row: EpisodeRow, folder: Path) -> ExportedEpisode:
    try:
        record = read_record(place.log, index.place(row.id))
    except TurnwiseError as error:
        return ExportedEpisode(row, "", None, str(error))
    return ExportedEpisode(
        row, record.episode.task.prompt, show_episode(record, tokenizer_of(folder, row.policy))
    )
