"""Training by a recipe: from the recipe and a folder to a trained policy and its report.

The parts are: warm start, reinforcement (:mod:`turnwise.trainers.run.trainer`), validation on dev, judgement on test.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.log.parquet import to_parquet
from turnwise.blocking import blocking
from turnwise.errors import RunError, TurnwiseError
from turnwise.library_log import libraries_to
from turnwise.trainers.recipe.algorithms import departures
from turnwise.trainers.recipe.explain import explain_recipe
from turnwise.trainers.recipe.load import RecipeLike, load_recipe
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.report.records import LIBRARIES
from turnwise.trainers.run.checkpoint import (
    LoadedCheckpoint,
    load_newest,
)
from turnwise.trainers.run.circumstances import note_start
from turnwise.trainers.run.directory import RunDirectory, open_run
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.placement import (
    Placement,
    check_divided,
    check_engine,
    check_publish,
    gpus_of,
    in_cluster,
    parse_placement,
    placed_workers,
)
from turnwise.trainers.run.progress import TrainingResult
from turnwise.trainers.run.ready import make_ready
from turnwise.trainers.run.session import open_session
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.run.trainer import Trainer
from turnwise.trainers.run.world import gathered, world_of

Log = Callable[[str], None]


async def train_async(
    recipe: RecipeLike,
    /,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    preflight: bool = True,
    allow_changed_env: bool = False,
    on: str = "",
    log: Callable[[str], None] | None = None,
    **overrides: Any,
) -> TrainingResult:
    """Train by a recipe and write the run's report.

    Ctrl-C finishes the update, saves and stops; a second one stops at once::

        turnwise.train("shop-quick", updates=20, **{"rollout.groups": 4, "loss.clip.high": 0.28})

    Args:
        recipe: the name of one that comes with Turnwise, the path of a YAML file, a mapping, or a :class:`Recipe`.
        out: the run's folder; ``runs/NAME`` unless given, which a mapping or a :class:`Recipe` needs.
        resume: go on where the run in that folder stopped; without one there it begins.
        preflight: play and measure a few scripted episodes before anything is spent, and refuse a run that they show
            to be in vain.
        allow_changed_env: resume although the environment's source has changed since the run was started.
        on: where engines and environments are, such as ``"local:engines=2,env_workers=8"``; in this process unless given.
        log: called with each line about the run; standard error unless given.
        overrides: keys of the recipe with their values; dotted ones as ``**{"rollout.groups": 4}``.

    Returns:
        The run's folder and its evaluations on test.

    Raises:
        RecipeError: the recipe is not right.
        RunError: the directory is in use or holds another run, or the run cannot go on.
    """
    world = world_of(os.environ)
    if world is not None:
        if world.rank:
            raise RunError(
                f"This process is learner {world.rank} of {world.size}, by RANK and WORLD_SIZE.",
                "Start learners with the command `turnwise train`, or unset RANK and WORLD_SIZE to train alone.",
            )
        overrides["scale.learners"] = world.size
    checked = load_recipe(recipe, overrides)
    path = folder_of(recipe) if out is None else Path(out)
    log, placement = log or _print, (parse_placement(on) if on else Placement())._replace(world=world)
    if placement.learners:
        raise RunError(
            "Ray places learners for the command, and this is a call.",
            f"Run `turnwise train … --on {on}`, or leave learners out of it.",
        )
    session = opened(checked).session
    roles, lora = session.roles, session.learn.lora
    gpus_of(placement, roles)  # a run with too few is refused before anything is spent
    check_publish(placement, roles)
    check_divided(placement, roles)
    check_engine(placement, roles, lora.rank if lora is not None else 0)
    for line in departures(checked):
        log(f"algorithm {checked.algorithm}: {line}")
    played = ", ".join(
        name if len(checked.suites) == 1 else f"{name} (weight {weight:g})"
        for name, weight in checked.suites.items()
    )
    log(f"training on {played}, {checked.updates} updates")
    with (
        open_run(path, checked, explain_recipe(checked), resume=resume) as run,
        libraries_to(run.path / LIBRARIES),
    ):
        return await _train(checked, run, _Ask(resume, preflight, allow_changed_env, placement), log)


train = blocking(train_async)


def folder_of(recipe: RecipeLike) -> Path:
    """The default directory of a run: ``runs/NAME``.

    Raises:
        RunError: the recipe is not named.
    """
    if isinstance(recipe, (str, Path)):
        return Path("runs") / Path(recipe).name.removesuffix(".yaml").removesuffix(".yml")
    raise RunError("A recipe that is no file has no name for its run's folder.", 'Give one: out="runs/NAME".')


class _Ask(NamedTuple):
    """Options by which a run is to be started."""

    resume: bool
    preflight: bool
    allow_changed_env: bool
    placement: Placement


async def _train(recipe: Recipe, run: RunDirectory, ask: _Ask, log: Log) -> TrainingResult:
    from turnwise.trainers.report.page import write_report

    started = time.monotonic()
    with Stop(log) as stop, gathered(ask.placement.world, run.path) as gathering:
        loaded = _newest(run, log) if ask.resume else None
        trainer = Trainer(recipe, run, stop, log)
        roles = trainer.options.session.roles
        trainer.tidy(loaded)
        if trainer.complete:
            log(f"the run in {run.path} is complete")
        else:
            envs = [*trainer.mixture.envs, *recipe.proposed_envs]
            differs = note_start(run.path, envs, roles.device, allow_changed_env=ask.allow_changed_env)
            if differs:
                log(differs)
            trainer.events.stage("checking the recipe and loading the model")
            try:
                source = await make_ready(recipe, run, ask.preflight and loaded is None, log)
            except TurnwiseError:
                if loaded is None:
                    run.withdraw()
                raise
            with (
                in_cluster(ask.placement, roles) as placement,
                open_session(
                    opened(trainer.lessons.recipe).session, run, source, placement, trainer.started
                ) as session,
                placed_workers(placement, roles, envs) as workers,
            ):
                trainer.workers = trainer.judging.workers = workers
                trainer.gathering = gathering
                await trainer.run_all(session, loaded)
    log(f"report: {write_report(run.path)}")
    if run.episodes.exists():
        to_parquet(run.episodes)
    judged, done = tuple(trainer.judging.judged.values()), trainer.progress
    seconds = time.monotonic() - started
    return TrainingResult(run.path, judged, done.best_update, done.learned, not trainer.complete, seconds)


def _newest(run: RunDirectory, log: Log) -> LoadedCheckpoint | None:
    """The newest whole checkpoint; before the first update the newest one of the warm start."""
    loaded = load_newest(run.checkpoints)
    if loaded is not None:
        return loaded
    try:
        return load_newest(run.warm)
    except RunError as error:
        log(f"{error.cause} The warm start begins anew.")
        return None


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
