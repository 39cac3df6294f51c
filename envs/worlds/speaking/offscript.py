"""Rules on what somebody who plays a person must not say: named repairs, and faults.

After a fault, the model is asked again.

A repair leaves what was meant: a label before it, a thought, the other side's next line. A fault leaves nothing that
could count: no words, garbage, a refusal to play, words of the other role, the script read aloud, what is to be kept
to oneself, or a value that stands neither in the script nor in what was said so far.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.envs.messages import Message
from turnwise.tools.thoughts import without_thoughts

LONGEST = 1200
"""Characters of one message."""
_WINDOW = 7  # words of the script in a row that nobody says by chance
_LABEL = re.compile(r"^\W{0,3}(?:customer|user|client|caller|partner|person|me)\W{0,3}:\s*", re.IGNORECASE)
_OTHER = re.compile(
    r"(?:^|\n)\W{0,3}(?:agent|assistant|service|support|representative|operator|helper|system)\W{0,3}:",
    re.IGNORECASE,
)
_UNSAYABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffd]")
_REFUSAL = re.compile(
    r"\bas an? (?:ai|artificial|large language|language model)|\bi am an? (?:ai|language model)\b|\bi(?: a|')m (?:just )?an? (?:ai\b|language model)|"
    r"\bi (?:can(?:no|')t|cannot|am (?:not able|unable) to|won't|will not) (?:assist|comply|fulfil+|participate|role-?play|pretend|continue with this|engage|play (?:this|the|a) (?:role|customer|person))",
    re.IGNORECASE,
)
_AS_AGENT = re.compile(
    r"\bhow (?:can|may) i (?:help|assist) you\b|\banything else i can (?:help|do|assist)\b|\bi(?: have|'ve) (?:now |just |successfully )*"
    r"(?:cancel+ed|processed|updated|upgraded|refunded|booked|issued|resumed|transferred) (?:your|the|it)\b|\blet me (?:check|look up|pull up|look into) your\b|"
    r"\bi(?:'ll| will) (?:now )?(?:process|transfer you|update your|look into your)\b|\bthank you for (?:calling|contacting|reaching out)\b",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"^\s*[\[{]\s*[\"{\[]|```|<tool_call|<\|[a-z_]+\|>|</?(?:s|div|html)>", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_VALUE = re.compile(r"[^\s,;:!?()\"'“”]*\d[^\s;:!?()\"'“”]*")


class Examined(NamedTuple):
    """A message after examination: what counts of it, and what was repaired; or a fault, and what to say about it."""

    message: Message
    repairs: tuple[str, ...] = ()
    fault: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Role:
    """Person that a model plays, as far as what it may say depends on it.

    ``private``: instructions that nobody says aloud. ``known``: texts whose values may be said. ``secrets``: phrases
    that must not be said. ``serves``: this person may speak as the one who serves (who is not a customer).
    """

    private: str
    known: str
    secrets: tuple[str, ...] = ()
    serves: bool = False


FAULTS = {
    "empty": "it said nothing",
    "malformed": "it held a call that cannot be read",
    "too_long": f"it was longer than {LONGEST} characters",
    "garbage": "it was not plain speech",
    "refusal": "it left the role",
    "speaks_as_other": "it spoke as the other side",
    "reads_script": "it read the instructions aloud",
    "leaks": "it told what is to be kept to oneself",
    "invents": "it named something that stands nowhere in the instructions or the conversation",
    "stops_early": "it ended the conversation before it had begun",
}
"""Each fault, as the model is told of it."""
KEPT = frozenset(("speaks_as_other", "reads_script", "leaks", "invents", "stops_early"))
"""Faults of which the other side learns nothing, because a neutral line is said instead in the end."""


def examine(message: Message, role: Role) -> Examined:
    """Return the part of a message that counts.

    >>> role = Role("You play a customer who is in a hurry today and wants help.", "My order is W1.")
    >>> examine(Message("assistant", "Customer: It's order W1."), role).repairs
    ('label',)
    >>> examine(Message("assistant", "It is order W2."), role).fault
    'invents'
    """
    if message.malformed:
        return fault(message, "malformed")
    text, repairs = _repaired(message.content)
    repaired = Message(message.role, text, message.tool_calls)
    if message.tool_calls and not text:
        return Examined(repaired, repairs)
    found = _fault_of(text, role)
    return fault(repaired, found, repairs) if found else Examined(repaired, repairs)


def fault(message: Message, name: str, repairs: tuple[str, ...] = ()) -> Examined:
    """A message that cannot count, with what its author is told."""
    told = (
        f"Your last answer was left out: {FAULTS[name]}. Answer again. Write only what the person whom you play says "
        "next, in plain words, and name nothing that you do not know."
    )
    return Examined(message, repairs, name, told)


def _repaired(text: str) -> tuple[str, tuple[str, ...]]:
    repairs: list[str] = []

    def to(name: str, new: str) -> str:
        if new != text.strip():
            repairs.append(name)
        return new

    text = text.strip()
    text = to("thought", without_thoughts(text).strip())
    text = to("characters", _UNSAYABLE.sub("", text).strip())
    text = to("label", _LABEL.sub("", text, count=1))
    if (other := _OTHER.search(text)) and other.start() > 0:
        text = to("both_sides", text[: other.start()].strip())
    if len(text) > 1 and text[0] + text[-1] in ('""', "“”") and text.count(text[0]) <= 2:
        text = to("quoted", text[1:-1].strip())
    return text, tuple(repairs)


def _fault_of(text: str, role: Role) -> str:
    if not text:
        return "empty"
    if len(text) > LONGEST:
        return "too_long"
    words = _WORD.findall(text.lower())
    if _MARKUP.search(text) or _is_garbage(text, words):
        return "garbage"
    if _REFUSAL.search(text.replace("\u2019", "'")):
        return "refusal"
    if not role.serves and (_OTHER.match(text) or _AS_AGENT.search(text.replace("\u2019", "'"))):
        return "speaks_as_other"
    if _windows(words) & _windows(_WORD.findall(role.private.lower())):
        return "reads_script"
    lowered = " ".join(text.lower().split())
    if any(" ".join(secret.lower().split()) in lowered for secret in role.secrets):
        return "leaks"
    return "invents" if invented(text, role.known) else ""


def _is_garbage(text: str, words: list[str]) -> bool:
    if len(text) > 12 and sum(sign.isalnum() or sign.isspace() for sign in text) < 0.6 * len(text):
        return True
    if any(len(word) > 40 for word in words) or not (words or any(sign.isdigit() for sign in text)):
        return True
    if any(len(set(words[at : at + 6])) == 1 for at in range(len(words) - 5)):
        return True
    return len(words) >= 30 and len(set(words)) < 0.25 * len(words)


def _windows(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + _WINDOW]) for at in range(len(words) - _WINDOW + 1)}


def invented(text: str, known: str) -> list[str]:
    """Values of a text that do not stand in what is known. Numbers of one or two digits are no values.

    >>> invented("Card 4242, order W12, for 3 people, $18", "order w12; $18.00")
    ['4242']
    """
    there = _plain(known)
    return [value for found in _VALUE.findall(text) if (value := _plain(found)) and not _stands(value, there)]


def _stands(value: str, there: str) -> bool:
    if sum(sign.isdigit() for sign in value) < 3 and not any(sign.isalpha() for sign in value):
        return True
    if re.fullmatch(r"\d{1,2}(?:st|nd|rd|th|gb|mb|am|pm|k|x)?", value):
        return True
    return value in there


def _plain(text: str) -> str:
    """Small letters; no marks of currency, thousands or the end of a sentence; ``18.00`` is ``18``."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.lower())
    text = re.sub(r"(?<=\d)\.00\b", "", text)
    return re.sub(r"[$#€£]|(?<=\w)[.,](?=\s|$)", "", text)
