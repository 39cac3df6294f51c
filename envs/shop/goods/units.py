"""Values with their units, as pages write them, and the units that people may use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class OtherUnit(NamedTuple):
    """Another unit for a quantity: one of it is ``size`` of the shop's; ``step`` is how exactly people say it."""

    unit: str
    size: float
    step: float


OTHER_UNITS: Mapping[str, OtherUnit] = {
    "g": OtherUnit("ounces", 28.3495, 1.0),
    "kg": OtherUnit("pounds", 0.453592, 1.0),
    "cm": OtherUnit("inches", 2.54, 0.5),
    "mm": OtherUnit("inches", 25.4, 0.125),
    "m": OtherUnit("feet", 0.3048, 1.0),
    "L": OtherUnit("US gallons", 3.78541, 0.25),
    "ml": OtherUnit("fluid ounces", 29.5735, 1.0),
}


def number(value: float) -> str:
    """A number as people write it.

    >>> number(1500.0), number(2.50)
    ('1500', '2.5')
    """
    return f"{value:.3f}".rstrip("0").rstrip(".")


def amount(value: float, unit: str) -> str:
    """A value with its unit, as the shop's pages write it.

    >>> amount(1250.0, "g"), amount(30.0, "L"), amount(1.0, "pieces")
    ('1.25 kg', '30 L', '1 piece')
    """
    if unit in ("g", "ml") and value >= 1000:
        return f"{number(value / 1000)} {'kg' if unit == 'g' else 'L'}"
    shown = unit.removesuffix("s") if value == 1 and len(unit) > 2 else unit
    return f"{number(value)} {shown}"
