"""Worlds of others live in processes of their own: the contract holds, and what they do wrong is named and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from turnwise.envs.baselines import ScriptMoment, tool_spam
from turnwise.envs.check.command import check_env
from turnwise.envs.foreign import actions
from turnwise.envs.foreign.actions import tools_of
from turnwise.envs.foreign.env import ForeignEnv
from turnwise.envs.foreign.live import LiveWorld
from turnwise.envs.foreign.state import ForeignState
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import register
from turnwise.envs.sources import load_class
from turnwise.errors import EnvError, InfraError
from turnwise.tasks.core import Json, Split, Task, canonical, derive_rng
from turnwise.tools import line_process
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.schema import tool_of_schema

SOURCE = f"{Path(__file__).with_name('foreign_tasks.py')}:StandIn"
StandIn: Any = load_class(SOURCE)
StandInPair: Any = load_class(f"{SOURCE}Pair")


NOTHING = {"type": "object", "properties": {}}


@pytest.fixture
def env():
    made = StandIn()
    yield made
    made.close()


def begin(env, **options):
    task = Task("test/StandIn-v0", "a number", {"number": 500, **options})
    env.reset(seed=0, options={"task": task})


@pytest.fixture(scope="module", autouse=True)
def ended():
    yield
    StandIn.pool.close()


def test_the_contract_is_kept():
    register("test/StandIn-v0", SOURCE, "A stand-in.")
    report = check_env("test/StandIn-v0", quick=True)
    assert report.ok, str(report)
    assert any(each.startswith("E4: forks were tried at") for each in report.unseen)


def test_what_a_library_prints_is_no_answer_and_what_is_refused_changes_nothing(env):
    begin(env)
    key = env.state_key(env.state)
    step = env.step("sing")
    assert step.observation[-1].content == "Write: say NUMBER"
    assert step.info.get("bad_action")
    assert env.state_key(env.state) == key
    assert env.step("say 1").observation[-1].content.startswith("Turn 1: no.")


def test_long_answers_are_shown_whole(env):
    begin(env, hint="x" * 150_000, tools=[{"name": "f", "parameters": NOTHING}], fault="tells")
    assert "x" * 150_000 in env.reset(options={"task": env.task})[0][-1].content
    call = Message("assistant", "", (ToolCall("f", {}, "a"),))
    assert env.step(call).observation[-1].content == "x" * 150_000


def test_a_fork_plays_from_its_moment_and_its_parent_goes_on(env):
    begin(env)
    env.step("say 1")
    twin = env.fork()
    try:
        assert twin.step("say 2").observation[-1].content.startswith("Turn 2: no.")
        assert twin._live is not env._live
        assert env.step("say 3").observation[-1].content.startswith("Turn 2: no.")
    finally:
        twin.close()


def test_a_world_outlives_its_environment():
    first = StandIn.ask_world()["pid"]
    env = StandIn()
    begin(env)
    assert env._live is not None
    assert env._live.pid == first
    env.close()
    assert StandIn.ask_world()["pid"] == first


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("dies", "has ended"),
        ("lies", "rewards = "),
        ("invents", "the field 'reward'"),
        ("mumbles", "text = 3"),
        ("scatters", r"results = \[1, 2\]"),
        ("floods", "longer than"),
    ],
)
def test_what_a_world_does_wrong_is_no_fault_of_the_agent_and_the_next_episode_is_sound(
    env, fault, told, monkeypatch
):
    monkeypatch.setattr(line_process, "LONGEST", 1 << 20)
    begin(env, fault=fault)
    with pytest.raises(InfraError, match=told):
        env.step("now")
    begin(env)
    assert env.step("say 500").info.get("end") == "solved"


def test_a_world_that_hangs_is_killed_with_what_it_started(env, monkeypatch):
    monkeypatch.setattr(StandIn, "deadline", 1.0)
    begin(env, fault="hangs")
    host = psutil.Process(env._live.pid)
    with pytest.raises(InfraError, match="did not answer 'step' within 1 s"):
        env.step("now")
    assert not host.is_running()
    until = time.monotonic() + 10  # a killed process still has to be scheduled once
    while any(_in_group(each, host.pid) for each in psutil.process_iter()):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_package_may_fork_and_what_it_reads_is_not_a_request(env):
    begin(env, fault="forks")
    assert env.step("now").observation[-1].content == "it ended with 0, and stdin has ''"
    assert env.step("say 500").info["end"] == "solved"


def _in_group(process: psutil.Process, group: int) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


def test_what_a_package_raises_is_its_own_fault_and_names_its_file(env):
    begin(env, fault="raises")
    with pytest.raises(EnvError, match=r"foreign_side.py raises RuntimeError: the package is broken"):
        env.step("now")


def test_a_replay_that_hears_something_else_is_refused(env):
    begin(env, fault="drifts")
    moment = env.snapshot()
    env.step("say 1")
    after = env.snapshot()
    env.restore(moment)
    env.step("say 2")
    env.restore(after)
    with pytest.raises(InfraError, match="answered something else"):
        env.step("say 2")


def test_a_world_ends_when_whoever_started_it_is_killed():
    program = (
        "import sys, time\n"
        "from turnwise.envs.sources import load_class\n"
        "print(load_class(sys.argv[1]).ask_world()['pid'], flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, SOURCE], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        world = psutil.Process(int(parent.stdout.readline()))
        assert world.is_running()
        parent.kill()
    until = time.monotonic() + 10
    while world.is_running() and world.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.05)
    assert not world.is_running() or world.status() == psutil.STATUS_ZOMBIE


def test_an_interpreter_that_is_not_there_is_named():
    program = StandIn.program()._replace(python="/no/such/python")
    with pytest.raises(InfraError, match=r"/no/such/python cannot be started"):
        LiveWorld(program).list({})


def test_splits_have_tasks_of_their_own():
    made = {split: StandIn.generate(derive_rng(1), split).id for split in Split}
    assert len(set(made.values())) == len(Split)


def test_seeds_of_splits_are_disjoint():
    drawn = {split: {ForeignEnv.seed_of(derive_rng(n), split, 64) for n in range(500)} for split in Split}
    assert all(len(seeds) > 50 for seeds in drawn.values())
    assert not drawn[Split.TRAIN] & drawn[Split.DEV] | drawn[Split.TEST] & (
        drawn[Split.TRAIN] | drawn[Split.DEV]
    )


def test_two_agents_have_seats_of_their_own_and_the_reward_is_the_first_ones():
    env = StandInPair()
    try:
        env.reset(options={"task": Task("test/StandIn-v0", "a number", {"number": 500, "partner": True})})
        assert (env.agent, env.tools) == ("agent", ())
        step = env.step("say 3")
        assert (step.info["agent"], env.agent) == ("partner", "partner")
        assert [message.content for message in step.observation] == ["It is 500.", "say 3"]
        assert [tool.spec.name for tool in env.tools] == ["look"]
        assert env.tools_for("agent") == ()
        twin = env.fork()
        looked = twin.step(Message("assistant", "", (ToolCall("look", {}, "a"),)))
        assert (looked.observation[-1].content, twin.agent) == ("You see 500.", "partner")
        twin.close()
        step = env.step("no")
        assert ([message.content for message in step.observation], env.agent) == (["no"], "agent")
        with_calls = env.step(Message("assistant", "", (ToolCall("look", {}, "a"),)))
        assert with_calls.info["bad_action"]  # the tool is the partner's
        env.step("say 500")
        last = env.step("yes")
        assert (last.reward, last.info["rewards_to"], last.info["end"]) == (
            0,
            {"agent": {"outcome": 1.0}},
            "solved",
        )
    finally:
        env.close()


def test_each_call_of_a_message_is_answered_by_its_own_result_and_each_result_is_capped(monkeypatch):
    env = StandInPair()
    two = tuple(ToolCall("look", {}, name) for name in ("a", "b"))
    try:
        env.reset(options={"task": Task("test/StandIn-v0", "a number", {"number": 500, "partner": True})})
        env.step("say 3")
        seen = env.step(Message("assistant", "", two)).observation
        assert [(one.role, one.tool_call_id, one.content) for one in seen] == [
            ("tool", "a", "You see 500."),
            ("tool", "b", "You see 501."),
        ]
        written = env.step('{"name": "look", "arguments": {}}').observation  # a call without an id
        assert [(one.role, one.content) for one in written] == [("user", "You see 500.")]
        monkeypatch.setattr(StandInPair, "observation_limit", 3)
        cut = env.step(Message("assistant", "", two)).observation
        assert [one.content for one in cut] == ["You\n[… 9 characters cut]"] * 2
    finally:
        env.close()


def test_tools_that_a_program_of_verifiers_leaves_open_are_whole_here(monkeypatch):
    for name in ("verifiers", "verifiers.v1"):  # only its names are looked up
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.delitem(sys.modules, "turnwise.envs.foreign.sides.verifiers_side", raising=False)
    from turnwise.envs.foreign.sides.verifiers_side import VerifiersSide

    side = VerifiersSide.__new__(VerifiersSide)
    side.heard, side.told_tools = 0, None
    open_ = [{"type": "function", "function": {"name": "f", "description": None}}]
    asked = side._asking({"messages": [{"role": "user", "content": "Go."}], "tools": open_}, opening=True)
    monkeypatch.delitem(sys.modules, "turnwise.envs.foreign.sides.verifiers_side")
    (made,) = tools_of(canonical(asked["tools"]), "w")
    assert (made.spec.name, made.spec.description, made.spec.parameters) == ("f", "", NOTHING)


def test_tools_of_a_world_are_shown_as_it_describes_them():
    odd = {"type": "object", "properties": {"n": {"type": "string", "pattern": "(?=a)b", "optional": True}}}
    (made,) = tools_of(canonical([{"name": "f", "description": "Does it.", "parameters": odd}]), "w")
    assert (made.spec.parameters, made.spec.description) == (odd, "Does it.")
    with pytest.raises(EnvError, match="run in it"):
        made.validate(ToolCall("f", {}, "a"))


PAIR: Json = {
    "type": "array",
    "items": [{"type": "integer"}, {"enum": ["m", "km"]}],
    "additionalItems": False,
}


@pytest.mark.parametrize("named", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}])
def test_places_of_an_array_may_have_schemas_of_their_own_as_older_drafts_write_them(env, named):
    schema = {**named, "type": "object", "properties": {"far": PAIR}}
    begin(env, tools=[{"name": "f", "description": "Goes.", "parameters": schema}])
    assert env.tools[0].spec.parameters == schema
    made = tool_of_schema(env.tools[0].spec, print)
    assert made.check({"far": [3, "km"]}) == {"far": [3, "km"]}
    for wrong in ([3, "mile"], ["km", 3], [3, "km", 4]):
        with pytest.raises(ToolError, match="far"):
            made.check({"far": wrong})
    drawn = (
        tool_spam(ScriptMoment(env, Messages((Message("user", "go"),)), 0, Random(5))).tool_calls[0].arguments
    )
    assert made.check(drawn) == drawn


def test_both_ways_to_write_the_places_of_an_array_are_no_schema(env):
    both = {"type": "object", "properties": {"far": {**PAIR, "prefixItems": [{}]}}}
    with pytest.raises(EnvError, match=r"the schema of its parameters is broken at properties.far.items"):
        begin(env, tools=[{"name": "f", "parameters": both}])


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ("look", "tools = 'look'"),
        (["look"], "the tool 'look', which is no object"),
        ([{"parameters": NOTHING}], r"a tool without a name \(number 1: name = None\)"),
        ([{"name": " ", "parameters": NOTHING}], "a tool without a name"),
        ([{"name": "f", "description": 3, "parameters": NOTHING}], "the tool 'f' with description = 3"),
        ([{"name": "f"}], "the tool 'f' with parameters = None"),
        ([{"name": "f", "parameters": ["n"]}], r"the tool 'f' with parameters = \['n'\]"),
        ([{"name": "f", "parameters": {"type": "string"}}], "the tool 'f' with parameters = "),
        (
            [{"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": ["no", 3]}}}}],
            r"the tool 'f'; the schema of its parameters is broken at properties.n.type: \['no', 3\]",
        ),
        ([{"name": "f", "parameters": NOTHING}] * 2, "two tools of the name 'f'"),
    ],
)
def test_a_tool_that_a_world_describes_wrongly_is_named_at_once(env, tools, why):
    named = rf"The world of test/StandIn-v0 offers {why}[^→]*→ Its side answers with `tools`: a list"
    with pytest.raises(EnvError, match=named):
        begin(env, tools=tools)
    begin(env, tools=[{"name": "f", "parameters": NOTHING}], fault="rearms", then=tools)
    with pytest.raises(EnvError, match=named):
        env.step("now")


def test_tools_that_stay_the_same_are_looked_at_once(env, monkeypatch):
    looked: list[Any] = []
    monkeypatch.setattr(actions, "Checker", looked.append)
    tool = {"name": "f", "description": "Never offered before.", "parameters": NOTHING}
    for number in (500, 600):
        begin(env, number=number, tools=[tool])
        for _ in range(3):
            env.step("say 1")
    assert looked == [NOTHING]


def test_a_moment_is_known_by_what_was_done_and_heard():
    state = ForeignState("task", ("a",), "heard")
    env = StandIn()
    keys = {env.state_key(state), env.state_key(state._replace(acts=("b",)))}
    keys |= {env.state_key(state._replace(heard="else")), env.state_key(state._replace(task="other"))}
    assert len(keys) == 4


def test_a_world_that_computes_ends_when_whoever_started_it_is_gone(tmp_path: Path) -> None:
    side = tmp_path / "side.py"
    side.write_text(
        "import time\nclass SIDE:\n    def open(self, options):\n        time.sleep(600)\n", "utf-8"
    )
    command = [sys.executable, str(Path(actions.__file__).with_name("host.py")), str(side)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as world:
        assert world.stdin is not None
        assert world.stdout is not None
        for number, do in enumerate(("hello", "open")):
            world.stdin.write(json.dumps({"id": number, "do": do, "options": {}}).encode() + b"\n")
            world.stdin.flush()
            assert number or json.loads(world.stdout.readline())["id"] == 0  # it listens
        with pytest.raises(subprocess.TimeoutExpired):
            world.wait(0.5)
        world.stdin.close()
        try:
            assert world.wait(20) == -signal.SIGKILL
        finally:
            world.kill()
