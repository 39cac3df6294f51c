"""The guide that looks for the share of a demonstration after which half succeed: rounds, fits and what it remembers."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy
from helped import Part, actions
from plain import agree, mean, reference, refuses
from rows_helped import Knowing, Rows, never, on_riddles

from turnwise.agents.core import Completion
from turnwise.trainers.core import PartState

T = 5


class Trying(Knowing):
    """Knows the next word by chance, a little more often than not."""

    def __init__(self, chance: float) -> None:
        super().__init__(never)
        self.chance = chance

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text = self.plain.renderer.tokenizer.decode(list(prompt_ids))  # pyright: ignore
        plan = self.plans[max(self.plans, key=lambda prompt: text.rfind(prompt))]  # pyright: ignore
        turn = text.count("<|assistant|>") - 1
        said = plan[turn] if turn < len(plan) and Random(seed).random() < self.chance else "?"
        ids = (*self.plain.renderer.tokenizer.encode(said, add_special_tokens=False), next(iter(stop_ids)))
        return Completion(ids, (-0.5,) * len(ids), stopped=True)


def is_least(points: list[tuple[float, float]], share: float, target: float) -> None:
    """No curve comes notably nearer to the points than the best one that has the target at this share."""
    p, a = (numpy.array(x)[:, None, None] for x in zip(*points, strict=True))
    slopes = numpy.linspace(0.1, 50, 60) if len(points) > 1 else numpy.array([8.0])
    least, here = numpy.inf, numpy.inf
    for b in numpy.arange(5 if len(points) > 2 else 1) / 10:
        k = slopes[None, :, None]
        middle = numpy.linspace(-1, 2, 301)[None, None, :]
        at = middle - (numpy.log((1 - b) / (target - b) - 1) / k if b < target else numpy.inf)
        reached = numpy.clip(at, 0, 1)[0]
        squares = ((b + (1 - b) / (1 + numpy.exp(-k * (p - middle))) - a) ** 2).sum(0)
        least = min(least, squares.min())
        near = numpy.broadcast_to(abs(reached - share) < 0.012, squares.shape)
        here = min(here, squares[near].min(initial=numpy.inf))
    assert here < least + 5e-3, (points, share, here, least)


@reference("guide", "seele", rounds=[1, 2, 9], target=[0.3], demonstrator=["null"])
def seele(make: Part, rounds: int = 4, target: float = 0.5, demonstrator: str = "gold") -> None:
    for wrong in ({"rounds": 0}, {"target": 0.0}, {"target": 1.0}):
        assert "rounds=" in refuses(lambda wrong=wrong: make(**wrong))
    guide, known = make(), dict[str, float]()
    assert guide.instead
    begun = set[int]()
    for visit in range(2):
        for seed, chance in ((0, 0.75), (1, 0.0))[: 1 + (visit == 1)]:
            size, lost = 12, 1 if visit == 1 else None
            rows = on_riddles(guide, Trying(chance), words=T, seed=seed, size=size, update=visit, lost=lost)
            if demonstrator == "null":
                assert not any(
                    turn.reply.source
                    for group in rows.found
                    for one in group
                    for turn in one.trajectory.turns
                )
                assert guide.state().numbers == {}
                continue
            for n in range(3):
                begun |= {*in_rounds(rows, n, known, rounds, target, judged=visit == 0)}
            assert guide.state().numbers.keys() == known.keys()
            for task, share in guide.state().numbers.items():
                agree(share, known[task], "the share of the next visit")
                known[task] = share
        other = make()
        other.restore(PartState(json.loads(json.dumps({**guide.state().numbers}))))
        assert other.state().numbers == guide.state().numbers
        guide = other
    if demonstrator == "gold" and rounds > 1:
        assert len(begun) > 1


def in_rounds(
    rows: Rows, n: int, known: dict[str, float], rounds: int, target: float, *, judged: bool
) -> list[int]:
    """Check the rounds of a group, each of which begins with one number of words for all its rows; say which."""
    group, plan = rows.found[n], rows.plans[n]
    dealt = [len(range(number, len(group), rounds)) for number in range(rounds)]
    share, place, begun = known.get(group[0].task.id, (T - 1) / T), 0, list[int]()
    points: dict[float, list[float]] = {}
    assert not {one.seed for one in group} & {one.seed for one in rows.plain[n]}
    for size in dealt:
        if not size:
            continue
        some = group[place : place + size]
        place += size
        (k,) = {sum(bool(turn.reply.source) for turn in one.trajectory.turns) for one in some}
        begun.append(k)
        assert k == round(share * T)
        for one in some:
            assert actions(one)[:k] == plan[:k]
            marks = [turn.reply.source for turn in one.trajectory.turns]
            assert marks == ["guide/seele"] * k + [""] * (len(marks) - k)
            assert {turn.weight for turn in one.trajectory.turns} == {1.0}
        counted = [float(one.success) for one in some if one.outcome.counts]
        if counted:
            points.setdefault(share, []).extend(counted)
        told = [(p, mean(found)) for p, found in points.items()]
        share = NEXT(told, target) if told else share
        if told and judged:
            is_least(told, share, target)
    known[group[0].task.id] = share
    return begun


def NEXT(points: list[tuple[float, float]], target: float) -> float:
    """The next share as the part's own arithmetic has it, which :func:`is_least` does not believe."""
    from turnwise.trainers.kit.item_response import fitted

    guesses = [n / 10 for n in range(5)] if len(points) > 2 else [0.0]
    return fitted(points, guesses).reaches(target)
