"""R3: what reasoning does to each token of the right answer, with later tokens held certain, lengths compared and ranks told."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from statistics import pstdev
from typing import Any

from measured import Part, logits, measured, near, of_turns
from own_words import found_likely, is_of_answers, thinking, thoughts_of
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

    model = see.learner.model
    is_of_answers(signal, "r3", model, value)
    is_of_answers(signal, "r3_spread", model, lambda told, _, b: max(sigma(told, b)))
    three = [*groups, [groups[0][0]]]
    found = measured(signal, see, collate(three), three).turn["r3"]
    assert found[0].any()
    assert not found[-1].any(), "nothing depends on the reasoning of one who is alone"
    assert "r3_rank" not in measured(signal, see, collate(groups), groups).turn
    for room in (see.context, 90):
        asked = dataclasses.replace(see, context=room, needs=frozenset({"r3_rank"}))
        batch = collate(groups)
        told = ranks(room)
        least = {
            b: mean(sorted(each, reverse=True)[: max(1, math.ceil(worst * len(each) - 1e-9))])
            for b, each in told.items()
        }
        best = {b: min(least[c] for c in MEMBERS[b]) for b in least}
        wanted: Any = [[best.get(b, 0.0)] * int(n) for b, n in enumerate(batch.turns.length_B.tolist())]
        near(of_turns(measured(signal, asked, batch, groups).turn["r3_rank"], batch), wanted, "r3_rank", 1e-9)
    assert found_likely(model, see.context)
