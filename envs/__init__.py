"""Environments: their contract (core), where they are found (registry), and the families themselves.

Importing this package makes our ids known to gymnasium, as its packages of environments do.
"""

from turnwise.envs.builtin import register_gymnasium
from turnwise.registry import load_plugins

register_gymnasium()
load_plugins()
