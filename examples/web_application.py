"""A web application as an environment: this page counts, the agent clicks in a real browser, the state is a value.

Run it: ``python examples/web_application.py`` (needs turnwise[web] and Chromium; `turnwise doctor` says what is there)
"""

from random import Random
from typing import Any, NamedTuple

import turnwise
from turnwise import Split, Task
from turnwise.envs.web.actions import say
from turnwise.envs.web.env import WebEnv
from turnwise.envs.web.sessions import PageReply, PageRequest, SessionSite


class Count(NamedTuple):
    value: int


PAGE = "<!doctype html><html lang=en><title>Count</title><h1>{}</h1><form method=post><button>Add one</button></form>"


class CountSite(SessionSite[Count]):
    """The application: pure functions over an immutable state, so that a fork is a reference."""

    package = "turnwise.envs.tracker"  # whose static files are served; this page has none

    def initial(self, task: Task) -> Count:
        return Count(0)

    def answer(self, state: Count, request: PageRequest) -> PageReply[Count]:
        if request.method == "POST":
            return PageReply(Count(state.value + 1), redirect="/")
        return PageReply(state, PAGE.format(state.value))


class Counting(WebEnv):
    """Click until the page shows the number."""

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Any) -> Task:
        times = 3 * rng.randrange(1, 3) + list(Split).index(split)
        gold = [say("click", target="Add one")] * times + [say("done")]
        return Task("me/Counting-v0", f"Make the page show {times}.", {"times": times}, gold)

    def begin_visit(self, task: Task) -> Any:
        return CountSite.shared().begin(task)

    def check(self, state: Any) -> float:
        return float(state.server.value == self.task.options["times"])


turnwise.register("me/Counting-v0", f"{__file__}:Counting", "Click until a page shows a number.")
turnwise.register_suite(turnwise.Suite("counting", "me/Counting-v0", "Small numbers."))

if __name__ == "__main__":
    found = turnwise.evaluate("counting", "scripted:gold", episodes=3)
    print(f"gold: {found.success:.0%} in {found.turns:.1f} turns")
