"""What people who played were misheard in, or could cheat with: offers beside reports, guesses, amounts, descriptions, decimal points."""
# pyright: reportAttributeAccessIssue=false, reportTypedDictNotRequiredAccess=false

import importlib
import pkgutil
import re

import pytest

from turnwise.envs.core import EndReason
from turnwise.envs.registry import make
from turnwise.envs.toolworld import speech
from turnwise.envs.toolworld.cases import domain_of
from turnwise.envs.toolworld.facts import Fact, say, stated
from turnwise.envs.toolworld.requests import parts_of
from turnwise.envs.toolworld.speech.reading import understand
from turnwise.envs.toolworld.speech.values import clash, named
from turnwise.envs.toolworld.speech.ways import Alternation, GuardedPattern
from turnwise.envs.toolworld.speech.wish import differs, without_questions
from turnwise.tasks.core import Split

DOMAINS = ("retail", "airline", "telecom", "apps")


def play(env, task, change):
    """Gold's episode in which what is said is changed; how it ends, and how often it was."""
    env.reset(seed=0, options={"task": task})
    end, changed, turns = None, 0, 0
    while end is None and turns < 80:
        action, turns = env.gold(env.state), turns + 1
        other = change(env, action) if isinstance(action, str) else None
        changed += other is not None
        end = env.step(action if other is None else other).info["end"]
    return end, changed


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_proposal_after_a_report_is_a_proposal(domain, sample):
    """ "That's done. I will do the next thing, shall I?" is the most natural sentence there is."""
    env, places = make("turnwise/ToolWorld-v0"), 0

    def after_report(env, action):
        changed = env.state.db != env.state.case.base
        return f"That's done. {action}" if changed and "Shall I proceed?" in action else None

    for task in sample(f"toolworld/{domain}", Split.TEST)[:30]:
        end, changed = play(env, task, after_report)
        assert end is EndReason.SOLVED, task.prompt
        places += changed
    assert places


def test_a_wrong_amount_gets_no_yes_that_counts(sample):
    env, wrong = make("turnwise/ToolWorld-v0"), 0

    def for_a_dollar(env, action):
        other = re.sub(r"\$[\d,.]*\d", "$1.00", action)
        return other if "Shall I proceed?" in action and other != action and "$0.00" not in action else None

    for task in sample("toolworld/retail", Split.TEST)[:40]:
        end, changed = play(env, task, for_a_dollar)
        assert not changed or end is not EndReason.SOLVED, task.prompt
        wrong += bool(changed)
    assert wrong >= 8


GUESSES = (
    "It is {0}. It is {1}. It is {2}.", "It is {1}. Or it is {0}.", "It is {0}. Perhaps {1}, perhaps {2}.",
    "Credit: maybe {0}, maybe {1}.", "Credit: {1}. Credit: {0}.", "I do not know. {0} is a number.",
    "I'm not sure, but {0} is possible.", "The answer is {0}. The answer is {1}.",
)  # fmt: skip
TOLD = (
    "It is {0}.", "You used {1} of {2}, so {0} is left.", "In March it was {1}. Now it is {0}.", "It comes to {0}. Each bag costs {2}.",
    "{0}, I have checked it.", "It is {0}. I don't know why it took so long.",
)  # fmt: skip


@pytest.mark.parametrize("fact", [Fact("money", "10000"), Fact("count", "5")])
def test_a_guess_states_nothing_and_what_stands_beside_an_answer_may_stand(fact):
    other = 2500 if fact.kind == "money" else 2
    values = [say(fact), *(say(fact._replace(value=str(int(fact.value) + other * n))) for n in (1, 2))]
    for text in GUESSES:
        assert stated(fact, text.format(*values)) is False, text
    for text in TOLD:
        assert stated(fact, text.format(*values)) is True, text


@pytest.mark.parametrize(
    ("wish", "offer", "action"),
    [
        ("Among my unsent orders, have the one that costs most in all cancelled.", "Shall I cancel order W77152, {} at $211.50?", "cancel_order"),
        (
            "In order W53116, exchange the black medium picture frame for the cheapest blue picture frame in stock.",
            "The cheapest blue picture frame in stock is the large one at $126.50 (item I529306). I'd exchange your black medium picture frame of order W53116 for it and refund the difference of $1.75 to card_8509. Okay?",
            "exchange_item",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "thing",
    [
        "your most expensive pending order",
        "your dearest pending order",
        "the dearest",
        "your most expensive one",
    ],
)
def test_a_right_description_of_a_thing_contradicts_nothing(wish, offer, action, thing):
    lexicon = domain_of("retail").lexicon
    heard = understand(lexicon, offer.format(thing))
    assert action in heard.proposal.actions
    assert not heard.foreign
    assert not differs(wish, heard.text)
    assert not clash(heard.proposal.named.values, named(wish, lexicon.patterns).values)


def test_a_decimal_point_ends_no_question():
    wish = "Is it true that for a mat in stock I pay $19.00 extra at the most, compared with order W47650? Then please exchange it for that. If not, cancel W47650."
    assert (
        without_questions(domain_of("retail").lexicon, wish)
        == "Then please exchange it for that. If not, cancel W47650."
    )


def questions(sample):
    for task in sample("toolworld/retail", Split.TEST):
        story = task.options["story"]
        if (
            len(story["stages"]) == 1
            and story["stages"][0].get("tells")
            and not story["stages"][0].get("wants")
        ):
            yield task


def test_an_answer_beside_a_question_need_not_be_given_again(sample):
    env = make("turnwise/ToolWorld-v0")
    for task in questions(sample):
        env.reset(seed=0, options={"task": task})
        answer = env.state.case.story.stages[0].plan[-1].text
        env.step(f"{answer} What is your zip code, please?")
        last = env.step("Is there anything else that I can do for you?")
        assert last.info["end"] is not None, (answer, last.observation)


def told_together(sample, name, fits):
    """A case whose user tells two requests at once, and the user; ``fits`` says which."""
    env = make("turnwise/ToolWorld-v0")
    for task in sample(name, Split.TEST, 120):
        stages = task.options["story"]["stages"]
        if task.options["story"].get("together") and fits([stage["plan"] for stage in stages], stages):
            env.reset(seed=0, options={"task": task})
            return env.state.case, env.state.user
    raise AssertionError("no such task")


def names(plan):
    return {step.get("name") for step in plan}


def test_a_price_belongs_to_the_change_before_it_though_another_request_is_for_a_refund(sample):
    """ "I will cancel W1 and refund $5.00" is one offer, whatever else the customer wants refunded."""

    def fits(plans, stages):
        return any("return_items" in names(plan) for plan in plans) and any(
            names(plan) & {"cancel_order", "remove_item"} for plan in plans
        )

    case, user = told_together(sample, "toolworld/retail", fits)
    number, offer = next(
        (number, step.text) for number, stage in enumerate(case.story.stages) for step in stage.plan
        if step.kind == "confirm" and step.text.startswith(("I will cancel", "I will remove")) and step.text.count(" and ") == 1
    )  # fmt: skip
    assert parts_of(case.domain, case.story, user, offer) == {number: offer}


def test_a_no_to_an_exception_is_none_to_the_other_request(sample):
    case, user = told_together(
        sample, "toolworld/apps",
        lambda plans, stages: bool(stages[0].get("insist")) and any(step["kind"] == "confirm" for step in plans[1]),
    )  # fmt: skip
    offer = next(step.text for step in case.story.stages[1].plan if step.kind == "confirm").removesuffix(
        " Shall I proceed?"
    )
    parts = parts_of(
        case.domain, case.story, user._replace(insisted=True), f"I'm sorry, there is no exception. {offer}"
    )
    assert parts == {0: "I'm sorry, there is no exception.", 1: offer}


def test_the_reader_has_no_more_rules_than_when_it_was_frozen():
    """What is misheard is mended by what is known of a request, not by one more way to say it."""
    ways = list[str]()
    for one in pkgutil.iter_modules(speech.__path__):
        for value in vars(importlib.import_module(f"{speech.__name__}.{one.name}")).values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Alternation):
                    ways += part.ways
                elif isinstance(part, (re.Pattern, GuardedPattern)):
                    ways.append(part.pattern if isinstance(part, re.Pattern) else part._exact.pattern)
    assert len(ways) <= 536
    assert sum(map(len, ways)) <= 60_772
