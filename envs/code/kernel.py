"""The program that runs a solver's code inside a sandbox: inputs go in, plain values come out.

It is answer-blind: what is expected never enters the sandbox, so there is nothing here to find, patch or
overload. A solver may forge whatever this program says; all it can forge is its own answers. It is handed
over as source (``python3 -s -S -c``), so it uses the standard library only, 3.8 or newer.

Values travel as JSON: None, booleans, whole numbers, texts and lists as themselves, other plain types under
a tag. Types are exact: an object of any other type, subclasses of plain ones among them, is no answer.
"""

# A solver's exceptions may be anything, and typing is not imported: every import is paid by every run.
# ruff: noqa: ANN001, ANN201, ANN202, BLE001, RET503, S102, S110, SIM105, SIM115

from __future__ import annotations

import json
import os
import sys

_TEXT = 200  # characters of an error that are told
_MOST = 64 * 1024  # bytes of a program's output that are kept


class NotPlain(Exception):
    """A value that is not made of plain types only."""


def encode(value):  # pyright: ignore
    """A plain value as JSON; raises :class:`NotPlain` for any other."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is str:
        return value
    if kind is float:
        return {"f": value.hex()}
    if kind is list:
        return [encode(item) for item in value]
    if kind is bytes:
        return {"b": value.hex()}
    for tag, known in (("t", tuple), ("s", set), ("z", frozenset)):
        if kind is known:
            return {tag: [encode(item) for item in value]}
    if kind is dict:
        return {"d": [[encode(key), encode(item)] for key, item in value.items()]}
    raise NotPlain("a value of type " + str(getattr(kind, "__name__", "?"))[:50])


def decode(data):  # pyright: ignore
    """Decode what :func:`encode` returned; raise :class:`NotPlain` for anything that it never returns."""
    kind = type(data)
    if data is None or kind is bool or kind is int or kind is str:
        return data
    if kind is list:
        return [decode(item) for item in data]
    if kind is dict and len(data) == 1:
        ((tag, inner),) = data.items()
        try:
            if tag == "f":
                return float.fromhex(inner)
            if tag == "b":
                return bytes.fromhex(inner)
            if tag == "d":
                return {decode(key): decode(item) for key, item in inner}
            if tag in "tsz" and type(inner) is list:
                return {"t": tuple, "s": set, "z": frozenset}[tag](decode(item) for item in inner)
        except (TypeError, ValueError, KeyError, OverflowError):
            pass
    raise NotPlain("no such encoding")


def told(error):  # pyright: ignore
    """An error in one line; never raises, whatever the solver's exception does."""
    try:
        return (type(error).__name__ + ": " + str(error))[:_TEXT].replace("\n", " ")
    except BaseException:
        return "an error that cannot be shown"


def main() -> None:
    """Read what to do from stdin, do it, end without any of the solver's exit handlers."""
    asked = json.loads(sys.stdin.buffer.read())
    sys.path[:] = [path for path in sys.path if path]
    if asked.get("processor"):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (asked["processor"], asked["processor"]))
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    if asked["mode"] == "script":
        script(asked)
    say = speaker(asked["nonce"], os.dup(1))
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        program = compile(asked["source"], "solution.py", "exec")
    except BaseException as error:
        say({"stage": "compile", "error": told(error)})
        os._exit(0)
    say({"stage": "compiled"})
    {"calls": calls, "stdin": feeds}[asked["mode"]](asked, program, say)
    os._exit(0)


def speaker(nonce, fd):  # pyright: ignore
    """A function that writes one line of JSON behind the nonce."""

    def say(data, write=os.write, dumps=json.dumps):  # pyright: ignore
        line = (nonce + dumps(data) + "\n").encode()
        while line:
            line = line[write(fd, line) :]

    return say


def script(asked):  # pyright: ignore
    """Run a program as it is; what it prints is what the sandbox returns."""
    try:
        exec(compile(asked["source"], "solution.py", "exec"), {"__name__": "__main__"})
        code = 0
    except BaseException as error:
        code = 0 if isinstance(error, SystemExit) and not error.code else 1
        if code:
            try:
                sys.stdout.flush()
            except BaseException:
                pass
            place = error.__traceback__
            while place is not None and place.tb_next is not None:
                place = place.tb_next
            line = error.lineno if isinstance(error, SyntaxError) else place.tb_lineno if place else 0
            os.write(2, ("line " + str(line) + ": " + told(error) + "\n").encode("utf-8", "replace"))
    try:
        sys.stdout.flush()
    except BaseException:
        pass
    os._exit(code)


def calls(asked, program, say):  # pyright: ignore
    """Call one function of the program with each input."""
    inputs = [decode(call) for call in asked["inputs"]]
    space = {"__name__": "solution"}
    try:
        exec(program, space)
        owner, _, name = asked["entry"].rpartition(".")  # Solution.count: a method, of a new object each time
        if (owner or name) not in space:
            return say({"stage": "import", "error": "there is no function " + (owner or name)})
        function = getattr(space[owner], name) if owner else space[name]
    except BaseException as error:
        return say({"stage": "import", "error": told(error)})
    say({"stage": "imported"})
    for index, arguments in enumerate(inputs):
        try:
            first = [space[owner]()] if owner else []  # pyright: ignore
            say({"index": index, "value": encode(function(*first, *arguments))})  # pyright: ignore
        except BaseException as error:
            say({"index": index, "error": told(error)})


def feeds(asked, program, say):  # pyright: ignore
    """Run the program once per input, each in a process of its own, with the input as its stdin."""
    say({"stage": "imported"})
    for index, text in enumerate(asked["inputs"]):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            answer(program, text, write)
        os.close(write)
        said = b""
        while True:
            part = os.read(read, 65536)
            if not part:
                break
            said = (said + part)[: _MOST + 1]
        os.close(read)
        status = os.waitpid(child, 0)[1]
        if status:
            say({"index": index, "error": "it ended with status " + str(status)})
        else:
            say({"index": index, "value": said.decode("utf-8", "replace")})


def answer(program, text, write):  # pyright: ignore
    """One run of a program in its own process; never returns."""
    code = 0
    try:
        path = "/tmp/stdin-" + str(os.getpid())
        with open(path, "w+", encoding="utf-8") as file:
            file.write(text)
        feed = os.open(path, os.O_RDONLY)
        os.unlink(path)
        os.dup2(feed, 0)
        os.dup2(write, 1)
        sys.stdin = open(0, encoding="utf-8")
        sys.stdout = open(1, "w", encoding="utf-8")
        exec(program, {"__name__": "__main__"})
    except SystemExit as error:
        code = 1 if error.code else 0
    except BaseException:
        code = 1
    try:
        sys.stdout.flush()
    except BaseException:
        code = 1
    os._exit(code)
