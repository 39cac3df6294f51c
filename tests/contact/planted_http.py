"""Faults of servers, networks and models that a policy hears over HTTP; each from the second request on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

from blame import Fault
from habits import answers, filled, providers
from knowing import next_move
from raw_server import Handler, Raw, as_json, http
from reply_shapes import shaped


def good(number: int, request: Mapping[str, Any]) -> Raw:
    """What a model that knows the right move says."""
    made = shaped(
        providers()["openai"], providers()["openai"].says, next_move(request["messages"]), number, None
    )
    return said(made.message, made.finish)


def said(message: Any, finish: str = "stop", **choice: Any) -> Raw:
    """A completion with this message."""
    choices = [{"index": 0, "message": message, "finish_reason": finish, **choice}]
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    return as_json(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": choices,
            "usage": usage,
        }
    )


def words(text: str | None, finish: str = "stop", **more: Any) -> Raw:
    """A completion that is a text."""
    return said({"role": "assistant", "content": text, **more}, finish)


def calls(*made: tuple[str, str], finish: str = "tool_calls") -> Raw:
    """A completion with these calls, given as name and arguments."""
    functions = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": given}}
        for n, (name, given) in enumerate(made)
    ]
    return said({"role": "assistant", "content": None, "tool_calls": functions}, finish)


def later(raw: Raw) -> Handler:
    """The right move at first, and then always this."""
    return lambda number, request: good(number, request) if number == 1 else raw


def of_table(kind: str) -> list[Any]:
    """The published answers of one kind."""
    return list(getattr(answers(), kind))


def as_raw(one: Any) -> Raw:
    """A published answer."""
    body = filled(one.body, limit=4096, tokens=5000, model="m")
    text = body if isinstance(body, str) else json.dumps(body)
    return http(text, one.status, **{name.replace("-", "_"): value for name, value in one.headers.items()})


ERROR = {
    "error": {"message": "The server had an error while processing your request", "type": "server_error"}
}
WHOLE = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "look[ledger]"}}]})
EVENTS = 'data: {"choices": [{"delta": {"content": "loo"}}]}\n\ndata: {"choi'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

SERVERS = [
    Fault("a 500 each time", "server", as_json(ERROR, 500), "500|had an error"),
    Fault("a 502 with a page", "server", http("<html>502 Bad Gateway</html>", 502, Content_Type="text/html"), "502"),
    Fault("a 503 without a body", "server", http("", 503), "503"),
    Fault("a 504 with a page", "server", http("<html>504 Gateway Time-out</html>", 504, Content_Type="text/html"), "504"),
    Fault("520 of a proxy", "server", http("error code: 520", 520, Content_Type="text/plain"), "520"),
    Fault("a reset before the answer", "server", Raw(b"", "reset"), "connect|reset|disconnect|server"),
    Fault("a reset in the middle", "server", Raw(HEAD + b"Content-Length: 900\r\n\r\n" + WHOLE[:20].encode(), "reset"), "."),
    Fault("fewer bytes than were said", "server", http(WHOLE, Content_Length="900"), "."),
    Fault("plain bytes that are called gzip", "server", http(WHOLE, Content_Encoding="gzip"), "."),
    Fault("half of a gzip", "server", http(gzip.compress(WHOLE.encode())[:40], Content_Encoding="gzip"), "."),
    Fault("a page with status 200", "server", http("<html>Sign in</html>", Content_Type="text/html"), "."),
    Fault("an error with status 200", "server", as_json({"error": {"message": "overloaded", "code": 502}}), "overloaded|502"),
    Fault("nothing with status 200", "server", http(""), "."),
    Fault("null", "server", http("null"), "."),
    Fault("no choices", "server", as_json({"choices": []}), "."),
    Fault("no message", "server", as_json({"choices": [{"index": 0, "finish_reason": "stop"}]}), "."),
    Fault("a stream that nobody asked for, cut", "server", http(EVENTS, Content_Type="text/event-stream"), "."),
    Fault("a chunk of no number", "server", Raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"), "."),
    Fault("another protocol", "server", Raw(b"220 smtp.example ESMTP ready\r\n"), "."),
    Fault("a body that drips", "server", Raw(HEAD + b"Content-Length: 9000\r\n\r\n", "drip"), "time|slow|deadline|second"),
    Fault("no answer at all", "server", Raw(b"", "silence"), "time|deadline|second"),
    Fault("a key that was taken back", "server", as_json({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, 401), "key"),
    Fault("no credit", "server", as_json({"error": {"message": "Insufficient credits. Add more credits and retry", "code": 402}}, 402), "credit|402"),
    Fault("a country that is not served", "server", as_json({"error": {"code": "unsupported_country_region_territory", "message": "Country, region, or territory not supported", "type": "request_forbidden"}}, 403), "territory|403"),
    Fault("a model that is gone", "server", as_json({"error": {"message": "The model `m` does not exist or you do not have access to it.", "type": "invalid_request_error", "code": "model_not_found"}}, 404), "does not exist|404|model"),
    Fault("no quota, with the status of a rate", "server", as_raw(next(one for one in of_table("rate_limited") if one.server == "openai-quota")), "quota"),
    Fault("overloaded, 529", "server", as_raw(next(one for one in of_table("rate_limited") if one.server == "anthropic-overloaded")), "overloaded|529"),
    Fault("a provider's error in the middle of a reply", "server", said({"role": "assistant", "content": "I lo"}, "error", error={"code": 502, "message": "Provider disconnected"}), "disconnected|error|502"),
    Fault("a way that leads to itself", "server", http("", 307, Location="/0/v1/chat/completions"), "."),
    Fault("a request of ours that it never takes", "server", as_json({"error": {"message": "Invalid value for 'messages'.", "type": "invalid_request_error", "param": "messages", "code": "invalid_value"}}, 400), "messages"),
    Fault("more of a rate than is left, without end", "server", as_json({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, 429, Retry_After="0"), "rate|429"),
]  # fmt: skip

DEEP = "[" * 4000 + "]" * 4000
MODELS = [
    Fault("arguments that are no JSON", "agent", calls(("look", '{"place": '))),
    Fault("arguments that are a list", "agent", calls(("look", '["b"]'))),
    Fault("arguments of 4,000 levels", "agent", calls(("look", f'{{"place": {DEEP}}}'))),
    Fault("half a surrogate pair", "agent", calls(("look", '{"place": "\\ud800"}'))),
    Fault("NaN for a number", "agent", calls(("hand_over", '{"tag": NaN}'))),
    Fault("a key twice", "agent", calls(("look", '{"place": "b", "place": "c"}'))),
    Fault("a tool that there is not", "agent", calls(("open_drawer", "{}"))),
    Fault("a name that is null", "agent", said({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": None, "arguments": "{}"}}]})),
    Fault("nothing, again and again", "agent", words("")),
    Fault("words and no call", "agent", words("I think that the key is in a drawer.")),
    Fault("more calls than a turn takes", "agent", calls(*[("look", '{"place": "a"}')] * 20)),
    Fault("the wrong tag", "agent", calls(("hand_over", '{"tag": 1}'))),
    Fault("a call in tags that ends too early", "agent", words('<tool_call>{"name": "look", "arguments"')),
    Fault("content that is a number", "agent", said({"role": "assistant", "content": 5})),
    Fault("a megabyte of words", "agent", words("so " * 350_000)),
    Fault("a call that the provider cannot read (Groq)", "agent", as_json({"error": {"message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<function=look{\"place\"</function>"}}, 400)),
    Fault("arguments against the schema (Groq)", "agent", as_json({"error": {"message": "tool call validation failed: parameters for tool look did not match schema: errors: [`/place`: expected string, but got number]", "type": "invalid_request_error", "param": "", "code": "tool_use_failed", "failed_generation": "{}"}}, 400)),
    Fault("MALFORMED_FUNCTION_CALL (Gemini)", "agent", said({"role": "assistant"}, "function_call_filter: MALFORMED_FUNCTION_CALL")),
]  # fmt: skip

FULL = [
    Fault(f"a full context in the words of {one.server}", "agent", as_raw(one))
    for one in of_table("context_full")
]

CUT = "length|limit|cut|budget|thought"
NEITHER = [
    *(Fault(f"a reply that was cut, as of {one.server}", "neither", as_raw(one), CUT) for one in of_table("cut")),
    *(
        Fault(f"refused by {one.server}", "neither", as_raw(one), "refus|filter|moderat|inspect|risk|flag|safety|sensitive")
        for one in of_table("filtered")
    ),
    Fault("a call that was cut in its arguments", "neither", calls(("look", '{"place": "l'), finish="length"), CUT),
    Fault("thoughts in content that ate the budget", "neither", words("<think>\nso so so so", "length"), CUT),
    Fault("thoughts in parts that ate the budget", "neither", said({"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "so so"}]}]}, "length"), CUT),
    Fault("text beside a refusal's field", "neither", words(None, refusal="I'm sorry, I can't assist with that."), "refus"),
]  # fmt: skip
