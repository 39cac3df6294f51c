"""Lists that an answer rests on are paid by how they agree with the reference's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import (
    Turns,
    has_answer,
    paid_instead,
    paid_on_last,
    part_total,
    replace_turns,
    told_list,
)
from turnwise.trainers.kit.sets import matched, overlap


def _subset(found: Sequence[str], gold: Sequence[str]) -> float:
    return len({*found}) / max(1, len({*gold})) if {*found} <= {*gold} else 0.0


def _matched(found: Sequence[str], gold: Sequence[str]) -> float:
    return sum(matched(found, gold, 0.5)) / max(1, len(found), len(gold))


def _claims(found: Sequence[str], gold: Sequence[str], support: Sequence[str]) -> float:
    claims, wanted = {*found}, {*gold}
    factual, relevant = (len(claims.intersection(x)) / max(1, len(claims)) for x in (support, wanted))
    return (factual + len(claims & wanted) / max(1, len(wanted)) + relevant) / 3


FORMS: Mapping[str, Callable[[Sequence[str], Sequence[str], Sequence[str]], float]] = {
    "tw_grpo": lambda found, gold, _: _subset(found, gold),
    "visual_rft": lambda found, gold, _: _matched(found, gold),
    "chestx": _claims,
    "overlap": lambda found, gold, _: overlap(found, gold),
}


@component("reward", "sets", reads=("rewards",))
def sets(
    group: Group,
    *,
    form: Literal["tw_grpo", "visual_rft", "chestx", "overlap"] = "tw_grpo",
    found: str = "cited",
    gold: str = "evidence",
    support: str = "read",
    outcome: float = 1.0,
    format: float = 0.0,
) -> Group:
    """The last turn earns how a list agrees with the reference's, plus ``outcome`` times what the environment paid for success.

    Both lists are told by the environment in ``info["details"]``, by default the passages cited and the gold ones of turnwise/Search-v0.
    ``tw_grpo`` (soft answers of several choices): |found|/|gold| if nothing is found that is not gold, else 0. ``visual_rft``: found items in
    their order each take the open gold item that is likest, if liker than ½, and the sum of likenesses is divided by the larger number
    of items, so that further ones cost; likeness is the share of words in both, where the paper has boxes and their overlap. ``chestx``
    (RadRScore): the mean of the shares of found items that are in ``support``, of gold items that are found, of found items that are gold. ``overlap``: |∩| / |∪|.
    ``format`` is paid where there is an answer. Visual-RFT's reward of told confidence is left out. Ours: without gold nothing is earned by the papers' forms.

    Worked by hand: gold A, B, C, then with a wrong one; likenesses of 0.8, 0.6 and 0 with two gold items and three found, 1.4 / 3.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> def of(found: list[str], gold: list[str], form: str = "tw_grpo") -> float:
    ...     return round(sets([episode([0], details=[{"cited": found, "evidence": gold}])], form=form)[0].trajectory.total_reward, 4)
    >>> of(["A", "B"], ["A", "B", "C"]), of(["A", "D"], ["A", "B", "C"])
    (0.6667, 0.0)
    >>> of(["a b c", "d e f g h", "z"], ["a b", "d e f x y"], "visual_rft"), of(["1", "2", "3"], ["2", "3", "4"], "overlap")
    (0.4667, 0.5)
    >>> told = {"cited": [*range(20)], "read": [*range(16)], "evidence": [*range(5, 35)]}  # shares of 0.8, 0.5 and 0.75
    >>> round(sets([episode([0], details=[told])], form="chestx")[0].trajectory.total_reward, 4)
    0.6833

    Raises:
        RecipeError: a weight is below 0.
    """
    not_below_zero("reward 'sets'", outcome=outcome, format=format)

    def pay(episode: Episode, turns: Turns) -> Turns:
        agreed = FORMS[form](*(told_list(turns, name) for name in (found, gold, support)))
        paid = paid_on_last(paid_instead(turns, outcome * part_total(turns, "outcome")), "sets", agreed)
        return paid_on_last(paid, "format", format * has_answer(episode, turns))

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
