"""Requirements for guides, on groups that an untrained model played in a small shop."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from turnwise.agents.core import Turn
from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART, variants
from turnwise.trainers.core import Group, PartState, Stateful
from turnwise.trainers.guide.toy import played_around, played_with
from turnwise.trainers.learn.collate import collate

SUITE, GROUPS, SIZE = "shop/quick", 2, 2


def gives_the_groups_back(entry: Component) -> str:
    """As many groups as it was given, of the same tasks and no larger or smaller, that a learner can read."""
    helped = 0
    for said, guide in made_variants(entry):
        plain, guided = played_with(guide, SUITE, groups=GROUPS, size=SIZE)
        require(
            [_tasks(g) for g in guided] == [_tasks(g) for g in plain], f"Groups are not as before ({said})."
        )
        collate([[e for e in group if e.outcome.counts] for group in guided])
        helped += sum(
            a != b for old, new in zip(plain, guided, strict=True) for a, b in zip(old, new, strict=True)
        )
    return f"{helped} of {GROUPS * SIZE} episodes were played with help"


def says_who_chose(entry: Component) -> None:
    """A turn whose tokens nobody sampled, or that was sampled under another prompt, carries guide/NAME."""
    for said, guide in made_variants(entry):
        _, guided = played_with(guide, SUITE, groups=GROUPS, size=SIZE)
        for turn in _turns(guided):
            foreign = not turn.reply.logprobs or turn.reply.scored_ids is not None
            require(
                not foreign or turn.reply.source == f"guide/{entry.name}",
                f"A turn does not say who chose it ({said}).",
            )


def goes_by_seed_and_update(entry: Component) -> None:
    """Equal groups from equal seeds."""
    for said, build in variants(entry):
        one, other = (
            [*_turns(played_with(_of(entry, build), SUITE, groups=GROUPS, size=SIZE)[1])] for _ in range(2)
        )
        require(
            [_said(t) for t in one] == [_said(t) for t in other], f"Asked twice, it does otherwise ({said})."
        )


def made_variants(entry: Component) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A guide with each of its choices; an object where it remembers."""
    yield from ((said, _of(entry, build)) for said, build in variants(entry))


def _of(entry: Component, build: Callable[..., Any]) -> Callable[..., Any]:
    return build() if inspect.isclass(entry.target) else build


def leaves_nothing_behind(entry: Component) -> None:
    """After it has helped, the policy reads and says what it would have, so that an evaluation has no help in it."""
    for said, guide in made_variants(entry):
        before, _, after = played_around(guide, SUITE, groups=GROUPS, size=SIZE)
        require(
            [_said(turn) for turn in _turns(before)] == [_said(turn) for turn in _turns(after)],
            f"The policy reads something else afterwards ({said}).",
        )


def goes_on_from_its_state(entry: Component) -> None:
    """If it remembers: one that is restored from the state of another does what that one does next, and has its state."""
    if not inspect.isclass(entry.target):
        return
    for said, build in variants(entry):
        one, other = build(), build()
        require(isinstance(one, Stateful), f"It is a class and has no state and restore ({said}).")
        played_with(one, SUITE, groups=GROUPS, size=SIZE)
        state = one.state()
        require(
            not state.tensors,
            f"Its state has tensors, which a run that is learned again cannot have ({said}).",
        )
        other.restore(PartState(json.loads(json.dumps({**state.numbers}))))
        again = [played_with(guide, SUITE, groups=GROUPS, size=SIZE, seed=1)[1] for guide in (one, other)]
        require(
            [_said(turn) for turn in _turns(again[0])] == [_said(turn) for turn in _turns(again[1])]
            and one.state() == other.state(),
            f"Restored, it goes on otherwise ({said}).",
        )


def _tasks(group: Group) -> list[str]:
    return [episode.task.id for episode in group]


def _said(turn: Turn) -> tuple[object, ...]:
    """Return what was read and said, without log-probabilities, which round by what else is in a batch."""
    reply = turn.reply
    return reply.prompt_ids, reply.action_ids, reply.scored_ids, reply.source


def _turns(groups: Sequence[Group]) -> list[Turn]:
    return [turn for group in groups for episode in group for turn in episode.trajectory.turns]


REQUIREMENTS: dict[str, Requirements] = {
    "guide": {
        **EVERY_PART,
        "gives the groups back": gives_the_groups_back,
        "says who chose": says_who_chose,
        "goes by seed and update": goes_by_seed_and_update,
        "leaves nothing behind": leaves_nothing_behind,
        "goes on from its state": goes_on_from_its_state,
    }
}
