"""A tool from a JSON schema: what servers, data files and generators describe instead of Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from jsonschema.exceptions import ValidationError

from turnwise.tools.core import Json, Tool, ToolError, ToolSpec
from turnwise.tools.validating import Checker

_MOST = 5  # problems of one call that are reported


def tool_of_schema(spec: ToolSpec, function: Callable[..., Any], *, own: bool = False) -> Tool:
    """A :class:`Tool` whose arguments are checked against ``spec.parameters``, without any conversion.

    References to other documents are never fetched, and neither patterns nor the rest of a schema can make a check
    take long (see :mod:`turnwise.tools.validating`). What cannot be checked here is stated in the tool's description.
    Raises ``ValueError`` for a schema that is none; one of our ``own`` making is not looked at, which takes
    milliseconds.

    >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    >>> tool_of_schema(ToolSpec("f", "", schema), lambda n: n).check({"n": 3})
    {'n': 3}
    """
    try:
        checker = Checker(spec.parameters, own=own)
    except ValueError as error:
        raise ValueError(f"{spec.name}: the schema of its arguments {error}") from None

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
        given = dict(arguments)
        try:
            problems = checker.problems(given)
        except ToolError as error:
            raise ToolError(f"{spec.name}: {error}") from None
        if problems:
            told = "; ".join(map(_problem, problems[:_MOST]))
            raise ToolError(f"{spec.name}: {told}. Usage: {spec.name}({', '.join(spec.argument_names)}).")
        return given

    return Tool(_with_note(spec, checker.unchecked), function, check)


def _with_note(spec: ToolSpec, unchecked: tuple[str, ...]) -> ToolSpec:
    if not unchecked:
        return spec
    note = f"Not checked before the call: {', '.join(one[:80] for one in unchecked[:_MOST])}."
    return replace(spec, description=f"{spec.description}\n{note}".strip())


def _problem(error: ValidationError) -> str:
    where = ".".join(str(part) for part in error.path) or "arguments"
    return f"{where}: {error.message}"[:200]
