"""What the user of tool worlds understands: courtesy is free, a yes is to what was said, a no is a no."""

import functools
from pathlib import Path

import pytest

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.envs.toolworld.cases import domain_of
from turnwise.envs.toolworld.phrases import phrases, pool
from turnwise.envs.toolworld.speech.reading import understand
from turnwise.envs.toolworld.speech.values import clash, named
from turnwise.envs.toolworld.speech.wish import bound, nobody_spoke_of, other_size
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

DOMAINS = ("retail", "airline", "telecom")
COURTESIES = (
    "I'm sorry to hear that. Let me look into it for you.",
    "Let me check that for you. One moment please.",
    "Hello! Thank you for reaching out, I'd be happy to help you with that.",
    "I completely understand how frustrating this must be.",
    "Of course! Please bear with me while I pull up your account.",
    "Thanks so much for your patience.",
)


@functools.cache
def task(domain, index, **knobs):
    return make("turnwise/ToolWorld-v0").generate(
        derive_rng("speech", domain, index), Split.TRAIN, domains=[domain], **knobs
    )


def begun(domain, index=0, **knobs):
    env = make("turnwise/ToolWorld-v0")
    env.reset(seed=0, options={"task": task(domain, index, **knobs)})
    return env


def find(domain, tool, **knobs):
    """A conversation whose plan has a write of this tool, at the point where it needs a yes."""
    for index in range(200):
        env = begun(domain, index, requests=1, traps=0, changes=0, **knobs)
        if any(step.name == tool for step in env.state.case.planned):
            break
    while isinstance(step := env.gold(env.state), Message) or "proceed" not in step:
        env.step(step)
    return env


def call(env, tool):
    step = next(step for step in env.state.case.planned if step.name == tool)
    return Message("assistant", "", (ToolCall(tool, dict(step.arguments), "c"),))


def heard(domain, text):
    return understand(domain_of(domain).lexicon, text)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("courtesy", COURTESIES)
def test_courtesy_ends_nothing_skips_nothing_and_costs_nothing(domain, courtesy):
    for index in range(5):
        env = begun(domain, index)
        before = env.state.user
        for _ in range(6):
            assert env.step(courtesy).info["end"] is None
        assert env.state.user == before


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_thousand_openings_end_nothing_skip_nothing_and_cost_nothing(domain):
    """Each of 41 ways to begin or to ask for a moment, in nine talks of three domains: 1,107."""
    openings = (Path(__file__).parent / "toolworld_sentences" / "openings.txt").read_text().splitlines()
    for index in range(9):
        env = begun(domain, index)
        for opening in openings:
            other = env.fork()
            assert other.step(opening).info["end"] is None, opening
            assert other.state.user == env.state.user, opening


@pytest.mark.parametrize("domain", DOMAINS)
def test_key_words_alone_solve_nothing(domain):
    """The audit's exploit: "Shall I?" before a change, "sorry" after it, amounts by themselves."""
    solved = played = 0
    for index in range(12):
        env = begun(domain, index, traps=0)
        if not any(step.kind == "confirm" for stage in env.state.case.story.stages for step in stage.plan):
            continue
        played += 1
        end, turns, asked = None, 0, None
        while end is None and turns < 40:
            step, turns = env.gold(env.state), turns + 1
            if not isinstance(step, Message):
                if "proceed" in step and step != asked:
                    asked, step = step, "Shall I?"
                elif "proceed" in step:
                    plan = env.state.case.story.stages[env.state.user.stage].plan
                    acts = env.state.case.domain
                    write = next(s for s in plan if s.kind == "call" and acts.act(s.name).kind == "write")
                    step = Message("assistant", "", (ToolCall(write.name, dict(write.arguments), "c"),))
                elif step.startswith("Done"):
                    step = "sorry " + " ".join(word for word in step.split() if "$" in word)
            found = env.step(step)
            end = found.info["end"]
        solved += end is EndReason.SOLVED
    assert played > 3
    assert solved == 0


def test_a_yes_needs_something_to_be_said_yes_to():
    env = find("telecom", "set_roaming")
    for text in ("Shall I?", "Sure?", "Shall I proceed?", "Is that okay?"):
        env.step(text)
        assert not env.state.user.agreed
    for text in (
        "I will charge you one million dollars and give your seat to a stranger. Shall I proceed?",
        "Shall I change your plan to Max-40?",
    ):
        env.step(text)
        assert not env.state.user.agreed
    line = env.state.case.base.get("customers", env.state.case.story.customer).line_id
    plan = env.state.case.story.stages[env.state.user.stage].plan
    on = next(step for step in plan if step.name == "set_roaming").arguments["enabled"]
    does, contrary = ("enable", "disable") if on else ("disable", "enable")
    env.step(
        f"I can {contrary} international roaming on your line {line} at no cost. Would that work for you?"
    )
    assert not env.state.user.agreed
    env.step(f"I can {does} international roaming on your line {line} at no cost. Would that work for you?")
    assert env.state.user.agreed
    env.step(call(env, "set_roaming"))
    assert env.state.broken == ()


def test_a_write_must_be_what_was_agreed_and_its_cost_told():
    env = find("telecom", "add_data")
    right = next(step for step in env.state.case.planned if step.name == "add_data").arguments["gigabytes"]
    start = env.snapshot()
    for offer, broken in (
        (f"I will add {right} GB for ${2.5 * right:.2f}. Shall I proceed?", ()),
        (f"Is it alright if I add {right} GB? That is {2.5 * right:.2f} dollars.", ()),
        (f"I will add {right} GB. Shall I proceed?", ("cost_untold",)),
        (f"I will add {right} GB for $1.00. Shall I proceed?", ("cost_untold",)),
        ("May I switch on roaming for you?", ("unconfirmed",)),
    ):
        env.restore(start)
        env.step(offer)
        env.step(call(env, "add_data"))
        assert env.state.broken == broken, offer


def test_who_asks_for_the_cheapest_does_not_take_another():
    patterns = domain_of("retail").lexicon.patterns
    asked = named("exchange it for the cheapest red speaker that you have", patterns).values
    for text, other in (
        ("the nicest red speaker, not the cheapest one I admit, for $14.00 more", True),
        ("the most expensive red speaker for $14.00 more", True),
        ("the cheapest red speaker for $14.00 more, not the nicest", False),
        ("the red large speaker for $14.00 more", False),
    ):
        assert (clash(named(text, patterns).values, asked) == "rank") is other, text


def test_the_user_corrects_what_contradicts_his_words():
    env = find("retail", "change_address")
    wish = env.state.case.story.stages[0].say
    said = (
        env.step("I will send it to 1 Nowhere Street, Harrow 11111. Shall I proceed?").observation[0].content
    )
    assert said.endswith(wish)
    assert not env.state.user.agreed


@pytest.mark.parametrize("text", ["Please do not restart the phone yet.", "Don't turn anything off for now.",
                                  "Did you already turn airplane mode off?", "Have you restarted it?"])  # fmt: skip
def test_a_question_and_a_prohibition_are_no_orders(text):
    for index in range(8):
        env = begun("telecom", index, requests=1)
        phones = env.state.db.tables["phones"]
        env.step(text)
        assert env.state.db.tables["phones"] == phones
        assert env.state.user.stage == 0


@pytest.mark.parametrize(("domain", "text", "slots"), [
    ("telecom", "And the four-digit code?", ("pin",)),
    ("telecom", "I'm sorry to hear that! Could I have your phone number and PIN, please?", ("phone", "pin")),
    ("telecom", "To get started, I need to verify your identity.", ("phone", "pin")),
    ("airline", "What's your user ID, and when were you born?", ("user_id", "birthday")),
    ("retail", "May I have the e-mail address on your account?", ("email",)),
    ("retail", "Could you confirm your full name and zip code?", ("zip", "name")),
])  # fmt: skip
def test_facts_are_asked_for_in_many_ways(domain, text, slots):
    assert heard(domain, text).asks == slots


@pytest.mark.parametrize(("domain", "text"), [
    ("retail", "I'm sorry, but this order can't be cancelled because it has already been shipped."),
    ("retail", "Unfortunately, I must decline this request."),
    ("airline", "Basic fares are not eligible for changes, I'm afraid."),
    ("telecom", "I won't be able to resume your line since the contract has ended."),
    ("telecom", "Sorry, that is against our policy."),
])  # fmt: skip
def test_a_clear_no_is_one(domain, text):
    assert heard(domain, text).refusal == "clear"


@pytest.mark.parametrize("text", ["I'm sorry, I can't find your order.", "I can't do that until I have verified you.",
                                  "I can't wait to help you!", "Sorry about the delay."])  # fmt: skip
def test_what_is_no_refusal_is_none(text):
    assert heard("retail", text).refusal != "clear"


def test_values_in_words_and_digits():
    assert named("seventeen dollars and 50 cents", {}).money == {1750}
    assert named("nine hundred thousand dollars", {}).money == {90_000_000}
    assert named("TW710C-2026-05-19", {}).values == {("TW9a", "TW710C"), ("date", "05-19")}
    assert named("on the 19th of May", {}).values == {("date", "05-19")}


@pytest.mark.parametrize("act", sorted(phrases()))
def test_no_phrase_of_the_user_is_in_two_splits(act):
    pools = [set(pool(phrases()[act], split)) for split in Split]
    assert all(pools)
    assert not (pools[0] & pools[1])
    assert not (pools[0] & pools[2])
    assert not (pools[1] & pools[2])


def test_the_voice_of_a_task_is_its_splits():
    for split in Split:
        made = make("turnwise/ToolWorld-v0").generate(
            derive_rng("voice", split.value), split, domains=["retail"]
        )
        voice = made.options["story"]["voice"]
        assert all(voice[act] in pool(phrases()[act], split) for act in phrases())


@pytest.mark.parametrize("domain", ["retail", "apps"])
@pytest.mark.parametrize("text", ["One moment, please, I am still at it.", "Hmm, that didn't go through. I'll try again.",
                                  "Thank you for waiting! I'll now do the rest."])  # fmt: skip
def test_after_a_change_the_user_waits_while_the_agent_is_at_it_and_goes_on_when_told(domain, text):
    for index in range(200):
        env = begun(domain, index, requests=1, traps=0, changes=0)
        if not any(stage.tells for stage in env.state.case.story.stages):
            break
    while not env.state.user.served:
        env.step(env.gold(env.state))
    patience = env.state.user.patience
    assert env.step(text).info["end"] is None
    assert env.state.user.patience == patience
    assert env.step("Everything is as you wished.").info["end"] is not None


@pytest.mark.parametrize(("text", "what"), [
    ("Want me to switch you over to Go-20?", "consent"), ("You okay with paying seventeen-fifty?", "consent"),
    ("Say the word and I'll cancel it.", "consent"), ("7 GB, $17.50. Yes or no?", "consent"),
    ("I can confirm that your plan was changed.", "done"), ("Won't be long!", "hold"), ("Just give me a tick.", "hold"),
    ("I'd love to help but my hands are tied.", "refusal"), ("Any luck?", "tries"), ("Could I grab your PIN?", "asks"),
    ("Try turning off airplane mode and tell me when you have.", "deeds"), ("What does it say now?", "looks"),
])  # fmt: skip
def test_fluent_sentences_are_what_they_are(text, what):
    found = heard("telecom", text)
    assert getattr(found, what)
    others = {"consent", "done", "refusal", "asks", "deeds"} - {what}
    assert not any(getattr(found, other) for other in others), found


def test_off_is_no_form_of_of():
    assert not heard("telecom", "Look at the top of the screen: any plane there?").looks
    assert (
        "airplane_mode_off" not in heard("telecom", "Look at the top of the screen: any plane there?").deeds
    )


def test_prices_spoken_in_two_numbers():
    assert named("seventeen-fifty", {}).money == {1750}
    assert named("two hundred and eight dollars fifty", {}).money == {20850}
    assert named("for two dollars 20 GB", {}).money == {200}


@pytest.mark.parametrize(("domain", "text"), [
    ("airline", "Good, that's the go-ahead I needed."), ("retail", "A message is on its way to you to confirm it."),
    ("retail", "A word on our rules, if I may: an order can be cancelled while it is pending."),
    ("telecom", "Could I get your PIN?"), ("telecom", "Please don't restart it just yet, okay?"),
])  # fmt: skip
def test_no_yes_is_given_where_none_is_asked_for(domain, text):
    assert not heard(domain, text).consent


def test_what_is_forbidden_is_done_by_no_other_clause():
    said = heard(
        "telecom", "You could restart the phone later. For now turn airplane mode off, but do not restart it."
    )
    assert said.deeds == ("airplane_mode_off",)
    assert heard("telecom", "Please restart the phone.").deeds == ("restart",)


def test_that_something_helps_nothing_is_no_refusal():
    assert heard("telecom", "Resetting it again will not allow roaming.").refusal == ""
    assert heard("telecom", "I can not allow roaming.").refusal == "clear"


def test_an_id_may_stand_before_what_is_done_to_it():
    assert heard("retail", "W41906 gets cancelled. Do you confirm?").proposal.actions == {"cancel_order"}


@pytest.mark.parametrize(("domain", "text"), [
    ("retail", "I did get your go-ahead a minute ago."), ("retail", "Customers who say yes to wrapping get a card with it."),
    ("retail", 'Our handbook says: "An order is cancelled only once the customer has explicitly agreed."'),
    ("airline", "I'll ask you for your okay in a minute."),
])  # fmt: skip
def test_who_only_tells_of_a_yes_asks_for_none(domain, text):
    assert not heard(domain, text).consent


@pytest.mark.parametrize("text", ["Could you please refrain from resetting the APN until I have looked?", "Pls dont reset the APN!!",
                                  "Kindly abstain from resetting the APN.", "Please press nothing."])  # fmt: skip
def test_a_prohibition_in_any_words_is_no_order(text):
    said = heard("telecom", text)
    assert said.forbids
    assert said.deeds == ()


def test_what_would_be_is_no_refusal_and_a_no_beside_a_prohibition_is_no_clear_one():
    assert heard("airline", "If there were fewer than four seats left I'd have to say no.").refusal == ""
    assert heard("telecom", "No, please press nothing! Leave the saver on for now.").refusal != "clear"
    assert heard("retail", "No.").refusal == "clear"


@pytest.mark.parametrize(("wish", "said", "other"), [
    ("Cancel order W1, please.", "I keep your money as a souvenir. Deal?", True),
    ("Change the lamp for the brass tall one.", "Shall I put the chrome tall lamp in?", True),
    ("Change the lamp for the brass tall one.", "Shall I put the brass tall lamp in?", False),
])  # fmt: skip
def test_a_thing_of_which_nobody_spoke_is_noticed(wish, said, other):
    assert nobody_spoke_of(domain_of("retail").lexicon, said, wish) is other


def test_what_is_named_belongs_to_its_own_request():
    lexicon = domain_of("retail").lexicon
    wish = "Two things. Cancel W18450, I don't need it. And W18522 should go to 3 Elm Close, Dunmore."
    own = bound(lexicon, wish, frozenset({"cancel_order"}), named(wish, lexicon.patterns).values)
    assert ("W9", "W18450") in own
    assert ("W9", "W18522") not in own


def test_other_addresses_routes_and_names_contradict():
    retail, airline = (domain_of(name).lexicon.patterns for name in ("retail", "airline"))
    assert (
        clash(named("to 17 Harbour Row", retail).values, named("to 7 Harbour Row", retail).values)
        == "address"
    )
    assert clash(named("EAS to DEL", airline).values, named("from EAS to DUN", airline).values) == "route"
    assert (
        clash(
            named("in the name of Hannah Sylva", airline).values,
            named("Ana Silva to Anna Sylva", airline).values,
        )
        == "person"
    )


def test_a_report_of_another_order_is_contradicted_once():
    env = find("retail", "change_address")
    env.step(env.gold(env.state))
    while not env.state.user.served:
        env.step(env.gold(env.state))
    text = "That's W00001 changed for you."
    wish = env.state.case.story.stages[0].say
    assert env.step(text).observation[0].content.endswith(wish)
    assert not env.step(text).observation[0].content.endswith(wish)


@pytest.mark.parametrize(
    ("suite", "index"), [("toolworld/retail", 55), ("toolworld/mixed", 7), ("toolworld/mixed", 42)]
)
def test_a_change_of_mind_stands_above_what_the_first_wish_belongs_to(suite, index):
    """Two colours in the first wish, each with its own half, and a third one later."""
    env = make("turnwise/ToolWorld-v0")
    env.reset(seed=0, options={"task": suite_task(get_suite(suite), Split.TEST, index)})
    end = None
    while end is None:
        end = env.step(env.gold(env.state)).info["end"]
    assert end is EndReason.SOLVED


def test_the_size_of_another_thing_of_the_order_is_not_the_size_that_is_wished_for():
    wish = "I do not need the silver large chair in my order with the black medium speaker: remove it."
    assert not other_size(wish, {"silver", "larg", "chair"})
    assert other_size("Exchange the small lamp with the large one.", {"short"})
