"""What rules pay for the words of messages, for comparisons, for lists: formulas in plain numbers, on episodes that say words."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from law import plays
from losses import Played, last, none_below_zero
from plain import Refused, agree, reference, refuses

from turnwise.trainers.kit.toy_batches import with_words

WORDS = ("go", "on", "Go", "then", "wait,", "user:", "stop.", "on-on")


def _spoken(seed: int) -> tuple[list[Any], list[Played], list[str]]:
    """Episodes of random words, few of them different, so that some stand again; what each said in all."""
    rng = random.Random(f"words {seed}")
    episodes, plain = plays(seed)
    said = [[" ".join(rng.choices(WORDS, k=rng.choice([0, 2, 7]))) for _ in e.signal] for e in plain]
    heard = [with_words(one, words) for one, words in zip(episodes, said, strict=True)]
    return heard, plain, ["\n".join(words) for words in said]


def spoken_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    """As the law of rewards, with the text of each episode."""
    for seed in range(40):
        episodes, plain, said = _spoken(seed)
        try:
            wanted = formula(plain, said)
        except Refused:
            refuses(lambda episodes=episodes: part(episodes))
            return
        for i, (one, paid) in enumerate(zip(part(episodes), wanted, strict=True)):
            for k, (turn, x) in enumerate(zip(one.trajectory.turns, paid, strict=True)):
                agree(turn.reward, x, f"group {seed}, episode {i}, turn {k}")


@reference(
    "reward", "phrases", law=spoken_law, phrases=[("go", "on on", "stop then", "wait"), ("GO on",)], most=[1, 3, 0], gram=[2, 1, 3, 0],
    leaks=[("User:",), ()], signal=["principle"], doubt=[0.9, 0.0, -0.5], share=[3.0, 0.4, -0.1],
    also=[
        {"phrases": ("go", "on on", "stop"), "most": 3, "gram": 2},
        {"phrases": ("go", "on", "wait"), "most": 2, "gram": 3, "leaks": ("USER:", "wait")},
        {"phrases": ("go", "on"), "most": 4, "gram": 30, "signal": "principle", "share": 0.7},
        {"phrases": ("go", "on"), "most": 4, "gram": 30, "signal": "standing", "share": 0.7, "doubt": 1.5},
    ],
)  # fmt: skip
def phrases(
    group: list[Played],
    said: list[str],
    phrases: tuple[str, ...] | None = None,
    most: int = 20,
    gram: int = 20,
    leaks: tuple[str, ...] = ("User:",),
    signal: str = "",
    doubt: float = 0.5,
    share: float = 0.1,
) -> list[list[float]]:
    none_below_zero(doubt, share)
    if most < 1 or gram < 1:
        raise Refused
    wanted = ("then", "wait") if phrases is None else phrases

    def pattern(e: Played, text: str) -> float:
        if not e.answered:
            return 0.0
        words = text.lower().translate(str.maketrans(",.:-", "    ")).split()
        places = [words[i : i + gram] for i in range(len(words)) if i + gram <= len(words)]
        again = sum(place in places[:i] for i, place in enumerate(places)) / max(1, len(places))
        there = sum(
            any(words[i : i + len(p.split())] == p.lower().split() for i in range(len(words))) for p in wanted
        )
        roles = sum(len(text.lower().split(role.lower())) - 1 for role in leaks)
        worth = (min(most, there)) / most - again - roles
        return worth if worth > 0 else 0.0

    def of(e: Played, text: str) -> float:
        if not signal or not e.signal:
            return pattern(e, text)
        rm = e.signal[-1] * (2 if signal == "standing" else 1)
        return rm if rm >= doubt else min(1.0, rm + share * pattern(e, text))

    return [last(e, of(e, text)) for e, text in zip(group, said, strict=True)]


@reference(
    "reward", "heron", factors=[("cost", "progress"), ("turns", "tokens"), ("tokens",), ("solved", "entity", "turns"), ()],
    margin=[1.5, 0.0, -0.1], also=[{"factors": ("solved", "turns", "cost"), "margin": 1.0}],
)  # fmt: skip
def heron(
    group: list[Played],
    factors: tuple[str, ...] = ("solved", "outcome", "turns", "tokens"),
    margin: float = 0.5,
) -> list[list[float]]:
    none_below_zero(margin)
    if not factors:
        raise Refused

    def value(e: Played, name: str) -> float:
        known = {"solved": float(e.solved), "turns": -len(e.signal), "tokens": -sum(e.tokens)}
        return known[name] if name in known else sum(e.paid.get(name, []))

    def better(a: Played, b: Played, after: int = 0) -> float:
        """1 or 0 by the factors from this one on, ½ where none is left."""
        if after == len(factors):
            return 0.5
        every = [value(e, factors[after]) for e in group if e.signal]
        middle = sum(every) / len(every)
        least = margin * (sum((x - middle) ** 2 for x in every) / len(every)) ** 0.5 if after else 0.0
        gap = value(a, factors[after]) - value(b, factors[after])
        if -least <= gap <= least:
            return better(a, b, after + 1)
        return 1.0 if gap > 0 else 0.0

    def rate(e: Played) -> float:
        others = [better(e, other) for other in group if other is not e and other.signal]
        return sum(others) / len(others) if others else 0.5

    return [last(e, rate(e)) for e in group]
