"""Reports and refusals: a clause tells that the matter cannot be done, that it is done, or that it is still
going on."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from turnwise.envs.toolworld.speech.denying import CANNOT, CANNOT_DO, FINAL, INDIRECT, MEANT, POINTS, SURELY
from turnwise.envs.toolworld.speech.lexicon import Lexicon
from turnwise.envs.toolworld.speech.moods import Mood, SentencePart
from turnwise.envs.toolworld.speech.ways import Alternation, GuardedPattern

Sureness: TypeAlias = Literal["", "unclear", "clear"]
"""Of a refusal."""

_SEES = GuardedPattern(
    r"(?:not|unable to)(?: be)?(?: able to)?(?: \w+ly| currently| yet| quite)? (?:find|found|see|seen|locate|access|open|hear|tell|verify|verified|understand|reach|read|look|identify|connect|seem|imagine|cost|charge|hurt|owe|lose|affect|matter|be charged|"
    r"guarantee|promise|thank|wait|know|sure|certain|be (?:undone|reversed|reinstated|taken back|restored|revoked)|undo|receive|pull|retrieve|get through|need|want|mean|worry|work|load|recogni[sz]e|catch|follow|match|have|show|on file|there|registered|responding|correct|the case|a problem)\b"
)
_OF_NO_USE = re.compile(r"^\w+ing (?:it|that|this|them|your|the)\b.* (?:will|would|does|do|can|could) not\b")
"""That something helps nothing is no refusal."""
_SUPPOSED = re.compile(
    r"(?:if|had|were|should|suppose|supposing|imagine|say)\b(?!.*\b(?:but|and (?:it|that|yours) (?:is|was|has))\b).*\b(?:would|could|might|had|were|was)\b"
)
"""Supposition of what would be, but is not told to be."""
_UNTIL = GuardedPattern(
    r"\b(?:if|until|unless|without (?:your|a|the|first|verif\w+|knowing|confirm\w+)|before (?:you|i|we|that|verif\w+)|yet|right now|at the moment|if you|as long as|otherwise|so far|once|after|as soon|when)\b"
)
_DONE = Alternation(
    r"^(?:all )?done\b|\ball (?:set|done|sorted|finished|good now)\b|\b(?:is|are|was|has been|have been|now|been) (?:now |all |successfully |already )?(?:live|yours|gone|on (?:its|their) way|up and running|history|saved|stored|done|complete[d]?|finished|taken care of|sorted|processed|in place|active|settled|confirmed|successful|updated|fixed|repaired|resolved)\b|"
    r"\bsuccessfully\b|\b(?:went|gone) through\b|\b(?:i|we) have (?:now |just |also |successfully |gone ahead and |already )*(?!verified|found|checked|looked|located|reviewed|identified|received|noted|pulled|seen|read|confirmed|opened|searched|looked)\w+(?:ed|en|t|de|ut|one)\b|"
    r"^(?:i|we) (?:just |have )?(?:cancel|chang|add|mov|upgrad|return|exchang|issu|book|renam|resum|activat|enabl|allow|updat|process|refund|correct|switch|restor)\w*ed\b|(?<!\byou )\bhave been\b|\bhas been\b|\b(?:is|are) now\b|"
    r"\b(?:you are|you will) (?:now )?(?:on|booked|getting|receive|be refunded|get|confirmed)\b|\byou (?:now )?have\b|^(?:here|there) (?:is|are) (?:your )?confirmation\b|\b(?:is|are|was|were) (?:cancelled|canceled|changed|moved|upgraded|added|returned|exchanged|issued|booked|renamed|resumed|restored|enabled|allowed|recorded|refunded|corrected|updated|shared|sent|liked|moved|declined|paid|pinned|deleted)\b|"
    r"^(?:fixed|cancelled|canceled|changed|updated|added|resolved|completed|finished|booked|issued|sent|sorted)\b|\bthat is it\b"
)
_CHECKED = GuardedPattern(
    r"\b(?:when|once|if|after|until|as soon as) (?:you|it|that|this)\b|\b(?:identity|verif\w+|your details|(?:found|located|checked|looked|reviewed|identified|noted|received|pulled|confirmed your|sent you|opened))\b"
)
_FUTURE = re.compile(
    r"\b(?:will|would|can|could|shall|may|might|going to|should|about to|let me|to be|want|like)\b"
)
_FAILED = GuardedPattern(
    r"\b(?:did|has|have) not (?:yet )?(?:go|gone|work|worked|succeed|succeeded)\b|\bfail(?:ed|s|ure)?\b|\berror\b|\bwent wrong\b|\b(?:try|trying) (?:that |it |this )?(?:again|once more)\b|\bnot yet\b"
)
_GOING_ON = GuardedPattern(
    r"\b(?:now|next|then|still|remaining|rest|others?|second|third|last one)\b.*\b(?:i|we) (?:will|am going to|need to|have to|can|am)\b|\b(?:i|we) (?:will|am going to|need to|have to|am)\b.*\b(?:now|next|then|remaining|rest|others?|second|third|last one)\b|^(?:now|next)\b.*\b(?:second|third|next|other|remaining|last)\b"
)


_REPORTING = (Mood.STATEMENT, Mood.OFFER, Mood.REQUEST, Mood.COURTESY, Mood.HOLD)
_TURNED_DOWN = re.compile(
    r"\b(?:i|we) (?:have )?(?:now |just |also )?(?:declined|refused|rejected|turned down)\b|\b(?:has|have) (?:now |all |both )?been (?:declined|refused|rejected|turned down|terminated)\b|"
    r"\b(?:is|are) (?:now |all |both )?(?:declined|refused|rejected|turned down)\b"
)
"""That something was turned down, which may be what the listener asked for."""


class Told(NamedTuple):
    """Report of a message."""

    done: bool = False
    claims: bool = False  # that a change of the domain is done
    actions: frozenset[str] = frozenset()  # that are named as done


def told(lexicon: Lexicon, found: tuple[SentencePart, ...]) -> Told:
    """Return what the clauses of a message report together."""
    reporting = [
        clause
        for clause in found
        if (clause.mood in _REPORTING and _reports(clause))
        or (clause.mood is Mood.REFUSAL and _TURNED_DOWN.search(clause.text))
    ]
    spoken = [lexicon.spoken(clause.stems) for clause in reporting]
    claims = any(len(clause.text.split()) < 4 for clause in reporting) or any(spoken)
    done = (name for one in spoken for name, match in one.items() if match.named and not match.light)
    return Told(bool(reporting), claims, frozenset(done))


_ASKING = (Mood.CONFIRM, Mood.QUESTION, Mood.CLOSING)


class Denied(NamedTuple):
    """Refusal of a message: how surely, and what it speaks of in doing so."""

    sure: Sureness = ""
    actions: frozenset[str] = frozenset()
    points: bool = False  # to whatever was asked for: "I can't do that"


def refusal_of(lexicon: Lexicon, found: tuple[SentencePart, ...]) -> Denied:
    """Return what a message refuses, and how surely."""
    sure = [(sureness(lexicon, clause), clause) for clause in found if clause.mood is Mood.REFUSAL]
    clear = [clause for how, clause in sure if how == "clear"]
    if not clear:
        hinted = any(clause.mood not in _ASKING and INDIRECT.search(clause.text) for clause in found)
        return Denied("unclear" if hinted or any(how for how, _ in sure) else "")
    spoken = (lexicon.spoken(clause.stems).keys() | lexicon.things(clause.stems) for clause in clear)
    points = any(POINTS.search(clause.text) for clause in clear)
    return Denied("clear", frozenset[str]().union(*spoken), points)


def says_done(text: str) -> bool:
    """Say whether a clause has words for what is done."""
    return _DONE.search(text)


def is_settled(text: str) -> bool:
    """Say whether a clause depends on nothing that is still to come."""
    return _UNTIL.search(text) is None


def sureness(lexicon: Lexicon, clause: SentencePart) -> Sureness:
    """Return how surely a clause that denies something refuses what the user wants."""
    text = clause.text
    if _SEES.search(text) or _OF_NO_USE.match(text) or _SUPPOSED.match(text):
        return ""
    act = CANNOT.search(text) is not None and bool(lexicon.spoken(clause.stems))
    if FINAL.search(text) or act:
        sure = MEANT.search(text) and SURELY.search(text) and not _UNTIL.search(text)
        return "clear" if sure else "unclear"
    return "" if _UNTIL.search(text) or not CANNOT_DO.search(text) else "unclear"


def _reports(clause: SentencePart) -> bool:
    """Say whether a clause says that something is done."""
    if not _DONE.search(clause.text) or _CHECKED.search(clause.text):
        return False
    return clause.mood is Mood.STATEMENT or _FUTURE.search(clause.text) is None


def goes_on(found: tuple[SentencePart, ...]) -> bool:
    """Say whether speakers are still at it: they ask to wait, say what they do next, or that something
    failed."""
    return any(
        clause.mood is Mood.HOLD
        or _FAILED.search(clause.text) is not None
        or _GOING_ON.search(clause.text) is not None
        for clause in found
    )
