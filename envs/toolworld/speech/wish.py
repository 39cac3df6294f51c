"""Wishes of a user, and whether what somebody says differs from them.

A proposal is no more than the request: it names no thing that nobody spoke of, it does not leave one of two things out,
and what it names belongs to the same deed (the order that is to be cancelled is not the one that is to be sent on).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from turnwise.envs.toolworld.speech.lexicon import Lexicon
from turnwise.envs.toolworld.speech.moods import Mood, clauses, matter
from turnwise.envs.toolworld.speech.proposing import to_be_changed, without_which
from turnwise.envs.toolworld.speech.strange import in_service, is_unknown, things_of
from turnwise.envs.toolworld.speech.values import Value, clash, named
from turnwise.envs.toolworld.speech.words import normal, shape_of, speaks_of, stems, word_set

_PAIR = re.compile(
    r"\b(?:the|my|our|a|an) (?:\w+ ){0,3}?(\w+),? (?:and|as well as|plus|together with) (?:also )?(?:the|my|our|a|an) (?:\w+ ){0,3}?(\w+)(?= (?:of|from|in|on|that|which|for|out|back|to)\b|[,.;!?]|$)"
)
"""Two things that are asked for together; the last word of each."""


def wishes(lexicon: Lexicon, text: str) -> frozenset[str]:
    """The actions that a user asks for in their own words: what they want to know is no wish for a change.

    (A wish in the form of a question, "could you …?", is a request to a reader of moods.)
    """
    return _wishes(lexicon, lexicon.shape_of(text))


@functools.lru_cache(maxsize=4096)
def _wishes(lexicon: Lexicon, text: str) -> frozenset[str]:
    if "?" not in text:
        said = stems(text.lower())
    else:
        said = " ".join(clause.stems for clause in clauses(text) if clause.mood is not Mood.QUESTION)
    return frozenset(lexicon.spoken(said))


@functools.lru_cache(maxsize=4096)
def belonging(lexicon: Lexicon, wish: str, actions: frozenset[str]) -> frozenset[Value]:
    """Return what a wish names in the clauses that are about these actions, where it names rivals of it
    elsewhere."""
    found, everything = set[Value](), named(wish, lexicon.patterns).values
    if len({kind for kind, _ in everything}) == len(everything):
        return frozenset()  # no two are rivals
    for text in matter(wish):
        if any(speaks_of(lexicon.actions[name], stems(text)) for name in actions):
            found |= named(text, lexicon.patterns).values
    kinds = {kind for kind, _ in found}
    return frozenset(found) if any(kind in kinds for kind, _ in everything - found) else frozenset()


def bound(
    lexicon: Lexicon, wish: str, actions: frozenset[str], values: frozenset[Value], later: str = ""
) -> frozenset[Value]:
    """``values`` of a wish, of each kind only those that belong to the actions; ``later`` words stand above the wish."""
    changed = {kind for kind, _ in named(later, lexicon.patterns).values} if later else set[str]()
    own = frozenset(pair for pair in belonging(lexicon, wish, actions) if pair[0] not in changed)
    kinds = {kind for kind, _ in own}
    return frozenset(pair for pair in values if pair[0] not in kinds) | own if own else values


def offers_other(lexicon: Lexicon, text: str, own: AbstractSet[Value]) -> bool:
    """Say whether a clause that offers something names only other values than somebody's own, whatever is
    named beside it."""
    if not own or "\n" in text:
        return False  # what an item of a list is about stands in another
    return any(
        clause.mood in (Mood.OFFER, Mood.CONFIRM)
        and bool(clash(named(_INSTEAD.sub("", clause.text), lexicon.patterns).values, frozenset(own)))
        for clause in clauses(to_be_changed(text))
    )


@functools.lru_cache(maxsize=4096)
def _pairs(wish: str) -> tuple[tuple[str, str], ...]:
    return tuple((stems(one), stems(other)) for one, other in _PAIR.findall(normal(wish)))


_TARGET = re.compile(r"\b(?:for|into|to|make it|instead|want|(?<!\bin my order )with|by|as) ")


def other_size(wish: str, said: AbstractSet[str]) -> bool:
    """Say whether another size is spoken of than the one that somebody wishes to get.

    >>> other_size("change the small lamp for the tall brass one", {"short"}), other_size("change the small lamp for a red one", {"large"})
    (True, False)
    """
    wanted = _wanted_sizes(wish)
    return bool(wanted) and bool(said & word_set("sizes")) and not said & wanted


@functools.lru_cache(maxsize=4096)
def _wanted_sizes(wish: str) -> frozenset[str]:
    return frozenset(stems(_TARGET.split(normal(wish))[-1]).split()) & word_set("sizes")


@functools.lru_cache(maxsize=4096)
def words_of(text: str) -> frozenset[str]:
    """The stems of a text."""
    return frozenset(stems(normal(text)).split())


def leaves_out(wish: str, said: AbstractSet[str]) -> bool:
    """Say whether one of two things that are wished for together is spoken of and the other is not.

    >>> wish = "I want to return the lamp and the chair of order W1."
    >>> leaves_out(wish, {"lamp"}), leaves_out(wish, {"lamp", "chair"}), leaves_out(wish, {"W1"})
    (True, False, False)
    """
    return any((one in said) != (other in said) for one, other in _pairs(wish))


def nobody_spoke_of(lexicon: Lexicon, said: str, wish: str) -> bool:
    """Say whether somebody names a thing, or a thing of another kind, that no service and no word of the wish
    knows."""
    things = _new_things(lexicon, lexicon.shape_of(said))
    if any(sign.isdigit() for thing in things for sign in thing):
        things = _new_things(lexicon, said)
    if not things:
        return False
    own = words_of(wish)

    def new(word: str) -> bool:
        return word not in own and is_unknown(word, lexicon.vocabulary)

    for phrase in things:
        *described, thing = phrase.split()
        if new(thing) or (thing in own and not in_service(thing) and any(map(new, described))):
            return True
    return False


_PROPOSERS = ("i ", "we ", "you could ", "you can ", "you would ", "you will ")
"""Beginnings of a statement that may be a part of an offer."""


@functools.lru_cache(maxsize=8192)
def _new_things(lexicon: Lexicon, said: str) -> frozenset[str]:
    """Return what a message offers with a word that no service knows."""
    return frozenset[str]().union(
        *(
            things_of(clause.text, lexicon.vocabulary)
            for clause in clauses(said)
            if clause.mood in (Mood.OFFER, Mood.CONFIRM) or clause.text.startswith(_PROPOSERS)
        )
    )


_NO_COST_TEXT = (
    r"\b(?:at|for|with|has|is|there is) no (?:extra |additional |further )?(?:cost|charge|fee)s?\b"
)
_NO_COST = re.compile(_NO_COST_TEXT)
_AT_A_PRICE = re.compile(rf"[+-]?\$[\d.,]*\d|\b\d[\d.,]* (?:dollars?|cents?|usd)\b|{_NO_COST_TEXT}")


def in_own_words(lexicon: Lexicon, said: str, wish: str, actions: frozenset[str]) -> bool:
    """Say whether a message that offers some actions has no word that neither a wish nor these actions nor
    any offer has.

    What is offered often stands before the question ("There is a seat on the 23rd. Shall I?"), so all of it counts but courtesy.
    """
    concepts = (lexicon.actions[name] for name in actions)
    own = words_of(wish).union(*(words_of(f"{one.verbs} {one.nouns}".replace("|", " ")) for one in concepts))
    meant = (clause.text for clause in clauses(said) if clause.mood is not Mood.COURTESY)
    return all(words_of(_AT_A_PRICE.sub(" ", text)) <= own | word_set("of_asking") for text in meant)


_A_QUESTION = re.compile(r"(?:[^.;!?]|\.(?=\d))+\?")


def without_questions(lexicon: Lexicon, wish: str) -> str:
    """A wish without what somebody wants to know beside it, where the rest says what is to be done."""
    rest = _A_QUESTION.sub("", wish).strip()
    return rest if wishes(lexicon, rest) >= wishes(lexicon, wish) and wishes(lexicon, rest) else wish


def turns_money_round(wish: str, said: AbstractSet[str]) -> bool:
    """Say whether one who is to get money back would be charged.

    >>> turns_money_round("cancel order W1", {"charg", "you"}), turns_money_round("add a bag", {"charg", "you"})
    (True, False)
    """
    return (
        bool(words_of(wish) & word_set("gets_back"))
        and bool(said & word_set("pays"))
        and not said & word_set("gets")
    )


_RIVALS = tuple(
    frozenset(stems(words).split())
    for words in (
        "morning afternoon evening night noon", "monday tuesday wednesday thursday friday saturday sunday", "window aisle",
        "outbound inbound", "monthly yearly annually weekly daily", "adult child infant",
    )
)  # fmt: skip
"""Words of which one thing can be only one."""


def names_rival(wish: str, said: AbstractSet[str]) -> bool:
    """Say whether a rival of something wished for is named, and what is wished for is not.

    >>> names_rival("move it to the morning", {"even"}), names_rival("move it to the morning", {"morn", "even"})
    (True, False)
    """
    own = words_of(wish)
    for mine, other in (
        (word_set("by_post"), word_set("by_mail")),
        (word_set("by_mail"), word_set("by_post")),
    ):
        if own & mine and not own & other and said & other and not said & mine and "bil" in own:
            return True
    return any((mine := own & group) and said & group and not said & mine for group in _RIVALS)


_COUNTED = re.compile(r"(?<![\w.$-])(\d{1,3}) (?:more |extra |additional |new |other )?([a-z]{3,})")


@functools.lru_cache(maxsize=4096)
def _counts(text: str) -> Mapping[str, frozenset[str]]:
    """Return the numbers of each thing that a text speaks of, by the stems of the things."""
    found: dict[str, set[str]] = {}
    for number, thing in _COUNTED.findall(normal(text)):
        found.setdefault(stems(thing), set()).add(number)
    return {thing: frozenset(numbers) for thing, numbers in found.items()}


def other_count(wish: str, text: str) -> bool:
    """Say whether a text names another number of something that is wished for.

    >>> other_count("fly 3 adults home", "shall i book two adults?"), other_count("fly 3 adults home", "2 adults and then 3 adults")
    (True, False)
    """
    mine = _counts(wish)
    return bool(mine) and any(
        thing in mine and not numbers & mine[thing] for thing, numbers in _counts(text).items()
    )


_INSTEAD = re.compile(r"\b(?:instead of|rather than|in place of|and not|but not) [^,.;?!]*", re.IGNORECASE)


def sets_aside(lexicon: Lexicon, wish: str, text: str) -> bool:
    """Say whether a text says that something else is done than with an id that the wish names."""
    aside = " ".join(_INSTEAD.findall(text))
    if not any(sign.isdigit() for sign in aside):
        return False
    own = named(wish, lexicon.patterns).values
    return any(
        kind not in lexicon.patterns and any(sign.isdigit() for sign in value)
        for kind, value in named(aside, lexicon.patterns).values & own
    )


_CHOICE = re.compile(
    r",? or (?:shall i |should i |may i |do you want me to |would you (?:rather|prefer|like) (?:me to )?|rather )?"
)


def offers_choice(lexicon: Lexicon, text: str) -> bool:
    """Say whether a text leaves open which of several changes it offers: "shall I add a bag or change the
    cabin?"."""
    if " or " not in text:
        return False
    for sentence in re.split(r"(?<=[.?!])\s+", text):
        first, *others = (_named(lexicon, piece) for piece in _CHOICE.split(sentence))
        if first and any(other and not other & first for other in others):
            return True
    return False


def _named(lexicon: Lexicon, text: str) -> frozenset[str]:
    """The changes of which a text speaks by verb and noun."""
    found = lexicon.spoken(stems(normal(text).strip("?!. ")))
    return frozenset(name for name, match in found.items() if match.named)


_LESS = re.compile(
    r"\bwithout (?:a |any )?refund\b|\bnon-?refundable\b|\b(?:\d+|many) times (?:over|the|as)\b|\beven though\b|\b(?:two|ten|five|\d+)[- ]year contract\b|\bnothing in return\b"
)
"""Words that make an offer less than anybody asked for."""


@functools.lru_cache(maxsize=4096)
def _can_differ(wish: str) -> bool:
    own = words_of(wish)
    return bool(
        _pairs(wish)
        or _wanted_sizes(wish)
        or own & word_set("gets_back")
        or any(own & group for group in _RIVALS)
        or own & (word_set("by_post") | word_set("by_mail"))
    )


_STOPS = re.compile(
    r"\b(?:stop|end|cease|undo|lift|reverse|remove|no longer)(?:s|ped|ping|ed|ing)? (?:(?:the|your|all|any) )*(\w+)(?: (\w+))?|\bun(\w{3,})"
)


def undoes(lexicon: Lexicon, wish: str, text: str, actions: frozenset[str]) -> bool:
    """Say whether a text offers to stop, or to take back, what a wish asks for: "stop sharing it", "unlock
    it"."""
    verbs = frozenset(
        stem for name in actions for stem in stems(lexicon.actions[name].verbs.replace("|", " ")).split()
    )
    undone = {stems(word) for found in _STOPS.findall(normal(text)) for word in found if word}
    return bool(undone & verbs) and _STOPS.search(normal(wish)) is None


def differs(wish: str, text: str) -> bool:
    """Say whether a text offers less than a wish, one of two things alone, a rival, another number or size,
    or money the other way."""
    if _LESS.search(text.lower()) and not _LESS.search(wish.lower()):
        return True
    if other_count(wish, to_be_changed(text)):
        return True
    wish = without_which(wish)
    if not _can_differ(shape_of(wish)):
        return False
    said = words_of(_NO_COST.sub(" ", to_be_changed(text)))
    return (
        leaves_out(wish, said)
        or other_size(wish, said)
        or names_rival(wish, said)
        or turns_money_round(wish, said)
    )


def one_alone(wish: str, text: str) -> bool:
    """Say whether a text says that one of two things alone is spoken of."""
    return (
        bool(_pairs(wish))
        and bool((said := words_of(to_be_changed(text))) & word_set("alone"))
        and leaves_out(wish, said)
    )
