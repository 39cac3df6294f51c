"""Files that a run keeps on disk while it goes on: checkpoints, the best one, and as much of its logs as the recipe keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.tasks.core import Json
from turnwise.trainers.core import Stateful
from turnwise.trainers.run.checkpoint import begin_checkpoint, prune, save_checkpoint, started_at
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import KeepOptions
from turnwise.trainers.run.events import Events
from turnwise.trainers.run.progress import RunProgress
from turnwise.trainers.run.session import TrainingSession


class KeptRun(NamedTuple):
    """Contents of a checkpoint: the session with the learner, the parts that learn or remember, the run's counters."""

    session: TrainingSession
    parts: Mapping[str, Stateful]
    progress: RunProgress


class Saving:
    """Writes a run's checkpoints, and deletes what its recipe does not keep.

    Args:
        options: how much is kept.
        run: the run's files.
        log: receives a line about what was deleted.

    Attributes:
        saved: the update after which the newest checkpoint was written; -1: there is none.
    """

    def __init__(self, options: KeepOptions, run: RunDirectory, log: Callable[[str], None]) -> None:
        self.options, self.run, self.log = options, run, log
        self.saved = -1
        self._deleted = 0  # the updates of whose episodes nothing is left

    def due(self, update: int) -> bool:
        """Say whether a checkpoint belongs after this update."""
        return update % self.options.every == 0

    def save(self, kept: KeptRun) -> None:
        """Write a checkpoint; the best so far and the newest ones stay."""
        state = {**dataclasses.asdict(kept.progress), "started": kept.session.started}
        self._write(self.run.checkpoints, kept.progress.update, kept, state)
        self.done(kept.progress)

    def save_warm_start(self, step: int, kept: KeptRun) -> None:
        """Write a checkpoint of the warm start; the one before it goes."""
        self._write(self.run.warm, step, kept, {"warm_start_steps": step})
        prune(self.run.warm, 1, None)

    @contextmanager
    def begun(self, kept: KeptRun) -> Iterator[dict[str, Json]]:
        """Write what a checkpoint has of the learner now; it is there when the context ends well.

        Yields:
            Its counters, of which those of the run are to be filled in before that.
        """
        session, update = kept.session, kept.progress.update
        chat = session.tokenizer, session.chat_format
        with begin_checkpoint(self.run.checkpoints, update, session.learner, kept.parts, *chat) as counters:
            counters["started"] = session.started
            yield counters

    def done(self, progress: RunProgress) -> None:
        """Count on the checkpoint after the newest update, which is whole, and remove what is one too many."""
        self.saved = progress.update
        self.point_best(progress)
        prune(self.run.checkpoints, self.options.checkpoints, self.run.checkpoint(progress.best_update).name)
        self.run.keep_started(started_at(self.run.checkpoints))

    def point_best(self, progress: RunProgress) -> None:
        """Have ``best`` lead to the best checkpoint, if it is there."""
        if self.run.checkpoint(progress.best_update).exists():
            self.run.point_best(progress.best_update)

    def delete_old(self, episode_log: EpisodeLog, events: Events) -> None:
        """Delete what was logged of updates that the recipe does not keep; those before the newest checkpoint count."""
        keep = self.options.updates
        if keep == "all" or (before := self.saved - keep) <= self._deleted:
            return
        self._deleted = before
        gone = episode_log.delete_first(lambda record: record.update is not None and record.update <= before)
        events.delete_before(before)
        if gone:
            self.log(f"deleted {gone} episodes of updates up to {before} (log.keep: {keep})")

    def _write(self, folder: Path, step: int, kept: KeptRun, state: Mapping[str, Any]) -> None:
        session = kept.session
        chat = session.tokenizer, session.chat_format
        save_checkpoint(folder, step, session.learner, kept.parts, *chat, state)
