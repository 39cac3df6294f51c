"""Episodes to look at: all of a log in memory, one by one or as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import Record
from turnwise.extras import needing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LOG_NAME = "episodes.jsonl.zst"
"""Name of an episode log in the folder of a run or an evaluation."""


class Episodes(Sequence[Episode]):
    """A sequence of :class:`Episode`, with what was recorded beside them and a table of their turns.

    Args:
        records: the episodes, each with its policy, its environment's version and, in training, its update, its
            group and each turn's advantage.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = tuple(records)

    @overload
    def __getitem__(self, index: int) -> Episode: ...

    @overload
    def __getitem__(self, index: slice) -> Episodes: ...

    def __getitem__(self, index: int | slice) -> Episode | Episodes:
        if isinstance(index, slice):
            return Episodes(self.records[index])
        return self.records[index].episode

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<{len(self)} episodes>"

    def to_arrow(self) -> pa.Table:
        """A row for each turn: what ``episodes.parquet`` of a run has (docs/evaluating.md).

        Raises:
            TurnwiseError: a number is beyond what a column of the table can hold.
        """
        with needing("a table of turns"):
            from turnwise.agents.log.parquet import to_table

        return to_table(enumerate(self.records))

    def to_pandas(self) -> pd.DataFrame:
        """:meth:`to_arrow` as a data frame.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        with needing("a data frame"):
            import pandas  # noqa: F401
        return self.to_arrow().to_pandas()


def load_episodes(path: Path | str) -> Episodes:
    """All episodes of a log.

    >>> import tempfile, turnwise
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     played = turnwise.rollout("shop/easy", "scripted:gold", episodes=2, log=f"{folder}/episodes.jsonl.zst")
    ...     episodes = turnwise.load_episodes(folder)
    >>> len(episodes), episodes[0].success, episodes.to_arrow().num_rows == sum(
    ...     len(episode.trajectory.turns) for episode in episodes)
    (2, True, True)

    Args:
        path: ``episodes.jsonl.zst`` (or ``.jsonl``), or the folder of a run or an evaluation, which holds it.

    Returns:
        The episodes in the order in which they were written. A torn end is left out with a logged warning.

    Raises:
        TurnwiseError: there is no log, or it is damaged before its end.
    """
    path = Path(path)
    return Episodes(LogReader(path / LOG_NAME if path.is_dir() else path))
