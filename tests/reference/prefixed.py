"""The guide that begins, or ends, what the policy plays: who played which turns, by chance or by update, and what is learned."""

from __future__ import annotations

from itertools import product
from math import sqrt

from helped import Part, actions, guided
from plain import reference, refuses
from rows_helped import Knowing, never, on_riddles

from turnwise.trainers.core import Group


@reference(
    "guide", "prefix", demonstrator=["null"], share=[0.3], length=[0.1, 0.6, 1.0], where=["all"],
    method=["aggrevate", "lols", "d2lols"], mix=[0.3], until=[3], each=[True],
    also=[{"where": "all", "length": 1.0}, {"method": "lols", "mix": 0.3}, {"method": "d2lols", "until": 3}, {"each": True, "share": 0.3}],
)  # fmt: skip
def prefix(
    guide: Part,
    demonstrator: str = "gold",
    share: float = 1.0,
    length: float | str = "random",
    where: str = "unsolved",
    method: str = "ppo++",
    mix: float = 0.8,
    until: int = 20,
    each: bool = False,
) -> None:
    if method != "ppo++" or each:
        if demonstrator == "null":
            untouched = guided(guide, "shop/quick")
            assert untouched.found == untouched.plain
        else:
            rolls_in(guide, method, mix, until, share, each=each)
        return
    for option, wrong in product(("share", "length", "mix"), (0.0, 1.5)):
        refuses(lambda option=option, wrong=wrong: guided(guide, "calc/bare", groups=3, **{option: wrong}))
    of_two_turns(guide, demonstrator, share, where)
    short = guided(guide, "calc/bare")
    assert short.found == short.plain, "there is nothing left to play"
    helped, asked, lengths = 0, 0, set[int]()
    for seed in range(1 if demonstrator != "gold" else 8 if share < 1 else 5 if length == "random" else 1):
        plain, found, plans = guided(guide, "shop/quick", seed=seed)
        for number, (before, after, plan) in enumerate(zip(plain, found, plans, strict=True)):
            might = (where == "all" or number in (0, 3)) and demonstrator == "gold"
            asked += might
            if not might or after == before:
                assert after == before
                assert not might or share < 1
                continue
            helped += 1
            assert len(after) == len(before)
            lengths.add(is_prefixed(after, before, plan))
    if demonstrator == "gold":
        assert abs(helped - share * asked) <= 4.5 * sqrt(asked * share * (1 - share))
        whole = {max(1, min(3, round(4 * length)))} if isinstance(length, float) else {1, 2, 3}
        assert lengths == whole


def of_two_turns(guide: Part, demonstrator: str, share: float, where: str) -> None:
    """The demonstrator plays the first, the policy the second."""
    plain, found, *_ = rows = on_riddles(guide, Knowing(never), words=2)
    for n, (before, after) in enumerate(zip(plain, found, strict=True)):
        if demonstrator == "null" or (n == 1 and where == "unsolved") or (share < 1 and after == before):
            assert after == before
        else:
            assert is_prefixed(after, before, rows.plans[n]) == 1


def rolls_in(guide: Part, method: str, mix: float, until: int, share: float, *, each: bool) -> None:
    """Who begins, by update: gold's turns are read, wherever they stand, and the policy's are learned."""
    begun: list[bool] = []
    helped = asked = 0
    lengths: list[set[int]] = []
    updates = [0, 1, until - 1, until, until + 1] if method == "d2lols" else [*range(12)]
    for update in updates:
        plain, found, plans = guided(guide, "shop/quick", update=update)
        for number, (before, after, plan) in enumerate(zip(plain, found, plans, strict=True)):
            if number in (1, 2):
                assert after == before
                continue
            lengths.append(set())
            for one, other in zip(after, before, strict=True):
                asked += 1
                if one == other:
                    assert each
                    continue
                helped += 1
                turns = one.trajectory.turns
                marks = [bool(turn.reply.source) for turn in turns]
                assert marks in (sorted(marks), sorted(marks, reverse=True))
                assert 0 < sum(marks) < len(marks)
                assert [turn.weight for turn in turns] == [0.0 if mark else 1.0 for mark in marks]
                begun.append(marks[0])
                k = sum(marks) if marks[0] else len(marks) - sum(marks)
                assert 1 <= k <= len(plan) - 1
                if marks[0]:
                    assert actions(one)[:k] == plan[:k]
                lengths[-1].add(k)
    expected = {"aggrevate": 0.0, "ppo++": 1.0, "lols": mix, "d2lols": 2 / 5}[method]
    if method == "lols":
        assert (
            abs(sum(begun[::4]) - expected * len(updates))
            <= 4.5 * sqrt(len(updates) * mix * (1 - mix)) + 1e-9
        )
        assert 0 < sum(begun) < len(begun)
    else:
        assert sum(begun) == expected * len(begun)
    assert abs(helped - (share if each else 1) * asked) <= 4.5 * sqrt(asked * share * (1 - share))
    assert set().union(*lengths) == {1, 2, 3}
    assert (max(map(len, lengths)) > 1) == each, "a group has one first state, unless each row has its own"


def is_prefixed(after: Group, before: Group, plan: list[str]) -> int:
    """Of all members the same first turns are the demonstrator's, which are only read; says how many."""
    (k,) = {sum(bool(turn.reply.source) for turn in one.trajectory.turns) for one in after}
    for one, other in zip(after, before, strict=True):
        assert one.task.id == other.task.id
        assert actions(one)[:k] == plan[:k]
        for n, turn in enumerate(one.trajectory.turns):
            assert (turn.reply.source, turn.weight) == (("guide/prefix", 0.0) if n < k else ("", 1.0))
        assert len(one.trajectory.turns) > k
    return k
