"""Reading of a message as a user of a domain understands it: what it asks, offers, refuses and reports.

Most messages differ from an earlier one in their numbers alone, and mean the same but for what they name. So a message
is read by its shape, once, and only ids, dates and amounts are looked for in each.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from turnwise.envs.toolworld.speech.asking import directing, wanted
from turnwise.envs.toolworld.speech.lexicon import Lexicon
from turnwise.envs.toolworld.speech.moods import Mood, clauses
from turnwise.envs.toolworld.speech.proposing import (
    Proposal,
    foreign,
    offering,
    plans,
    proposal_of,
    to_be_changed,
)
from turnwise.envs.toolworld.speech.strange import deeds_of
from turnwise.envs.toolworld.speech.telling import Sureness, goes_on, refusal_of, told
from turnwise.envs.toolworld.speech.values import named
from turnwise.envs.toolworld.speech.ways import SIEVE, GuardedPattern
from turnwise.envs.toolworld.speech.words import stems

LONGEST = 4000
"""Characters that a user listens to."""

_TRY = GuardedPattern(
    r"\btr(?:y|ied|ying)\b.*\b(?:again|now|once more|it|internet|data|page|website|browsing|loading|app)\b|\b(?:does|is|do) (?:it|the data|your (?:data|internet|mobile data|connection)|mobile data|everything|that|the internet|things?)(?: \w+)? ?(?:work|working|better|back|load|loading|fixed|resolved)\b|\bspeed test\b|\bopen (?:a|any|some) (?:web ?)?(?:page|site|app)|\bshould (?:now )?(?:work|be (?:working|fixed|back))\b|\bworks? (?:now|again)\b|\bcan you (?:get|go|browse|load|access|use)\b.*\b(?:online|internet|data|page)\b|\b(?:do|does|is|are|can) (?:your|the|somebody|someone|people|your friends|it) (?:phone|calls?|pictures?|messages?|hotspot|laptop|tablet|connection|reach|speed)?.*\b(?:now|again|through|faster|sent)\b|\b(?:go|shot|try|crack|stab) at (?:load|open|brows|surf|visit)\w*|\bload(?:ing)? (?:something|anything)\b|\bis (?:it|the internet|your \w+) (?:alive|running|up|flowing|there|awake)\b|\b(?:back )?online again\b|\bare you (?:back )?online\b|\b(?:come|came|is it|are you) back(?: to life| on| online| up)?\b|\bany (?:luck|better|change|difference|improvement)\b|\bup and running\b|\b(?:load|visit|browse|pull up) (?:a|any|some|your) (?:web ?)?(?:page|site|website|app)|\b(?:if|whether) (?:it|that|the \w+|everything) (?:works|loads|opens|goes through)\b|\bworking (?:now|again)\b|^(?:so |and |then )*(?:is|are|do|does|can) (?:you|it|pages|web ?pages|the (?:pages|internet|data|connection|web)|sites|websites|apps|things|anything|everything|your \w+)(?: \w+)? (?:load|open|surf|brows|behav|respond|work|com|get)\w*|\bhow (?:is|are|does) (?:the|your) (?:internet|data|connection|phone|signal|mobile data|browsing)\b.*\b(?:now|behav\w*|look\w*|do\w*)\b|\brepaired\b|\bfixed\b|\bresolved\b"
)
_ABSURD = GuardedPattern(
    r"\b(?:strangers?|for my own|my own (?:use|account|pocket|benefit)|my (?:cousin|friend|brother|sister|wife|husband|boss|uncle|dog|cat)|steal|minus \$|minus \d|in cash|bitcoin|gift cards? to me|"
    r"somebody else|someone else|delete your (?:account|whole)|burn|throw|donate|last (?:week|month|year)|yesterday|everything you (?:own|have|possess)|the moon|mars|twice for|twice the (?:price|fare|amount)|double the (?:price|fare|amount)|the cargo hold|the trunk|the river|empty box|the ashes|(?:keep|pocket) (?:the|your|all the) money|charge you [^,.;?!]*\banyway|telemarketers?|a bill|bill you|for the trouble|away from you|for ever|forever)\b"
)
_WORD = re.compile(r"\w{2,}")
SIEVE.close()  # what is read here has all patterns of the others


def _is_absurd(lexicon: Lexicon, text: str) -> bool:
    """Say whether nobody agrees to what a text says; what the domain can do is a service (an account is
    closed in some)."""
    found = _ABSURD.search(text.lower())
    return found is not None and not any(match.named for match in lexicon.spoken(stems(found[0])).values())


class Heard(NamedTuple):
    """A message as understood; everything may be empty."""

    asks: tuple[str, ...] = ()  # slots
    deeds: tuple[str, ...] = ()  # that the user shall do, in order
    looks: tuple[str, ...] = ()  # deeds whose state is asked for; "" is the whole screen
    forbids: bool = False
    proposal: Proposal = Proposal()
    consent: bool = False
    asked: bool = False  # the consent was asked for, not taken for granted
    absurd: bool = False  # nobody in their senses agrees to it
    refusal: Sureness = ""
    denied: frozenset[str] = frozenset()  # actions of which a clear refusal speaks
    denies_all: bool = False  # it is about whatever was asked for
    done: bool = False
    claims: bool = False  # that a change of the domain is done
    closing: bool = False
    question: bool = False  # asks something that is not known
    queries: bool = False  # there is a question mark
    tries: bool = False  # wants it tried again
    stated: bool = False  # tells something
    going_on: bool = False  # is not finished with it: asks to wait, did not succeed, will do the rest
    offers: bool = False  # says what the speaker can or would do
    foreign: bool = False  # that is something which nobody asked for
    verbs: frozenset[str] = (
        frozenset()
    )  # of what they would do in particular, where a yes is asked for, as stems
    text: str = ""
    told: frozenset[str] = frozenset()  # actions that are reported as done
    hold: bool = False
    courtesy: bool = False


@functools.lru_cache(maxsize=16384)
def understand(lexicon: Lexicon, text: str) -> Heard:
    """Read a message as a user does."""
    text = text[:LONGEST]
    heard = _by_shape(lexicon, lexicon.shape_of(text))
    given = named(to_be_changed(text), lexicon.patterns)
    return heard._replace(
        text=text,
        proposal=heard.proposal._replace(named=given),
        stated=heard.stated or len({*_WORD.findall(text)}) > 1,
    )


@functools.lru_cache(maxsize=16384)
def _by_shape(lexicon: Lexicon, text: str) -> Heard:
    """Read what is the same for all messages of a shape: all but what they name."""
    found = tuple(offering(lexicon, clause) for clause in clauses(text))
    if lexicon.deeds and all(clause.mood is not Mood.CONFIRM for clause in found):
        found = tuple(directing(lexicon, clause) for clause in found)
    moods = {clause.mood for clause in found}
    want, report = wanted(lexicon, found), told(lexicon, found)
    refusal, denied, points = refusal_of(lexicon, found)
    if refusal == "clear" and (want.asks or want.deeds or moods & {Mood.FORBID, Mood.HOLD, Mood.CONFIRM}):
        refusal = "unclear"  # whoever goes on with it has refused nothing yet
    proposal = proposal_of(lexicon, found, text)
    asked = Mood.CONFIRM in moods or any(clause.mood is Mood.OFFER and clause.asked for clause in found)
    consent = asked or (not report.done and bool(proposal.actions - proposal.bare) and plans(found))
    weighed = found if consent or want.looks else ()
    return Heard(
        asks=want.asks, deeds=want.deeds, looks=want.looks, question=want.question, forbids=Mood.FORBID in moods,
        proposal=proposal, consent=consent, asked=asked, absurd=_is_absurd(lexicon, text), refusal=refusal, denied=denied, denies_all=points,
        done=report.done, claims=report.claims, told=report.actions, closing=Mood.CLOSING in moods, queries="?" in text,
        tries=any(clause.mood is not Mood.FORBID and _TRY.search(clause.text) is not None for clause in found),
        stated=len({*_WORD.findall(text)}) > 1, going_on=goes_on(found), offers=Mood.OFFER in moods,
        foreign=any(foreign(lexicon, clause) for clause in weighed),
        verbs=frozenset[str]().union(*(deeds_of(clause.text) for clause in weighed)),
        hold=Mood.HOLD in moods, courtesy=Mood.COURTESY in moods,
    )  # fmt: skip
