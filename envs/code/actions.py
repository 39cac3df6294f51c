"""The agent's actions: test a draft, run code, submit; as tool calls or in plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.acting import call_of, check_number, read_action
from turnwise.envs.code.problem import CodeProblem, function_name
from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall, ToolError, find_tool, tool
from turnwise.tools.notations import read_whole

LONGEST = 20_000  # characters of a program
_BLOCK = re.compile(r"```[a-zA-Z0-9_+-]*[ \t]*\n(.*?)(?:\n[ \t]*)?```", re.DOTALL)
_VERB = re.compile(r"[ \t]*+(test|run|submit)\b[ \t]*+(.*)", re.IGNORECASE)


def test(code: str) -> None:
    """Keep this program as your draft and see which of the visible tests it passes."""


def run(code: str) -> None:
    """Run this code behind your draft and see what it prints. Nothing is kept."""


def submit(code: str = "") -> None:
    """Hand in this program, or your draft. Ends the task: hidden tests decide."""


TOOLS = (tool(test), tool(run), tool(submit))


class CodeAct(NamedTuple):
    """One of the three, and its program (empty: the draft)."""

    name: str
    code: str


def read(action: Message) -> CodeAct:
    """What a message asks for: a fenced block with a verb, ``verb code .`` in its last line, or a call in any notation.

    >>> read(Message("assistant", "submit sum ( xs ) ."))
    CodeAct(name='submit', code='sum ( xs )')
    >>> read(Message("assistant", "Better:\\n```python\\ndef f():\\n    pass\\n```\\nsubmit"))
    CodeAct(name='submit', code='def f():\\n    pass')

    Raises:
        ToolError: it asks for nothing, for several things, or its program is no text.
    """
    call = call_of(action, TOOLS) if action.tool_calls else _from_text(action.content)
    code = find_tool(TOOLS, call.name).validate(call)["code"]
    if len(code) > LONGEST:
        raise ToolError(f"A program has at most {LONGEST} characters.")
    if "\0" in code or not _is_text(code):
        raise ToolError("A program is valid Unicode text without NUL.")
    if call.name != "submit" and not code.strip():
        raise ToolError(f"{call.name} needs code.")
    return CodeAct(call.name, code)


def _from_text(text: str) -> ToolCall:
    if len(text) > 2 * LONGEST:
        raise ToolError(f"A message has at most {2 * LONGEST} characters.")
    blocks: list[str] = _BLOCK.findall(text)
    if blocks and (called := read_whole(blocks[-1], TOOLS).calls):
        check_number(len(called), 1)
        return called[0]
    rest = _BLOCK.sub("\n", text) if blocks else text
    lines = [line for line in rest.splitlines() if line.strip()]
    if blocks:
        verbs = [match[1].lower() for line in lines if (match := _VERB.match(line))]
        return ToolCall(verbs[-1] if verbs else "test", {"code": blocks[-1]})
    match = _VERB.fullmatch(lines[-1]) if lines else None
    if match and (match.end(1) < match.start(2) or not match[2]):  # with a bracket at once it is a call
        rest = match[2].rstrip(" \t")
        said = "" if rest == "." else rest.removesuffix(" .").strip()
        return ToolCall(match[1].lower(), {"code": said})
    calls = read_action(Message("assistant", text), TOOLS, 1).calls
    if not calls:
        raise ToolError("No action found. Put your program in a ```python block, or write: submit")
    return calls[0]


def _is_text(code: str) -> bool:
    try:
        code.encode()
    except UnicodeEncodeError:
        return False
    return True


def write(problem: CodeProblem, verb: str, code: str = "") -> str:
    """An action in words: one line in the small language, a block of Python else."""
    if problem.mode == "expression":
        return f"{verb} {code} ." if code else f"{verb} ."
    return f"```python\n{code}\n```\n{verb}" if code else verb


def possible(problem: CodeProblem) -> Sequence[str]:
    """Programs that do too little, for baselines: what an agent without understanding may try."""
    if problem.mode == "expression":
        tries = ("xs", "sum ( xs )", "max ( xs )", "sorted ( xs )", "len ( xs )")
    elif problem.mode == "stdin":
        tries = ("print(input())", "print(0)", "import sys\nprint(sys.stdin.read())")
    else:
        values = ("a[0]", "0", "''", "[]", "sorted(a[0])", "len(a[0])", "None")
        tries = tuple(f"def {function_name(problem)}(*a):\n    return {value}" for value in values)
    verbs = ("test", "submit")
    return tuple(write(problem, verb, code) for code in tries for verb in verbs)
