"""A model that always knows the right move scores 100 % with every provider, whatever the provider's habits."""

from __future__ import annotations

import pytest
from fakes import Fakes, Stand
from habits import providers

import turnwise

NAMES = sorted(providers())
SEEING = ("openai", "azure", "anthropic", "gemini", "moonshot", "openrouter", "bedrock")
"""Those whose model sees, and that take pictures in messages of the user."""


def score(
    stand: Stand, suite: str = "contact/desk", episodes: int = 2, **options: object
) -> turnwise.Evaluation:
    """Play the desk against a stand, one episode after the other; what the user says of the provider goes along."""
    policy = turnwise.make_policy(stand.policy(), **{**stand.provider.options, **options})
    try:
        return turnwise.evaluate(suite, policy, episodes=episodes, concurrency=1, retries=0, max_failed=1.0)
    finally:
        policy.close()


def check_knowing(stand: Stand, done: turnwise.Evaluation) -> None:
    """Every episode is solved; nothing that the provider asks for was lost, and nothing was sent that it refuses."""
    assert done.success == 1.0, (done.outcomes, done.causes, dict(stand.refused))
    assert (stand.lost, stand.broken) == (0, [])
    assert set(stand.refused) <= learnt(stand), dict(stand.refused)
    assert max(stand.refused.values(), default=0) <= 1


def learnt(stand: Stand) -> set[str]:
    """What no client can know before it is told once: a required limit, and null content, whose place others refuse ""."""
    null = stand.provider.messages.null_content == "nowhere"
    return {*(["required"] if stand.provider.required else []), *(["null_content"] if null else [])}


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_knows_the_right_moves_scores_100_percent_with_every_provider(name: str, fakes: Fakes):
    stand = fakes.stand(name)
    check_knowing(stand, score(stand))
    assert stand.served == 2 * (3 if stand.says.parallel else 4)


@pytest.mark.parametrize(
    "name", ["openai", "anthropic", "gemini", "mistral", "deepseek", "tgi", "lmstudio", "bedrock"]
)
def test_two_calls_that_the_world_answers_by_one_text_are_both_answered(name: str, fakes: Fakes):
    stand = fakes.stand(name)
    check_knowing(stand, score(stand, "contact/desk-together"))
    assert any(len(reply.get("tool_calls") or ()) == 2 for reply in stand.replies)


@pytest.mark.parametrize("name", ["openai", "gemini", "moonshot", "dashscope", "strict-proxy", "llama-cpp"])
def test_two_calls_where_a_turn_takes_one_are_both_answered_with_the_reason(name: str, fakes: Fakes):
    stand = fakes.stand(name)
    check_knowing(stand, score(stand, "contact/desk-single"))
    assert any(len(reply.get("tool_calls") or ()) == 2 for reply in stand.replies)


@pytest.mark.parametrize("name", SEEING)
def test_pictures_of_tools_reach_models_that_see(name: str, fakes: Fakes):
    stand = fakes.stand(name)
    check_knowing(stand, score(stand, "contact/desk-pictures", episodes=1))


@pytest.mark.parametrize("name", ["openai-reasoning", "deepseek", "together", "mistral", "vllm-no-parser"])
def test_long_thoughts_are_not_cut_where_no_limit_was_asked_for(name: str, fakes: Fakes):
    stand = fakes.stand(name, says={"words": 3000, "weighed": name != "openai-reasoning"})
    check_knowing(stand, score(stand, episodes=1))


@pytest.mark.parametrize("name", ["openai", "azure", "anthropic", "gemini", "minimax", "openrouter", "vllm"])
@pytest.mark.parametrize("wait", [None, ""], ids=["as published", "without Retry-After"])
def test_an_exceeded_rate_passes(name: str, wait: str | None, fakes: Fakes):
    stand = fakes.stand(name, busy=2, wait=wait)
    done = score(stand, episodes=1)
    assert done.success == 1.0, (done.outcomes, done.causes)
    assert stand.refused["rate"] == 2


@pytest.mark.parametrize("name", NAMES)
def test_sampling_that_is_asked_for_is_left_out_once_where_a_provider_refuses_it(name: str, fakes: Fakes):
    stand = fakes.stand(name)
    done = score(stand, episodes=1, temperature=0.5, top_p=0.9, max_tokens=4000)
    assert done.success == 1.0, (done.outcomes, done.causes, dict(stand.refused))
    asked = {"temperature", "top_p", "max_tokens"}
    assert sum(stand.refused.values()) <= len(asked), dict(stand.refused)
