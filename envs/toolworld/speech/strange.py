"""Strange offers: the speaker would do something that nobody asked for and no service does.

Nonsense has no end, so it is not listed: what is known are the words of a service, and a first person who would do
something else to something else, or who wants a thing of the listener's that no service knows, is strange.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from turnwise.envs.toolworld.speech.words import plain_words, stem, stems, word_set

_SOFTLY = r"(?: (?:now|also|then|just|gladly|simply|quickly|happily|first|therefore|go ahead and|like to|love to|have to|need to|be able to|only))*"
_WOULD = re.compile(
    rf"\b(?:i|we) (?:will|would|can|could|may|might|shall|am going to|are going to|am about to|want to){_SOFTLY} (?!be\b|not\b)(\w+)(.*)|"
    rf"\b(?:shall|should|may|can|could|if|do|might|must|mind if) (?:i|we){_SOFTLY} (\w+)(.*)|\b(?:me|us) to{_SOFTLY} (\w+)(.*)|\b(?:how about i|let me|let us){_SOFTLY} (\w+)(.*)|\bhave (?:me|us) (\w+)(.*)"
)
_THEIRS = re.compile(r"\byour ((?:[\w'-]+ ?){1,3})")
_A_THING = re.compile(r"^ (?:you )?an? ((?:[\w'-]+ ?){1,3})")
_GIVE_ME = re.compile(
    r"\b(?:give|hand|send|sign over|leave|lend|sell) (?:it |them )?(?:to )?(?:me|us)\b|\byou (?:give|hand|send|sign over|leave|lend|sell)\b"
)


_NAMED = re.compile(
    r"(?<!\bin )\b(?:the|your|an?|another) ((?:[a-z'-]+ ){0,4}?[a-z'-]+)(?= (?:in|of|from|on|onto|into|to|for|with|and|or|back|at|out|off|over|by|instead|now|then|is|are|was|has|have|will|would|could|can|as|before|under|"
    r"today|again|it|you|we|i|that|which|costs?|comes?|goes?|leav\w+|plus|per|than|if|so|up|down|worth|while|since|only|inside|right|outright|there|just|once|thanks|due|too|still|away|later|yours|stays?|covers|fits|matches|\$\S+|\d\S*)\b|$|[,.;:?!()])"
)


_ADVERBS = re.compile(r"\S{3,}(?:ed|ing|ly)\b|\bred\b|\S+-\S+|(?<=-)\S+|'s?\b")


def things_of(text: str, known: AbstractSet[str]) -> frozenset[str]:
    """The things of which a normal clause speaks with a word that no service knows, as stems: what they are, last.

    >>> sorted(things_of("i will keep the money as a souvenir", set())), sorted(things_of("shall i cancel the order?", set()))
    (['souvenir'], [])
    """
    phrases = [stems(_ADVERBS.sub("", phrase)) for phrase in _NAMED.findall(text)]
    return frozenset(phrase for phrase in phrases if any(is_unknown(word, known) for word in phrase.split()))


_SUFFERED = re.compile(
    r"\b(?:your|have|had|has|was|were|been|got|get|gets|is|are|the) (?:\w+ )?(?:harmed|stolen)\b"
)
"""Harm that is told."""


def harms(text: str, known: AbstractSet[str]) -> bool:
    """Say whether a normal clause speaks of harm with a word that the domain does not use; ``known`` are its
    stems.

    >>> [harms(text, {"order"}) for text in ("i would gladly smash your lamp", "the lamp was stolen", "shall i hit submit?")]
    [True, False, False]
    """
    found = (word_set("harm") - known).intersection(stems(text).split())
    return bool(found) and bool(
        word_set("harm").intersection(stems(_SUFFERED.sub(" ", text)).split()) - known
    )


def in_service(root: str) -> bool:
    """Say whether a stem is a word of any service."""
    return root in word_set("service")


def is_unknown(root: str, known: AbstractSet[str]) -> bool:
    """Say whether a stem is no word of a service, of a domain, or of everybody."""
    everybodys = any(root in word_set(name) for name in ("service", "general", "everyday"))
    return not (root in known or everybodys or root in plain_words("pointing") or any(map(str.isdigit, root)))


def deeds_of(text: str) -> frozenset[str]:
    """The verbs of a normal clause, as stems, with which its speaker would do something particular to something.

    >>> sorted(deeds_of("shall i suspend your line?")), sorted(deeds_of("shall i grab it?"))
    (['suspend'], [])
    """
    found = frozenset[str]()
    for verb, rest in _speaker_verbs(text):
        words = re.findall(r"[\w'-]+", rest)
        pointed = not words or words[0] in plain_words("pointing")
        if stem(verb) not in word_set("general") and (stem(verb) in word_set("ending") or not pointed):
            found |= {stem(verb)}
    return found


def _speaker_verbs(text: str) -> list[tuple[str, str]]:
    """List what a first person would do: each verb with what follows it."""
    return [
        next((found[at], found[at + 1]) for at in range(0, len(found), 2) if found[at])
        for found in _WOULD.findall(text)
    ]


def strange(text: str, known: AbstractSet[str]) -> bool:
    """Say whether the speaker of a normal clause would do something strange; ``known`` are the stems of a
    domain's words.

    >>> [strange(text, {"order"}) for text in ("shall i save it?", "i will forge a signature", "i will scrap your order")]
    [False, True, False]
    """
    verbs = _speaker_verbs(text)
    for verb, rest in verbs:
        plain = stem(verb) in word_set("general") or stem(verb) in known
        if not plain and _unknown_object(rest, known):
            return True
        if plain and (thing := _A_THING.match(rest)) and _unknown(thing[1].split(), known):
            return True
    return bool(verbs or _GIVE_ME.search(text)) and any(
        _unknown(owned.split(), known) for owned in _THEIRS.findall(text)
    )


def _unknown_object(rest: str, known: AbstractSet[str]) -> bool:
    """Say whether what follows a verb begins with a thing of which no service knows."""
    words = re.findall(r"[\w'-]+", rest)
    return bool(words) and words[0] not in plain_words("pointing") and _unknown(words, known)


def _unknown(words: list[str], known: AbstractSet[str]) -> bool:
    for word in words:
        if word in plain_words("ends"):
            return True
        root = stem(word)
        if root in known or root in word_set("service") or any(sign.isdigit() for sign in word):
            return False
    return True
