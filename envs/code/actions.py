"""The agent's actions: test a draft, run code, submit; as tool calls or in plain text."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.acting import call_of, check_number
from turnwise.envs.code.problem import CodeProblem, function_name
from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall, ToolError, find_tool, tool
from turnwise.tools.notations import read_whole, read_written, said_beside_thoughts
from turnwise.tools.thoughts import begins_with_a_thought

LONGEST = 20_000  # characters of a program
_BLOCK = re.compile(r"```[a-zA-Z0-9_+-]*[ \t]*\n(.*?)(?:\n[ \t]*)?```", re.DOTALL)
_FENCED = re.compile(r"```[a-zA-Z0-9_+-]*[ \t]*\n(.*?)\s*(?:```\s*)?", re.DOTALL)
_INLINE = re.compile(r"(`{1,3})([^`\n]+)\1")
_VERB = re.compile(r"[ \t]*+(test|run|submit)\b[ \t]*+(.*)", re.IGNORECASE)
_THING = (
    r"(?:it|this|that|(?:the|my|this|that) (?:\w+ )?(?:draft|program|code|solution|function|version|block))"
)
_COMMAND = re.compile(
    r"[\s\W_]{0,9}(?:\d+[.)]\s+)?(?:(?:(?:my|next|final|the) )?(?:action|call|tool call|tool|function|command|act)(?: ?\d+)?[*_`]*\s*:[\s\W_]*)?"
    rf"(?:(?:please|now|then|and|so|finally|ok|okay)[\s,]+){{0,3}}[*_`]*(test|run|submit)[*_`]*(?: {_THING})?"
    r"(?:[\s,]+(?:now|please|again|then|thanks|thank you))*(?:\(\s*\)|\[\s*\]|[^\w?()\[\]{}]|_)*",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(r"\W{0,9}(test|run)\b[^.?!]{0,80}:[*_`]*\s*", re.IGNORECASE)
_OPENS = re.compile(r"[\[({]\W*(?:code\W*)?$", re.IGNORECASE)
_INPUT = re.compile(r"^\W{0,9}(?:action|tool|function)[ _]?input\W*:", re.IGNORECASE | re.MULTILINE)
_TAGGED = re.compile(r"<(?:\|?tool|function|invoke|action)", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_WORD = re.compile(r"[^\W\d_]+")
_PAIR = re.compile(r"([^\W\d_]+)\s+(?=([^\W\d_]+))")
_SIGNS = re.compile(r"[()\[\]{}=+*/<>%\d]")
_VALUES = frozenset({"xs", "x", "None", "True", "False"})


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
    """Read the request of a message.

    It is a fenced block with a verb, ``verb code .`` in its last line, or a call in any notation.

    >>> read(Message("assistant", "submit sum ( xs ) ."))
    CodeAct(name='submit', code='sum ( xs )')
    >>> read(Message("assistant", "Better:\\n```python\\ndef f():\\n    pass\\n```\\nsubmit"))
    CodeAct(name='submit', code='def f():\\n    pass')

    Raises:
        ToolError: it asks for nothing, for several things, or its program is no text.
    """
    own = action.tool_calls or action.malformed
    call = call_of(action, TOOLS) if own else _from_text(action.content)
    code = _unfenced(find_tool(TOOLS, call.name).validate(call)["code"])
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
    if begins_with_a_thought(text):
        text = said_beside_thoughts(text)
    blocks: list[str] = _BLOCK.findall(text)
    found = _beside_blocks(text, blocks) if blocks else _in_lines(text)
    if not found:
        raise ToolError("No action found. Put your program in a ```python block, or write: submit")
    check_number(len(found), 1)
    return found[0]


def _beside_blocks(text: str, blocks: Sequence[str]) -> list[ToolCall]:
    """The actions of a message with blocks: calls in blocks or beside them, and commands, which mean the last program."""
    programs: list[str] = []
    found: list[ToolCall] = []
    for block in blocks:
        called = read_whole(block, TOOLS).calls
        command = _command(block) if "\n" not in block.strip() else ""
        if command:
            found.append(ToolCall(command, {}))
        elif called:
            found += called
        else:
            programs.append(block)
    others: list[str] = []
    for line in _lines(_BLOCK.sub("\n", text)):
        if command := _command(_OPENS.sub("", line)) or _introduced(line):
            found.append(ToolCall(command, {}))
        else:
            others.append(line)
    rest = "\n".join(others)
    found += read_written(rest, TOOLS).calls if _TAGGED.search(rest) else _calls_of_lines(others)
    if not programs:
        return found
    meant = [
        call if call.arguments.get("code") else ToolCall(call.name, {"code": programs[-1]}) for call in found
    ]
    return meant or [ToolCall("test", {"code": programs[-1]})]


def _in_lines(text: str) -> list[ToolCall]:
    """The actions of a message without blocks: calls in any notation, and lines that are ``verb code .`` or a command."""
    lines = _lines(text)
    one = _VERB.fullmatch(text) if len(lines) == 1 else None
    if one is None or one.end(1) == one.start(2):  # what is written most is read quickest
        text = said_beside_thoughts(text)
        if whole := read_whole(text, TOOLS).calls:
            return [*whole]
        if _INPUT.search(text):
            return [*read_written(text, TOOLS).calls]
        lines = _lines(text)
    found: list[ToolCall] = []
    others: list[str] = []
    for place, line in enumerate(lines):
        match = _VERB.fullmatch(line)
        last = place == len(lines) - 1
        command = _command(line)
        if command == "submit" or (command and last):
            found.append(ToolCall(command, {"code": ""}))
        elif match and match.end(1) < match.start(2) and (last or match[2].rstrip().endswith(" .")):
            said = match[2].rstrip(" \t").removesuffix(" .").strip()
            if match[1].lower() != "submit" or not _is_prose(said):
                found.append(ToolCall(match[1].lower(), {"code": said}))
        else:
            others.append(line)
    return [*found, *read_written("\n".join(others), TOOLS).calls] if others else found


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _calls_of_lines(lines: Sequence[str]) -> list[ToolCall]:
    return [call for line in lines for call in read_whole(line, TOOLS).calls]


def _command(line: str) -> str:
    """The verb of a line that is nothing but a command; empty for other lines.

    >>> [_command(line) for line in ("**submit**", "Please submit it.", "Submit comes later.", "submit?")]
    ['submit', 'submit', '', '']
    """
    match = _COMMAND.fullmatch(line) if len(line) < 100 else None
    return match[1].lower() if match else ""


def _introduced(line: str) -> str:
    """The verb of a line that introduces a block to be tested or run: "Run this experiment:"."""
    match = _INTRODUCES.fullmatch(line) if len(line) < 100 else None
    return match[1].lower() if match else ""


def _unfenced(code: str) -> str:
    """A program without the fences that it is wrapped in.

    >>> _unfenced("```python\\nx = 1\\n```"), _unfenced("`sum ( xs )`"), _unfenced("x = '```'")
    ('x = 1', 'sum ( xs )', "x = '```'")
    """
    bare = code.strip()
    if not bare.startswith("`"):
        return code
    if inline := _INLINE.fullmatch(bare):
        return inline[2].strip()
    fenced = _FENCED.fullmatch(bare)
    return fenced[1] if fenced else code


def _is_prose(said: str) -> bool:
    """Say whether words behind "submit" are about submitting and no program, however wrong.

    >>> [_is_prose(said) for said in ("comes later.", "will follow (once all pass).", "sum ( xs", "xs", "max xs")]
    [True, True, False, False, False]
    """
    bare = _QUOTED.sub("''", said)
    words = {*_WORD.findall(bare)}
    if words and not words & _VALUES and not _SIGNS.search(bare):
        return True
    return any(
        not (_is_known(first) and _is_known(second))
        for first, second in _PAIR.findall(bare)
        if not (keyword.iskeyword(first) or keyword.iskeyword(second))
    )


def _is_known(word: str) -> bool:
    return len(word) < 3 or word in _VALUES or hasattr(builtins, word)


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
