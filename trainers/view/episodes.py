"""The list of episodes, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.log.episode_log import read_record
from turnwise.agents.log.records import Record
from turnwise.errors import TurnwiseError
from turnwise.trainers.report.episodes import visible
from turnwise.trainers.report.turns import TRUE_TURNS, load_groups
from turnwise.trainers.view.export import estimated_bytes
from turnwise.trainers.view.given import GroupGiven, credit_of
from turnwise.trainers.view.index import IndexProgress, LogIndex
from turnwise.trainers.view.places import ViewedPlace
from turnwise.trainers.view.selection import (
    PAGE,
    Choices,
    EpisodeRow,
    FoundEpisodes,
    Selection,
    beside,
    choices,
    find,
    one,
    siblings,
)
from turnwise.trainers.view.told import AgentShown, EpisodeShown, show_episode, tokenizer_of

_MOST_SIBLINGS = 64


class EpisodesShown(NamedTuple):
    """A page of the list of episodes; ``export_bytes`` is about how large a file of the whole selection would be."""

    place: ViewedPlace
    selection: Selection
    progress: IndexProgress
    choices: Choices
    found: FoundEpisodes
    pages: int
    trained: bool
    export_bytes: int


def episodes_shown(place: ViewedPlace, index: LogIndex, selection: Selection) -> EpisodesShown:
    """A page of those that were asked for."""
    progress = index.progress()  # before: what is whole now was so when they were looked for
    found = find(index, selection)
    return EpisodesShown(
        place,
        selection,
        progress,
        choices(index),
        found,
        max(1, -(-found.total // PAGE)),
        place.kind == "run",
        estimated_bytes(place, index, found.tally),
    )


class OneEpisode(NamedTuple):
    """The page of an episode."""

    place: ViewedPlace
    selection: Selection
    row: EpisodeRow
    prompt: str
    error: str
    seed: str
    shown: EpisodeShown
    siblings: tuple[EpisodeRow, ...]
    before: int | None
    after: int | None
    given: GroupGiven | None
    trained: bool
    largest: float

    @property
    def first(self) -> AgentShown:
        """The agent that is evaluated."""
        return self.shown.agents[0]


def episode_shown(
    place: ViewedPlace, index: LogIndex, number: int, selection: Selection, *, rules: bool = False
) -> OneEpisode:
    """An episode with its neighbours; with ``rules`` what every credit rule would give it.

    Raises:
        TurnwiseError: there is none of this number, or the log is damaged there.
    """
    row = required_row(place, index, number)
    record = read_record(place.log, index.place(number))
    truths = load_groups(place.path / TRUE_TURNS) if place.path.is_dir() else ()
    folder = place.path if place.path.is_dir() else place.path.parent
    shown = show_episode(record, tokenizer_of(folder, row.policy), truths)
    others = siblings(index, row)
    before, after = beside(index, selection, row)
    return OneEpisode(
        place,
        selection,
        row,
        visible(record.episode.task.prompt),
        visible(record.episode.error),
        str(record.episode.seed),
        shown,
        others,
        before,
        after,
        _given(place, index, row, record, others) if rules else None,
        bool(record.given),
        max(map(abs, record.given), default=0.0),
    )


def required_row(place: ViewedPlace, index: LogIndex, number: int) -> EpisodeRow:
    """The row of an episode.

    Raises:
        TurnwiseError: the index has none of this number.
    """
    row = one(index, number)
    if row is None:
        raise TurnwiseError(
            f"There is no episode {number} in {place.name}.", "The list of episodes has their numbers."
        )
    return row


def _given(
    place: ViewedPlace, index: LogIndex, row: EpisodeRow, record: Record, others: Sequence[EpisodeRow]
) -> GroupGiven:
    near = [other for other in others if other.id != row.id][: _MOST_SIBLINGS - 1]
    group = [read_record(place.log, index.place(other.id)).episode for other in near]
    return credit_of([record.episode, *group], 0)
