"""A local OpenAI-compatible server that answers from a record or from a function, for tests and demonstrations.

Started by hand it answers from a file of a conversation's lines in turn::

    python -m turnwise.envs.worlds.speaking.server answers.txt --port 8000
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from turnwise.tasks.core import Json
from turnwise.texts import lines_of, read_utf8

Answer = Callable[[dict[str, Json]], "str | dict[str, Json] | int | float | bytes"]
"""From a request to what is said: a text, a whole message, an error's status, seconds to hang, or a body's bytes."""


def in_turn(lines: Sequence[str]) -> Answer:
    """Answers with the line that comes next: as many were said as the request has messages of the assistant."""

    def answer(asked: dict[str, Json]) -> str:
        said = sum(message["role"] == "assistant" for message in asked["messages"])
        return lines[min(said, len(lines) - 1)]

    return answer


class RecordedServer(ThreadingHTTPServer):
    """A running server; ``requests`` are the bodies that it was sent."""

    daemon_threads = True

    def __init__(self, answer: Answer, port: int = 0) -> None:
        self.answer = answer
        self.requests: list[dict[str, Json]] = []
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        server.requests.append(asked)
        said = server.answer(asked)
        if isinstance(said, float):
            time.sleep(said)
            said = 503
        if isinstance(said, int):
            self._send(said, json.dumps({"error": {"message": f"status {said}"}}).encode())
        elif isinstance(said, bytes):
            self._send(200, said)
        else:
            message = {"role": "assistant", "content": said} if isinstance(said, str) else said
            self._send(200, json.dumps({"choices": [{"index": 0, "message": message}]}).encode())

    def _send(self, status: int, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # who asked has gone

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@contextmanager
def serve(answer: Answer) -> Generator[RecordedServer]:
    """A server in a thread of its own."""
    server = RecordedServer(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def main() -> None:
    """Serve the lines of a file until it is interrupted."""
    parser = argparse.ArgumentParser(description="Answer with the lines of a file, in turn.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    asked = parser.parse_args()
    server = RecordedServer(in_turn(lines_of(read_utf8(asked.file, "Name a file of lines."))), asked.port)
    print(f"at {server.url}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
