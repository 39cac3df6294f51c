"""Our suites for TRL's GRPOTrainer, by its `environment_factory` (1.16): methods of a class are the tools.

TRL ends an episode at the first message without a call. So words are said by a tool ``say``, which is the only one
where a suite has none, and is the suite's own where it has one of that name. TRL carries out each call of a message by itself: several calls in a message are several turns here.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from turnwise.envs.offered.rows import OfferedRow, task_rows
from turnwise.envs.offered.session import OfferedEpisode, text_of
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, digest

_KINDS: Mapping[str, Any] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
_TAKEN = ("reset", "get_reward")
_SAY = "Say something: words to the user, or an answer."


class TrlTasks(NamedTuple):
    """Arguments of GRPOTrainer: rows for `Dataset.from_list`, and the value of `environment_factory`."""

    rows: list[dict[str, Json]]
    environment_factory: dict[str, Callable[[], Any]]


def trl_tasks(suite: str, n: int, *, split: Split = Split.TRAIN, start: int = 0) -> TrlTasks:
    """Offer tasks ``start … start + n − 1`` of a suite to TRL; the environment owns the reward, which is that of the whole episode.

    Tasks with the same tools share a class of environments, which each row names, as TRL has it for several environments.

    Raises:
        NotFoundError: there is no such suite.
        EnvError: several agents play in it, or TRL cannot take a tool's name.
    """
    rows: list[dict[str, Json]] = []
    made: dict[str, Callable[[], Any]] = {}
    for row in task_rows(suite, n, split=split, start=start):
        name = f"{suite}#{digest(row.tools)[:8]}" if row.tools else suite
        made.setdefault(name, _environment(name, row))
        rows.append({"prompt": row.prompt, "environment": name, "index": row.index, "split": row.split})
    return TrlTasks(rows, made)


def _environment(name: str, row: OfferedRow) -> Callable[[], Any]:
    """Return a class whose instances play the suite's tasks that have these tools."""

    def reset(self: Any, *, index: int, split: str = row.split, **_: Json) -> None:
        if hasattr(self, "_episode"):  # instances are used again
            self._episode.close()
        self._episode = OfferedEpisode(row.suite, index, Split(split))

    def get_reward(self: Any) -> float:
        return float(self._episode.reward)

    members: dict[str, Any] = {"reset": reset, "get_reward": get_reward, "__doc__": f"{name}, for TRL."}
    if not any(tool["function"]["name"] == "say" for tool in row.tools):
        members["say"] = _method("say", _SAY, {"text": {"type": "string"}}, ("text",), _spoken)
    for tool in row.tools:
        told = tool["function"]
        if told["name"] in _TAKEN or told["name"].startswith("_"):
            raise EnvError(
                f"{row.suite} has a tool {told['name']!r}, a name that TRL's environments keep for themselves.",
                "Rename the tool.",
            )
        schema = told["parameters"]
        members[told["name"]] = _method(
            told["name"],
            told["description"],
            schema.get("properties", {}),
            tuple(schema.get("required", ())),
            _called(told["name"]),
        )
    return types.new_class("TurnwiseEnvironment", exec_body=lambda space: space.update(members))


def _spoken(episode: OfferedEpisode, arguments: dict[str, Json]) -> str:
    return text_of(episode.say(str(arguments["text"])))


def _called(name: str) -> Callable[[OfferedEpisode, dict[str, Json]], str]:
    return lambda episode, arguments: text_of(episode.call(name, arguments))


def _method(
    name: str,
    about: str,
    properties: Mapping[str, Mapping[str, Json]],
    required: tuple[str, ...],
    act: Callable[[OfferedEpisode, dict[str, Json]], str],
) -> Callable[..., str]:
    """Return a method with the signature and the docstring out of which TRL makes the tool's schema again."""

    def method(self: Any, **arguments: Json) -> str:
        return act(self._episode, {key: value for key, value in arguments.items() if value is not _UNSAID})

    hints = {key: _hint(one) for key, one in properties.items()}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for key in properties:
        default = inspect.Parameter.empty if key in required else _UNSAID
        parameters.append(inspect.Parameter(key, keyword, default=default, annotation=hints[key]))
    method.__name__ = method.__qualname__ = name
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # pyright: ignore[reportFunctionMemberAccess]
    method.__annotations__ = {**hints, "return": str}
    lines = [
        f"    {key}: {_one_line(one.get('description', '')) or key.replace('_', ' ')}"
        for key, one in properties.items()
    ]
    method.__doc__ = "\n".join([_one_line(about), *(["", "Args:", *lines] if lines else [])])
    return method


_UNSAID = None
"""Default of an argument that may be left out: TRL's schemas have it as null."""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _hint(schema: Mapping[str, Json]) -> Any:
    """The annotation out of which transformers makes this schema.

    >>> _hint({"type": "array", "items": {"type": "integer"}}), _hint({"type": "array", "items": [{}]}), _hint({"enum": ["a", "b"]}), _hint({"anyOf": []})
    (list[int], list[typing.Any], typing.Literal['a', 'b'], typing.Any)
    """
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    kind = schema.get("type")
    if kind == "array":
        items: Json = schema.get("items")
        return list[_hint(items) if isinstance(items, dict) else Any]  # pyright: ignore[reportInvalidTypeArguments]
    return _KINDS.get(kind, Any) if isinstance(kind, str) else Any
