"""Comparisons as pages: drawn by processes of their own, since drawing the tasks of a suite takes time and memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.errors import TurnwiseError
from turnwise.trainers.view.pages import render
from turnwise.trainers.view.places import ViewedPlace, activity
from turnwise.trainers.view.sides import compared

_KEPT = 20
_LONGEST = 64_000_000
_SECONDS = 600.0
"""Seconds that drawing a comparison may take, as long as a question of what if may take."""


class _Drawing(NamedTuple):
    task: asyncio.Task[bytes]
    began: float


class Comparisons:
    """Pages of comparisons, each drawn once for what its places hold."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._drawn: dict[str, _Drawing] = {}
        self._one = asyncio.Semaphore(1)

    async def page(
        self, places: Sequence[ViewedPlace], *, allow_unlike: bool, patience: float
    ) -> bytes | float:
        """The page, or the seconds for which it has been drawn, where that takes longer than ``patience``.

        Raises:
            TurnwiseError: fewer than two places, or they cannot be compared.
        """
        if len(places) < 2:
            raise TurnwiseError(
                f"{len(places)} chosen: there is nothing to compare.", "Choose two or more on the first page."
            )
        asked = [[place.id, place.kind, str(place.path), place.name] for place in places]
        key = json.dumps([asked, allow_unlike, [activity(place).changed for place in places]])
        if key not in self._drawn:
            while len(self._drawn) >= _KEPT:
                self._drawn.pop(next(iter(self._drawn))).task.cancel()
            task = asyncio.get_running_loop().create_task(
                self._draw(json.dumps([asked, allow_unlike]).encode())
            )
            self._drawn[key] = _Drawing(task, time.monotonic())
        task, began = self._drawn[key]
        await asyncio.wait([task], timeout=patience)
        if not task.done():
            return time.monotonic() - began
        try:
            return task.result()
        except TurnwiseError:
            del self._drawn[key]
            raise

    async def close(self) -> None:
        """End what is being drawn."""
        for drawing in self._drawn.values():
            drawing.task.cancel()
        await asyncio.gather(*(drawing.task for drawing in self._drawn.values()), return_exceptions=True)

    async def _draw(self, asked: bytes) -> bytes:
        async with self._one:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "turnwise.trainers.view.comparing",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True, limit=_LONGEST,
            )  # fmt: skip
            try:
                async with asyncio.timeout(self._seconds):
                    said, _ = await process.communicate(asked)
            except TimeoutError:
                raise TurnwiseError(
                    f"The comparison was not drawn within {self._seconds:g} s, and was given up.",
                    "Compare fewer at a time, or ask `turnwise compare` in a terminal, which waits as long as you do.",
                ) from None
            finally:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                    await process.wait()
        if process.returncode:
            try:
                cause, remedy = json.loads(said)
            except ValueError:
                cause, remedy = (
                    f"The comparison's process ended with code {process.returncode}.",
                    "Try it again.",
                )
            raise TurnwiseError(cause, remedy)
        return said


def main() -> None:
    """Read what to compare from the input, write the page."""
    out = os.dup(1)
    os.dup2(2, 1)
    asked, allow_unlike = json.load(sys.stdin)
    places = [ViewedPlace(name, kind, Path(path), shown) for name, kind, path, shown in asked]
    code = 0
    try:
        view = compared(places, allow_unlike=allow_unlike)
        sources = "&".join(f"source={place.id}" for place in places)
        text = render(
            "compare.html.j2", view, title="Comparison", trail=[("comparison", f"/compare?{sources}")]
        )
    except TurnwiseError as error:
        code, text = 1, json.dumps([error.cause, error.remedy])
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(out, data) :]
    raise SystemExit(code)


if __name__ == "__main__":
    main()
