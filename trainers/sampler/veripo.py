"""Passes over a pool, of each of which most of the tasks are left out that the pass before mastered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import (
    GroupRequest,
    SamplerSetup,
    SeenGroup,
    TaskMemory,
    memory_from,
    memory_state,
)
from turnwise.trainers.sampler.listed import histories_of
from turnwise.trainers.sampler.remembered import FromPool, require_option


def kept(mastered: int, drop: float) -> int:
    """The number of mastered tasks that the next pass plays."""
    return mastered - round(drop * mastered)


@component("sampler", "veripo")
class VerIPO(FromPool):
    """Plays a pool in passes; a task that was solved by all episodes of its last visit is left out of the next one with a chance of ``drop``.

    The second half of a loop of GRPO, a verifier with DPO, and GRPO (VerIPO), whose last stage drops 80 % of the tasks with a mean reward of
    1. A pass plays every task of its set once, in chance order; then the next set has all tasks that are not mastered and, drawn by
    chance, ``n − round(drop·n)`` of the n that are. The first pass of a phase plays the whole pool, unless ``run`` names the folder of a run
    that played its tasks: their last success there counts. Ours: passes go on like this; where a set has fewer tasks left than an update plays,
    the rest is drawn from the others. Its pairs are made by a judge in a phase of `loss: [dpo]`.

    Worked by hand from the book: of 100 mastered and 60 other tasks the next pass plays 80.

    >>> kept(100, 0.8) + 60, kept(3, 0.8)
    (80, 1)
    """

    over = (
        "the tasks of its pool, all of them at first, from then on without most of those that were mastered"
    )
    keep = 0.0

    def __init__(self, setup: SamplerSetup, *, size: int = 256, drop: float = 0.8, run: str = "") -> None:
        super().__init__(setup, size)
        require_option("veripo", 0 <= drop <= 1, f"drop {drop:g} is no share", "Give one from 0 to 1.")
        self.drop = drop
        self.left = [*range(size)]
        if run:
            past = histories_of(run)
            ids = {index: setup.request(index).task.id for index in self.left}
            self.memory = {i: TaskMemory(0, 1.0, past[ids[i]][-1], -1) for i in self.left if ids[i] in past}
            self.left = self.next_set(-1)

    def chosen(self, update: int) -> list[GroupRequest]:
        rng, most = derive_rng("veripo", self.setup.seed, update), self.setup.most
        drawn = rng.sample(self.left, min(most, len(self.left)))
        others = [index for index in range(self.size) if index not in {*drawn}]
        drawn += rng.sample(others, most - len(drawn))
        rng.shuffle(drawn)
        return [self.request(index) for index in drawn]

    def mastered(self) -> list[int]:
        """The tasks that all episodes of their last visit solved."""
        return [i for i in range(self.size) if self.known(i).rate == 1]

    def next_set(self, update: int) -> list[int]:
        """The tasks of the pass that begins after an update; all of them where it would have none."""
        mastered = self.mastered()
        drawn = derive_rng("veripo pass", self.setup.seed, update).sample(
            mastered, kept(len(mastered), self.drop)
        )
        return sorted({*range(self.size)} - {*mastered} | {*drawn}) or [*range(self.size)]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        super().seen(update, groups)
        played = {group.request.index for group in groups}
        self.left = [index for index in self.left if index not in played] or self.next_set(update)

    def figures(self) -> Mapping[str, float]:
        return {"mastered": float(len(self.mastered())), "to_play": float(len(self.left))}

    def state(self) -> PartState:
        return PartState({"memory": {**memory_state(self.memory).numbers}, "left": self.left})

    def restore(self, state: PartState) -> None:
        self.memory = memory_from(PartState(state.numbers.get("memory", {})))
        self.left = [*state.numbers.get("left", range(self.size))]
