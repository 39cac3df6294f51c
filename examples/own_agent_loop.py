"""An agent of your own, in three forms: a function, an object, and a loop around ``env.step``.

Run it: ``python examples/own_agent_loop.py``; or name it: ``turnwise eval shop/easy --policy examples/own_agent_loop.py:act``
"""

import re

import turnwise
from turnwise import History, Message, Reply


def act(history: History) -> str:
    """Searches for what the task says, opens the first product, chooses the option that was asked for, buys."""
    page = history.messages()[-1].content
    wanted = re.search(r"i need an? ([\w ]+?)(?: with color: (\w+))?(?: \[SEP\]|$)", page)
    words, color = wanted.groups() if wanted else ("product", None)
    if "Buy Now" not in page:
        product = re.search(r"B0[A-Z0-9]{8}", page)
        return f"click[{product[0].lower()}]" if product else f"search[{words}]"
    return f"click[{color}]" if color and "(chosen:" not in page and color in page else "click[buy now]"


class Counting:
    """The same as an object, which may hold a model or a connection; this one counts what it was asked."""

    name, version = "counting", 0

    def __init__(self) -> None:
        self.asked = 0

    async def act(self, history: History) -> Reply:
        self.asked += 1
        return Reply(Message("assistant", act(history)))  # here you would wait for a model

    def close(self) -> None:
        """Nothing is held."""


def drive(tasks: int = 8) -> float:  # a loop of one's own: everything between two steps is in your hands
    suite = turnwise.get_suite("shop/easy")
    env = turnwise.make(suite.env)
    solved = 0
    for task in turnwise.suite_tasks(suite, turnwise.Split.TEST, tasks):
        env.reset(seed=0, options={"task": task})
        end = None
        while end is None:
            choice = env.gold(env.state)  # your own stands here
            step = env.step(choice)
            end = step.info.get("end")
        solved += end is turnwise.EndReason.SOLVED
    env.close()
    return solved / tasks


if __name__ == "__main__":
    for policy in (act, Counting()):
        result = turnwise.evaluate("shop/easy", policy, episodes=8)
        print(f"{result.policy}: {result.success:.2f} in {result.turns:.1f} turns, {dict(result.ends)}")
    print("a loop of one's own:", drive())
