# ruff: noqa: ANN001, ANN201 (runs in sandboxes, alone)
"""Makes plain values of what equals them: subclasses of plain types, fractions (in the sandbox, before a probe's value is sent).

Tests compare with ``==``, so a repair that gives ``Fraction(300)`` for 300 is right. Whoever patches this forges his own answers.
"""

import numbers
import sys

_DEPTH = 50


def plain(value, depth=0):
    """The plain value that equals this one; what has none stays as it is."""
    if depth > _DEPTH or value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes.__getitem__(value, slice(None))
    if isinstance(value, dict):
        return {plain(key, depth + 1): plain(item, depth + 1) for key, item in dict.items(value)}
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return kind(plain(item, depth + 1) for item in value)
    return number(value)


def number(value):
    """A fraction or a decimal number as the whole or binary number that equals it, if one does."""
    decimal = getattr(sys.modules.get("decimal"), "Decimal", ())
    if isinstance(value, (numbers.Rational, decimal)):
        for kind in (int, float):
            try:
                made = kind(value)
                if made == value:
                    return made
            except (ValueError, OverflowError):
                pass
    return value
