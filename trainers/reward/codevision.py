"""CodeVision: the tools that a task requires are paid for, needless calls cost."""

import statistics

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import (
    Turns,
    is_formed,
    paid_instead,
    paid_on_last,
    part_total,
    replace_turns,
    told_list,
    told_number,
)


@component("reward", "codevision", reads=("rewards",))
def codevision(
    group: Group,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    gamma: float = 0.5,
    exact: float = 0.1,
    format: float = 0.1,
    graded: str = "",
    spurious: tuple[str, ...] = (),
    answers: tuple[str, ...] = (),
) -> Group:
    """The outcome, and beside it required tools that were used, tools that helped the group, the exact set; calls beyond cost. Nothing else is paid.

    R = a + 0.1·f + α·m + β·h + 0.1·1[used = E] − γ·(max(0, calls − max(2, |E|)) + s), with a the outcome, f a well-formed episode, E the tools that
    the environment tells to be ``required`` in ``info["details"]``, as turnwise/FunctionCall-v0 does. m = used of E / |E|; the tool ``graded`` counts by as
    much as ``info["details"]["overlap"]`` of the last turn (the paper's crop by its IoU), and where it is required and m < 0.1, a is multiplied by m. h, for who used a
    tool: by how much the mean outcome with tools exceeds that without, where fewer than two were right without. s counts calls of
    ``spurious`` tools (orientation) where none of them is required. CodeVision (its released reward). Ours: tools of ``answers`` give
    the answer and are no tool use; right is a ≥ ½. Left out: its pay for emergent tools, of which the formula book has no form.

    Worked by hand: E = {rotate, crop} with an overlap of 0.6, first with a flip and four calls, then just these two.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_calls
    >>> told = [{"required": ["rotate", "crop"], "overlap": 0.6}]
    >>> group = [with_calls(episode([1], details=told), [[(name, {}) for name in names.split()]]) for names in ("rotate crop flip flip", "rotate crop")]
    >>> [round(one.trajectory.total_reward, 6) for one in codevision(group, graded="crop", spurious=("rotate", "flip"))]
    [0.9, 2.0]

    Raises:
        RecipeError: a weight is below 0.
    """
    not_below_zero("reward 'codevision'", alpha=alpha, beta=beta, gamma=gamma, exact=exact, format=format)

    def called(turns: Turns) -> list[str]:
        return [call.name for turn in turns for call in turn.action.tool_calls if call.name not in answers]

    scored = [
        (part_total(one.trajectory.turns, "outcome"), bool(called(one.trajectory.turns))) for one in group
    ]
    helped = _gain([a for a, used in scored if used], [a for a, used in scored if not used])

    def pay(episode: Episode, turns: Turns) -> Turns:
        if not turns:
            return turns
        calls, required = called(turns), {*told_list(turns, "required")}
        overlap = told_number(turns[-1], "overlap")
        worth = [overlap if name == graded else 1.0 for name in required.intersection(calls)]
        mandatory = sum(worth) / max(1, len(required))
        a = part_total(turns, "outcome") * (mandatory if graded in required and mandatory < 0.1 else 1.0)
        beyond = max(0, len(calls) - max(2, len(required)))
        if required.isdisjoint(spurious):
            beyond += sum(name in spurious for name in calls)
        use = (
            alpha * mandatory
            + beta * helped * bool(calls)
            + exact * (bool(required) and required == {*calls})
            - gamma * beyond
        )
        paid = paid_on_last(paid_instead(turns, a), "tool_use", use)
        return paid_on_last(paid, "format", format * is_formed(episode, turns))

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]


def _gain(tooled: list[float], bare: list[float]) -> float:
    """The rise of the mean outcome with tools; 0 where two or more were right without, or nobody is to compare with."""
    if not tooled or not bare or sum(a >= 0.5 for a in bare) > 1:
        return 0.0
    return max(0.0, statistics.fmean(tooled) - statistics.fmean(bare))
