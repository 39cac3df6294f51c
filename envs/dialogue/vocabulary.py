"""The words of conversations: families of words, what tasks are drawn from, several ways of saying the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


# --- bargain ----------------------------------------------------------------------------------------

ISSUES: dict[str, tuple[str, ...]] = {
    "colour": ("red", "blue", "white", "black"),
    "delivery": ("monday", "tuesday", "friday", "sunday"),
    "payment": ("cash", "card", "cheque", "invoice"),
    "warranty": ("short", "medium", "long", "lifelong"),
    "place": ("office", "station", "harbour", "airport"),
    "size": ("small", "large", "wide", "tall"),
    "gift": ("lamp", "book", "mug", "poster"),
}


# --- persuade ---------------------------------------------------------------------------------------

PLANS = (
    "the solar roof",
    "the new bus line",
    "the school garden",
    "the night shift",
    "the shared kitchen",
    "the choir",
)

TOPICS = families("""
cost : price money expensive afford costs costly pay
time : busy hours schedule long slow quick
safety : safe danger dangerous risk risky secure
effort : work hard easy tiring trouble
trust : believe honest reliable promise cheat
noise : loud quiet silent disturb sound
""")

KINDS = families("""
numbers : figures data statistics percent evidence study facts
story : example neighbour experience happened friend stories
trial : try test sample demo week trials
""")


# --- comfort ----------------------------------------------------------------------------------------

TROUBLES = ("an exam", "my job", "a quarrel", "an illness", "moving away", "my team", "my neighbour", "money")

COMFORTING_ACTS = families("""
joke : joke funny laugh haha
belittle : nothing cheer calm exaggerate whatever forget
reframe : view side perspective otherwise differently see
advise : should could try advise suggest advice plan step
praise : strong proud brave able well encourage good great
hear : understandable understand sense hear listen natural
ask : what how tell why when more happened
""")

FEELINGS = families("""
angry : anger furious mad
afraid : fear scared anxious
lonely : alone loneliness abandoned
ashamed : shame embarrassed guilty
tired : exhausted drained worn
""")


# --- social -----------------------------------------------------------------------------------------

FAVOURS: Mapping[str, str] = {
    "ladder": "lend the ladder", "plants": "water the plants", "dog": "walk the dog", "bike": "repair the bike",
    "cake": "bake a cake", "letter": "post the letter", "sofa": "carry the sofa", "kids": "watch the kids",
}  # fmt: skip

FACTS = ("bakery", "spring", "shortcut", "festival", "library", "ferry")

SECRETS = ("lottery", "wedding", "tattoo", "debt", "novel", "rival")
