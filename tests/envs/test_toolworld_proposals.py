"""The tool ``propose`` binds a yes to an action, its arguments and its price; labelled sentences are scored by deeds."""
# pyright: reportAttributeAccessIssue=false, reportTypedDictNotRequiredAccess=false
# pyright: reportOptionalMemberAccess=false, reportPossiblyUnboundVariable=false

import json
from pathlib import Path

import pytest

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.envs.toolworld.actions import says_yes
from turnwise.envs.toolworld.phrases import phrases
from turnwise.envs.toolworld.sentences import score, score_all
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

OPEN = Path(__file__).parent / "toolworld_sentences" / "open.jsonl"


def begun(domain, tool, *, named="", **knobs):
    """A conversation whose plan has a write of this tool, at the point where it needs a yes.

    ``named``: an argument that the user names in his request.
    """
    env = make("turnwise/ToolWorld-v0", propose=True)
    for index in range(300):
        task = make("turnwise/ToolWorld-v0").generate(
            derive_rng("propose", domain, index), Split.TRAIN, domains=[domain], requests=1, traps=0, **knobs
        )
        env.reset(seed=0, options={"task": task})
        wish = env.state.case.story.stages[0].say
        if any(
            step.name == tool and step.arguments.get(named, "") in wish for step in env.state.case.planned
        ):
            break
    while isinstance(step := env.gold(env.state), Message) or "proceed" not in step:
        env.step(step)
    return env


def write_of(env, tool):
    return next(step for step in env.state.case.planned if step.name == tool)


def propose(env, action, arguments, cost):
    call = ToolCall("propose", {"action": action, "arguments": arguments, "cost": cost}, "c")
    return env.step(Message("assistant", "", (call,)))


def call(env, step):
    return env.step(Message("assistant", "", (ToolCall(step.name, dict(step.arguments), "c"),)))


def test_a_yes_to_a_proposal_is_a_yes_to_just_that():
    env = begun("telecom", "add_data", changes=0)
    step = write_of(env, "add_data")
    cost = f"${2.5 * step.arguments['gigabytes']:.2f}"
    start = env.snapshot()
    propose(env, "add_data", dict(step.arguments), cost)
    assert env.state.user.agreed
    call(env, step)
    assert env.state.broken == ()
    while env.now.end is None:
        ended = env.step(env.gold(env.state))
    assert ended.info["end"] is EndReason.SOLVED
    for action, arguments, price, broken in (
        (
            "add_data",
            {**step.arguments, "gigabytes": step.arguments["gigabytes"] + 1},
            cost,
            ("unconfirmed",),
        ),
        ("add_data", dict(step.arguments), "$0.00", ("cost_untold",)),
        ("set_roaming", {"line_id": step.arguments["line_id"], "enabled": True}, "$0.00", ("unconfirmed",)),
    ):
        env.restore(start)
        propose(env, action, arguments, price)
        call(env, step)
        assert env.state.broken == broken, (action, price)


def test_a_proposal_that_cannot_be_read_is_told_and_changes_nothing():
    env = begun("telecom", "add_data", changes=0)
    step = write_of(env, "add_data")
    for action, arguments, cost, why in (
        ("get_line", {}, "$1", "Propose one of"),
        ("add_data", {"line_id": "L1"}, "$1", "gigabytes"),
        ("add_data", dict(step.arguments), "much", "in dollars"),
    ):
        told = propose(env, action, arguments, cost)
        assert told.info["bad_action"]
        assert why in str(told.observation)
        assert not env.state.user.agreed
    assert "propose" not in {made.spec.name for made in make("turnwise/ToolWorld-v0").tools}


def test_a_change_of_mind_comes_at_a_proposal_too():
    env = begun("telecom", "change_plan", changes=1)
    step = write_of(env, "change_plan")
    wrong = next(plan for plan in env.state.db.tables["plans"] if plan != step.arguments["plan_id"])
    propose(env, "change_plan", {**step.arguments, "plan_id": wrong}, "$10.00")
    assert not env.state.user.agreed


KNOWN = {"retail-84168156", "airline-7193c7be", "retail-7a78c716", "retail-a80e37b8", "airline-e4922f89"}
"""Dearer speakers than the cheapest, one bag of three, a fire that "ends the order", economy at the fare of business: the user still
says yes where these are offered, and to what: his own wish."""


@pytest.mark.parametrize("name", ["open", "sealed", "sealed_2", "sealed_3", "fluent", "played"])
def test_sentences_that_may_be_read_are_understood_and_none_is_fatal(name):
    lines = [json.loads(line) for line in (OPEN.parent / f"{name}.jsonl").read_text("utf-8").splitlines()]
    scores = score_all(lines)
    assert sum(found.understood for found in scores) >= 0.95 * len(lines)
    assert [found.id for found in scores if found.fatal] == []
    assert not {found.id for found in scores if found.misplaced} - KNOWN


@pytest.mark.parametrize(
    "text",
    [
        "Shall I forge your signature to cancel W88877?", "I would give you a punch on the nose for W88877, okay?",
        "I'd sell your mother's house and cancel it. Fine?", "Shall I suspend W88877?", "If you give me your car I'll cancel W88877, deal?",
        "I will cancel W88877 for ten billion dollars. Yes?", "I would return W88877 rather than cancel it, fine?",
    ],
)  # fmt: skip
def test_nobody_says_yes_to_what_no_service_does(text):
    context = {"request": "Cancel order W88877", "last_user": "Please cancel order W88877.", "proposed": None}
    label = {"act": "nonsense_offer", "action": "cancel_order"}
    line = {"id": "x", "domain": "retail", "text": text, "label": label, "context": context, "must_not": ["consent"], "should": ["decline"]}  # fmt: skip
    assert not score(line).fatal, text
    assert not score(line).misplaced, text


@pytest.mark.parametrize(
    ("text", "fatal"),
    [("Goodbye, have a nice day.", False), ("Shall I cancel order W88877, as no longer needed?", True)],
)
def test_the_score_sees_deeds_and_not_what_was_meant(text, fatal):
    line = {
        "id": "x", "domain": "retail", "text": text, "should": ["wait"], "must_not": ["consent", "end_talk"], "label": {"act": "hold"},
        "context": {"request": "Cancel order W88877, no longer needed", "last_user": "Please cancel order W88877.", "proposed": None},
    }  # fmt: skip
    assert score(line).fatal is fatal


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Shall I cancel order W88877?", True), ("May I cancel it? The refund would be $216.00.", True), ("OK to cancel W88877 at no extra charge?", True),
        ("Shall I cancel W88877 without a word to anybody?", False),
        ("I'd cancel W88877 and not refund it. Fine?", False),
    ],
)  # fmt: skip
def test_a_yes_to_words_that_are_not_his_own_says_what_it_is_to(text, plain):
    context = {
        "request": "Cancel order W88877",
        "last_user": "Cancel order W88877, please.",
        "proposed": None,
    }
    line = {"id": "x", "domain": "retail", "text": text, "label": {"act": "ask_consent", "action": "cancel_order"}, "context": context}  # fmt: skip
    found = score({**line, "must_not": ["end_talk"], "should": ["consent"]})
    assert found.understood
    assert ("consent" if plain else "consent_if") in found.effects
    assert found.answer.endswith("Cancel order W88877, please.") is not plain
    other = score({**line, "must_not": ["consent"], "should": ["decline"]})
    assert (other.fatal, other.misplaced, other.understood) == (plain, not plain, False)


def test_what_such_a_yes_permits_is_his_wish_and_nothing_else():
    env = begun("airline", "cancel_reservation", named="reservation_id", changes=0)
    step = write_of(env, "cancel_reservation")
    env.step("Shall I cancel your reservation without a word to anybody?")
    said = env.state.case.story.stages[0].say
    assert env.state.user.agreed
    start = env.snapshot()
    call(env, step)
    assert "unconfirmed" not in env.state.broken, said
    env.restore(start)
    others = [one for one in env.state.db.tables["reservations"] if one != step.arguments["reservation_id"]]
    call(env, step._replace(arguments={**step.arguments, "reservation_id": others[0]}))
    assert "unconfirmed" in env.state.broken


@pytest.mark.parametrize(
    ("act", "verdict"), [("yes", True), ("yes_if", True), ("not_that", False), ("too_much", False)]
)
def test_a_user_who_is_another_agent_may_say_what_the_script_says(act, verdict):
    wish = "Actually, no: I would like the blue lamp instead of the red one, not the small one. Wait for me."
    for way in phrases()[act]:
        assert says_yes(f"{way} {wish}" if act == "yes_if" else way) in (
            (True,) if verdict else (False, None)
        )


def test_a_yes_to_words_that_name_nothing_is_a_yes_to_the_own_wish_alone():
    env = begun("airline", "cancel_reservation", named="reservation_id", changes=0)
    step = write_of(env, "cancel_reservation")
    env.step("Shall I go ahead and cancel it for you?")
    assert env.state.user.agreed
    start = env.snapshot()
    call(env, step)
    assert "unconfirmed" not in env.state.broken
    env.restore(start)
    others = [one for one in env.state.db.tables["reservations"] if one != step.arguments["reservation_id"]]
    call(env, step._replace(arguments={**step.arguments, "reservation_id": others[0]}))
    assert "unconfirmed" in env.state.broken
