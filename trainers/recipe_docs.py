"""docs/recipes.md, written from the recipe's own model: ``python -m turnwise.trainers.recipe_docs``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from turnwise.trainers.schema import Recipe, Section, plain

HEAD = """\
# Recipes

A recipe is a YAML file with every choice of a training run. `turnwise list recipes` names those that come with
Turnwise, `turnwise train RECIPE` follows one, `turnwise explain RECIPE` prints what it optimises. Keys that are
left out have the default given here. On the command line `--set` changes them by dotted keys:

```
turnwise train shop-quick --set updates=20 evaluate.every=5 credit=rloo loss.clip.high=0.28
```

Parts (`judge`, `reward`, `filter`, `credit`, `correction`, `loss`, `reduce`, `rollout.strategy`) are given by name, or by
name with options: `credit: {name: gae, lam: 0.95}`. Losses are a list, each with a `weight`:
`loss: [clip, {name: kl, weight: 0.01}]`. `turnwise list credit` (or another seam) shows names and options.

A recipe is checked as a whole before anything starts. Unknown keys, parts that do not fit together and settings
that could have no effect are refused, with the remedy.

This page is generated (`python -m turnwise.trainers.recipe_docs`); a test keeps it up to date.
"""


def recipe_docs() -> str:
    """The page: every key with its default and its meaning."""
    return HEAD + "".join(_tables(Recipe, ""))


def _tables(section: type[Section], prefix: str) -> Iterator[str]:
    """A section's table, then those of the sections in it."""
    title = f"`{prefix.removesuffix('.')}`" if prefix else "Top level"
    yield f"\n## {title}\n\n{(section.__doc__ or '').strip()}\n\n| key | default | meaning |\n|---|---|---|\n"
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
