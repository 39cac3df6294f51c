"""The user: a state machine over stages, or another agent who is told the same story.

The machine never tells right from wrong: it goes on after any report of the kind that it waits for, so that
nothing can be learned by trying. Only what a user can see for himself (a phone that works) is checked.
"""

from __future__ import annotations

from typing import NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.facts import stated
from turnwise.envs.toolworld.speech import understand
from turnwise.envs.toolworld.story import Stage, Story


class UserState(NamedTuple):
    """What the user has said and heard. ``told`` are the (stage, fact) pairs that were last stated right."""

    stage: int = 0
    patience: int = 4
    revealed: frozenset[str] = frozenset()
    consent: bool = False
    twisted: bool = False
    insisted: bool = False
    told: frozenset[tuple[int, int]] = frozenset()
    did: frozenset[str] = frozenset()
    over: bool = False


class Answer(NamedTuple):
    """The user's next words, and the world after what he did."""

    user: UserState
    db: Database
    text: str


def respond(domain: Domain, story: Story, user: UserState, db: Database, text: str) -> Answer:
    """What the scripted user does when the agent says ``text``."""
    stage = story.stages[user.stage]
    heard = understand(domain, text)
    user, states_all = _listen(stage, user, text)
    known = [slot for slot in heard.asks if slot in story.facts]
    if known:
        told = known[:1] if story.brief else known
        words = " ".join(story.facts[slot] for slot in told)
        return Answer(user._replace(revealed=user.revealed | {*told}), db, _manner(domain, story, words))
    if heard.deeds:
        return _act(domain, story, user, db, heard.deeds)
    if heard.consent:
        return Answer(*_consent(domain, stage, user, db))
    if stage.tells and not states_all and (heard.report or heard.asks):
        return _impatient(domain, story, user, db, stage.again or stage.say)
    if heard.report or (stage.tells and states_all):
        return _reported(domain, story, user, db)
    if heard.asks:
        return _impatient(domain, story, user, db, "no ." if domain.compact else "I don't know that.")
    sorry = "" if domain.compact else "Sorry, I don't understand. "
    return _impatient(domain, story, user, db, sorry + stage.say)


def _listen(stage: Stage, user: UserState, text: str) -> tuple[UserState, bool]:
    """Which facts are stated right now; and whether all that are waited for have a value in this text."""
    told, waiting = set(user.told), False
    for index, fact in enumerate(stage.tells):
        right = stated(fact, text)
        if right is None:
            waiting = True
        elif right:
            told.add((user.stage, index))
        else:
            told.discard((user.stage, index))  # the last statement counts
    return (user._replace(told=frozenset(told)) if stage.tells else user), not waiting


def _consent(domain: Domain, stage: Stage, user: UserState, db: Database) -> tuple[UserState, Database, str]:
    if stage.twist and not user.twisted:
        return user._replace(twisted=True), db, stage.twist
    return user._replace(consent=True), db, "yes ." if domain.compact else "Yes, please."


def _act(domain: Domain, story: Story, user: UserState, db: Database, deeds: tuple[object, ...]) -> Answer:
    said: list[str] = []
    did = set(user.did)
    for deed in domain.deeds:
        if deed in deeds:
            db, result, _ = deed.does(db, story.customer)
            said.append(str(result))
            did.add(deed.name)
    return Answer(user._replace(did=frozenset(did)), db, " ".join(said))


def _reported(domain: Domain, story: Story, user: UserState, db: Database) -> Answer:
    stage = story.stages[user.stage]
    if stage.check and not domain.checks[stage.check](db, story.customer):
        return _impatient(domain, story, user, db, "It still doesn't work.")
    if stage.insist and not user.insisted:
        return Answer(user._replace(insisted=True), db, stage.insist)
    after = user._replace(stage=user.stage + 1, consent=False, twisted=False, insisted=False)
    if after.stage == len(story.stages):
        # The stage stays the last one, so that a story's end has a stage too.
        bye = "bye ." if domain.compact else "Thank you, that is all. Goodbye."
        return Answer(after._replace(stage=user.stage, over=True), db, bye)
    return Answer(after, db, _manner(domain, story, story.stages[after.stage].say))


def _impatient(domain: Domain, story: Story, user: UserState, db: Database, text: str) -> Answer:
    left = user.patience - 1
    if left <= 0:
        gone = "bye ." if domain.compact else "This leads nowhere. I will try elsewhere."
        return Answer(user._replace(patience=0), db, gone)
    return Answer(user._replace(patience=left), db, text)


def _manner(domain: Domain, story: Story, text: str) -> str:
    return text if domain.compact or not story.manner else f"{story.manner} {text}"


STOP = "###STOP###"
"""Said by a user who is another agent, when he is done."""


_ROLE = (
    "You play a customer who talks to a service agent. Write only what the customer says, one short message at a time. "
    "Tell what you know only when it is asked for. Do not make anything up. Say yes to a proposal only when it is what "
    "you want."
)


def script(domain: Domain, story: Story) -> str:
    """What another agent is told who plays the user."""
    lines = [
        _ROLE,
        "What you know: " + (" ".join(story.facts.values()) or "nothing that is not said below."),
    ]
    for number, stage in enumerate(story.stages, 1):
        lines.append(f"Wish {number}: {stage.say}")
        if stage.twist:
            lines.append(f"When the agent asks you to confirm it for the first time, say: {stage.twist}")
        if stage.insist:
            lines.append(f"When the agent refuses, say once: {stage.insist} Then accept it.")
        if stage.again and stage.tells:
            lines.append(f"You want to know: {stage.again}")
    if story.manner:
        lines.append(f"Your manner: {story.manner}")
    if domain.deeds:
        lines.append("You hold the device; use your tools when the agent asks you to do something with it.")
    lines.append(f"Voice the wishes one after the other. When the last is settled, write {STOP}")
    return "\n".join(lines)
