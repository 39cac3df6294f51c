"""Graphs of things that follow from each other: drawn, perturbed, written and worked out."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from turnwise.envs.wordings import Wordings, ways
from turnwise.tasks.core import Json, Split

COLOURS = ("red", "blue", "green", "black", "white", "pink", "brown", "grey")
_NAME_TEXTS = {
    Split.TRAIN: """ada ben cleo dan eve finn gus hana ivy jack kim leo mia ned ora pia quin rob sue tom una vic wes
xena yara zoe arlo bea cato dora emil faye gene hugo ines jude kara lars moe nell otto pam remy saul tess ugo""",
    Split.DEV: """abel bryn carl dana egon flora greta hank iris joel knut lena milo nora olaf petra quentin rita sven tilda ulf
vera wanda xavier yves zelda anton bruno clara dirk ella frida gerd heidi igor jana kurt lotte max nils oskar paula ruth
stig thea urban""",
    Split.TEST: """agnes boris cora dean elmer fritz gita harold ilse jonas klara lukas marta nico olga paul quirin rosa simon theo
ursula viktor wilma xenia york zita amos berta cyrus dina edgar fanny georg hedda ivan josef kirsten lydia magnus nadia
owen peggy rufus sonja timo uwe""",
}
_NAMES = {split: tuple(text.split()) for split, text in _NAME_TEXTS.items()}
_RULE = ways(
    "if {when} then {name} is {colour} . | {name} is {colour} where {when} . | whenever {when} , the colour of {name} is {colour} ."
)
_GIVEN = ways("{name} is {colour} . | {name} is known to be {colour} . | the colour of {name} is {colour} .")
_EQUAL = ways("{name} = {sum} . | {sum} makes {name} . | {name} comes to {sum} .")
_NOTHING = ways("{name} : nothing is written . | {name} : unknown . | of {name} nobody has written .")
Fact: TypeAlias = list[Json]
"""Of an equation, ``[[coefficient, name], …, constant]``; of rules, ``[[[name, colour], …], colour]`` each."""


@dataclass(frozen=True)
class DeduceGraph:
    """A question's world. ``order`` has each thing after those it follows from; ``shown`` is shuffled."""

    family: str
    question: str
    facts: Mapping[str, Fact]
    order: tuple[str, ...]
    shown: tuple[str, ...]
    split: Split = Split.TRAIN  # whose language it is written in

    @functools.cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.shown)

    @functools.cached_property
    def values(self) -> Mapping[str, int | str]:
        """Value of each thing whose value can be known."""
        known: dict[str, int | str] = {}
        for name in self.order:
            value = self._value(name, known)
            if value is not None:
                known[name] = value
        return known

    @property
    def answer(self) -> str | None:
        value = self.values.get(self.question)
        return None if value is None else str(value)

    @functools.cached_property
    def missing(self) -> str:
        """The first thing on the way to the question that cannot be known though all it follows from is; or ""."""
        behind = ancestors(self.facts, self.question)
        for name in (*self.order, *(name for name in self.shown if name not in self.facts)):
            if (
                name in behind
                and name not in self.values
                and all(p in self.values for p in parents(self.facts, name))
            ):
                return name
        return ""

    @property
    def depth(self) -> int:
        """Steps from what is given to the question."""
        below: dict[str, int] = {}
        for name in self.order:
            below[name] = max((below.get(parent, 0) + 1 for parent in parents(self.facts, name)), default=0)
        return below[self.question]

    def text(self, name: str) -> str:
        """Write the text about a thing."""
        fact = self.facts.get(name)
        if fact is None:
            return self._say(_NOTHING, name=name)
        if self.family == "equations":
            *terms, constant = fact
            said = [(times, f"{abs(times)} {other}" if abs(times) != 1 else other) for times, other in terms]
            if constant or not terms:
                said.append((constant, str(abs(constant))))
            first = ("- " if said[0][0] < 0 else "") + said[0][1]
            rest = "".join(f" {'-' if s < 0 else '+'} {t}" for s, t in said[1:])
            return self._say(_EQUAL, name=name, sum=first + rest)
        lines = []
        for premises, colour in fact:
            when = " and ".join(f"{other} is {seen}" for other, seen in premises)
            lines.append(self._say(_RULE if when else _GIVEN, when=when, name=name, colour=colour))
        return "\n".join(lines)

    def _say(self, wordings: Wordings, **values: str) -> str:
        return wordings.of(self.split)[0].format(**values)

    def _value(self, name: str, known: Mapping[str, int | str]) -> int | str | None:
        fact = self.facts[name]
        if self.family == "equations":
            *terms, constant = fact
            if any(other not in known for _, other in terms):
                return None
            return constant + sum(times * int(known[other]) for times, other in terms)
        for premises, colour in fact:
            if all(known.get(other) == seen for other, seen in premises):
                return colour
        return None


def parents(facts: Mapping[str, Fact], name: str) -> list[str]:
    """The things that a thing follows from."""
    fact = facts.get(name, [0])
    if isinstance(fact[-1], int):
        return [other for _, other in fact[:-1]]
    return [other for premises, _ in fact for other, _ in premises]


def ancestors(facts: Mapping[str, Fact], name: str) -> set[str]:
    """A thing and all that it follows from."""
    found, edge = {name}, [name]
    for one in edge:
        for other in parents(facts, one):
            if other not in found:
                found.add(other)
                edge.append(other)
    return found


def needed(graph: DeduceGraph) -> list[str]:
    """List the things to read: from the question down to what is given, or to where it cannot go on."""
    wanted, edge = [graph.question], [graph.question]
    for one in edge:
        for other in parents(graph.facts, one):
            if other not in wanted:
                wanted.append(other)
                edge.append(other)
    return wanted


def graph_of(data: Mapping[str, Json]) -> DeduceGraph:
    """The graph of a task's options."""
    facts = dict(data["facts"])
    split = Split(data.get("language", Split.TRAIN))
    return DeduceGraph(data["family"], data["question"], facts, tuple(facts), tuple(data["shown"]), split)


def draw_names(rng: Random, things: int, split: Split) -> list[str]:
    """The names of a world's things, in their order, and after them of two gaps."""
    return rng.sample(_NAMES[split], things + 2)


def draw_graph(rng: Random, family: str, drawn: Sequence[str], broken: bool) -> dict[str, Json] | None:
    """A world of these names with a question; ``broken``: one edge on the way to its answer is perturbed.

    There are two gaps in either case, one or both of them elsewhere, so that a gap alone does not tell. None
    where the drawn world has no place for that.
    """
    names, spare = [*drawn[:-2]], drawn[-2:]
    facts = (_equations if family == "equations" else _rules)(rng, names)
    question = rng.choice(names[len(names) // 2 :])
    behind = ancestors(facts, question)
    inside = [name for name in names if name in behind and parents(facts, name)]
    outside = [name for name in names if name not in behind and parents(facts, name)]
    if not inside or len(outside) < 2:
        return None
    perturbed = [rng.choice(outside), rng.choice(inside)] if broken else rng.sample(outside, 2)
    for name, gap in zip(perturbed, spare, strict=True):
        facts[name] = _perturbed(rng, facts, name, gap)
    shown = [*names, *(spare if family == "equations" else [])]
    data = {"family": family, "question": question, "facts": [[name, facts[name]] for name in names]}
    graph = graph_of({**data, "shown": shown})
    if (graph.answer is None) != broken or bool(graph.missing) != broken:
        return None
    return {**data, "shown": rng.sample(shown, len(shown))}


def _equations(rng: Random, names: list[str]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for place, name in enumerate(names):
        others = (
            rng.sample(names[max(0, place - 5) : place], min(place, rng.choice((1, 2, 2))))
            if place > 2
            else []
        )
        constant = rng.randint(1, 9) if not others else rng.choice((0, 0, rng.randint(-9, 9)))
        facts[name] = [*([rng.choice((1, 1, 2, -1, 3)), other] for other in others), constant]
    return facts


def _rules(rng: Random, names: list[str]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    colours: dict[str, str] = {}
    for place, name in enumerate(names):
        if place <= 2:
            colours[name] = rng.choice(COLOURS)
            facts[name] = [[[], colours[name]]]
            continue
        others = rng.sample(names[max(0, place - 5) : place], min(place, rng.choice((1, 2, 2))))
        true = [[other, colours[other]] for other in others]
        outcomes = rng.sample(COLOURS, 3)
        colours[name] = outcomes[0]
        rules = [[true, outcomes[0]]]
        for outcome in outcomes[1:]:
            rules.append([_falsified(rng, true, COLOURS), outcome])
        facts[name] = rng.sample(rules, len(rules))
    return facts


def _falsified(rng: Random, premises: list[list[str]], colours: tuple[str, ...]) -> list[list[str]]:
    """Premises of which one no longer holds."""
    wrong = rng.randrange(len(premises))
    other = rng.choice([colour for colour in colours if colour != premises[wrong][1]])
    return [[name, other if place == wrong else colour] for place, (name, colour) in enumerate(premises)]


def _perturbed(rng: Random, facts: Mapping[str, Fact], name: str, gap: str) -> Fact:
    """The fact with one edge changed: an equation refers to ``gap``; the rule that held holds no more."""
    fact = facts[name]
    if isinstance(fact[-1], int):
        changed = rng.randrange(len(fact) - 1)
        return [[term[0], gap] if place == changed else term for place, term in enumerate(fact)]
    order = tuple(facts)
    values = DeduceGraph("rules", name, facts, order, order).values
    changed_rules: Fact = []
    for premises, colour in fact:
        holds = all(values.get(other) == seen for other, seen in premises)
        changed_rules.append([_falsified(rng, premises, COLOURS) if holds else premises, colour])
    return changed_rules
