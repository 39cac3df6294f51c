"""The verbs of those who train agents: train, explain, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import Answer

if TYPE_CHECKING:
    from rich.console import Console


def train(
    recipe: str,
    /,
    *,
    out: Path | None = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative=(), consume_multiple=True)] = None,
) -> Answer:
    """Train an agent by a recipe.

    Args:
        recipe: A recipe's name (`turnwise list recipes`) or a YAML file.
        out: The run's folder; runs/NAME without it.
        resume: Go on where the run in that folder stopped.
        set_: Changes of the recipe, such as --set updates=50 loss.clip.high=0.3.
    """
    from turnwise.trainers.trainer import train as train_recipe

    result = train_recipe(recipe, out, overrides(set_ or []), resume)

    def show(console: Console) -> None:
        from turnwise.agents.summary import comparison_table

        found = {f"{name} ({mode})": evaluation for name, mode, evaluation in result.evaluations}
        if found:
            console.print(comparison_table(found))
        state = "interrupted; go on with --resume" if result.interrupted else "done"
        console.print(f"{state} after {result.seconds:.0f} s, everything in {result.path}", markup=False)

    return Answer(result.to_json(), show, code=130 if result.interrupted else 0)


def overrides(pairs: list[str]) -> dict[str, object]:
    """``key=value`` texts as a mapping; values are YAML.

    >>> overrides(["updates=50", "credit.name=rloo", "eval.greedy=true"])
    {'updates': 50, 'credit.name': 'rloo', 'eval.greedy': True}
    """
    import yaml

    from turnwise.errors import RecipeError

    read: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise RecipeError(f"--set {pair!r} is no change.", "Write --set key=value.")
        try:
            read[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise RecipeError(f"--set {key}: {value!r} cannot be read.", "Values are YAML.") from error
    return read


def explain(
    recipe: str,
    /,
    *,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative=(), consume_multiple=True)] = None,
) -> Answer:
    """Print what a recipe optimises, in words and as a formula.

    Args:
        recipe: A recipe's name or a YAML file.
        set_: Changes of the recipe, such as --set loss.clip.high=0.3.
    """
    from turnwise.trainers.explain import explain as explain_recipe

    text = explain_recipe(recipe, overrides(set_ or []))
    return Answer(
        {"recipe": recipe, "text": text}, lambda console: console.print(text, markup=False, soft_wrap=True)
    )


def report(run: Path, /) -> Answer:
    """Write a run's report.html: one file that holds everything.

    Args:
        run: The run's folder.
    """
    from turnwise.trainers.report import write_report

    path = write_report(run)
    return Answer({"report": str(path)}, lambda console: console.print(f"wrote {path}", markup=False))


VERBS: dict[str, Callable[..., Answer]] = {"train": train, "explain": explain, "report": report}
