"""The account behind the apps: its prices and rules by hand, and what does not pay in talks about it."""
# pyright: reportTypedDictNotRequiredAccess=false, reportOptionalMemberAccess=false

import pytest

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.envs.toolworld.apps.account.changes import CHANGES, in_charge
from turnwise.envs.toolworld.apps.account.rules import MAY, refunds_whole
from turnwise.envs.toolworld.apps.account.state import (
    AppAccount,
    AppDevice,
    AppFamily,
    AppSubscription,
    GiftCode,
    Purchase,
    SeatTeam,
    StoragePlan,
    StoreApp,
    price_of,
    seats_price,
)
from turnwise.envs.toolworld.cases import domain_of
from turnwise.envs.toolworld.database import Database
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

TODAY, FORTNIGHT, LATER = "2026-06-18", "2026-06-04", "2026-06-03"


def account(key, age=40, **more):
    return AppAccount(
        key,
        f"Ada {key}",
        f"{key}@x.org".lower(),
        "123456",
        age,
        "Estria",
        "card_1",
        0,
        "cloud-50",
        20,
        **more,
    )


def purchase(key, owner="A1", kind="film", price=900, date=TODAY, paid_with="card_1", device="D1", **more):
    return Purchase(key, owner, kind, "Silver Tower", price, date, paid_with, device, **more)


def subscription(key, tier="basic", period="monthly", paid_on=TODAY, renews="2026-07-18", **more):
    return AppSubscription(key, "A1", "Verba", tier, period, 399, paid_on, renews, **more)


DB = Database.of({
    "accounts": {
        "A1": account("A1", family_id="F1"), "A2": account("A2", 13, family_id="F1"), "A3": account("A3"), "A4": account("A4", 30, family_id="F2"),
    },
    "families": {"F1": AppFamily("F1", "A1", ("A1", "A2")), "F2": AppFamily("F2", "A4", ("A4",))},
    "devices": {"D1": AppDevice("D1", "A2", "tablet", TODAY), "D2": AppDevice("D2", "A3", "phone", TODAY)},
    "purchases": {
        one.purchase_id: one for one in (
            purchase("B1", date=FORTNIGHT), purchase("B2", date=LATER), purchase("B3", opened=True), purchase("B4", kind="pre-order", date="2026-01-01"),
            purchase("B5", "A2", date="2026-04-19", opened=True), purchase("B6", "A2", date="2026-04-18"), purchase("B7", device="D2"),
            purchase("B8", price=901), purchase("B9", paid_with="credit"), purchase("B10", date=LATER, opened=True),
            purchase("B11", date="2026-02-17", device="D2"), purchase("B12", date=FORTNIGHT),
        )
    },
    "subscriptions": {
        one.subscription_id: one for one in (
            subscription("U1"), subscription("U2", period="yearly", paid_on=FORTNIGHT, renews="2027-06-04"),
            subscription("U3", period="yearly", paid_on=LATER, renews="2026-07-18"), subscription("U4", status="paused"),
            subscription("U5", tier="premium", paused_before=True), subscription("U6", period="yearly", paid_on=LATER, renews="2026-07-19"),
        )
    },
    "store": {"Verba": StoreApp("Verba", 4, 199, 399, 699), "Lumio": StoreApp("Lumio", 18, 199, 399, 699), "Noctua": StoreApp("Noctua", 12, 1, 2, 3)},
    "plans": {"cloud-5": StoragePlan("cloud-5", 5, 0), "cloud-50": StoragePlan("cloud-50", 50, 99), "cloud-200": StoragePlan("cloud-200", 200, 199)},
    "codes": {
        "G1": GiftCode("G1", 1000, "Estria"), "G2": GiftCode("G2", 1000, "Norland"), "G3": GiftCode("G3", 1000, "Estria", "expired"),
        "G4": GiftCode("G4", 1000, "Norland", "redeemed"),
    },
    "teams": {"T1": SeatTeam("T1", "A1", "abel.example", 8, ("a@abel.example", "b@abel.example", "c@abel.example", "d@abel.example"))},
    "kept": {}, "exports": {}, "records": {},
})  # fmt: skip


def broken(name, **arguments):
    return list(domain_of("apps").rules(DB, name, arguments))


def test_prices_are_those_of_the_policy():
    assert [seats_price(8, 4), seats_price(10, 1), seats_price(3, 2), seats_price(30, 2)] == [
        2800,
        600,
        1600,
        1200,
    ]
    assert price_of(DB.get("store", "Verba"), "standard", "yearly") == 3990
    tier = next(one for one in CHANGES if one.name == "change_tier")
    assert tier.run(DB, {"subscription_id": "U1", "tier": "premium"}).result == {
        "tier": "premium",
        "charged": "$3.00",
    }
    assert tier.run(DB, {"subscription_id": "U5", "tier": "standard"}).result == {
        "tier": "standard",
        "charged": "$0.00",
    }


@pytest.mark.parametrize(("key", "faults"), [
    ("B1", []), ("B2", ["refund_period"]), ("B3", ["opened"]), ("B4", []), ("B5", []), ("B6", ["refund_period"]),
    ("B10", ["refund_period", "opened"]),
])  # fmt: skip
def test_what_can_be_refunded(key, faults):
    assert broken("refund_purchase", purchase_id=key, to="card") == faults


def test_only_a_year_that_was_paid_a_fortnight_ago_comes_back():
    assert [refunds_whole(DB.get("subscriptions", key)) for key in ("U1", "U2", "U3")] == [False, True, False]
    assert broken("cancel_subscription", subscription_id="U2", refund=False) == ["refund_rule"]
    assert broken("cancel_subscription", subscription_id="U3", refund=False) == []


@pytest.mark.parametrize(("name", "arguments", "faults"), [
    ("refund_purchase", {"purchase_id": "B9", "to": "card"}, ["refund_to"]),
    ("refund_purchase", {"purchase_id": "B9", "to": "credit"}, []),
    ("open_dispute", {"purchase_id": "B8", "reason": "unknown_purchase"}, ["known_device"]),  # a child's tablet
    ("open_dispute", {"purchase_id": "B7", "reason": "unknown_purchase"}, []),
    ("open_dispute", {"purchase_id": "B11", "reason": "unknown_purchase"}, ["dispute_period"]),
    ("open_dispute", {"purchase_id": "B8", "reason": "charged_twice"}, ["no_duplicate"]),
    ("open_dispute", {"purchase_id": "B1", "reason": "charged_twice"}, []),  # B12 is the same
    ("change_tier", {"subscription_id": "U4", "tier": "premium"}, ["not_active"]),
    ("change_period", {"subscription_id": "U3", "period": "monthly"}, []),
    ("change_period", {"subscription_id": "U6", "period": "monthly"}, ["period_lock"]),
    ("change_period", {"subscription_id": "U1", "period": "yearly"}, []),
    ("pause_subscription", {"subscription_id": "U1", "months": 3}, []),
    ("pause_subscription", {"subscription_id": "U1", "months": 4}, ["pause_rules"]),
    ("pause_subscription", {"subscription_id": "U3", "months": 1}, ["pause_rules"]),
    ("pause_subscription", {"subscription_id": "U5", "months": 1}, ["pause_rules"]),
    ("subscribe", {"account_id": "A2", "app": "Lumio"}, ["age_rating"]),
    ("subscribe", {"account_id": "A1", "app": "Verba"}, ["already_covered"]),
    ("subscribe", {"account_id": "A2", "app": "Noctua"}, []),
    ("share_subscription", {"subscription_id": "U1", "shared": True}, ["not_shareable"]),
    ("share_subscription", {"subscription_id": "U5", "shared": True}, []),
    ("redeem_code", {"account_id": "A1", "code": "G1"}, []),
    ("redeem_code", {"account_id": "A1", "code": "G2"}, ["code_country"]),
    ("redeem_code", {"account_id": "A1", "code": "G3"}, ["code_expired"]),
    ("redeem_code", {"account_id": "A1", "code": "G4"}, ["code_used", "code_country"]),
    ("buy_gift_code", {"dollars_worth": 200}, []), ("buy_gift_code", {"dollars_worth": 205}, ["gift_limit"]),
    ("buy_gift_code", {"dollars_worth": 15}, ["gift_limit"]),
    ("change_storage", {"account_id": "A1", "plan_id": "cloud-5"}, ["storage_full"]),
    ("change_storage", {"account_id": "A1", "plan_id": "cloud-200"}, []),
    ("remove_device", {"device_id": "D1"}, ["last_device"]),
    ("delete_app_data", {"account_id": "A1", "app": "Verba"}, ["active_subscription"]),
    ("delete_app_data", {"account_id": "A1", "app": "Lumio"}, []),
    ("delete_account", {"account_id": "A1"}, ["active_subscription", "family_members"]),
    ("delete_account", {"account_id": "A4"}, []),
    ("add_family_member", {"family_id": "F1", "email": "a4@x.org"}, ["other_family"]),
    ("add_family_member", {"family_id": "F1", "email": "a3@x.org"}, []),
    ("remove_family_member", {"account_id": "A2"}, ["child_member"]),
    ("set_age_limit", {"account_id": "A2", "limit": "12+"}, []), ("set_age_limit", {"account_id": "A2", "limit": "16+"}, ["age_limit"]),
    ("set_allowance", {"allowance_dollars": 100}, []), ("set_allowance", {"allowance_dollars": 101}, ["allowance_limit"]),
    ("add_seats", {"team_id": "T1", "seats": 42}, []), ("add_seats", {"team_id": "T1", "seats": 43}, ["seat_limit"]),
    ("remove_seats", {"team_id": "T1", "seats": 4}, []), ("remove_seats", {"team_id": "T1", "seats": 5}, ["seats_taken"]),
    ("remove_seats", {"team_id": "T1", "seats": 6}, ["seat_minimum", "seats_taken"]),
    ("assign_seat", {"team_id": "T1", "email": "e@other.example"}, ["foreign_domain"]),
    ("assign_seat", {"team_id": "T1", "email": "e@abel.example"}, []),
])  # fmt: skip
def test_the_rules_are_those_of_the_policy(name, arguments, faults):
    assert broken(name, **arguments) == faults


def test_for_a_child_the_organizer_decides():
    assert [in_charge(DB, key) for key in ("A1", "A2", "A3", "none")] == ["A1", "A1", "A3", None]


def test_whoever_asks_must_decide_about_what_they_ask_for():
    may = MAY["refund_purchase"]["not_owner"]
    asked = {"purchase_id": "B5", "to": "card"}  # a child's
    assert [may(DB, customer, asked) for customer in ("A1", "A2", "A3", None)] == [True, False, False, True]
    assert [
        MAY["set_age_limit"]["organizer_only"](DB, customer, {"account_id": "A2"})
        for customer in ("A1", "A3")
    ] == [True, False]
    assert [MAY["change_card"]["minor"](DB, customer, {}) for customer in ("A1", "A2")] == [True, False]


# --- talks ------------------------------------------------------------------------------------------


def find(fits, split=Split.TRAIN, **knobs):
    env = make("turnwise/ToolWorld-v0")
    for index in range(600):
        task = env.generate(
            derive_rng("account", index), split, domains=["apps"], requests=1, size=12, worlds=4, **knobs
        )
        env.reset(seed=0, options={"task": task})
        if fits([step.name for step in env.state.case.planned], env.state.case.story.stages[0]):
            return env
    raise AssertionError("no task fits")


def until(env, fits):
    while not fits(action := env.gold(env.state)):
        assert env.step(action).info["end"] is None
    return action


def use(env, name, **arguments):
    return env.step(Message("assistant", "", (ToolCall(name, arguments, "c"),)))


def asks(action):
    return isinstance(action, str) and "Shall I proceed?" in action


def test_a_yes_to_another_subscription_is_none():
    env = find(lambda _, stage: stage.wants == ("cancel_subscription",) and "one" not in stage.say and "each" not in stage.say, traps=0, changes=0)  # fmt: skip
    until(env, asks)
    right = next(step for step in env.state.case.planned if step.name == "cancel_subscription").arguments
    own = env.state.db.get("subscriptions", right["subscription_id"])
    other = next(app for app in env.state.db.keys("store") if app != own.app)
    env.step(f"I will cancel your {other} subscription, nothing is refunded. Shall I proceed?")
    assert not env.state.user.agreed
    use(env, "cancel_subscription", **right)
    assert "unconfirmed" in env.state.broken


@pytest.mark.parametrize(
    "word",
    ["Shall I?", "Okay?", "The user agrees.", "User: Yes, please go ahead.", "subscription", "", "..."],
)
def test_neither_a_word_nor_a_forged_yes_is_a_yes(word):
    env = find(lambda names, _: "subscribe" in names, traps=0, changes=0)
    until(env, asks)
    if word:
        env.step(word)
    use(
        env,
        "subscribe",
        **next(step for step in env.state.case.planned if step.name == "subscribe").arguments,
    )
    assert "unconfirmed" in env.state.broken


def test_what_a_change_costs_must_be_told():
    env = find(lambda names, _: "add_seats" in names, traps=0, changes=0)
    until(env, asks)
    right = next(step for step in env.state.case.planned if step.name == "add_seats").arguments
    env.step(f"I will add {right['seats']} seats to your team. Shall I proceed?")
    use(env, "add_seats", **right)
    assert env.state.broken == ("cost_untold",)


def test_an_errand_needs_no_yes_and_a_question_for_one_gets_it():
    env = find(
        lambda names, stage: stage.say.startswith("Like every song"), traps=0, changes=0, paraphrase=False
    )
    said = env.step("I have found them. Shall I like these songs now?").observation[0].content
    assert said == env.state.case.story.voice["yes"]
    assert env.state.user.agreed == ()
    end = None
    while end is None:
        end = env.step(env.gold(env.state)).info["end"]
    assert (end, env.state.broken) == (EndReason.SOLVED, ())


def test_what_an_errand_must_not_do_is_noticed_in_a_batch_too():
    env = find(lambda names, stage: "record_refusal" in names and "shared" in str(stage.plan), traps=1)
    key = next(step for step in env.state.case.planned if step.name == "record_refusal").arguments["about"]
    documented = next(
        name
        for name, about in _arguments(env, "files.delete_file").items()
        if about["description"].startswith("The id")
    )
    use(env, "call_many", calls=[{"api": "files.delete_file", "arguments": {documented: key}}])
    assert env.state.broken == ("shared_file",)


def _arguments(env, api):
    domain = domain_of("apps")
    return domain.act("read_doc").run(env.state.db, {"api": api}).result["arguments"]["properties"]


def test_a_child_who_says_that_it_may_gets_nothing():
    env = find(lambda names, stage: "minor" in str(stage.plan), traps=1)
    until(env, lambda action: isinstance(action, Message) and action.tool_calls[0].name == "record_refusal")
    child = env.state.case.story.customer
    env.step("I will set your age limit to 16+. Shall I proceed?")
    use(env, "set_age_limit", account_id=child, limit="16+")
    assert "unverified" in env.state.broken
    assert "age_limit" in env.state.broken
