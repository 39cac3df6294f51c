"""Runs what a large request costs in threads: the event loop goes on, and a session has one thread at a time.

A thread shares the interpreter's lock, which one call of C code keeps until it returns. So a text of JSON with many values is
read and written by Python's own code, which hands the lock over, and not by its module in C.
"""

from __future__ import annotations

import asyncio
import functools
import json
import json.decoder
import json.scanner
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, ParamSpec, TypeVar

from turnwise.tasks.core import Json

SHORT = 1 << 16
"""Bytes of a request whose work is done at once, because a thread would cost more."""
MANY = 100_000
"""Brackets, braces and commas of a JSON text beyond which C code would keep the lock for long."""
_THREADS = 2

Args = ParamSpec("Args")
Result = TypeVar("Result")


class Offloader:
    """Runs the work of requests that belong together, one after the other where it is much."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(
        self, size: int, work: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs
    ) -> Result:
        """Do some work: at once where the request has few bytes, else in a thread, after what was begun before it.

        Work that nobody waits for any more goes on to its end, and keeps its place until then.
        """
        if size <= SHORT:
            return work(*args, **kwargs)
        await self._turn.acquire()
        job = asyncio.get_running_loop().run_in_executor(_pool(), functools.partial(work, *args, **kwargs))
        job.add_done_callback(self._done)
        return await asyncio.shield(job)

    def _done(self, job: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not job.cancelled():
            job.exception()  # so that nobody is told of one that nobody waits for


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, "turnwise-requests")


def marks(text: str) -> int:
    """Brackets, braces and commas of a JSON text, of which it has at least as many as values, but for one."""
    return sum(map(text.count, "[{,"))


def read_json(text: str) -> Json:
    """The value of a JSON text.

    >>> read_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}

    Raises:
        ValueError: it is none; NaN and infinities are no numbers of JSON.
        RecursionError: it is nested too deeply.
    """
    return (_PATIENT if marks(text) > MANY else _QUICK).decode(text)


def json_pieces(value: Json, *, patient: bool = False) -> Iterable[str]:
    """The text of a JSON value with sorted keys and no spaces: whole, or piece by piece where it may be large (``patient``).

    >>> "".join(json_pieces({"b": [1, 2.0], "a": None}, patient=True)), *json_pieces([1, 2])
    ('{"a":null,"b":[1,2.0]}', '[1,2]')
    """
    return _WRITER.iterencode(value) if patient else (_WRITER.encode(value),)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _patient() -> json.JSONDecoder:
    decoder = json.JSONDecoder(parse_constant=_no_number)
    decoder.parse_object, decoder.parse_array = json.decoder.JSONObject, json.decoder.JSONArray  # type: ignore[attr-defined]
    decoder.scan_once = json.scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder


_QUICK = json.JSONDecoder(parse_constant=_no_number)
_PATIENT = _patient()
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
