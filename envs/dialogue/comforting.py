"""Meaning of a message to somebody who is low: one act, the main one, and the feeling that it names.

Acts are read from phrases of several words, sentence by sentence; the one that takes up most of the message is its act. Where
there is no such phrase, the words of the language game tell, if they are of one act alone. In the suites in full text they must
stand in a sentence; in the compact ones they need not, for models that learn within minutes. Denials are read in both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.dialogue.actions import denied, is_question, plain, sentences
from turnwise.envs.dialogue.scorn import scorns
from turnwise.envs.dialogue.vocabulary import (
    COMFORTING_ACTS,
    COMFORTING_DENIALS,
    COMFORTING_INVITES,
    COMFORTING_PHRASES,
    FEELING_PHRASES,
    FEELINGS,
    NOTHING_SAID,
    word_set,
)

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+")
_PHRASES = {act: re.compile("|".join(phrases)) for act, phrases in COMFORTING_PHRASES.items()}
_DENIALS = {act: re.compile(phrases) for act, phrases in COMFORTING_DENIALS.items()}
_FEELINGS = {
    feeling: re.compile(rf"\b(?:{words}|{'|'.join(sorted(FEELINGS[feeling] - {'shame'}))})\b")
    for feeling, words in FEELING_PHRASES.items()
}
_WORST = ("belittle", "joke")
_INVITES = re.compile("|".join(COMFORTING_INVITES))
_OPEN = re.compile(r"(?:so |and |but |well |then |hey |oh |, )*(?:what|which|why|how|where|who|when)\b")
_PROPOSES = re.compile(
    r"what if\b|how about\b|what about (?!it\b|this\b|that\b)|why not\b|why don't (?:you|we)\b|how would it be"
)
_REFLECTS = re.compile(
    r"(?:so |and |oh |well |wow |yes |ok |okay |, )*(?:(?:it |this |that )?(?:sounds|seems|looks"
    r"|feels) (?:to me )?(?:like|as if|as though) (?:you|it|this|that|he|she|they|your)\b"
    r"|i (?:can )?(?:tell|see|hear|sense|imagine) (?:that |how |why |you |it )|you(?:'re| are)? feel(?:ing)?\b)"
)
_SEEMS = re.compile(r"\byou(?:'re feeling| (?:sound|seem|feel|look|are feeling|must))\b")
_OWNER = re.compile(
    r"\b(?:i|i'm|i'd|i've|you|you're|your|you've|he|she|they|we|it|it's|that|that's|this|things|\w+body|everyone|anyone|people|most|who)\b"
)
_OF_YOU = frozenset(["you", "you're", "your", "you've"])
_OF_IT = frozenset(["it", "it's", "that", "that's", "this", "things"])
_PREFACE = re.compile(
    r"(?:oh|no|,|\s)*(?:(?:i'm|i am) )?(?:(?:so|very|really|truly) )*sorry(?: to hear (?:that|this|it))?\W*$|i (?:see|understand|hear you)\W*$"
)
"""Words that people say before what they have to say."""

_SENSED = re.compile(r"\bi (?:can )?(?:sense|hear|see|feel|notice) (?:\w+ ){0,4}$")
_ADDRESSED = re.compile(r" you (?:are|feel|must|sound|look|seem|have)\b| you\W*$| (?:in|inside|within) you\b")
_TO_BE = re.compile(r"\b(?:to|if you) (?:be|feel) (?:\w+ly |so )?$")
_DEGREE = re.compile(r"(?:that|this|so|very|quite|really) $")
_GLUE = word_set(
    "i you he she it we they me you him her us them my your his its our their this that these those the a an some any all one "
    "am is are was were be been being do does did have has had can may might must will would shall to of in on at by for with about "
    "thats its im youre dont ive cant youve whats from as into and or but if because so not no than then there here let just very "
    "really even too up out off over through "
    "feel feels sound sounds seem seems go get make makes take give want need know think like"
)
_ASKING = COMFORTING_ACTS["ask"]
_KEYS = frozenset[str]().union(
    COMFORTING_ACTS,
    *(words for act, words in COMFORTING_ACTS.items() if act != "ask"),
    FEELINGS,
    *FEELINGS.values(),
)


class ComfortingAct(NamedTuple):
    """Act of a message, and the feeling that it names.

    ``act`` is ask, name, hear, advise, praise, reframe, joke or belittle; or silence (as good as nothing was said), words (key words
    without a sentence), listing (of several feelings or acts none is meant), other (a sentence that none of these fits).
    """

    act: str
    feeling: str = ""  # the one that is named, where the act is to name or to hear


def read_act(text: str, *, small: bool) -> ComfortingAct:
    """The main act of a message; ``small`` is the language of the compact suites, which needs no sentences.

    >>> read_act("You must be furious.", small=False)
    ComfortingAct(act='hear', feeling='angry')
    >>> read_act("sorry strong what", small=False).act, read_act("You are not angry.", small=False).act
    ('words', 'other')
    """
    text = plain(text)
    words = _WORD.findall(text)
    if len(words) < 2 or all(word in NOTHING_SAID for word in words):
        return ComfortingAct("silence")
    if not small and _is_list(words):
        return ComfortingAct("words")
    said = [(sentence, _act_of(sentence)) for sentence in sentences(text)]
    acts = [act for _, act in said]
    for worst in _WORST:
        if worst in acts:
            return ComfortingAct(worst)
    feelings = {feeling for sentence, _ in said for feeling in _named(sentence, small=small)}
    weights: Counter[str] = Counter()
    for sentence, act in said:
        much = 1 if _PREFACE.match(sentence) else len(_WORD.findall(sentence))
        weights["hear" if act == "name" else act] += much
    del weights["other"]
    return _main(text, acts, weights, feelings, small=small)


def _main(
    text: str, acts: Sequence[str], weights: Counter[str], feelings: set[str], *, small: bool
) -> ComfortingAct:
    """The act that takes up most; to name a feeling is no less for a question that follows."""
    feeling = next(iter(feelings), "") if len(feelings) < 2 else ""
    if not weights:
        if len(feelings) > 1:
            return ComfortingAct("listing")
        told = _by_words(text, small=small)
        return (
            ComfortingAct("name", feeling)
            if feeling and told == "other"
            else ComfortingAct("listing" if feeling else told)
        )
    if len({*weights} - {"ask", "hear"}) > 2:
        return ComfortingAct("listing")
    if feeling and set(weights) == {"ask", "hear"}:
        del weights["ask"]
    last = {act: at for at, act in enumerate("hear" if act == "name" else act for act in acts)}
    best = max(weights, key=lambda act: (weights[act], last[act]))
    if best != "hear":
        return ComfortingAct(best)
    if len(feelings) > 1:
        return ComfortingAct("listing")
    return ComfortingAct("hear" if "hear" in acts else "name", feeling)


def _is_list(words: Sequence[str]) -> bool:
    """Say whether these are key words with next to nothing around them.

    >>> _is_list("afraid try view".split()), _is_list("you could try".split()), _is_list("what happened".split())
    (True, False, False)
    """
    if all(word in _ASKING for word in words):
        return "what happened" not in " ".join(words)
    keys = sum(word in _KEYS for word in words)
    glue = sum("'" in word or word in _GLUE for word in words)
    return keys > 0 and (glue == 0 or (keys > 1 and 3 * glue < len(words)))


def _act_of(sentence: str) -> str:
    """The act of one sentence, by its phrases."""
    if scorns(sentence):
        return "belittle"
    for worst in _WORST:
        if _has(worst, sentence):
            return worst
    if _INVITES.search(sentence):
        return "ask"
    asks = is_question(sentence)
    if asks and _OPEN.match(sentence) and not _PROPOSES.search(sentence):
        return "ask"
    for act in ("reframe", "praise"):
        if _has(act, sentence):
            return act
    reflects = _REFLECTS.match(sentence) is not None
    if _has("advise", sentence) and not reflects:
        return "advise"
    if reflects and not _feels(sentence):
        return "hear"
    if _PHRASES["ask"].search(sentence):
        return "ask"
    named = bool(_named(sentence, small=False))
    if _has("hear", sentence):
        return "hear" if named or not asks else "ask"
    return (
        "name"
        if named
        else "ask"
        if asks
        else "hear"
        if _SEEMS.search(sentence) and not _feels(sentence)
        else "other"
    )


def _has(act: str, sentence: str) -> bool:
    """Say whether a phrase of the act is there and not denied; reframing and advice count even when denied."""
    denials = _DENIALS.get(act)
    if denials and any(not denied(sentence, found.start()) for found in denials.finditer(sentence)):
        return True
    if act in ("reframe", "advise"):
        return _PHRASES[act].search(sentence) is not None
    return any(
        not denied(sentence, found.start() + max(found[0].rstrip().rfind(" ") + 1, 0))
        for found in _PHRASES[act].finditer(sentence)
    )


def _feels(sentence: str) -> bool:
    """Say whether a word for a feeling is there at all, denied or not."""
    return any(found.search(sentence) for found in _FEELINGS.values())


def _named(sentence: str, *, small: bool) -> list[str]:
    """The feelings that a sentence says the other has; in the small language a word of it is enough."""
    return [
        feeling
        for feeling, found in _FEELINGS.items()
        if any(
            not denied(sentence, word.start()) and (small or _is_of_the_other(sentence, word))
            for word in found.finditer(sentence)
        )
    ]


def _is_of_the_other(sentence: str, word: re.Match[str]) -> bool:
    """Say whether a feeling is the other's: whoever was spoken of last before it is the other, or what
    troubles it."""
    before, after = sentence[: word.start()], sentence[word.end() :]
    if _ADDRESSED.match(after) or _SENSED.search(before) or _TO_BE.search(before):
        return True
    owners = _OWNER.findall(_DEGREE.sub("", before))
    return bool(owners) and (
        owners[-1] in _OF_YOU or (owners[-1] in _OF_IT and _HARDLY_SAID.search(word[0]) is None)
    )


_HARDLY_SAID = re.compile(r"ed$|^(?:angry|mad|afraid|fear|alone|anger|guilty|tired)$")
"""Words for what a person feels, which no thing is."""


def _by_words(text: str, *, small: bool) -> str:
    """The act that the words of the language game tell, where they are of one act alone; a sentence that asks is known already."""
    acts = [
        act
        for act, family in COMFORTING_ACTS.items()
        if (small or act != "ask") and _says(text, {act, *family})
    ]
    return acts[0] if len(acts) == 1 else "listing" if acts else "other"


def _says(text: str, family: set[str]) -> bool:
    return any(word[0] in family and not denied(text, word.start()) for word in _WORD.finditer(text))
