"""A control that knows no right answers: format and length alone are paid."""

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import (
    Turns,
    has_answer,
    paid_instead,
    paid_on_last,
    replace_turns,
    sampled_tokens,
)


@component("reward", "no_truth", paper="2505.19439", reads=("rewards",))
def no_truth(group: Group, *, most: float = 3072.0, peak: float = 0.5) -> Group:
    """The last turn is paid for its format and for the episode's length, whatever the outcome: a gain by it is no skill.

    With x = n / ``most`` for n tokens of all messages and p = ``peak``, f = 1 − (1 − x/p)² up to p and 1 − 2·((x − p)/(1 − p))² beyond.
    R = ½·(F₁ + F₂) + f where the answer can be read, else ½·(F₁ + F₂) + min(0, f). Format and length as a surrogate (Xin et al. 2025). Ours: F₁ = 1
    where the environment could read every act, F₂ = 1 where there is an answer.

    Worked by hand: 0.1, 0.25, 0.5, 0.75 and all of the length, in well-formed episodes that have 1 for their format.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_tokens
    >>> group = [with_tokens(episode([0]), [n]) for n in (100, 250, 500, 750, 1000)]
    >>> [round(one.trajectory.total_reward - 1, 6) for one in no_truth(group, most=1000.0)]
    [0.36, 0.75, 1.0, 0.5, -1.0]

    Raises:
        RecipeError: a length or a share cannot be one.
    """
    if most <= 0 or not 0 < peak < 1:
        raise RecipeError(
            f"reward 'no_truth': most={most:g}, peak={peak:g} are no length and no share of it.",
            "Set most above 0, and peak between 0 and 1.",
        )

    def pay(episode: Episode, turns: Turns) -> Turns:
        x = sampled_tokens(turns) / most
        f = 1 - (1 - x / peak) ** 2 if x <= peak else 1 - 2 * ((x - peak) / (1 - peak)) ** 2
        answered, readable = has_answer(episode, turns), not any(turn.bad_action for turn in turns)
        paid = paid_on_last(paid_instead(turns, 0.0), "length", f if answered else min(0.0, f))
        return paid_on_last(paid, "format", 0.5 * (answered + readable))

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
