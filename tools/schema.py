"""A tool from a JSON schema: what servers, data files and generators describe instead of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from turnwise.tools.core import Json, Tool, ToolError, ToolSpec

_MOST = 5  # problems of one call that are told
_NOTHING: Registry[Any] = Registry()  # of other documents: nothing is looked up elsewhere


def tool_of_schema(spec: ToolSpec, function: Callable[..., Any], *, own: bool = False) -> Tool:
    """A :class:`Tool` whose arguments are checked against ``spec.parameters``, without any conversion.

    References to other documents are never fetched. Raises ``ValueError`` for a schema that is none; one of our
    ``own`` making is not looked at, which takes milliseconds.

    >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    >>> tool_of_schema(ToolSpec("f", "", schema), lambda n: n).check({"n": 3})
    {'n': 3}
    """
    if not own:
        _require_schema(spec)
    judge: Validator | None = None  # many tools are offered and few called

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
        nonlocal judge
        judge = judge or _kind(spec)(dict(spec.parameters), registry=_NOTHING)
        given = dict(arguments)
        try:
            problems = sorted(judge.iter_errors(given), key=lambda error: [str(part) for part in error.path])
        except (Unresolvable, RecursionError) as error:
            raise ToolError(f"{spec.name}: the arguments cannot be checked: {str(error)[:200]}") from None
        if problems:
            told = "; ".join(map(_problem, problems[:_MOST]))
            raise ToolError(f"{spec.name}: {told}. Usage: {spec.name}({', '.join(spec.argument_names)}).")
        return given

    return Tool(spec, function, check)


def _kind(spec: ToolSpec) -> type[Validator]:
    return validators.validator_for(spec.parameters, default=Draft202012Validator)


def _require_schema(spec: ToolSpec) -> None:
    try:
        _kind(spec).check_schema(dict(spec.parameters))
    except SchemaError as error:
        raise ValueError(
            f"{spec.name}: the schema of its arguments is broken: {error.message[:200]}"
        ) from None


def _problem(error: ValidationError) -> str:
    where = ".".join(str(part) for part in error.path) or "arguments"
    return f"{where}: {error.message}"[:200]
