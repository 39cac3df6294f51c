"""The bias of credit through context managers, which play the process themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from turnwise.registry import Component, components, get_component
from turnwise.trainers.lab.contexts import EXACT, ListedWorld, managed, measure, worlds
from turnwise.trainers.lab.exact import Process, paths
from turnwise.trainers.lab.processes import lopsided, made_up

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
    """The best policy of each manager: by its contexts alone, and with the turns of writing."""
    best = {
        name: best_return(managed(get_component("context", name))) for name in ("window", "summary", "notes")
    }
    assert best["window"] < best["summary"] == best["notes"] == pytest.approx(1.1)


def best_return(world: Process) -> float:
    """What a policy reaches that climbs the exact gradient for long."""
    logits_SA, found = lopsided(world), 0.0
    for _ in range(400):
        p = paths(world, logits_SA)
        found = (p.probability_N * p.return_N).sum().item()
        logits_SA = logits_SA + 20 * p.policy_gradient()
    return round(found, 1)


def test_memory_turns_are_marked_and_pay_nothing(shown) -> None:
    (p,) = (world.paths for world in shown if world.process.name == "summary")
    assert p.memory_NK.any()
    assert not p.reward_NK[p.memory_NK].any()


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
