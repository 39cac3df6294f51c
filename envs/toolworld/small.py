"""The user of the small language, for models that learn within minutes: ``name ?``, ``sure ?``, ``done .``, ``sorry .``

A few key words are its whole grammar, and they are told apart by nothing else. It is a knob (``Domain.compact``): the
same stories, the same state and the same verdict as everywhere.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.mind import UserAnswer, UserState, listen
from turnwise.envs.toolworld.story import Stage, Story

_SENTENCE = re.compile(r"[^.?!\n]*[.?!\n]+|[^.?!\n]+$")
_REQUEST = re.compile(
    r"\?|\b(please (provide|give|share|tell|send|state)|tell me|give me|provide|share|could (you|i)|can you|may i|"
    r"what|which|need your|i need|let me know)\b",
    re.IGNORECASE,
)
_SMALL_TALK = re.compile(r"\b(anything|something) else\b|\bhelp you\b|\bassist you\b", re.IGNORECASE)
_CONSENT = re.compile(
    r"\b(confirm|proceed|go ahead|shall i|should i|may i (?!have)|do you want|would you like|is (that|this|it) "
    r"(ok|okay|right|correct|alright)|are you sure|sure|yes or no|yes/no|do you agree)\b",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(done|cancelled|canceled|changed|updated|complete|completed|processed|booked|sorry|cannot|can't|unable|not "
    r"(able|possible|allowed|eligible)|all set|refund|refunded|fixed|sent|added|returned|exchanged|issued|restored|"
    r"finished|resumed|denied|refuse[ds]?|here (is|are)|anything else|try (it|again|now)|works?|working|costs?|total|"
    r"tell|there (is|are)|you (have|had)|it is|the \w+ is)\b",
    re.IGNORECASE,
)


class _Heard(NamedTuple):
    asks: tuple[str, ...]
    consent: bool
    report: bool


@functools.lru_cache(maxsize=16384)
def _read(text: str, slots: tuple[tuple[str, tuple[str, ...]], ...]) -> _Heard:
    asks: list[str] = []
    consent = False
    for sentence in _SENTENCE.findall(text):
        if _SMALL_TALK.search(sentence):
            continue
        if _REQUEST.search(sentence):
            rest = sentence.lower()
            if _CONSENT.search(sentence) and not re.search(r"\b(what|which|how|provide|share)\b", rest):
                consent = True
                continue
            asks += [slot for slot, words in slots if slot not in asks and _mentions(rest, words)]
        consent = consent or _CONSENT.search(sentence) is not None
    return _Heard(tuple(asks), consent and not asks, _REPORT.search(text) is not None)


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in words)


def respond_small(domain: Domain, story: Story, user: UserState, db: Database, text: str) -> UserAnswer:
    """Return what the user does when the agent says ``text``."""
    stage = story.stages[user.stage]
    heard = _read(text, tuple(domain.slots.items()))
    user, states_all = listen(stage, user, text, alone=True)  # a list of numbers is no answer
    known = [slot for slot in heard.asks if slot in story.facts]
    if known:
        told = known[:1] if story.brief else known
        words = " ".join(story.facts[slot] for slot in told)
        return UserAnswer(user._replace(revealed=user.revealed | {*told}), db, words)
    if heard.consent:
        if stage.twist and not user.twisted:
            return UserAnswer(user._replace(twisted=True), db, stage.twist)
        return UserAnswer(user._replace(consent=True), db, "yes .")
    if stage.tells and not states_all and (heard.report or heard.asks):
        return _impatient(user, db, stage.again or stage.say)
    if heard.report or (stage.tells and states_all):
        return _reported(story, stage, user, db)
    return _impatient(user, db, "no ." if heard.asks else stage.say)


def _reported(story: Story, stage: Stage, user: UserState, db: Database) -> UserAnswer:
    if stage.insist and not user.insisted:
        return UserAnswer(user._replace(insisted=True), db, stage.insist)
    if user.stage + 1 == len(story.stages):
        return UserAnswer(user._replace(consent=False, twisted=False, insisted=False, over=True), db, "bye .")
    after = user._replace(stage=user.stage + 1, consent=False, twisted=False, insisted=False)
    return UserAnswer(after, db, story.stages[after.stage].say)


def _impatient(user: UserState, db: Database, text: str) -> UserAnswer:
    left = user.patience - 1
    return UserAnswer(user._replace(patience=max(left, 0)), db, text if left > 0 else "bye .")
