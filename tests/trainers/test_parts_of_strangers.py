"""Parts that someone else wrote: those that a run could not use are refused when the recipe is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise import registry
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.parts import build_parts

SHOP = {"suite": "shop/quick", "model": {"path": "Qwen/Qwen3-0.6B"}}


@pytest.fixture
def own() -> Iterator[Callable[..., Any]]:
    """Register parts that are gone after the test."""
    added: list[tuple[str, str]] = []

    def register(kind: str, name: str, **said: Any) -> Any:
        added.append((kind, name))
        return component(kind, name, **said)

    yield register
    for key in added:
        registry._components.pop(key, None)


@pytest.mark.parametrize("kind", ["strategy", "reward", "credit", "filter", "shape", "correction", "reduce"])
def test_a_class_where_a_function_belongs_is_refused_when_the_recipe_is_read(own: Any, kind: str) -> None:
    """It was built anew at each call, with what an update holds in place of its options, and ended the first update."""

    @own(kind, "remembers", bias="unbiased", needs=())
    class Remembers:
        """Remembers."""

        def __init__(self, *, rate: float = 1.0) -> None: ...

    named: Any = {"rollout": {"strategy": "remembers"}} if kind == "strategy" else {kind: "remembers"}
    if kind == "shape":
        named = {kind: ["remembers"]}
    with pytest.raises(RecipeError, match=rf"(?s){kind} 'remembers' .*is a class.*docs/extending/{kind}\.md"):
        check_recipe({**SHOP, **named})


def test_a_filter_may_ask_for_signals(own: Any) -> None:
    """What it needs is measured, and tried out when the recipe is read; it was a KeyError."""

    @own("filter", "doubtful", needs=("entropy",))
    def doubtful(batch: Any, credit: Any) -> Any:
        """Keep what hesitated."""
        return batch.signals["entropy"].abs().mean(-1)

    recipe = check_recipe({**SHOP, "filter": "doubtful"})
    assert "entropy" in recipe.needs
    assert [one.entry.name for one in recipe.sources] == ["entropy"]
    assert build_parts(recipe).filter is not None


def test_a_filter_may_ask_for_what_a_judge_gives(own: Any) -> None:
    @own("filter", "asked", asks=("signal",))
    def asked(batch: Any, credit: Any, *, signal: str = "principle") -> Any:
        """Keep what a judge liked."""
        return batch.signals[signal].abs().mean(-1)

    judged = {"judge": {"name": "principles", "policy": "scripted:gold"}}
    assert "principle" in check_recipe({**SHOP, **judged, "filter": "asked"}).needs
    with pytest.raises(RecipeError, match="which judge 'none' does not give"):
        check_recipe({**SHOP, "filter": "asked"})
