"""The words of a domain: what its users can be asked, and what can be done for them or by them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from turnwise.envs.toolworld.speech.words import (
    Concept,
    Match,
    firsts,
    mentions,
    normal,
    parts,
    shape_of,
    speaks_of,
    stems,
)

_LONG_NUMBER = re.compile(r"[0-9]{2,}")


class SpokenDeed(NamedTuple):
    """Something that a user can do: how it is asked for, and the thing that it is about."""

    name: str
    concept: Concept


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words of a domain: what can be asked of its users, and what can be done for them or by them."""

    slots: Mapping[str, tuple[str, ...]]
    identity: tuple[str, ...] = ()  # slots that say who somebody is
    actions: Mapping[str, Concept] = field(default_factory=dict[str, Concept])
    deeds: tuple[SpokenDeed, ...] = ()
    patterns: Mapping[str, str] = field(default_factory=dict[str, str])  # kinds of values, see values.named

    @functools.cached_property
    def asked(self) -> Mapping[str, str]:
        """Return the words that ask for each slot, with ``|`` between the ways."""
        return {slot: "|".join(words) for slot, words in self.slots.items()}

    @functools.cached_property
    def _written(self) -> tuple[str, ...]:
        """All its words."""
        concepts = (*self.actions.values(), *(deed.concept for deed in self.deeds))
        return (*self.asked.values(), *(f"{concept.verbs}|{concept.nouns}" for concept in concepts))

    @functools.cached_property
    def vocabulary(self) -> frozenset[str]:
        """The stems of all words that the domain knows, those among them by which its values are found."""
        kinds = " ".join(re.findall(r"[a-z]{3,}", " ".join(self.patterns.values())))
        written = (*self._written, kinds)
        return frozenset(word for words in written for word in stems(normal(words.replace("|", " "))).split())

    @functools.cached_property
    def _numbers(self) -> frozenset[str]:
        """The numbers in its words, which say something."""
        return frozenset(number for words in self._written for number in _LONG_NUMBER.findall(words))

    def shape_of(self, text: str) -> str:
        """A text that means the same to everybody but for what it names; texts of one shape are understood alike."""
        if any({*number} == {"7"} for number in self._numbers):
            return text
        return shape_of(text, self._numbers)

    @functools.cached_property
    def _begins(self) -> Mapping[str, frozenset[str]]:
        """The actions whose verbs begin with a stem."""
        begins = {name: firsts(concept.verbs) for name, concept in self.actions.items()}
        roots = frozenset[str]().union(*begins.values())
        return {root: frozenset(name for name, own in begins.items() if root in own) for root in roots}

    def near(self, stemmed: str) -> frozenset[str]:
        """The actions one of whose verbs begins with a word of a clause."""
        begins = self._begins
        return frozenset[str]().union(*(begins[root] for root in parts(stemmed) & begins.keys()))

    def spoken(self, stemmed: str, context: str = "") -> Mapping[str, Match]:
        """The actions of which a clause speaks, in the order of the domain; ``context`` as in :func:`speaks_of`."""
        return _spoken(self, stemmed, context)

    def things(self, stemmed: str) -> frozenset[str]:
        """The actions whose things a clause names."""
        return frozenset(
            name
            for name, concept in self.actions.items()
            if concept.nouns and mentions(concept.nouns, stemmed)
        )

    def ordered(self, stemmed: str, context: str = "") -> list[tuple[SpokenDeed, Match]]:
        """The deeds of which a clause speaks."""
        found = ((deed, speaks_of(deed.concept, stemmed, context)) for deed in self.deeds)
        return [(deed, match) for deed, match in found if match is not None]


@functools.lru_cache(maxsize=8192)
def _spoken(lexicon: Lexicon, stemmed: str, context: str) -> Mapping[str, Match]:
    near = lexicon.near(stemmed)
    if not near:
        return {}
    found = {
        name: speaks_of(concept, stemmed, context)
        for name, concept in lexicon.actions.items()
        if name in near
    }
    return {name: match for name, match in found.items() if match is not None}


def concept_of(name: str) -> Concept:
    """The concept of a tool of which nothing but its name is known: its first word."""
    return Concept(name.partition("_")[0])
