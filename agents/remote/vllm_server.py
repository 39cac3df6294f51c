"""vLLM's own server with our way of transferring weights, our facts and our token: ``python -m … --model … --port …``.

Started by `turnwise serve-engine --kind vllm`, which stands over it; arguments are vLLM's.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import pydantic

from turnwise.agents.remote.client import Address, RemoteServer
from turnwise.agents.remote.guard import read_token, refusal
from turnwise.agents.remote.lease import Lease
from turnwise.agents.remote.orphan import end_with_parent, stand_over
from turnwise.agents.remote.protocol import FACTS, LEASE, RUN, EngineFacts, LeaseBody, WeightsFacts
from turnwise.agents.remote.transfer import locality
from turnwise.agents.remote.vllm_memory import memory_options
from turnwise.agents.remote.vllm_worker import BACKEND
from turnwise.errors import EngineError
from turnwise.tools.processes import module_path

TOKEN_FILE = "TURNWISE_ENGINE_TOKEN_FILE"
"""Names the file with the token, in the server's environment; the token itself is in no environment or command line."""
HOST = "TURNWISE_ENGINE_HOST"
"""Names the address on which the server listens."""
CPU_BLOCK = 32
LOOK_S = 0.3
_MOST_BODY = 1 << 16
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


def arguments(
    model: str,
    *,
    host: str,
    port: int,
    cuda: bool,
    dtype: str,
    context_length: int,
    max_sequences: int,
    tensor_parallel_size: int = 1,
    gpu_memory_utilization: float = 0.6,
    kv_cache_gib: float = 0.0,
    stream_interval: int = 4,
) -> list[str]:
    """vLLM's command line for an engine that samples for training."""
    options: dict[str, object] = {
        "model": model,
        "host": host,
        "port": port,
        "dtype": dtype,
        "max-model-len": context_length,
        "max-num-seqs": max_sequences,
        "tensor-parallel-size": tensor_parallel_size,
        "logprobs-mode": "processed_logprobs",
        "generation-config": "vllm",  # no sampling defaults from the checkpoint
        "stream-interval": stream_interval,
        "weight-transfer-config": json.dumps({"backend": BACKEND}),
        "worker-extension-cls": "turnwise.agents.remote.vllm_worker.WorkerExtension",
        "middleware": f"{__name__}.TokenGuard",
        "uvicorn-log-level": "warning",
    }
    switches = [
        "enforce-eager",
        "enable-prefix-caching",
        "enable-scale-out",
        "tokens-only",
        "disable-log-stats",
    ]
    memory = memory_options(
        cuda=cuda, kv_cache_gib=kv_cache_gib, gpu_memory_utilization=gpu_memory_utilization
    )
    options |= {name.replace("_", "-"): value for name, value in memory.items()}
    if not cuda:
        options["block-size"] = CPU_BLOCK
        options["max-num-batched-tokens"] = max(context_length, 4096)
        switches.append("no-enable-chunked-prefill")  # see VllmEngine
    return [f"--{name}={value}" for name, value in options.items()] + [f"--{name}" for name in switches]


def environment(token_file: str, *, cuda: bool) -> dict[str, str]:
    """The variables that vLLM's server needs beside its arguments."""
    variables = {
        "VLLM_SERVER_DEV_MODE": "1",  # without it there is no /pause
        "VLLM_NO_USAGE_STATS": "1",
        TOKEN_FILE: token_file,
    }
    if not cuda:
        variables["VLLM_CPU_OMP_THREADS_BIND"] = (
            "nobind"  # engines share the cores, and `auto` would set one aside
        )
    return variables


def start(
    model: str,
    url: str,
    token_file: str,
    ready: Callable[[str], None],
    *,
    cuda: bool,
    dtype: str,
    context_length: int,
    max_sequences: int,
    **options: Any,
) -> int:
    """Run vLLM's server at ``url`` until it ends or this process is told to; ``ready`` is told when it answers.

    Raises:
        EngineError: an option is none of ours, or the server ended before it answered.
    """
    parts = urlsplit(url)
    sizes = {"context_length": context_length, "max_sequences": max_sequences}
    try:
        given = arguments(
            model, host=parts.hostname or "", port=parts.port or 0, cuda=cuda, dtype=dtype, **sizes, **options
        )
    except TypeError as error:
        raise EngineError(
            f"vLLM's server has no such option: {error}.", "See docs/engines.md for them."
        ) from error
    server = RemoteServer(Address(url, read_token(token_file)))
    answered = threading.Event()

    def wait() -> None:
        while not answered.wait(LOOK_S):
            try:
                server.look()
            except EngineError:
                continue
            answered.set()
            ready(url)

    threading.Thread(target=wait, name="turnwise-ready", daemon=True).start()
    code = stand_over(
        [sys.executable, "-P", "-m", __name__, *given],
        environment(token_file, cuda=cuda) | {HOST: parts.hostname or "", "PYTHONPATH": module_path()},
    )
    if code and not answered.is_set():
        raise EngineError(
            f"vLLM's server ended with code {code} before it answered.", "Its log stands above."
        )
    answered.set()
    return code


class TokenGuard:
    """The outermost layer of vLLM's application: asks for the token, on every route, and answers for our own."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app
        self._token = read_token(os.environ.get(TOKEN_FILE, ""))
        self._host = os.environ.get(HOST, "127.0.0.1")
        self._instance = secrets.token_hex(8)
        self._lease = Lease()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        refused = refusal(scope["path"], headers, self._token, self._host)
        taken = self._lease.refusal(scope["path"], headers.get(RUN, ""))
        if refused is not None or taken:
            status, why = refused or (409, taken)
            await _answer(send, status, {"error": {"message": why}})
        elif scope["path"] == LEASE and scope["method"] == "POST":
            await self._lend(receive, send)
        elif scope["path"] == FACTS:
            facts = await self._facts(scope["app"].state.engine_client)
            await _answer(send, 200, facts.model_dump())
        else:
            await self._app(scope, receive, send)

    async def _lend(self, receive: Receive, send: Send) -> None:
        data, more = b"", True
        while more and len(data) <= _MOST_BODY:
            event = await receive()
            data, more = data + event.get("body", b""), event.get("more_body", False)
        try:
            body = LeaseBody.model_validate_json(data)
        except pydantic.ValidationError as error:
            await _answer(send, 400, {"error": {"message": error.errors()[0]["msg"]}})
            return
        await _answer(send, 200, self._lease.ask(body).model_dump())

    async def _facts(self, client: Any) -> EngineFacts:
        found = await client.collective_rpc("turnwise_weights")
        config = client.model_config
        whole = all(row["settled"] for row in found) and len({row["checksum"] for row in found}) == 1
        return EngineFacts(
            kind="vllm",
            instance=self._instance,
            model=config.model,
            dtype=str(config.dtype).removeprefix("torch."),
            context_length=config.max_model_len,
            vocabulary=config.get_vocab_size(),
            weights=WeightsFacts(
                version=await client.get_weight_version(), checksum=found[0]["checksum"], settled=whole
            ),
            gpus=[row["gpu"] for row in found if row["gpu"]],
            local=locality(),
        )


async def _answer(send: Send, status: int, value: object) -> None:
    data = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def main() -> None:
    """Serve until SIGTERM."""
    # Told to end, vLLM answers all that it has in hand first, for minutes, to callers that wait no longer.
    end_with_parent(signal.SIGKILL)
    # `vllm serve` itself does not start from vllm-cpu: it asks for the version of a package named vllm.
    from vllm.entrypoints.launchers.api_server.entry import main as serve

    serve()


if __name__ == "__main__":
    main()
elif (
    __name__ == "__mp_main__"
):  # in every process that vLLM spawns: without this they outlive a server that is killed
    end_with_parent(signal.SIGKILL)
