"""An evaluation that goes on while the next update is learned, and the checkpoint that waits for what it finds."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any

from turnwise.tasks.core import Json
from turnwise.trainers.run.lesson import apart
from turnwise.trainers.run.one_update import RunUpdate
from turnwise.trainers.run.progress import RunProgress
from turnwise.trainers.run.saving import KeptRun, Saving


class BesideEvaluation:
    """The evaluation of the newest update; :meth:`begin` starts it, :meth:`finish` waits for it.

    Its checkpoint is of the weights that are evaluated, and is there once :meth:`finish` has its counters.

    Args:
        update: that was learned.
        saving: writes the checkpoint.
        beside: where the learner works.
    """

    def __init__(self, update: RunUpdate, saving: Saving, beside: Executor | None) -> None:
        self.update, self._saving, self._beside = update, saving, beside
        self._checkpoint = contextlib.ExitStack()

    async def begin(self, kept: KeptRun, validate: Callable[[], Coroutine[Any, Any, dict[str, Any]]]) -> None:
        """Write the checkpoint as far as it is known, and start to evaluate."""

        def write() -> dict[str, Json]:
            return self._checkpoint.enter_context(self._saving.begun(kept))

        self._counters = await apart(self._beside, write)
        self.update.end()
        self._evaluation = asyncio.get_running_loop().create_task(validate())

    async def finish(self, progress: RunProgress, version: Callable[[], int]) -> None:
        """Wait until it ends: until then the engine keeps the weights that ``version`` names."""
        began, metrics = time.monotonic(), self.update.metrics
        metrics.update(await self._evaluation)
        metrics["dev_version"] = version()
        metrics["evaluation_waited_seconds"] = time.monotonic() - began
        self._counters.update(dataclasses.asdict(progress))
        await apart(self._beside, self._checkpoint.close)
        self._saving.done(progress)

    def cancel(self) -> None:
        """Give it up; its checkpoint is never there."""
        self._evaluation.cancel()
