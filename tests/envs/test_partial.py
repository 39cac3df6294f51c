"""Partial credit of the text worlds: what an episode comes to, however it goes and however it ends."""

import inspect

import pytest

from turnwise.envs.registry import env_class, suite_task, suites
from turnwise.envs.walks import walk
from turnwise.envs.worlds.commands import CommandEnv
from turnwise.errors import EnvError
from turnwise.tasks.core import Split

SUITES = [one for one in suites() if issubclass(env_class(one.env), CommandEnv)]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_it_is_what_the_episode_comes_to(suite):
    cls = env_class(suite.env)
    env, task = cls(partial=0.5), suite_task(suite, Split.TRAIN, 3)
    plain = cls()
    plain.reset(seed=0, options={"task": task})
    if len(plain.agents) > 1 or plain.potential(plain.state) is None:
        with pytest.raises(EnvError, match="`partial` at 0"):
            walk(env, task, "random")
        return
    for script in ("gold", "random", "tool_spam"):
        walked = walk(env, task, script)
        paid = [step.info["rewards"].get("partial", 0.0) for step in walked.steps]
        first, last = (env.potential(moment.state) for moment in (walked.moments[0], env.snapshot()))
        assert sum(paid) == pytest.approx(0.5 * (last - first), abs=1e-9)
        assert "partial" not in str([step.info["rewards"] for step in walk(plain, task, script).steps])


def test_every_text_world_takes_it():
    names = {
        cls.__name__
        for cls in {env_class(suite.env) for suite in SUITES}
        if "partial" in inspect.signature(cls).parameters
    }
    assert names >= {"HouseholdEnv", "GridEnv", "CraftEnv", "LabEnv", "DialogueEnv", "GamesEnv"}
