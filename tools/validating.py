"""Checking against JSON schemas of others within bounds: a schema can be made so that a small value takes for ever.

Patterns run on :mod:`turnwise.tools.patterns`. A schema may be of some size and depth, a value too; and since
``$ref`` and ``allOf`` can double the work at every level, the work of one check is counted and bounded.
"""

from __future__ import annotations

import functools
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import Draft201909Validator, Draft202012Validator, FormatChecker, SchemaError, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from turnwise.tools.certain import Test, certainly, is_well_formed
from turnwise.tools.core import Json, ToolError
from turnwise.tools.patterns import Search, linear_search

_NOTHING: Registry[Any] = Registry()  # of other documents: nothing is looked up elsewhere
_NO_FORMATS = FormatChecker(formats=())  # they would run patterns on Python's engine
_MOST_NODES = 5_000  # of a schema
_MOST_VALUES = 20_000  # of one call's arguments
_TOO_DEEP = 64
_MOST_WORK = 200_000  # keywords of one check: a second
_MOST_ERRORS = 1_000  # that are sorted before the first are reported
_TURNING = ("not", "if", "oneOf", "contains")  # under which leaving a pattern out makes more values wrong

Keyword = Callable[[Any, Any, Any, Any], Any]


class Checker:
    """Checks values against one schema. ``unchecked`` tells what of it cannot be checked here.

    Args:
        schema: the schema; any draft that names itself, else 2020-12, or 2019-09 where ``items`` is a list, which 2020-12 has no more.
        own: it is of our making, and not looked at, which would take milliseconds.

    Raises:
        ValueError: it is no schema, or too large.
    """

    def __init__(self, schema: Mapping[str, Json], *, own: bool = False) -> None:
        self._schema = dict(schema)
        self.unchecked: tuple[str, ...] = ()
        self._skipped = False
        self._validator: Validator | None = None  # many tools are offered and few called
        if not own:
            self._look()

    @functools.cached_property
    def _certain(self) -> Test | None:
        return certainly(self._schema)

    def problems(self, value: Json) -> list[ValidationError]:
        """List the errors of a value, in the order of their places.

        Raises:
            ToolError: it cannot be checked: it is too large, or the schema asks for too much.
        """
        if _size(value, _MOST_VALUES) is None:
            raise ToolError(
                f"the arguments are too large: at most {_MOST_VALUES} values, {_TOO_DEEP} levels deep"
            )
        if self._skipped or (self._certain is not None and self._certain(value)):
            return []
        validator: Validator = self._validator or _bounded(_draft(self._schema))(
            self._schema, registry=_NOTHING
        )
        self._validator, _WORK.done = validator, 0
        try:
            found = itertools.islice(validator.iter_errors(value), _MOST_ERRORS)
            return sorted(found, key=lambda error: [str(part) for part in error.path])
        except (Unresolvable, RecursionError, ArithmeticError, _TooMuch) as error:
            raise ToolError(f"the arguments cannot be checked: {str(error)[:200]}") from None

    def _look(self) -> None:
        if _size(self._schema, _MOST_NODES) is None:
            raise ValueError(f"is too large: at most {_MOST_NODES} values, {_TOO_DEEP} levels deep")
        if not is_well_formed(self._schema):
            self._look_closely()
        keys = set(_keys(self._schema))
        failed = [pattern for pattern in _patterns(self._schema) if _search(pattern) is None]
        if not failed and {"patternProperties", "unevaluatedProperties"} <= keys:
            failed = ["patternProperties beside unevaluatedProperties"]
        self._skipped = bool(failed) and not keys.isdisjoint((*_TURNING, "unevaluatedProperties"))
        self.unchecked = ("anything",) if self._skipped else tuple(dict.fromkeys(failed))

    def _look_closely(self) -> None:
        try:
            _draft(self._schema).check_schema(self._schema, format_checker=_NO_FORMATS)
        except SchemaError as error:
            where = ".".join(str(part) for part in error.path)
            raise ValueError(f"is broken{where and f' at {where}'}: {error.message[:200]}") from None
        except RecursionError as error:
            raise ValueError(f"is broken: {error}") from None


class _TooMuch(Exception):
    """The work of a check is more than it may be."""


class _Work(threading.local):
    """Counts the work of the check that this thread does."""

    done = 0

    def add(self, amount: int) -> None:
        self.done += amount
        if self.done > _MOST_WORK:
            raise _TooMuch("its schema asks for too much work")


_WORK = _Work()


def _draft(schema: Mapping[str, Json]) -> Any:
    newest = Draft201909Validator if _lists_items(schema) else Draft202012Validator
    return validators.validator_for(schema, default=newest)


def _lists_items(schema: Json) -> bool:
    """True where a schema gives each place of an array its own schema as drafts before 2020-12 do; beside their successor it is a mistake."""
    if isinstance(schema, Mapping) and isinstance(schema.get("items"), list):
        return "prefixItems" not in schema
    return any(map(_lists_items, _inside(schema)))


@functools.cache
def _bounded(draft: Any) -> Any:
    """The validator of a draft with its work counted, patterns on the linear engine and no quadratic keyword."""
    keywords: dict[str, Keyword] = {**draft.VALIDATORS, **_OURS}
    if "additionalProperties" in draft.VALIDATORS:
        keywords["additionalProperties"] = functools.partial(
            _additional, draft.VALIDATORS["additionalProperties"]
        )
    counted = {
        name: functools.partial(_counted, keyword)
        for name, keyword in keywords.items()
        if name in draft.VALIDATORS
    }
    return validators.extend(draft, counted)


def _counted(
    keyword: Keyword, validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    listed = len(value) if isinstance(value, (list, dict)) else 0
    text = len(instance) // 1000 if isinstance(instance, str) else 0
    _WORK.add(1 + listed + text)
    yield from keyword(validator, value, instance, schema) or ()


def _pattern(validator: Any, pattern: str, instance: Any, _: object) -> Iterator[ValidationError]:
    search = _search(pattern)
    if search is not None and validator.is_type(instance, "string") and not search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: object
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, schema in patterns.items():
        search = _search(pattern)
        for key, value in instance.items():
            if search is not None and search(key):
                yield from validator.descend(value, schema, path=key, schema_path=pattern)


def _additional(
    plain: Keyword, validator: Any, wanted: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """The keyword with the schema's patterns on our engine: their keys are taken away before the plain one looks."""
    patterns = [_search(pattern) for pattern in schema.get("patternProperties", {})]
    if not patterns or not validator.is_type(instance, "object"):
        yield from plain(validator, wanted, instance, schema) or ()
        return
    rest = {
        key: value
        for key, value in instance.items()
        if not any(search is None or search(key) for search in patterns)
    }
    named = {key: value for key, value in schema.items() if key != "patternProperties"}
    yield from plain(validator, wanted, rest, named) or ()


def _unique(validator: Any, wanted: bool, instance: Any, _: object) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array"):
        seen: set[str] = set()
        for item in instance:
            key = json.dumps(_plain(item), sort_keys=True)
            if key in seen:
                yield ValidationError(f"{instance!r} has non-unique elements")
                return
            seen.add(key)


_OURS: Mapping[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique,
}


def _plain(value: Json) -> Json:
    """The value with 1.0 as 1, which JSON schemas do not tell apart."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _search(pattern: str) -> Search | None:
    """The pattern on the linear engine, or None where that cannot express it."""
    try:
        return linear_search(pattern)
    except ToolError:
        return None


def _size(value: Json, most: int) -> int | None:
    """Count the values that there are in one; None where they are more than ``most``, or nested too deeply."""
    count, level, depth = 0, [value], 0
    while level:
        count += len(level)
        if count > most or depth > _TOO_DEEP:
            return None
        level = [item for one in level for item in _inside(one)]
        depth += 1
    return count


def _inside(value: Json) -> Any:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()


def _keys(schema: Json) -> Iterator[str]:
    if isinstance(schema, Mapping):
        yield from schema
    for item in _inside(schema):
        yield from _keys(item)


def _patterns(schema: Json) -> Iterator[str]:
    """All patterns of a schema; what only looks like one, as a property of this name, is no text or does no harm."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        if isinstance(named := schema.get("patternProperties"), Mapping):
            yield from named
    for item in _inside(schema):
        yield from _patterns(item)
