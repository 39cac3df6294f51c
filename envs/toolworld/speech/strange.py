"""Whether a speaker would do something that nobody asked for and no service does.

Nonsense has no end, so it is not listed: what is known are the words of a service, and a first person who would do
something else to something else, or who wants a thing of the listener's that no service knows, is strange.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from turnwise.envs.toolworld.speech.words import stem, stems

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
_ENDING = frozenset(
    stems(
        "suspend block delete close terminate cut disconnect bar reject destroy sell publish post deactivate freeze confiscate cancel void remove"
    ).split()
)
"""Verbs that take something away: they are never a mere way to say "do it"."""
_GENERAL = frozenset(
    stems(
        "do go proceed continue start make arrange process register charge carry move set apply handle submit finalize finalise complete sort get "
        "have be see check look confirm take put add give offer book place use reserve need ask just now also like then not open close lock save "
        "note write enter push press pull switch send return issue raise let keep help find work try say tell know call bring turn run fix clear lift "
        "execute action schedule secure grab snap store record log credit refund pay cover waive leave show create generate trigger kick "
        "prepare request release authorize authorise validate initiate launch file count treat"
    ).split()
)
"""Verbs that say nothing about what is done."""
_POINTING_TEXT = (
    "it that this them these those one you so both all ahead up off on in out down over through along forward "
    "back with for to at by from as right away everything something anything and or if when once while now "
    "then"
)
_POINTING = frozenset(_POINTING_TEXT.split())
_ENDS_TEXT = (
    "to for with on in at by from of into onto as if when once and or but is are was will would that which "
    "back so i we it they"
)
_ENDS = frozenset(_ENDS_TEXT.split())
_SERVICE_TEXT = (
    "order reservation booking trip flight ticket seat cabin class bag luggage passenger name address street item product parcel package delivery shipment "
    "card paypal gift payment method money refund difference amount sum rest balance price cost fee charge fare total bill invoice account profile line "
    "number plan tariff package data roaming service phone handset device sim apn settings mode network internet calls texts certificate voucher credit "
    "compensation insurance meal wrapping label change swap upgrade downgrade exchange return cancellation request button trigger switch wheels paperwork form "
    "okay word nod yes go-ahead blessing permission approval consent confirmation say-so thumbs answer decision call choice vote verdict agreement green light signal reply "
    "side end behalf convenience liking taste case matter issue problem wish mind patience time moment day date week month home house-number place "
    "details information identity email e-mail zip code pin birthday id status tier membership gold silver regular allowance savings bank statement "
    "current new old original existing next first second last other usual current remaining whole full entire extra additional free cheap cheaper "
    "itinerary journey route departure date companion travel document dollars cents gigabytes gigs gb top-up purchase records file system deal bargain "
    "note correction spelling option offer block barring bar suspension lock stock warehouse basket cart"
)
_SERVICE = frozenset(stems(_SERVICE_TEXT).split())


def deeds_of(text: str) -> frozenset[str]:
    """The verbs of a normal clause, as stems, with which its speaker would do something particular to something.

    >>> sorted(deeds_of("shall i suspend your line?")), sorted(deeds_of("shall i grab it?"))
    (['suspend'], [])
    """
    found = frozenset[str]()
    for verb, rest in _speaker_verbs(text):
        words = re.findall(r"[\w'-]+", rest)
        pointed = not words or words[0] in _POINTING
        if stem(verb) not in _GENERAL and (stem(verb) in _ENDING or not pointed):
            found |= {stem(verb)}
    return found


def _speaker_verbs(text: str) -> list[tuple[str, str]]:
    """What a first person would do: each verb with what follows it."""
    return [
        next((found[at], found[at + 1]) for at in range(0, len(found), 2) if found[at])
        for found in _WOULD.findall(text)
    ]


def strange(text: str, known: AbstractSet[str]) -> bool:
    """Whether the speaker of a normal clause would do something strange; ``known`` are the stems of a domain's words.

    >>> [strange(text, {"order"}) for text in ("shall i save it?", "i will forge a signature", "i will scrap your order")]
    [False, True, False]
    """
    verbs = _speaker_verbs(text)
    for verb, rest in verbs:
        plain = stem(verb) in _GENERAL or stem(verb) in known
        if not plain and _unknown_object(rest, known):
            return True
        if plain and (thing := _A_THING.match(rest)) and _unknown(thing[1].split(), known):
            return True
    return bool(verbs or _GIVE_ME.search(text)) and any(
        _unknown(owned.split(), known) for owned in _THEIRS.findall(text)
    )


def _unknown_object(rest: str, known: AbstractSet[str]) -> bool:
    """Whether what follows a verb begins with a thing of which no service knows."""
    words = re.findall(r"[\w'-]+", rest)
    return bool(words) and words[0] not in _POINTING and _unknown(words, known)


def _unknown(words: list[str], known: AbstractSet[str]) -> bool:
    for word in words:
        if word in _ENDS:
            return True
        root = stem(word)
        if root in known or root in _SERVICE or any(sign.isdigit() for sign in word):
            return False
    return True
