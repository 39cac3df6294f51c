"""Shop and airline: what customers can be asked, what they read right, and what tools say."""
# pyright: reportTypedDictNotRequiredAccess=false, reportOptionalMemberAccess=false, reportAttributeAccessIssue=false

import collections
import dataclasses
import re

import pytest

from turnwise.data_file import data_file
from turnwise.envs.registry import make
from turnwise.envs.toolworld import cases
from turnwise.envs.toolworld.airline.questions import STATUSES
from turnwise.envs.toolworld.arithmetic import worked_out
from turnwise.envs.toolworld.cases import domain_of, world
from turnwise.envs.toolworld.facts import Fact, stated
from turnwise.envs.toolworld.retail import parts
from turnwise.envs.toolworld.speech.reading import understand
from turnwise.envs.toolworld.speech.values import clash, named
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall, ToolError

PHRASES = data_file("turnwise.envs.toolworld.retail", "phrases", dict[str, tuple[str, ...]])
REASONS = {kind: PHRASES[name] for kind, name in parts.REASONS.items()}
DESKS = ("retail", "airline")

# --- what a customer can be asked ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "slot", "text"),
    [
        ("retail", "payment", "Which payment method should I use for the difference?"),
        ("retail", "payment", "How would you like to pay the difference?"),
        ("retail", "payment", "Which card should the difference go to?"),
        ("retail", "payment", "To which payment method should I refund the difference?"),
        ("retail", "reason", "May I ask why you'd like to cancel it?"),
        ("retail", "reason", "Is it no longer needed, or was it ordered by mistake?"),
        ("retail", "reason", "I need the reason for the cancellation, please."),
        ("airline", "passengers", "Who will be travelling? Please give me the full name of each passenger."),
        ("airline", "passengers", "Is the ticket for yourself, Tara?"),
        ("airline", "passengers", "How many people are flying?"),
        ("airline", "passengers", "OK, is the passenger's name Tara Lopez?"),
        ("airline", "passengers", "Will it be just you travelling, or is anyone else coming along?"),
        ("airline", "passengers", "Please provide the passenger name(s)."),
        ("airline", "passengers", "What are the passengers' full names?"),
        ("retail", "", "I'd cancel order W1234 (reason: no longer needed) and refund $5.00. Shall I proceed?"),
        ("retail", "", "I understand why you'd like that. Shall I cancel order W1234?"),
        ("retail", "", "Shall I change the payment method of W1234 to card_1234?"),
        ("retail", "", "The reason is that it was sent already."),
        ("airline", "", "Shall I change the passenger name from Sam Falk to Sam Novak?"),
        ("airline", "", "Insurance for both passengers would be $60.00. Would you like me to add it?"),
    ],
)  # fmt: skip
def test_what_he_is_asked_for(domain, slot, text):
    assert understand(domain_of(domain).lexicon, text).asks == ((slot,) if slot else ())


QUESTIONS = {
    "reason": ("retail", "May I ask why you would like to cancel it?", REASONS),
    "payment": ("retail", "Which payment method should I use for the difference?", ("card", "PayPal")),
    "passengers": ("airline", "Who will be travelling?", ("just for me",)),
}


@pytest.mark.parametrize("slot", QUESTIONS)
def test_he_tells_what_the_policy_wants_and_he_has_not_said(slot):
    domain, question, answers = QUESTIONS[slot]
    if slot == "reason":
        answers = [way for ways in REASONS.values() for way in ways]
    env, seen = make("turnwise/ToolWorld-v0"), 0
    for index in range(500):
        task = env.generate(
            derive_rng("asked", index), Split.TRAIN, domains=[domain], requests=1, traps=0.3, brief=0
        )
        if not any(slot in step.get("slots", ()) for step in task.options["story"]["stages"][0]["plan"]):
            continue
        env.reset(seed=0, options={"task": task})
        assert not any(
            answer in env.state.case.story.stages[0].say for answer in answers if slot != "payment"
        )
        told = str(env.step(question).observation)
        assert any(answer in told for answer in answers), told
        seen += 1
    assert seen >= 3


def test_a_customer_cancels_for_one_reason_and_pays_differences_in_one_way(monkeypatch):
    """What he answers must fit all that he says, in whichever request he is asked."""
    made = domain_of("retail")
    kinds = {name: made.requests[name] for name in ("cancel", "change", "exchange")}
    traps = {name: made.traps[name] for name in ("cancel_status", "change_status", "change_out_of_stock")}
    monkeypatch.setitem(cases._loaded, "retail", dataclasses.replace(made, requests=kinds, traps=traps))
    env, several = make("turnwise/ToolWorld-v0"), collections.Counter()
    for index in range(120):
        task = env.generate(
            derive_rng("one reason", index),
            Split.TRAIN,
            domains=["retail"],
            requests=3,
            traps=0.5,
            together=0,
        )
        facts, says = task.options["story"]["facts"], [s["say"] for s in task.options["story"]["stages"]]
        reasons = [kind for say in says for kind, ways in REASONS.items() if any(way in say for way in ways)]
        assert len({*reasons}) <= 1
        assert not reasons or facts["reason"] in REASONS[reasons[0]]
        paid = [key for say in says for key in re.findall(r"(card|gift|paypal)_\d+", say)]
        assert len({*paid}) <= 1
        assert not paid or paid[0] in facts["payment"].lower()
        several["reason"] += len(reasons) > 1
        several["payment"] += len(paid) > 1
    assert min(several["reason"], several["payment"]) >= 5


# --- how he reads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "wish", "offer", "kind"),
    [
        ("airline", "Upgrade reservation ABCD12 to business.", "Shall I move ABCD12 from business to economy?", "cabin"),
        ("airline", "Upgrade reservation ABCD12 to business.", "Shall I move ABCD12 from economy to business?", ""),
        ("airline", "Change reservation ABCD12 to economy.", "Shall I move ABCD12 from business class to economy?", ""),
        ("airline", "Change reservation ABCD12 to economy.", "Shall I move ABCD12 from economy to business?", "cabin"),
        ("retail", "In order W1, change the white small mat for the black mat.", "Shall I replace the black mat with the white small one?", "taken"),
        ("retail", "In order W1, change the white small mat for the black mat.", "Shall I replace the white small mat with the black one?", ""),
        ("retail", "Instead of the white mat in order W1, I want the black mat: change it.", "Shall I exchange the white mat for the black one?", ""),
    ],
)  # fmt: skip
def test_from_one_thing_to_another_is_not_the_way_back(domain, wish, offer, kind):
    patterns = domain_of(domain).lexicon.patterns
    assert clash(named(offer, patterns).values, named(wish, patterns).values) == kind


def test_a_general_report_is_of_no_other_change():
    for text in ("Everything has been changed as you asked.", "All is booked as you asked."):
        assert "change_flight" not in understand(domain_of("airline").lexicon, text).told or "booked" in text
    heard = understand(domain_of("airline").lexicon, "I'd move you to flight TW380A-2026-05-20. Okay?")
    assert "change_flight" in heard.proposal.actions


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("I'd take the green large hiking boots out of order W41718, and $112.75 would be refunded. OK?", "remove_item"),
        ("The blue large backpack in order W92509 can go back. You'd receive $70.75. Would that be okay?", "return_items"),
        ("Shall we go for the blue large backpack in order W92509 instead?", "change_item"),
    ],
)  # fmt: skip
def test_other_words_for_a_change(text, action):
    heard = understand(domain_of("retail").lexicon, text)
    assert action in heard.proposal.actions - heard.proposal.bare
    assert action == "change_item" or "exchange_item" not in heard.proposal.actions - heard.proposal.light


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("scheduled", "It's on time."),
        ("scheduled", "The flight is on schedule."),
        ("scheduled", "Everything is running as planned."),
        ("scheduled", "No delays or cancellations; it's on time."),
        ("delayed", "I'm afraid it is late."),
        ("cancelled", "The flight has been called off."),
    ],
)
def test_a_status_in_other_words(status, text):
    assert stated(Fact("word", status, STATUSES), text) is True
    assert all(not stated(Fact("word", other, STATUSES), text) for other in STATUSES if other != status)


# --- how he writes --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("domain", DESKS)
@pytest.mark.parametrize("split", Split)
def test_sentences_are_well_made(domain, split, sample):
    wrong = re.compile(
        r"\bw\d{5}\b|\b(?:reservation|order) [a-z]{4}\d\d\b|\b(?:cor|ard|dun|eas) (?:to|needs)\b|"  # spoilt names
        r"\ba [aeiou](?!ne\b)|\ban? (?:(?:red|blue|green|black|white|silver|small|medium|large) )*hiking boots\b|\b1 (?:\w+ )?bags\b|"
        r"\bthe (\w+ \w+ [\w ]+?) (?:(?:of|from|in|out of) )?my order with the \1\b"  # named by itself
    )
    stages = (
        stage
        for task in sample(f"toolworld/{domain}", split, 120)
        for stage in task.options["story"]["stages"]
    )
    for stage in stages:
        for text in (stage["say"], stage.get("twist", ""), stage.get("again", "")):
            assert not wrong.search(text.replace("a pair of", "some")), text


@pytest.mark.slow
def test_he_knows_no_id_that_only_the_tools_have_told(sample):
    """A booking that is made in the conversation has an id that nobody told him."""
    made = 0
    for task in sample("toolworld/airline", Split.TRAIN, 120):
        known = world("airline", *task.options["world"]).tables["reservations"]
        stages = task.options["story"]["stages"]
        made += any(step.get("name") == "book_flight" for stage in stages for step in stage["plan"])
        for stage in stages:
            assert all(key in known for key in re.findall(r"\breservation (\w+\d+)\b", stage["say"])), stage[
                "say"
            ]
    assert made > 5


def test_conditional_wishes_are_put_in_many_ways(sample):
    frame = re.compile(
        r"(?:^|[.?;,] )(If not|Otherwise|Else|[Ii]f (?:it is|no|that is|so|yes)|[Ii]n any other|Where)\b"
    )
    for split, least in ((Split.TRAIN, 6), (Split.TEST, 4)):
        stages = (
            stage
            for task in sample("toolworld/airline", split, 120)
            for stage in task.options["story"]["stages"]
        )
        assert len({found for stage in stages for found in frame.findall(stage["say"])}) >= least


# --- tools ----------------------------------------------------------------------------------------------


def said_to(domain, name, **arguments):
    made, base = domain_of(domain).act(name), world(domain, "tools", 12)
    return made.run(base, made.tool.validate(ToolCall(name, arguments))).result


@pytest.mark.parametrize("domain", DESKS)
def test_every_argument_is_told_about_in_plain_prose(domain):
    for made in domain_of(domain).acts:
        spec = made.tool.spec
        assert "`" not in spec.description
        for name, about in spec.parameters.get("properties", {}).items():
            assert about.get("description"), (spec.name, name)


def test_an_id_is_the_same_in_small_letters():
    shop, airline = world("retail", "tools", 12), world("airline", "tools", 12)
    order, trip = min(shop.tables["orders"]), min(airline.tables["reservations"])
    for written in (order, order.lower(), f"#{order.lower()}", f" {order} "):
        assert said_to("retail", "get_order", order_id=written)["order_id"] == order
    assert said_to("airline", "get_reservation", reservation_id=trip.lower())["reservation_id"] == trip
    flight = airline.get("reservations", trip).flight_id
    assert said_to("airline", "get_flight", flight_id=flight.lower())["flight_id"] == flight
    made = domain_of("retail").act("cancel_order").tool
    given = made.validate(ToolCall("cancel_order", {"order_id": order.lower(), "reason": "No longer needed"}))
    assert given == {"order_id": order, "reason": "no longer needed"}


@pytest.mark.parametrize(
    ("expression", "value"),
    [("160*3", "480.00"), ("12.50 + 3 - 4.25", "11.25"), ("$1,250.00 / 2", "625.00"), ("2 x ($50 + $12)", "124.00"), ("-5+7", "2.00")],
)  # fmt: skip
def test_a_calculator_multiplies(expression, value):
    assert worked_out(expression) == value
    assert said_to("retail", "calculate", expression=expression) == value
    assert said_to("airline", "calculate", expression=expression) == value


@pytest.mark.parametrize("expression", ["", "2**99", "__import__('os')", "1/0", "1e999999", "a+1", "9" * 300, "3 4"])  # fmt: skip
def test_a_calculator_takes_nothing_else(expression):
    with pytest.raises(ToolError):
        worked_out(expression)


def test_a_date_in_another_form_is_no_empty_answer():
    with pytest.raises(ToolError, match="YYYY-MM-DD"):
        said_to("airline", "search_flights", origin="ARD", destination="BEL", date="May 25")
