"""Whether a run can begin: the machine has what it needs, and the preflight finds no problem."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from turnwise.agents.engines.registry import check_free, check_installed
from turnwise.agents.models.loading import load_tokenizer, text_config
from turnwise.agents.models.vocabulary import check_rows
from turnwise.agents.policies.model import make_renderer
from turnwise.trainers.learn.model import choose_device, load_context
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.run.circumstances import run_clock
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.preflight import preflight
from turnwise.trainers.run.resources import check_disk, find_source
from turnwise.trainers.run.session import chat_format_of, ensure_model, heard


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
    found, room = _on_this_machine(recipe, run.path)
    source = ensure_model(recipe, run, found, log)
    tokenizer = load_tokenizer(source)
    check_rows(tokenizer, text_config(source).vocab_size, source)
    if look:
        context = recipe.engine.context_length or load_context(source)
        renderer = make_renderer(tokenizer, source, chat_format_of(recipe, run_clock(run.path)))
        log(f"{await preflight(recipe, renderer, context)}; {room}; a reply ends with {renderer.ends}")
    return source


def rehearse(recipe: Recipe, out: Path) -> str:
    """Make the checks of :func:`make_ready` without writing anything.

    Raises:
        TurnwiseError: as there.
    """
    found, room = _on_this_machine(recipe, out)
    scratch = recipe.model.scratch
    if scratch is not None:
        from turnwise.agents.models.small import train_tokenizer

        context = recipe.engine.context_length or scratch.context
        tokenizer = train_tokenizer(
            heard(recipe, scratch), vocab_size=scratch.vocab_size, context=scratch.context
        )
    else:
        context = recipe.engine.context_length or load_context(str(found))
        tokenizer = load_tokenizer(str(found))
        check_rows(tokenizer, text_config(str(found)).vocab_size, str(found))
    renderer = make_renderer(tokenizer, found, chat_format_of(recipe, run_clock(out)))
    return f"{asyncio.run(preflight(recipe, renderer, context))}; {room}; a reply ends with {renderer.ends}"


def _on_this_machine(recipe: Recipe, out: Path) -> tuple[str | None, str]:
    """Where the model is, None where it is made from nothing; how large checkpoints will be."""
    choose_device(recipe.device)
    check_installed(recipe.engine.kind)
    check_free(recipe.engine.kind, recipe.engine.options, str(out.absolute()))
    found = find_source(recipe.model)
    return found, check_disk(recipe, out, found)
