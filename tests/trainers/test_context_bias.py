"""The bias of credit through context managers, which play the process themselves."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from turnwise.registry import Component, components, get_component
from turnwise.trainers.lab.contexts import EXACT, ListedWorld, managed, measure, worlds
from turnwise.trainers.lab.exact import Process
from turnwise.trainers.lab.processes import made_up

PAGE = Path(__file__).parents[2] / "docs" / "context-bias.md"
UNBIASED = [entry.name for entry in components("credit") if entry.bias.startswith("unbiased")]


@pytest.fixture(scope="module")
def shown() -> list[ListedWorld]:
    """Of the managers whose turns of writing are unlike: none, asked for, and chosen."""
    return worlds("window", "summary", "notes")


@pytest.mark.parametrize("name", UNBIASED)
def test_a_rule_that_declares_no_bias_has_none_through_any_context_manager(shown, name: str) -> None:
    found = measure(get_component("credit", name), shown)
    crooked = {world: bias for world, bias in found.bias.items() if bias.angle > EXACT or bias.scale <= 0}
    assert not crooked


def test_a_critic_s_value_in_place_of_what_came_is_biased_by_what_contexts_hide(shown) -> None:
    found = measure(get_component("credit", "gae"), shown, options={"lam": 0.9})
    assert found.bias["whole"].angle < EXACT
    assert found.bias["summary"].angle > 1e-3
    assert found.told == "**biased through contexts alone**"


def test_a_window_hides_the_hint_and_writing_it_down_brings_it_back() -> None:
    """Without writing, the hint can be kept in the walk alone, which costs half of what the better way pays."""
    best = {
        name: best_return(managed(get_component("context", name))) for name in ("window", "summary", "notes")
    }
    assert best == {"window": pytest.approx(1.05), "summary": pytest.approx(1.1), "notes": pytest.approx(1.1)}


def best_return(world: Process) -> float:
    """The most that a policy reaches which takes one action in each context."""
    allowed: dict[int, list[int]] = {}
    for state, action in world.branches:
        known = allowed.setdefault(world.context(state), [])
        known += [action] if action not in known else []

    def value(state: int, taken: tuple[int, ...]) -> float:
        ways = world.branches[state, taken[world.context(state)]]
        return sum(
            way.probability * (way.reward + (0 if way.state is None else value(way.state, taken)))
            for way in ways
        )

    return max(value(0, taken) for taken in itertools.product(*(allowed[c] for c in sorted(allowed))))


@pytest.mark.parametrize("name", ["summary", "notes"])
def test_memory_turns_are_marked_and_pay_nothing(shown, name: str) -> None:
    (p,) = (world.paths for world in shown if world.process.name == name)
    assert p.memory_NK.any()
    assert not p.reward_NK[p.memory_NK].any()
    assert {int(n) for n in (p.mask_NK & ~p.memory_NK).sum(-1)} == {1, 3}, "leave, or look, walk and open"


def test_the_page_has_a_row_for_every_rule_and_a_column_for_every_manager() -> None:
    text = PAGE.read_text("utf-8")
    (head,) = re.findall(r"^\| rule \| (.*) \| declared", text, re.MULTILINE)
    assert head.split(" | ") == ["whole", *(entry.name for entry in components("context"))]
    for entry in components("credit"):
        (told,) = re.findall(rf"^\| `{entry.name}` \|.*\| ([^|]*) \|$", text, re.MULTILINE)
        assert ("not known" in told) == bool(entry.needs_with({}) & made_up()), entry.name
        assert (told == "unbiased through all of them") <= entry.bias.startswith("unbiased"), entry.name


def test_a_manager_of_a_stranger_is_played_too() -> None:
    window = get_component("context", "window")
    other = Component("context", "other", window.target, "", "")
    assert managed(other).name == "other"
