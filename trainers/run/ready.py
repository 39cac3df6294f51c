"""Whether a run can begin: the machine has what it needs, and the preflight finds no problem."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from turnwise.agents.engines.registry import check_free, check_installed
from turnwise.trainers.learn.model import choose_device, load_context, load_tokenizer
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.preflight import preflight
from turnwise.trainers.run.resources import check_disk, find_source
from turnwise.trainers.run.session import ensure_model, heard


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
    if look:
        context = recipe.engine.context_length or load_context(source)
        log(f"{await preflight(recipe, load_tokenizer(source), context)}; {room}")
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
    return f"{asyncio.run(preflight(recipe, tokenizer, context))}; {room}"


def _on_this_machine(recipe: Recipe, out: Path) -> tuple[str | None, str]:
    """Where the model is, None where it is made from nothing; how large checkpoints will be."""
    choose_device(recipe.device)
    check_installed(recipe.engine.kind)
    check_free(recipe.engine.kind, recipe.engine.options, str(out.absolute()))
    found = find_source(recipe.model)
    return found, check_disk(recipe, out, found)
