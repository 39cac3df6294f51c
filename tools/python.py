"""Python for models: code runs in a sandbox, and what it prints is the result."""

from __future__ import annotations

from turnwise.tools.core import ToolError
from turnwise.tools.sandbox.core import Sandbox

_LONGEST = 100_000  # characters of a program
_MOST_OUTPUT = 16_000  # bytes that are returned, of each stream


class PythonTool:
    """An interpreter in a sandbox. Each program starts anew; files that it leaves stay.

    The sandbox is the caller's: which backend isolates it, what it may use and when it is closed.
    """

    def __init__(self, sandbox: Sandbox, *, seconds: float = 10.0) -> None:
        self.sandbox = sandbox
        self.seconds = seconds

    def python(self, code: str) -> str:
        """Run a Python program and see what it prints.

        Raises:
            ToolError: it failed; the text ends with Python's own message.
        """
        if len(code.encode("utf-8", "replace")) > _LONGEST or "\0" in code:
            raise ToolError(f"A program has at most {_LONGEST} bytes of text.")
        source = code.encode("utf-8", "replace").decode()  # half a surrogate pair becomes "?"
        done = self.sandbox.exec(["python3", "-I", "-c", source], timeout=self.seconds, output=_MOST_OUTPUT)
        said = "\n".join(part.rstrip() for part in (done.out, done.err) if part.strip())
        if done.timed_out:
            raise ToolError(f"{said}\nThe program took more than {self.seconds:g} s and was ended.".strip())
        if not done.ok:
            raise ToolError(f"{said}\nThe program ended with code {done.exit_code} ({done.ended}).".strip())
        return said or "(nothing was printed)"
