"""A chat-completions server on the loopback interface that answers well, except where its fault says otherwise."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from faulting.worlds import draw, hit


@functools.cache
def _long() -> bytes:
    """A completion of 80 MB, made once: how fast this server is says nothing of whoever asks it."""
    message = {"role": "assistant", "content": "x" * (80 << 20)}
    return json.dumps({"choices": [{"index": 0, "message": message}]}).encode()


class Lie(NamedTuple):
    """What the server answers in place of a completion, and whose fault that is."""

    whose: str  # "model", "server", or "nobody" where it passes when asked again
    answer: Callable[[Handler], None]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    prompt = ""
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = next(m["content"] for m in asked["messages"] if m["role"] == "user")
        fault = self.server.fault
        with contextlib.suppress(OSError):  # the client is gone
            if fault is not None and hit(fault, prompt) and self.server.meets(fault, prompt):
                self.prompt = prompt
                LIES[fault["name"]].answer(self)
            else:
                self.say(good(prompt))

    def say(self, content: Any, **message: Any) -> None:
        """A completion that holds this."""
        self.complete(
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": content, **message}}]}
        )

    def complete(self, value: Any, status: int = 200) -> None:
        """Any JSON."""
        self.send(json.dumps(value).encode(), status)

    def send(self, body: bytes, status: int = 200, length: int | None = None, **headers: str) -> None:
        """Any bytes, said to be JSON."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def call(self, name: Any, arguments: Any) -> None:
        """A completion that calls a tool."""
        function = {"name": name, "arguments": arguments}
        self.say("", tool_calls=[{"id": "call_0", "type": "function", "function": function}])

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    """Answers until it is closed."""

    daemon_threads = True

    def __init__(self, fault: Mapping[str, Any] | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault = fault
        self.met = set[str]()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def meets(self, fault: Mapping[str, Any], prompt: str) -> bool:
        """False where the fault has happened to this task and happens once."""
        with self.lock:
            new = prompt not in self.met
            self.met.add(prompt)
        return new or not fault["once"]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client is gone, which is none."""


@contextlib.contextmanager
def serve(fault: Mapping[str, Any] | None) -> Iterator[Server]:
    """A running server."""
    with Server(fault) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


def good(prompt: str) -> str:
    """What a sound policy says in this task: it solves six of ten."""
    return "xyz" if draw("policy", prompt) < 0.4 else "abcabc"


def _slow(handler: Handler) -> None:
    time.sleep(0.6)
    handler.say(good(handler.prompt))


def _hang(handler: Handler) -> None:
    time.sleep(30)


def _close(handler: Handler) -> None:
    handler.close_connection = True
    handler.connection.close()


def _endless(handler: Handler) -> None:
    handler.send(b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "', length=1 << 40)
    while True:  # until the client has gone, which raises
        handler.wfile.write(b"x" * 65536)


def _drip(handler: Handler) -> None:
    handler.send(b'{"choices": [', length=1 << 20)
    for _ in range(300):
        time.sleep(0.1)
        handler.wfile.write(b" ")


LIES = {
    "content null": Lie("model", lambda h: h.say(None)),
    "content number": Lie("model", lambda h: h.say(7)),
    "content object": Lie("model", lambda h: h.say({"text": "abc"})),
    "surrogate": Lie("model", lambda h: h.say("x \ud800 y")),
    "control characters": Lie("model", lambda h: h.say("\x1b]0;owned\x07\x00\x9b2J")),
    "deep arguments": Lie("model", lambda h: h.call("say", "[" * 100_000 + "]" * 100_000)),
    "arguments no JSON": Lie("model", lambda h: h.call("say", "{'a': 1")),
    "arguments list": Lie("model", lambda h: h.call("say", "[1]")),
    "arguments NaN": Lie("model", lambda h: h.call("say", '{"a": NaN}')),
    "tool name null": Lie("model", lambda h: h.call(None, "{}")),
    "unknown tool": Lie("model", lambda h: h.call("rm -rf", "{}")),
    "tool_calls text": Lie("model", lambda h: h.say("", tool_calls="say")),
    "tool_calls many": Lie("model", lambda h: h.say("", tool_calls=[{"function": {"name": "a"}}] * 1000)),
    "message text": Lie("server", lambda h: h.complete({"choices": [{"message": "abc"}]})),
    "no choices": Lie("server", lambda h: h.complete({"choices": []})),
    "null": Lie("server", lambda h: h.complete(None)),
    "list": Lie("server", lambda h: h.complete([1, 2])),
    "no JSON": Lie("server", lambda h: h.send(b"<html>")),
    "empty": Lie("server", lambda h: h.send(b"")),
    "truncated": Lie("server", lambda h: h.send(b'{"choices": [{"mess', length=9999)),
    "closed": Lie("server", _close),
    "500": Lie("server", lambda h: h.complete({"error": {"message": "no"}}, 500)),
    "429": Lie("server", lambda h: h.send(b"{}", 429, Retry_After="1000000000")),
    "401": Lie("server", lambda h: h.complete({"error": {"message": "who?"}}, 401)),
    "400": Lie("server", lambda h: h.complete({"error": {"message": "what?"}}, 400)),
    "compressed": Lie("server", lambda h: h.send(b"\x1f\x8b", Content_Encoding="gzip")),
    "hang": Lie("server", _hang),
    "drip": Lie("server", _drip),
    "slow": Lie("nobody", _slow),
    "80 MB": Lie("model", lambda h: h.send(_long())),
    "endless": Lie("model", _endless),
}
