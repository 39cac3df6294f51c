"""Checks that a run can begin: the machine has what it needs, and the preflight finds no problem."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turnwise.agents.engines.registry import check_free, check_installed, check_model
from turnwise.agents.models.loading import load_config, load_tokenizer
from turnwise.agents.models.vocabulary import check_rows
from turnwise.agents.policies.model import make_renderer
from turnwise.trainers.learn.adapters import check_adapters
from turnwise.trainers.learn.model import choose_device, load_context
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.run.circumstances import run_clock
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import RunOptions, opened
from turnwise.trainers.run.preflight import preflight
from turnwise.trainers.run.resources import check_disk, find_source
from turnwise.trainers.run.session import chat_format_of
from turnwise.trainers.run.small import ensure_model, heard


async def make_ready(recipe: Recipe, run: RunDirectory, look: bool, log: Callable[[str], None]) -> str:
    """Check everything that a run needs and return where its model is, which is made if need be.

    Args:
        recipe: of the run.
        run: its files.
        look: play the preflight's episodes too.
        log: receives what they showed.

    Raises:
        TurnwiseError: the run cannot begin, or would be in vain.
    """
    options, found = opened(recipe), find_source(recipe.model)
    room = _on_this_machine(options, run.path, found)
    source = ensure_model(options.scratch, run, found, log)
    tokenizer = load_tokenizer(source)
    _check_model(options, source, tokenizer)
    if look:
        context = options.session.roles.context or load_context(source)
        talk = chat_format_of(options.session.talk, run_clock(run.path))
        renderer = make_renderer(tokenizer, source, talk)
        log(
            f"{await preflight(options.preflight, renderer, context)}; {room}; a reply ends with {renderer.ends}"
            f"{beginning(options)}"
        )
    return source


def rehearse(recipe: Recipe, out: Path) -> str:
    """Make the checks of :func:`make_ready` without writing anything.

    Raises:
        TurnwiseError: as there.
    """
    options, found = opened(recipe), find_source(recipe.model)
    room, context = _on_this_machine(options, out, found), options.session.roles.context
    if options.scratch is not None:
        from turnwise.agents.models.small import train_tokenizer

        made = options.scratch.model
        context = context or made.context
        tokenizer = train_tokenizer(heard(options.scratch), vocab_size=made.vocab_size, context=made.context)
    else:
        context = context or load_context(str(found))
        tokenizer = load_tokenizer(str(found))
        _check_model(options, str(found), tokenizer)
    renderer = make_renderer(tokenizer, found, chat_format_of(options.session.talk, run_clock(out)))
    said = asyncio.run(preflight(options.preflight, renderer, context))
    return f"{said}; {room}; a reply ends with {renderer.ends}{beginning(options)}"


def beginning(options: RunOptions) -> str:
    """Warn of a model that begins knowing nothing; empty for any other."""
    if options.scratch is None or options.warm is not None:
        return ""
    return "; it begins with random weights and no warm start, so that it learns only where random text is rewarded now and then"


def _check_model(options: RunOptions, source: str, tokenizer: Any) -> None:
    """See that tokeniser, adapters and engine go with the model, as far as its config tells."""
    config, roles = load_config(source), options.session.roles
    check_rows(tokenizer, config.get_text_config().vocab_size, source)
    check_model(roles.engine.kind, config, choose_device(roles.device).type)
    if options.session.learn.lora is not None:
        check_adapters(source, options.session.learn.lora)


def _on_this_machine(options: RunOptions, out: Path, source: str | None) -> str:
    """Refuse what this machine lacks. Return how large checkpoints will be, in words."""
    roles = options.session.roles
    choose_device(roles.device)
    check_installed(roles.engine.kind)
    check_free(roles.engine.kind, roles.engine.options, str(out.absolute()))
    return check_disk(options.disk, out, source)
