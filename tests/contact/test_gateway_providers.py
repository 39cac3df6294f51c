"""The same model plays through the gateway: every provider and every SDK occurs, in pairs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from agents_sdk import AGENTS, HEAD, SEEING_AGENTS
from fakes import Fakes, Stand
from habits import providers

import turnwise

NAMES = sorted(name for name, one in providers().items() if one.tools)
KINDS = list(AGENTS)
HARD = {
    "openai": ("deepseek", "minimax"),
    "anthropic": ("moonshot", "openai-reasoning"),
    "langgraph": ("gemini", "anthropic"),
    "pydantic-ai": ("openrouter", "mistral"),
}
"""Those with the habits that an SDK is likeliest to break; `make test-full` plays the others too."""


def script(kind: str, folder: Path, agents: Mapping[str, tuple[str, str]] = AGENTS) -> str:
    """The policy that runs the agent, written into the folder."""
    module, text = agents[kind]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    file = folder / "agent.py"
    file.write_text(HEAD + text)
    preload = {
        "langgraph": ["langchain_openai", "langgraph.prebuilt"],
        "pydantic-ai": ["pydantic_ai.models.openai"],
    }
    told = {"command": [sys.executable, str(file)], "timeout": 40, "preload": preload.get(kind, [module])}
    (folder / "agent.yaml").write_text(yaml.safe_dump(told))
    return f"command:{folder / 'agent.yaml'}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pairs", ["hard", pytest.param("all", marks=pytest.mark.full)])
def test_agents_of_each_sdk_score_100_percent_with_a_model_of_each_provider(
    kind: str, pairs: str, fakes: Fakes, tmp_path: Path
):
    program = script(kind, tmp_path)
    names = HARD[kind] if pairs == "hard" else NAMES[KINDS.index(kind) :: len(KINDS)]
    if kind == "pydantic-ai":  # it takes <think> out of content itself, which MiniMax asks to have back
        names = tuple(name for name in names if name != "minimax")
    failed = {name: found for name in names if (found := fault(program, fakes.stand(name)))}
    assert not failed


SEES = {
    "openai": ("openai", "gemini", "openrouter"),
    "anthropic": ("anthropic", "azure", "moonshot", "bedrock"),
}
"""Providers whose model sees, each behind one of the SDKs; the first of each stands in `make test`."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(SEES))
@pytest.mark.parametrize("share", ["first", pytest.param("others", marks=pytest.mark.full)])
def test_pictures_pass_through_the_gateway_to_models_that_see(
    kind: str, share: str, fakes: Fakes, tmp_path: Path
):
    program = script(kind, tmp_path, SEEING_AGENTS)
    names = SEES[kind][:1] if share == "first" else SEES[kind][1:]
    failed = {
        name: found for name in names if (found := fault(program, fakes.stand(name), "contact/desk-pictures"))
    }
    assert not failed


def fault(program: str, stand: Stand, suite: str = "contact/desk") -> str:
    """Why an episode of this agent against this provider did not count as solved; "" where it did."""
    policy = turnwise.make_policy(program, model=stand.policy(), **stand.provider.options)
    try:
        done = turnwise.evaluate(suite, policy, episodes=1, retries=0, max_failed=1.0)
    except turnwise.TurnwiseError as error:
        return f"{error} refused: {dict(stand.refused)}"
    finally:
        policy.close()
    if (done.success, stand.lost, stand.broken) == (1.0, 0, []):
        return ""
    return f"{done.success} {done.outcomes} {done.causes} refused: {dict(stand.refused)} lost: {stand.lost} {stand.broken}"
