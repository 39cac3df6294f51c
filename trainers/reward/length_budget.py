"""Train Long, Think Short: the most is paid for just the budget of tokens or turns, which a schedule makes smaller."""

from typing import Literal

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import (
    Turns,
    has_answer,
    paid_instead,
    paid_on_last,
    replace_turns,
    sampled_tokens,
)


@component("reward", "length_budget", paper="2508.08940", reads=("rewards",))
def length_budget(
    group: Group,
    *,
    budget: float = 256.0,
    correct: float = 0.3,
    length: float = 0.6,
    format: float = 0.1,
    unit: Literal["tokens", "turns"] = "tokens",
    solved: bool = False,
) -> Group:
    """Success, length and format are weighed, the length by a triangle with its top at the budget; nothing else is paid.

    R = λ_c·1[solved] + λ_l·Δ(ℓ/L) + λ_f·1[there is an answer], with Δ(x) = x for x ≤ 1, 2 − x up to 2, and 0 beyond. ℓ are the tokens of
    all messages, or turns. Train Long, Think Short (Hammoud et al. 2025): L falls in steps, L(t) = max(1, B·γ^⌊t/T⌋), which is
    `schedule: {reward.length_budget.budget: {name: decay, factor: 0.7, every: 100, low: 1}}`. Failures are paid for their length too, as in the
    paper; ``solved`` changes that. Left out: the budget is not said in the prompt.

    Worked by hand: 96 tokens of 128 in a solved, well-formed episode, 0.3 + 0.6·0.75 + 0.1, then the accuracy-biased weights, then wrong.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode, with_tokens
    >>> right, wrong = (with_tokens(episode([0], end=end), [96]) for end in (EndReason.SOLVED, EndReason.FAILED))
    >>> [round(one.trajectory.total_reward, 6) for one in length_budget([right, wrong], budget=128.0)]
    [0.85, 0.55]
    >>> round(length_budget([right], budget=128.0, correct=0.6, length=0.3)[0].trajectory.total_reward, 6)
    0.925
    >>> lengths = [with_tokens(episode([0]), [n]) for n in (0, 64, 128, 192, 256, 300)]
    >>> [one.trajectory.total_reward for one in length_budget(lengths, budget=128.0, length=1.0, format=0.0)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]

    Raises:
        RecipeError: the budget is not above 0, or a weight is below it.
    """
    not_below_zero("reward 'length_budget'", correct=correct, length=length, format=format)
    if budget <= 0:
        raise RecipeError(
            f"reward 'length_budget': budget={budget:g} leaves no length to pay for.", "Set it above 0."
        )

    def pay(episode: Episode, turns: Turns) -> Turns:
        x = (sampled_tokens(turns) if unit == "tokens" else len(turns)) / budget
        peak = max(0.0, min(x, 2 - x)) if episode.success or not solved else 0.0
        formed = format * has_answer(episode, turns)
        paid = paid_on_last(paid_instead(turns, correct * episode.success), "length", length * peak)
        return paid_on_last(paid, "format", formed)

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
