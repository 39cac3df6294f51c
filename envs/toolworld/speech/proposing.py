"""Proposals: what a message says that would be done, to which a yes would be one."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from turnwise.envs.toolworld.speech.lexicon import Lexicon
from turnwise.envs.toolworld.speech.moods import Mood, SentencePart, in_context
from turnwise.envs.toolworld.speech.strange import harms, strange
from turnwise.envs.toolworld.speech.telling import is_settled, sureness
from turnwise.envs.toolworld.speech.values import Named
from turnwise.envs.toolworld.speech.words import stems

_PLAN = re.compile(
    r"\b(?:i|we) (?:will|am going to|am about to|shall)(?: now| then| just| go ahead and| also)*\b(?! (?:be|need|gladly|happily|see|try|look|check))"
)
_SUBJECT = re.compile(r"^\w+ (?:i|you|we|he|she|they|the|your|my|there)\b(?=.*\b(?:\w+ed|on|off)\b)")
_AN_OFFER = re.compile(r"\bfor (?:an? )?(?:additional|extra|another|only|just|mere)? ?\$")
_IN_WORDS = re.compile(
    r"^(?:put|say|phrase|explain) (?:it|that|this) (?:\w+ )?(?:way|differently|again|words|simply|plainly)\b"
)
_NOT_BUT = re.compile(r"\b(?:rather than|instead of|and not|but not)\b[^,.;?!]*")
"""Part of a sentence that names what would not be done."""
_MONEY_MOVES = re.compile(
    r"\$[\d.,]*\d (?:of it |\w+ )??(?:(?:will|would) )?(?:returns?|goes|go|comes?|travels?|lands?|moves?)\b"
)
"""Movement of money, which is no change to an order."""
_KEPT = re.compile(
    r"\b(?:leav(?:e|ing)|keep(?:ing)?|without|except|excluding|but not|minus the)\b[^,.;?!]*|"
    r"\b(?:while|whereas|and|but) [^,.;?!]*\b(?:stays?|remains?|is kept|are kept)\b[^,.;?!]*",
    re.IGNORECASE,
)
"""Part of a sentence that names something only to say that it stays as it is."""
_WHICH = re.compile(
    r"(?<=order )with (?:the|a|an|my|your) (?:\w+ ){1,4}?\w+(?=[,.;!?]| (?:in|on|from|to|for|and|i|you|we|is|was|has|had|would|will|can|could|should)\b|$)"
)
_ONLY = re.compile(r"\bonly\b|\bjust the\b")
_BESIDE = (Mood.STATEMENT, Mood.REQUEST, Mood.QUESTION, Mood.COURTESY, Mood.HOLD, Mood.REFUSAL)
"""In such clauses stands what a question for a yes is about, where no clause offers it."""
_GIVEN = re.compile(
    r"\b(?:since|because|given that|considering|now that|seeing that) (?:you|we|it|the|your)\b|\byou (?:had|have|took|bought|paid|booked|were|ordered|got)\b|\b(?:payment|bill)\b.*\b(?:has|have|is|was) (?:land|arriv|com|been|clear|paid|in\b)"
)
"""Part of a sentence that is only told as a reason."""
_WOULD_YOU = re.compile(r"^would you (?:mind|fancy|care for|consider|like) \w+ing\b")


class Proposal(NamedTuple):
    """Actions that somebody said they would do (some only by a verb), and what they named."""

    actions: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()  # actions whose nouns were said, without their verbs
    bare: frozenset[str] = frozenset()  # actions of which only the verb was said
    light: frozenset[str] = frozenset()  # actions with a verb that says little by itself
    named: Named = Named()
    only: bool = False  # it shall be these and no others


def offering(lexicon: Lexicon, clause: SentencePart) -> SentencePart:
    """The same, as an offer where a question is one by what it names: "book it?", "… for another $20?"."""
    if not clause.asked or clause.mood not in (Mood.QUESTION, Mood.REQUEST) or _IN_WORDS.match(clause.text):
        return clause
    does = _SUBJECT.match(clause.text) is None and any(
        match.place == 0 for match in lexicon.spoken(clause.stems).values()
    )
    return clause._replace(mood=Mood.OFFER) if does or _AN_OFFER.search(clause.text) else clause


def plans(found: tuple[SentencePart, ...]) -> bool:
    """Say whether speakers say what they are going to do, whatever anybody answers."""
    return any(
        clause.mood is Mood.OFFER and _PLAN.search(clause.text) is not None and is_settled(clause.text)
        for clause in found
    )


def proposal_of(lexicon: Lexicon, found: tuple[SentencePart, ...], text: str) -> Proposal:
    """The actions of which a message says that they would be done; what it names is left open."""
    asks = any(clause.mood is Mood.CONFIRM for clause in found)
    actions, bare, about, told, light = set[str](), set[str](), set[str](), set[str](), set[str]()
    for clause, context in in_context(found):
        offers = clause.mood in (Mood.OFFER, Mood.CONFIRM)
        if not offers and (not asks or clause.mood not in _BESIDE or _denies(lexicon, clause)):
            continue
        said = _of_the_deed(clause)
        spoken = lexicon.spoken(said)
        light |= {name for name, match in spoken.items() if match.light}
        fully = {name for name, match in spoken.items() if match.named}
        if offers:
            actions |= fully
            bare |= (spoken.keys() | lexicon.spoken(said, context).keys()) - fully
        elif fully and not _GIVEN.search(clause.text):
            told |= fully
        about |= lexicon.things(said)
    actions = actions or told  # nothing but what is told beside may say what it would be
    return Proposal(
        frozenset(actions | bare),
        frozenset(about | told),
        frozenset(bare - actions),
        frozenset(light),
        only=_ONLY.search(text) is not None,
    )


def _of_the_deed(clause: SentencePart) -> str:
    """The stems of a clause without what would not be done, and what money does."""
    text = clause.text
    aside = _NOT_BUT.search(text) or _MONEY_MOVES.search(text)
    return stems(_MONEY_MOVES.sub(" ", _NOT_BUT.sub(" ", text))) if aside else clause.stems


def _denies(lexicon: Lexicon, clause: SentencePart) -> bool:
    return clause.mood is Mood.REFUSAL and sureness(lexicon, clause) != ""


def foreign(lexicon: Lexicon, clause: SentencePart) -> bool:
    """Say whether the speaker would do something that is none of a service's business, or harm."""
    known = lexicon.vocabulary
    return (
        _WOULD_YOU.match(clause.text) is not None
        or strange(clause.text, known)
        or (clause.mood in (Mood.OFFER, Mood.CONFIRM) and harms(clause.text, known))
    )


def keeps(text: str) -> bool:
    """Say whether a text names something only to say that it stays as it is."""
    return _KEPT.search(text) is not None


@functools.lru_cache(maxsize=4096)
def to_be_changed(text: str) -> str:
    """A text without what it names only to say that it stays as it is, or which order is meant."""
    return _KEPT.sub(
        lambda kept: kept[0] if " out " in kept[0] else " ", without_which(text)
    )  # what is left out goes


def without_which(text: str) -> str:
    """A text without the things by which somebody says which order or trip they mean.

    >>> without_which("In my order with the red lamp, exchange the mat for a blue one.")
    'In my order , exchange the mat for a blue one.'
    """
    return _WHICH.sub("", text) if "with " in text else text
