"""Guides that choose among instructions: what each episode is told, what that earned, and who goes on."""

from __future__ import annotations

import json
from math import exp
from random import Random
from typing import Any

from helped import Part
from plain import reference, refuses
from rows_helped import Knowing, learned_under, on_riddles, sampled_under, source_of

from turnwise.agents.core import Episode
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.kit.asking import transcript

FOUR = (
    "Think about what you know before you act.",
    "Act at once, and look at what comes back.",
    "Make a plan first, and keep to it.",
    "Check what you did before you end.",
)
TOLD = "Guess.\n\n"


def told_to(one: Episode, engine: Knowing) -> str:
    return sampled_under(one, engine).partition(TOLD)[2].partition("<|")[0]


@reference(
    "guide", "inspo", instructions=[("a b", "c"), ("only",), (), ("a", "a"), ("a", "")], temperature=[0.5, 0.0], every=[2, 1, 0],
    writer=["self", "scripted:echo"], failures=[1, 0],
    also=[{"writer": "self", "every": 2}, {"writer": "self", "every": 1, "instructions": ("a", "b", "c", "d", "e"), "temperature": 50.0}],
)  # fmt: skip
def inspo(
    make: Part, instructions: tuple[str, ...] = FOUR, temperature: float = 0.1, every: int = 20, writer: str = "", failures: int = 4
) -> None:  # fmt: skip
    if (
        not instructions
        or len(set(instructions)) < len(instructions)
        or "" in instructions
        or min(temperature, every, failures) <= 0
    ):
        assert "guide 'inspo'" in refuses(make)
        return
    guide, rng = make(), Random(1)
    assert guide.instead
    people: list[tuple[str, float, int]] = [(text, 0.0, 0) for text in instructions]
    failed: list[tuple[str, str]] = []
    turned, sizes = 0, list[int]()
    for number, update in enumerate((0, 1, 2, 3, every, every + 1, 2 * every, 2 * every + 1, 5 * every)):
        engine = Knowing(
            lambda hint, plan: rng.random() < 0.4,
            rng.choice([0, 1]),
            answer=rng.choice(["be kind", f"new {number}", " "]),
            mark=TOLD,
        )
        if update >= turned + every:
            turned = update
            total, times = sum(x[1] for x in people), sum(x[2] for x in people)
            weight = {text: earned / n if n else total / max(1, times) for text, earned, n in people}
            order = sorted(people, key=lambda x: (0 if x[2] else 1, -weight[x[0]]))
            stay = order[: -(-len(order) // 2)]
            gone = len(order) - len(stay)
            wanted = [
                f"Instruction:\n{stay[i % len(stay)][0]}\n\n" + "\n\n".join(said for _, said in failed) for i in range(gone)
            ] if writer and failed else []  # fmt: skip
            people = stay
            answer = engine.answer.strip()
            if writer == "self" and wanted and answer and answer not in [x[0] for x in stay]:
                people = [*stay, (answer, 0.0, 0)]
        else:
            wanted = []
        rows = on_riddles(
            guide, engine, words="paid" if number % 3 == 2 else 2, update=update, seed=number, size=5, lost=0
        )
        assert len({*engine.questions}) == (len({*wanted}) if writer == "self" else 0)
        for question in wanted if writer == "self" else []:
            assert any(question in asked for asked in engine.questions)
        now: Any = guide.state().numbers
        if writer == "scripted:echo" and wanted:  # whatever it says
            new = [str(text) for text, _, _ in now["earned"] if text not in [x[0] for x in people]]
            assert len(new) <= gone
            people = [*people, *((text, 0.0, 0) for text in new)]
        total, times = sum(x[1] for x in people), sum(x[2] for x in people)
        scaled = [exp((earned / n if n else total / max(1, times)) / temperature) for _, earned, n in people]
        chance = [x / sum(scaled) for x in scaled]
        sums = {text: (earned, n) for text, earned, n in people}
        for n, (old, new) in enumerate(zip(rows.plain, rows.found, strict=True)):
            drawn = derive_rng("guide", number, update, n).choices([x[0] for x in people], chance, k=len(old))
            assert [told_to(one, engine) for one in new] == drawn
            assert [one.task for one in new] == [one.task for one in old]
            assert not {one.seed for one in new} & {one.seed for one in old}
            for one, text in zip(new, drawn, strict=True):
                assert source_of(one) == "guide/inspo"
                assert learned_under(one, engine) == sampled_under(one, engine)
                if one.outcome.counts:
                    earned, count = sums[text]
                    sums[text] = earned + sum(t.reward for t in one.trajectory.turns), count + 1
                    if not one.success:
                        failed = [*failed, (text, transcript(one))][-failures:]
        people = [(text, *sums[text]) for text, _, _ in people]
        sizes.append(len(people))
        assert now == {"earned": [[*x] for x in people], "failed": [[*x] for x in failed], "turned": turned}
        other = make()
        other.restore(PartState(json.loads(json.dumps({**now}))))
        guide = other
    assert sizes[0] == len(instructions)
    assert writer or sizes[-1] == 1 or every == 20


def likeliest(x: list[list[float]], pairs: list[tuple[int, int]], decay: float) -> list[float]:
    """Worths under the least mean of −log σ(h(better) − h(worse)) and decay/2·|w|², by Newton's steps of one coordinate at a time."""
    w = [0.0 for _ in x[0]]
    for _ in range(60):
        for d in range(len(w)):
            slope, bend = decay * w[d], decay
            for i, j in pairs:
                p = 1 / (1 + exp(sum(a * (b - c) for a, b, c in zip(w, x[i], x[j], strict=True))))
                off = x[i][d] - x[j][d]
                slope -= p * off / len(pairs)
                bend += p * (1 - p) * off * off / len(pairs)
            w[d] -= slope / bend
    return [sum(a * b for a, b in zip(w, row, strict=True)) for row in x]


@reference(
    "guide", "apohf", instructions=[("go on", "go back now", "wait"), ("a b", "c"), ("only",), ("a", "a"), ("a", ""), ("!", "a")],
    exploration=[0.0, 4.0, -1.0], decay=[1.0, 0.0], starts=[0, 2, -1], also=[{"starts": 1, "exploration": 0.3, "decay": 0.5}],
)  # fmt: skip
def apohf(
    make: Part,
    instructions: tuple[str, ...] = FOUR,
    exploration: float = 1.0,
    decay: float = 0.1,
    starts: int = 5,
) -> None:
    if (
        len(set(instructions)) < len(instructions)
        or len(instructions) < 2
        or "" in instructions
        or min(exploration, starts) < 0
        or decay <= 0
    ):
        assert "guide 'apohf'" in refuses(make)
        return
    guide, rng = make(), Random(2)
    assert guide.instead
    said = [sorted({w.strip(",.!") for w in text.lower().split()} - {""}) for text in instructions]
    every = sorted({word for one in said for word in one})
    x = [[1 / len(one) ** 0.5 if word in one else 0.0 for word in every] for one in said]
    pairs: list[tuple[int, int]] = []
    seen = set[tuple[int, int]]()
    for update in range(9):
        engine = Knowing(lambda hint, plan: rng.random() < 0.5, rng.choice([0, 1]), mark=TOLD)
        size = [5, 4, 1, 2][update % 4]
        rows = on_riddles(
            guide,
            engine,
            words="paid" if update % 3 else 2,
            update=update,
            seed=update % 2,
            size=size,
            lost=0,
        )
        if len(pairs) < starts:
            one, two = derive_rng("guide", update % 2, update).sample(range(len(instructions)), 2)
        else:
            h = likeliest(x, pairs, decay)
            one = max(range(len(h)), key=lambda i: round(h[i], 9))
            u = [decay + sum((x[i][d] - x[j][d]) ** 2 for i, j in pairs) for d in range(len(every))]
            unsure = [
                sum(exploration * (a - b) * (a - b) / c for a, b, c in zip(row, x[one], u, strict=True)) ** 0.5 for row in x
            ]  # fmt: skip
            two = max(range(len(h)), key=lambda i: round(h[i] + unsure[i], 9))
        seen.add((one, two))
        half = size - size // 2
        for old, new in zip(rows.plain, rows.found, strict=True):
            assert [told_to(e, engine) for e in new] == [instructions[one]] * half + [instructions[two]] * (
                size - half
            )
            assert [e.task for e in new] == [e.task for e in old]
            assert not {e.seed for e in new} & {e.seed for e in old}
            assert {source_of(e) for e in new} == {"guide/apohf"}
            assert all(learned_under(e, engine) == sampled_under(e, engine) for e in new)
            paid = [
                [sum(t.reward for t in e.trajectory.turns) for e in part if e.outcome.counts] for part in (new[:half], new[half:])
            ]  # fmt: skip
            if one != two and all(paid):
                a, b = (sum(part) / len(part) for part in paid)
                pairs += [(one, two)] if a > b else [(two, one)] if b > a else []
        now: Any = guide.state().numbers
        assert now == {"compared": [[*pair] for pair in pairs]}
        other = make()
        other.restore(PartState(json.loads(json.dumps({**now}))))
        guide = other
    assert len(seen) > 1 or not exploration or not starts
