"""Laws of rewards that stand in a row: what each says that it paid, where their order counts, what a recipe refuses."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise import registry
from turnwise.agents.core import Episode
from turnwise.envs.core import EndReason
from turnwise.errors import RecipeError
from turnwise.registry import component, components
from turnwise.trainers.core import Group
from turnwise.trainers.kit.payer import total
from turnwise.trainers.kit.reward_edits import paid_instead, replace_turns, with_signals
from turnwise.trainers.kit.toy_batches import episode, with_calls, with_tokens, with_words
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.recipe.part import Part, payer_of
from turnwise.trainers.run.parts import build_parts

REWARDS = components("reward")
SIGNALS = sorted({name for entry in REWARDS for name in entry.needs_with({})})
"""All that rewards pay for unless they are told otherwise."""
S, F, T = EndReason.SOLVED, EndReason.FAILED, EndReason.TURN_LIMIT


def _played(end: EndReason, outcome: float, n: int) -> Episode:
    one = episode(
        [0.0, outcome],
        parts={"progress": [0.8, 0.3], "cost": [-0.1, -0.2]},
        details=[{}, {"entities": n / 8}],
        end=end,
    )
    said = with_calls(
        with_words(with_tokens(one, [n, 2]), ["", "<confidence>0.8</confidence>"]),
        [[("look", {"at": n % 2})], []],
    )
    return with_signals(said, [dict.fromkeys(SIGNALS, 0.25 * n % 1), dict.fromkeys(SIGNALS, 0.5)])


GROUPS: list[Group] = [
    [_played(S, 1.0, 3), _played(F, 0.3, 5), _played(T, 0.0, 2)],
    [_played(F, 0.0, 3), _played(F, 0.0, 3)],
    [_played(S, 1.0, 7), _played(S, 1.0, 1)],
]
"""A mixed group, one in which all failed, one that was solved throughout."""


def _turns(groups: list[Group]) -> list[list[float]]:
    return [[round(turn.reward, 9) for turn in one.trajectory.turns] for group in groups for one in group]


def test_what_a_list_pays_is_what_its_parts_say_they_paid() -> None:
    """In any two in a row, of groups that are mixed, failed or solved; and a turn's reward is the sum of its components."""
    before = total(GROUPS)
    for first, second in itertools.product(REWARDS, repeat=2):
        row = payer_of([Part(name=first.name), Part(name=second.name)])
        groups, by_part = row.pay(GROUPS)
        assert sum(by_part.values()) == pytest.approx(total(groups) - before), (first.name, second.name)
        assert _turns(groups) == _turns(
            payer_of([Part(name=second.name)])
            .pay(payer_of([Part(name=first.name)]).pay(GROUPS).groups)
            .groups
        )
        for turn in (turn for group in groups for one in group for turn in one.trajectory.turns):
            assert turn.reward == pytest.approx(sum(turn.rewards.values())), (first.name, second.name)


def test_order_counts_only_where_a_reward_says_that_it_looks_at_what_was_paid() -> None:
    """Those that do not declare to read rewards commute; of those that do, each changes with its place beside some other."""
    row = {entry.name: Part(name=entry.name) for entry in REWARDS}
    row["weighted"] = Part.model_validate(
        {"name": "weighted", "weights": {"outcome": 0.5}}
    )  # by default it changes nothing
    row["noisy"] = Part.model_validate({"name": "noisy", "rate": 1.0})
    row["search_r2"] = Part.model_validate({"name": "search_r2", "acts": ["look"]})  # nobody searches here
    apart = {
        (a, b): _turns(payer_of([row[a], row[b]]).pay(GROUPS).groups)
        for a, b in itertools.product(row, repeat=2)
    }
    reading = {entry.name for entry in REWARDS if "rewards" in entry.reads}
    for a, b in itertools.combinations(sorted(set(row) - reading), 2):
        assert apart[a, b] == apart[b, a], (a, b)
    for a in reading:
        assert any(apart[a, b] != apart[b, a] for b in row), f"{a} says that it reads rewards"


def test_a_reward_of_all_groups_sees_them_together_and_not_beside_forks() -> None:
    def above(groups: list[Group]) -> list[Group]:
        """Pays what an episode earned above the mean of the whole update."""
        mean = total(groups) / sum(map(len, groups))
        return [
            [replace_turns(one, lambda turns: paid_instead(turns, one.trajectory.total_reward - mean)) for one in group]  # noqa: B023
            for group in groups
        ]  # fmt: skip

    component("reward", "above", whole=True)(above)
    try:
        payer = payer_of([Part(name="above")])
        assert payer.whole
        paid = payer.pay([[episode([1.0])], [episode([0.0]), episode([0.5])]]).groups
        assert [one.trajectory.total_reward for group in paid for one in group] == [0.5, -0.5, 0.0]
        with pytest.raises(RecipeError, match=r"(?s)'above' looks at all groups, which the forks"):
            load_recipe("shop-quick", {"reward": "above", "rollout.strategy": "vine", "credit": "vine"})
    finally:
        registry._components.pop(("reward", "above"))


def test_scores_of_a_judge_are_paid_then_clipped() -> None:
    """Clip and Delta of what a judge says, by two rewards in a row."""
    told = [with_signals(episode([0, 0, 0, 0]), [{"principle": p} for p in (0.8, 0.3, 0.6, 0.9)])]
    paid = [{"name": "from_signal", "component": "progress"}, "clip_delta"]
    row = build_parts(load_recipe("shop-quick", {"judge": "gold", "reward": paid})).reward
    assert [turn.reward for turn in row(told)[0].trajectory.turns] == pytest.approx([0.2, -0.2, 0, 0])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reward": []}, "'reward'"),
        ({"reward": ["success", "succes"]}, "'succes'"),
        ({"judge": ["gold", "gold"], "reward": "from_signal"}, "before it writes the same"),
        ({"reward": {"name": "length_budget", "budget": 0.0}}, "no length to pay for"),
        ({"reward": {"name": "noisy", "rate": 1.5}}, "no probability"),
        ({"reward": {"name": "no_truth", "peak": 1.0}}, "no share"),
        (
            {"reward": {"name": "rlsp", "effort": -1, "unanswered": -0.5}},
            r"effort=-1, unanswered=-0\.5 cannot be below 0",
        ),
        ({"reward": {"name": "tool_gate", "malformed": -0.05}}, r"malformed=-0\.05 cannot be below 0"),
        (
            {
                "reward": ["gated", "gated"],
                "schedule": {"reward.gated.threshold": {"name": "linear", "to": 0.5}},
            },
            "2 times",
        ),
    ],
)
def test_a_list_that_cannot_pay_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        load_recipe("shop-quick", changes)


def test_a_schedule_names_one_of_several_rewards() -> None:
    schedule = {"reward.length_budget.budget": {"name": "decay", "every": 2, "low": 1.0}}
    recipe = load_recipe("shop-quick", {"reward": ["success", "length_budget"], "schedule": schedule})
    assert load_recipe(recipe) == recipe
