"""A small model that a run makes from nothing, in the run's folder; its tokeniser is trained on the suites' own text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from turnwise.trainers.learn.chats import read_chats
from turnwise.trainers.learn.warm_start import demonstrations, texts
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.disk import written_aside
from turnwise.trainers.run.door import ScratchOptions
from turnwise.trainers.sampler.mixture import Mixture


def ensure_model(
    scratch: ScratchOptions | None, run: RunDirectory, source: str | None, log: Callable[[str], None]
) -> str:
    """The model's folder or id: ``source``, or a small model in the run's folder, made if it is missing."""
    if source is not None or scratch is None:
        return str(source)
    if not run.model.exists():
        log(f"a model from scratch: {scratch.model.layers} layers of {scratch.model.width}")
        with written_aside(run.model) as folder:
            make_small_model(scratch, folder)
    return str(run.model)


def make_small_model(options: ScratchOptions, folder: Path) -> None:
    """Make a model from nothing; its tokeniser is trained on the text of demonstrations on the suite, and of the chats to imitate."""
    from turnwise.agents.models.small import build_small_model

    sizes = options.model.model_dump(exclude={"text_episodes"})
    build_small_model(folder, heard(options), **sizes, seed=options.play.seed)


def heard(options: ScratchOptions) -> Iterator[str]:
    """Yield the text on which a tokeniser is trained: of demonstrations on the suites, and of as many chats if there are any."""
    play = options.play
    played = demonstrations(
        Mixture(options.suites, play.seed),
        options.demonstrator,
        play.seed,
        options.model.text_episodes,
        0,
        play.env_options,
        env_workers=options.env_workers,
        limits=play.limits,
    )
    yield from texts(_run_alone(played))
    for chat in read_chats(options.chats)[: options.model.text_episodes] if options.chats else ():
        for turn in chat.turns:
            yield from (message.content for message in (*turn.observation, turn.said))


def _run_alone(coroutine: Any) -> Any:
    """Run a coroutine to its end from code that may itself be running in an event loop."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
