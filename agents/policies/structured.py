"""Answers as JSON of a schema, from policies whose server holds a model to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from turnwise.agents.core import History, Reply
from turnwise.tasks.core import Json


@runtime_checkable
class StructuredPolicy(Protocol):
    """A policy that can be asked for JSON. It is a preference: where its server refuses, the answer comes in words."""

    async def act_as(self, history: History, schema: Mapping[str, Json]) -> Reply:
        """The next message, as JSON of this schema where the server holds its model to one."""
        ...


def response_format(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The key of a request that holds a model to a schema, by the name that OpenAI, vLLM (from 0.6 on), llama.cpp and others know it.

    >>> response_format({"title": "Verdict", "type": "object"})["response_format"]["json_schema"]["name"]
    'Verdict'
    """
    name = str(schema.get("title", "answer"))
    form = {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema), "strict": True}}
    return {"response_format": form}
