"""A tool is what its function's signature says."""

from __future__ import annotations

import json
from typing import Any, Literal

import pydantic
import pytest

from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool, tool


class Box(pydantic.BaseModel):
    title: str
    size: int = 1


def order(
    item: str, number: int = 1, how: Literal["post", "air"] = "post", boxes: list[Box] | None = None
) -> str:
    """Order something.

    The price is told afterwards.
    """
    return f"{number} {item} by {how} in {boxes}"


def awkward(
    json: str, copy: bool, schema: str, model_config: int, title: str, _x: int = 0
) -> tuple[Any, ...]:
    """Parameters with names that pydantic keeps for itself."""
    return json, copy, schema, model_config, title, _x


def heat(degrees: float) -> float:
    """Heat."""
    return degrees


def call(made: Tool, **arguments: Any) -> Any:
    return made.function(**made.validate(ToolCall(made.spec.name, arguments)))


def test_the_schema_is_that_of_the_signature() -> None:
    spec = tool(order).spec
    assert spec.name == "order"
    assert spec.description == "Order something.\n\nThe price is told afterwards."
    assert spec.argument_names == ("item", "number", "how", "boxes")
    assert spec.parameters["required"] == ["item"]
    assert spec.parameters["properties"]["how"] == {
        "default": "post",
        "enum": ["post", "air"],
        "type": "string",
    }
    assert spec.parameters["additionalProperties"] is False
    json.dumps(spec.to_json())
    assert spec.to_json()["function"]["name"] == "order"


def test_the_schema_accepts_what_the_tool_accepts() -> None:
    made = tool(order)
    good = {"item": "tea", "number": 2, "boxes": [{"title": "a"}]}
    assert set(made.spec.parameters["required"]) <= set(good) <= set(made.spec.argument_names)
    assert call(made, **good) == "2 tea by post in [Box(title='a', size=1)]"


def test_defaults_and_conversions() -> None:
    assert call(tool(order), item="tea") == "1 tea by post in None"
    assert call(tool(order), item="tea", number="3") == "3 tea by post in None"


def test_any_parameter_name_will_do() -> None:
    made = tool(awkward)
    names = ("json", "copy", "schema", "model_config", "title", "_x")
    assert made.spec.argument_names == names
    given = {"json": "a", "copy": True, "schema": "b", "model_config": 1, "title": "t"}
    assert call(made, **given) == ("a", True, "b", 1, "t", 0)


def test_leading_parameters_can_be_skipped() -> None:
    def act(state: object, word: str) -> str:
        "Act."
        return word

    assert tool(act, skip=1).spec.argument_names == ("word",)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "item: Field required"),
        ({"item": "tea", "colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"item": 3}, "item: Input should be a valid string"),
        ({"item": "tea", "number": "many"}, "number: Input should be a valid integer"),
        ({"item": "tea", "how": "ship"}, "how: Input should be 'post' or 'air'"),
        ({"item": "tea", "boxes": [{"size": 2}]}, "boxes.0.title: Field required"),
        ({"item": "tea", "argument_1": 2}, "argument_1: Extra inputs are not permitted"),
    ],
)
def test_wrong_arguments_are_explained_to_the_model(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError) as caught:
        call(tool(order), **arguments)
    assert why in str(caught.value)
    assert str(caught.value).endswith("Usage: order(item, number, how, boxes).")


def test_an_explanation_stays_short() -> None:
    with pytest.raises(ToolError) as caught:
        call(tool(order), **{f"x{n}": "y" * 10_000 for n in range(1000)})
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("degrees", ["nan", "inf", float("nan"), float("-inf")])
def test_numbers_are_finite(degrees: object) -> None:
    with pytest.raises(ToolError, match="finite"):
        call(tool(heat), degrees=degrees)


def test_an_unknown_tool_is_answered_with_the_nearest() -> None:
    tools = [tool(order), tool(heat)]
    assert find_tool(tools, "heat").function is heat
    with pytest.raises(
        ToolError, match=r"There is no tool 'ordr'\. Did you mean 'order'\? Tools: order, heat\."
    ):
        find_tool(tools, "ordr")
    with pytest.raises(ToolError) as caught:
        find_tool(tools, "z" * 100_000)
    assert len(str(caught.value)) < 200


def test_what_cannot_be_a_tool_is_refused() -> None:
    def untyped(word) -> None: ...
    def starred(*words: str) -> None: ...
    def anything(**words: str) -> None: ...
    def placed(word: str, /) -> None: ...

    with pytest.raises(TypeError, match="'word' needs a type annotation"):
        tool(untyped)
    for function in (starred, anything, placed):
        with pytest.raises(TypeError, match="cannot be given by its name"):
            tool(function)
