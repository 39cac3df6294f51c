"""State of a watched session, and the person's memory in it."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.envs.shop.human.actions import HumanAct
from turnwise.envs.shop.human.personas import Persona
from turnwise.envs.shop.state import ShopState


class HumanMemory(NamedTuple):
    """A person's memory: the searches made, products seen, those that fit, pages read of the open one."""

    searches: int = 0
    seen: tuple[int, ...] = ()
    fitting: tuple[int, ...] = ()
    read: tuple[str, ...] = ()


class HumanMoment(NamedTuple):
    """A page and what was done there. ``usual`` is what this persona does when no whim comes in between."""

    shop: ShopState
    mind: HumanMemory
    act: HumanAct
    usual: HumanAct


class HumanSession(NamedTuple):
    """Acts of a person, from the start page to a purchase or to leaving."""

    persona: Persona
    moments: tuple[HumanMoment, ...]


class Watching(NamedTuple):
    """Progress through the session, and the numbers of predictions exactly right, and of the right type."""

    task: str
    place: int = 0
    exact: int = 0
    typed: int = 0
