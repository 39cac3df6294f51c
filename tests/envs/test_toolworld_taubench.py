"""Folders in tau-bench's own layout load and are played; their tools run only where that is allowed."""

import json
import sys
import textwrap

import pytest
from immutables import Map

from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.envs.toolworld.database import Database, frozen
from turnwise.envs.toolworld.files.tasks import file_tasks
from turnwise.envs.toolworld.files.taubench import LazyRows, read_tasks
from turnwise.envs.toolworld.knobs import FileDomainKnobs
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

TOOL = """
import json
from tau_bench.envs.tool import Tool

class {kind}(Tool):
    @staticmethod
    def invoke(data, {arguments}):
{body}

    @staticmethod
    def get_info():
        return {{"type": "function", "function": {{"name": "{name}", "description": "{name}.", "parameters": {{
            "type": "object", "properties": {{name: {{"type": "string"}} for name in {names!r}}},
            "required": {names!r}}}}}}}
"""
TOOLS = {
    "find_member": (
        "FindMember",
        ["email"],
        """
        for number, member in data["members"].items():
            if member["email"] == email:
                return number
        return "Error: nobody has this address"
        """,
    ),
    "get_locker": ("GetLocker", ["locker"], """
        return json.dumps(data["lockers"][locker])
        """),
    "free_locker": (
        "FreeLocker",
        ["locker"],
        """
        if locker not in data["lockers"]:
            return "Error: no such locker"
        held = data["lockers"][locker]
        data["members"][held["member"]]["lockers"].remove(locker)
        held.update(member=None, log=[*held["log"], "freed"])
        return json.dumps(held)
        """,
    ),
    "half_done": ("HalfDone", ["locker"], """
        data["lockers"][locker]["member"] = "nobody"
        raise RuntimeError("out of paper")
        """),
    "transfer_to_human_agents": ("Transfer", ["summary"], """
        return "Transfer successful"
        """),
}  # fmt: skip
TASKS = """
from tau_bench.types import Action, Task

TASKS = [
    Task(
        annotator="0", user_id="m1",
        instruction="You are Ana, ana@example.org. You want to give back "
        "your locker, whatever its number is.",
        actions=[Action(name="find_member", kwargs={"email": "ana@example.org"}),
                 Action(name="free_locker", kwargs={"locker": "L7"})],
        outputs=[],
    ),
    Task(user_id="m2", instruction="You are Ben. What does locker L8 cost?",
         actions=[Action(name="get_locker", kwargs={"locker": "L8"})], outputs=["12.50"]),
]
"""
NOOP = 'TASKS = [Task(user_id="m2", instruction="You are Ben. Say hello.", actions=[], outputs=[])]'


@pytest.fixture
def folder(tmp_path):
    for name in ("data", "tools"):
        (tmp_path / name).mkdir()
    members = {
        "m1": {"email": "ana@example.org", "lockers": ["L7"]},
        "m2": {"email": "ben@example.org", "lockers": ["L8"]},
    }
    lockers = {
        key: {"member": who, "price": price, "log": []}
        for key, who, price in (("L7", "m1", 9.5), ("L8", "m2", 12.5))
    }
    (tmp_path / "data" / "members.json").write_text(json.dumps(members))
    (tmp_path / "data" / "lockers.json").write_text(json.dumps(lockers))
    (tmp_path / "wiki.md").write_text("# Lockers\nOnly members may free lockers.")
    (tmp_path / "tasks_test.py").write_text(TASKS)
    (tmp_path / "tasks_train.py").write_text(TASKS.replace("Ben", "Bo").replace("Ana,", "Anna,"))
    imports = []
    for name, (kind, names, body) in TOOLS.items():
        body = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
        text = TOOL.format(kind=kind, arguments=", ".join(names), body=body, name=name, names=names)
        (tmp_path / "tools" / f"{name}.py").write_text(text)
        imports.append(f"from .{name} import {kind}")
    listed = ", ".join(kind for kind, _, _ in TOOLS.values())
    (tmp_path / "tools" / "__init__.py").write_text("\n".join([*imports, f"ALL_TOOLS = [{listed}]"]))
    return tmp_path


def test_its_tasks_are_played_and_their_actions_solve_them(folder):
    tasks = file_tasks(FileDomainKnobs(data=str(folder), code=True))
    assert len(tasks) == 4
    env = make("turnwise/ToolWorld-v0")
    for task in tasks:
        walked = walk(env, task, "gold")
        assert walked.success, walked.steps[-1]
    assert "Only members" in walked.first[0].content
    assert [tool.spec.name for tool in env.tools] == list(TOOLS)
    assert not any(name.startswith("tau_bench") for name in sys.modules)


def test_the_user_may_be_another_agent(folder):
    task = file_tasks(FileDomainKnobs(data=str(folder), code=True, user="agent"))[0]
    walked = walk(make("turnwise/ToolWorld-v0"), task, "gold")
    assert set(walked.actors) == {"agent", "user"}
    assert walked.score == 1.0


def test_code_runs_only_where_it_is_allowed(folder):
    (folder / "tools" / "__init__.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(EnvError, match="Python code"):
        file_tasks(FileDomainKnobs(data=str(folder)))


def test_tasks_are_read_and_not_run(folder):
    (folder / "tasks_test.py").write_text("import os\nos.abort()\n" + TASKS)
    assert read_tasks(folder / "tasks_test.py")[0]["actions"][1] == {
        "name": "free_locker",
        "kwargs": {"locker": "L7"},
    }
    (folder / "tasks_test.py").write_text("TASKS = [Task(instruction=input())]")
    with pytest.raises(EnvError, match="literals"):
        read_tasks(folder / "tasks_test.py")


def say(env, name, **arguments):
    return env.step(Message("assistant", "", (ToolCall(name, arguments, "c0"),)))


def test_a_failing_tool_changes_nothing_and_forks_are_apart(folder):
    env = make("turnwise/ToolWorld-v0")
    env.reset(seed=0, options={"task": file_tasks(FileDomainKnobs(data=str(folder), code=True))[0]})
    before = env.state.db
    for name, locker, said in (
        ("half_done", "L7", "out of paper"),
        ("free_locker", "L9", "no such locker"),
        ("get_locker", "L9", "L9"),
    ):
        step = say(env, name, locker=locker)
        assert step.info["bad_action"]
        assert said in step.observation[0].content
    assert env.state.db is before
    twin = env.fork()
    assert '"member": null' in say(env, "free_locker", locker="L7").observation[0].content
    assert '"member": "m1"' in say(twin, "get_locker", locker="L7").observation[0].content
    step = env.step("Done. Your locker is free.")
    assert (step.info["end"], step.reward) == (EndReason.SOLVED, 1.0)
    assert twin.step("Done. Your locker is free.").reward == 0.0


def test_published_splits_are_kept(folder):
    cls = type(make("turnwise/ToolWorld-v0"))
    for split, said, other in ((Split.TEST, "Ben", "Bo."), (Split.TRAIN, "Bo.", "Ben")):
        drawn = {cls.generate(derive_rng(i), split, data=str(folder), code=True).prompt for i in range(20)}
        assert len(drawn) == 2
        assert said in str(drawn)
        assert other not in str(drawn)


def test_tasks_that_doing_nothing_solves_are_refused_or_left_out(folder):
    (folder / "tasks_dev.py").write_text(NOOP)
    with pytest.raises(EnvError, match="doing nothing solves it"):
        file_tasks(FileDomainKnobs(data=str(folder), code=True))
    assert len(file_tasks(FileDomainKnobs(data=str(folder), code=True, skip=True))) == 4


def test_rows_are_a_table_that_tools_may_change_in_place():
    rows = {"a": frozen({"n": 1}), "b": frozen({"n": 2}), "c": frozen({"n": 3})}
    db = Database.of({"t": rows})
    table = LazyRows(Map(rows))
    assert "b" in table
    assert table.get("z") is None
    table["a"]["n"] = 10
    del table["b"]
    assert "b" not in table
    table["d"] = {"n": 4}
    assert sorted(table) == ["a", "c", "d"]
    assert len(table) == 3
    assert json.loads(json.dumps(table)) == {"a": {"n": 10}, "c": {"n": 3}, "d": {"n": 4}}
    with pytest.raises(KeyError):
        table["z"]
    after = table.written("t", db)
    assert after == Database.of({"t": {"a": frozen({"n": 10}), "c": rows["c"], "d": frozen({"n": 4})}})
    assert after.touched == {("t", "a"), ("t", "b"), ("t", "d")}
