"""Names of brands, lines, places and colours. No name of a brand or line is used in two splits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turnwise.tasks.core import Split


class Names(NamedTuple):
    """What things are called in the catalogues of one split."""

    brands: tuple[str, ...]
    lines: tuple[str, ...]


def _names(brands: str, lines: str) -> Names:
    return Names(tuple(brands.split()), tuple(lines.split()))


NAMES: Mapping[Split, Names] = {
    Split.TRAIN: _names(
        "Aldertree Northwick Fennmore Calderby Tarnside Hollinworth Brightwell Marlowe Kestrel Pinehurst Vantor "
        "Lumika Quillon Harrowgate Oakridge Solvane Tidewell Merritt Dunmore Ashgrove",
        "Ridge Harbor Summit Meadow Drift Ember Juniper Cobalt Willow Orbit Falcon Prairie Cascade Linden Nomad Pebble "
        "Aurora Canyon Heron Maple Comet Thistle Anchor Breeze Dune Fjord Grove Hazel Islet Lagoon",
    ),
    Split.DEV: _names(
        "Wexcombe Strandby Ironvale Larkfield Ovenden Pellworth Rookhurst Selwick Thornbury Umberley",
        "Birch Tundra Pilot Mosaic Sparrow Delta Saffron Glacier Beacon Rowan Plover Mesa Atlas Cypress Quarry Sable",
    ),
    Split.TEST: _names(
        "Yarrowby Zellmann Crofton Edgemere Glenholt Inglewood Jorvik Kelldale Nethercot Penhallow Ravensett Silverdene",
        "Kite Bramble Tempest Velvetleaf Zephyr Alder Boulder Cinder Marten Oriole Raven Solstice Tamarack Vesper "
        "Wren Yonder Halcyon Osprey",
    ),
}

MODELS: Mapping[str, float] = {"": 0.0, "Lite": -0.3, "Plus": 0.2, "Max": 0.35, "II": 0.0, "Mini": -0.4}
"""What a member of a line is called → how much bigger it is, on a scale of 0 to 1."""

ORIGINS = ("Portugal", "Vietnam", "Germany", "Poland", "Taiwan", "India", "Turkey", "Mexico")

COLOURS = (
    "black",
    "white",
    "red",
    "blue",
    "green",
    "grey",
    "orange",
    "purple",
    "teal",
    "beige",
    "pink",
    "brown",
)
"""No two of them are alike to the score."""
