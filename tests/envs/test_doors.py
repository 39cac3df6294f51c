"""Who gets into the servers that we open: the right name and the right token, and nothing holds them up."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time

import pytest
from aiohttp import web

from turnwise.doors import Door, open_door, without_token
from turnwise.envs.registry import get_suite, suite_task
from turnwise.envs.search.corpus import Passage
from turnwise.envs.search.library import memory_library
from turnwise.envs.search.remote import RemoteLibrary, retrieve
from turnwise.envs.search.server import application
from turnwise.envs.shop.site import ShopSite
from turnwise.errors import InfraError, TurnwiseError
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolError

PASSAGES = [Passage(str(n), f"Place {n}", f"Velmora number {n} lies on the river.") for n in range(300)]
WRONG_TOKENS = [
    "",
    "Bearer",
    "Bearer x",
    "bearer \xff",
    "Basic x",
    "Basic Og==",
    "Basic Ong=",
    "Digest secret",
    "secret",
]
RIGHT_TOKENS = ["Bearer secret", "bearer secret", "Basic OnNlY3JldA==", "Basic dTpzZWNyZXQ="]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def ask(port: int, path: str, body: bytes | None = None, **headers: str) -> int:
    """The status that the server answers with."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest("GET" if body is None else "POST", path, skip_host="Host" in headers)
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    for name, value in given.items():
        connection.putheader(name, value.encode("latin-1"))
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture
def library_port():
    """The port of a retrieval server whose token is "secret"."""
    loop, port = asyncio.new_event_loop(), free_port()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> web.AppRunner:
        door = Door("127.0.0.1", port, "secret")
        runner = web.AppRunner(application(memory_library("doors", PASSAGES), door=door))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    yield port
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


# --- the door itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example:80", "evil.example", "127.0.0.1", "127.0.0.1:81", "", "localhost.evil.example:80", "127.0.0.1:80.evil.example"])  # fmt: skip
def test_other_names_are_refused(host):
    door = Door("127.0.0.1", 80, "secret")
    assert door.refuses({"Host": host, "Authorization": "Bearer secret"}) == (421, "This is not the address of this server.")  # fmt: skip


@pytest.mark.parametrize("name", ["127.0.0.1:80", "localhost:80", "LOCALHOST:80", "[::1]:80"])
def test_names_of_this_machine_are_served(name):
    assert Door("127.0.0.1", 80, "").refuses({"Host": name}) is None


@pytest.mark.parametrize("given", WRONG_TOKENS)
def test_wrong_tokens_are_refused(given):
    refusal = Door("127.0.0.1", 80, "secret").refuses({"Host": "localhost:80", "Authorization": given})
    assert refusal is not None
    assert refusal[0] == 401


@pytest.mark.parametrize("given", RIGHT_TOKENS)
def test_right_tokens_are_let_in(given):
    headers = {"Host": "localhost:80", "Authorization": given}
    assert Door("127.0.0.1", 80, "secret").refuses(headers) is None


def test_tokens_are_random_and_needed_where_others_can_reach_the_server():
    first, second = open_door("127.0.0.1", 80), open_door("127.0.0.1", 80)
    assert first.token != second.token
    assert len(first.token) >= 32
    assert open_door("localhost", 80, "none").token == ""
    assert open_door("0.0.0.0", 80).token
    assert (
        open_door("0.0.0.0", 80, "mine").refuses({"Host": "any.name", "Authorization": "Bearer mine"}) is None
    )
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(TurnwiseError, match="token"):
            open_door(host, 80, "none")
    odd = Door("::1", 80, "a/b@c:d%")
    assert without_token(odd.address) == ("http://[::1]:80", {"Authorization": "Bearer a/b@c:d%"})
    assert without_token("http://me:pass@h/x")[1] == {"Authorization": "Basic bWU6cGFzcw=="}


# --- /retrieve -----------------------------------------------------------------------------------

QUESTION = json.dumps({"queries": ["Velmora"]}).encode()


def test_retrieve_asks_for_name_and_token(library_port):
    bearer = {"Authorization": "Bearer secret"}
    assert ask(library_port, "/retrieve", QUESTION, **bearer) == 200
    assert ask(library_port, "/", **bearer) == 200
    for path, body in (("/retrieve", QUESTION), ("/", None), ("/nowhere", None)):
        assert ask(library_port, path, body) == 401
        assert ask(library_port, path, body, Authorization="Bearer x") == 401
        assert ask(library_port, path, body, Host=f"evil.example:{library_port}", **bearer) == 421


def test_our_client_gives_the_token(library_port, monkeypatch):
    place = f"127.0.0.1:{library_port}"
    assert len(RemoteLibrary(f"http://:secret@{place}").search("number 7", 3)) > 0
    monkeypatch.setenv("LIBRARY_WORD", "secret")
    assert len(RemoteLibrary(f"http://:${{LIBRARY_WORD}}@{place}").search("number 7", 3)) > 0
    wrong = RemoteLibrary(f"http://:wrongwrong@{place}")
    with pytest.raises(InfraError, match="401") as failed:
        wrong.search("Velmora", 3)
    assert "wrongwrong" not in f"{failed.value} {wrong}"
    monkeypatch.delenv("LIBRARY_WORD")
    with pytest.raises(TurnwiseError, match="LIBRARY_WORD is not set"):
        RemoteLibrary(f"http://:${{LIBRARY_WORD}}@{place}").search("Velmora", 3)


def test_long_queries_are_refused_and_are_the_agents_mistake(library_port):
    bearer = {"Authorization": "Bearer secret"}
    long = json.dumps({"queries": ["x" * 10_001]}).encode()
    assert ask(library_port, "/retrieve", long, **bearer) == 400
    assert ask(library_port, "/retrieve", b" " * 5_000_000, **bearer) == 413
    with pytest.raises(ToolError, match="too long"):
        RemoteLibrary(f"http://:secret@127.0.0.1:{library_port}").search("x" * 10_001, 3)


def test_heavy_questions_do_not_hold_the_loop(library_port):
    """Others are answered while a request of 300 long queries is worked on."""
    words = " ".join(f"Velmora river {n}" for n in range(500))
    heavy = {"queries": [f"{words} {n}" for n in range(300)], "topk": 100}
    url = f"http://:secret@127.0.0.1:{library_port}"
    worker = threading.Thread(target=retrieve, args=(url, heavy))
    worker.start()
    answered = 0
    while worker.is_alive():
        assert ask(library_port, "/", Authorization="Bearer secret") == 200
        answered += worker.is_alive()
    assert answered >= 3


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"result": ' + b" " * (17 << 20), b"\xff", b"null"],
    ids=["deep", "large", "no text", "null"],
)
def test_no_answer_of_a_retrieval_server_harms_the_client(body, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for _ in range(3):
                try:
                    taken, _ = listener.accept()
                except OSError:  # the client has given up, and the test is over
                    return
                with taken:
                    taken.recv(65536)
                    head = f"HTTP/1.0 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    try:
                        taken.sendall(head + body)
                    except OSError:  # it has read enough
                        continue

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(InfraError):
            RemoteLibrary(f"http://127.0.0.1:{listener.getsockname()[1]}").search("x", 3)


@pytest.mark.slow
def test_the_command_prints_an_address_that_works():
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "turnwise.envs.search.server",
        "--suite",
        "search/easy",
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = re.search(r"http://:[\w-]{32,}@127\.0\.0\.1:\d+", process.stderr.readline())
            assert address is not None
            assert _patiently(lambda: retrieve(address[0], {"queries": ["the"]}))["result"]
            assert ask(port, "/retrieve", QUESTION) == 401
        finally:
            process.terminate()
    done = subprocess.run(
        [*command, "--host", "0.0.0.0", "--token", "none"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "Without a token" in done.stderr


def _patiently(work):
    for _ in range(100):
        try:
            return work()
        except InfraError:
            time.sleep(0.1)
    raise AssertionError("the server never came up")


# --- play --browse -------------------------------------------------------------------------------

BAD_FORMS = {
    "multipart without a boundary": ("multipart/form-data", b"x"),
    "multipart that ends early": (
        "multipart/form-data; boundary=b",
        b"--b\r\nContent-Disposition: form-data",
    ),
    "multipart that is none": ("multipart/form-data; boundary=b", b"nothing"),
    "letters that nobody knows": ("application/x-www-form-urlencoded; charset=klingon", b"a=b"),
    "bytes that are no such letters": ("application/x-www-form-urlencoded; charset=utf-16", b"a=b"),
    "a part in letters that nobody knows": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=klingon\r\n\r\nx\r\n--b--\r\n',
    ),
}


@pytest.mark.parametrize("case", BAD_FORMS)
def test_forms_that_cannot_be_read_are_the_clients_fault(case):
    kind, body = BAD_FORMS[case]
    visit = ShopSite.shared().begin(suite_task(get_suite("shop-browser/easy"), Split.TRAIN, 0))
    try:
        port = int(visit.origin.rpartition(":")[2])
        cookies = "; ".join(f"{name}={value}" for name, value in visit.cookies.items())
        assert ask(port, "/", body, Content_Type=kind, Cookie=cookies) in (200, 303, 400, 404, 405)
        assert ask(port, "/", None, Cookie=cookies) == 200
    finally:
        visit.close()
