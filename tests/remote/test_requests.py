"""Whatever is sent to an engine's server: it is answered, hangs nobody, and no neighbour hears of it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from answers import PROMPTS, sample

from turnwise.agents.core import Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.remote import own_token
from turnwise.agents.remote.client import Address
from turnwise.agents.remote.protocol import FACTS, GENERATE, LEASE, PackInfo
from turnwise.agents.remote.transfer import WeightStore, fetch, read_pack, write_pack
from turnwise.errors import EngineError

FINE = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 8, "seed": 1}
Body = dict[str, Any]


def body(number: int, **change: Any) -> Body:
    sampling = {**FINE, **change.pop("sampling", {})}
    return {
        "request_id": f"r{number}",
        "token_ids": [5, 6],
        "sampling_params": sampling,
        "stream": False,
        **change,
    }


async def ask(
    session: aiohttp.ClientSession, url: str, path: str, data: Any, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    given = {**Address(url).headers, "Content-Type": "application/json", **(headers or {})}
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    async with session.post(url + path, data=raw, headers=given, timeout=aiohttp.ClientTimeout(30)) as answer:
        return answer.status, (await answer.read()).decode("utf-8", "replace")


def together(url: str, *asked: Any) -> list[tuple[int, str]]:
    """The answers to bodies that are asked at the same time."""

    async def all_of() -> list[tuple[int, str]]:
        async with aiohttp.ClientSession() as session:
            return await asyncio.gather(*(ask(session, url, GENERATE, one) for one in asked))

    return asyncio.run(all_of())


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"token_ids": [5, 10**6]}, "the model has those from 0 to"),
        ({"token_ids": [5, -3]}, "token_ids.1"),
        ({"token_ids": [5, 2**70]}, "token_ids.1"),
        ({"sampling": {"extra_args": {"drawn": 10**9}}}, "drawn"),
        ({"sampling": {"extra_args": {"drawn": 3}}}, "drawn tokens stand at the end of token_ids"),
        ({"sampling": {"extra_args": {"drown": 1}}}, "drown"),
        ({"sampling": {"max_tokens": 10**9}}, "max_tokens"),
        ({"sampling": {"temperature": 1e-40}}, "temperature"),
        ({"sampling": {"temperature": 1e300}}, "temperature"),
        ({"sampling": {"seed": 2**80}}, "seed"),
        ({"sampling": {"stop_token_ids": [7] * 5000}}, "stop_token_ids"),
        ({"token_ids": [5] * 300}, "does not fit"),
        ({"token_ids": [5] * 300, "sampling": {"prompt_logprobs": 0}}, "do not fit"),
        ({"token_ids": [5, 10**6], "sampling": {"prompt_logprobs": 0}}, "the model has those from 0 to"),
        ({"priority": 2**40}, "priority"),
    ],
)
def test_an_odd_request_is_refused_and_its_neighbours_are_answered(served: Any, odd: Body, told: str):
    server = served()
    refused, *good = together(server.url, body(0, **odd), *(body(number) for number in range(1, 4)))
    assert refused[0] in (400, 409), refused
    assert told in refused[1]
    assert [status for status, _ in good] == [200] * 3
    assert together(server.url, body(9))[0][0] == 200


def test_whatever_an_engine_raises_is_the_answer_and_nobody_waits_for_ever(served: Any):
    server = served()
    for error in (OverflowError("too large"), MemoryError("none left"), KeyError("x")):

        async def broken(*_: Any, error: Exception = error, **__: Any) -> Any:
            raise error

        server.engine.stream, whole = broken, server.engine.stream
        ((status, said),) = together(server.url, body(1))
        server.engine.stream = whole
        assert status == 409
        assert type(error).__name__ in said
    assert together(server.url, body(2))[0][0] == 200


def test_an_engine_of_this_process_refuses_tokens_that_it_does_not_have(alone: TorchEngine):
    async def both() -> list[Any]:
        asked = ([5, 10**6], [5, 6], [2**70, 1])
        calls = (alone.generate(ids, Sampling(max_tokens=4), stop_ids=(), seed=1) for ids in asked)
        return await asyncio.gather(*calls, return_exceptions=True)

    bad, good, huge = asyncio.run(both())
    assert isinstance(bad, EngineError)
    assert isinstance(huge, EngineError)
    assert len(good.token_ids) == 4
    with pytest.raises(EngineError, match="the model has those from 0"):
        alone.score([[5, 6], [5, 10**6]])


# --- who may ask -----------------------------------------------------------------------------------------


def status(server: Any, path: str, headers: dict[str, str]) -> int:
    async def once() -> int:
        async with aiohttp.ClientSession() as session:
            return (await ask(session, server.url, path, {}, headers))[0]

    return asyncio.run(once())


def test_an_engine_of_this_machine_wants_a_token_that_programs_of_its_user_find(served: Any, fleet: Any):
    server = served()
    for path in (GENERATE, "/pause", "/update_weights", LEASE, FACTS):
        assert status(server, path, {"Authorization": ""}) == 401
        assert status(server, path, {"Authorization": "Bearer "}) == 401
    (file,) = own_token.token_folder().glob(f"*-{server.port}.token")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(sample(fleet(server.url))) == len(PROMPTS)
    file.chmod(0o644)
    assert own_token.found_token(server.url) == ""  # anybody may have read it
    file.chmod(0o600)
    assert (
        own_token.found_token(f"http://elsewhere.invalid:{server.port}") == ""
    )  # it is sent to no other machine
    server.close()
    assert not file.exists()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("evil.example", 421), ("evil.example:80", 421), ("", 421), ("127.0.0.1.evil.example", 421), ("[::ffff:8.8.8.8]:1", 421),
     ("localhost", 400), ("127.0.0.1:9", 400), ("[::1]:80", 400), ("LOCALHOST:1", 400)],
)  # fmt: skip
def test_a_server_of_this_machine_answers_to_its_own_name_alone(served: Any, host: str, expected: int):
    assert status(served(), GENERATE, {"Host": host}) == expected


# --- weights that lie ------------------------------------------------------------------------------------


def sender(data: bytes) -> tuple[PackInfo, threading.Thread]:
    door = socket.create_server(("127.0.0.1", 0))

    def send() -> None:
        with door, door.accept()[0] as end:
            end.recv(64)
            end.sendall(data)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    port = door.getsockname()[1]
    return PackInfo(host="127.0.0.1", port=port, key="0" * 64, checksum="x"), thread


def test_what_a_transfer_announces_is_not_allocated_before_it_is_believed():
    for length in (2**62, 2**40, 1001):
        info, thread = sender(struct.pack("<Q", length))
        with pytest.raises(
            EngineError, match=f"{length} bytes are announced, and weights of this model have at most 1000"
        ):
            fetch(info, 1000)
        thread.join(10)
    assert WeightStore()._most < 2**48  # what this machine has


def pack(index: Any, data: bytes = b"") -> bytearray:
    text = json.dumps(index).encode() if not isinstance(index, bytes) else index
    return bytearray(data + text + struct.pack("<Q", len(text)))


ROW = {"name": "w", "dtype": "float32", "shape": [2], "size": 8, "sha256": "0"}


@pytest.mark.parametrize(
    "data",
    [
        bytearray(b""), bytearray(b"abc"), bytearray(b"\xff" * 64), pack(b"[" * 5000), pack(3), pack([3]), pack([{}]),
        pack([{**ROW, "size": -8}]), pack([{**ROW, "size": "8"}], b"x" * 8), pack([{**ROW, "name": 3}, ROW], b"x" * 16),
        pack([ROW], b"x" * 8), pack([{**ROW, "shape": 3}], b"x" * 8), pack([{**ROW, "extra": 1}], b"x" * 8),
        bytearray(struct.pack("<Q", 2**63)),
    ],
)  # fmt: skip
def test_a_pack_that_is_none_is_an_error_of_ours(data: bytearray):
    with pytest.raises(EngineError, match="The weights that came are not used"):
        read_pack(data, "x")


@pytest.mark.parametrize(
    "change", [{"dtype": "nodtype"}, {"dtype": "nn"}, {"shape": [3]}, {"shape": [-5, 2]}]
)
def test_a_pack_whose_index_lies_of_its_tensors_is_an_error_of_ours(tmp_path: Path, change: dict[str, Any]):
    import torch

    from turnwise.agents.remote.transfer import TensorEntry, checksum_of

    file = tmp_path / "pack"
    write_pack(file, [("w", torch.ones(2))])
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[-8:])
    (row,) = json.loads(data[-8 - length : -8])
    row |= change
    lying = pack([row], data[:8])
    entry = TensorEntry(**{**row, "shape": tuple(row["shape"])})
    with pytest.raises(EngineError, match="is no tensor of its type and shape"):
        read_pack(lying, checksum_of([entry]))


# --- everything else --------------------------------------------------------------------------------------

WILD = [None, True, -1, 0, 1.5, 2**31, 2**70, -(2**70), 1e308, "", "x", "9" * 5000, "\x00", [], [[]], {}, {"a": 1}, [None],
        [1] * 50, ["1"], "default", "../../etc/passwd", "Infinity"]  # fmt: skip
KNOWN: dict[str, Callable[[], Any]] = {
    GENERATE: lambda: body(0, sampling={"extra_args": {"drawn": 1}, "stop_token_ids": [3], "prompt_logprobs": None}),
    LEASE: lambda: {"run": "a", "holder": "b", "process": "1-2", "local": "x", "release": False},
    "/update_weights": lambda: {"update_info": {"path": "/dev/shm/turnwise-weights-1/turnwise-weights-1.pack", "host": "",
                                               "port": 1, "key": "00", "checksum": "x", "base": None}},
    "/finish_weight_update": lambda: {"weight_version": "1"},
    "/start_weight_update": dict,
    "/pause?mode=keep": dict,
    "/resume": dict,
    "/weight_checker": dict,
}  # fmt: skip


def changed(data: Any, rng: random.Random, inside: bool = False) -> Any:
    """A body with some value in it that is another, or bytes that are no JSON."""
    if rng.random() < 0.1 and not inside:
        text = bytearray(json.dumps(data).encode())
        for _ in range(rng.randrange(1, 4)):
            text[rng.randrange(len(text))] = rng.randrange(256)
        return bytes(text)
    if not isinstance(data, dict) or not data or rng.random() < 0.05:
        return rng.choice(WILD)
    key = rng.choice([*data, "unknown"])
    inner = data.get(key)
    data[key] = (
        changed(inner, rng, True) if isinstance(inner, dict) and rng.random() < 0.7 else rng.choice(WILD)
    )
    return data


def test_no_request_gets_an_error_that_is_ours(served: Any, caplog: pytest.LogCaptureFixture):
    server, rng, wrong = served(), random.Random(11), list[str]()

    async def all_of() -> int:
        count = 0
        async with aiohttp.ClientSession() as session:
            for number in range(400):
                path = rng.choice([*KNOWN])
                data = changed(KNOWN[path](), rng)
                if isinstance(data, dict) and number % 2 and "request_id" in data:
                    data["request_id"] = f"q{number}"
                found, said = await ask(session, server.url, path, data)
                count += found == 200
                if found not in (200, 400, 409):
                    wrong.append(f"{found} {path} {data!r:.200}: {said[:200]}")
                if path == LEASE and found == 200:  # else nothing else may be asked in the next 20 s
                    await ask(
                        session,
                        server.url,
                        path,
                        {**(json.loads(data) if isinstance(data, bytes) else data), "release": True},
                    )
                if path.startswith("/pause"):
                    await ask(session, server.url, "/resume", {})
        return count

    assert asyncio.run(all_of()) > 40
    assert wrong == []
    assert not re.search("Traceback|a request failed", caplog.text)
