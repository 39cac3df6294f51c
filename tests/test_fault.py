"""Whose fault an error is, by what servers publish of theirs."""

import time

import pytest

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import outcome_of
from turnwise.agents.policies.served.answers import ServerRefusal
from turnwise.errors import DeadlineError, EngineError, InfraError, VerifierError
from turnwise.fault import MOST_READ, Blame, FaultCause, Party, of_answer, of_exit, of_raised, of_rpc

FULL = {
    "OpenAI, by its code alone": (400, {"error": {"message": "Too much.", "code": "context_length_exceeded"}}),
    "OpenAI": (400, {"error": {"message": "Your input exceeds the context window of this model.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}),
    "vLLM": (400, {"object": "error", "message": "The decoder prompt (length 9000) is longer than the maximum model length of 8192.", "type": "BadRequestError", "param": None, "code": 400}),
    "SGLang": (400, {"object": "error", "message": "The input (9000 tokens) is longer than the model's context length (8192 tokens).", "type": "BadRequestError", "code": 400}),
    "llama.cpp": (400, {"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192}}),
    "Anthropic": (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
    "Anthropic's proxy": (413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    "Gemini": (400, [{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}]),
    "Mistral": (400, {"object": "error", "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "type": "invalid_request_prompt", "code": "3051"}),
    "Moonshot": (400, {"error": {"message": "Invalid request: Your request exceeded model token limit: 8192", "type": "invalid_request_error"}}),
    "xAI": (400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    "TGI": (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 200 `max_new_tokens`", "error_type": "validation"}),
    "Bedrock": (400, {"message": "Input is too long for requested model."}),
    "DashScope": (400, {"error": {"code": "invalid_parameter_error", "message": "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", "type": "invalid_request_error"}}),
    "Z.ai": (400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}),
    "OpenRouter, quoting": (400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}', "provider_name": "x"}}}),
    "within an answer": (200, {"error": {"code": 400, "message": "This endpoint's maximum context length is 32768 tokens."}}),
    "as text": (400, b"Error: maximum context length is 8192 tokens"),
}  # fmt: skip
OTHERS = {
    "a rate": (429, {"error": {"message": "Slow down", "type": "tokens"}}, FaultCause.RATE_LIMITED),
    "Groq's rate in a 413": (413, {"error": {"message": "Request too large for model `x` on tokens per minute (TPM): Limit 6000", "type": "tokens", "code": "rate_limit_exceeded"}}, FaultCause.RATE_LIMITED),
    "a rate that speaks of contexts": (429, {"error": {"message": "Rate limit reached: reduce the length of the messages"}}, FaultCause.RATE_LIMITED),
    "no money": (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, FaultCause.OUT_OF_CREDIT),
    "no money at Anthropic": (400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}, FaultCause.OUT_OF_CREDIT),
    "overloaded": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, FaultCause.OVERLOADED),
    "Azure's filter": (400, {"error": {"code": "content_filter", "message": "The response was filtered", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, FaultCause.CONTENT_FILTERED),
    "DeepSeek's filter": (400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}, FaultCause.CONTENT_FILTERED),
    "a key": (401, {"error": {"message": "Incorrect API key"}}, FaultCause.KEY_REFUSED),
    "a name": (404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}, FaultCause.NOT_FOUND),
    "a failure": (500, "<html>Internal Server Error</html>", FaultCause.SERVER_FAILED),
    "a gateway without a server": (503, "", FaultCause.OVERLOADED),
    "a request": (400, {"error": {"message": "messages: at least one message is required"}}, FaultCause.REQUEST_REFUSED),
    "MiniMax's rate, in a 200": (200, {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "trigger rate limit"}}, FaultCause.RATE_LIMITED),
    "Gemini's rate, which speaks of a quota": (429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan.", "status": "RESOURCE_EXHAUSTED"}}], FaultCause.RATE_LIMITED),
    "OpenRouter's moderation, in a 403": (403, {"error": {"code": 403, "message": "Your chosen model requires moderation and your input was flagged"}}, FaultCause.CONTENT_FILTERED),
    "no completion": (200, {"choices": []}, FaultCause.NO_COMPLETION),
}  # fmt: skip
REFUSED = {
    "OpenAI's o-series": ({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "param": "max_tokens", "code": "unsupported_parameter"}}, "max_tokens"),
    "OpenAI's temperature": ({"error": {"message": "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", "param": "temperature"}}, "temperature"),
    "Claude": ({"error": {"message": "`temperature` and `top_p` cannot both be specified for this model."}}, "top_p"),
    "Mistral": ({"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 1}]}}, "seed"),
    "FastAPI": ({"detail": [{"loc": ["body", "messages", 2, "assistant", "reasoning_content"], "msg": "extra fields not permitted"}]}, "reasoning_content"),
    "Gemini": ([{"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \"seed\": Cannot find field.", "status": "INVALID_ARGUMENT"}}], "seed"),
    "Groq": ({"error": {"message": "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"}}, "reasoning_content"),
    "xAI's own names": ({"code": "Client specified an invalid argument", "error": "Argument not supported on this model: topP"}, "top_p"),
    "what is missing": ({"error": {"message": "Missing `reasoning_content` field in the assistant message at index 2. It cannot be empty."}}, ""),
    "nothing that was sent": ({"error": {"message": "'logit_bias' is not supported"}}, ""),
}  # fmt: skip
SENT = ("seed", "top_p", "temperature", "max_tokens", "reasoning_content")


@pytest.mark.parametrize("server", FULL)
def test_a_full_context_is_the_agents_in_every_server_s_words(server):
    blame = of_answer(*FULL[server])
    assert (blame.cause, blame.party) == (FaultCause.CONTEXT_FULL, Party.AGENT)


@pytest.mark.parametrize("what", OTHERS)
def test_codes_and_statuses_come_before_words(what):
    status, body, cause = OTHERS[what]
    assert of_answer(status, body, sent=SENT).cause is cause


@pytest.mark.parametrize("server", REFUSED)
def test_a_parameter_that_is_refused_by_its_name_is_found(server):
    body, name = REFUSED[server]
    blame = of_answer(422, body, sent=SENT)
    assert blame.parameter == name
    assert blame.cause is (FaultCause.PARAMETER_REFUSED if name else FaultCause.REQUEST_REFUSED)


def test_a_program_that_played_is_the_agents_whatever_its_exit_code_and_one_that_never_ran_is_not():
    assert of_exit(0, acted=False, replies=0) is None
    played, ran = of_exit(1, acted=True, replies=0), of_exit(1, acted=False, replies=0)
    assert played is not None
    assert ran is not None
    assert (played.party, ran.party) == (Party.AGENT, Party.INFRASTRUCTURE)
    assert of_rpc("No such file").party is Party.AGENT
    silent, gone = of_rpc("Timed out", silent=True), of_rpc("Connection closed", gone=True)
    assert [one.party for one in (silent, gone)] == [Party.INFRASTRUCTURE] * 2


def test_errors_of_any_length_and_depth_are_read_in_time():
    started = time.process_time()
    for body in ("[" * 10**6, '{"error":' * 10**5, "context " * 10**6, {"error": {"message": "a" * 10**7}}):
        blame = of_answer(400, body, sent=SENT)
        assert len(blame.said) <= 600
    deep = "x"
    for _ in range(10**4):
        deep = {"error": deep}
    assert of_answer(400, deep).cause is FaultCause.REQUEST_REFUSED
    assert time.process_time() - started < 2
    assert MOST_READ < 10**6


@pytest.mark.parametrize(
    ("error", "policy", "cause", "outcome"),
    [
        (KeyError("shelf"), False, FaultCause.ENVIRONMENT_BROKE, Outcome.ENV_ERROR),
        (TimeoutError(), False, FaultCause.ENVIRONMENT_BROKE, Outcome.ENV_ERROR),
        (VerifierError("a", "b"), False, FaultCause.JUDGEMENT_FAILED, Outcome.VERIFIER_ERROR),
        (InfraError("a", "b"), False, FaultCause.WORLD_FAILED, Outcome.INFRA_ERROR),
        (DeadlineError("a", "b"), False, FaultCause.TIMED_OUT, Outcome.INFRA_ERROR),
        (KeyError("shelf"), True, FaultCause.POLICY_FAILED, Outcome.INFRA_ERROR),
        (VerifierError("a", "b"), True, FaultCause.POLICY_FAILED, Outcome.INFRA_ERROR),
        (TimeoutError(), True, FaultCause.TIMED_OUT, Outcome.INFRA_ERROR),
    ],
)
def test_what_is_raised_is_blamed_on_its_party_and_what_counts_is_no_fault(error, policy, cause, outcome):
    blame = of_raised(error, policy=policy)
    assert (blame.cause, outcome_of(blame)) == (cause, outcome)
    with pytest.raises(ValueError, match="counts"):
        outcome_of(Blame(FaultCause.REFUSED))


def test_a_server_s_answer_behind_a_policy_s_error_says_the_cause():
    error = EngineError("no", "wait")
    error.__cause__ = ServerRefusal(Blame(FaultCause.RATE_LIMITED))
    assert of_raised(error, policy=True).cause is FaultCause.RATE_LIMITED
    error.__cause__ = ServerRefusal(Blame(FaultCause.CONTEXT_FULL))
    assert of_raised(error, policy=True).cause is FaultCause.POLICY_FAILED
