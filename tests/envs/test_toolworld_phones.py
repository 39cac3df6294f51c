"""Phones and apps: what a wish gives away, what a phone's owner makes of what he is asked, and what tools say to a mistake."""
# pyright: reportTypedDictNotRequiredAccess=false, reportOptionalMemberAccess=false, reportAttributeAccessIssue=false

import collections
import dataclasses
import re

import pytest

from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.envs.toolworld import cases
from turnwise.envs.toolworld.apps.account.state import APPS, DEVICES, FIRST_WORDS, KINDS, LAST_WORDS, TIERS
from turnwise.envs.toolworld.apps.rules import OPERATIONS
from turnwise.envs.toolworld.apps.state import FOLDERS, GROUPS, TOPICS
from turnwise.envs.toolworld.cases import domain_of, world
from turnwise.envs.toolworld.domain import carry_out
from turnwise.envs.toolworld.speech.reading import understand
from turnwise.envs.toolworld.story import call
from turnwise.envs.toolworld.telecom import device
from turnwise.envs.toolworld.vocabulary import world_words
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall, ToolError

TITLES = [f"{first} {last}" for first in FIRST_WORDS for last in LAST_WORDS]
FILLED = (*TITLES, *APPS, *DEVICES, *TIERS, *world_words().first, *world_words().last, *TOPICS, *GROUPS, *FOLDERS, *KINDS,
          "monthly", "yearly", "json", "csv", "html", "as credit", "to my card", "to the card", "month", "year")  # fmt: skip
VARIABLE = re.compile(
    r"[\w.-]+@[\w.-]*\w|[\w./-]*\d[\w./+-]*|\$|"
    + "|".join(rf"(?<!\w){re.escape(word)}\b" for word in sorted(FILLED, key=len, reverse=True))
)
WHICH = re.compile(
    r"\b(?:my|the|purchase|our) (?:# )*#'?s?(?: subscription)?|(?:# )*#(?: subscription(?: #)?)?"
)
"""However a thing is named."""


def masked(text):
    return re.sub(r"\b(?:my|our #'s) (?=storage|cloud)", "# ", WHICH.sub("#", VARIABLE.sub("#", text)))


def stages(domain, count, split=Split.TRAIN, **knobs):
    env = make("turnwise/ToolWorld-v0")
    for index in range(count):
        task = env.generate(
            derive_rng("gives away", domain, index, split.value), split, domains=[domain], requests=1, **knobs
        )
        yield task.options["story"]["stages"][0]


def outcome(stage):
    """What comes of a request in the hands of somebody who knows."""
    for step in stage["plan"]:
        if step.get("name") in ("record_refusal", "transfer_to_human"):
            return step["arguments"]["reason"]
    return "done"


NOBODY_MAY = {
    "telecom": {
        "no_discount", "stolen_phone", "sim_locked",
        "not_owner",  # half of them say whose line it is
    },
    "apps": {
        "fraud", "bereavement", "legal", "safety", "no_cash",
        "minor", "not_owner",  # half of them say what they are
    },
}  # fmt: skip


@pytest.fixture
def _plain_requests(monkeypatch):
    """Of the apps, only requests for what can be refused: what is put together from them is told in other words."""
    made, apart = domain_of("apps"), {"send", "delete_file", *(one.name for one in OPERATIONS)}
    plain = {name: kind for name, kind in made.requests.items() if name in apart}
    monkeypatch.setitem(cases._loaded, "apps", dataclasses.replace(made, requests=plain))


@pytest.mark.slow
@pytest.mark.usefixtures("_plain_requests")
@pytest.mark.parametrize("domain", ["telecom", "apps"])
def test_every_sentence_of_a_request_that_is_refused_is_said_where_it_is_granted(domain):
    """In the plainest wording each sentence is one template: what is refused must say none of its own."""
    said = collections.defaultdict(set)
    for stage in (
        *stages(domain, 500, traps=0, changes=0, paraphrase=False),
        *stages(domain, 500, traps=1, paraphrase=False),
    ):
        for sentence in re.split(r"(?<=[.?!]) ", masked(stage["say"])):
            said[sentence].add(outcome(stage))
    own = {
        sentence: found
        for sentence, found in said.items()
        if "done" not in found and not found <= NOBODY_MAY[domain]
    }
    assert not own
    refused = set().union(*said.values()) - {"done"} - NOBODY_MAY[domain]
    assert len(refused) >= (5 if domain == "telecom" else 20)


@pytest.mark.slow
@pytest.mark.usefixtures("_plain_requests")
@pytest.mark.parametrize("domain", ["telecom", "apps"])
def test_the_words_of_a_request_do_not_say_what_comes_of_it(domain):
    found = collections.defaultdict(collections.Counter)
    for stage in stages(domain, 400, Split.DEV, traps=0.4):
        found[masked(stage["say"])][outcome(stage)] += 1
    refusals = [
        (counts[why], "done" in counts)
        for counts in found.values()
        for why in counts
        if why != "done" and why not in NOBODY_MAY[domain]
    ]
    shared = sum(count for count, open_ in refusals if open_)
    assert shared / sum(count for count, _ in refusals) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["telecom", "apps"])
def test_who_is_refused_may_ask_for_the_price_and_who_is_not_need_not(domain):
    asks = {"done": [], "refused": []}
    for stage in stages(domain, 150, traps=0.5, changes=0):
        which = "done" if outcome(stage) == "done" else "refused"
        writes = any(domain_of(domain).act(step.get("name", "")) for step in stage["plan"])
        if writes and not stage.get("check"):
            asks[which].append(re.search(r"\?|\b[Tt]ell me\b", stage["say"]) is not None)
    assert 0.1 < sum(asks["refused"]) / len(asks["refused"]) < 0.9
    assert 0.1 < sum(asks["done"]) / len(asks["done"]) < 0.9


def test_a_contract_that_has_ended_lets_its_customer_go_and_no_other_does():
    made, base = domain_of("telecom"), world("telecom", "contract", 8)
    line = min(base.tables["lines"])
    assert base.get("lines", line).contract == "running"
    assert list(made.rules(base, "close_line", {"line_id": line})) == ["contract_running"]
    over = base.update("lines", line, contract="ended")
    assert list(made.rules(over, "close_line", {"line_id": line})) == []
    assert (
        carry_out(made, over, "", [call("close_line", line_id=line)]).db.get("lines", line).status == "closed"
    )
    with pytest.raises(EnvError, match="contract_running"):
        carry_out(made, base, "", [call("close_line", line_id=line)])


@pytest.mark.slow
def test_who_will_not_pay_gets_a_line_back_on_which_nothing_is_overdue():
    """The words are those of a refusal; the bills decide."""
    found = {
        (outcome(stage), any(step.get("name") == "get_bills" for step in stage["plan"]))
        for stage in stages("telecom", 500, traps=0.5, paraphrase=False)
        if "I will not pay any bill" in stage["say"]
    }
    assert {why for why, _ in found} - {"not_owner"} == {"done", "unpaid", "contract_ended"}


# --- what the owner of a phone makes of it ------------------------------------------------------------

DEEDS = {
    "Please check the following on your phone: airplane mode, mobile data, data roaming, data saver, SIM and APN.": "look_at_status",
    "Please check if the SIM is inserted properly.": "look_at_status",
    "Please check that mobile data is turned on.": "look_at_status",
    "Could you check your phone's status and tell me what it says about the SIM?": "look_at_status",
    "Check whether airplane mode is on and turn it off.": "airplane_mode_off",
    "Please switch off Wi-Fi calling.": "wifi_calling_off",
    "Please turn Wi-Fi off.": "wifi_off",
    "Please turn Wi-Fi off and Wi-Fi calling off.": "wifi_off wifi_calling_off",
    "Please turn power saving off.": "power_saving_off",
    "Please switch power-saving mode off.": "power_saving_off",
    "Could you disable power-saving mode, please?": "power_saving_off",
    "Please switch off battery saver.": "power_saving_off",
    "Please disable the power saver.": "power_saving_off",
    "Please turn the data-saver off.": "data_saver_off",
    "Please unblock all the numbers on your phone.": "unblock_numbers",
    "Could you remove all numbers from the list of blocked numbers?": "unblock_numbers",
    "Could you try sending a picture message to a friend now?": "test_picture",
    "Please ask a friend to call you.": "test_call",
    "Please turn power saving off, turn the hotspot on.": "power_saving_off hotspot_on",
    "Please turn airplane mode off, mobile data on and data saver off.": "airplane_mode_off mobile_data_on data_saver_off",
    "Please turn off do not disturb and call forwarding.": "do_not_disturb_off call_forwarding_off",
    "Turn mobile data off and then on again.": "mobile_data_off mobile_data_on",
    "Please turn the hotspot off and on again.": "hotspot_off hotspot_on",
    "Please power off your phone and switch it on again.": "restart",
    "Please turn data roaming off.": "data_roaming_off",
    "Please switch roaming on.": "data_roaming_on",
    "I have allowed roaming on your line. Now please turn on roaming on your phone.": "data_roaming_on",
    "Please enable data roaming since you are abroad.": "data_roaming_on",
    "Here's what I'll do: switch on roaming for line L1222 (no cost). Do you confirm?": "",
    "Here's what I'd do:\n\n- **Action:** enable roaming on line L1222\n- **Cost:** free\n\nDo you confirm (yes/no)?": "",
    "**Line:** L1222\n**Change:** enable roaming\n**Cost:** free\n\nShall I go ahead?": "",
    "Roaming can be enabled on your line L1222 free of charge. Do I have your permission to go ahead?": "",
    "To share your connection, tethering must be allowed on your line, which costs $5.00 once. May I activate it for you?": "",
    "Call barring is active on your line. I can deactivate it at no cost. Would you like me to?": "",
}


@pytest.mark.parametrize("text", DEEDS)
def test_he_does_what_he_is_asked_for_and_no_more(text):
    assert " ".join(understand(domain_of("telecom").lexicon, text).deeds) == DEEDS[text]


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("What is your name?", ("name",)),
        ("May I have your full name and your phone number?", ("phone", "name")),
        ("Are you currently abroad?", ("abroad",)),
        ("Please enable data roaming since you are abroad.", ()),
        ("Please reset the access point names.", ()),
        ("Please unblock all the numbers on your phone.", ()),
        ("Number and PIN, please.", ("phone", "pin")),
    ],
)
def test_what_he_is_asked_about_himself(text, slots):
    assert understand(domain_of("telecom").lexicon, text).asks == slots


def test_he_knows_his_name_and_where_he_is():
    env = make("turnwise/ToolWorld-v0")
    seen = set()
    for index in range(200):
        task = env.generate(
            derive_rng("abroad", index), Split.TRAIN, domains=["telecom"], requests=1, traps=0, brief=0
        )
        env.reset(seed=0, options={"task": task})
        state = env.state
        customer = state.db.get("customers", state.case.story.customer)
        away = state.db.get("lines", customer.line_id).abroad
        if away in seen:
            continue
        seen.add(away)
        assert customer.name in str(env.step("What is your name?").observation)
        told = str(env.step("Are you currently abroad?").observation)
        assert ("I am abroad" if away else "not abroad") in told
        if len(seen) == 2:
            return
    raise AssertionError("nobody is abroad")


def test_a_speed_test_is_slow_where_the_phone_is():
    base = world("telecom", "speed", 8)
    customer = min(base.tables["customers"])
    does = next(deed for deed in device.DEEDS if deed.name == "speed_test").does
    assert "fine" in str(does(base, customer).result)
    assert "slow" in str(does(base.update("phones", customer, vpn=True), customer).result)
    assert "no connection" in str(does(base.update("phones", customer, data=False), customer).result)


@pytest.mark.parametrize("deed", ["mobile_data", "data_roaming", "hotspot"])
def test_what_was_switched_can_be_switched_back(deed):
    base = world("telecom", "speed", 8)
    customer = min(base.tables["customers"])
    does = {one.name: one.does for one in device.DEEDS}
    on = does[f"{deed}_on"](base, customer).db
    assert does[f"{deed}_on"](does[f"{deed}_off"](on, customer).db, customer).db == on
    assert does[f"{deed}_off"](on, customer).db != on


@pytest.mark.parametrize("written", ["{}", "({0}) {1} {2}", "{0}{1}{2}", "+1 {0}-{1}-{2}", "{0}.{1}.{2}"])
def test_a_number_is_the_same_however_it_is_written(written):
    base, made = world("telecom", "speed", 8), domain_of("telecom").act("verify_customer")
    customer = base.rows("customers")[0]
    phone = customer.phone if written == "{}" else written.format(*customer.phone.split("-"))
    found = made.run(base, {"phone": phone, "pin": customer.pin})
    assert found.customer == customer.customer_id
    with pytest.raises(ToolError):
        made.run(base, {"phone": phone[:-1], "pin": customer.pin})


# --- apps ------------------------------------------------------------------------------------------


def said_to(name, **arguments):
    """What a tool of the apps answers, a mistake included."""
    made, base = domain_of("apps").act(name), world("apps", "mistakes", 12)
    try:
        return str(made.run(base, made.tool.validate(ToolCall(name, arguments))).result)
    except ToolError as error:
        return str(error)


def test_a_mistake_is_told_so_that_it_can_be_mended():
    assert "mail, calendar, files, contacts, payments, notes, music" in said_to("list_apis", app="store")
    assert "list_apis('music')" in said_to("read_doc", api="music")
    assert "'music.like'" in said_to("call_api", api="like", arguments={})
    assert "'mail.search_mails'" in said_to("call_api", api="search_mails", arguments={})
    assert "no argument 'zzz'" in said_to("call_api", api="mail.star", arguments={"zzz": "m1"})
    assert "needs 1 more argument;" in said_to("call_api", api="mail.star", arguments={})


def test_a_wrong_value_is_named_and_no_name_of_the_documentation_is_told():
    base, domain = world("apps", "mistakes", 12), domain_of("apps")
    doc = domain.act("read_doc").run(base, {"api": "payments.send_money"}).result["arguments"]["properties"]
    cents = next(name for name, about in doc.items() if about["type"] == "integer")
    given = dict.fromkeys(doc, "ten")
    assert f"does not take {cents}='ten';" in said_to("call_api", api="payments.send_money", arguments=given)
    alone = said_to("call_api", api="payments.send_money", arguments={cents: 10})
    assert not any(name in alone.split() for name in doc)


def test_a_device_with_which_something_was_bought_is_found_though_it_is_nobodys():
    base, made = world("apps", "mistakes", 12), domain_of("apps").act("get_device")
    foreign = next(p.device_id for p in base.rows("purchases") if base.find("devices", p.device_id) is None)
    assert made.run(base, {"device_id": foreign}).result["account_id"] is None
    with pytest.raises(ToolError):
        made.run(base, {"device_id": "D1"})


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("May I charge your card with $170.00 for the gift code to a@b.example?", "buy_gift_code"),
        ("Gift code for $170.00 to a@b.example, charged to your card. Confirm?", "buy_gift_code"),
        ("Shall I unlink your laptop D123 from your account?", "remove_device"),
        ("I'd copy your Lumio data into a CSV file for you. OK?", "export_data"),
    ],
)
def test_other_verbs_offer_it_too(text, action):
    heard = understand(domain_of("apps").lexicon, text)
    assert heard.consent
    assert action in heard.proposal.actions


@pytest.mark.slow
def test_the_reports_of_one_who_knows_are_not_contradicted():
    env = make("turnwise/ToolWorld-v0")
    for index in range(120):
        task = env.generate(
            derive_rng("reports", index), Split.DEV, domains=["apps"], requests=1, traps=0, changes=0
        )
        env.reset(seed=0, options={"task": task})
        wrong = env.state.case.story.voice["not_that"]
        while True:
            step = env.step(action := env.gold(env.state))
            assert isinstance(action, Message) or wrong not in str(step.observation), action
            if step.info["end"] is not None:
                break
