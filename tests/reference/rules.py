"""What rules pay for the words of messages, for comparisons, for lists: formulas in plain numbers, on episodes that say words."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from law import plays
from losses import Played, last, none_below_zero
from plain import Refused, agree, mean, reference, refuses

from turnwise.agents.core import Episode, Turn
from turnwise.trainers.kit.reward_edits import replace_turns
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


# --- what environments tell of turns ------------------------------------------------------------------------------

ITEMS = ("a", "a b", "B", "b c", "c", "d e f")
LINES = (
    "# Findings",
    "findings:",
    "Low  iron",
    "It fits.",
    "## Reasoning",
    "CONCLUSION",
    "Conclusion.",
    "So it is Gout",
    "",
)
REPORT = ("Findings", "all fine", "Reasoning", "it fits", "Conclusion", "GOUT")


@dataclass
class Told:
    """An episode with what the environment told of each turn, and the messages whose calls nobody could read."""

    e: Played
    answered: bool
    turns: list[dict[str, Any]]
    unread: list[bool]
    lines: list[list[str]]

    def number(self, k: int, name: str) -> float:
        told = self.turns[k].get(name, 0)
        return 0 if isinstance(told, str) else told

    def items(self, name: str) -> list[str]:
        lists = [turn[name] for turn in self.turns if isinstance(turn.get(name), list)]
        return lists[-1] if lists else []


def _drawn(rng: random.Random) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name in ("met", "open"):
        if rng.random() < 0.8:
            told[name] = rng.choice([0, 0, 1, 2, 5]) if rng.random() < 0.9 else "none"
    if rng.random() < 0.8:
        told["overlap"] = rng.choice([0.05, 0.1, 0.15, 0.6])
        told |= {name: rng.choice(["Gout", "low iron", "it", " ", 3]) for name in ("answer", "verdict")}
    for name in ("cited", "evidence", "read", "required"):
        if rng.random() < 0.7:
            told[name] = rng.choice(
                [
                    rng.choices(ITEMS, k=rng.randrange(4)),
                    "nothing",
                    ["a", "a b"],
                    ["look"],
                    ["look", "ask"],
                    ["look", "a", "b"],
                ]
            )
    return told


def _told(turn: Turn, more: dict[str, Any], lines: list[str], *, unread: bool) -> Turn:
    message = dataclasses.replace(turn.reply.message, malformed="no JSON" if unread else "")
    if lines:
        message = dataclasses.replace(message, content="\n".join(lines))
    reply = turn.reply._replace(message=message)
    return dataclasses.replace(turn, details={**turn.details, **more}, reply=reply)


def report_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    told_law(name, part, formula, report=True)


def told_law(
    name: str, part: Callable[..., Any], formula: Callable[..., Any], *, report: bool = False
) -> None:
    for seed in range(60):
        rng = random.Random(f"told {seed}")
        episodes, plain = plays(seed)
        group: list[Told] = []
        shown: list[Episode] = []
        for one, e in zip(episodes, plain, strict=True):
            new = Told(e, e.answered if e.signal else False, [], [], [[] for _ in e.signal])
            new.turns = [_drawn(rng) for _ in e.signal]
            new.unread = [rng.random() < 0.1 for _ in e.signal]
            if report:
                drawn: list[list[str]] = [rng.choices(LINES, k=rng.randrange(1, 9)) for _ in e.signal]
                new.lines = [[*REPORT] if rng.random() < 0.2 else lines for lines in drawn]
            group.append(new)
            shown.append(replace_turns(one, lambda turns, new=new: _heard(turns, new)))
        try:
            wanted = formula(group)
        except Refused:
            refuses(lambda shown=shown: part(shown))
            return
        for i, (one, paid) in enumerate(zip(part(shown), wanted, strict=True)):
            for k, (turn, x) in enumerate(zip(one.trajectory.turns, paid, strict=True)):
                agree(turn.reward, x, f"group {seed}, episode {i}, turn {k}")


def _heard(turns: Sequence[Turn], new: Told) -> list[Turn]:
    given = zip(turns, new.turns, new.lines, new.unread, strict=True)
    return [_told(turn, more, lines, unread=unread) for turn, more, lines, unread in given]


@reference(
    "reward", "ftrl", law=told_law, form=["square", "sum", "mean"], empty=[-0.1], broken=[-0.9], silent=[0.2],
)  # fmt: skip
def ftrl(
    group: list[Told], form: str = "f1", empty: float = -0.5, broken: float = -0.3, silent: float = 0.5
) -> list[list[float]]:
    def of(one: Told, k: int) -> float:
        n, s, u = len(one.e.calls[k]), one.number(k, "met"), one.number(k, "open")
        if one.unread[k] or one.e.bad[k]:
            return broken
        if n:
            return {"f1": s / ((n + 1) / 2), "square": s * (s / n), "sum": float(s), "mean": s / n}[form]
        if one.e.solved and k == len(one.turns) - 1:
            return 1.0 if u == 0 else 1 / (u + 1)
        if one.e.confidence[k] == "":
            return empty
        return silent if u == 0 and "open" in one.turns[k] else 0.0

    return [[of(one, k) for k in range(len(one.turns))] for one in group]


def jaccard(a: list[str], b: list[str]) -> float:
    either = {*a}.union(b)
    return sum(x in a and x in b for x in either) / len(either) if either else 1.0


@reference(
    "reward", "sets", law=told_law, form=["visual_rft", "chestx", "overlap"], found=["read"], gold=["cited"],
    support=["required"], outcome=[0.25, -0.1], format=[0.3, -0.1],
    also=[{"form": "visual_rft", "found": "evidence", "gold": "read"}, {"form": "overlap", "found": "evidence", "gold": "read"},
          {"form": "chestx", "found": "evidence", "gold": "read", "support": "cited"}],
)  # fmt: skip
def sets(
    group: list[Told],
    form: str = "tw_grpo",
    found: str = "cited",
    gold: str = "evidence",
    support: str = "read",
    outcome: float = 1.0,
    format: float = 0.0,
) -> list[list[float]]:
    none_below_zero(outcome, format)

    def like(a: str, b: str) -> float:
        left, both = b.lower().split(), 0
        for word in a.lower().split():
            if word in left:
                left.remove(word)
                both += 1
        return 2 * both / len(f"{a} {b}".split())

    def pairs(a: list[str], b: list[str]) -> float:
        if not a or not b:
            return 0.0
        worth = [like(a[0], x) for x in b]
        best = max(worth)
        rest = [x for j, x in enumerate(b) if j != worth.index(best)]
        return best + pairs(a[1:], rest) if best > 0.5 else pairs(a[1:], b)

    def of(one: Told) -> float:
        a, b = one.items(found), one.items(gold)
        agreed = jaccard(a, b)
        if form == "chestx":
            said, by = {*a}, one.items(support)
            shares = [
                mean([float(x in by) for x in said]) if said else 0.0,
                mean([float(x in said) for x in {*b}]) if b else 0.0,
                mean([float(x in b) for x in said]) if said else 0.0,
            ]
            agreed = mean(shares)
        if form == "tw_grpo":
            agreed = len({*a}) / len({*b}) if b and all(x in b for x in a) else 0.0
        elif form == "visual_rft":
            agreed = pairs(a, b) / (max(len(b), len(a))) if b else 0.0
        return agreed + outcome * sum(one.e.paid["outcome"]) + (format if one.answered else 0.0)

    return [last(one.e, of(one)) for one in group]


@reference(
    "reward", "earl", law=told_law, select=[0.7, -0.1], overlaps=[0.9, -0.1], found=["required"], gold=["cited"],
    also=[{"found": "evidence", "gold": "read"}],
)  # fmt: skip
def earl(
    group: list[Told],
    select: float = 0.3,
    overlaps: float = 0.1,
    found: str = "read",
    gold: str = "evidence",
) -> list[list[float]]:
    none_below_zero(select, overlaps)

    def of(one: Told) -> float:
        a, b = one.items(found), one.items(gold)
        o = jaccard(a, b)
        right = -1.0 if not one.e.solved else 1.0 if o >= 0.5 else 0.5
        return right + overlaps * o + (select if a else 0.0)

    return [last(one.e, of(one)) for one in group]


@reference(
    "reward", "codevision", law=told_law, alpha=[0.6, -0.1], beta=[0.7, -0.1], gamma=[0.2, -0.1], exact=[0.4, -0.1], format=[0.3, -0.1],
    graded=["look", "ask"], spurious=[("look",), ("ask", "see")], answers=[("look",), ("ask", "look")],
    also=[{"graded": "look", "spurious": ("ask",), "beta": 0.7}, {"graded": "look", "alpha": 0.0, "gamma": 0.0, "format": 0.0, "exact": 0.0},
          {"answers": ("ask",), "beta": 0.7, "graded": "look", "spurious": ("look",)}],
)  # fmt: skip
def codevision(
    group: list[Told],
    alpha: float = 1.0,
    beta: float = 0.0,
    gamma: float = 0.5,
    exact: float = 0.1,
    format: float = 0.1,
    graded: str = "",
    spurious: tuple[str, ...] = (),
    answers: tuple[str, ...] = (),
) -> list[list[float]]:
    none_below_zero(alpha, beta, gamma, exact, format)

    def calls(one: Told) -> list[str]:
        return [name for turn in one.e.calls for name, _ in turn if name not in answers]

    def acc(one: Told) -> float:
        return sum(one.e.paid["outcome"])

    def necessity(one: Told) -> float:
        by = {True: [acc(x) for x in group if calls(x)], False: [acc(x) for x in group if not calls(x)]}
        if not calls(one) or not by[False] or len([a for a in by[False] if a >= 0.5]) >= 2:
            return 0.0
        return max(0.0, mean(by[True]) - mean(by[False]))

    def of(one: Told) -> float:
        if not one.turns:
            return 0.0
        wanted, made, a = sorted({*one.items("required")}), calls(one), acc(one)
        m = 0.0
        for name in wanted:
            if name in made:
                m += (one.number(len(one.turns) - 1, "overlap") if name == graded else 1.0) / len(wanted)
        if graded in wanted and m < 0.1:
            a *= m
        usage = len(made) - (max(2, len(wanted)))
        cost = max(0, usage)
        if not any(name in wanted for name in spurious):
            cost += len([name for name in made if name in spurious])
        same = wanted != [] and wanted == sorted({*made})
        form = one.answered and True not in one.e.bad
        return a + alpha * m + beta * necessity(one) + exact * same - gamma * cost + format * form

    return [last(one.e, of(one)) for one in group]


@reference(
    "reward", "crpo", law=report_law, sections=[("conclusion", "FINDINGS"), ("Findings",), ("Notes",), ()], right=[2.0, -1.0],
    comprehensive=[0.5, -1.0], faithful=[0.3, -1.0], answer=["verdict"], also=[{"sections": ("Conclusion",), "answer": "verdict"}],
)  # fmt: skip
def crpo(
    group: list[Told],
    sections: tuple[str, ...] = ("Findings", "Reasoning", "Conclusion"),
    right: float = 10.0,
    comprehensive: float = 1.0,
    faithful: float = 1.0,
    answer: str = "answer",
) -> list[list[float]]:
    none_below_zero(right, comprehensive, faithful)
    if not sections:
        raise Refused

    def words(lines: list[str], name: str) -> str:
        """The lines that stand below this heading, as far as the next one."""
        heads = [line.replace("#", "").strip(" :.").lower() for line in lines]
        names = [one.lower() for one in sections]
        below = [
            line
            for k, line in enumerate(lines)
            if heads[k] not in names and [h for h in heads[:k] if h in names][-1:] == [name.lower()]
        ]
        return " ".join(" ".join(below).lower().split())

    def of(one: Told) -> float:
        if not one.turns:
            return 0.0
        lines, told = one.lines[-1], one.turns[-1].get(answer, "")
        complete = min(len(words(lines, name)) for name in sections) > 0
        told = " ".join(told.lower().split()) if isinstance(told, str) else ""
        agrees = told != "" and told in words(lines, sections[-1])
        return right * sum(one.e.paid["outcome"]) + comprehensive * complete + faithful * agrees

    return [last(one.e, of(one)) for one in group]
