"""The user: a state machine over requests, or another agent or a language model who is told the same story.

Only deeds and a clear refusal end a request. The machine never tells right from wrong: it goes on after any change
that was reported and any value that was told, so nothing can be learned by trying. What contradicts its own words it
corrects, and what a user can see for himself (a phone that works) it checks. Whatever it does not understand is
answered and costs nothing, and where a no may be none, or one to something else, it asks whether it was one; patience
counts only messages in which nothing was done, asked or told, from the second in a row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Deed, Domain
from turnwise.envs.toolworld.mind import StageMind, UserAnswer, UserState, hear_price, listen, turn_to
from turnwise.envs.toolworld.phrases import phrase
from turnwise.envs.toolworld.requests import open_stages, own_values, parts_of, wants
from turnwise.envs.toolworld.small import respond_small
from turnwise.envs.toolworld.speech.contrary import is_contrary, side_of
from turnwise.envs.toolworld.speech.proposing import Proposal
from turnwise.envs.toolworld.speech.reading import Heard, understand
from turnwise.envs.toolworld.speech.values import TOO_MUCH, Value, clash
from turnwise.envs.toolworld.speech.wish import (
    bound,
    differs,
    in_own_words,
    nobody_spoke_of,
    offers_choice,
    offers_other,
    one_alone,
    sets_aside,
    undoes,
    without_questions,
    words_of,
)
from turnwise.envs.toolworld.speech.words import mentions, normal, stems, word_set
from turnwise.envs.toolworld.story import Stage, Story

_YES_INDEED = re.compile(
    r"\b(?:yes|right|correct|indeed|afraid so|exactly|unfortunately|sadly|that is|it is)\b", re.IGNORECASE
)

_ADDRESSES = re.compile(
    r"\bplease\b|\b(?:could|can|would|will) you (?!like|want|prefer|agree|accept|be (?:okay|ok|fine|happy))|\byour (?:phone|device|handset|end|side)\b|\b(?:tell|give|send) me\b|(?:^|[.!?:] )(?:what|which)\b",
    re.IGNORECASE,
)
"""That the listener is to do or to tell something."""
_QUESTION = re.compile(r"[^.!?\n]*\?")
_ALL_OF_IT = re.compile(r"\b(?:both|all|everything|each)\b", re.IGNORECASE)
_WHICH_OF_TWO = re.compile(r"\bor (?!not\b|no\b|otherwise\b)[^?]*\?|\breason\b", re.IGNORECASE)
"""A question that leaves the listener a choice, or asks why."""
_WHAT_FOR = re.compile(
    r"\bhow (?:can|may|could) (?:i|we)\b|\bwhat (?:can|may) (?:i|we) do\b|\bbrings you\b", re.IGNORECASE
)


def respond(domain: Domain, story: Story, user: UserState, db: Database, text: str) -> UserAnswer:
    """Return what the scripted user does when the agent says ``text``."""
    if domain.compact:
        return respond_small(domain, story, user, db, text)
    answer = _respond(domain, story, user, db, text)
    if user.puzzled and answer.user.patience == user.patience:
        return answer._replace(user=answer.user._replace(puzzled=False))
    return answer


def _respond(domain: Domain, story: Story, user: UserState, db: Database, text: str) -> UserAnswer:
    if not user.aside:
        return _answer(domain, story, user, db, text)
    parts = parts_of(domain, story, user, text)
    said, settled = list[str](), ""
    for number, part in parts.items():
        answer = _answer(domain, story, turn_to(user, number), db, part)
        user, db = answer.user, answer.db
        if number in open_stages(user) and not user.over:
            said.append(answer.text)
        else:
            settled = answer.text
    while settled and not said and user.served and not user.over and _ALL_OF_IT.search(text):
        user, db, settled = _next(domain, story, user, db)
    if said and settled:  # they come to the next request when this one is settled
        user = turn_to(user, max(number for number in parts if number in open_stages(user)))
    return UserAnswer(user, db, " ".join(dict.fromkeys(said)) or settled)


def _answer(domain: Domain, story: Story, user: UserState, db: Database, text: str) -> UserAnswer:
    """Return what the user says and does where one request is talked about."""
    stage = story.stages[user.stage]
    heard = understand(domain.lexicon, text)
    user, states_all = listen(stage, user, text)
    if stage.quiet and stage.tells:
        user = user._replace(answered=user.answered or states_all)
        states_all = user.answered
    user = hear_price(user, heard.proposal.named.money)
    answered = bool(stage.quiet and listen(stage, user, _without_questions(text))[1] and stage.tells)
    solicited = heard.consent and not (heard.done and user.served and _is_agreed(domain, stage, user, heard))
    meant = _meant(domain, story, stage, user, heard) if solicited else None
    addressed = _ADDRESSES.search(text) is not None
    if meant and heard.asked and not addressed:
        return _consent(domain, story, stage, user, db, heard, meant)
    known = [slot for slot in heard.asks if slot in story.facts]
    if known:
        return _tell(domain, story, user, db, heard, known)
    if heard.asks and {*heard.asks} <= {*domain.identity}:
        return UserAnswer(user, db, phrase(story, "unknown"))  # who has no e-mail address says so
    tried = stage.check and heard.tries and not heard.deeds and not heard.proposal.actions
    if tried and domain.checks[stage.check](db, story.customer):
        return _next(domain, story, user, db)
    if heard.deeds or (heard.looks and not heard.foreign and (addressed or not heard.asked)):
        return _act(domain, story, user, db, heard)
    if stage.check and (heard.tries or heard.done or heard.closing) and not heard.proposal.actions:
        if domain.checks[stage.check](db, story.customer):
            return _next(domain, story, user, db)
        if heard.tries:
            return UserAnswer(user, db, stage.again or phrase(story, "broken"))
    if meant:
        return _consent(domain, story, stage, user, db, heard, meant)
    if heard.refusal and not (heard.done and user.served) and not answered:
        answer = _refused(domain, story, user, db, heard)
        if answer is not None:
            return answer
    proposes = heard.consent and (heard.queries or bool(heard.proposal.actions))
    if user.doubts and _YES_INDEED.search(text) and not proposes:
        return _no(domain, story, user, db)
    if solicited and not answered:
        return _consent(domain, story, stage, user, db, heard, None)
    reports = heard.done or (
        user.served and heard.stated and not (heard.consent or heard.question or heard.going_on)
    )
    if (
        reports
        and not user.corrected
        and not _is_errand(domain, stage)
        and _reports_other(domain, story, stage, user, heard)
    ):
        wish = stage.twist if user.twisted else stage.say
        return UserAnswer(user._replace(corrected=True), db, f"{phrase(story, 'not_that')} {wish}")
    return _told(domain, story, stage, user, db, heard, states_all, text)


def _without_questions(text: str) -> str:
    return _QUESTION.sub("", text)


def _reports_other(domain: Domain, story: Story, stage: Stage, user: UserState, heard: Heard) -> bool:
    """Say whether a report is of something else than the user asked for and agreed to, by their own words."""
    wanted = wants(domain, stage)
    if heard.told and wanted and not (heard.told | heard.proposal.actions) & wanted:
        nouns = "|".join(domain.lexicon.actions[name].nouns for name in wanted)
        return not mentions(nouns, stems(normal(heard.text)))
    agreed = frozenset[Value]().union(*(one.named.values for one in user.agreed))
    kinds = {kind for kind, _ in agreed}
    own = frozenset(pair for pair in own_values(domain, story, stage, user) if pair[0] not in kinds) | agreed
    wish = stage.twist if user.twisted else stage.say
    named_now = heard.proposal.named.values
    if clash(named_now, own):
        return True
    return one_alone(wish, heard.text)


def _is_agreed(domain: Domain, stage: Stage, user: UserState, heard: Heard) -> bool:
    """Say whether nothing is asked for to which the user has not said yes: no wanted change, and nothing that
    is named for it."""
    now = heard.proposal
    proposed = (now.actions - now.bare) & wants(domain, stage)
    return not heard.asked or any(
        proposed <= one.actions and now.named.values <= one.named.values for one in user.agreed
    )


def _tell(
    domain: Domain, story: Story, user: UserState, db: Database, heard: Heard, known: Sequence[str]
) -> UserAnswer:
    """The facts that were asked for; and a yes, where the same message proposes something that fits."""
    told = known[:1] if story.brief else known
    words = " ".join(story.facts[slot] for slot in told)
    user = user._replace(revealed=user.revealed | {*told})
    if heard.proposal.actions and heard.consent:
        user = user._replace(offered=heard.proposal)
    return UserAnswer(user, db, words)


def _act(domain: Domain, story: Story, user: UserState, db: Database, heard: Heard) -> UserAnswer:
    """Do what the user is told to do with the device, and look up what they are asked about it."""
    deeds = {deed.name: deed for deed in domain.deeds}
    names = [
        *heard.deeds,
        *([domain.deeds[0].name] if heard.looks and domain.deeds[0].name not in heard.deeds else []),
    ]
    said: list[str] = []
    before = db
    for name in names:
        deed: Deed = deeds[name]
        db, result, _ = deed.does(db, story.customer)
        said.append(str(result))
    served = user.served or db != before
    return UserAnswer(user._replace(did=user.did | {*names}, served=served), db, " ".join(said))


def _refused(domain: Domain, story: Story, user: UserState, db: Database, heard: Heard) -> UserAnswer | None:
    """After a clear no they insist or go on; otherwise they ask whether it was one. None: it was none at all."""
    wanted = wants(domain, story.stages[user.stage])
    if heard.consent and heard.proposal.actions & wanted:
        return None  # a part of it is offered
    about = bool(heard.denied & wanted) or bool(_topics(heard.text) & _topics(story.stages[user.stage].say))
    clear = heard.refusal == "clear" and (heard.denies_all or about)
    if (heard.question or heard.asks) and (not clear or heard.queries):
        return None
    if clear and not (heard.consent and heard.proposal.actions):
        return _no(domain, story, user, db)
    if user.doubts:
        return _no(domain, story, user, db)
    other = heard.consent and bool(heard.proposal.actions)
    return UserAnswer(user._replace(doubts=True), db, phrase(story, "other" if other else "doubt"))


def _no(domain: Domain, story: Story, user: UserState, db: Database) -> UserAnswer:
    stage = story.stages[user.stage]
    if stage.insist and not user.insisted:
        return UserAnswer(user._replace(insisted=True, doubts=False), db, stage.insist)
    return _next(domain, story, user, db)


def consent_to(domain: Domain, story: Story, user: UserState, db: Database, heard: Heard) -> UserAnswer:
    """The user's answer to a proposal."""
    stage = story.stages[user.stage]
    return _consent(domain, story, stage, user, db, heard, _meant(domain, story, stage, user, heard))


def _is_errand(domain: Domain, stage: Stage) -> bool:
    """Say whether what is asked for needs no yes."""
    made = (domain.act(step.name) for step in stage.plan if step.kind == "call")
    return any(one is not None and one.kind == "errand" for one in made)


class _Meant(NamedTuple):
    """Proposal to which a yes would be one, and which of the changes that the user wants it is."""

    offered: Proposal
    hit: frozenset[str] = frozenset()


def _consent(
    domain: Domain,
    story: Story,
    stage: Stage,
    user: UserState,
    db: Database,
    heard: Heard,
    meant: _Meant | None,
) -> UserAnswer:
    """A yes to what was proposed, if it is what they want and contradicts nothing that they said."""
    if not heard.proposal.actions and user.agreed and not heard.proposal.named.values:
        # Asked once more; who only speaks of a yes has it already.
        return UserAnswer(user, db, phrase(story, "yes" if heard.queries and not heard.done else "wait"))
    offered, hit = meant or _Meant(heard.proposal)
    if any(cents > TOO_MUCH for cents in heard.proposal.named.money) or heard.absurd:
        return UserAnswer(user, db, phrase(story, "too_much"))
    if not hit and not heard.foreign and (not offered.actions - offered.bare) and _is_errand(domain, stage):
        return UserAnswer(user, db, phrase(story, "yes"))  # it needs none, and may be asked for
    if not hit and not offered.actions and not heard.foreign:
        if heard.queries and _WHICH_OF_TWO.search(heard.text):
            return UserAnswer(user, db, f"{phrase(story, 'as_said')} {stage.say}")
        return UserAnswer(user, db, phrase(story, "vague"))
    if not hit:
        return UserAnswer(user, db, f"{phrase(story, 'not_that')} {stage.say}")
    if offers_choice(domain.lexicon, heard.text):
        return UserAnswer(user, db, f"{phrase(story, 'as_said')} {stage.say}")
    wish = stage.twist if user.twisted else stage.say
    later = stage.twist if user.twisted else ""
    own = bound(domain.lexicon, stage.say, hit, own_values(domain, story, stage, user), later)
    told = " ".join(f"{story.stages[one].say} {story.stages[one].twist}" for one in open_stages(user))
    spoken_of = f"{told} {' '.join(story.facts.values())}"
    if (
        clash(offered.named.values, own, whole=offered.only)
        or offers_other(domain.lexicon, heard.text, own)
        or sets_aside(domain.lexicon, wish, heard.text)
        or differs(wish, heard.text)
        or is_contrary(wish, heard.text)
        or undoes(domain.lexicon, wish, heard.text, hit)
        or _switches_other_way(stage, hit, heard.text)
        or nobody_spoke_of(domain.lexicon, heard.text, spoken_of)
    ):
        return UserAnswer(user, db, f"{phrase(story, 'not_that')} {wish}")
    if stage.twist and not user.twisted:
        return UserAnswer(user._replace(twisted=True, agreed=(), offered=Proposal()), db, stage.twist)
    agreed = (*user.agreed, _bound_to_wish(offered._replace(actions=hit), own))
    user = user._replace(consent=True, agreed=agreed, offered=Proposal())
    if in_own_words(domain.lexicon, heard.text, spoken_of, hit):
        return UserAnswer(user, db, phrase(story, "yes"))
    return UserAnswer(user, db, f"{phrase(story, 'yes_if')} {without_questions(domain.lexicon, wish)}")


def _switches_other_way(stage: Stage, actions: frozenset[str], text: str) -> bool:
    """Say whether something is to be switched on that the user wants off, or off that they want on."""
    wanted = {
        value
        for step in stage.plan
        if step.kind == "call" and step.name in actions
        for value in step.arguments.values()
        if isinstance(value, bool)
    }
    side = side_of(text)
    return len(wanted) == 1 and side is not None and side not in wanted


def _bound_to_wish(offered: Proposal, own: frozenset[Value]) -> Proposal:
    """Return what a yes is to: what was named, and for the rest what the user asked for.

    So no misread offer makes a yes to another order, flight or address than their own.
    """
    named = offered.named
    kinds = {kind for kind, _ in named.values}
    values = named.values | {pair for pair in own if pair[0] not in kinds}
    return offered._replace(named=named._replace(values=values))


def _meant(domain: Domain, story: Story, stage: Stage, user: UserState, heard: Heard) -> _Meant | None:
    """Return what a yes would be to; None where that is no change that is wanted.

    A question that names no change is about what was offered before, or about the one that they want, where it names
    a price or something of his request.
    """
    wanted, now = wants(domain, stage), heard.proposal
    if heard.foreign:
        return None
    if hit := (now.actions - now.bare) & wanted or now.actions & wanted:
        return _Meant(now, hit)
    others = now.actions - now.bare
    if others - now.light or (others and not now.about & wanted):
        return None
    if hit := user.offered.actions & wanted:
        return _Meant(_with(user.offered, now), hit)
    if now.actions and not others and not heard.verbs and not now.named.values and not stage.check:
        return _Meant(now._replace(actions=wanted), wanted) if wanted else None  # "shall I update it?"
    known = (domain.lexicon.actions[name].verbs for name in now.about & wanted or wanted)
    if heard.verbs - {*stems(normal(" ".join(known).replace("|", " "))).split()}:
        return None
    own = own_values(domain, story, stage, user)
    if now.about & wanted or any(now.named.money) or own & now.named.values:
        hit = now.about & wanted or (frozenset[str]() if stage.check else wanted)
        return _Meant(now._replace(actions=hit), hit) if hit else None
    return None


def _with(earlier: Proposal, now: Proposal) -> Proposal:
    """An earlier proposal with what is named now."""
    more = now.named
    return earlier._replace(
        named=earlier.named._replace(
            values=earlier.named.values | more.values, money=earlier.named.money | more.money
        )
    )


def _told(
    domain: Domain,
    story: Story,
    stage: Stage,
    user: UserState,
    db: Database,
    heard: Heard,
    states_all: bool,
    text: str,
) -> UserAnswer:
    """After what the agent reports or says beside it: the next request, or a word to go on."""
    ready = user.served or stage.quiet
    if heard.proposal.actions:
        user = user._replace(offered=heard.proposal)
    if stage.tells and not states_all and (heard.done or heard.closing) and ready and not heard.question:
        return UserAnswer(user, db, stage.again or stage.say)
    yes = _YES_INDEED.search(text) is not None
    reported = heard.closing or (not heard.going_on and (heard.done or heard.stated or yes))
    if (
        not stage.check
        and ready
        and ((stage.tells and states_all) or (user.served and reported and not stage.tells))
    ):
        return _next(domain, story, user, db)
    if heard.question or heard.asks:
        act = "as_said" if _about_request(stage, text) else "unknown"
        return UserAnswer(user, db, f"{phrase(story, act)} {stage.say}")
    if heard.closing and _WHAT_FOR.search(text) and not user.served:
        return UserAnswer(user, db, f"{phrase(story, 'as_said')} {stage.say}")
    if (heard.claims and not user.served) or heard.closing:
        return UserAnswer(user, db, f"{phrase(story, 'not_yet' if heard.claims else 'still')} {stage.say}")
    if heard.forbids:
        return UserAnswer(user, db, phrase(story, "wont"))
    if heard.stated and user.served and not heard.going_on:
        return UserAnswer(user, db, phrase(story, "and_now"))
    if (
        heard.stated
        or heard.done
        or heard.offers
        or heard.hold
        or heard.courtesy
        or heard.tries
        or heard.refusal
    ):
        return UserAnswer(user, db, phrase(story, "wait"))
    return _impatient(story, user, db, f"{phrase(story, 'puzzled')} {stage.say}")


def _next(domain: Domain, story: Story, user: UserState, db: Database) -> UserAnswer:
    if user.aside:
        first, *others = user.aside
        after = user._replace(**first._asdict(), aside=tuple(others))
        stage = story.stages[after.stage]
        wish = f"{stage.say} {stage.twist}" if after.twisted else stage.say
        return UserAnswer(after, db, f"{phrase(story, 'back')} {wish}")
    after = user._replace(**StageMind(user.stage + 1)._asdict())
    if after.stage == len(story.stages) or story.together:
        # The stage stays the last one, so that a story's end has a stage too.
        return UserAnswer(after._replace(stage=user.stage, over=True), db, phrase(story, "bye"))
    return UserAnswer(after, db, story.stages[after.stage].say)


def _impatient(story: Story, user: UserState, db: Database, text: str) -> UserAnswer:
    """The first message that makes no sense to them is answered, the next in a row costs patience."""
    if not user.puzzled:
        return UserAnswer(user._replace(puzzled=True), db, text)
    left = user.patience - 1
    if left <= 0:
        return UserAnswer(user._replace(patience=0), db, phrase(story, "leave"))
    return UserAnswer(user._replace(patience=left), db, text)


def _topics(text: str) -> frozenset[str]:
    """The words of a text that are of some matter."""
    return words_of(text) - word_set("common") - word_set("of_asking")


def _about_request(stage: Stage, text: str) -> bool:
    """Say whether a question is about the request, so that saying it again answers it."""
    asked = {*stems(normal(text)).split()}
    return bool(
        asked & word_set("of_a_request") or (asked - word_set("common")) & {*stems(normal(stage.say)).split()}
    )


STOP = "###STOP###"
"""Said by a user who is another agent, when they are done."""


ROLE = (
    "You play a customer who talks to a service agent. Write only what the customer says, one short message at a time. "
    "Tell what you know only when it is asked for. Do not make anything up: what does not stand below you do not know, "
    "and say so when you are asked. Say yes to a proposal only when it is what you want."
)
"""Whom a user plays who is no script."""


def script(domain: Domain, story: Story) -> str:
    """Return what another agent is told who plays the user."""
    lines = [
        ROLE,
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
    return "\n".join([*lines, *rules_for_user(domain, together=story.together)])


def rules_for_user(domain: Domain, *, together: bool) -> list[str]:
    """List the rules for a user who is no script; ``together``: they tell all their wishes at the beginning."""
    device = ["You hold the device; use your tools when the agent asks you to do something with it."]
    return [
        *(device if domain.deeds else ()),
        "Voice all the wishes at the beginning, in their order and in your own words; come back to what is forgotten."
        if together
        else "Voice the wishes one after the other, in your own words, the next when the one before is done or refused.",
        f"When the last is settled or you are handed over, write {STOP} and nothing after it.",
    ]
