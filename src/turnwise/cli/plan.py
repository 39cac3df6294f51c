"""The command that says what a recipe takes of a card, before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult, table
from turnwise.cli.training import overrides
from turnwise.errors import TurnwiseError

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.trainers.run.planning import Plan, PlanChange

GB = 1e9


def plan(
    recipe: str,
    /,
    *,
    on: str = "",
    row: int = 0,
    shared: int = 0,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative=(), consume_multiple=True)] = None,
) -> VerbResult:
    """Say by arithmetic whether a recipe fits a card, where its memory goes, and what to change. Exit code 1: it does not fit.

    For example: `turnwise plan shop-quick`; `turnwise plan mine.yaml --on 8xH100 --row 4000 --shared 1500`.

    Nothing is loaded, downloaded or measured. Tensors are counted, in the largest micro-batch; libraries and fragments take more, and a tenth
    of the card is left to them (docs/what-fits.md).

    Args:
        recipe: A recipe's name or a YAML file.
        on: Cards, such as H100, 8xH100, A100-80 or L4; this machine without it.
        row: Tokens of the longest row, where it is known; as many as the context has without it.
        shared: Tokens that the rows of a group begin with alike, which a tree computes once.
        set_: Changes of the recipe, such as --set model.lora.rank=32.
    """
    from turnwise.trainers.run.cards import cards_of
    from turnwise.trainers.run.planning import PlanQuestion, helping, plan_recipe

    if row < 0 or shared < 0:
        raise TurnwiseError("--row and --shared count tokens.", "Give numbers from 0 on.")
    question = PlanQuestion(*(cards_of(on) if on else (1, None)), row, shared)
    changes = overrides(set_ or [])
    found = plan_recipe(recipe, changes, question)
    changed = [] if found.fits else helping(recipe, changes, question)
    return VerbResult(
        _told(recipe, found, changed), lambda console: _show(console, found, changed), int(not found.fits)
    )


def _told(recipe: str, found: Plan, changed: Sequence[PlanChange]) -> dict[str, Any]:
    return {
        "recipe": recipe,
        "where": found.where,
        "fits": found.fits,
        "total": round(found.total),
        "memory": round(found.memory),
        "loading": round(found.loading),
        "parts": [
            {
                "name": part.name,
                "learning": round(part.learning),
                "playing": round(part.playing),
                "how": part.how,
            }
            for part in found.parts
        ],
        "dearest": found.dearest.name,
        "weights": found.weights,
        "trained": found.trained,
        "seconds": found.seconds,
        "changes": [
            {"set": one.text.removeprefix("--set "), "total": round(one.total), "fits": one.fits}
            for one in changed
        ],
        "notes": list(found.notes),
    }


def _show(console: SafeConsole, found: Plan, changed: Sequence[PlanChange]) -> None:
    rows = [
        {"part": part.name, "learning": size(part.learning), "playing": size(part.playing), "": part.how}
        for part in found.parts
    ]
    sums = [sum(part.learning for part in found.parts), sum(part.playing for part in found.parts)]
    table([*rows, {"part": "all", "learning": size(sums[0]), "playing": size(sums[1])}])(console)
    verdict = "It fits" if found.fits else "It does not fit"
    console.print(
        f"{verdict}: {size(found.total)} of the {size(found.memory)} of {found.where}, of which a tenth is left free."
    )
    if found.loading > max(sums):
        console.print(
            f"Most is taken at the start, when each card has the model whole: {size(found.loading)}."
        )
    if not found.fits:
        console.print(f"The dearest part is {found.dearest.name}. What helps, each by itself, and its total:")
        for one in changed:
            console.print(f"  {size(one.total)}{'' if one.fits else ' (does not fit)'}: {one.text}")
        if not changed:
            console.print("  nothing that a plan knows of.")
    for note in found.notes:
        console.print(note)


def size(count: float) -> str:
    """Say bytes in words.

    >>> size(0), size(3_466_752), size(1.234e10), size(900)
    ('–', '3.5 MB', '12.3 GB', '0.9 kB')
    """
    if not count:
        return "–"
    return next(
        f"{count / unit:,.1f} {name}"
        for unit, name in ((GB, "GB"), (1e6, "MB"), (1e3, "kB"))
        if count >= unit or unit == 1e3
    )


VERBS: dict[str, Callable[..., VerbResult]] = {"plan": plan}
