"""Rubric anchors: graded criteria that saturate, that count together, or that forbid."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, paid_instead, part_total, replace_turns

BOTH = " & "
"""Stands between the names of two criteria that count together."""


@component("reward", "rubicon", reads=("rewards",))
def rubicon(
    group: Group,
    *,
    weights: dict[str, float] | None = None,
    caps: dict[str, float] | None = None,
    vetoes: dict[str, float] | None = None,
    together: dict[str, float] | None = None,
) -> Group:
    """Σ w_k·min(s_k, c_k) + Σ w_ij·min(s_i, s_j), between 0 and 1, on the last turn; 0 where an s_k is below its veto.

    s_k is what an episode was paid as component k, such as a judge's signal that `from_signal` paid; what is named nowhere counts nothing, and
    nothing else is paid. Without weights and pairs the outcome counts alone. A cap ends what one criterion can bring (saturation), a pair such as `"clear & right": 0.5` pays for both at once,
    and a veto forbids: a hack that was found becomes a criterion with a veto. Rubicon (Rubric Anchors) says this in words; the
    formula is the book's. Left out: its filter of tasks beforehand, and how criteria are found. Its two stages are `phases`.

    Worked by hand: weights .5, .3 and .2 of .9, .6 and 1, each capped at .8; with a veto of .7 on the second, nothing.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [episode([0.9], parts={"clear": [0.6], "short": [1.0]})]
    >>> options = {"weights": {"outcome": 0.5, "clear": 0.3, "short": 0.2}, "caps": {"outcome": 0.8, "clear": 0.8, "short": 0.8}}
    >>> [round(rubicon(group, **options, vetoes=veto)[0].trajectory.total_reward, 4) for veto in ({}, {"clear": 0.7})]
    [0.74, 0.0]
    >>> round(rubicon(group, together={"clear & short": 0.5})[0].trajectory.total_reward, 4)
    0.3

    Raises:
        RecipeError: a pair is not two names with `&` between them.
    """
    pairs = {tuple(names.split(BOTH)): weight for names, weight in (together or {}).items()}
    for names in pairs:
        if len(names) != 2:
            raise RecipeError(
                f"reward 'rubicon': together={BOTH.join(names)!r} is no pair.",
                "Write the names of two components with ` & ` between them.",
            )

    if weights is None and not pairs:
        weights = {"outcome": 1.0}

    def grade(turns: Turns) -> float:
        if any(part_total(turns, name) < least for name, least in (vetoes or {}).items()):
            return 0.0
        alone = sum(
            weight * min(part_total(turns, name), (caps or {}).get(name, float("inf")))
            for name, weight in (weights or {}).items()
        )
        both = sum(weight * min(part_total(turns, name) for name in names) for names, weight in pairs.items())
        return min(max(alone + both, 0.0), 1.0)

    return [replace_turns(one, lambda turns: paid_instead(turns, grade(turns))) for one in group]
