"""Policies without a model: scripts, a person, and how specs are read."""

import io
import pickle
from pathlib import Path

import pytest

from turnwise.agents.core import Outcome
from turnwise.agents.models.finding import find_model
from turnwise.agents.policies.human import HumanPolicy
from turnwise.agents.policies.registry import make_policy, policies, spec_form
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.console import SafeConsole
from turnwise.envs.baselines import TRIVIAL_BASELINES, moment, tool_spam
from turnwise.envs.core import EndReason
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Split

TASKS = [suite_task(get_suite("shop/easy"), Split.TEST, index) for index in range(5)]


def actions(name, seed=0):
    episodes = run_episodes([Request(task, seed) for task in TASKS], scripted(name))
    assert all(episode.outcome.counts for episode in episodes)
    return [[str(turn.action) for turn in episode.trajectory.turns] for episode in episodes]


@pytest.mark.parametrize("name", ["gold", *TRIVIAL_BASELINES])
def test_scripts_are_functions_of_task_and_seed(name):
    assert actions(name) == actions(name)


def test_the_random_script_follows_its_seed():
    assert actions("random", seed=0) != actions("random", seed=1)
    assert actions("gold", seed=0) == actions("gold", seed=1)


def test_what_the_baselines_do():
    assert set(actions("null")[0]) == {""}
    assert actions("echo")[0][0].split() == TASKS_FIRST.split()
    assert all(call.startswith("→ ") for call in actions("tool_spam")[0])


TASKS_FIRST = str(make(TASKS[0].env).reset(seed=0, options={"task": TASKS[0]})[0][-1].content)


def test_tool_spam_is_schema_valid():
    env = make(TASKS[0].env)
    observation, _ = env.reset(seed=0, options={"task": TASKS[0]})
    for seed in range(20):
        now = moment(env, observation, f"spam{seed}")
        (call,) = tool_spam(now).tool_calls
        tool = next(tool for tool in env.tools if tool.spec.name == call.name)
        tool.validate(call)


class Typed(io.StringIO):
    """A keyboard: gives its lines to ``input``."""


def test_a_person_plays(monkeypatch):
    env = make(TASKS[0].env)
    env.reset(seed=0, options={"task": TASKS[0]})
    solution = []
    while env.snapshot().end is None:
        solution.append(str(env.gold(env.state)))
        env.step(solution[-1])
    lines = iter([":help", ":actions", *solution])
    monkeypatch.setattr("builtins.input", lambda *_: next(lines))
    screen = io.StringIO()
    (episode,) = run_episodes([Request(TASKS[0], 0)], HumanPolicy(SafeConsole(file=screen, width=100)))
    assert (episode.outcome, episode.end) == (Outcome.OK, EndReason.SOLVED)
    assert ":quit ends the episode" in screen.getvalue()
    assert "search[" in screen.getvalue()


@pytest.mark.parametrize("how", [":quit", EOFError, KeyboardInterrupt])
def test_a_person_leaves(monkeypatch, how):
    def read(*_):
        if isinstance(how, str):
            return how
        raise how

    monkeypatch.setattr("builtins.input", read)
    (episode,) = run_episodes([Request(TASKS[0], 0)], HumanPolicy(SafeConsole(file=io.StringIO())))
    assert (episode.end, episode.trajectory.turns) == (EndReason.GAVE_UP, ())


def test_a_person_may_call_tools(monkeypatch):
    lines = iter(['<tool_call>{"name": "search", "arguments": {"query": "red"}}</tool_call>', ":q"])
    monkeypatch.setattr("builtins.input", lambda *_: next(lines))
    (episode,) = run_episodes([Request(TASKS[0], 0)], HumanPolicy(SafeConsole(file=io.StringIO())))
    assert episode.trajectory.turns[0].action.tool_calls[0].arguments == {"query": "red"}
    assert not episode.trajectory.turns[0].bad_action


def test_specs_are_read():
    assert make_policy("scripted:null").name == "scripted:null"
    assert make_policy("human").name == "human"
    assert make_policy("openai:m@http://h:1/v1").name == "openai:m@http://h:1/v1"
    with pytest.raises(NotFoundError, match=r"Did you mean 'scripted'\?"):
        make_policy("scriptd:gold")
    for entry in policies():
        if ":" in spec_form(entry):
            with pytest.raises(TurnwiseError, match="not complete"):
                make_policy(entry.name)


def test_where_a_model_is(tmp_path, monkeypatch):
    model = tmp_path / "runs" / "best"
    model.mkdir(parents=True)
    with pytest.raises(TurnwiseError, match="holds no model"):
        find_model(str(tmp_path))
    (model / "config.json").write_text("{}")
    assert find_model(str(model)) == str(model)
    with pytest.raises(TurnwiseError, match=r"Inside it: .*runs/best"):
        find_model(str(tmp_path))
    assert find_model("Qwen/Qwen3-0.6B") == "Qwen/Qwen3-0.6B"
    monkeypatch.chdir(tmp_path)
    for missing in ("./nothing", "/nothing/here", "a/b/c", "runs/nothing"):
        with pytest.raises(TurnwiseError, match="no model folder"):
            find_model(missing)


class Bomb:
    """A pickle that makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("weights", ["bomb", "torch bomb", "garbage", "none"])
def test_weights_that_cannot_be_read_are_an_error_and_run_nothing(tmp_path: Path, random_model, weights):
    torch = pytest.importorskip("torch")
    from turnwise.agents.engines.torch import TorchEngine

    random_model().config.save_pretrained(tmp_path)
    ran, file = tmp_path / "ran", tmp_path / "pytorch_model.bin"
    match weights:
        case "bomb":
            file.write_bytes(pickle.dumps({"x": Bomb(ran)}, protocol=2))
        case "torch bomb":
            torch.save({"x": Bomb(ran)}, file)
        case "garbage":
            file.write_bytes(b"garbage")
    with pytest.raises(TurnwiseError, match="cannot be loaded") as failed:
        TorchEngine(str(tmp_path))
    assert "safetensors" in failed.value.remedy
    assert ("could run a program" in failed.value.cause) == (weights != "none")
    assert not ran.exists()


def test_a_broken_model_folder_is_an_error_with_a_remedy(tmp_path: Path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(TurnwiseError, match="cannot be loaded"):
        make_policy(f"torch:{tmp_path}")
