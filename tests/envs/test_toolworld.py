"""Tool worlds: suites, speed, databases, the scripted user, users who are agents, step rewards."""

import dataclasses
import itertools
import sys

import pytest

from turnwise.agents.core import Outcome
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_task, suite_tasks
from turnwise.envs.toolworld import cases, reward
from turnwise.envs.toolworld.apps import manual
from turnwise.envs.toolworld.apps.actions import APIS, names, read_doc
from turnwise.envs.toolworld.cases import case_of, domain_of, world
from turnwise.envs.toolworld.database import Database, changes
from turnwise.envs.toolworld.desk.state import DeskOrder
from turnwise.envs.toolworld.domain import StoryDraft, drawn
from turnwise.envs.toolworld.story import call
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, canonical, derive_rng
from turnwise.tools.core import ToolCall, ToolError

ENV = "turnwise/ToolWorld-v0"
SUITES = [f"toolworld/{name}" for name in ("quick", "retail", "airline", "telecom", "apps", "mixed")]
DOMAINS = ("desk", "retail", "airline", "telecom", "apps")


def begun(domain, index=0, split=Split.TRAIN, env_options=None, **knobs):
    """An environment at the beginning of a task of this domain."""
    env = make(ENV, **(env_options or {}))
    task = env.generate(derive_rng("test", domain, index), split, domains=[domain], **knobs)
    env.reset(seed=0, options={"task": task})
    return env


def play_gold(env):
    while True:
        step = env.step(env.gold(env.state))
        if step.info["end"] is not None:
            return step


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["telecom", "apps"])
def test_no_request_for_a_change_asks_for_what_is_so_already(domain):
    """Who did it would be told that nothing had changed, for ever."""
    made = domain_of(domain)
    for (name, kind), index in itertools.product(made.requests.items(), range(8)):
        rng, data = derive_rng("draft", name, index), world(domain, str(index), 24)
        draft = StoryDraft(made, rng, data, paraphrase=True, changes=0, split=Split.TRAIN)
        stage = drawn(kind, draft) if made.enter(draft) else None
        if stage is None:
            continue
        before = draft.db
        draft.apply(stage)
        acts = [made.act(step.name) for step in stage.plan if step.kind == "call"]
        if any(one and one.kind in ("write", "errand") for one in acts) and not stage.tells:
            assert draft.db != before, (name, stage.say)


def test_nobody_asks_for_songs_in_a_playlist_that_has_them():
    apps = domain_of("apps")
    for index in range(20):
        data = world("apps", str(index), 24)
        songs = tuple(sorted(song.song_id for song in data.rows("songs")))
        for one in data.rows("playlists"):
            data = data.update("playlists", one.playlist_id, songs=songs)
        rng = derive_rng("full", index)
        draft = StoryDraft(apps, rng, data, paraphrase=True, changes=0, split=Split.TRAIN)
        assert drawn(apps.requests["playlist"], draft) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_splits_share_no_task(name):
    suite = get_suite(name)
    ids = {split: {task.id for task in suite_tasks(suite, split, 60)} for split in Split}
    assert all(len(found) > 50 for found in ids.values())
    assert not ids[Split.TRAIN] & ids[Split.TEST]
    assert not ids[Split.DEV] & (ids[Split.TRAIN] | ids[Split.TEST])


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, pytest.param(3400, marks=[pytest.mark.slow, pytest.mark.full])])
@pytest.mark.parametrize("name", ["toolworld/quick"])
def test_thousands_of_tasks_and_no_overlap(name, n):
    suite = get_suite(name)
    ids = [{task.id for task in suite_tasks(suite, split, n)} for split in Split]
    assert not ids[0] & ids[1]
    assert not (ids[0] | ids[1]) & ids[2]


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_every_request_and_every_trap_occurs_and_is_solved_by_its_plan(domain, monkeypatch):
    env, made = make(ENV), domain_of(domain)
    kinds = [(f"{name}", made.requests, {name: kind}) for name, kind in made.requests.items()]
    kinds += [(f"trap {name}", made.traps, {name: kind}) for name, kind in made.traps.items()]
    for place, (name, group, only) in enumerate(kinds):
        trap = group is made.traps
        alone = {"requests": made.requests, "traps": only} if trap else {"requests": only, "traps": {}}
        monkeypatch.setitem(cases._loaded, domain, dataclasses.replace(made, **alone))
        solved = 0
        for index in range(2):
            rng, split = derive_rng("occurs", domain, name, index), list(Split)[(place + index) % 3]
            try:
                task = env.generate(rng, split, domains=[domain], requests=1, traps=float(trap), changes=0.5)
            except EnvError:
                continue  # what is always said in the same few words is not drawn in each split
            walked = walk(env, task, "gold")
            assert (walked.success, walked.score) == (True, 1.0), (name, task.prompt, walked.steps[-1])
            solved += 1
            break
        assert solved, name


@pytest.mark.parametrize("domain", DOMAINS)
def test_worlds_do_not_depend_on_hash_seeds_or_order(domain):
    build = domain_of(domain).build
    first, second = (build(derive_rng("world", 1), 6) for _ in range(2))
    assert first.digest == second.digest != build(derive_rng("world", 2), 6).digest
    tables = {name: dict(reversed(list(rows.items()))) for name, rows in reversed(list(first.tables.items()))}
    assert Database.of(tables).digest == first.digest


def test_the_hash_is_kept_up_to_date_and_changes_are_field_by_field():
    rows = {
        "oak": DeskOrder("anna", "red", "lamp", "open", 12),
        "elm": DeskOrder("ben", "blue", "mug", "sent", 10),
    }
    base = Database.of({"orders": rows})
    moved = base.update("orders", "oak", state="cancelled")
    assert (
        moved.digest
        == Database.of({"orders": {**rows, "oak": rows["oak"]._replace(state="cancelled")}}).digest
    )
    assert {cell.field: value for cell, value in changes(base, moved).items()} == {"state": '"cancelled"'}
    back = moved.update("orders", "oak", state="open")
    assert back == base
    assert not changes(base, back)
    assert changes(base, base.drop("orders", "elm")).popitem()[1] == ""
    # 12 and 12.0 and True are equal in Python, and not the same value.
    assert base.update("orders", "oak", price=12.0) != base


def calls_of(work):
    """How many calls of functions some work takes: a speed that no other work on the machine changes."""
    count = 0

    def note(_, event, __):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return count, result


@pytest.mark.slow
def test_forks_and_steps_are_little_work():
    env = begun("retail", requests=3)
    assert calls_of(env.fork)[0] < 60  # 20 were needed
    tasks = list(suite_tasks(get_suite("toolworld/retail"), Split.TRAIN, 40))
    for task in tasks:  # worlds are built once
        walk(env, task, "gold")
    counts = []
    for task in tasks:
        env.reset(seed=0, options={"task": task})
        end = None
        while end is None:
            action = env.gold(env.state)
            count, step = calls_of(lambda: env.step(action))  # noqa: B023
            counts.append(count)
            end = step.info["end"]
    assert max(counts) < 1500  # 384 were needed, 146 on average
    assert sum(counts) / len(counts) < 500


def test_the_order_of_creations_does_not_change_the_state():
    env = begun("apps", requests=1)
    world, send = env.state.case.base, APIS["mail.send_mail"]
    letters = [{"recipient": f"{name}@x.org", "subject": "s", "body": "b"} for name in ("a", "b")]
    one = send.run(send.run(world, letters[0]).db, letters[1]).db
    other = send.run(send.run(world, letters[1]).db, letters[0]).db
    assert one == other != world


def test_apps_have_sixty_apis_whose_arguments_differ_between_worlds():
    assert len(APIS) >= 60
    assert len({tuple(names(seed, "mail.send_mail").values()) for seed in range(20)}) > 3
    env = begun("apps")
    wrong = env.step(
        Message("assistant", "", (ToolCall("call_api", {"api": "mail.star", "arguments": {"x": "m1"}}, "c"),))
    )
    assert "read_doc" in wrong.observation[-1].content


def test_the_manual_is_right_about_every_argument():
    """An id is called one and is one; whatever is none is not called one; each argument says what it is."""
    base = begun("apps").state.case.base
    for seed in range(40):
        db = base.update("manual", "me", seed=seed)
        for api, made in APIS.items():
            arguments, called = made.tool.spec.argument_names, names(seed, api)
            properties = read_doc(db, api)["arguments"]["properties"]
            assert list(properties) == [called[argument] for argument in arguments]
            assert all(told["description"] for told in properties.values())
            for argument in arguments:
                says_id = properties[called[argument]]["description"].startswith("The id of")
                assert says_id == manual.is_id(api, argument)
                assert says_id or called[argument] not in (
                    "id",
                    "item_id",
                    *(f"{t}_id" for t in manual.THINGS),
                )


@pytest.mark.parametrize("api", sorted(APIS))
def test_what_the_manual_calls_an_id_is_looked_up(api):
    made, base = APIS[api], begun("apps").state.case.base
    ids = [argument for argument in made.tool.spec.argument_names if manual.is_id(api, argument)]
    free = {"page": 1, "cents": 5, "answer": "accepted", "folder": "inbox", "date": "2026-07-01"}
    for wrong in ids:
        given = {name: free.get(name, "a@b.c") for name in made.tool.spec.argument_names} | {
            wrong: "no such id"
        }
        with pytest.raises(ToolError, match="not found"):
            made.run(base, given)


def test_many_calls_in_one_batch_are_all_or_none():
    env = begun("apps")
    key = env.state.case.base.keys("mails")[0]
    seed = env.state.case.base.get("manual", "me").seed
    star = {"api": "mail.star", "arguments": {names(seed, "mail.star")["mail"]: key}}
    broken = {"api": "mail.star", "arguments": {}}
    step = env.step(Message("assistant", "", (ToolCall("call_many", {"calls": [star, broken]}, "c"),)))
    assert step.info["bad_action"]
    assert env.state.db == env.state.case.base
    env.step(Message("assistant", "", (ToolCall("call_many", {"calls": [star]}, "c"),)))
    assert env.state.db.get("mails", key).starred


def test_several_calls_in_one_message_get_an_answer_each():
    env = begun("retail")
    calls = (ToolCall("list_products", {}, "a"), ToolCall("get_order", {"order_id": "nope"}, "b"))
    step = env.step(Message("assistant", "", calls))
    assert [message.tool_call_id for message in step.observation] == ["a", "b"]
    assert "not found" in step.observation[1].content


# --- users ---------------------------------------------------------------------------------------------


def test_the_user_tells_what_he_is_asked_and_nothing_else():
    env = begun("airline", requests=1, traps=0, brief=0, paraphrase=False)
    story = env.state.case.story
    answer = (
        env.step("What is your user id, and when were you born? What is your date of birth?")
        .observation[0]
        .content
    )
    assert answer == f"{story.facts['user_id']} {story.facts['birthday']}"
    before = env.state.user
    assert story.facts["user_id"] not in env.step("What is your shoe size?").observation[0].content
    assert env.state.user == before


def test_a_brief_user_tells_one_fact_at_a_time():
    env = begun("airline", requests=1, traps=0, brief=1)
    said = env.step("Please tell me your user id and your birthday.").observation[0].content
    assert env.state.case.story.facts["user_id"] in said
    assert env.state.case.story.facts["birthday"] not in said


def test_patience_ends():
    env = begun("desk", patience=2)
    assert env.step("blah").info["end"] is None
    step = env.step("blah blah")
    assert (step.info["end"], step.reward) == (EndReason.FAILED, 0.0)


def test_minds_change_and_the_first_wish_is_then_wrong():
    for index in range(200):
        env = begun("desk", index, requests=1, traps=0, changes=1.0)
        if env.state.case.story.stages[0].twist:
            break
    twist = env.state.case.story.stages[0].twist
    while env.gold(env.state) != "sure ?":
        env.step(env.gold(env.state))
    assert env.step("sure ?").observation[0].content == twist
    assert not env.state.user.consent
    assert play_gold(env).info["end"] is EndReason.SOLVED


def test_the_phone_is_in_the_customers_hands():
    for index in range(300):
        env = begun("telecom", index, requests=1, traps=0, paraphrase=False)
        if any(step.name == "airplane_mode_off" for step in env.state.case.story.stages[0].plan):
            break
    assert env.state.db.get("phones", env.state.case.story.customer).airplane
    seen = env.step("Is airplane mode on?").observation[0].content
    assert "airplane mode on" in seen  # a question is no order
    env.step("Please turn airplane mode off.")
    assert not env.state.db.get("phones", env.state.case.story.customer).airplane
    assert "airplane_mode_off" not in {tool.spec.name for tool in env.tools}
    assert play_gold(env).info["end"] is EndReason.SOLVED


def test_a_phone_that_does_not_work_is_noticed():
    for index in range(100):
        env = begun("telecom", index, requests=1, traps=0, paraphrase=False)
        if env.state.case.story.stages[0].check:
            break
    said = env.step("It is fixed, please try again.").observation[0].content
    assert said == env.state.case.story.stages[0].again, "in the words of his complaint"


@pytest.mark.parametrize("domain", ["desk", "retail", "airline", "telecom", "apps"])
def test_a_user_who_is_another_agent(domain):
    env = make(ENV)
    tasks = [
        env.generate(
            derive_rng("played", domain, index), Split.TRAIN, domains=[domain], user="agent", turn_limit=150
        )
        for index in range(6)
    ]
    policy_map = {"agent": scripted("gold"), "user": scripted("gold")}
    for episode in run_episodes([Request(task, 0) for task in tasks], policy_map):
        assert episode.outcome is Outcome.OK, episode.error
        assert episode.success
        assert episode.score == 1.0
        user = episode.trajectories["user"]
        assert "You play a customer" in user.turns[0].observation[0].content
        assert "You play a customer" not in str(episode.trajectories["agent"].turns[0].observation)


# --- rewards -------------------------------------------------------------------------------------------


def test_worth_compares_all_names_and_pays_once():
    planned = [call("pay", to="ann", cents=5), call("pay", to="bob", cents=7)]
    empty = reward.worth(planned, (-1.0, -1.0), "pay", {})
    assert (empty.tool, empty.arguments) == (1.0, 0.0)  # tau-bench would take it for the whole call
    half = reward.worth(planned, (-1.0, -1.0), "pay", {"to": "bob", "cents": 9})
    assert (half.tool, half.arguments, half.best) == (1.0, 0.5, (-1.0, 0.5))
    again = reward.worth(planned, (0.0, 0.5), "pay", {"to": "bob", "cents": 9})
    assert (again.tool, again.arguments) == (0.0, 0.0)
    full = reward.worth(planned, (0.0, 0.5), "pay", {"to": "bob", "cents": 7})
    assert (full.arguments, full.best) == (0.5, (0.0, 1.0))
    assert reward.worth([call("f", n=1)], (-1.0,), "f", {"n": True}).arguments == 0.0


def test_call_rewards_are_bounded_by_the_plan():
    env = begun("retail", env_options={"call_rewards": 1.0}, requests=2)
    paid = {"valid": 0.0, "tool": 0.0, "arguments": 0.0}
    fork = env.fork()
    while True:
        step = env.step(env.gold(env.state))
        for name in paid:
            paid[name] += step.info["rewards"].get(name, 0.0)
        if step.info["end"] is not None:
            break
    planned = len({(step.name, canonical(step.arguments)) for step in env.state.case.planned})
    assert paid == {"valid": planned, "tool": planned, "arguments": planned}
    farmed = sum(
        fork.step(Message("assistant", "", (ToolCall("list_products", {}, "c"),))).reward
        for _ in range(planned + 5)
    )
    assert farmed <= len(env.state.case.planned)


def test_shaping_rises_with_the_right_write_and_falls_with_a_wrong_one():
    for index in range(100):
        env = begun("retail", index, env_options={"shaping": 1.0}, requests=1, traps=0)
        if any(step.name == "cancel_order" for step in env.state.case.planned):
            break
    case = env.state.case
    while not env.state.user.consent:
        env.step(env.gold(env.state))
    before = env.potential(env.state)
    wrong = next(
        o.order_id
        for o in case.base.rows("orders")
        if o.status == "pending" and o.user_id != case.story.customer
    )
    spoiled = env.fork()
    bad = Message(
        "assistant", "", (ToolCall("cancel_order", {"order_id": wrong, "reason": "no longer needed"}, "c"),)
    )
    assert spoiled.step(bad).info["rewards"]["progress"] < 0
    env.step(env.gold(env.state))
    assert env.potential(env.state) > before


def test_a_plan_that_fails_or_breaks_a_rule_is_an_error_not_a_warning():
    env = begun("retail", requests=1, traps=0)
    task = env.task
    options = {**task.options, "story": {**task.options["story"]}}
    stage = options["story"]["stages"][0]
    for name, arguments in (
        ("cancel_order", {"order_id": "W0", "reason": "no longer needed"}),
        ("no_such_tool", {}),
    ):
        plan = [{"kind": "call", "name": name, "arguments": arguments}, *stage["plan"]]
        story = {**options["story"], "stages": [{**stage, "plan": plan}]}
        with pytest.raises(EnvError, match=name):
            case_of(type(task)(task.env, task.prompt, {**options, "story": story}))


def test_knobs_are_checked():
    env = make(ENV)
    with pytest.raises(EnvError, match="domain"):
        env.generate(derive_rng(1), Split.TRAIN, domain="retail")
    with pytest.raises(EnvError, match="retail"):
        env.generate(derive_rng(1), Split.TRAIN, domains=["retial"])


def test_one_task_is_a_function_of_its_names():
    suite = get_suite("toolworld/mixed")
    assert suite_task(suite, Split.TEST, 3).id == suite_task(suite, Split.TEST, 3).id
