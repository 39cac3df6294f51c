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
from typing import Any, NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain
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


class _Moment(NamedTuple):
    """A user to whom something is said about one of their requests."""

    domain: Domain
    story: Story
    user: UserState
    db: Database
    heard: Heard

    @property
    def stage(self) -> Stage:
        return self.story.stages[self.user.stage]

    @property
    def wish(self) -> str:
        """The request as they stand by it now."""
        return self.stage.twist if self.user.twisted else self.stage.say

    @property
    def wanted(self) -> frozenset[str]:
        return wants(self.domain, self.stage)

    @property
    def own(self) -> frozenset[Value]:
        return own_values(self.domain, self.story, self.stage, self.user)

    @property
    def works(self) -> bool:
        """Say whether they see for themselves what they want to see."""
        return self.domain.checks[self.stage.check](self.db, self.story.customer)

    def answer(self, text: str, **changes: Any) -> UserAnswer:
        return UserAnswer(self.user._replace(**changes) if changes else self.user, self.db, text)

    def says(self, act: str, then: str = "", **changes: Any) -> UserAnswer:
        """Their phrase for an act, and what they say after it."""
        return self.answer(f"{phrase(self.story, act)} {then}".strip(), **changes)


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
        user, db, settled = _next(_Moment(domain, story, user, db, Heard()))
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
    now = _Moment(domain, story, user, db, heard)
    answered = bool(stage.quiet and listen(stage, user, _QUESTION.sub("", text))[1] and stage.tells)
    solicited = heard.consent and not (heard.done and user.served and _is_agreed(now))
    meant = _meant(now) if solicited else None
    addressed = _ADDRESSES.search(text) is not None
    if meant and heard.asked and not addressed:
        return _consent(now, meant)
    known = [slot for slot in heard.asks if slot in story.facts]
    if known:
        return _tell(now, known)
    if heard.asks and {*heard.asks} <= {*domain.identity}:
        return now.says("unknown")  # who has no e-mail address says so
    if stage.check and heard.tries and not heard.deeds and not heard.proposal.actions and now.works:
        return _next(now)
    if heard.deeds or (heard.looks and not heard.foreign and (addressed or not heard.asked)):
        return _act(now)
    if stage.check and (heard.tries or heard.done or heard.closing) and not heard.proposal.actions:
        if now.works:
            return _next(now)
        if heard.tries:
            return now.answer(stage.again) if stage.again else now.says("broken")
    if meant:
        return _consent(now, meant)
    if heard.refusal and not (heard.done and user.served) and not answered and (no := _refused(now)):
        return no
    proposes = heard.consent and (heard.queries or bool(heard.proposal.actions))
    if user.doubts and _YES_INDEED.search(text) and not proposes:
        return _no(now)
    if solicited and not answered:
        return _consent(now, None)
    served = user.served and heard.stated and not (heard.consent or heard.question or heard.going_on)
    reports = (heard.done or served) and not user.corrected and not _is_errand(now)
    if reports and _reports_other(now):
        return now.says("not_that", now.wish, corrected=True)
    return _told(now, states_all=states_all, text=text)


def _reports_other(now: _Moment) -> bool:
    """Say whether a report is of something else than the user asked for and agreed to, by their own words."""
    wanted, heard = now.wanted, now.heard
    if heard.told and wanted and not (heard.told | heard.proposal.actions) & wanted:
        nouns = "|".join(now.domain.lexicon.actions[name].nouns for name in wanted)
        return not mentions(nouns, stems(normal(heard.text)))
    agreed = frozenset[Value]().union(*(one.named.values for one in now.user.agreed))
    kinds = {kind for kind, _ in agreed}
    own = frozenset(pair for pair in now.own if pair[0] not in kinds) | agreed
    return bool(clash(heard.proposal.named.values, own)) or one_alone(now.wish, heard.text)


def _is_agreed(now: _Moment) -> bool:
    """Say whether nothing is asked for to which the user has not said yes: no wanted change, and nothing that
    is named for it."""
    said = now.heard.proposal
    proposed = (said.actions - said.bare) & now.wanted
    return not now.heard.asked or any(
        proposed <= one.actions and said.named.values <= one.named.values for one in now.user.agreed
    )


def _tell(now: _Moment, known: Sequence[str]) -> UserAnswer:
    """The facts that were asked for; and a yes, where the same message proposes something that fits."""
    told = known[:1] if now.story.brief else known
    offers = bool(now.heard.proposal.actions) and now.heard.consent
    offered = now.heard.proposal if offers else now.user.offered
    words = " ".join(now.story.facts[slot] for slot in told)
    return now.answer(words, revealed=now.user.revealed | {*told}, offered=offered)


def _act(now: _Moment) -> UserAnswer:
    """Do what the user is told to do with the device, and look up what they are asked about it."""
    heard, db, said = now.heard, now.db, list[str]()
    deeds = {deed.name: deed for deed in now.domain.deeds}
    screen = now.domain.deeds[0].name
    names = [*heard.deeds, *([screen] if heard.looks and screen not in heard.deeds else [])]
    for name in names:
        db, result, _ = deeds[name].does(db, now.story.customer)
        said.append(str(result))
    served = now.user.served or db != now.db
    return now._replace(db=db).answer(" ".join(said), did=now.user.did | {*names}, served=served)


def _refused(now: _Moment) -> UserAnswer | None:
    """After a clear no they insist or go on; otherwise they ask whether it was one. None: it was none at all."""
    heard, wanted = now.heard, now.wanted
    if heard.consent and heard.proposal.actions & wanted:
        return None  # a part of it is offered
    about = bool(heard.denied & wanted) or bool(_topics(heard.text) & _topics(now.stage.say))
    clear = heard.refusal == "clear" and (heard.denies_all or about)
    if (heard.question or heard.asks) and (not clear or heard.queries):
        return None
    other = heard.consent and bool(heard.proposal.actions)
    if now.user.doubts or (clear and not other):
        return _no(now)
    return now.says("other" if other else "doubt", doubts=True)


def _no(now: _Moment) -> UserAnswer:
    if now.stage.insist and not now.user.insisted:
        return now.answer(now.stage.insist, insisted=True, doubts=False)
    return _next(now)


def consent_to(domain: Domain, story: Story, user: UserState, db: Database, heard: Heard) -> UserAnswer:
    """The user's answer to a proposal."""
    now = _Moment(domain, story, user, db, heard)
    return _consent(now, _meant(now))


def _is_errand(now: _Moment) -> bool:
    """Say whether what is asked for needs no yes."""
    made = (now.domain.act(step.name) for step in now.stage.plan if step.kind == "call")
    return any(one is not None and one.kind == "errand" for one in made)


class _Meant(NamedTuple):
    """Proposal to which a yes would be one, and which of the changes that the user wants it is."""

    offered: Proposal
    hit: frozenset[str] = frozenset()


def _consent(now: _Moment, meant: _Meant | None) -> UserAnswer:
    """A yes to what was proposed, if it is what they want and contradicts nothing that they said."""
    heard, stage, lexicon = now.heard, now.stage, now.domain.lexicon
    if not heard.proposal.actions and now.user.agreed and not heard.proposal.named.values:
        # Asked once more; who only speaks of a yes has it already.
        return now.says("yes" if heard.queries and not heard.done else "wait")
    offered, hit = meant or _Meant(heard.proposal)
    if any(cents > TOO_MUCH for cents in heard.proposal.named.money) or heard.absurd:
        return now.says("too_much")
    if not hit:
        return _nothing_wanted(now, offered)
    if offers_choice(lexicon, heard.text):
        return now.says("as_said", stage.say)
    own = bound(lexicon, stage.say, hit, now.own, stage.twist if now.user.twisted else "")
    told = (now.story.stages[number] for number in open_stages(now.user))
    spoken_of = " ".join([*(f"{one.say} {one.twist}" for one in told), *now.story.facts.values()])
    if _is_other(now, offered, hit, own) or nobody_spoke_of(lexicon, heard.text, spoken_of):
        return now.says("not_that", now.wish)
    if stage.twist and not now.user.twisted:
        return now.answer(stage.twist, twisted=True, agreed=(), offered=Proposal())
    agreed = (*now.user.agreed, _bound_to_wish(offered._replace(actions=hit), own))
    plain = in_own_words(lexicon, heard.text, spoken_of, hit)
    then = "" if plain else without_questions(lexicon, now.wish)
    return now.says("yes" if plain else "yes_if", then, consent=True, agreed=agreed, offered=Proposal())


def _nothing_wanted(now: _Moment, offered: Proposal) -> UserAnswer:
    """The answer to a question for a yes to none of the changes that they want."""
    heard, say = now.heard, now.stage.say
    if not heard.foreign and not offered.actions - offered.bare and _is_errand(now):
        return now.says("yes")  # it needs none, and may be asked for
    if offered.actions or heard.foreign:
        return now.says("not_that", say)
    choice = heard.queries and _WHICH_OF_TWO.search(heard.text)
    return now.says("as_said", say) if choice else now.says("vague")


def _is_other(now: _Moment, offered: Proposal, hit: frozenset[str], own: frozenset[Value]) -> bool:
    """Say whether an offer of what they want contradicts what they said of it."""
    lexicon, text, wish = now.domain.lexicon, now.heard.text, now.wish
    return (
        bool(clash(offered.named.values, own, whole=offered.only))
        or offers_other(lexicon, text, own)
        or sets_aside(lexicon, wish, text)
        or differs(wish, text)
        or is_contrary(wish, text)
        or undoes(lexicon, wish, text, hit)
        or _switches_other_way(now.stage, hit, text)
    )


def _switches_other_way(stage: Stage, actions: frozenset[str], text: str) -> bool:
    """Say whether something is to be switched on that the user wants off, or off that they want on."""
    steps = (step for step in stage.plan if step.kind == "call" and step.name in actions)
    wanted = {value for step in steps for value in step.arguments.values() if isinstance(value, bool)}
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


def _meant(now: _Moment) -> _Meant | None:
    """Return what a yes would be to; None where that is no change that is wanted.

    A question that names no change is about what was offered before, or about the one that they want, where it names
    a price or something of his request.
    """
    wanted, heard, said, stage = now.wanted, now.heard, now.heard.proposal, now.stage
    if heard.foreign:
        return None
    if hit := (said.actions - said.bare) & wanted or said.actions & wanted:
        return _Meant(said, hit)
    others = said.actions - said.bare
    if others - said.light or (others and not said.about & wanted):
        return None
    if hit := now.user.offered.actions & wanted:
        return _Meant(_with(now.user.offered, said), hit)
    if said.actions and not others and not heard.verbs and not said.named.values and not stage.check:
        return _Meant(said._replace(actions=wanted), wanted) if wanted else None  # "shall I update it?"
    known = (now.domain.lexicon.actions[name].verbs for name in said.about & wanted or wanted)
    if heard.verbs - {*stems(normal(" ".join(known).replace("|", " "))).split()}:
        return None
    if said.about & wanted or any(said.named.money) or now.own & said.named.values:
        hit = said.about & wanted or (frozenset[str]() if stage.check else wanted)
        return _Meant(said._replace(actions=hit), hit) if hit else None
    return None


def _with(earlier: Proposal, now: Proposal) -> Proposal:
    """An earlier proposal with what is named now."""
    had, more = earlier.named, now.named
    return earlier._replace(named=had._replace(values=had.values | more.values, money=had.money | more.money))


def _told(now: _Moment, *, states_all: bool, text: str) -> UserAnswer:
    """After what the agent reports or says beside it: the next request, or a word to go on."""
    heard, stage, served = now.heard, now.stage, now.user.served
    ready = served or stage.quiet
    if heard.proposal.actions:
        now = now._replace(user=now.user._replace(offered=heard.proposal))
    if stage.tells and not states_all and (heard.done or heard.closing) and ready and not heard.question:
        return now.answer(stage.again or stage.say)
    yes = _YES_INDEED.search(text) is not None
    reported = heard.closing or (not heard.going_on and (heard.done or heard.stated or yes))
    settled = states_all if stage.tells else served and reported
    if not stage.check and ready and settled:
        return _next(now)
    if heard.question or heard.asks:
        return now.says("as_said" if _about_request(stage, text) else "unknown", stage.say)
    if heard.closing and _WHAT_FOR.search(text) and not served:
        return now.says("as_said", stage.say)
    if (heard.claims and not served) or heard.closing:
        return now.says("not_yet" if heard.claims else "still", stage.say)
    if heard.forbids:
        return now.says("wont")
    if heard.stated and served and not heard.going_on:
        return now.says("and_now")
    goes_on = heard.offers or heard.hold or heard.courtesy or heard.tries or bool(heard.refusal)
    if heard.stated or heard.done or goes_on:
        return now.says("wait")
    return _puzzled(now)


def _next(now: _Moment) -> UserAnswer:
    story, user = now.story, now.user
    if user.aside:
        first, *others = user.aside
        then = now._replace(user=user._replace(**first._asdict(), aside=tuple(others)))
        return then.says(
            "back", f"{then.stage.say} {then.stage.twist}" if then.user.twisted else then.stage.say
        )
    after = user._replace(**StageMind(user.stage + 1)._asdict())
    if after.stage == len(story.stages) or story.together:
        # The stage stays the last one, so that a story's end has a stage too.
        return now._replace(user=after).says("bye", stage=user.stage, over=True)
    return UserAnswer(after, now.db, story.stages[after.stage].say)


def _puzzled(now: _Moment) -> UserAnswer:
    """The first message that makes no sense to them is answered, the next in a row costs patience."""
    left = now.user.patience - 1
    if now.user.puzzled and left <= 0:
        return now.says("leave", patience=0)
    changes = {"patience": left} if now.user.puzzled else {"puzzled": True}
    return now.says("puzzled", now.stage.say, **changes)


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
