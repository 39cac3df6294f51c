"""Schemas and patterns of others: whatever they are, a check ends, and everything else goes on meanwhile."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from turnwise.tools.core import Json, ToolCall, ToolError, ToolSpec
from turnwise.tools.mcp_client import McpConnection, StdioServer
from turnwise.tools.patterns import linear_search
from turnwise.tools.schema import tool_of_schema

EVIL = "^(a+)+$"
LONG = "a" * 60 + "b"  # Python's engine would take 2^60 steps
DOUBLING: dict[str, Json] = {
    f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)
} | {"d40": {"type": "integer"}}


def properties(**fields: Json) -> dict[str, Json]:
    return {"type": "object", "properties": fields}


def nested(depth: int) -> Json:
    value: Json = {}
    for _ in range(depth):
        value = {"properties": {"a": value}}
    return value


def checked(schema: Json, arguments: Json) -> Any:
    return tool_of_schema(ToolSpec("f", "About f.", schema), print).validate(ToolCall("f", arguments))


@pytest.mark.parametrize(
    ("schema", "arguments", "why"),
    [
        (properties(x={"pattern": EVIL}), {"x": LONG}, "does not match"),
        ({"patternProperties": {EVIL: {}}, "additionalProperties": False}, {LONG: 1}, "not allowed"),
        ({"patternProperties": {"^a": {"type": "integer"}}}, {"ab": "x"}, "not of type 'integer'"),
        (properties(x={"propertyNames": {"pattern": EVIL}}), {"x": {LONG: 1}}, "does not match"),
        (properties(x={"pattern": "^\\u0041$"}), {"x": "B"}, "does not match"),
        (properties(x={"pattern": "^a$"}), {"x": "\ud800"}, "does not match"),
        ({"$defs": DOUBLING, "properties": {"x": {"$ref": "#/$defs/d0"}}}, {"x": 1}, "too much work"),
        (properties(x={"$ref": "#/properties/x"}), {"x": 1}, "cannot be checked"),
        (properties(x={"$ref": "https://example.org/x"}), {"x": 1}, "cannot be checked"),
        (properties(x={"items": {"enum": [*range(4000)]}}), {"x": [-1] * 15_000}, "too much work"),
        (properties(x={"uniqueItems": True}), {"x": [*[{"a": n} for n in range(9000)], {"a": 1.0}]}, "f: x: "),
        (properties(x={"uniqueItems": True}), {"x": [[{"a": 1, "b": 2}], [{"b": 2, "a": 1}]]}, "non-unique"),
        (properties(x={"multipleOf": 1e-300}), {"x": 10**4000}, "cannot be checked"),
        (properties(x={"multipleOf": 0.01}), {"x": float("inf")}, "cannot be checked"),
        (properties(), {"x": list(range(100_000))}, "too large"),
        (properties(), {"x": nested(100)}, "too large"),
    ],
)  # fmt: skip
def test_a_hostile_check_ends_with_a_reason(schema: Json, arguments: Json, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        checked(schema, arguments)


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (properties(x={"pattern": EVIL}), {"x": "aaa"}),
        (properties(x={"pattern": EVIL}), {"x": 5}),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}),
        (properties(x={"uniqueItems": True}), {"x": [1, True, "1", None, [1], {"a": 1}]}),
        (properties(x={"pattern": r"^\d{3}-\w+/$"}), {"x": "123-ab/"}),
    ],
)
def test_what_fits_is_let_through(schema: Json, arguments: Json) -> None:
    assert checked(schema, arguments) == arguments


@pytest.mark.parametrize(
    "schema", [nested(100), properties(**{f"p{n}": {} for n in range(6000)}), {"type": 5}]
)
def test_a_schema_that_is_none_or_too_large_is_refused(schema: Json) -> None:
    with pytest.raises(ValueError, match="f: the schema of its arguments is"):
        checked(schema, {})


def test_what_the_engine_cannot_express_is_told_and_the_rest_is_checked() -> None:
    schema = properties(x={"type": "string", "pattern": "(?=a)b"}, y={"type": "integer"})
    tool = tool_of_schema(ToolSpec("f", "About f.", schema), print)
    assert tool.spec.description == "About f.\nNot checked before the call: (?=a)b."
    assert tool.check({"x": "anything"}) == {"x": "anything"}
    with pytest.raises(ToolError, match="not of type 'integer'"):
        tool.check({"y": "one"})


def test_where_leaving_a_pattern_out_would_turn_the_answer_nothing_is_checked() -> None:
    tool = tool_of_schema(ToolSpec("f", "", properties(x={"not": {"pattern": "(?=a)b"}})), print)
    assert tool.spec.description == "Not checked before the call: anything."
    assert tool.check({"x": "anything"}) == {"x": "anything"}


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "a{1,5000}", "x" * 5000, "\ud800"])
def test_a_pattern_that_cannot_be_run_is_explained(pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern"):
        linear_search(pattern)


SERVER = """
from turnwise.tools.core import Tool, ToolSpec
from turnwise.tools.mcp_server import PlainToolbox, serve_stdio
schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
say = lambda name, schema: Tool(ToolSpec(name, "", schema), lambda x: x, dict)
"""


def server(names: str) -> StdioServer:
    return StdioServer((sys.executable, "-c", f"{SERVER}\nserve_stdio(PlainToolbox('evil', [{names}]))"))


@pytest.mark.slow
def test_a_servers_pattern_holds_nothing_up() -> None:
    pytest.importorskip("mcp")
    with McpConnection(server("say('f', schema)"), timeout=60) as connection:
        (tool,) = connection.tools()
        ticks: list[int] = []

        async def main() -> None:
            async def tick() -> None:
                while True:
                    ticks.append(1)
                    await asyncio.sleep(0)

            heart = asyncio.create_task(tick())
            with pytest.raises(ToolError, match="does not match"):
                await asyncio.to_thread(tool.validate, ToolCall("f", {"x": LONG}))
            heart.cancel()

        asyncio.run(main())
        assert ticks
        assert tool.function(x="aaa") == "aaa"
