"""The turns of an agent as a tree: every turn stands in it once, in its place."""

from __future__ import annotations

import random
from collections.abc import Iterator

from turnwise.agents.core import PREVIOUS, ROOT, Reply, TurnPlace, after
from turnwise.envs.messages import Message
from turnwise.trainers.view.branches import DEEPEST, TurnBranch, branches_of


def reply(parent: TurnPlace | int = PREVIOUS, caller: int | None = None) -> Reply:
    place = after(parent) if isinstance(parent, int) else parent
    return Reply(Message("assistant", "x"), parent=place, caller=caller)


def lines(branches: tuple[TurnBranch, ...], depth: int = 0) -> Iterator[str]:
    for branch in branches:
        yield f"{'  ' * depth}{branch.origin}: {' '.join(str(step.turn) for step in branch.steps)}"
        for step in branch.steps:
            yield from lines(step.branches, depth + 1)


def standing(
    branches: tuple[TurnBranch, ...], above: tuple[int, ...] = ()
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Each turn, and those that it stands after or under."""
    for branch in branches:
        before = above
        for step in branch.steps:
            yield step.turn, before
            before = (*before, step.turn)
            yield from standing(step.branches, before)


def test_one_line_is_one_branch():
    assert list(lines(branches_of([reply(), reply(), reply()]))) == [": 0 1 2"]
    assert branches_of([]) == ()


def test_children_stand_under_their_parents():
    replies = [
        reply(),
        reply(ROOT, caller=0),  # a sub-agent, of two turns
        reply(),
        reply(0),  # the first goes on
        reply(1),  # the sub-agent once more, from its first turn
        reply(ROOT),  # the history was compacted
        reply(3),
        reply(3),
    ]
    assert list(lines(branches_of(replies))) == [
        ": 0 3 6",
        "  called by 1: 1 2",
        "    after 2: 4",
        "  after 4: 7",
        "new prompt: 5",
    ]


def test_turns_that_a_damaged_log_does_not_hold_are_nobodys_origin():
    replies = [reply(7), reply(1), reply(-5), reply(ROOT, caller=9), reply(ROOT, caller=-2)]
    assert list(lines(branches_of(replies))) == [": 0", *(f"new prompt: {turn}" for turn in (1, 2, 3, 4))]


def test_every_turn_stands_there_once_and_after_what_it_extends(monkeypatch):
    monkeypatch.setattr("turnwise.trainers.view.branches.DEEPEST", 1000)
    for seed in range(200):
        rng = random.Random(seed)
        replies = [reply()]
        for index in range(1, rng.randint(2, 40)):
            earlier = rng.randrange(index)
            replies.append(rng.choice([reply(), reply(earlier), reply(ROOT), reply(ROOT, caller=earlier)]))
        found = list(standing(branches_of(replies)))
        places = dict(found)
        assert len(found) == len(replies)
        assert sorted(places) == list(range(len(replies)))
        for index, one in enumerate(replies):
            parent = one.parent.turn(index)
            origin = one.caller if parent is None else parent
            if origin is not None and origin >= 0:
                assert origin in places[index]


def test_a_thousand_branches_each_off_the_last_are_no_deeper_than_can_be_read():
    replies = [reply()]
    for index in range(1, 2000):  # each even turn goes on, each odd one branches off the one before it
        replies.append(reply(index - 1) if index % 2 else reply(max(0, index - 2)))
    found = list(lines(branches_of(replies)))
    assert max(len(line) - len(line.lstrip(" ")) for line in found) == 2 * DEEPEST
    assert sum(len(line.split(": ")[1].split()) for line in found) == 2000
