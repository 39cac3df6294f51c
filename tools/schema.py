"""A tool from a JSON schema: what servers, data files and generators describe instead of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError, validators
from jsonschema.exceptions import ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from turnwise.tools.core import Json, Tool, ToolError, ToolSpec

_MOST = 5  # problems of one call that are told


def tool_of_schema(spec: ToolSpec, function: Callable[..., Any], *, own: bool = False) -> Tool:
    """A :class:`Tool` whose arguments are checked against ``spec.parameters``, without any conversion.

    References to other documents are never fetched. Raises ``ValueError`` for a schema that is none; one of our
    ``own`` making is not looked at, which takes milliseconds.

    >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    >>> tool_of_schema(ToolSpec("f", "", schema), lambda n: n).check({"n": 3})
    {'n': 3}
    """
    schema = dict(spec.parameters)
    kind = validators.validator_for(schema, default=Draft202012Validator)
    try:
        if not own:
            kind.check_schema(schema)
    except SchemaError as error:
        raise ValueError(
            f"{spec.name}: the schema of its arguments is broken: {error.message[:200]}"
        ) from None
    judge = kind(schema, registry=Registry())  # an empty registry: nothing is looked up elsewhere

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
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


def _problem(error: ValidationError) -> str:
    where = ".".join(str(part) for part in error.path) or "arguments"
    return f"{where}: {error.message}"[:200]
