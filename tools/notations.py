"""Actions written as text, in whatever notation: one reader for every environment.

Understood are ``verb[argument]``, ``f(x=1)``, ``f({"x": 1})``, JSON objects (also OpenAI's form and LangChain's), every
dialect of :mod:`turnwise.tools.dialects`, each bare, in a code fence, between ``<action>`` tags, after a label such as
``Action:`` or beneath words; and ``Action: f`` with ``Action Input: …``. Thoughts are no action (:mod:`turnwise.tools.thoughts`).

An argument without a name is the first parameter's; where several are required, commas part them. Named ones stand as
``name=value``. Values without quotes are text, or JSON where the parameter wants something else.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from turnwise.tools.core import Json, Tool, ToolCall, ToolError, ToolSpec, find_tool
from turnwise.tools.dialects import pythonic
from turnwise.tools.dialects.core import nth
from turnwise.tools.dialects.registry import read_calls
from turnwise.tools.reading import UNSAYABLE, check_sayable, load_json, typed
from turnwise.tools.thoughts import without_thoughts

LONGEST = 100_000
"""Characters of a message that are looked at."""
_MOST = 64  # calls in a line
_ACTION_TAG = re.compile(r"<action>(.*?)(?:</action>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_LABEL = re.compile(
    r"[\W_]{0,9}(?:(?:my|next|final|the) )?(?:action|call|tool call|tool|function|command|act)(?: ?\d+)?[*_`]*"
    r"\s*:[*_`]*\s*",
    re.IGNORECASE,
)
_INPUT = re.compile(
    r"[\W_]{0,9}(?:action|tool|function)?[ _]?(?:input|args|arguments)[*_`]*\s*:\s*", re.IGNORECASE
)
_BULLET = re.compile(r"(?:[-*•>$`]+|\d+[.)](?=\s))\s*")
_HEAD = re.compile(r"([A-Za-z_][\w.-]*)([(\[{])")
_SPECIAL = re.compile("[\\[\\](){}<>=\"'`\\n\\r\x00\ud800-\udfff]")  # what may mean more than itself
_NEXT = re.compile(r"[\s,;&]*(?:and |then )*")
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_NAMES = ("name", "function", "tool", "action", "tool_name", "type")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "tool_input")


class WrittenCalls(NamedTuple):
    """The calls of a text, and how they are written: ``verb``, ``python``, ``json``, ``dialect``; "" if there are none."""

    calls: tuple[ToolCall, ...]
    notation: str = ""


def read_written(text: str, tools: Sequence[Tool]) -> WrittenCalls:
    """The calls of a text, none where it has none.

    >>> def search(query: str, page: int = 1) -> None: ...
    >>> from turnwise.tools.core import tool
    >>> [read_written(text, [tool(search)]).calls[0].arguments for text in (
    ...     "search[red scarf]", "I look.\\nAction: search[red scarf, page=2]", '```json\\n{"search": {"query": "red"}}\\n```')]
    [{'query': 'red scarf'}, {'query': 'red scarf', 'page': 2}, {'query': 'red'}]

    Raises:
        ToolError: a call cannot be read; the text says why.
    """
    if len(text) > LONGEST:
        raise ToolError(f"A message has at most {LONGEST} characters.")
    if plain := _plain(text.strip(), tools):
        return plain
    body = said_beside_thoughts(text)
    names = _Named(tools)
    fences = "\n".join(_FENCE.findall(body)) if "```" in body else ""
    for source in filter(None, (fences, body)):
        found = _whole(source.strip(), names) or _lines(source, names) or _json(source, names)
        if found:
            check_sayable([dict(call.arguments) for call in found.calls])
            return found
    if "<" in body or "[" in body or "```" in body:
        parsed = read_calls(body, [one.spec for one in tools])
        if parsed.calls:
            return WrittenCalls(parsed.calls, "dialect" if "<" in body or "TOOL_CALLS" in body else "python")
        if parsed.error:
            raise ToolError(parsed.error)
    return WrittenCalls(())


def _plain(text: str, tools: Sequence[Tool]) -> WrittenCalls | None:
    """``verb[some words]`` in one line, which most scripts and small models write: read here, because it is quicker."""
    head = _HEAD.match(text)
    if head is None or head[2] != "[" or text[-1] != "]":
        return None
    inner = text[head.end() : -1].strip()
    if not inner or _SPECIAL.search(inner):
        return None
    for one in tools:
        if one.spec.name == head[1]:
            names = positional_names(one.spec)
            if len(names) != 1 or one.spec.parameters["properties"][names[0]].get("type") != "string":
                return None
            return WrittenCalls((ToolCall(one.spec.name, {names[0]: inner}, nth(0)),), "verb")
    return None


def read_whole(text: str, tools: Sequence[Tool]) -> WrittenCalls:
    """The call that a text is as a whole, or the calls of JSON that it is; none where there is anything beside."""
    names = _Named(tools)
    return _whole(text.strip(), names) or _json(text, names) or WrittenCalls(())


def said_beside_thoughts(text: str) -> str:
    """A text without thoughts between tags; what stands in its last ``<action>`` tag, if there is one."""
    text = without_thoughts(text)
    tagged = _ACTION_TAG.findall(text) if "<" in text else ()
    return (tagged[-1] if tagged else text).strip()


def how_to_write(tools: Sequence[Tool]) -> str:
    """Explain how calls of these tools can be written, for whom it was not clear.

    >>> def wait() -> None: ...
    >>> from turnwise.tools.core import tool
    >>> how_to_write([tool(wait)])
    'No action found. Write one of: wait[].'
    """
    usage = [f"{one.spec.name}[{', '.join(positional_names(one.spec))}]" for one in tools]
    return f"No action found. Write one of: {', '.join(usage)}."


def explain(text: str, tools: Sequence[Tool]) -> str:
    """Why no action was found in a text."""
    last = said_beside_thoughts(text).rpartition("\n")[2]
    head = _HEAD.match(_unlabelled(last)[0])
    if head and not UNSAYABLE.search(last) and last.rstrip().endswith(_CLOSES[head[2]]):
        try:
            find_tool(tools, head[1])
        except ToolError as error:
            return str(error)
    return how_to_write(tools)


class _Named:
    """Tools by name; by a name in other letters' case where that is one tool's alone."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.by_name = {one.spec.name: one for one in tools}
        self.loose = {one.spec.name.lower(): one for one in tools}

    def find(self, name: str) -> Tool | None:
        return self.by_name.get(name) or self.loose.get(name.lower())


def _whole(source: str, names: _Named) -> WrittenCalls | None:
    """A text that is one call, of several lines perhaps."""
    head = _HEAD.match(source)
    found = names.find(head[1]) if head else None
    if head is None or found is None or not source.endswith(_CLOSES[head[2]]):
        return None
    if "\n" in source and any(_heads(line, names) for line in source.split("\n")[1:]):
        return None
    calls = _on_line(source, names)
    return WrittenCalls(calls, _notation(head[2])) if calls else None


def _notation(bracket: str) -> str:
    return "python" if bracket == "(" else "verb"


def _heads(line: str, names: _Named) -> bool:
    head = _HEAD.match(_unlabelled(line)[0])
    return head is not None and names.find(head[1]) is not None


def _lines(source: str, names: _Named) -> WrittenCalls | None:
    """Every line that is a call; a name without brackets is one after a label, or where it needs no argument."""
    calls: list[ToolCall] = []
    notation = ""
    lines = [line for line in source.split("\n") if line.strip()]
    for place, line in enumerate(lines):
        said, labelled = _unlabelled(line)
        made = _on_line(said, names)
        if made:
            notation = notation or _notation(
                said[len(made[0].name)] if len(said) > len(made[0].name) else "["
            )
        elif labelled or place == len(lines) - 1:
            after = _INPUT.match(lines[place + 1]) if labelled and place + 1 < len(lines) else None
            given = "\n".join([lines[place + 1][after.end() :], *lines[place + 2 :]]) if after else None
            made = _bare(said, given, labelled, names)
            notation = notation or "verb"
        calls += made
    if not calls:
        return None
    return WrittenCalls(tuple(_numbered(calls)), notation)


def _numbered(calls: Sequence[ToolCall]) -> list[ToolCall]:
    return [ToolCall(call.name, call.arguments, nth(place)) for place, call in enumerate(calls)]


def _unlabelled(line: str) -> tuple[str, bool]:
    """A line without its label, bullets and backticks, and whether it had a label."""
    line = line.strip()
    label = _LABEL.match(line)
    if label:
        line = line[label.end() :]
    bullet = _BULLET.match(line)
    if bullet:
        line = line[bullet.end() :]
    return line.strip().strip("`").strip(), label is not None


def _on_line(line: str, names: _Named) -> tuple[ToolCall, ...]:
    """The calls that a line consists of; none where it holds anything else."""
    calls: list[ToolCall] = []
    rest = line.rstrip(" .;")
    while rest:
        if len(calls) > _MOST:
            raise ToolError("There are too many calls in one line.")
        head = _HEAD.match(rest)
        found = names.find(head[1]) if head else None
        if head is None or found is None:
            return ()
        end = _closing(rest, head.end() - 1)
        after = rest[end + 1 :]
        following = after[_NEXT.match(after).end() :] if after else ""  # pyright: ignore[reportOptionalMemberAccess]
        if following and not _heads(following, names):
            if not rest.endswith(_CLOSES[head[2]]):
                return ()
            end, following = len(rest) - 1, ""  # brackets within the argument do not match
        if end < 0 or rest[end] != _CLOSES[head[2]]:
            return ()
        calls.append(_call(found.spec, head[2], rest[head.end() : end]))
        rest = following
    return tuple(_numbered(calls))


def _closing(text: str, opening: int) -> int:
    """Find the place where the bracket that opens here is closed; -1 if nowhere."""
    opens, closes, depth = text[opening], _CLOSES[text[opening]], 0
    for place in range(opening, len(text)):
        depth += (text[place] == opens) - (text[place] == closes)
        if depth == 0:
            return place
    return -1


def _bare(said: str, given: str | None, labelled: bool, names: _Named) -> tuple[ToolCall, ...]:
    """``Action: f`` with its input, ``Action: f some words``, or the name of a tool that needs no argument."""
    name, _, rest = said.rstrip(" .").partition(" ")
    found = names.find(name)
    if found is None or (rest and not labelled):
        return ()
    spec = found.spec
    text = given if given is not None else rest
    if not text and spec.parameters.get("required"):
        return ()
    return (_call(spec, "[", text.strip()),)


def _call(spec: ToolSpec, bracket: str, inner: str) -> ToolCall:
    if bracket == "(" and not inner.lstrip().startswith("{"):
        parsed = pythonic.read(
            f"[f({inner})]", [ToolSpec("f", "", spec.parameters)]
        )  # names may be no Python
        if parsed.calls:
            return ToolCall(spec.name, parsed.calls[0].arguments)
    if bracket == "{":
        inner = f"{{{inner}}}"
    return ToolCall(spec.name, arguments_of(spec, inner.strip()))


def arguments_of(spec: ToolSpec, inner: str) -> dict[str, Json]:
    """The arguments that stand between a call's brackets.

    >>> spec = ToolSpec("swap", "", {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]})
    >>> arguments_of(spec, "1, 2") == arguments_of(spec, "b=2, a=1") == arguments_of(spec, '{"a": 1, "b": 2}')
    True
    """
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    if not inner:
        only = spec.parameters.get("required", ())
        plain = len(only) == 1 and properties[only[0]].get("type") == "string"
        return {only[0]: ""} if plain else {}
    if inner.startswith("{") and inner.endswith("}"):
        given = _object(inner)
        if given is not None and given.keys() <= properties.keys():
            return given
    if not properties:
        raise ToolError(f"{spec.name} takes no arguments.")
    first, named = _named_parts(inner, tuple(properties))
    arguments: dict[str, Json] = {key: _value(text, properties[key]) for key, text in named.items()}
    open_ = [name for name in positional_names(spec) if name not in arguments]
    if first and not open_:
        raise ToolError(f"{spec.name}: {first[:80]!r} is no argument; give {', '.join(properties)} by name.")
    parts = [first] if len(open_) <= 1 else _parted(first, open_, properties)
    positional = {
        name: _value(part, properties[name]) for name, part in zip(open_, parts, strict=False) if part
    }
    return {**positional, **arguments}


def positional_names(spec: ToolSpec) -> list[str]:
    """The parameters that values without names are for: the required ones, or the first."""
    required = [name for name in spec.argument_names if name in spec.parameters.get("required", ())]
    return required or list(spec.argument_names[:1])


def _parted(text: str, names: Sequence[str], properties: Mapping[str, Any]) -> list[str]:
    if "," in text:
        return [part.strip() for part in text.split(",", len(names) - 1)]
    numbers = all(properties[name].get("type") in ("integer", "number") for name in names)
    return text.split() if numbers else [text]


@functools.lru_cache(1024)
def _naming(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?:^|,\s*)({'|'.join(map(re.escape, names))})=(?!=)")


def _named_parts(inner: str, names: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Split off what stands before the first ``name=``, and the text of each name."""
    found = list(_naming(names).finditer(inner))
    if not found:
        return inner, {}
    ends = [*(one.start() for one in found[1:]), len(inner)]
    parts = {one[1]: inner[one.end() : end].strip().rstrip(",") for one, end in zip(found, ends, strict=True)}
    return inner[: found[0].start()].strip(), parts


def _value(text: str, schema: Mapping[str, Json]) -> Json:
    for quote in "\"'":
        if len(text) > 1 and text[0] == text[-1] == quote and quote not in text[1:-1]:
            text = text[1:-1]
            break
    if schema.get("type") == "array" and not text.startswith("["):
        return [part.strip() for part in re.split(r" and |;|,", text) if part.strip()]
    return typed(text, schema)


# --- JSON ------------------------------------------------------------------------------------------


def _json(source: str, names: _Named) -> WrittenCalls | None:
    """Calls as JSON objects: the whole text, or the lines that begin with a bracket."""
    if "{" not in source:
        return None
    text = source.strip()
    label = _LABEL.match(text)
    text = text[label.end() :] if label else text
    values = _values(text)
    if values is None:
        begin = text.find("\n{")
        values = _values(text[begin:].strip()) if begin >= 0 else None
    calls = [_json_call(value, names) for value in values or ()]
    if not calls or not all(calls):
        return None
    return WrittenCalls(tuple(_numbered([call for call in calls if call])), "json")


def _values(text: str) -> list[Json] | None:
    if not text.startswith(("{", "[")):
        return None
    try:
        value = load_json(text)
    except ToolError:
        try:  # an object a line
            return [load_json(_unlabelled(line)[0].rstrip(",")) for line in text.split("\n") if line.strip()]
        except ToolError:
            return None
    return cast("list[Json]", value) if isinstance(value, list) else [value]


def _object(text: str) -> dict[str, Json] | None:
    try:
        value = load_json(text)
    except ToolError:
        return None
    return cast("dict[str, Json]", value) if isinstance(value, dict) else None


def _naming_key(one: Mapping[str, Json], names: _Named) -> str | None:
    """The key whose value names the tool: one that there is, or else the first that looks like a name."""
    given = [key for key in _NAMES if isinstance(one.get(key), str)]
    return next((key for key in given if names.find(one[key])), given[0] if given else None)


def _json_call(item: Json, names: _Named) -> ToolCall | None:
    """A call of JSON. What names no tool is a call all the same if it has the form of one."""
    if not isinstance(item, dict):
        return None
    one = cast("dict[str, Json]", item)
    for wrapper in ("function", "tool_call", "action"):  # OpenAI's form, and others'
        inner = one.get(wrapper)
        if isinstance(inner, dict):
            one = cast("dict[str, Json]", inner)
    key = _naming_key(one, names)
    name = one[key] if key else None
    arguments = next((one[key] for key in _ARGUMENTS if key in one), None)
    if name is None and len(one) == 1:  # {"f": {…}}
        ((name, arguments),) = one.items()
        if names.find(name) is None:
            return None
    if name is None:
        return None
    found = names.find(name)
    if arguments is None:
        arguments = {other: value for other, value in one.items() if other != key}
    if isinstance(arguments, str):
        whole = _object(arguments or "{}")
        arguments = whole if whole is not None else arguments_of(found.spec, arguments) if found else None
    if not isinstance(arguments, dict):
        return None
    return ToolCall(found.spec.name if found else name, cast("dict[str, Json]", arguments))
