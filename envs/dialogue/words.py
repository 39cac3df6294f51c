"""Speech acts out of words, and several ways of saying the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from turnwise.tasks.core import digest

_GREET = "hello hi hey greetings welcome morning evening"
_ASK = "what which why how where who when ask wonder tell explain"
_AGREE = "accept agree agreed deal yes ok okay sure gladly"
_REFUSE = "no not never refuse reject decline cannot can't don won nope without"
_LEAVE = "bye goodbye leave farewell quit"
_THANK = "thank thanks grateful appreciate"
_RUDE = "stupid idiot fool shut liar useless pathetic dumb ridiculous"

GREET, ASK, AGREE, REFUSE, LEAVE, THANK, RUDE = (
    frozenset(text.split()) for text in (_GREET, _ASK, _AGREE, _REFUSE, _LEAVE, _THANK, _RUDE)
)


def has(words: Sequence[str], family: Collection[str]) -> bool:
    """Whether a word of the family is there.

    >>> has(("i", "agree", "then"), AGREE)
    True
    """
    return any(word in family for word in words)


def agrees(words: Sequence[str]) -> bool:
    """Whether the words agree, and do not deny it.

    >>> agrees(("no", "deal")), agrees(("it", "is", "a", "deal"))
    (False, True)
    """
    return has(words, AGREE) and not has(words, REFUSE)


def named(words: Sequence[str], families: Mapping[str, Collection[str]]) -> list[str]:
    """Names of the families that a word comes from, in the families' order.

    >>> named(("too", "expensive"), {"cost": {"cost", "expensive"}, "time": {"time"}})
    ['cost']
    """
    return [name for name, family in families.items() if name in words or has(words, family)]


def families(text: str) -> dict[str, frozenset[str]]:
    """Word families written as ``name : word word`` a line.

    >>> families("cost : price money")["cost"] == {"price", "money"}
    True
    """
    pairs = (line.split(" : ") for line in text.strip().splitlines())
    return {name.strip(): frozenset(words.split()) for name, words in pairs}


def phrase(seed: str, variants: Sequence[str], most: int) -> str:
    """One of the first ``most`` ways of saying something: the same one for the same seed."""
    return variants[int(digest(seed, variants[0]), 16) % min(most, len(variants))]
