"""Descriptions of what a value must be, in plain words, from the errors of pydantic."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

_PLAIN = re.compile(r"[\w./-]+")
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "model_attributes": "a mapping",
    "dataclass": "a mapping",
    "finite": "a finite number",
}


def listed(text: str) -> str:
    """A command line, or any other text, as a list of its words in YAML.

    >>> listed("python3 x.py --name 'a b'")
    "[python3, x.py, --name, 'a b']"
    """
    try:
        words = shlex.split(text)
    except ValueError:  # an open quote
        words = text.split()
    return "[" + ", ".join(word if _PLAIN.fullmatch(word) else repr(word) for word in words) + "]"


def wanted_kind(detail: Mapping[str, Any]) -> str:
    """Say what pydantic asks for in one of its errors, in plain words; "something else" where that is hard to say.

    >>> wanted_kind({"type": "int_parsing"}), wanted_kind({"type": "literal_error", "ctx": {"expected": "'a' or 'b'"}})
    ('a whole number', "'a' or 'b'")
    """
    kind = str(detail["type"])
    if kind == "literal_error":
        return str(detail["ctx"]["expected"])
    if kind == "int_from_float":
        return _TYPES["int"]
    return _TYPES.get(
        kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_number"), "something else"
    )
