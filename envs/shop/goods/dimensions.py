"""How people speak of weights, sizes, times and other quantities, and the units that they may use instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.shop.goods.core import Dimension
from turnwise.envs.wordings import ways

DIMENSIONS: Mapping[str, Dimension] = {
    "weight": Dimension(
        "lighter", "lightest", "heavier", "heaviest",
        ways("weighs no more than {} | is not heavier than {} | stays at or below {} on the scales | adds {} at most to what I carry"),
        ways("weighs at least {} | is no lighter than {} | brings {} or more to the scales | has a good {} of heft or more"),
    ),
    "volume": Dimension(
        "smaller inside", "smallest inside", "roomier", "roomiest",
        ways("holds no more than {} | is not roomier than {} | takes {} at the very most | does not swallow more than {}"),
        ways("holds at least {} | takes {} or more | has room for {} at a minimum | swallows {} without trouble"),
    ),
    "width": Dimension(
        "narrower", "narrowest", "wider", "widest",
        ways("is no wider than {} | goes into a gap of {} | measures {} across at the most | can stand in a space that is {} broad"),
        ways("is at least {} wide | measures {} or more across | covers {} from side to side | is not narrower than {}"),
    ),
    "height": Dimension(
        "lower", "lowest", "taller", "tallest",
        ways("is no taller than {} | fits under a shelf at {} | reaches up {} at the most | goes below a ledge {} off the ground"),
        ways("is at least {} tall | stands {} or higher | reaches {} from the ground | is not lower than {}"),
    ),
    "length": Dimension(
        "shorter", "shortest", "longer", "longest",
        ways("is no longer than {} | measures {} or less from end to end | does not stick out beyond {} | lies within {} of length"),
        ways("is at least {} long | measures {} or more from end to end | reaches {} at full stretch | is not shorter than {}"),
    ),
    "power": Dimension(
        "weaker", "weakest", "stronger", "strongest",
        ways("draws no more than {} | stays within {} of power | needs {} at the most | can live on {}"),
        ways("has at least {} of power | delivers {} or more | works with {} at a minimum | puts out not less than {}"),
    ),
    "runtime": Dimension(
        "shorter-lived", "shortest-lived", "longer-lasting", "longest-lasting",
        ways("runs for {} or less | stops after {} at the latest | lasts no more than {} | is done within {}"),
        ways("runs for at least {} on a charge | keeps going for {} or more | lasts {} before it must be plugged in | gets through {} unplugged"),
    ),
    "noise": Dimension(
        "quieter", "quietest", "louder", "loudest",
        ways("makes no more than {} of noise | stays below or at {} | is not louder than {} | keeps its voice at {} or under"),
        ways("reaches at least {} | gets as loud as {} or louder | manages {} at a minimum | is not quieter than {}"),
    ),
    "light": Dimension(
        "dimmer", "dimmest", "brighter", "brightest",
        ways("gives no more than {} | is not brighter than {} | keeps to {} or below | does not dazzle with over {}"),
        ways("gives at least {} | shines with {} or more | is good for {} at full beam | throws not less than {}"),
    ),
    "cold": Dimension(
        "less hot", "coolest", "hotter", "hottest",
        ways("gets no hotter than {} | stays at {} or below | stops at {} | never goes past {}"),
        ways("reaches at least {} | gets to {} or more | can be brought up to {} | manages {} when it must"),
    ),
    "count": Dimension(
        "lower", "smallest", "higher", "largest",
        ways("has no more than {} | comes with {} or fewer | stops at {} | does not go beyond {}"),
        ways("has at least {} | comes with {} or more | counts {} at a minimum | offers not fewer than {}"),
        named=True,
    ),
    "torque": Dimension(
        "lower", "lowest", "higher", "highest",
        ways("turns with no more than {} | is limited to {} of torque | stays gentle, {} at the most | does not twist with over {}"),
        ways("turns with at least {} | delivers {} of torque or more | twists with {} at a minimum | drives screws with not less than {}"),
        named=True,
    ),
    "pressure": Dimension(
        "lower", "lowest", "higher", "highest",
        ways("is good for no more than {} | goes up to {} and no further | ends at {} on the gauge | is not made for over {}"),
        ways("is good for at least {} | manages a pressure of {} or more | can take {} on the gauge | copes with not less than {}"),
        named=True,
    ),
    "keeping": Dimension(
        "shorter", "shortest", "longer", "longest",
        ways("keeps its temperature for {} or less | holds out for no more than {} | gives in after {} at the latest | is beaten within {}"),
        ways("keeps its temperature for at least {} | holds out for {} or more | does not give in before {} | stays as it was filled for {}"),
        named=True,
    ),
    "load": Dimension(
        "less sturdy", "least sturdy", "sturdier", "sturdiest",
        ways("is rated for no more than {} | is made for {} at the most | bears {} or less | is not meant for over {}"),
        ways("carries at least {} | bears {} or more | is rated for {} at a minimum | stands up to {} of load"),
    ),
    "age": Dimension(
        "easier", "easiest", "harder", "hardest",
        ways("is meant for ages {} and up, or younger | suits somebody of {} | is allowed from {} or earlier | can be given to somebody aged {}"),
        ways("is meant for {} and older only | is not for anybody under {} | begins at {} or later | challenges somebody of {} and above"),
    ),
    "thickness": Dimension(
        "thinner", "thinnest", "thicker", "thickest",
        ways("is no thicker than {} | rolls out at {} or thinner | has {} of padding at most | rises at most {} off the floor"),
        ways("is at least {} thick | has {} or more of padding | rises {} off the floor or more | is not thinner than {}"),
    ),
}  # fmt: skip


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
