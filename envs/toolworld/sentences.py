"""Scores of the scripted user on labelled sentences: what is *done* after each, held against what is fair.

    python -m turnwise.envs.toolworld.sentences tests/envs/toolworld_sentences/open.jsonl

A sentence is said in the scene of its context, and what comes of it is seen in the world and in the user's own answer
(which of his phrases it is, which fact, which deed), never in what a parser made of it. ``understood``: he did one of the
things that are fair. ``fatal``: he did what must not happen (ended the talk, skipped the request, agreed, touched the
phone, lost patience). A yes to nothing but his own wish, which he says again, is not fatal where no yes is fair: it is ``misplaced``, and not
understood. A sealed file is read once, for the figure; the command prints no sentence of a file unless it is
asked to (``--show``).
"""

from __future__ import annotations

import argparse
import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.envs.toolworld.cases import domain_of, world
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.mind import UserAnswer, UserState, values_of
from turnwise.envs.toolworld.phrases import phrases
from turnwise.envs.toolworld.speech.proposing import Proposal
from turnwise.envs.toolworld.speech.values import Named
from turnwise.envs.toolworld.story import Stage, Story
from turnwise.envs.toolworld.users import respond
from turnwise.tasks.core import Json
from turnwise.texts import read_json_lines

FACTS = {
    "email": "My e-mail is kofi.abel@example.com.", "name": "My name is Kofi Abel.", "zip": "My zip code is 92691.",
    "user_id": "My user id is wanda_bloom_4711.", "birthday": "I was born on 1971-01-19.",
    "phone": "My number is 555-123-4567.", "pin": "The PIN is 7239.", "gigabytes": "I would like 7 more gigabytes.",
    "passenger": "The passenger is Robin Jansen.", "passengers": "It is for me alone.", "payment": "Use card_6662.",
}  # fmt: skip
"""Facts that the user of every scene could tell."""
_BACK = frozenset(
    ["doubt", "other", "still", "not_yet", "as_said", "vague", "puzzled", "not_that", "and_now", "too_much"]
)
_CALM = frozenset(("wait", "wont", "and_now", "as_said", "still", "not_yet"))
_DONE = frozenset(("tell_done", "tell_fact", "ask_else", "goodbye"))
_MONEY = re.compile(
    r"how much|what does it cost|to be paid|what .* cost|owed|get back|refund the difference|\bthe total\b|\bis left on gift",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"how|what|which|when|tell|is |are |do |the (?:total|sum|number|date|time|price) ", re.IGNORECASE
)
"""Beginning of a request that wants to know something and nothing else."""
_LEARNT: Mapping[str, Mapping[str, Json]] = {
    "airplane mode is on": {"airplane": True}, "APN is wrong": {"apn": "wrong"}, "SIM is missing": {"sim": "missing"},
    "mobile data is off": {"data": False, "saver": True},
}  # fmt: skip
"""What an agent has found out about a phone → the state that it is in."""
_OTHER = Stage("And then there is another thing that I want to ask you.", ())


class SpokenScene(NamedTuple):
    """Scene in which a sentence is said."""

    domain: Domain
    story: Story
    user: UserState
    db: Database


class SentenceScore(NamedTuple):
    """Result of one sentence."""

    id: str
    act: str
    effects: frozenset[str]
    understood: bool
    fatal: bool
    misplaced: bool
    answer: str


@functools.cache
def _voice() -> dict[str, str]:
    return {act: ways[0] for act, ways in phrases().items()}


@functools.cache
def _customer(domain: str) -> str:
    base = world(domain, "sentences", 24)
    return min(next(base.tables[name] for name in ("customers", "users", "accounts") if name in base.tables))


def scene_of(line: Mapping[str, Any]) -> SpokenScene:
    """The scene that a line's context describes."""
    name = "retail" if line["domain"] == "any" else line["domain"]
    domain, context, label = domain_of(name), line["context"], line["label"]
    request: str = context["request"]
    acts = {label["act"], *label.get("acts", ())}
    opening = context["last_user"] if _opens(context) else request
    trouble = "data does not work" in request
    learnt = str(context.get("learnt", ""))
    fulfilled = any(word in request for word in ("fulfilled", "settled", "just been refused"))
    agreed = context["proposed"] is not None
    tells: tuple[Fact, ...] = ()
    if _MONEY.search(request):
        tells = (Fact("money", str(round(100 * abs(label.get("price") or 1)))),)
    elif "how many" in request.lower():
        tells = (Fact("count", "5"),)
    proposed = context["proposed"] or {}
    # an action to which a yes would be fair is one that the user wants
    fair = {"action": label["action"]} if "consent" in line["should"] and "action" in label else {}
    stage = Stage(
        opening, (), tells=tells, again=request if tells else "", check="works" if trouble else "",
        wants=_wants(name, request, {**fair, **proposed}),
        quiet=bool(tells) and _ASKS.match(request) is not None and not agreed and not (acts & {"tell_done"}),
    )  # fmt: skip
    base = world(name, "sentences", 24)
    customer = _customer(name)
    db = base.update("phones", customer, **_phone(learnt)) if name == "telecom" else base
    if trouble and "repaired" not in learnt and not _phone(learnt) and "airplane mode is off" not in opening:
        db = db.update("phones", customer, airplane=True)
    stages = (stage,) if "settled" in request else (stage, _OTHER)
    facts = {"request": request, **{slot: FACTS[slot] for slot in domain.slots if slot in FACTS}}
    story = Story(customer, stages, facts, voice=_voice())
    done = "tell_done" in acts and bool({"thank", "next_request"} & {*line["should"]})
    served = fulfilled or done or (agreed and bool(acts & _DONE))
    rest = {name: value for name, value in proposed.items() if name not in ("action", "price")}
    offers: tuple[Proposal, ...] = ()
    if agreed:
        offers = (Proposal(frozenset((str(proposed["action"]),)), named=Named(values_of(domain, rest))),)
    user = UserState(served=served, agreed=offers, consent=agreed)
    return SpokenScene(domain, story, user, db)


def _opens(context: Mapping[str, Any]) -> bool:
    """Say whether the user's last words were the request itself."""
    said = {*re.findall(r"\w{3,}", str(context["last_user"]).lower())}
    asked = {*re.findall(r"\w{3,}", str(context["request"]).lower())}
    return len(said & asked) >= max(2, len(asked) // 3)


def _wants(domain: str, request: str, proposed: Mapping[str, Json]) -> tuple[str, ...]:
    found = [str(proposed["action"])] if "action" in proposed else []
    if domain == "telecom" and "data does not work" in request:
        found += ["resume_line", "add_data", "set_roaming"]
    known = domain_of(domain).lexicon.actions
    return tuple(name for name in dict.fromkeys(found) if name in known)


def _phone(learnt: str) -> dict[str, Json]:
    """The state of the phone that an agent has found out."""
    found = (fields for words, fields in _LEARNT.items() if words in learnt)
    return {name: value for fields in found for name, value in fields.items()}


def effects_of(scene: SpokenScene, after: UserAnswer) -> frozenset[str]:
    """Return what the user did, by the names that the labels use."""
    before, user, text = scene.user, after.user, after.text
    said = {act for act, words in _voice().items() if text.startswith(words)}
    on = user.stage > before.stage or user.over
    touched = any(
        after.db.tables.get(table) != scene.db.tables.get(table) for table in ("phones", "bills", "orders")
    )
    sees, did = scene.story.stages[0].check, bool(user.did - before.did)
    settled = bool(sees) and scene.domain.checks[sees](scene.db, scene.story.customer)
    told = any(fact in text for slot, fact in scene.story.facts.items() if slot != "request")
    agrees = "yes" in said or (user.agreed != before.agreed and user.agreed and not on)
    asks = scene.story.stages[0].again in (text, "") and text.endswith("?")
    effects = {
        "end_talk": (user.over and not (before.served or before.stage)) or user.patience <= 0,
        "skip_request": on and not (before.served or scene.story.stages[0].quiet or settled),
        "consent_if": "yes_if" in said,
        "consent": agrees and "yes_if" not in said,
        "touched": touched,
        "lose_patience": user.patience < before.patience,
        "next_request": on,
        "thank": on or said & {"wait", "bye"},
        "do_deed": did or "broken" in said or (sees and on),
        "report": (did and not touched) or "broken" in said or (sees and on),
        "answer_fact": told or said & {"unknown", "as_said"},
        "decline": said & {"not_that", "too_much"},
        "ask_back": said & _BACK or asks,
    }
    found = {name for name, seen in effects.items() if seen}
    if said & _CALM and not found & {"next_request", "consent", "touched", "lose_patience"}:
        found.add("wait")
    return frozenset(found)


def score(line: Mapping[str, Any]) -> SentenceScore:
    """Say one line in its scene, and see what comes of it."""
    scene = scene_of(line)
    after = respond(scene.domain, scene.story, scene.user, scene.db, line["text"])
    effects = effects_of(scene, after)
    bad = {"touched" if name == "do_deed" else name for name in line["must_not"]}
    fatal = bool(effects & bad)
    to_his_wish = "consent_if" in effects
    misplaced = to_his_wish and "consent" in bad
    done = effects | {"consent"} if to_his_wish else effects
    understood = bool(done & {*line["should"]}) and not (fatal or misplaced)
    return SentenceScore(line["id"], line["label"]["act"], effects, understood, fatal, misplaced, after.text)


def score_all(lines: Iterable[Mapping[str, Any]]) -> list[SentenceScore]:
    """The scores of all lines."""
    return [score(line) for line in lines]


def main() -> None:
    """Score a file of labelled sentences."""
    parser = argparse.ArgumentParser(description="Score labelled sentences of agents.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true", help="print the sentences that were not understood")
    asked = parser.parse_args()
    lines = [row.value for row in read_json_lines(asked.file)]
    scores = score_all(lines)
    if asked.show:
        for line, found in zip(lines, scores, strict=True):
            if not found.understood:
                print(f"{'FATAL ' if found.fatal else ''}{found.act}: {line['text']!r} -> {found.answer!r} "
                      f"{sorted(found.effects)} should {line['should']}")  # fmt: skip
    acts = Counter(found.act for found in scores)
    for act, count in acts.most_common():
        good = sum(found.understood for found in scores if found.act == act)
        print(f"{act:16} {good:4} of {count:4}")
    total = len(scores)
    understood, fatal = sum(found.understood for found in scores), sum(found.fatal for found in scores)
    misplaced = sum(found.misplaced for found in scores)
    print(
        f"{total} sentences: understood {understood / total:.3f}, fatal {fatal} ({fatal / total:.4f}), "
        f"a yes to his own wish where none is fair {misplaced}"
    )


if __name__ == "__main__":
    main()
