"""docs/recipes.md, written from the recipe's own model: ``python -m turnwise.trainers.recipe.docs``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from turnwise.trainers.recipe.schema import Recipe, Section, plain

HEAD = """\
# Recipes

A recipe is a YAML file that holds every choice of a training run. `turnwise list recipes` names the recipes that come
with Turnwise, `turnwise train RECIPE` runs one, and `turnwise explain RECIPE` prints what it optimises. A key that is
left out has the default given here. On the command line `--set` changes keys by their dotted names:

```
turnwise train shop-quick --set updates=20 evaluate.every=5 credit=rloo loss.clip.high=0.28
```

The parts (`judge`, `reward`, `filter`, `credit`, `correction`, `loss`, `reduce`, `rollout.strategy`) are given by name,
or by name with options: `credit: {name: gae, lam: 0.95}`. Losses are a list, and each has a `weight`:
`loss: [clip, {name: kl, weight: 0.01}]`. `turnwise list credit` (or `turnwise list` with another kind of part) shows the
names and options there are. The [glossary](glossary.md) leads from the field's terms to the keys.

A recipe is checked as a whole before anything starts. Unknown keys, parts that do not fit together and settings that
could have no effect are refused, all at once and each with its remedy; [recipe-mistakes.md](recipe-mistakes.md) shows
the usual mistakes.

Then the preflight plays a few scripted episodes and measures them with the model's own tokeniser, before any time is
spent on training (`--no-preflight` leaves it out). It checks that the prompt, the tools and whole episodes fit into the
context, that messages fit into `sampling.max_tokens`, and that the gold policy needs no more turns than the limit. It
also checks that the environment works and rewards good play more than trivial play, and that the engine, the model and
the disk space are there. `turnwise explain RECIPE --preflight` makes the same checks without training, and
`turnwise explain RECIPE --sampling 60` says which tasks the sampler would play.

This page is generated (`python -m turnwise.trainers.recipe.docs`); a test keeps it up to date.
"""


def recipe_docs() -> str:
    """Return the page with every key, its default and its meaning."""
    return HEAD + "".join(_tables(Recipe, ""))


def _tables(section: type[Section], prefix: str) -> Iterator[str]:
    """Yield the table of a section, then the tables of the sections in it."""
    title = f"`{prefix.removesuffix('.')}`" if prefix else "Top level"
    yield f"\n## {title}\n\n{inspect.cleandoc(section.__doc__ or '')}\n\n| key | default | meaning |\n|---|---|---|\n"
    for key, field in section.model_fields.items():
        meaning = " ".join((field.description or "").split())
        yield f"| `{prefix}{key}` | {_default(field)} | {meaning}{_choices(field)} |\n"
    for key, field in section.model_fields.items():
        inner = _section(field)
        if inner is not None:
            yield from _tables(inner, f"{prefix}{key}.")


def _section(field: FieldInfo) -> type[Section] | None:
    kinds = (field.annotation, *get_args(field.annotation))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, Section)), None)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "none"
    if isinstance(field.default, Section):
        return "see below"
    return f"`{_yaml(plain(field.default))}`"


def _yaml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'


def _choices(field: FieldInfo) -> str:
    for kind in (field.annotation, *get_args(field.annotation)):
        if get_origin(kind) is Literal and len(get_args(kind)) > 1:
            return f" One of {', '.join(f'`{choice}`' for choice in get_args(kind))}."
    return ""


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/recipes.md")
    target.write_text(recipe_docs(), "utf-8")
    print(f"wrote {target}")
