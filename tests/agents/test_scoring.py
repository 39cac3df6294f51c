"""How likely a policy's model finds a text, and whether it would say yes: here, behind a server, and where it cannot be told."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from aiohttp import web
from chat_server import refused, said, serve

from turnwise.agents.core import Outcome, Sampling
from turnwise.agents.engines.recorded import RecordedEngine
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.scoring import GivenReply, Scorer, scorer_of
from turnwise.agents.rollout import rollout_episode
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.errors import EngineError, RecipeError
from turnwise.tasks.core import Task
from turnwise.trainers.kit.asking import JudgeQuestion, judge_policy, trained

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: Any) -> Any:
    from turnwise.agents.engines.torch import TorchEngine
    from turnwise.agents.models.loading import load_tokenizer
    from turnwise.agents.models.small import build_small_model

    folder = tmp_path_factory.mktemp("model")
    texts = ["Is it so? Yes or No, it is not so.", "A question of a judge."] * 4
    build_small_model(folder, texts, vocab_size=320, layers=2, width=64, heads=2, context=128, seed=3)
    made = ModelPolicy(
        TorchEngine(str(folder), context_length=128),
        Renderer(load_tokenizer(str(folder))),
        Sampling(max_tokens=12),
    )
    yield made
    made.close()


def test_the_score_of_what_was_sampled_is_what_the_engine_told_when_it_sampled(policy: ModelPolicy) -> None:
    """The canary of judges: the same conversation, its reply scored as a text, over replies of several lengths."""
    questions = ["Is it so?", "Or not?", "A question", "It is"]
    turns = []
    for seed, question in enumerate(questions):
        played = asyncio.run(rollout_episode(JudgeQuestion(), policy, Task("judge", question), seed=seed))
        assert played.outcome is Outcome.OK
        turns += played.trajectory.turns
    sequences = [[*turn.reply.prompt_ids, *turn.reply.action_ids] for turn in turns]
    scored = policy.engine.score(sequences)  # pyright: ignore
    for turn, told in zip(turns, scored, strict=True):
        assert list(told[-len(turn.reply.action_ids) :]) == pytest.approx(turn.reply.logprobs, abs=1e-4)
    assert len({len(one) for one in sequences}) > 1


def test_a_given_reply_and_yes_or_no_are_scored_as_one_forward_pass_says(policy: ModelPolicy) -> None:
    model, renderer = policy.engine.model, policy.renderer  # pyright: ignore
    asked = [
        GivenReply([Message("user", "Is it so?")], "Yes, it is."),
        GivenReply([Message("user", "No")], "so"),
    ]
    for given, told in zip(asked, asyncio.run(policy.score(asked)), strict=True):
        prompt, reply = renderer.start(given.messages), renderer.reply_ids(Message("assistant", given.text))
        with torch.no_grad():
            logp = model(torch.tensor([[*prompt, *reply]])).logits[0].log_softmax(-1)
        own = [logp[len(prompt) + n - 1, token].item() for n, token in enumerate(reply)]
        assert list(told) == pytest.approx(own, abs=1e-4)
    (found, other) = asyncio.run(policy.yes_no(["Is it so?", "Or not?"]))
    yes, no = (renderer.reply_ids(Message("assistant", word)) for word in ("Yes", "No"))
    assert yes[0] != no[0]
    with torch.no_grad():
        logp = (
            model(torch.tensor([renderer.start([Message("user", "Is it so?")])]))
            .logits[0, -1]
            .log_softmax(-1)
        )
    assert (found.yes, found.no) == pytest.approx((logp[yes[0]].item(), logp[no[0]].item()), abs=1e-4)
    assert found != other


def test_a_reply_that_was_begun_goes_on_with_yes_or_no_in_its_own_place(policy: ModelPolicy) -> None:
    model, renderer = policy.engine.model, policy.renderer  # pyright: ignore
    told, begun = [Message("system", "A question"), Message("user", "Is it so?")], "Yes, it is not so."
    (found,) = asyncio.run(policy.yes_no([GivenReply(told, begun)]))
    prompt = renderer.start(told)
    replies = [renderer.reply_ids(Message("assistant", f"{begun} {word}")) for word in ("yes", "no")]
    differ = next(n for n, (a, b) in enumerate(zip(*replies, strict=False)) if a != b)
    assert differ > 3
    with torch.no_grad():
        own = [model(torch.tensor([[*prompt, *one]])).logits[0].log_softmax(-1) for one in replies]
    at = len(prompt) + differ - 1
    expected = [logp[at, one[differ]].item() for logp, one in zip(own, replies, strict=True)]
    assert (found.yes, found.no) == pytest.approx(tuple(expected), abs=1e-4)
    (alone,) = asyncio.run(policy.yes_no([GivenReply(told, "")]))
    assert alone != found
    with pytest.raises(EngineError, match="only samples"):
        asyncio.run(ModelPolicy(RecordedEngine([], version=0), renderer).yes_no([GivenReply(told, begun)]))


def test_a_question_without_room_is_not_answered_and_a_text_without_room_is_refused(
    policy: ModelPolicy,
) -> None:
    (found,) = asyncio.run(policy.yes_no(["so " * 200]))
    assert not found.readable
    assert (found.chance, found.odds) == (0.0, 0.0)
    with pytest.raises(EngineError, match="does not fit a context of 128"):
        asyncio.run(policy.score([GivenReply([Message("user", "so " * 200)], "x")]))


def test_who_tells_no_log_probabilities_is_refused(policy: ModelPolicy) -> None:
    with pytest.raises(EngineError, match="scripted:gold tells no log-probabilities"):
        scorer_of(make_policy("scripted:gold"))
    only_samples = ModelPolicy(RecordedEngine([], version=0), policy.renderer)
    with pytest.raises(EngineError, match="cannot score: it only samples"):
        asyncio.run(only_samples.yes_no(["Is it so?"]))


def test_self_is_the_policy_that_is_trained_while_it_is_judged(policy: ModelPolicy) -> None:
    with trained(policy):
        assert judge_policy("self") is policy
    with pytest.raises(RecipeError, match="nothing is trained here"):
        judge_policy("self")


@contextmanager
def scorer(answer: Any) -> Iterator[tuple[Scorer, Any]]:
    with serve(answer) as server, closing(make_policy(f"openai:m@{server.url}")) as policy:
        yield scorer_of(policy), server


def listing(**logps: float) -> web.Response:
    top = [{"token": token, "logprob": logp} for token, logp in logps.items()]
    place = {"token": top[0]["token"], "logprob": 0.0, "top_logprobs": top}
    message = {"role": "assistant", "content": "Yes"}
    return web.json_response(
        {"choices": [{"index": 0, "message": message, "logprobs": {"content": [place]}}]}
    )


def test_a_server_tells_yes_and_no_by_its_likeliest_tokens() -> None:
    with scorer(lambda asked: listing(Yes=-0.1, No=-2.3, Maybe=-5.0)) as (model, server):
        (found,) = asyncio.run(model.yes_no(["Is it so?"]))
    assert (round(found.odds, 4), round(found.chance, 4)) == (2.2, 0.9002)
    (asked,) = server.requests
    assert (asked["logprobs"], asked["top_logprobs"], asked["max_tokens"]) == (True, 20, 1)
    assert asked["messages"] == [{"role": "user", "content": "Is it so?"}]
    with scorer(lambda asked: listing(Maybe=-0.1)) as (model, _):
        (found,) = asyncio.run(model.yes_no(["Is it so?"]))
    assert not found.readable


def test_a_server_goes_on_with_a_reply_that_was_begun() -> None:
    with scorer(lambda asked: listing(yes=-0.2, no=-1.8)) as (model, server):
        (found,) = asyncio.run(model.yes_no([GivenReply([Message("user", "Is it so?")], "So. answer:")]))
    assert round(found.chance, 4) == 0.832
    (asked,) = server.requests
    assert (asked["continue_final_message"], asked["add_generation_prompt"]) == (True, False)
    assert asked["messages"][-1] == {"role": "assistant", "content": "So. answer:"}


def test_a_server_of_vllm_scores_a_given_reply() -> None:
    """Its template writes the prompt as three tokens and the reply as two more; every token has its own number."""

    def answer(asked: dict[str, Any]) -> web.Response:
        told = 3 if asked["add_generation_prompt"] else 5
        assert asked["prompt_logprobs"] == 0
        logps = [None, *({str(n): {"logprob": -n / 2, "rank": 1}} for n in range(1, told))]
        return web.json_response({"choices": [{"message": {"content": "x"}}], "prompt_logprobs": logps})

    with scorer(answer) as (model, server):
        asked = [GivenReply([Message("user", "Is it so?")], "Yes")]
        assert asyncio.run(model.score(asked)) == [(-1.5, -2.0)]
    roles = sorted([m["role"] for m in one["messages"]] for one in server.requests)
    assert roles == [["user"], ["user", "assistant"]]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda asked: said("Yes"), "does not tell the likeliest tokens"),
        (lambda asked: refused(400, "logprobs are not supported"), "gave no log-probabilities"),
        (
            lambda asked: web.Response(body=json.dumps([1]).encode(), content_type="application/json"),
            "does not tell",
        ),
        (lambda asked: listing(Yes=math.nan), "does not tell"),
    ],
)
def test_a_server_that_tells_none_is_refused_by_its_name(answer: Any, told: str) -> None:
    with scorer(answer) as (model, _):
        with pytest.raises(EngineError, match=told):
            asyncio.run(model.yes_no(["Is it so?"]))
        if told != "gave no log-probabilities":
            with pytest.raises(EngineError, match=r"prompt_logprobs, which vLLM has"):
                asyncio.run(model.score([GivenReply([Message("user", "x")], "y")]))
