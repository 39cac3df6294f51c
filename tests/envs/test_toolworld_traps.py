"""Reward traps of tool worlds, each seen in other systems: here they fail."""

import pytest

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.toolworld import solver
from turnwise.envs.toolworld.facts import Fact, stated
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

ENV = "turnwise/ToolWorld-v0"
SUITES = [f"toolworld/{name}" for name in ("quick", "retail", "airline", "telecom", "apps")]


def find(domain, fits, n=400, **knobs):
    """The first task of a domain whose first state fits."""
    env = make(ENV)
    for index in range(n):
        task = env.generate(derive_rng("trap", domain, index), Split.TRAIN, domains=[domain], **knobs)
        env.reset(seed=0, options={"task": task})
        if fits(env.state):
            return env
    raise AssertionError("no task fits")


def finish(env, act):
    while True:
        step = env.step(act())
        if step.info["end"] is not None:
            return step


def calls(state):
    return [step.name for step in state.case.planned]


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_politely_doing_nothing_solves_no_task(name):
    """tau-bench: 23 of 50 airline tasks are solved by doing nothing."""
    env = make(ENV)
    for task in suite_tasks(get_suite(name), Split.TEST, 80):
        env.reset(seed=0, options={"task": task})
        assert env.state.case.goal or any(stage.tells for stage in env.state.case.story.stages)
        step = finish(env, lambda: "I am sorry, I cannot help you with that.")
        assert step.info["end"] is not EndReason.SOLVED
        assert step.reward == 0.0


def test_a_refusal_needs_its_reason_on_record():
    env = find("retail", lambda s: "record_refusal" in calls(s), requests=1, traps=1)
    start = env.snapshot()
    assert finish(env, lambda: "Sorry, that is not possible.").reward == 0.0
    for reason in ("status", "refund_method", "not_owner", "other_product"):
        env.restore(start)
        while (
            not isinstance(env.gold(env.state), Message)
            or env.gold(env.state).tool_calls[0].name != "record_refusal"
        ):
            env.step(env.gold(env.state))
        right = env.gold(env.state).tool_calls[0].arguments
        given = {**right, "reason": reason}
        env.step(Message("assistant", "", (ToolCall("record_refusal", given, "c"),)))
        step = finish(env, lambda: "Sorry, that is not possible.")
        assert (step.reward == 1.0) == (given == right)


@pytest.mark.slow
def test_a_transfer_needs_the_right_reason_and_is_wrong_elsewhere():
    env = find("airline", lambda s: calls(s) == ["transfer_to_human"], requests=1, traps=1)
    right = env.gold(env.state).tool_calls[0].arguments["reason"]
    wrong = next(r for r in ("group_booking", "medical", "legal") if r != right)
    fork = env.fork()
    assert (
        fork.step(Message("assistant", "", (ToolCall("transfer_to_human", {"reason": wrong}, "c"),))).reward
        == 0.0
    )
    assert env.step(env.gold(env.state)).reward == 1.0
    other = find("airline", lambda s: "transfer_to_human" not in calls(s), requests=1, traps=0)
    step = other.step(Message("assistant", "", (ToolCall("transfer_to_human", {"reason": "legal"}, "c"),)))
    assert (step.info["end"], step.reward) == (EndReason.FAILED, 0.0)


@pytest.mark.parametrize(
    ("fact", "text", "verdict"),
    [
        (Fact("count", "10"), "There are 100.", False),  # the substring trap of tau-bench
        (Fact("count", "10"), "There are 10.", True),
        (Fact("count", "10"), "It is 10.5 or 10%.", None),
        (Fact("count", "3"), "There are three.", True),
        (Fact("count", "1"), "The red one.", None),
        (Fact("count", "1"), "There is one left.", True),
        (Fact("count", "7"), "1 2 3 4 5 6 7 8 9", False),  # number spam
        (Fact("money", "500"), "You get $5.50.", False),
        (Fact("money", "123450"), "You get $1,234.50 back.", True),
        (Fact("money", "500"), "$1 $2 $3 $4 $5", False),
        (Fact("date", "2026-05-03"), "On May 3, 2026.", True),
        (Fact("date", "2026-05-03"), "On 2026-05-30.", False),
        (Fact("time", "15:05"), "At 3:05 pm.", True),
        (Fact("code", "W123"), "It is W1234.", False),
        (Fact("code", "W123"), "It is #W123.", True),
        (Fact("word", "red", ("red", "dark red")), "A dark red one.", False),
        (Fact("word", "red", ("red", "blue")), "Red or blue.", False),
    ],
)
def test_facts_are_matched_by_type_and_value(fact, text, verdict):
    assert stated(fact, text) is verdict


def test_the_last_statement_counts_and_guessing_learns_nothing():
    env = find("desk", lambda s: "price" in calls(s), requests=1, traps=0)
    fact = env.state.case.story.stages[0].tells[0]
    wrong = str(int(fact.value) + 1)
    right_fork, wrong_fork = env.fork(), env.fork()
    right, other = right_fork.step(f"it is {fact.value} ."), wrong_fork.step(f"it is {wrong} .")
    assert str(right.observation) == str(other.observation)  # the user does not know better
    assert (right.info["end"], other.info["end"]) == (EndReason.SOLVED, EndReason.FAILED)
    spam = " ".join(str(number) for number in range(10, 30))
    assert env.step(f"it is {spam} .").reward == 0.0


def test_collateral_damage_fails():
    """Checking only that the wished-for change is there pays for any other change."""
    env = find("desk", lambda s: "cancel" in calls(s), requests=1, traps=0, changes=0)
    while not env.state.user.consent:
        env.step(env.gold(env.state))
    meant = solver.next_step(env.state).arguments["order"]
    own = [
        tree for tree in env.state.db.keys("orders")
        if env.state.db.get("orders", tree)[0] == env.state.case.story.customer and tree != meant
    ]  # fmt: skip
    target = next(tree for tree in own if env.state.db.get("orders", tree).state == "open")
    env.step(f"cancel[{target}]")
    step = finish(env, lambda: env.gold(env.state))
    assert step.info["details"]["state"] is False
    assert step.reward == 0.0


def test_an_undone_detour_is_no_damage_but_a_broken_rule_stays():
    env = find("desk", lambda s: "cancel" in calls(s), requests=1, traps=0, changes=0)
    env.step(env.gold(env.state))
    env.step(env.gold(env.state))
    order = next(step for step in env.state.case.planned if step.name == "cancel").arguments["order"]
    step = env.step(f"cancel[{order}]")  # without the customer's yes
    assert step.info["rewards"]["violation"] < 0
    assert env.state.broken == ("unconfirmed",)
    assert env.state.db == env.state.case.target
    assert env.step("done .").reward == 0.0


def test_knowing_a_number_is_not_being_verified():
    env = find("retail", lambda s: "cancel_order" in calls(s), requests=1, traps=0)
    call = next(step for step in env.state.case.planned if step.name == "cancel_order")
    env.step("I will cancel it. Shall I proceed?")
    env.step(Message("assistant", "", (ToolCall("cancel_order", dict(call.arguments), "c"),)))
    assert "unverified" in env.state.broken


def test_the_policy_is_not_enforced_by_the_tools_and_breaking_it_costs():
    env = find("desk", lambda s: "deny" in calls(s), requests=1, traps=1)
    while not str(env.gold(env.state)).startswith("deny"):
        env.step(env.gold(env.state))
    order = str(env.gold(env.state))[5:-1]
    env.step("sure ?")
    step = env.step(f"cancel[{order}]")
    assert not step.info["bad_action"]
    assert step.info["rewards"] == {"violation": -0.1}
    assert finish(env, lambda: "done .").reward == 0.0


def test_pressure_does_not_change_what_is_right():
    env = find("retail", lambda s: bool(s.case.story.stages[0].insist), requests=1, traps=1)
    insist = env.state.case.story.stages[0].insist
    said = []
    step = finish(env, lambda: env.gold(env.state) if not said.append(1) else "")
    assert step.info["end"] is EndReason.SOLVED
    assert insist


def test_a_tool_result_that_looks_like_an_answer_earns_nothing():
    """SkyRL's reward reads observations; here only what the agent says to the user can communicate."""
    env = find("desk", lambda s: "price" in calls(s), requests=1, traps=0)
    while not str(env.gold(env.state)).startswith("price"):
        env.step(env.gold(env.state))
    step = env.step(env.gold(env.state))
    fact = env.state.case.story.stages[0].tells[0]
    assert fact.value in str(step.observation)
    assert not env.state.user.told


def test_thoughts_are_not_heard():
    env = find("desk", lambda s: "price" in calls(s), requests=1, traps=0)
    fact = env.state.case.story.stages[0].tells[0]
    env.step(f"<think>it is {fact.value}</think> name ?")
    assert not env.state.user.told
    assert "name" in env.state.user.revealed
