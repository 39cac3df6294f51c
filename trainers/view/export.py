"""A selection of episodes as one HTML file that loads nothing and runs nothing."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.agents.log.episode_log import read_record
from turnwise.trainers.view.index import IndexProgress, LogIndex
from turnwise.trainers.view.pages import render
from turnwise.trainers.view.places import ViewedPlace
from turnwise.trainers.view.selection import EpisodeRow, FoundEpisodes, Selection, find
from turnwise.trainers.view.told import EpisodeShown, show_episode, tokenizer_of

MOST_EPISODES = 200
"""Episodes of one file; with more, a browser would take long to show it."""


class ExportedEpisode(NamedTuple):
    """An episode of the file."""

    row: EpisodeRow
    prompt: str
    shown: EpisodeShown


class Exported(NamedTuple):
    """What the file holds, how many episodes it leaves out, and how far the log was read before they were looked for."""

    place: ViewedPlace
    selection: Selection
    asked: tuple[tuple[str, str], ...]
    progress: IndexProgress
    found: FoundEpisodes
    episodes: tuple[ExportedEpisode, ...]


def export_page(place: ViewedPlace, index: LogIndex, selection: Selection) -> str:
    """The file's text: the selection's first episodes in its order; one that was made of a part of the log says so.

    Raises:
        TurnwiseError: the log is damaged where one of them stands.
    """
    progress = index.progress()
    found = find(index, selection._replace(page="1"), most=MOST_EPISODES)
    folder = place.path if place.path.is_dir() else place.path.parent
    episodes: list[ExportedEpisode] = []
    for row in found.rows:
        record = read_record(place.log, index.place(row.id))
        shown = show_episode(record, tokenizer_of(folder, row.policy))
        episodes.append(ExportedEpisode(row, record.episode.task.prompt, shown))
    plain = Selection()
    asked = [
        ("sorted by" if name == "sort" else name.replace("_", " "), value)
        for name, value in selection._asdict().items()
        if value != getattr(plain, name) and name != "page"
    ]
    view = Exported(place, selection, tuple(asked), progress, found, tuple(episodes))
    return render("export.html.j2", view, title=f"Episodes of {place.name}")
