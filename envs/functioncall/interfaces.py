"""The interfaces (apis/*.yaml): tables of data, and functions that read and change them, as Python sees them.

A function ``does`` one thing to a table: ``find`` rows that fit, ``get`` one, ``add`` one, ``set`` fields of one,
``append`` to a list of one, or ``remove`` one. A parameter of kind ``id:TABLE`` takes the id of a row.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib.resources import files
from random import Random
from typing import Literal, NamedTuple, TypeAlias, get_args

from turnwise.envs.functioncall.vocabulary import form_of, schema_of
from turnwise.plain_yaml import read_yaml
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolError, ToolSpec
from turnwise.tools.schema import tool_of_schema

Case: TypeAlias = Literal["snake", "camel", "pascal"]
CASES: tuple[Case, ...] = get_args(Case)
ORDERS = 6  # in which the parameters of a function may stand
Verb: TypeAlias = Literal["find", "get", "add", "set", "append", "remove"]


class FunctionParameter(NamedTuple):
    """A parameter of a function. ``fields`` are those of an object; ``default`` is what leaving it out means."""

    name: str
    kind: str
    about: str
    required: bool
    default: Json = None
    clause: str = ""  # how a request tells an optional one
    fields: tuple[FunctionParameter, ...] = ()

    @property
    def leaves(self) -> tuple[FunctionParameter, ...]:
        """The parameter itself, or the fields of the object that it is."""
        return self.fields or (self,)


class DataFunction(NamedTuple):
    """A function of an interface."""

    api: str
    words: str  # its name in words
    about: str
    verb: Verb
    table: str
    parameters: tuple[FunctionParameter, ...]
    sets: Mapping[str, Json]  # what it sets by itself
    say: Sequence[str]  # ways to ask for it

    @property
    def target(self) -> str:
        """The parameter that takes the id of the row that it is about; "" where there is none."""
        if self.verb in ("find", "add"):
            return ""
        return next(one.name for one in self.parameters if one.kind == f"id:{self.table}")

    @property
    def writes(self) -> bool:
        return self.verb not in ("find", "get")


class DataTable(NamedTuple):
    """A table, and how one speaks of its rows."""

    api: str
    name: str
    prefix: str
    nouns: Sequence[Sequence[str]]  # one, several
    key: str  # the field by which a row is called, or ""
    fields: Mapping[str, str]  # field → kind
    told: Mapping[str, str]  # field that may be asked for → its noun
    filters: Mapping[str, Sequence[str]]  # field → ways to say that it has a value
    best: Mapping[
        str, Sequence[str]
    ]  # field → what stands before (or around) the noun for the most and the least
    hidden: frozenset[str]  # fields that only ``get`` tells
    called: str  # what one calls the field ``key``
    since: Mapping[str, str]  # field → the one that it is never earlier than


@functools.cache
def tables() -> Mapping[str, DataTable]:
    """All tables by name."""
    return {
        name: DataTable(
            api, name, one["prefix"], one["nouns"], one["name"], one["fields"], one["told"], one["filters"],
            one["best"], frozenset(one["hidden"]), one.get("called", ""), one.get("since", {}),
        )
        for api, data in _apis().items()
        for name, one in data["tables"].items()
    }  # fmt: skip


@functools.cache
def functions() -> Mapping[str, DataFunction]:
    """All functions by their names in words."""
    return {
        words: _function(api, words, one)
        for api, data in _apis().items()
        for words, one in data["functions"].items()
    }


@functools.cache
def apis() -> Mapping[str, Sequence[DataFunction]]:
    """The functions of each interface."""
    return {api: [one for one in functions().values() if one.api == api] for api in _apis()}


@functools.cache
def _apis() -> Mapping[str, Mapping[str, Json]]:
    folder = files("turnwise.envs.functioncall").joinpath("apis")
    found = {
        path.name.removesuffix(".yaml"): path for path in folder.iterdir() if path.name.endswith(".yaml")
    }
    return {name: read_yaml(found[name].read_text("utf-8")) for name in sorted(found)}


def _function(api: str, words: str, one: Mapping[str, Json]) -> DataFunction:
    verb, table = one["does"].split()
    parameters = [_parameter(name, field, required=True) for name, field in one.get("needs", {}).items()]
    parameters += [_parameter(name, field, required=False) for name, field in one.get("may", {}).items()]
    return DataFunction(
        api, words, one["about"], verb, table, tuple(parameters), one.get("sets", {}), one.get("say", ())
    )


def _parameter(name: str, field: Mapping[str, Json], *, required: bool) -> FunctionParameter:
    inner = tuple(_parameter(key, value, required=True) for key, value in field.get("fields", {}).items())
    kind = "object" if inner else field["kind"]
    return FunctionParameter(
        name, kind, field["about"], required, field.get("default"), field.get("clause", ""), inner
    )


# --- as the agent sees them ----------------------------------------------------------------------


@functools.cache
def written(words: str, case: Case) -> str:
    """A name in a case.

    >>> [written("move file_id", case) for case in CASES]
    ['move_file_id', 'moveFileId', 'MoveFileId']
    """
    first, *rest = words.replace("_", " ").split()
    if case == "snake":
        return "_".join((first, *rest))
    return (first.title() if case == "pascal" else first) + "".join(word.title() for word in rest)


@functools.cache
def as_tool(words: str, case: Case, order: int = 0) -> Tool:
    """A function as a tool, its names in a case; its parameters in one of the ``ORDERS``, 0 being the declared one."""
    one = functions()[words]
    declared = list(one.parameters)
    if order:
        Random(f"{words} {order}").shuffle(declared)
    parameters = _object(declared, case)
    return tool_of_schema(ToolSpec(written(words, case), one.about, parameters), _nothing, own=True)


@functools.cache
def by_written(case: Case) -> Mapping[str, DataFunction]:
    """The functions by the names that the agent writes."""
    return {written(words, case): one for words, one in functions().items()}


def to_ours(one: DataFunction, arguments: Mapping[str, Json], case: Case) -> dict[str, Json]:
    """Arguments under our names, in our order: without those that say what leaving them out means, numbers by
    value, lists as sets."""
    ours: dict[str, Json] = {}
    for parameter in one.parameters:
        name = written(parameter.name, case)
        if name not in arguments:
            continue
        value = arguments[name]
        if parameter.fields:
            value = {inner.name: _plain(value[written(inner.name, case)]) for inner in parameter.fields}
        value = _plain(value)
        same = value == parameter.default and type(value) is type(parameter.default)
        if parameter.required or not same:
            ours[parameter.name] = value
    return ours


def check_forms(one: DataFunction, arguments: Mapping[str, Json], case: Case) -> None:
    """Refuse values that are not written as their parameters are documented.

    Raises:
        ToolError: a date, a time or a folder is written in another way.
    """
    for parameter in one.parameters:
        if parameter.name not in arguments:
            continue
        given = arguments[parameter.name]
        for leaf in parameter.leaves:
            value = given[leaf.name] if parameter.fields else given
            told = form_of(leaf.kind, value)
            if told:
                raise ToolError(
                    f"400: {written(leaf.name, case)} is to be written as {told}, not as {value!r:.40}."
                )


def to_theirs(one: DataFunction, arguments: Mapping[str, Json], case: Case) -> dict[str, Json]:
    """Our arguments under the names that the agent writes."""
    known = {p.name: p for p in one.parameters}
    return {
        written(name, case): {written(key, case): inner for key, inner in value.items()}
        if known[name].fields
        else value
        for name, value in arguments.items()
    }


def _plain(value: Json) -> Json:
    if isinstance(value, list):
        return sorted({" ".join(str(item).split()) for item in value})
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return " ".join(value.split()) if isinstance(value, str) else value


def _object(parameters: Sequence[FunctionParameter], case: Case) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": {written(one.name, case): _property(one, case) for one in parameters},
        "required": [written(one.name, case) for one in parameters if one.required],
        "additionalProperties": False,
    }


def _property(one: FunctionParameter, case: Case) -> dict[str, Json]:
    made = _object(one.fields, case) if one.fields else schema_of(one.kind)
    made["description"] = one.about
    if one.default is not None:
        made["default"] = one.default
    return made


def _nothing(**_: Json) -> None:
    """Functions are carried out on the data (data.py)."""
