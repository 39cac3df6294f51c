"""Guides that choose among instructions: what each episode is told, what that earned, and who goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import exp
from random import Random
from typing import Any

from helped import Part
from plain import reference, refuses
from rows_helped import Knowing, Rows, learned_under, on_riddles, sampled_under, source_of

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
Sums = dict[str, tuple[float, int]]


def told_to(one: Episode, engine: Knowing) -> str:
    return sampled_under(one, engine).partition(TOLD)[2].partition("<|")[0]


def paid(one: Episode) -> float:
    return sum(turn.reward for turn in one.trajectory.turns)


def are_told(rows: Rows, name: str, texts: Sequence[Sequence[str]]) -> None:
    """Every group is played anew, each episode under its text, which it learns under too."""
    for old, new, told in zip(rows.plain, rows.found, texts, strict=True):
        assert [told_to(one, rows.engine) for one in new] == [*told]
        assert [one.task for one in new] == [one.task for one in old]
        assert not {one.seed for one in new} & {one.seed for one in old}
        assert {source_of(one) for one in new} == {name}
        assert all(learned_under(one, rows.engine) == sampled_under(one, rows.engine) for one in new)


def weight(people: Sums, text: str) -> float:
    """Its mean, or that of all."""
    earned, times = people[text]
    if times:
        return earned / times
    return sum(e for e, _ in people.values()) / max(1, sum(n for _, n in people.values()))


def count(people: Sums, failed: list[str], text: str, one: Episode) -> None:
    if one.outcome.counts:
        people[text] = (people[text][0] + paid(one), people[text][1] + 1)
        if not one.success:
            failed.append(transcript(one))


class Renewed:
    """Which go, what is asked for them, and who joins, in the order of what is found."""

    def __init__(self, people: Sums, failed: list[str], kept: int, writes: bool) -> None:
        order = sorted(people, key=lambda text: (people[text][1] == 0, -weight(people, text)))
        size = -(-len(order) // 2)
        self.stay, went = order[:size], order[size:]
        self.least = max([weight(people, text) for text in went], default=0.0)
        shown = "\n\n".join(failed[-kept:])
        self.questions = [
            f"Instruction:\n{self.stay[i % size]}\n\n{shown}" for i in range(len(went)) if writes and failed
        ]
        self.people = {text: people[text] for text in self.stay}

    def join(self, rows: Rows, failed: list[str], new: Sequence[str], proxy: int) -> Sums:
        """The population after those were tested that were written."""
        before = {**self.people, **dict.fromkeys(new, (0.0, 0))}
        assert len(rows.played) == 1 + bool(new and proxy)
        if not new or not proxy:
            return before
        tested = rows.played[0]
        assert [*tested] == [*range(min(3, proxy))]
        for n, every in tested.items():
            assert [told_to(one, rows.engine) for one in every] == [*new]
            for text, one in zip(new, every, strict=True):
                assert one.task == rows.plain[n][0].task
                count(before, failed, text, one)
        return {
            text: (earned, n)
            for text, (earned, n) in before.items()
            if text in self.stay or (n > 0 and earned / n >= self.least)
        }


@reference(
    "guide", "inspo", instructions=[("a b", "c"), ("only",), (), ("a", "a"), ("a", "")], temperature=[0.5, 0.0], every=[2, 0],
    writer=["scripted:echo"], failures=[1, 0], proxy=[0, -1],
    also=[{"writer": "self", "every": 1, "proxy": 1, "instructions": tuple("abcdefghijkl")}, {"writer": "self", "every": 1, "proxy": 0, "failures": 2},
          {"writer": "scripted:echo", "every": 1, "instructions": ("a", "b", "c", "d", "e"), "temperature": 50.0}],
)  # fmt: skip
def inspo(
    make: Part, instructions: tuple[str, ...] = FOUR, temperature: float = 0.1, every: int = 20, writer: str = "", failures: int = 4, proxy: int = 4
) -> None:  # fmt: skip
    if (
        not instructions
        or len(set(instructions)) < len(instructions)
        or "" in instructions
        or min(temperature, every, failures) <= 0
        or proxy < 0
    ):
        assert "guide 'inspo'" in refuses(make)
        return
    guide, rng = make(), Random(1)
    assert guide.instead
    people: Sums = dict.fromkeys(instructions, (0.0, 0))
    failed: list[str] = []
    turned, joined, left, updates = (
        0,
        0,
        0,
        [0, 1, every, every + 1, 2 * every, 2 * every + 1, 3 * every, 4 * every],
    )
    for number, update in enumerate(dict.fromkeys(updates)):
        answer = rng.choice(["be kind", f"new {number}", f" newer {number} ", " "])
        engine = Knowing(lambda hint, plan: rng.random() < 0.5, rng.choice([0, 1]), answer=answer, mark=TOLD)
        renewed = Renewed(people, failed, failures, bool(writer)) if update >= turned + every else None
        words = "paid" if number % 3 == 2 else 2
        rows = on_riddles(guide, engine, words=words, update=update, seed=number, size=4, lost=0)
        now: Any = guide.state().numbers
        if renewed is not None:
            turned, asked = update, renewed.questions
            if writer == "self":
                assert len({*engine.questions}) == len({*asked})
                assert all(any(question in one for one in engine.questions) for question in asked)
                new = [answer.strip()] if asked and answer.strip() not in ("", *renewed.stay) else []
            else:
                tried = [told_to(one, engine) for one in rows.played[0][0]] if len(rows.played) > 1 else []
                tried = tried if proxy else [text for text, *_ in now["earned"]]
                new = [text for text in tried if text not in renewed.stay] if asked else []
                assert len({*new}) == len(new) <= len(asked)
            people = renewed.join(rows, failed, new, proxy)
            joined += len({*people} & {*new})
            left += len({*new} - {*people})
        else:
            assert not engine.questions
            assert len(rows.played) == 1
        scaled = [exp((weight(people, text) - 1) / temperature) for text in people]
        drawn = [derive_rng("guide", number, update, n).choices([*people], scaled, k=4) for n in range(3)]
        are_told(rows, "guide/inspo", drawn)
        for texts, new in zip(drawn, rows.found, strict=True):
            for text, one in zip(texts, new, strict=True):
                count(people, failed, text, one)
        earned = [[text, *sums] for text, sums in people.items()]
        assert now == {"earned": earned, "failed": failed[-failures:], "turned": turned}
        guide = make()
        guide.restore(PartState(json.loads(json.dumps({**now}))))
    assert joined or not writer or every > 1
    assert left or not (writer == "self" and proxy)
    assert writer or len(people) == 1


def likeliest(x: list[list[float]], pairs: list[tuple[int, int]], decay: float) -> list[float]:
    """Worths under the least mean of −log σ(h(better) − h(worse)) and decay/2·|w|², by Newton's steps of one coordinate at a time."""
    w, off = [0.0 for _ in x[0]], [[b - c for b, c in zip(x[i], x[j], strict=True)] for i, j in pairs]
    ahead = [0.0 for _ in pairs]  # w·off
    for _ in range(60):
        for d in range(len(w)):
            p = [1 / (1 + exp(margin)) for margin in ahead]
            slope = decay * w[d] - sum(a * o[d] for a, o in zip(p, off, strict=True)) / max(1, len(pairs))
            bend = decay + sum(a * (1 - a) * o[d] ** 2 for a, o in zip(p, off, strict=True)) / max(
                1, len(pairs)
            )
            w[d] -= slope / bend
            ahead = [margin - slope / bend * o[d] for margin, o in zip(ahead, off, strict=True)]
    return [sum(a * b for a, b in zip(w, row, strict=True)) for row in x]


def arms_of(
    x: list[list[float]], pairs: list[tuple[int, int]], decay: float, exploration: float
) -> tuple[int, int]:
    """The best, and whoever may be better."""
    h = likeliest(x, pairs, decay)
    one = max(range(len(h)), key=lambda i: round(h[i], 9))
    u = [decay + sum((x[i][d] - x[j][d]) ** 2 for i, j in pairs) for d in range(len(x[0]))]
    unsure = [
        sum(exploration * (a - b) * (a - b) / c for a, b, c in zip(row, x[one], u, strict=True)) ** 0.5
        for row in x
    ]
    return one, max(range(len(h)), key=lambda i: round(h[i] + unsure[i], 9))


def points(question: str) -> tuple[int, int]:
    """What a judge gives both attempts of a question; the first of the two a little more."""
    first, _, second = question.partition("=== Attempt B")
    return (first.count("buy") % 5 + 2, second.count("buy") % 5 + 1)


class Compares(Knowing):
    """An engine that is asked which of two attempts is better, too."""

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Any:
        text = self.plain.renderer.tokenizer.decode(list(prompt_ids))
        if "Two agents tried" not in text:
            return await super().generate(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)
        self.questions.append(str(text))
        a, b = points(str(text))
        said = self.plain.renderer.tokenizer.encode(f"POINTS: {a} {b}", add_special_tokens=False)
        from turnwise.agents.core import Completion

        ids = (*said, next(iter(stop_ids)))
        return Completion(ids, (-0.5,) * len(ids), stopped=True)


def lead(parts: Sequence[Sequence[Episode]], judge: str) -> float:
    """By how much the first half of a group is better than the second."""
    if judge:
        one, two = (transcript(part[0]) for part in parts)
        there, back = (points(f"{a}=== Attempt B{b}") for a, b in ((one, two), (two, one)))
        return there[0] + back[1] - there[1] - back[0]
    first, second = ([paid(e) for e in part] for part in parts)
    return sum(first) / len(first) - sum(second) / len(second)


@reference(
    "guide", "apohf", instructions=[("go on", "go back now", "wait"), ("a b", "c"), ("only",), ("a", "a"), ("a", ""), ("!", "a")],
    exploration=[0.0, 4.0, -1.0], decay=[1.0, 0.0], starts=[0, 2, -1], judge=["self"],
    also=[{"starts": 1, "exploration": 0.3, "decay": 0.5}, {"judge": "scripted:echo", "starts": 1}],
)  # fmt: skip
def apohf(
    make: Part, instructions: tuple[str, ...] = FOUR, exploration: float = 1.0, decay: float = 0.1, starts: int = 5, judge: str = ""
) -> None:  # fmt: skip
    if (
        len(set(instructions)) < max(2, len(instructions))
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
    for update in range(6):
        engine = Compares(lambda hint, plan: rng.random() < 0.5, rng.choice([0, 1]), mark=TOLD)
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
        one, two = (
            derive_rng("guide", update % 2, update).sample(range(len(instructions)), 2)
            if len(pairs) < starts
            else arms_of(x, pairs, decay, exploration)
        )
        seen.add((one, two))
        half = size - size // 2
        texts = [instructions[one]] * half + [instructions[two]] * (size - half)
        are_told(rows, "guide/apohf", [texts] * 3)
        for new in rows.found:
            parts = [[e for e in part if e.outcome.counts] for part in (new[:half], new[half:])]
            if one != two and all(parts) and judge != "scripted:echo":
                by = lead(parts, judge)
                pairs += [(one, two)] if by > 0 else [(two, one)] if by < 0 else []
        now: Any = guide.state().numbers
        assert sorted(now["preferred"]) == sorted([*pair, pairs.count(pair)] for pair in {*pairs})
        guide = make()
        guide.restore(PartState(json.loads(json.dumps({**now}))))
    assert len(seen) > 1 or not exploration or judge == "scripted:echo"
