"""What an author returns is judged at the boundary; what the world or the agent says never kills a record."""

import warnings

import pytest

from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.agents.log.episode_log import read_episodes
from turnwise.agents.policies.scripted import scripted
from turnwise.blame import AuthorError
from turnwise.envs import registry
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_entries, register
from turnwise.tasks.core import Suite, Task
from turnwise.tools.core import ToolError


class Echo(AgentEnv[int]):
    """Says what it is told to, or what it was told."""

    says = "fetched \ud800 from a server"
    turn_limit = 3
    blocking = False

    @classmethod
    def generate(cls, rng, split):
        return Task("returned/Echo-v0", "Go.", {"n": rng.randrange(1000)})

    def initial(self, task):
        return 0, task.prompt

    def transition(self, state, action):
        if action.content == "refuse":
            raise ToolError("no \udfff")
        if action.content.startswith("say"):
            return Transition(state, action.content)
        return Transition(state + 1, self.says, {"outcome": 1.0}, EndReason.SOLVED)

    def gold(self, state):
        return "go"


@pytest.fixture
def suite(monkeypatch):
    monkeypatch.setattr(registry, "_envs", {entry.name: entry for entry in env_entries()})
    register("returned/Echo-v0", f"{__name__}:Echo", "Echoes.")
    monkeypatch.setattr("turnwise.envs.registry.load_class", lambda *_: Echo)
    return Suite("returned/all", "returned/Echo-v0", "All.")


def started() -> Echo:
    env = Echo()
    env.reset(seed=0)
    return env


def test_a_lone_surrogate_of_the_world_is_shown_as_such_and_told():
    with pytest.warns(
        UnicodeWarning, match=r"Echo.transition returned text that is not valid Unicode: '\\ud800'"
    ):
        step = started().step("go")
    assert step.observation[0].content == "fetched \ufffd from a server"


def test_messages_are_corrected_too(monkeypatch):
    monkeypatch.setattr(Echo, "says", Messages((Message("user", "fine"), Message("user", "b\udfffd"))))
    with pytest.warns(UnicodeWarning):
        step = started().step("go")
    assert [message.content for message in step.observation] == ["fine", "b\ufffdd"]


def test_what_an_agent_said_and_hears_again_is_nobodys_mistake():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = started().step("say \ud800")
    assert step.observation[0].content == "say \ufffd"


def test_a_refusal_is_corrected():
    with pytest.warns(UnicodeWarning, match=r"Echo.refused"):
        assert started().step("refuse").observation[0].content == "no \ufffd"


@pytest.mark.filterwarnings("ignore::UnicodeWarning")
def test_such_an_episode_is_played_and_written(suite, tmp_path):
    path = tmp_path / "episodes.jsonl.zst"
    result = evaluate(suite, scripted("gold"), episodes=4, log=path)
    assert result.success == 1.0
    (first, *_) = read_episodes(path)
    assert "\ufffd" in str(first.trajectory.final)


def test_wide_characters_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(Echo, "says", "grüße 🦉 日本")
    assert started().step("go").observation[0].content == "grüße 🦉 日本"


@pytest.mark.parametrize("method", ["initial", "transition", "state_key", "potential"])
def test_a_wrong_value_names_its_method(method, monkeypatch):
    env = Echo(shaping=1.0) if method == "potential" else Echo()
    monkeypatch.setattr(Echo, "says", "done")
    monkeypatch.setattr(Echo, method, lambda *_: object())
    with pytest.raises(AuthorError, match=f"Echo.{method} returned"):
        _turn(env)


def _turn(env):
    env.reset(seed=0)
    env.step("go")


def test_tuples_of_state_and_text_may_be_numbers():
    """A plain value is a fine state."""
    assert started().step("say hello").info["turn"] == 1
