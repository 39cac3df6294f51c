"""The commands that serve a part of a run, or a suite, to others: serve-engine, serve-workers, serve-openenv."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.doors import Door


def serve_engine(
    model: str,
    /,
    *,
    kind: str = "torch",
    host: str = "127.0.0.1",
    port: int = 8700,
    token_file: Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
    context_length: int = 2048,
    max_sequences: int = 64,
    option: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    with_parent: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult:
    """Run an engine that a training run or an evaluation elsewhere samples from.

    The line "ready: URL" is written once it answers. It runs until SIGTERM or Ctrl-C.

    For example: `turnwise serve-engine Qwen/Qwen3-0.6B`.

    Args:
        model: A model's folder, a run's folder or a Hugging Face id.
        kind: The engine (`turnwise list engine`): vllm is the fast one, torch needs no vLLM.
        host: The address to listen on. Any but this machine's own needs a token file.
        port: The port; 0 is a free one.
        token_file: A file with the token that callers must have. Without one a token is made, in a file that only you can read
            and where your programs on this machine find it.
        device: cuda, cpu or auto.
        dtype: The type of the weights; auto is bfloat16 on a GPU and float32 on a CPU.
        context_length: The longest prompt plus answer, in tokens.
        max_sequences: How many requests are decoded at a time.
        option: Further options of the engine, such as --option kv_cache_gib=4.
        with_parent: End when the process that started this one ends.
    """
    from turnwise.agents.engines.served import check_servable, serve_registered
    from turnwise.agents.models.finding import find_model
    from turnwise.agents.models.hub import reach
    from turnwise.agents.remote.guard import read_token
    from turnwise.agents.remote.orphan import end_with_parent
    from turnwise.agents.remote.own_token import token_of
    from turnwise.agents.remote.serve import listen
    from turnwise.cli.training import overrides

    if with_parent:
        end_with_parent()
    check_servable(kind)
    token = read_token(token_file or "")
    folder = reach(find_model(model))
    sizes = {"context_length": context_length, "max_sequences": max_sequences}
    options = {**sizes, "device": device, "dtype": dtype, **overrides(option or [], "--option")}
    with listen(host, port, token) as door, token_of(door, str(token_file or "")) as file:
        code = serve_registered(kind, folder, door, file, _ready, options)
    return VerbResult({"ended": code}, _ended, code=code)


def serve_workers(
    *,
    token_file: Path,
    processes: int = 0,
    host: str = "127.0.0.1",
    port: int = 8800,
    with_parent: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult:
    """Run worker processes for environments, which training runs elsewhere reach (`scale.worker_hosts`).

    The line "ready: HOST:PORT" is written once it answers. It runs until SIGTERM or Ctrl-C. Whoever has the token can run
    programs as you, which is why there is no way to do without.

    For example: `turnwise serve-workers --token-file run.token --processes 8`.

    Args:
        token_file: A file with the token that runs must have.
        processes: How many processes a run has here; one for each core unless given.
        host: The address to listen on.
        port: The port; 0 is a free one.
        with_parent: End when the process that started this one ends.
    """
    from turnwise.agents.remote.guard import read_token
    from turnwise.agents.remote.orphan import end_with_parent
    from turnwise.agents.workers.host import open_door, serve_until_told

    if with_parent:
        end_with_parent()
    served = serve_until_told(open_door(host, port), read_token(token_file), processes, _ready)
    return VerbResult({"served": served}, _ended)


def serve_openenv(
    suite: str,
    /,
    *,
    split: Literal["train", "dev", "test"] = "train",
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str = "none",
    sessions: int = 256,
    step_s: float = 60.0,
    idle_s: float = 600.0,
    only: int | None = None,
    with_parent: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult:
    """Serve a suite by OpenEnv's protocol to trainers that play its environments, until SIGTERM or Ctrl-C.

    The line "ready: URL" is written once it answers.

    For example: `turnwise serve-openenv shop/easy --port 8000`.

    Args:
        suite: Its name (`turnwise list suites`).
        split: train, dev or test.
        host: The address to listen on. Any but this machine's own needs a token, which OpenEnv's own clients cannot send.
        port: The port; 0 is a free one.
        token: That clients send as Authorization: Bearer TOKEN; none asks for none.
        sessions: How many episodes may be played at a time.
        step_s: Seconds that a turn may take.
        idle_s: Seconds after which a session that says nothing ends.
        only: Serve one episode of the task of this number alone, by HTTP (GET /opening, POST /step, POST /score); nobody can begin it
            anew. Containers of Harbor's tasks are played so.
        with_parent: End when the process that started this one ends.
    """
    import asyncio
    import contextlib

    from turnwise.agents.hosting import one_task, openenv
    from turnwise.agents.remote.orphan import end_with_parent
    from turnwise.envs.registry import get_suite
    from turnwise.tasks.core import Split

    if with_parent:
        end_with_parent()
    limits = openenv.ServedLimits(sessions, step_s, idle_s)
    name, chosen = get_suite(suite).name, Split(split)

    def server(door: Callable[[], Door]) -> openenv.SuiteServer | one_task.OneTaskServer:
        if only is not None:
            return one_task.OneTaskServer(name, only, door, split=chosen, step_s=step_s)
        return openenv.SuiteServer(name, door, split=chosen, limits=limits)

    with contextlib.suppress(KeyboardInterrupt):  # how it is stopped
        asyncio.run(openenv.serve_openenv(server, host, port, token, _ready))
    return VerbResult({"served": name}, _ended)


def _ready(url: str) -> None:
    print(f"ready: {url}", file=sys.stderr, flush=True)


def _ended(console: SafeConsole) -> None:
    console.print("ended")


VERBS: dict[str, Callable[..., VerbResult]] = {
    "serve-engine": serve_engine,
    "serve-workers": serve_workers,
    "serve-openenv": serve_openenv,
}
