"""R3: what reasoning does to each token of the right answer, with later tokens held certain, lengths compared and ranks told."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from statistics import pstdev

from measured import Part, logits, measured, near, of_turns
from own_words import found_likely, thinking, thoughts_of
from plain import mean, reference, refuses

from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.trainers.learn.collate import collate

MEMBERS = {0: (0, 1, 2), 1: (0, 1, 2), 2: (0, 1, 2), 3: (3, 4), 4: (3, 4)}
Told = Mapping[int, list[float]]


def sigma(told: Told, b: int) -> list[float]:
    return [pstdev(at) for at in zip(*(told[c] for c in MEMBERS[b]), strict=True)]


def certain(logps: Sequence[float], s: Sequence[float], gamma: float) -> list[float]:
    """The book: p̃ = p + (1 − p)(1 − e^(−γd)); d counts from the token that depends on the reasoning most."""
    first = s.index(max(s))
    p = [math.exp(x) for x in logps]
    return [math.log(x + (1 - x) * (1 - math.exp(-gamma * max(0, j - first)))) for j, x in enumerate(p)]


@functools.cache
def lengths() -> dict[int, tuple[int, int]]:
    """By episode: tokens of the right answer, and of what was said after the thoughts."""
    _, groups, see = thinking()
    found: dict[int, tuple[int, int]] = {}
    for b, (group, one) in enumerate((some, one) for some in groups for one in some):
        shown = run_episodes([Request(group[0].task, group[0].seed)], scripted("gold"))[0]
        right = see.renderer.reply_ids(shown.trajectory.turns[-1].action)
        if one.trajectory.turns:
            said = one.trajectory.turns[-1].reply.action_ids
            found[b] = len(right), len(said) - thoughts_of(see, said)
    return found


@functools.cache
def ranks(room: int) -> dict[int, list[int]]:
    """By episode: how many tokens of the vocabulary are likelier than each of the right answer's, and one more."""
    _, groups, see = thinking()
    found: dict[int, list[int]] = {}
    for b, (group, one) in enumerate((some, one) for some in groups for one in some):
        turns = one.trajectory.turns
        if not turns:
            continue
        shown = run_episodes([Request(group[0].task, group[0].seed)], scripted("gold"))[0]
        answer = see.renderer.reply_ids(shown.trajectory.turns[-1].action)
        text = [x for turn in turns[:-1] for x in (*turn.reply.prompt_ids, *turn.reply.action_ids)]
        ids = turns[-1].reply.action_ids
        text += [*turns[-1].reply.prompt_ids, *ids[: thoughts_of(see, ids)]]
        before = text[-max(1, room - len(answer)) :]
        whole = [*before, *answer][:room]
        known = logits(see.learner.model, whole)
        found[b] = [
            1 + int((known[t - 1] > known[t - 1, whole[t]]).sum()) for t in range(len(before), len(whole))
        ]
    return found


@reference(
    "signal",
    "r3",
    propagate=[0.5, -0.5],
    length=[0.5, 3.0, -1.0],
    worst=[0.5, 1.0, 0.0, 1.5],
    also=[{"propagate": 0.2, "length": 0.3}],
)
def r3(signal: Part, propagate: float = 0.0, length: float = 0.0, worst: float = 0.1) -> None:
    _, groups, see = thinking()
    if propagate < 0 or length < 0 or not 0 < worst <= 1:
        refuses(lambda: measured(signal, see, collate(groups), groups))
        return

    def value(told: Told, plain: Told, b: int) -> float:
        s = sigma(told, b)
        if not sum(s):
            return 0.0
        ours, bare = certain(told[b], s, propagate), certain(plain[b], s, propagate)
        gain = sum(w * (x - y) for w, x, y in zip(s, ours, bare, strict=True)) / sum(s)
        right, said = lengths()[b]
        return gain * max(0.0, 1 - length * abs(right - said) / right)

    batch = collate(groups)
    turns = batch.turns.length_B.tolist()
    asks = frozenset({"r3_rank"}) if (propagate, length) == (0.0, 0.0) else frozenset[str]()
    for room in (see.context, 90, 4) if asks else (90,):
        found = measured(signal, dataclasses.replace(see, context=room, needs=asks), batch, groups).turn
        told, plain = (found_likely(see.learner.model, room, bare=bare) for bare in (False, True))
        wanted = {
            "r3": {b: value(told, plain, b) for b in told},
            "r3_spread": {b: max(sigma(told, b)) for b in told},
        }
        if asks:
            least = {
                b: mean(sorted(each, reverse=True)[: max(1, math.ceil(worst * len(each) - 1e-9))])
                for b, each in ranks(room).items()
            }
            wanted["r3_rank"] = {b: min(least[c] for c in MEMBERS[b]) for b in least}
        assert {*found} == {*wanted}
        for name, of in wanted.items():
            expected = [[of.get(b, 0.0)] * int(n) for b, n in enumerate(turns)]
            near(of_turns(found[name], batch), expected, f"{name} in {room}", 1e-5)
    three = [*groups, [groups[0][0]]]
    alone = measured(signal, see, collate(three), three).turn["r3"]
    assert alone[0].any() or length == 3.0  # no answer is of nearly the right length
    assert not alone[-1].any(), "nothing depends on the reasoning of one who is alone"
    nothing = [[groups[1][2]]]
    assert measured(signal, see, collate(nothing), nothing).turn["r3"].shape == (1, 0)
