"""Actions that a person takes and a policy predicts: the tools, and how predictions are read and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, NamedTuple

from turnwise.envs.acting import read_action
from turnwise.envs.messages import Message
from turnwise.envs.shop.actions import clickables
from turnwise.envs.shop.state import ShopState
from turnwise.tasks.core import Json, canonical
from turnwise.tools.core import ToolCall, ToolError, find_tool, tool
from turnwise.tools.reading import load_json, value_end


class HumanAct(NamedTuple):
    """A person's act: ``name`` is what is clicked, or the field that ``text`` is typed into."""

    type: Literal["click", "type_and_submit", "terminate"]
    name: str = ""
    text: str = ""


def click(name: str) -> None:
    """The person clicks something on the page: a product, an option or a button."""


def type_and_submit(name: str, text: str) -> None:
    """The person types a text into the field called name, and submits it."""


def terminate() -> None:
    """The person leaves the shop."""


TOOLS = (tool(click), tool(type_and_submit), tool(terminate))
SEARCH = "search"
"""The name of the search field."""


def read_act(action: Message) -> HumanAct:
    """A prediction: the JSON of Shop-R1, or a call in any notation.

    Raises:
        ToolError: it is neither.
    """
    call = (None if action.tool_calls else _json_call(action.content)) or _other_call(action)
    found = find_tool(TOOLS, call.name)
    return HumanAct(found.spec.name, **found.validate(call))  # pyright: ignore[reportArgumentType]


def _other_call(action: Message) -> ToolCall:
    calls = read_action(action, TOOLS, 1).calls
    if not calls:
        example = json.dumps({"rationale": "…", "action": {"type": "click", "name": "…"}}, ensure_ascii=False)
        raise ToolError(f"No prediction found. Answer with JSON such as {example}.")
    return calls[0]


def write_act(act: HumanAct) -> str:
    """The JSON of an action.

    >>> write_act(HumanAct("click", "buy now"))
    '{"action":{"name":"buy now","type":"click"}}'
    """
    return canonical({"action": {name: part for name, part in act._asdict().items() if part}})


def possible(shop: ShopState) -> list[HumanAct]:
    """List the possible acts on the open page; of searches, the one for what is wanted."""
    goal = shop.world.goal
    wanted = HumanAct("type_and_submit", SEARCH, " ".join((*goal.attributes, *goal.nouns)))
    return [*(HumanAct("click", name) for name in clickables(shop)), wanted, HumanAct("terminate")]


def _json_call(text: str) -> ToolCall | None:
    """The call that Shop-R1's JSON means; None where the text is something else."""
    if '"action"' not in text or "<tool_call>" in text:
        return None
    begin = text.find("{")
    said = load_json(text[begin : value_end(text, begin)]) if begin >= 0 else None
    named: Mapping[str, Json] | None = said.get("action") if isinstance(said, dict) else None
    if not isinstance(named, dict) or not isinstance(named.get("type"), str):
        return None
    return ToolCall(named["type"], {name: value for name, value in named.items() if name != "type"})
