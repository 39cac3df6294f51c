"""Wants of a clause from the listener: facts about themselves, something done with their device, or how that
stands."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from turnwise.envs.toolworld.speech.lexicon import Lexicon, SpokenDeed
from turnwise.envs.toolworld.speech.moods import Mood, SentencePart, in_context
from turnwise.envs.toolworld.speech.telling import says_done
from turnwise.envs.toolworld.speech.ways import GuardedPattern
from turnwise.envs.toolworld.speech.words import mentions

_GIVE = re.compile(
    r"\b(?:your|the|a|an|on file|full|first|last|again|please|what|which|whose|who|how many|how much|need|verify|confirm|and)\b|^[\w -]{1,40}$"
)
_OWNS = re.compile(
    r"^(?:have you|do you have)(?: got)? (?:a|an|any|something|anything)\b.*\b(?:handy|ready|near|there|around|at hand|to hand)\b"
)
_ABOUT_ME = GuardedPattern(
    r"\b(?:verify|confirm|identif\w+|authenticat\w+|validate) (?:your|you|who|the account|it is you|that (?:it is|i am))\b(?:(?! (?:email|plan|order|change|cancel)).)*$|"
    r"\bverification\b|\b(?:your )?identi(?:ty|fication)\b|\bwho (?:am i|i am|you are|are you)\b|\b(?:your|some|account) (?:details|credentials|information|account details)\b|\bpersonal (?:data|details)\b"
)
_STATE = re.compile(
    r"^(?:(?:before|first|let me know|tell me|just)\b[^:,?]*[:,] ?)?(?:you (?:have|did)|is|are|was|were|do|does|did|have|has|had|what|which|how|can you see|could you see|could you (?:tell|check|look)|can you (?:tell|check|look))\b"
)
_SO_FAR = re.compile(
    r"\b(?:yet|already|by now|now|so far|in the meantime|since)\?*$|\b(?:have|did|has) (?:you|it|that|the|your)\b|\bmanage(?:d)?\b|, or not\?*$"
)
_UNSEEN = re.compile(
    r"^(?:how long|since when|why|when|how (?:did|come|do|does|can|to)|(?:do|did|would) you (?:happen to )?know (?:how|why|when|where)|would you (?:rather|prefer))\b"
)
_ALONE = re.compile(r"^(?:please |kindly |just |now |then |go ahead and )*\w+(?: now| again| please)?$")
_SHOW = "does it say|does it read|it say now|show|see|display|status|settings say|say on|signal|bars|screen"
_WANTS = re.compile(r"\b(?:please|kindly|need|require|tell|give|provide|share|let me know)\b")
_DO_SO = re.compile(
    r"\b(?:so|then|,) please do\b|^please do\b|\b(?:try|do|give|done)\b.*\b(?:that|it|this|so|go|shot|both)\b"
)
_PAID = re.compile(r"\bpa(?:y|id)\b")
_MINE = re.compile(
    r"\b(?:me|us) to\b|\b(?:shall|should|may|if|can|could) (?:i|we)\b|\bmy\b|^i (?:will|can|could|am|have)\b"
)
_BY_ME = GuardedPattern(
    r"\b(?:i|we) (?:will|would|can|could|have|am|are|had|need to|want to|shall|was|were)\b|\b(?:shall|should|may|can|could) (?:i|we)\b|\blet me\b|\b(?:me|us) to\b|\b(?:later|afterwards|in a moment|soon|not (?:right )?now|last time|usually)\b"
)
_IF_IT = re.compile(r"^(?:if|when|once|after|before|since|because|as)\b(?!.*, )")
_NEEDED = GuardedPattern(
    r"\b(?:would|will|should|might|could|may|ought to) (?:\w+ )?(?:help|fix|cure|solve|do (?:it|the trick|the job)|be (?:best|worth|good|next|wise|the)|bring|resolve|sort)\b|\bneeds?\b.*\b(?:\w+ing|to|a|an)\b|\bwants? (?:\w+ing|to (?:be|come|go|stay))\b|\b(?:has|have) to\b|"
    r"\bmust\b|\b(?:what helps|the way forward|the (?:next|first|last) (?:step|thing)|the (?:fix|cure|remedy|solution|trick|answer)|what is needed|what remains|all it takes|it is time|the thing to do)\b|\b(?:off|on|out|in|back) (?:with|you) \w+|\byou (?:would|will) (?:want|need) to\b"
)
"""That a thing is to be done, without saying by whom."""


_CONFIRM_DATA = re.compile(r"\bconfirm (?:your|the (?:email|zip|pin|name|birth|phone|user))")
_WHOLE = re.compile(
    r"\d|ed\b|\b(?:is|are|was|has|done|you have|match(?:es)?|fits?|tallies|agrees?|checks? out|works?)\b"
)
"""A whole sentence, which tells something."""
_BY_SPEAKER = re.compile(r"\b(?:me|us) to\b|\b(?:shall|should|may) i\b(?! ask you to)")
_POINTS = re.compile(r"\b(?:it|that)\b")
_IDLE = re.compile(r"^\w+ing\b.*\b(?:may|might|could|can|would|will|usually|often)\b")
"""Statement of what something might do, in general."""
_WANTING = (Mood.REQUEST, Mood.QUESTION, Mood.CONFIRM, Mood.OFFER, Mood.STATEMENT)


class Wanted(NamedTuple):
    """Wants of a message from the listener."""

    asks: tuple[str, ...] = ()  # slots
    deeds: tuple[str, ...] = ()  # that they shall do, in order
    looks: tuple[str, ...] = ()  # deeds whose state is asked for; "" is the whole screen
    question: bool = False  # something that is none of these


def wanted(lexicon: Lexicon, found: tuple[SentencePart, ...]) -> Wanted:
    """Return what the clauses of a message want together."""
    asks, deeds, looks, question = list[str](), list[str](), list[str](), False
    left_alone = _forbidden(lexicon, found)
    for clause, context in in_context(found):
        if clause.mood not in _WANTING:
            continue
        mine = _asked(lexicon, clause)
        directed = _Directed() if mine else _on_device(lexicon, clause, context)
        asks += [slot for slot in mine if slot not in asks]
        deeds += [name for name in directed.deeds if name not in deeds and name not in left_alone]
        looks += [name for name in directed.looks if name not in looks]
        if mine or directed.deeds or directed.looks:
            continue
        question = (
            question
            or clause.mood is Mood.QUESTION
            or (clause.mood is Mood.REQUEST and (clause.asked or _WANTS.search(clause.text) is not None))
        )
        if not deeds and clause.mood is Mood.REQUEST and _DO_SO.search(clause.text):
            deeds += [deed.name for deed, match in lexicon.ordered(context) if match.named]
            question = question and not deeds
    return Wanted(tuple(asks), tuple(deeds), tuple(looks), question)


def _asked(lexicon: Lexicon, clause: SentencePart) -> tuple[str, ...]:
    """The slots that a clause asks for."""
    if clause.mood in (Mood.STATEMENT, Mood.OFFER, Mood.CONFIRM) and not _elliptical(clause):
        return ()
    if _OWNS.match(clause.text):
        return ()
    slots = [slot for slot, words in lexicon.asked.items() if mentions(words, clause.stems)]
    if slots and (_GIVE.search(clause.text) or clause.asked):
        return tuple(slots)
    return lexicon.identity if lexicon.identity and _ABOUT_ME.search(clause.text) else ()


def _elliptical(clause: SentencePart) -> bool:
    """A few words that ask for something: "your pin, please", "and the zip code"; or a confirmation of data."""
    if clause.mood is Mood.CONFIRM:
        return _CONFIRM_DATA.search(clause.text) is not None
    if clause.mood is not Mood.STATEMENT or _WHOLE.search(clause.text):
        return False
    return len(clause.stems.split()) <= 6


class _Directed(NamedTuple):
    deeds: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()


def _on_device(lexicon: Lexicon, clause: SentencePart, context: str) -> _Directed:
    """Return what the user shall do with a device, and what they are asked about it."""
    text = clause.text
    if (
        not lexicon.deeds
        or _offers(lexicon, clause)
        or (clause.mood in (Mood.OFFER, Mood.STATEMENT, Mood.CONFIRM) and not clause.asked)
        or _BY_SPEAKER.search(text)
        or _UNSEEN.match(text)
    ):
        return _Directed()
    asks_state = clause.mood is Mood.QUESTION and _STATE.match(text) is not None
    about = _about(lexicon, clause.stems)
    if asks_state and not about and _POINTS.search(text):
        about = _about(lexicon, context)
    if clause.mood in (Mood.QUESTION, Mood.CONFIRM):
        asks_state = asks_state or (clause.asked and _SO_FAR.search(text) is not None)
        return _looked_at(lexicon, clause, about, asks_state)
    if _IDLE.match(text):
        return _Directed()
    found = [
        (match.place, deed.name) for deed, match in lexicon.ordered(clause.stems, context) if match.named
    ]
    if found:
        return _Directed(tuple(name for _, name in sorted(found)))
    alone = [deed.name for deed, _ in lexicon.ordered(clause.stems)]
    if len(alone) == 1 and clause.mood is Mood.REQUEST and _ALONE.match(text):
        return _Directed((alone[0],))
    return _Directed((lexicon.deeds[0].name,) if mentions(_SHOW, clause.stems) or about else ())


def _about(lexicon: Lexicon, stemmed: str) -> list[SpokenDeed]:
    """The deeds whose things are spoken of."""
    return [deed for deed in lexicon.deeds if deed.concept.nouns and mentions(deed.concept.nouns, stemmed)]


def _looked_at(
    lexicon: Lexicon, clause: SentencePart, about: list[SpokenDeed], asks_state: bool
) -> _Directed:
    """Return what a question about the device is about."""
    doing = [
        deed
        for deed, match in (lexicon.ordered(clause.stems) if asks_state else ())
        if match.named or (deed.concept.nouns and _PAID.search(clause.text))
    ]
    names = tuple(deed.name for deed in about or doing)
    return _Directed(looks=names or (("",) if mentions(_SHOW, clause.stems) else ()))


def _offers(lexicon: Lexicon, clause: SentencePart) -> bool:
    """Say whether a clause is about something that the speaker would do, not the user."""
    if clause.mood not in (Mood.OFFER, Mood.CONFIRM) and not _MINE.search(clause.text):
        return False
    return any(match.named for match in lexicon.spoken(clause.stems).values())


def directing(lexicon: Lexicon, clause: SentencePart) -> SentencePart:
    """The same, as a request where it says what the listener is to do with a device, in whatever mood it seemed to be."""
    if clause.mood not in (Mood.STATEMENT, Mood.OFFER, Mood.HOLD) or clause.asked:
        return clause
    if _BY_ME.search(clause.text) or says_done(clause.text) or _IF_IT.match(clause.text):
        return clause
    named = [deed for deed, match in lexicon.ordered(clause.stems) if match.named]
    ordered = any(_ordered(deed.concept.verbs).search(clause.text) for deed in named)
    if ordered or (named and _NEEDED.search(clause.text)):
        return clause._replace(mood=Mood.REQUEST)
    return clause


@functools.cache
def _ordered(verbs: str) -> re.Pattern[str]:
    """An imperative of one of the verbs: at the beginning, or after "and", "then" and the like."""
    said = "|".join(sorted({way.split()[0] for way in verbs.split("|")}, key=len, reverse=True))
    return re.compile(
        rf"(?:^|[,:] ?|\b(?:and|then|please|just|now|first|next|go|you to|time to|is to) )(?:{said})\b(?! (?:is|was|are|has)\b)"
    )


def _forbidden(lexicon: Lexicon, found: tuple[SentencePart, ...]) -> frozenset[str]:
    """The deeds that the listener is told to leave alone."""
    return frozenset(
        deed.name
        for clause, context in in_context(found)
        if clause.mood is Mood.FORBID
        for deed, match in lexicon.ordered(clause.stems, context)
        if match.named
    )
