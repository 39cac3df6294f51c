"""A tool is a typed Python function that a policy may call.

The function's signature is the schema and its docstring the description; arguments are checked by
pydantic before the function sees them, and everything a model can get wrong raises
:class:`ToolError`, whose text is written for the model.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import pydantic

Json: TypeAlias = Any


class ToolError(Exception):
    """The call cannot be carried out; the text tells the model why and what to do instead."""


class Verbatim(NamedTuple):
    """Keys that a server wrote beside a message or a call, and may want back as they were: thoughts, signatures, sealed
    items.

    It is sent to the server that wrote it and to nobody else. No environment sees it and no chat template renders it; the log
    keeps it.

    Attributes:
        origin: the server and the model that wrote it.
        text: one JSON object, as text, so that nobody changes it.
    """

    origin: str
    text: str

    @staticmethod
    def of(origin: str, keys: Mapping[str, Json]) -> Verbatim | None:
        """The keys that can be told again as JSON; None where there is none.

        >>> Verbatim.of("m@host", {"signature": "x"})
        Verbatim(origin='m@host', text='{"signature":"x"}')
        """
        texts: list[str] = []
        for key, value in keys.items():
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                text = json.dumps(value, separators=(",", ":"), allow_nan=False)
                texts.append(f"{json.dumps(key)}:{text}")
        return Verbatim(origin, f"{{{','.join(texts)}}}") if texts else None

    @property
    def keys(self) -> dict[str, Json]:
        """The keys and their values."""
        return json.loads(self.text)

    def to_json(self) -> dict[str, Json]:
        return {"origin": self.origin, "keys": self.keys}

    @staticmethod
    def from_json(data: Mapping[str, Json] | None) -> Verbatim | None:
        return None if data is None else Verbatim.of(data["origin"], data["keys"])


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run tool ``name``; ``id`` links it to its result.

    ``written`` is the JSON text of the arguments as whoever calls wrote it, to the character; "" where there is none. ``extra``
    is what their server wrote beside it. Neither says anything that the call does not say: calls that differ in them are equal.
    """

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str = ""
    written: str = field(default="", compare=False, repr=False)
    extra: Verbatim | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Json]:
        """One JSON object, without the arguments as they were written."""
        data: dict[str, Json] = {"name": self.name, "arguments": dict(self.arguments), "id": self.id}
        return data | ({"extra": self.extra.to_json()} if self.extra else {})

    @staticmethod
    def from_json(data: Mapping[str, Json]) -> ToolCall:
        extra = Verbatim.from_json(data.get("extra"))
        return ToolCall(data["name"], data["arguments"], data["id"], extra=extra)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Description of a tool that a policy reads. ``parameters`` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Json]

    def to_json(self) -> dict[str, Json]:
        """The form chat templates and OpenAI-compatible servers expect."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    @property
    def argument_names(self) -> tuple[str, ...]:
        return tuple(self.parameters.get("properties", {}))


@dataclass(frozen=True)
class Tool:
    """A function with its checked signature. Build one with :func:`tool`, or of a JSON schema with
    :func:`turnwise.tools.schema.tool_of_schema`."""

    spec: ToolSpec
    function: Callable[..., Any]
    check: Callable[[Mapping[str, Json]], dict[str, Any]]

    def validate(self, call: ToolCall) -> dict[str, Any]:
        """The call's arguments, checked and converted.

        Raises:
            ToolError: an argument is missing, unknown or of the wrong type.
        """
        return self.check(call.arguments)


def tool(function: Callable[..., Any], *, skip: int = 0) -> Tool:
    """Make a :class:`Tool` of a typed function.

    >>> def search(query: str, limit: int = 5) -> str:
    ...     "Look words up."
    >>> made = tool(search)
    >>> made.spec.argument_names, made.validate(ToolCall("search", {"query": "red scarf", "limit": "2"}))
    (('query', 'limit'), {'query': 'red scarf', 'limit': 2})

    Args:
        function: every parameter has a type; the docstring tells the model what it does.
        skip: so many leading parameters are not the model's.

    Returns:
        The tool: its JSON schema, and the check of a call's arguments.

    Raises:
        TypeError: a parameter has no type, or one that no JSON schema can say.
    """
    hints = get_type_hints(function)
    fields: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[skip:]:
        if name not in hints:
            raise TypeError(f"tool {function.__name__!r}: parameter {name!r} needs a type annotation")
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {function.__name__!r}: parameter {name!r} cannot be given by its name")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        # By alias, because pydantic's models keep names such as "json" and "copy" for themselves.
        fields[f"argument_{len(fields)}"] = (hints[name], pydantic.Field(default, alias=name))
    model = pydantic.create_model(
        function.__name__,
        __config__=pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False),
        **fields,
    )
    try:
        schema = _without_titles(model.model_json_schema())
    except pydantic.errors.PydanticInvalidForJsonSchema as error:
        raise TypeError(
            _no_schema(function.__name__, model) or f"tool {function.__name__!r}: {error}"
        ) from None
    spec = ToolSpec(function.__name__, inspect.cleandoc(function.__doc__ or ""), schema)

    names = {info.alias or name: name for name, info in model.model_fields.items()}
    words = all(hints[name] is str for name in names)

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
        if words and arguments.keys() == names.keys() and all(map(_plain_text, arguments.values())):
            return {name: arguments[name] for name in names}  # text that is asked for and given
        try:
            checked = model.model_validate(dict(arguments))
        except pydantic.ValidationError as error:
            raise ToolError(_explain(spec, error)) from None
        return {alias: getattr(checked, name) for alias, name in names.items()}

    return Tool(spec, function, check)


def _plain_text(value: Json) -> bool:
    return type(value) is str and value.isascii()


def find_tool(tools: Iterable[Tool], name: str) -> Tool:
    """The tool of this name.

    Raises:
        ToolError: there is none; the text names the nearest one.
    """
    tools = tuple(tools)
    for tool in tools:
        if tool.spec.name == name:
            return tool
    by_name = {tool.spec.name: tool for tool in tools}
    near = difflib.get_close_matches(name, by_name, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ToolError(f"There is no tool {name[:80]!r}.{hint} Tools: {', '.join(by_name)}.")


def _no_schema(function: str, model: type[pydantic.BaseModel]) -> str:
    """Name the parameter whose type JSON does not know; empty where there is none."""
    for info in model.model_fields.values():
        kept: Any = info.annotation
        try:
            pydantic.TypeAdapter(kept, config=pydantic.ConfigDict(arbitrary_types_allowed=True)).json_schema()
        except pydantic.errors.PydanticInvalidForJsonSchema:
            kind = getattr(kept, "__name__", str(kept))
            return (
                f"tool {function!r}: parameter {info.alias!r} is an {kind!r}, which JSON cannot hold: "
                "use str, int, float, bool, list, dict or Literal[…]"
            )
    return ""


def _explain(spec: ToolSpec, error: pydantic.ValidationError) -> str:
    problems: list[str] = []
    for item in error.errors(include_url=False, include_input=False):
        where = ".".join(str(part) for part in item["loc"]) or "arguments"
        problems.append(f"{where}: {item['msg']}"[:200])
    usage = ", ".join(f"{name}" for name in spec.argument_names)
    return f"{spec.name}: {'; '.join(problems[:5])}. Usage: {spec.name}({usage})."


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key != "title"}
    if "properties" in kept:
        kept["properties"] = {
            name: {key: value for key, value in field.items() if key != "title"}
            for name, field in kept["properties"].items()
        }
    return kept
