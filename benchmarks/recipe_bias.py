"""The bias of every credit rule and shape under every filter and strategy that a recipe accepts with it, of losses and of help.

``python benchmarks/recipe_bias.py`` computes it (some minutes), writes ``recipe-bias.json``, ``loss-bias.json``,
``shipped-bias.json`` and ``help-bias.json`` in benchmarks/ and from them docs/recipe-bias.md; ``--help-only`` computes guides, sources
and teachers only (a minute), ``--losses-only`` losses and the recipes that come along, and ``--page`` writes the page from the
figures that are there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loss_bias import LOSS_FIGURES, SHIPPED_FIGURES, loss_rows, loss_section, shipped_rows, shipped_section

from turnwise.cli.recipe_bias import composition
from turnwise.errors import RecipeError
from turnwise.registry import components, get_component
from turnwise.trainers.lab.help_bias import HINTED, help_bias, helps
from turnwise.trainers.lab.recipe_bias import ProcessBias, recipe_bias
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.recipe.schema import Recipe

FIGURES, PAGE = Path("benchmarks/recipe-bias.json"), Path("docs/recipe-bias.md")
HELP_FIGURES = Path("benchmarks/help-bias.json")
HELPED = ("return_to_go", "rloo", "grpo")
"""The credit rules under which help is measured."""
GROUP = 4


class Combination(NamedTuple):
    """The parts that are varied. ``shape`` is empty, or laid over the credit rule."""

    credit: str
    shape: str
    filter: str
    strategy: str

    @property
    def recipe(self) -> dict[str, Any]:
        needs = get_component("credit", self.credit).needs_with({})
        judge = next((entry.name for entry in components("judge") if needs & {*entry.gives}), "none")
        return {
            "suite": "shop/quick",
            "model": {"scratch": {}},
            "credit": self.credit,
            "shape": [self.shape] if self.shape else [],
            "filter": self.filter,
            "judge": judge,
            "rollout": {"group_size": GROUP, "strategy": self.strategy},
        }


class Found(NamedTuple):
    """What was found of a combination: the worst process and its angle, why nothing can be said, or why it is refused."""

    degrees: float | None = None
    process: str = ""
    perturbed: float | None = None
    why: str = ""
    refused: str = ""


def combinations() -> Iterator[Combination]:
    """Every credit rule by itself, and every shape over GRPO, under every filter and strategy."""
    filters, strategies = ([entry.name for entry in components(kind)] for kind in ("filter", "strategy"))
    rules = [(entry.name, "") for entry in components("credit")]
    shapes = [("grpo", entry.name) for entry in components("shape")]
    for (credit, shape), name, strategy in itertools.product([*rules, *shapes], filters, strategies):
        yield Combination(credit, shape, name, strategy)


def measured(one: Combination) -> Found:
    """The worst angle of a combination over all processes and two tasks at once."""
    try:
        recipe: Recipe = load_recipe(one.recipe)
    except RecipeError as error:
        return Found(refused=error.cause)
    return worst(recipe_bias(composition(recipe), GROUP))


def worst(found: Mapping[str, ProcessBias]) -> Found:
    """The process with the largest angle; nothing where one of them cannot be measured."""
    blank = next((bias for bias in found.values() if bias.degrees is None), None)
    if blank is not None:
        return Found(why=", ".join(blank.not_measurable))
    name, bias = max(found.items(), key=lambda item: item[1].degrees or 0.0)
    wrong = [x.perturbed_degrees for x in found.values() if x.perturbed_degrees is not None]
    return Found(bias.degrees, name, max(wrong, default=None))


def page(rows: Sequence[tuple[Combination, Found]]) -> str:
    """docs/recipe-bias.md."""
    by: dict[tuple[str, str], dict[tuple[str, str], Found]] = {}
    for one, found in rows:
        by.setdefault((one.credit, one.shape), {})[one.filter, one.strategy] = found
    columns = list(dict.fromkeys((one.filter, one.strategy) for one, _ in rows))
    head = " | ".join(f"`{name}`, `{strategy}`" for name, strategy in columns)
    lines = [
        f"| {_called(*key)} | {' | '.join(_cell(given[column]) for column in columns)} |"
        for key, given in sorted(by.items())
    ]
    accepted = [found for _, found in rows if not found.refused]
    exact = sum(found.degrees == 0 for found in accepted)
    told = sum(found.degrees is None for found in accepted)
    return f"""# Bias of recipes

This page is written by `python benchmarks/recipe_bias.py` from `benchmarks/recipe-bias.json`.

The angle in degrees between a recipe's expected first step and the exact policy gradient, the worst of five small
processes and of two tasks at once (`turnwise explain RECIPE --bias` shows each): groups of {GROUP}, the loss `clip`, the denominator
`fixed_length`, no reward transformation, signals with their exact values, and in brackets with learned ones that are wrong.
*n.m.*: not measurable there, because a signal is made of text, or the strategy's forks cannot be enumerated. –: the recipe
refuses the combination. Of {len(accepted)} that are accepted {exact} are at 0°, {len(accepted) - exact - told} are not, and {told} are not
measurable. What a rule declares is in [credit-bias.md](credit-bias.md); a shape stands over `grpo`.

| credit (+ shape) | {head} |
|---|{"---|" * len(columns)}
{chr(10).join(lines)}

{loss_section(json.loads(LOSS_FIGURES.read_text("utf-8")))}
{shipped_section(json.loads(SHIPPED_FIGURES.read_text("utf-8")))}
{help_section(json.loads(HELP_FIGURES.read_text("utf-8")))}"""


def help_figures() -> list[dict[str, Any]]:
    """Of every kind of help under every rule: by process the angles to the policy gradient and to what is declared."""
    rows: list[dict[str, Any]] = []
    for one in helps():
        for credit in HELPED:
            recipe: Recipe = load_recipe(Combination(credit, "", "informative", "chain").recipe)
            found = help_bias(composition(recipe), one.step, GROUP)
            processes = {name: bias._asdict() for name, bias in found.items()}
            rows.append(
                {
                    "part": one.part,
                    "options": one.options,
                    "declared": one.declared,
                    "credit": credit,
                    "processes": processes,
                }
            )
            print(one.part, one.options, credit, file=sys.stderr)
    return rows


def help_section(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the page says of guides, sources and teachers."""
    by: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        of: Mapping[str, Mapping[str, float]] = row["processes"]
        worst_J, worst = (max(bias[key] for bias in of.values()) for key in ("degrees", "declared"))
        cell = f"{worst_J:.1f}; {worst:.1f}; {of['puzzle']['declared']:.1f}"
        by.setdefault((row["part"], row["options"], row["declared"]), []).append(cell)
    lines = [
        f"| `{part}` | {options} | {declared} | {' | '.join(cells)} |"
        for (part, options, declared), cells in by.items()
    ]
    return f"""## Guides, sources and teachers

Help changes which episodes an update learns from. On the same five processes its expected first step is a finite sum too:
the demonstrator takes the best action of each state, a hinted policy is the policy with the logit of that action raised by
{HINTED:g}, an older policy has other logits, a task is solved by a return of 1 or more. Three angles in degrees for each credit
rule: to the exact policy gradient of J (the worst process); to the gradient of what is declared (the worst process); and the
latter on **puzzle**, where the outcome is the only reward. Groups of {GROUP}, loss `clip` (of a teacher `distill` alone), filter `informative`
unless said, denominator `fixed_length`.

| help | options | declared | {" | ".join(f"`{name}`" for name in HELPED)} |
|---|---|---|{"---|" * len(HELPED)}
{chr(10).join(lines)}

A prefix for every group is training from other first states, and nothing else, with rules that are unbiased themselves.
Groups that are replaced *because* nobody solved them are another matter: what they would have taught is lost, and only where
the outcome is the only reward was that nothing. The same holds for hints, whose groups must moreover be solved to be kept: the
whole ratio of a trajectory makes them exact on outcomes alone. A capped or missing ratio leaves some degrees, in hints and in
stored groups alike; the whole ratio has no bias there, but its noise grows with the length of episodes. A teacher says nothing of
groups that the filter drops: with `informative` the states of solved and of hopeless tasks are not distilled, with `any` all are.
"""


def _called(credit: str, shape: str) -> str:
    return f"`{credit}` + `{shape}`" if shape else f"`{credit}`"


def _cell(found: Found) -> str:
    if found.refused:
        return "–"
    if found.degrees is None:
        return "n.m."
    wrong = f" ({found.perturbed:.1f})" if found.perturbed is not None else ""
    return f"{found.degrees:.1f}{wrong}"


def read(file: Path = FIGURES) -> list[tuple[Combination, Found]]:
    """The figures that are committed."""
    kept: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return [
        (
            Combination(*(str(row[name]) for name in Combination._fields)),
            Found(**{name: row[name] for name in Found._fields}),
        )
        for row in kept
    ]


def write(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write figures."""
    file.write_text(json.dumps(rows, indent=0, ensure_ascii=False) + "\n", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("recipe_bias.py", description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--help-only", action="store_true", help="compute guides, sources and teachers only")
    parser.add_argument("--losses-only", action="store_true", help="compute losses and shipped recipes only")
    parser.add_argument("--new-only", action="store_true", help="keep the figures that are there")
    given = parser.parse_args(arguments)
    some = given.help_only or given.losses_only
    if not given.page and (given.help_only or not some):
        write(HELP_FIGURES, help_figures())
    if not given.page and (given.losses_only or not some):
        write(LOSS_FIGURES, loss_rows())
        write(SHIPPED_FIGURES, shipped_rows())
    if not given.page and not some:
        rows: list[dict[str, Any]] = []
        known = dict(read()) if given.new_only else {}
        for one in combinations():
            found = known.get(one) or measured(one)
            rows.append({**one._asdict(), **found._asdict()})
            print(*one, _cell(found), file=sys.stderr)
        write(FIGURES, rows)
    PAGE.write_text(page(read()), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
