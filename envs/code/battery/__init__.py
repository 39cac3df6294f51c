"""The attacks of :mod:`turnwise.envs.code.attacks`: what each does, turn by turn."""

from turnwise.envs.code.battery.bombs import BOMBS
from turnwise.envs.code.battery.cheats import CHEATS
from turnwise.envs.code.battery.core import CodeAttack
from turnwise.envs.code.battery.escapes import ESCAPES

ATTACKS = (*BOMBS, *ESCAPES, *CHEATS)
"""All attacks, by row."""

__all__ = ["ATTACKS", "BOMBS", "CHEATS", "ESCAPES", "CodeAttack"]
