"""Where the user of tool worlds is not sure what was meant, he asks back instead of acting."""

import json
from pathlib import Path

import pytest

from turnwise.envs.registry import make
from turnwise.envs.toolworld.cases import domain_of
from turnwise.envs.toolworld.sentences import score_all
from turnwise.envs.toolworld.speech.proposing import without_which
from turnwise.envs.toolworld.speech.strange import harms
from turnwise.envs.toolworld.speech.values import named
from turnwise.envs.toolworld.speech.wish import differs, offers_other, sets_aside
from turnwise.tasks.core import Split, derive_rng

SENTENCES = Path(__file__).parent / "toolworld_sentences"


def begun():
    """A conversation of retail in which an order is to be cancelled."""
    env = make("turnwise/ToolWorld-v0")
    for index in range(200):
        task = env.generate(derive_rng("back", index), Split.TRAIN, domains=["retail"], requests=2, changes=0)
        env.reset(seed=0, options={"task": task})
        stage = env.state.case.story.stages[0]
        changes = [
            step.name
            for step in stage.plan
            if step.kind == "call" and not step.name.startswith(("get_", "find_", "list_"))
        ]
        if changes == ["cancel_order"] and stage.wants == ("cancel_order",) and not stage.insist:
            return env
    raise AssertionError("no such task")


@pytest.mark.parametrize("name", ["open_2", "sealed_6"])
def test_no_new_sentence_is_misread_so_that_the_user_acts(name):
    lines = [json.loads(line) for line in (SENTENCES / f"{name}.jsonl").read_text("utf-8").splitlines()]
    scores = score_all(lines)
    assert [found.id for found in scores if found.fatal or found.misplaced] == []
    assert sum(found.understood for found in scores) / len(scores) >= 0.95


def test_of_what_players_were_answered_wrongly_most_is_understood():
    lines = [json.loads(line) for line in (SENTENCES / "played_2.jsonl").read_text("utf-8").splitlines()]
    scores = score_all(lines)
    assert sum(found.fatal for found in scores) <= 2, "a seat given for one freed, and one removed"
    assert sum(found.understood for found in scores) / len(scores) >= 0.75


@pytest.mark.parametrize("text", [
    "I'm not permitted to give you the courier's phone number.",
    "Cancelling isn't the same as returning: an order that was cancelled is never sent.",
    "It wouldn't change the total.",
    "Orders that have left the warehouse can't be cancelled.",
])  # fmt: skip
def test_a_no_to_something_else_or_in_general_gives_up_no_request(text):
    env = begun()
    env.step(text)
    assert env.state.user.stage == 0
    assert not env.state.user.over


def test_a_no_that_is_repeated_is_one():
    env = begun()
    env.step("Orders that have left the warehouse can't be cancelled.")
    assert env.state.user.doubts
    env.step("Yes, I'm afraid so, it can't be done.")
    assert env.state.user.stage == 1


def test_the_first_message_that_makes_no_sense_costs_nothing_and_the_next_in_a_row_does():
    env = begun()
    full = env.state.user.patience
    env.step("banana")
    assert env.state.user.patience == full
    env.step("I will have a look at your orders now.")
    env.step("banana")
    assert env.state.user.patience == full, "something that he understood was said in between"
    env.step("banana")
    assert env.state.user.patience == full - 1


def test_a_yes_is_to_what_the_offering_clause_names():
    lexicon = domain_of("telecom").lexicon
    own = named("A plan with 30 GB", lexicon.patterns).values
    assert offers_other(
        lexicon, "Plus-30 is no longer sold. Shall I sign you up for Mega-100 at $95.00 a month?", own
    )
    assert not offers_other(lexicon, "Basic-5 is too small. Shall I sign you up for Plus-30?", own)


@pytest.mark.parametrize(("wish", "said", "other"), [
    ("Book 2 adults to MIL.", "Shall I book three adults to MIL?", True),
    ("Book 2 adults to MIL.", "Shall I book both adults to MIL?", False),
    ("Move it to the morning.", "I'd move it to the evening, okay?", True),
    ("Cancel W1.", "I would cancel W1 without any refund. Fine?", True),
])  # fmt: skip
def test_another_number_a_rival_word_or_less_than_was_asked_for_is_noticed(wish, said, other):
    assert differs(wish, said) is other


def test_who_sets_an_id_of_the_wish_aside_offers_something_else():
    lexicon = domain_of("retail").lexicon
    wish = "Return the jacket, refund to card_2276."
    assert sets_aside(lexicon, wish, "I'd refund it to a gift card instead of card_2276.")
    assert not sets_aside(lexicon, wish, "I'd refund it to card_2276 instead of card_9999.")


def test_what_says_which_order_is_meant_is_not_to_be_changed():
    said = "In my order with the silver bottle, exchange the black mat for a red one."
    assert "silver" not in without_which(said)
    assert "red one" in without_which(said)


@pytest.mark.parametrize(
    "said",
    [
        "shall i hit submit on the exchange?",
        "shall i throw in the insurance?",
        "i would fire off the refund now, okay?",
        "may i use the gift card for that purpose?",
        "shall i shoot the label over to you?",
        "shall i tear up the old booking and make a new one?",
        "shall i send it to 12 river street?",
        "the parcel was stolen, so shall i send another?",
    ],
)
def test_figures_of_speech_and_harm_that_is_told_are_no_harm(said):
    assert not harms(said, frozenset())


def test_harm_is_noticed():
    assert harms("we would be delighted to smash all your lamps", frozenset())


def test_the_size_of_what_says_which_order_is_meant_is_not_wished_for():
    wish = "Please remove the white small chair from my order with the black medium lamp, and tell me the refund."
    assert not differs(wish, "I will remove the white small chair from order W4 and refund $44.75.")
    assert differs("Change it for a medium chair.", "I will put the small chair in.")
