"""Meaning of an agent's words to the user: a question, a refusal, an announcement, or a report.

Courtesy and announcements cost nothing. Whoever says that it is done is taken at their word, and whoever says neither that
nor that it cannot be done is asked. Whether a report tells the answer is for :mod:`turnwise.envs.functioncall.answers`.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Mapping

from turnwise.envs.functioncall.vocabulary import call_words
from turnwise.tasks.core import Json

_MOST_KINDS = 8  # of values that one question may name; who names more has not noticed which is missing
_STEM = 5
_NO_THING = frozenset(
    [
        "about", "another", "before", "better", "certain", "could", "different", "other", "right", "shall", "should", "somebody",
        "someone", "something", "suits", "their", "there", "these", "those", "usual", "where", "which", "whose", "would",
    ]
)  # fmt: skip
_TOOLS = (
    r"(?:tool|function|api|access|abilit|capabilit|permission|feature|command|interface|means|method|toolset|option|way|power|"
    r"possibilit|authori)\w*(?! (?:error|problem|issue|trouble))"
)
_DECLINES = re.compile(
    # inability
    r"\b(?:can(?:no|['’]?)t|can not|could(?:n['’]t| not)|unable|incapable|not able|won['’]?t be able|impossible|powerless)\b|"
    r"\b(?:do(?:es)?|did|have|has|is|are|am|was|could|will|would|['’](?:m|re|s))(?: ?n['’]?t| not) (?:\w+ ){0,3}?"
    r"(?:have(?! to\b)|possible|available|supported|offered|able|support|allow|offer|provide|include|let|do|exist|find|equipped|capable|"
    r"cover|handle|permit|authori[sz]ed|designed|built|meant|implemented|enabled|doable|feasible|set up|cut out|up to me|"
    r"in a position|part of|among|within|in my|for me|know how|know of|see (?:a|any|how)|got)\w*|"
    r"\bnot (?:possible|available|supported|something|allowed|permitted|feasible|doable|a thing|(?:with)?in my|among|part of)\b|"
    r"n['’]t (?:something|anything|a thing|one of|part of|within|in my)\b|\bno idea how\b|"
    # what is lacking
    rf"\b(?:no|without(?: an?| any| the)?|(?:lack|miss)(?:s|es|ing)?(?: an?| any| the)?|needs? (?:an?other|a different)|"
    rf"nor any)\s+(?:(?!(?:error|problem|issue|trouble|from|with|of|in|at|for|to|by|was|were|is)s?\b)[\w-]+ ){{0,3}}?"
    rf"{_TOOLS}\b|\b(?:lack|miss)(?:s|es|ing)? (?:a|the|any)\b|"
    r"\bnone of (?:my|the|these|those|them|what)\b|\bnothing (?:that|here|which|to|in my|i (?:have|can|could))\b|\bno can do\b|\bhands are tied\b|\bno such\b|"
    # what is out of scope
    r"\b(?:beyond|outside|out) (?:of )?(?:my|me|what|the (?:scope|range|reach|limits|bounds|remit)|scope|reach|range)\b|"
    r"\bout of (?:my|our) \w+|\bexceeds? (?:my|what)\b|\boutwith\b|\bnot my (?:job|place|department|task)\b|"
    r"\bun(?:supported|available|implemented|feasible)\b|"
    r"\b(?:can|could|may|able to|allowed to|know how to) only\b|\b(?:limited|restricted|confined) to\b|"
    rf"\bonly (?:(?:have|got|offered|given|been given|provided with|equipped with) (?:\w+ ){{0,2}}{_TOOLS}\b|(?:able|allowed|equipped) to)|"
    # what is refused
    r"\bdecline\b|\b(?:must|have to|need to|going to have to) (?:refuse|decline|pass|say no|turn)\b|\bpass on (?:this|that|it)\b|"
    r"\b(?:ask|find|try|turn to|contact) (?:some(?:one|body)|anyone) else\b|\bof no (?:help|use)\b",
    re.IGNORECASE,
)
_LACKING = r"(?:\b(?:not|no|nothing|none|neither|never|lack\w*|limited|without)\b|n['’]t\b)"
_WITH_WHAT = r"\b(?:tools?|toolset|functions?|functionality|interfaces?|capabilit\w+|remit)\b"
_LACKS = re.compile(
    rf"{_LACKING}[^.;!?\n]{{0,50}}{_WITH_WHAT}|{_WITH_WHAT}[^.;!?\n]{{0,50}}(?:\bonly\b|{_LACKING})",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\?|\b(please (?:tell|give|provide|specify|say|share|clarify|name|let|state|send)|tell me|let me know (?:which|what|who|"
    r"when|where|how|the|to)|i need to know|need (?:the|a|some|to know|more)|could you|can you|would you|may i (?:ask|know)|"
    r"is missing|specify|clarify)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"\b(let me (?!know)|i['’]?ll|i will|will now|i shall|i am (?:going|about) to|i['’]m (?:going|about) to|(?:one|a|just a) "
    r"(?:moment|second|minute|sec)|hold on|bear with|give me a|stand by|"
    r"(?<!after )(?<!by )(?:looking (?:into|up|at|for)|checking)|"
    r"(?:i['’]m |i am )(?:on it|working on)|right away|first,? i(?! (?:found|saw|went|took|\w+ed\b)))\b|\A\W*on it\b",
    re.IGNORECASE,
)
_DOES = re.compile(  # what one is at, or has to do first
    r"(?:\A|[.!?:,\n]) *(?:(?:now|next|first|then),? )?(?:i['’]m |i am )?"
    r"(?!(?:no|any|every|some)thing|morning|evening|miss)[a-z]{3,}ing\b|"
    r"\blet['’]?s\b|\bstep \d|\bi (?:first |now |still )?(?:need|have|want) to (?:first )?(?:find|look|check|see|get|search)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[^,.;:!?\n–—]+(?:[,.](?=\w)[^,.;:!?\n–—]+)*")
_OFFERS = re.compile(
    r"(?:\A|(?<=[.!?;:,\n–—-]))\W{0,4}(?:"
    r"(?:(?:and|so|now|or|is|are|was|there|if|do|can|could|may|shall|should|would|will|you|we|i|need|want|like|have|help|"
    r"assist|with|to|me|be)\b[\s,]*){0,8}(?:(?:any|some)(?:thing|one|body)? (?:else|more|further|other)|what else can i)|"
    r"(?:how )?(?:does|did|is|was) (?:that|this|it) (?:help|all|what you|ok|okay|alright|fine|good|right|correct|sound|look)|"
    r"(?:i['’]?ll|i will) (?:be|remain|stay) (?:here|around|available|at your|happy to help|glad to help)"
    r")\b[^.!?\n]*[.!?]*",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\W*(?:(?:hi|hello|hey|sure|certainly|of course|okay|ok|alright|all right|good (?:morning|afternoon|evening|day)|"
    r"thanks|thank you|understood|got it|gladly|no problem|absolutely|(?:i(?:['’]m| am) )?happy to help|i understand|"
    r"with pleasure|welcome|my pleasure|i see|i['’]m sorry to hear that|sorry to hear that|i can help(?: you)? with that|"
    r"very well|noted)\b[^a-z]*)+",
    re.IGNORECASE,
)
_NO_DEED = (
    r"need|limit|restrict|suppos|allow|tri|look|search|check|regret|consider|examin|want|fear|ask|identif|locat|retriev|review|"
    r"verif|gather|collect|determin|fetch|list|count|calculat|comput|compar|notic|learn|discover|obtain|receiv|inspect|scann|expir|fail"
)
_NEGATED = r"(?!(?:\w+ ){0,2}?(?:not|never|no|nothing)\b)"
_DEEDS = re.compile(
    r"\b(?:done|finished|completed?|all set|in place|taken care of|sorted|success\w*|settled|accomplished|all good|ready)\b|"
    rf"\b(?:i|we)(?:['’]ve| have| had|['’]d)?\b{_NEGATED} (?:(?:now|just|already|also|successfully|then) )*"
    rf"(?:(?!{_NO_DEED})\w+ed|sent|made|put|set|"
    r"took|taken|gave|given|wrote|written|bought|sold|did|got rid|paid|told)\b|"
    rf"\b(?:has|have|was|were)\b{_NEGATED} (?:(?:now|just|already|also|both|all) )*(?:been )?(?!{_NO_DEED})"
    r"(?:\w+ed|sent|made|put|set|taken|given|written|bought|sold|done|paid)\b|"
    rf"\A\W*(?:(?:all|successfully|also) )?(?!{_NO_DEED})\w{{2,}}ed\b|"
    rf"\b(?:is|are)\b{_NEGATED} now\b|\bnow (?:is|are|has|have|set to)\b",
    re.IGNORECASE,
)
_VALUES = re.compile(
    r"(?:\b(?:is|are|has|have|was|were|of|to|answer|result|value|total)|['’]s|[:=])\s*[\"'“$€£]?\d|\d\W*\Z|"
    r"\b(?:answer|result|value) is\b",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|right|correct|exactly|indeed|precisely|true|i do|i['’]m afraid so|i am afraid so|afraid so|sadly|"
    r"unfortunately|regrettably|that['’]?s (?:right|so|correct|it|true|what i mean)|that is (?:right|so|correct|it|true|what i mean))\b",
    re.IGNORECASE,
)


class WordsMeaning(enum.Enum):
    """Meanings of a message."""

    ASKS = enum.auto()
    DECLINES = enum.auto()
    ANNOUNCES = enum.auto()
    REPORTS = enum.auto()
    UNSURE = enum.auto()  # neither clearly a report nor clearly anything else


@functools.lru_cache(maxsize=8192)
def without_offers(text: str) -> str:
    """A message without offers of further help, which ask for nothing; it stays as it is if it is nothing else.

    >>> without_offers("It is done. Is there anything else?"), without_offers("Anything else?")
    ('It is done.', 'Anything else?')
    """
    rest = _OFFERS.sub("", text)
    return rest if any(map(str.isalnum, rest)) else text


@functools.lru_cache(maxsize=8192)
def settled(text: str) -> str:
    """Return what a message says after the last clause that only announces; what is said in one is still to
    be found out.

    >>> settled("Looking at the list, there are 4."), settled("I see 8, let me count."), settled("It is 4.")
    (', there are 4.', '.', 'It is 4.')
    """
    if not _ANNOUNCES.search(text):
        return text
    ends = [clause.end() for clause in _CLAUSE.finditer(text) if _ANNOUNCES.search(clause[0])]
    return text[max(ends, default=0) :]


@functools.lru_cache(maxsize=8192)
def meaning(text: str) -> WordsMeaning:
    """Return the meaning of a message.

    >>> [meaning(text).name for text in ("I'm afraid I can't.", "Which day?", "One moment please.", "Done!", "Sure!", "Hm.")]
    ['DECLINES', 'ASKS', 'ANNOUNCES', 'REPORTS', 'ANNOUNCES', 'UNSURE']
    """
    if _DECLINES.search(text):
        return WordsMeaning.DECLINES
    if _ASKS.search(text):
        return WordsMeaning.ASKS
    reports = _DEEDS.search(text) is not None
    if not reports and _LACKS.search(text):
        return WordsMeaning.DECLINES
    if _ANNOUNCES.search(text) or _COURTESY.fullmatch(text):
        return WordsMeaning.ANNOUNCES
    if reports or _VALUES.search(text):
        return WordsMeaning.REPORTS
    return WordsMeaning.ANNOUNCES if _DOES.search(text) else WordsMeaning.UNSURE


def agrees(text: str) -> bool:
    """Say whether a message says yes.

    >>> [agrees(text) for text in ("Yes.", "That's right, sorry.", "No.")]
    [True, True, False]
    """
    return _AGREES.match(text) is not None


def asks_for(text: str, ask: Mapping[str, Json], about: str = "") -> bool:
    """Say whether a question names what is missing, in its own words or those of its description, and not
    just everything."""
    plain = _plain(text)
    words = f" {plain} "
    kinds = sum(any(f" {word} " in words for word in named) for named in call_words().asked.values())
    if kinds > _MOST_KINDS:
        return False
    if any(f" {_plain(word)} " in words for word in ask["words"]):
        return True
    said = [
        way
        for kind, named in call_words().asked.items()
        if {*named} <= {*ask["words"]}
        for way in call_words().vague[kind]
    ]
    described = " ".join((re.split(r"[;,.]", about)[0], *ask["words"], *said))
    return not _stems(plain).isdisjoint(_stems(_plain(described)))


def _stems(plain: str) -> set[str]:
    """The beginnings of the longer words, so that "wrapped" is the same as "wrapping"."""
    return {word[:_STEM] for word in plain.split() if len(word) >= _STEM and word not in _NO_THING}


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower().replace("_", " ")).split())
