"""A library desk that tells nothing, and desks that each give the answer away in one way."""
# pyright: reportIncompatibleMethodOverride=false

from typing import NamedTuple

from turnwise.envs.acting import call_of
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import find_tool, tool


class Shelf(NamedTuple):
    book: str
    seen: bool = False


def search(title: str) -> None:
    """Look for a title."""


def reserve(book: str) -> None:
    """Reserve a book by its number."""


class Desk(AgentEnv[Shelf]):
    tools = (tool(search), tool(reserve))
    turn_limit = 6
    blocking = False

    @classmethod
    def generate(cls, rng, split):
        number = 3 * rng.randrange(300) + list(Split).index(split)
        topic, reader = rng.choice(["owls", "bees", "cats"]), rng.randrange(900)
        return Task(
            f"leaky/{cls.__name__}-v0",
            cls.prompt(f"Reserve the book about {topic} for reader {reader}.", number),
            {"book": cls.book(number)},
            gold=cls.known(number),
        )

    @classmethod
    def prompt(cls, wish, number):
        return wish

    @classmethod
    def book(cls, number):
        return f"book-{number}"

    @classmethod
    def known(cls, number):
        return cls.book(number)

    def initial(self, task):
        return Shelf(task.options["book"]), task.prompt

    def transition(self, state, action):
        call = call_of(action, self.tools)
        arguments = find_tool(self.tools, call.name).validate(call)
        if call.name == "search":
            return Transition(state._replace(seen=True), f"It is {state.book}.")
        if arguments["book"] == state.book:
            return Transition(state, "Reserved.", {"outcome": 1.0}, EndReason.SOLVED)
        return Transition(state, "There is no such book.", {}, EndReason.FAILED)

    def gold(self, state):
        return f"reserve[{state.book}]" if state.seen else "search[owls]"


class ShortGold(Desk):
    """The gold has two digits and stands among other numbers."""

    @classmethod
    def prompt(cls, wish, number):
        return f"{wish} Floor 2, place {number % 90}, row 7."

    @classmethod
    def book(cls, number):
        return str(number % 90)


class GoldInPrompt(Desk):
    @classmethod
    def prompt(cls, wish, number):
        return f"{wish} (This ticket is about book-{number}.)"


class ReserveAtOnce(Desk):
    """The task names no gold; the prompt holds what ends it at the first turn."""

    @classmethod
    def prompt(cls, wish, number):
        return f"Ticket {number}. {wish}"

    @classmethod
    def book(cls, number):
        return str(number)

    @classmethod
    def known(cls, number):
        return None


class ToldByTheDesk(Desk):
    """Not the prompt, but the first observation says it."""

    def initial(self, task):
        return Shelf(task.options["book"]), f"{task.prompt}\nDEBUG state={task.options['book']}"

    @classmethod
    def known(cls, number):
        return None


class Declared(ReserveAtOnce):
    copies = "the ticket names the book"


class Two(ReserveAtOnce):
    agents = ("reader", "librarian")


class OneOfTwo(Desk):
    """A question that names its two candidates is solved by half of those who copy: what its bound is for."""

    max_trivial_score = 0.6

    @classmethod
    def prompt(cls, wish, number):
        pair = sorted((f"book-{number}", f"book-{900 + number}"), key=lambda name: hash_of(name, number))
        return f"{wish} Is it {pair[0]} or {pair[1]}?"

    @classmethod
    def known(cls, number):
        return None


def hash_of(name, number):
    return (number * 7919 // 31 + len(name)) % 2 * (1 if len(name) % 2 else -1)
