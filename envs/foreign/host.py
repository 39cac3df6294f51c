"""Runs in the interpreter of a world of others: reads requests as lines of JSON, and answers each with one.

It is a program of its own and needs the standard library alone, of Python 3.8 or later: ``python host.py SIDE.py``. The
side is a file whose ``SIDE`` makes a world; docs/how-to/foreign-worlds.md says what it has. Whatever anything prints goes to
stderr. When stdin closes, whoever started this is gone, and the process ends with all of its session.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import sys
import threading
import traceback
from typing import Any

PROTOCOL = 1


def main() -> None:
    """Answer requests until stdin closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # prints of libraries, of Java and C too, are no answers
    sys.stdout = sys.stderr
    asked = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what a library reads is no request
    threading.Thread(target=_end_with_parent, args=(asked.fileno(),), daemon=True).start()
    world = None
    for line in asked:
        request = json.loads(line)
        try:
            if world is None:
                world = _side(sys.argv[1]).SIDE()
            value = _answer(world, request)
            said = json.dumps({"id": request["id"], "value": value})
        except Exception as error:  # noqa: BLE001 (a package may raise anything)
            traceback.print_exc()
            raised = traceback.format_exception_only(type(error), error)[-1].strip()
            said = json.dumps({"id": request["id"], "error": raised})
        answers.write(said + "\n")
        answers.flush()
    os.killpg(0, signal.SIGKILL)


def _end_with_parent(descriptor: int) -> None:
    """See in a thread of its own that the parent is gone, also while a world computes."""
    gone = select.poll()
    gone.register(descriptor, 0)  # that it was hung up; a thread that read would cost each request a switch
    gone.poll()
    os.killpg(0, signal.SIGKILL)


def _side(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("side", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["side"] = module
    spec.loader.exec_module(module)
    return module


def _answer(world: Any, request: dict[str, Any]) -> Any:
    do = request["do"]
    if do == "hello":
        return {"protocol": PROTOCOL, "python": sys.version.split()[0]}
    if do == "open":
        return world.open(request["options"])
    if do == "step":
        return world.step(request["act"])
    if do == "gold":
        return world.gold()
    if do == "list":
        return world.list(request["asked"])
    raise ValueError(f"unknown request {do!r}")


if __name__ == "__main__":
    main()
