"""The kinds of goods that the shop sells."""

from __future__ import annotations

from turnwise.envs.shop.goods.core import Goods
from turnwise.envs.shop.goods.garden import GARDEN
from turnwise.envs.shop.goods.kitchen import KITCHEN
from turnwise.envs.shop.goods.living import LIVING
from turnwise.envs.shop.goods.outdoor import OUTDOOR
from turnwise.envs.shop.goods.worn import WORN

GOODS: tuple[Goods, ...] = (*OUTDOOR, *KITCHEN, *LIVING, *WORN, *GARDEN)
