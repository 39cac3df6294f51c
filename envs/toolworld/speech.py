"""What a scripted user makes of an agent's words: facts that are asked for, a yes that is wanted, a report.

Rules over words, no model: the same words always mean the same, so the user cannot drift.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from turnwise.envs.toolworld.domain import Deed, Domain

_SENTENCE = re.compile(r"[^.?!\n]*[.?!\n]+|[^.?!\n]+$")
_REQUEST = re.compile(
    r"\?|\b(please (provide|give|share|tell|send|state)|tell me|give me|provide|share|could (you|i)|can you|may i|"
    r"what|which|need your|i need|let me know)\b",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(r"\b(anything|something) else\b|\bhelp you\b|\bassist you\b", re.IGNORECASE)
_CONSENT = re.compile(
    r"\b(confirm|proceed|go ahead|shall i|should i|may i (?!have)|do you want|would you like|is (that|this) "
    r"(ok|okay|right|correct|alright)|are you sure|sure|yes or no|yes/no|do you agree)\b",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(done|cancelled|canceled|changed|updated|complete|completed|processed|booked|sorry|cannot|can't|unable|not "
    r"(able|possible|allowed|eligible)|all set|refund|refunded|fixed|sent|added|returned|exchanged|issued|restored|"
    r"finished|resumed|denied|refuse[ds]?|here (is|are)|anything else|try (it|again|now)|works?|working|costs?|total|"
    r"tell|there (is|are)|you (have|had)|it is|the \w+ is)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(turn|switch|disable|enable|set|reset|reseat|insert|take|remove|restart|reboot|run|pay|accept|look|check|do)\b",
    re.IGNORECASE,
)
LONGEST = 4000
"""Characters that a user listens to."""


class Heard(NamedTuple):
    """What a text asks, proposes, says."""

    asks: tuple[str, ...]  # slots
    consent: bool
    report: bool
    deeds: tuple[Deed, ...]


@functools.lru_cache(maxsize=16384)
def _read(text: str, slots: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[str, ...], bool, bool]:
    asks: list[str] = []
    consent = False
    for sentence in _SENTENCE.findall(text):
        if _SMALL_TALK.search(sentence):
            continue
        if _REQUEST.search(sentence):
            rest = sentence.lower()
            if _CONSENT.search(sentence) and not re.search(r"\b(what|which|how|provide|share)\b", rest):
                consent = True
                continue
            asks += [slot for slot, words in slots if slot not in asks and _mentions(rest, words)]
        consent = consent or _CONSENT.search(sentence) is not None
    return tuple(asks), consent and not asks, _REPORT.search(text) is not None


def understand(domain: Domain, text: str) -> Heard:
    """What a user of ``domain`` makes of the text."""
    asks, consent, report = _read(text, _slots(domain.name, domain))
    deeds = _deeds(domain, text) if domain.deeds else ()
    return Heard(asks, consent, report, deeds)


def _deeds(domain: Domain, text: str) -> tuple[Deed, ...]:
    """What the user is asked to do. A mere question about his device makes him look at it: the first deed."""
    asked = tuple(deed for deed in domain.deeds if _asked_for(deed, text))
    return asked if not asked or _ORDER.search(text) else domain.deeds[:1]


_kept_slots: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {}


def _slots(name: str, domain: Domain) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = _kept_slots.get(name)
    if found is None:
        found = _kept_slots[name] = tuple(domain.slots.items())
    return found


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in words)


def _asked_for(deed: Deed, text: str) -> bool:
    lower = text.lower()
    return any(all(_mentions(lower, (word,)) for word in words) for words in deed.words)
