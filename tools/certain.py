"""Values that certainly fit a JSON schema, and schemas that certainly are well formed, told without a validator.

Most calls fit their plain schemas, and a validator takes a hundred microseconds to say so; to say that a schema is well formed takes it
3 milliseconds. What is not certain here is left to it (:mod:`turnwise.tools.validating`), which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from turnwise.tools.core import Json

Test: TypeAlias = Callable[[Any], bool]
_TOLD = {"type", "description", "title", "default"}


def certainly(schema: Json) -> Test | None:
    """A test that no value passes which does not fit the schema; None where the schema is not plain enough.

    >>> test = certainly({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]})
    >>> [test(value) for value in ({"n": 1}, {"n": 0}, {"n": True}, {})]
    [True, False, False, False]
    >>> certainly({"$ref": "#"}) is None
    True
    """
    if not isinstance(schema, dict):
        return None
    kind: Json = schema.get("type")  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    make = _KINDS.get(kind) if isinstance(kind, str) else None
    return make(schema) if make else None  # pyright: ignore[reportUnknownArgumentType]


def _plain(schema: Mapping[str, Json], *more: str) -> bool:
    return schema.keys() <= _TOLD.union(more)


def _string(schema: Mapping[str, Json]) -> Test | None:
    if not _plain(schema, "enum"):
        return None
    if "enum" not in schema:
        return lambda value: type(value) is str
    known = schema["enum"]
    if not isinstance(known, list):
        return None
    words = frozenset[str](one for one in known if isinstance(one, str))  # pyright: ignore[reportUnknownVariableType]
    return lambda value: type(value) is str and value in words


def _number(schema: Mapping[str, Json]) -> Test | None:
    low, high = schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))
    if not _plain(schema, "minimum", "maximum") or not {type(low), type(high)} <= {int, float}:
        return None
    kinds = (int,) if schema["type"] == "integer" else (int, float)
    return lambda value: type(value) in kinds and low <= value <= high


def _boolean(schema: Mapping[str, Json]) -> Test | None:
    return (lambda value: type(value) is bool) if _plain(schema) else None


def _array(schema: Mapping[str, Json]) -> Test | None:
    inner = certainly(schema.get("items"))
    least, unique = schema.get("minItems", 0), schema.get("uniqueItems", False)
    if not _plain(schema, "items", "minItems", "uniqueItems") or inner is None or type(least) is not int:
        return None
    if unique and schema["items"].get("type") != "string":
        return None

    def test(value: Any) -> bool:
        return (
            type(value) is list
            and len(value) >= least
            and all(map(inner, value))
            and (not unique or len(set(value)) == len(value))
        )

    return test


def _object(schema: Mapping[str, Json]) -> Test | None:
    fields, needed = schema.get("properties", {}), schema.get("required", [])
    if not _plain(schema, "properties", "required", "additionalProperties") or not isinstance(fields, dict):
        return None
    if not isinstance(needed, list) or not isinstance(schema.get("additionalProperties", True), bool):
        return None
    tests = {name: certainly(field) for name, field in fields.items()}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    sure: dict[Any, Test] = {name: one for name, one in tests.items() if one is not None}
    if len(sure) < len(tests):
        return None
    wanted = frozenset[Any](needed)  # pyright: ignore[reportUnknownArgumentType]

    def test(value: Any) -> bool:
        return (
            type(value) is dict
            and value.keys() >= wanted
            and all((one := sure.get(name)) is not None and one(given) for name, given in value.items())
        )

    return test


_KINDS: Mapping[str, Callable[[Mapping[str, Json]], Test | None]] = {
    "string": _string, "integer": _number, "number": _number, "boolean": _boolean, "array": _array, "object": _object,
}  # fmt: skip


def is_well_formed(schema: Json) -> bool:
    """Return true for a schema that certainly keeps the meta-schema of JSON schemas; of others it says nothing.

    >>> [is_well_formed({"type": kind}) for kind in ("integer", ["integer", "null"], "int", [3])]
    [True, True, False, False]
    """
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    for key, value in schema.items():  # pyright: ignore[reportUnknownVariableType]
        keeps = _KEYWORDS.get(key)  # pyright: ignore[reportUnknownArgumentType]
        if keeps is None or not keeps(value):
            return False
    return True


def _is_kind(value: Any) -> bool:
    return value in _NAMES if isinstance(value, str) else _are_texts(value) and set() < set(value) <= _NAMES


def _are_texts(value: Any) -> bool:
    return type(value) is list and all(type(one) is str for one in value) and len(set(value)) == len(value)


def _are_named(value: Any) -> bool:
    return type(value) is dict and all(map(is_well_formed, value.values()))


def _are_several(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(is_well_formed, value))


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


_NAMES = {"string", "number", "integer", "boolean", "array", "object", "null"}
_KEYWORDS: Mapping[str, Test] = {
    **dict.fromkeys(("title", "description", "format"), _is_text),
    **dict.fromkeys(("minimum", "maximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("anyOf", "oneOf", "allOf"), _are_several),
    **dict.fromkeys(("items", "additionalProperties"), is_well_formed),
    **dict.fromkeys(("properties", "$defs"), _are_named),
    **dict.fromkeys(("default", "const"), lambda _: True),
    "type": _is_kind, "required": _are_texts, "enum": lambda value: type(value) is list, "uniqueItems": lambda value: type(value) is bool,
}  # fmt: skip
