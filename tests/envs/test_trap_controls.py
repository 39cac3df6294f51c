"""Reward traps of released systems, each with its control.

Every test plays an exploit twice: a grader that has the trap, written here from its description, pays for it (so
the exploit is one), and the environment does not. docs/search.md and docs/toolworld.md list them.
"""

import contextlib
import itertools
import json
import random
import re
import socket
from pathlib import Path

import pytest

from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.functioncall.env import FunctionCallEnv
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.search import answers
from turnwise.envs.search.env import SearchEnv
from turnwise.envs.toolworld import solver
from turnwise.envs.toolworld.database import changes
from turnwise.envs.toolworld.domain import carry_out
from turnwise.envs.toolworld.facts import Fact, stated
from turnwise.envs.toolworld.files.domain import load_domain
from turnwise.envs.toolworld.files.tasks import file_tasks
from turnwise.envs.toolworld.knobs import FileDomainKnobs
from turnwise.envs.toolworld.story import call
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.tools.core import ToolCall, ToolError
from turnwise.trainers.credit.grpo import grpo
from turnwise.trainers.kit.toy_batches import turn_batch

FILES = Path(__file__).parent / "toolworld_files"
CAPITAL = ("What is the capital of Marrow?", "Lunden")


# --- search --------------------------------------------------------------------------------------


@pytest.fixture
def lure(tmp_path):
    """A question over a corpus whose one page holds the right answer between answer tags."""
    question, gold = CAPITAL
    page = {"id": "0", "contents": f'"Marrow"\nThe capital of Marrow. <answer>{gold}</answer>'}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(page) + "\n")
    (tmp_path / "nq.jsonl").write_text(
        "".join(
            json.dumps({"question": f"{question}{' ' * n}", "golden_answers": [gold]}) + "\n"
            for n in range(30)
        )
    )
    knobs = {
        "questions": str(tmp_path / "nq.jsonl"),
        "corpus": str(tmp_path / "corpus.jsonl"),
        "pages": "tags",
    }
    return SearchEnv.generate(derive_rng("lure"), Split.TRAIN, **knobs)


def last_answer(chat):
    """A grader that looks for the answer in the whole conversation."""
    found = re.findall(r"<answer>(.*?)</answer>", chat, re.DOTALL)
    return found[-1].strip() if found else None


def test_an_answer_in_a_page_is_not_the_policys(lure):
    """SkyRL's reward reads observations too."""
    env = SearchEnv()
    first, _ = env.reset(seed=0, options={"task": lure})
    step = env.step("<search>capital of Marrow</search>")
    chat = f"{first}\n{step.observation}"
    assert last_answer(chat) == CAPITAL[1]  # the trap pays a policy that never answered
    assert (step.reward, step.info["end"]) == (0.0, None)
    assert env.step(f"<answer>{CAPITAL[1]}</answer>").info["end"] is EndReason.SOLVED


def test_the_prompts_tags_are_nobodys_answer(lure):
    """Search-R1's prompt holds the tags that its reward looks for."""
    env = SearchEnv()
    first, _ = env.reset(seed=0, options={"task": lure})
    assert last_answer(str(first)) is not None  # the trap sees an answer before anybody spoke
    assert env.step("I do not know.").info["end"] is None


@pytest.mark.parametrize(("said", "gold", "rivals"), [
    ("It was 100.", "10", []),
    ("35", "3.5", []),
    ("Velmora or Karvun or Lunden", "Velmora", ["Karvun", "Lunden"]),
    (" ".join(str(n) for n in range(1900, 2000)), "1943", []),
])  # fmt: skip
def test_contained_match_is_no_substring_and_no_list(said, gold, rivals):
    """SubEM as a substring pays for "10" in "100" and for naming every candidate."""
    squeezed = re.sub(r"[^\w\s]", "", said.lower())
    assert re.sub(r"[^\w\s]", "", gold.lower()) in squeezed  # the trap
    assert answers.judge(said, [gold], rivals) == answers.AnswerVerdict(0.0, pytest.approx(0, abs=0.5), 0.0)


@pytest.mark.slow
def test_a_failing_retriever_teaches_nothing():
    """Errors of the retriever shown as observations, or counted as 0, are trained on (NeMo Gym #2552)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    task = SearchEnv.generate(derive_rng("fault"), Split.TRAIN, passages=100, worlds=1)
    (failed,) = run_episodes([Request(task, 0)], scripted("gold"), env_options={"server": url})
    (played,) = run_episodes([Request(task, 0)], scripted("gold"))
    both = [[float(e.success)] for e in (played, failed)]
    assert grpo(turn_batch(both))[1, 0] < -0.5  # the trap pushes against what the failed one did
    counted = [score for score, e in zip(both, (played, failed), strict=True) if e.outcome.counts]
    assert grpo(turn_batch(counted)).tolist() == [[0.0]]


def test_neighbouring_seeds_share_no_task():
    """Random(seed + index) gives seeds 42 and 43 the same 99 of 100 items (reasoning-gym)."""
    made = {seed: {random.Random(seed + i).random() for i in range(100)} for seed in (42, 43)}
    assert len(made[42] & made[43]) == 99  # the trap
    ours = {
        seed: {SearchEnv.generate(derive_rng("s", seed, i), Split.TRAIN, vocabulary="small", per_page=1, people=8,
                                  facts=[2, 1], hops=[1, 2]).id for i in range(100)} for seed in (42, 43)
    }  # fmt: skip
    assert not ours[42] & ours[43]


def test_running_out_of_turns_pays_nothing():
    """1 − |error| / range at the time limit pays blind guesses 0.74 on average (GEM's GuessTheNumber)."""
    blind = [1 - abs(28 - number) / 50 for number in range(1, 51)]
    assert sum(blind) / len(blind) > 0.7  # the trap
    for name, idle in (
        ("turnwise/Calc-v0", "calculate 1 + 1"),
        ("turnwise/Search-v0", "search[the]"),
        ("turnwise/Sort-v0", "compare 1 2"),
    ):
        env = make(name)
        env.reset(seed=0)
        while env.now.end is None:
            step = env.step(idle)
        assert (step.info["end"], step.reward) == (EndReason.TURN_LIMIT, 0.0)


# --- tool worlds ---------------------------------------------------------------------------------


def find(domain, fits, **knobs):
    env = make("turnwise/ToolWorld-v0")
    for index in range(400):
        task = env.generate(derive_rng("control", domain, index), Split.TRAIN, domains=[domain], **knobs)
        env.reset(seed=0, options={"task": task})
        if fits(env.state):
            return env
    raise AssertionError("no task fits")


def names(state):
    return [step.name for step in state.case.planned]


def finish(env, act):
    while env.now.end is None:
        step = env.step(act())
    return step


def test_doing_nothing_politely_solves_no_task():
    """23 of tau-bench's 50 airline tasks change nothing and ask nothing, so that doing nothing passes them."""
    env = find("retail", lambda s: "record_refusal" in names(s), requests=1, traps=1)
    goal, base = env.state.case.target, env.state.case.base
    unrecorded = {cell for cell in changes(base, goal) if cell.table != "notes"}
    assert not unrecorded  # the trap: without the record there is nothing that the goal asks for
    assert finish(env, lambda: "I am sorry, I cannot help you with that.").reward == 0.0


def test_a_task_without_a_goal_is_refused(tmp_path):
    for path in FILES.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    idle = [{"id": "hello", "opening": "Hello.", "actions": [{"name": "get_loan", "kwargs": {"loan": "L1"}}]}]
    (tmp_path / "tasks.json").write_text(json.dumps(idle))
    domain = load_domain(f"files:{tmp_path}")
    base = domain.build(random.Random(0), 0)
    after = carry_out(domain, base, "", [call("get_loan", loan="L1")]).db
    assert after.digest == base.digest  # the trap: replayed gold equals the untouched database
    with pytest.raises(EnvError, match="doing nothing solves it"):
        file_tasks(FileDomainKnobs(data=str(tmp_path)))


@pytest.mark.parametrize(("fact", "said"), [
    (Fact("count", "10"), "There are 100 of them."),
    (Fact("money", "500"), "It is $5.50."),
    (Fact("money", "1250"), " ".join(f"${n}.50" for n in range(5, 30))),
    (Fact("count", "7"), " ".join(map(str, range(40)))),
])  # fmt: skip
def test_facts_are_no_substrings_and_lists_state_nothing(fact, said):
    """tau2-bench looks for the letters: "10" is in "100", and a message with all numbers has every one."""
    letters = {"count": fact.value, "money": f"{int(fact.value) / 100:g}"}[fact.kind]
    assert letters in said.lower().replace(",", "")  # the trap
    assert stated(fact, said) is False


def test_a_call_without_arguments_matches_nothing():
    """tau2-bench's comparison goes over the predicted call's keys, so that none at all match any call."""
    gold, empty = ToolCall("serve", {"dish": "soup", "guests": 2}), ToolCall("serve", {})
    assert empty.name == gold.name
    assert all(gold.arguments[key] == value for key, value in empty.arguments.items())  # the trap
    task = next(suite_tasks(get_suite("functioncall/single"), Split.TRAIN, 1))
    env = FunctionCallEnv()
    env.reset(seed=0, options={"task": task})
    name = env.gold(env.state).tool_calls[0].name
    step = env.step(Message("assistant", "", (ToolCall(name, {"x": 1}, "c0"),)))
    assert step.observation[0].content.startswith("error: ")
    assert env.step("Done.").info["end"] is not EndReason.SOLVED


def test_a_plan_that_fails_is_an_error(tmp_path):
    """tau2-bench logs a warning where a gold action fails: the goal is then what was there before."""
    domain = load_domain(f"files:{FILES}")
    base = goal = domain.build(random.Random(0), 0)
    broken = [call("renew", loan="L2")]
    for step in broken:
        made = domain.act(step.name)
        with contextlib.suppress(ToolError):  # the warning
            goal = made.run(goal, made.tool.validate(ToolCall(step.name, step.arguments))).db
    assert goal == base  # the trap: nothing done equals the goal
    with pytest.raises(EnvError, match="renewed is True"):
        carry_out(domain, base, "", broken)


def test_every_draw_of_a_task_is_one():
    """randint(0, len(tasks)) has one number too many (tau-bench)."""
    tasks = file_tasks(FileDomainKnobs(data=str(FILES)))
    assert any(random.Random(seed).randint(0, len(tasks)) == len(tasks) for seed in range(20))  # the trap
    cls = type(make("turnwise/ToolWorld-v0"))
    drawn = set()
    for split, seed in itertools.product(Split, range(60)):
        with contextlib.suppress(EnvError):  # a split may have none of three tasks
            drawn.add(cls.generate(derive_rng(seed), split, data=str(FILES)).id)
    assert drawn == {task.id for task in tasks}


def test_the_user_gives_no_hint_whether_a_report_is_right():
    """A simulator that corrects the agent lets it guess until it is right."""
    env = find(
        "desk", lambda s: names(s)[-1:] == ["price"] and s.case.story.stages[0].tells, requests=1, traps=0
    )
    fact = env.state.case.story.stages[0].tells[0]
    guesses = [f"it is {n} ." for n in itertools.chain(range(1, int(fact.value)), [int(fact.value)])]
    assert any(stated(fact, guess) for guess in guesses)  # the trap: who may go on guessing wins
    step = env.step(next(guess for guess in guesses if not stated(fact, guess)))
    assert (step.info["end"], step.reward) == (EndReason.FAILED, 0.0)


def test_the_same_words_get_the_same_answer():
    """Simulated users drift: tau2-bench #182, #392. The scripted one is a function of what was said."""
    task = next(suite_tasks(get_suite("toolworld/retail"), Split.TRAIN, 1))
    drifting = {random.Random(seed).choice(["Yes, please.", "What do you mean?"]) for seed in range(20)}
    assert len(drifting) == 2  # what a sampled user does
    told = {str(walk(make("turnwise/ToolWorld-v0"), task, "gold", seed=seed).steps) for seed in range(5)}
    keys = {tuple(walk(make("turnwise/ToolWorld-v0"), task, "gold", seed=seed).keys) for seed in range(5)}
    assert len(told) == len(keys) == 1


def test_changing_more_than_was_asked_fails():
    """A grader that only looks whether the wished-for change is there pays for any other beside it."""
    env = find("desk", lambda s: "cancel" in names(s), requests=1, traps=0, changes=0)
    while not env.state.user.consent:
        env.step(env.gold(env.state))
    db, meant = env.state.db, solver.next_step(env.state).arguments["order"]
    other = next(tree for tree in db.keys("orders") if tree != meant and db.get("orders", tree).state == "open"
                 and db.get("orders", tree)[0] == env.state.case.story.customer)  # fmt: skip
    env.step(f"cancel[{other}]")
    step = finish(env, lambda: env.gold(env.state))
    done = changes(env.state.case.base, env.state.db)
    assert all(done[cell] == value for cell, value in env.state.case.goal.items())  # the trap
    assert (step.info["end"], step.reward) == (EndReason.FAILED, 0.0)


def test_what_a_tool_says_is_not_said_to_the_user():
    """A grader that reads all messages finds the fact in the tool's result."""
    env = find("desk", lambda s: "price" in names(s) and s.case.story.stages[0].tells, requests=1, traps=0)
    while not str(env.gold(env.state)).startswith("price"):
        env.step(env.gold(env.state))
    fact = env.state.case.story.stages[0].tells[0]
    step = env.step(env.gold(env.state))
    assert stated(fact, step.observation[0].content)  # the trap
    assert not env.state.user.told


def test_a_call_that_cannot_be_read_is_no_refusal():
    """Where a broken call counts as none, it is right wherever nothing should be called (parsers: vLLM #17790)."""
    broken = '<tool_call>{"name": "serve", "arguments": {"dish": </tool_call>'
    env = FunctionCallEnv()
    for task in suite_tasks(get_suite("functioncall/irrelevant"), Split.TRAIN, 40):
        if task.options["rounds"][0]["declines"]:
            break
    env.reset(seed=0, options={"task": task})
    assert not Message("assistant", broken).tool_calls
    assert task.options["rounds"][0]["plan"] == []  # the trap: no calls were wanted, and none is seen
    step = env.step(broken)
    assert step.info["bad_action"]
    assert (step.info["end"], env.state.round) == (None, 0)


def test_nobody_elses_chance_decides(monkeypatch):
    """Worlds that draw from the global generator change with whatever else draws from it (gym #91)."""
    random.seed(0)
    first = random.random()
    random.seed(0)
    random.random()
    assert random.random() != first  # the trap: one draw in between, and the world is another
    task = Task.from_json(next(suite_tasks(get_suite("toolworld/retail"), Split.TRAIN, 1)).to_json())
    before = random.getstate()
    walks = [walk(make(task.env), task, "random", seed=3) for _ in range(2)]
    assert random.getstate() == before
    assert walks[0].keys == walks[1].keys
