"""The first step of every loss by itself, and of the recipes that come along, beside the exact policy gradient.

Computed and written by ``python benchmarks/recipe_bias.py``, ``--losses-only`` these alone (some minutes).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turnwise.cli.recipe_bias import changes, composition
from turnwise.errors import RecipeError
from turnwise.registry import Component, components, get_component
from turnwise.trainers.lab.recipe_bias import ProcessBias, recipe_bias
from turnwise.trainers.recipe.load import load_recipe, recipe_names
from turnwise.trainers.recipe.phases import phases_of

LOSS_FIGURES, SHIPPED_FIGURES = Path("benchmarks/loss-bias.json"), Path("benchmarks/shipped-bias.json")
LOSS_GROUP = 3


def loss_bias(loss: str) -> dict[str, ProcessBias]:
    """Of a loss by itself, under an exact rule; one that asks for a single outcome per trajectory under such a one."""
    entry = get_component("loss", loss)
    try:
        return _loss_bias(entry, "return_to_go")
    except RecipeError:
        return _loss_bias(entry, "dr_grpo")


def _loss_bias(entry: Component, credit: str) -> dict[str, ProcessBias]:
    teacher = (
        {"name": "model", "path": "/a/model"} if any("teacher" in need for need in entry.needs) else None
    )
    if teacher and "teacher_top" in entry.needs:
        teacher["top"] = 8  # pyright: ignore[reportArgumentType]
    keys: dict[str, Any] = {
        "suite": "shop/quick",
        "model": {"scratch": {}},
        "credit": credit,
        "correction": "none",
        "loss": [entry.name],
        **({"teacher": teacher} if teacher else {}),
    }
    return recipe_bias(composition(load_recipe(keys)), LOSS_GROUP)


def loss_rows() -> list[dict[str, Any]]:
    """Of every loss its declared slope, and what was found on each process."""
    rows: list[dict[str, Any]] = []
    for entry in components("loss"):
        found = loss_bias(entry.name)
        rows.append({"loss": entry.name, "slope": entry.slope, "processes": _rounded(found)})
        print(entry.name, file=sys.stderr)
    return rows


def shipped_bias(name: str, phase: str) -> dict[str, ProcessBias]:
    """Of a recipe that comes along, or of one of its phases."""
    (recipe,) = (one.recipe for one in phases_of(load_recipe(name)) if one.name == phase)
    return recipe_bias(composition(recipe), recipe.rollout.group_size, changes(recipe))


def shipped_rows() -> list[dict[str, Any]]:
    """What was found of each recipe and phase."""
    rows: list[dict[str, Any]] = []
    for name in recipe_names():
        for phase in phases_of(load_recipe(name)):
            found = shipped_bias(name, phase.name)
            rows.append({"recipe": name, "phase": phase.name, "processes": _rounded(found)})
            print(name, phase.name, file=sys.stderr)
    return rows


def _rounded(found: Mapping[str, ProcessBias]) -> dict[str, Any]:
    return {
        name: {
            "degrees": None if bias.degrees is None else round(bias.degrees, 3),
            "group_size": bias.group_size,
            "not_measurable": [*bias.not_measurable],
            "objectives": [*bias.objectives],
            "instead": {said: round(angle, 3) for said, angle in bias.instead.items()},
        }
        for name, bias in found.items()
    }


def loss_section(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the page says of losses."""
    names = [*rows[0]["processes"]]
    lines = [
        f"| `{row['loss']}` | {row['slope']} | {' | '.join(_cells(row['processes'], names))} | {_own(row['processes'])} |"
        for row in rows
    ]
    return f"""## Losses

Each by itself with its defaults, over `return_to_go` (`rover`, which asks for one outcome per trajectory: over `dr_grpo`), with the
filter `informative` and groups of {LOSS_GROUP}: the angle in degrees of the first step on each process. Every batch passes the loss itself; no figure
comes from what it declares. The reference is the policy itself at the first step, the vocabulary is the process's actions, what
remembers remembers nothing yet, and a task is solved by a return of 1 or more. *own* says that the loss pulls where no
advantage does: it has an objective of its own, and its angle is that objective's, not an error. *n.m.*: not measurable, because it follows
a teacher; *no step*: its first step is 0, as that of a loss that holds to where the policy began. `prdp` looks at no
advantage and is exact nevertheless: its first step is the covariance of returns and scores, which is the policy gradient.

| loss | declared slope | {" | ".join(names)} | objective |
|---|---|{"---|" * len(names)}---|
{chr(10).join(lines)}
"""


def _cells(processes: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [_cell(processes[name]) for name in names]


def _cell(bias: Mapping[str, Any]) -> str:
    if bias["degrees"] is not None:
        return f"{bias['degrees']:.1f}"
    return "no step" if bias["not_measurable"] == ["the expected first step is 0"] else "n.m."


def _own(processes: Mapping[str, Any]) -> str:
    return "own" if any(bias["objectives"] for bias in processes.values()) else ""


def shipped_section(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the page says of the recipes that come along."""
    lines = [_shipped(row) for row in rows]
    return f"""## Recipes that come along

The first step with all losses of the recipe, the worst process, and what it comes from: the angle there would be if that
were otherwise. An entropy bonus and DPO are chosen for what they are and not as estimates of the policy gradient; the
discount of `household-medium` is chosen too: it gives up exactness for less noise over thirty turns ([lab notes](lab-notes/README.md)).

| recipe | phase | degrees | on | groups of | what it comes from |
|---|---|---|---|---|---|
{chr(10).join(lines)}
"""


def _shipped(row: Mapping[str, Any]) -> str:
    processes: Mapping[str, Mapping[str, Any]] = row["processes"]
    name, bias = max(processes.items(), key=lambda item: item[1]["degrees"] or 0.0)
    unknown = {why for one in processes.values() for why in one["not_measurable"]}
    if unknown:
        return f"| `{row['recipe']}` | {row['phase']} | n.m. | | | {', '.join(sorted(unknown))} |"
    said = [f"{angle:.1f} {what}" for what, angle in bias["instead"].items()]
    if bias["degrees"] > 0 and not said:
        said = [f"the objective of {', '.join(f'`{loss}`' for loss in bias['objectives'])} itself"]
    on, why = (name, "; ".join(said)) if bias["degrees"] > 0 else ("", "")
    return f"| `{row['recipe']}` | {row['phase']} | {bias['degrees']:.1f} | {on} | {bias['group_size']} | {why} |"
