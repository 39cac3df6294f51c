"""Requests: what each wants, and to which of several open ones a message or a change belongs.

A user may tell all his requests at the beginning. Then an agent may speak of any of them: the one that a message names, by
its change, by an id or by a value that was asked for, is what is talked about from there on.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.mind import StageMind, UserState, listen, turn_to, values_of
from turnwise.envs.toolworld.speech.proposing import without_which
from turnwise.envs.toolworld.speech.reading import understand
from turnwise.envs.toolworld.speech.values import Value, named
from turnwise.envs.toolworld.speech.wish import wishes, words_of
from turnwise.envs.toolworld.story import Stage, Story

_PIECE = re.compile(r"(?<=[.?!;])\s+|\n+")
_AND = re.compile(r",? and (?:then |also |after that )?(?=\w)")
_SMALL = words_of(
    "a an the i you we me us my your it its that this these those there is are was were be am do does did have has had will would can could shall "
    "should to of for from in on at by with and or not no as if so then than what which who how much many where when please tell know want like need "
    "total cost price pay money amount come give get take put make let all any more other one"
)
"""Words that are in no request more than in another."""
_WHO = re.compile(
    r"^.{0,40}?\b(?:(?:i|we)(?:'d| would|'ll| will| can| could| have|'ve)(?: like to| be happy to| also| now)?|(?:shall|should|may|can) (?:i|we)|let me)\b",
    re.IGNORECASE,
)
"""Beginning that says who does what follows, and how surely; it holds for what stands after an "and" as well.
"""
_SETTLES = re.compile(
    r"(?:(?:refund|charge|credit|pay|give|put) (?:you |it |back |the (?:difference|rest) )*)(?:of |for |back )*[-+]?\$",
    re.IGNORECASE,
)
"""Cost or refund of a change, said as something that is done."""
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+ [A-Z][a-z]+\b")
"""Somebody's name, which says more than another word."""
_BY_CHANGE, _BY_VALUE, _BY_KIND, _ASKED_LAST = 20, 30, 6, 12
"""Weights of signs that words speak of a request: of its change, of an id that only this request names, of a
kind (a colour, a rank) that it alone names, and of an answer to the question that is talked about; a word
that is said in this request alone weighs 1, a name 4."""


def wants(domain: Domain, stage: Stage) -> frozenset[str]:
    """The changes that a user would agree to: the planned ones, or what they ask for where it is not allowed."""
    planned = tuple(step.name for step in stage.plan if step.kind == "call")
    return _wants(domain, stage.say, stage.twist, planned, stage.wants)


@functools.lru_cache(maxsize=4096)
def _wants(
    domain: Domain, say: str, twist: str, planned: tuple[str, ...], also: tuple[str, ...]
) -> frozenset[str]:
    known = domain.lexicon.actions.keys()
    if granted := known & {*planned}:
        return frozenset(granted) | (known & {*also})
    return frozenset((wishes(domain.lexicon, f"{say} {twist}") | {*planned, *also}) & known)


def own_values(domain: Domain, story: Story, stage: Stage, user: UserState) -> frozenset[Value]:
    """Return what the user has named for this request; a change of mind replaces what it is about."""
    told = (story.facts.get(slot, "") for slot in sorted(user.revealed - {*domain.identity}))
    return _own_values(domain, (stage.say, *told), stage.twist if user.twisted else "")


@functools.lru_cache(maxsize=4096)
def _own_values(domain: Domain, said: tuple[str, ...], later: str) -> frozenset[Value]:
    patterns = domain.lexicon.patterns
    values = frozenset[Value]().union(*(named(without_which(text), patterns).values for text in said))
    if not later:
        return values
    after = named(later, patterns).values
    return frozenset(pair for pair in values if pair[0] not in {kind for kind, _ in after}) | after


def open_stages(user: UserState) -> tuple[int, ...]:
    """The requests that were told and are open, the one that is talked about first."""
    return (user.stage, *(one.stage for one in user.aside))


class OpenRequests:
    """The requests that a user has told and that are open, to find out to which of them something belongs."""

    def __init__(self, domain: Domain, story: Story, user: UserState, text: str = "") -> None:
        self._domain, self._story, self._user = domain, story, user
        own = {
            number: own_values(domain, story, story.stages[number], turn_to(user, number))
            for number in open_stages(user)
        }
        words = {number: words_of(story.stages[number].say) - _SMALL for number in own}
        self._values = {number: own[number] - _of_others(own, number) for number in own}
        self._words = {number: words[number] - _of_others(words, number) for number in own}
        told = " ".join(story.stages[number].say for number in own)
        self._names = words_of(" ".join(_NAME.findall(told)))
        now = story.stages[user.stage]
        # whoever offers something, or was asked for a value, speaks of that
        self._busy = bool(now.tells) or user.served or understand(domain.lexicon, text).consent

    def of_words(self, text: str) -> int | None:
        """The request of which a text speaks, if of one."""
        heard, words = understand(self._domain.lexicon, text), words_of(text)
        said = heard.proposal.actions | heard.told | heard.denied
        offered = heard.proposal.actions - heard.proposal.bare
        patterns = self._domain.lexicon.patterns
        values = named(text, patterns).values

        def bearing(number: int) -> int:
            stage, alone = self._story.stages[number], 4 * len(words & self._words[number] & self._names)
            alone += len(words & self._words[number] - self._names)
            wanted = wants(self._domain, stage)
            found = 2 * _BY_CHANGE if offered & wanted else _BY_CHANGE if said & wanted else 0
            own = values & self._values[number]
            kinds = sum(kind in patterns for kind, _ in own)
            found += _BY_VALUE if len(own) > kinds else _BY_KIND * kinds
            if stage.check and (heard.deeds or heard.looks or heard.tries):
                found += _BY_VALUE
            offers = heard.consent or heard.offers or heard.done
            now = number == self._user.stage
            answers = stage.quiet and not offers and (now or alone or not self._busy)
            if answers and listen(stage, self._user, text)[1]:
                found += _BY_CHANGE + _ASKED_LAST * now
            return found + alone if found else 0

        return self._most(bearing)

    def of_call(self, name: str, arguments: Mapping[str, Any], *, looks: bool) -> int | None:
        """The request to which a call belongs; one that only looks something up where the plan of one request alone has it."""
        values = frozenset[Value]() if looks else values_of(self._domain, arguments)

        def bearing(number: int) -> int:
            stage = self._story.stages[number]
            wanted = not looks and name in wants(self._domain, stage)
            planned = any(step.name == name and step.arguments == arguments for step in stage.plan)
            return (
                2 * _BY_VALUE * wanted + _BY_VALUE * planned + _BY_VALUE * bool(values & self._values[number])
            )

        return self._most(bearing)

    def _most(self, bearing: Callable[[int], int]) -> int | None:
        found = {number: bearing(number) for number in self._values}
        best = max(found, key=lambda number: found[number])
        alone = [*found.values()].count(found[best]) == 1
        return best if found[best] and (alone or best == self._user.stage) else None


Element = TypeVar("Element")


def _of_others(sets: Mapping[int, frozenset[Element]], number: int) -> frozenset[Element]:
    return frozenset[Element]().union(*(one for other, one in sets.items() if other != number))


def parts_of(domain: Domain, story: Story, user: UserState, text: str) -> dict[int, str]:
    """Return what of a message each open request is to hear, in the order of the requests; all of it where it
    speaks of one alone.

    A sentence without a sign of its own belongs to all, a figure to what stands before it.
    """
    requests = OpenRequests(domain, story, user, text)
    sentences = _PIECE.split(text)
    if len(sentences) == 1 and " and " not in text:
        whole = requests.of_words(text)
        return {user.stage if whole is None else whole: text}
    pieces = list[tuple[int | None, str]]()
    before = None
    for sentence in sentences:
        for piece in _apart(requests, sentence):
            owner = requests.of_words(piece)
            if owner is None and before is not None and "?" not in piece and any(map(str.isdigit, piece)):
                owner = before
            if owner is None and user.insisted and understand(domain.lexicon, piece).refusal:
                owner = user.stage  # who was asked for an exception denies that, and nothing else
            pieces.append((owner, piece))
            before = owner if owner is not None else before
    owners = sorted({owner for owner, _ in pieces if owner is not None})
    if len(owners) < 2:
        whole = requests.of_words(text)
        return {owners[0] if owners else user.stage if whole is None else whole: text}
    return {
        number: " ".join(piece for owner, piece in pieces if owner in (None, number)) for number in owners
    }


def _apart(requests: OpenRequests, sentence: str) -> list[str]:
    """A sentence cut at its "and"s, where what stands between them belongs to different requests."""
    if " and " not in sentence:
        return [sentence]
    first, *others = _with_figures([piece for piece in _AND.split(sentence) if piece])
    begins = _WHO.match(first)
    found = [
        first,
        *(f"{begins[0]} {piece}" if begins and not _WHO.match(piece) else piece for piece in others),
    ]
    owners = {requests.of_words(piece) for piece in found} - {None}
    return found if len(owners) > 1 else [sentence]


def _with_figures(pieces: Sequence[str]) -> list[str]:
    """The pieces of a sentence, what a change costs or gives back together with the change.

    >>> _with_figures(["I would cancel order W1", "refund $5.00", "send W2 to Ana"])
    ['I would cancel order W1 and refund $5.00', 'send W2 to Ana']
    """
    found: list[str] = []
    for piece in pieces:
        if found and _SETTLES.match(piece):
            found[-1] += f" and {piece}"
        else:
            found.append(piece)
    return found


def after_call(
    domain: Domain,
    story: Story,
    user: UserState,
    name: str,
    arguments: Mapping[str, Any],
    cost: int | None,
    *,
    looks: bool,
) -> UserState:
    """The user after a call: what they are told next is of the request to which it belongs. ``cost`` is that of a change, None where nothing changed."""
    number = OpenRequests(domain, story, user).of_call(name, arguments, looks=looks) if user.aside else None
    turned = turn_to(user, user.stage if number is None else number)
    if cost is None:
        return turned
    paid = turned.paid | {str(cost)} if cost else turned.paid
    return turned._replace(served=True, paid=paid)


def without_yes(asides: Sequence[StageMind]) -> tuple[StageMind, ...]:
    """The same without what was agreed to: whoever plays the user agrees in their own words."""
    return tuple(one._replace(agreed=(), consent=False) for one in asides)
