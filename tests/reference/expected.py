"""The sampler that expects the success of tasks from their words."""

from __future__ import annotations

import math
from typing import Any

from chosen import Make, of_pool, stored, told, updates, visited
from drawn import SETUP, fair, refused
from plain import agree, reference

from turnwise.envs.core import EndReason
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.sampler.core import SeenGroup

Known = dict[int, tuple[int, float, float]]


def text_of(index: int) -> str:
    one = SETUP.request(index)
    return f"{one.suite} {one.task.prompt}".lower()


def expected(index: int, weight: dict[str, float]) -> float:
    """A half, and the sum over the different words, by √ of their number."""
    words = {*text_of(index).split()}
    return 0.5 + math.fsum(weight.get(word, 0.0) for word in words) / len(words) ** 0.5


@reference(
    "sampler", "pcl", size=[10], candidates=[1, 2], target=[0.9, 0.0], rate=[1.0],
    also=[{"size": 10, "candidates": 1}, {"size": 16, "candidates": 2}, {"size": 10, "target": 0.8, "rate": 1.0},
          {"size": 23}, {"size": 36}],
)  # fmt: skip
def pcl(make: Make, size: int = 256, candidates: int = 4, target: float = 0.5, rate: float = 0.3) -> None:
    for option, wrong in (("candidates", 0), ("target", -0.1), ("target", 1.1), ("rate", 0.0), ("rate", 2.0)):
        assert f"{option}={wrong:g} " in refused(make, **{option: wrong})
    make(SETUP, target=1.0, rate=1.9, candidates=1)
    make(SETUP, target=0.0)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    assert sampler.figures() == {"loss": 0.0}
    if size <= 16:
        untaught(sampler, size)
    known: Known = {}
    weight: dict[str, float] = {}
    loss = 0.0
    for _, asked, seen in updates(sampler, 8):
        knows(sampler, weight, loss)
        visited(asked, known)
        assert {one.episodes for one in asked} == {4}
        chosen = [one.index for one in asked]
        if candidates * 6 >= size:
            far = sorted(abs(expected(i, weight) - target) for i in range(size))
            assert max(abs(expected(i, weight) - target) for i in chosen) <= far[5] + 1e-9
        told(known, seen)
        wrong = list[float]()
        for group in (group for group in seen if group.episodes):
            rate_of = sum(one.success for one in group.episodes) / len(group.episodes)
            gap = rate_of - expected(group.request.index, weight)
            words = {*text_of(group.request.index).split()}
            for word in words:
                weight[word] = weight.get(word, 0.0) + rate * gap / len(words) ** 0.5
            wrong.append(gap**2)
        loss = sum(wrong) / len(wrong)
    knows(sampler, weight, loss)
    stored(sampler, make)
    if size == 10:
        first = [sampler.plan(update, 0, 6)[0].index for update in range(200, 240)]
        assert max(map(first.count, first)) < 20, "their order says nothing"
    if size == 36:
        nearest = min(range(size), key=lambda i: abs(expected(i, weight) - target))
        drawn = [{one.index for one in sampler.plan(update, 0, 6)} for update in range(300, 700)]
        fair(sum(nearest in one for one in drawn), 400, 24 / 36)
    last = SeenGroup(SETUP.request(3), [episode([1.0], end=EndReason.SOLVED)], 0.0)
    sampler.seen(8, [last])
    agree(sampler.figures()["loss"], (1 - expected(3, weight)) ** 2, "loss of one")
    sampler.seen(9, ())
    assert sampler.figures()["loss"] == 0.0


def untaught(sampler: Any, size: int) -> None:
    """Nothing is known, and all are as likely."""
    drawn = [[one.index for one in sampler.plan(update, 0, 6)] for update in range(100, 140)]
    for index in range(size):
        fair(sum(index in one for one in drawn), 40, 6 / size)


def knows(sampler: Any, weight: dict[str, float], loss: float) -> None:
    """The weights are those of the words, and no others."""
    agree(sampler.figures()["loss"], loss, "loss")
    found = sampler.state().numbers["weights"]
    assert found.keys() == weight.keys()
    for word, x in weight.items():
        agree(found[word], x, word)
