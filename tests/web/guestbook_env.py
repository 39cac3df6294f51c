"""A third party's whole environment: 30 lines for any local web application."""

import sys
from pathlib import Path

from turnwise.envs.web.actions import say
from turnwise.envs.web.command import Command
from turnwise.envs.web.env import WebEnv
from turnwise.tasks.core import Task

APP = Path(__file__).with_name("guestbook.py")
NAMES = {"train": ("Ada", "Bo", "Cleo"), "dev": ("Dov", "Eve"), "test": ("Finn", "Gus")}


class GuestbookEnv(WebEnv):
    """Sign a guestbook under a name and a town."""

    site = Command((sys.executable, str(APP), "{port}", "{state}"))
    turn_limit = 6

    @classmethod
    def generate(cls, rng, split, **knobs):
        name, town = rng.choice(NAMES[split]), rng.choice(("Oslo", "Lima"))
        gold = [
            say("fill", target="Name", text=name),
            say("select", target="From", option=town),
            say("click", target="Sign"),
            say("done"),
        ]
        prompt = f"Sign the guestbook as {name} from {town}."
        return Task("test/Guestbook-v0", prompt, {"line": f"{name} from {town}\n", **knobs}, gold)

    def check(self, state):
        return float(state.server.text("guests.txt") == self.task.options["line"])
