"""Users of tool worlds who tell several requests at once: an agent may take them in any order, and several together."""

from random import Random

import pytest

from turnwise.envs.check.walks import walk
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.toolworld.cases import domain_of, world
from turnwise.envs.toolworld.domain import StoryDraft, drawn
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.mind import UserState, listen
from turnwise.envs.toolworld.phrases import draw_voice
from turnwise.envs.toolworld.story import Stage, Story
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.tools.core import ToolCall

SIGNS = {"data": ["10 GB"], "roaming": ["forbid"]}


def told_together(*kinds, seed=3):
    """An episode of telecom whose user tells these requests in the first message: 10 GB and no roaming, where they are among them."""
    domain = domain_of("telecom")
    for number in range(seed, seed + 2000):
        rng = Random(number)
        draft = StoryDraft(domain, rng, world("telecom", "x", 24), paraphrase=False, changes=0)
        stages = [drawn(domain.requests[kind], draft) for kind in kinds] if domain.enter(draft) else [None]
        said = [stage.say for stage in stages if stage]
        if len(said) == len(kinds) and all(
            sign in say for kind, say in zip(kinds, said, strict=True) for sign in SIGNS.get(kind, "")
        ):
            break
    voice = draw_voice(rng, Split.TRAIN)
    story = Story(draft.customer, tuple(stages), draft.facts, voice=voice, together=True)
    options = {
        "domain": "telecom", "world": ["x", 24], "patch": [[t, k, dict(f)] for t, k, f in draft.patch],
        "story": story.to_json(), "user": "scripted", "turn_limit": 60,
    }  # fmt: skip
    env = make("turnwise/ToolWorld-v0")
    task = Task("turnwise/ToolWorld-v0", story.opening, options, {})
    env.reset(seed=0, options={"task": task})
    case = env.state.case
    for step in case.story.stages[0].plan:
        if step.kind == "ask":
            env.step(step.text)
        elif step.name in ("verify_customer", "get_line"):
            call(env, step)
    return env


def call(env, step):
    return env.step(Message("assistant", "", (ToolCall(step.name, dict(step.arguments), "call_0"),)))


def planned(env, name):
    """The call of this name in the plans of all requests."""
    return next(s for stage in env.state.case.story.stages for s in stage.plan if s.name == name)


def test_all_requests_stand_in_the_first_message_in_their_order():
    env = told_together("data", "roaming", "bill")
    opening = env.state.case.story.opening
    places = [opening.index(stage.say) for stage in env.state.case.story.stages]
    assert places == sorted(places)


def test_the_second_request_may_be_settled_first():
    env = told_together("data", "roaming")
    env.step("First your roaming: I'd switch it off on your line, at no cost. Is that all right?")
    call(env, planned(env, "set_roaming"))
    said = env.step("Roaming is off now.")[0]
    assert env.state.case.story.stages[0].say in str(said)  # he comes back to the other one
    env.step("And I'd add the 10 GB for $25.00. Shall I?")
    call(env, planned(env, "add_data"))
    last = env.step("The 10 GB are added; you pay $25.00.")
    assert last[1] == 1


def test_one_yes_may_be_to_two_changes_and_one_report_of_both():
    env = told_together("data", "roaming")
    env.step("I'd add 10 GB to your line for $25.00 and switch roaming off at no cost. Shall I do both?")
    call(env, planned(env, "add_data"))
    call(env, planned(env, "set_roaming"))
    assert not env.state.broken
    last = env.step("Both are done: 10 GB were added for $25.00, and roaming is off now.")
    assert last[1] == 1


def test_a_yes_to_one_change_is_none_to_the_other():
    env = told_together("data", "roaming")
    env.step("I'd add 10 GB to your line for $25.00. Shall I?")
    call(env, planned(env, "set_roaming"))
    assert env.state.broken == ("unconfirmed",)


def test_a_report_of_one_request_leaves_the_other_open():
    env = told_together("data", "roaming")
    env.step("I'd add 10 GB to your line for $25.00. Shall I?")
    call(env, planned(env, "add_data"))
    env.step("The 10 GB are added, for $25.00.")
    assert not env.state.closed
    assert env.state.user.stage == 1
    assert env.state.user.aside == ()


def test_a_question_that_was_told_is_answered_whenever_its_answer_is_told():
    env = told_together("data", "bill")
    amount = dollars(int(env.state.case.story.stages[1].tells[0].value))
    env.step(f"That bill came to {amount} in total.")
    env.step("And I'd add the 10 GB for $25.00, shall I?")
    call(env, planned(env, "add_data"))
    last = env.step("Done, the 10 GB are added for $25.00.")
    assert last[1] == 1


def test_the_wrong_change_of_two_is_not_agreed_to():
    env = told_together("data", "roaming")
    said = env.step(
        "I'd add 4 GB to your line for $10.00 and switch roaming on at no cost. Shall I do both?"
    )[0]
    assert not env.state.user.agreed
    assert not any(one.agreed for one in env.state.user.aside)
    assert "10 GB" in str(said)


def test_a_price_that_was_told_before_the_question_counts():
    env = told_together("data", "roaming")
    env.step("10 GB would be $25.00 in total.")
    env.step("Shall I go ahead and add the 10 GB?")
    call(env, planned(env, "add_data"))
    assert env.state.broken == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "suite", ["toolworld/retail", "toolworld/airline", "toolworld/telecom", "toolworld/apps"]
)
def test_gold_solves_what_is_told_together(suite):
    tasks = [t for t in suite_tasks(get_suite(suite), Split.TEST, 60) if t.options["story"].get("together")]
    assert len(tasks) > 5
    env = make(get_suite(suite).env)
    for task in tasks:
        actions = walk(env, task, "gold").actions
        env.reset(seed=0, options={"task": task})
        reward = [env.step(action)[1] for action in actions][-1]
        assert reward >= 1, task.id


def test_what_a_change_has_cost_takes_no_told_price_back():
    stage = Stage("What does premium cost?", (), (Fact("money", "799"),))
    told = UserState(told=frozenset({(0, 0)}), paid=frozenset({"4000"}))
    report = "It is premium now, and $40.00 were charged."
    assert listen(stage, told, report)[0].told
    assert not listen(stage, told._replace(paid=frozenset()), report)[0].told


def test_a_user_who_is_played_and_pays_a_bill_with_his_phone_is_served():
    env = make("turnwise/ToolWorld-v0", user="agent")
    for index in range(400):
        task = env.generate(derive_rng("pays", index), Split.TRAIN, domains=["telecom"], requests=1, traps=0)
        if any(step.get("name") == "pay_bill" for step in task.options["story"]["stages"][0]["plan"]):
            break
    env.reset(seed=0, options={"task": task})
    for _ in range(60):
        if env.step(env.gold(env.state))[2]:
            return
    raise AssertionError("gold talks to itself without end")
