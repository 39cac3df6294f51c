"""Mistakes that people make who write an environment, and what they are told: the table of docs/environment-mistakes.md.

``python tests/contract/mistakes.py`` writes that page anew; tests/contract/test_mistakes.py makes each mistake.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "environment-mistakes.md"

DESK = '''import random
import time
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

import gymnasium
import numpy as np

from turnwise import AgentEnv, EndReason, Message, Split, Task, ToolError, Transition, tool
from turnwise.envs.acting import call_of
from turnwise.tools.core import find_tool


class Desk(NamedTuple):
    low: int
    high: int
    book: int


def guess(number: int) -> None:
    """Say the number of a book."""


class LibraryDesk(AgentEnv[Desk]):
    """A desk that knows where a book stands."""

    system = "Find the book with guess[number]."
    tools = (tool(guess),)
    turn_limit = 9
    blocking = False

    @classmethod
    def generate(cls, rng, split, *, books: int = 240):
        book = 3 * rng.randrange(books // 3) + list(Split).index(split)
        return Task("library/Desk-v0", "The books have the numbers 0 to 239.", {"book": book}, gold=f"no. {book}")

    def initial(self, task):
        return Desk(0, 239, task.options["book"]), task.prompt

    def transition(self, state, action):
        call = call_of(action, self.tools)
        number = find_tool(self.tools, call.name).validate(call)["number"]
        if number == state.book:
            return Transition(state, "There it is.", {"outcome": 1.0}, EndReason.SOLVED)
        if number < state.book:
            return Transition(state._replace(low=max(state.low, number + 1)), "Farther on.")
        return Transition(state._replace(high=min(state.high, number - 1)), "Farther back.")

    def gold(self, state):
        return f"guess[{(state.low + state.high) // 2}]"
'''
"""An environment that keeps the contract, in which each mistake is made."""

GYMNASIUM = """from turnwise import AgentEnv, Task


class LibraryDesk(AgentEnv[int]):
    @classmethod
    def generate(cls, rng, split):
        return Task("library/Desk-v0", "Go.")

    def reset(self, *, seed=None, options=None):
        return "Go.", {}

    def step(self, action):
        return "Done.", 1.0, True, False, {}
"""


RUN = "run"
"""Instead of what is replaced: a script that is run beside the sound environment."""


class Mistake(NamedTuple):
    """What was written in place of what, what shows it, and the message (with LINE for the place)."""

    what: str
    swaps: tuple[tuple[str, str], ...]  # of DESK; or one pair of "" (or RUN) and the whole file
    verb: str  # what finds it: a requirement of `check`, `check` (nothing can be played) or `eval`
    told: str
    at: str = ""  # the beginning of the line that the message must name


START = '        return Desk(0, 239, task.options["book"]), task.prompt\n'
FOUND = '            return Transition(state, "There it is.", {"outcome": 1.0}, EndReason.SOLVED)\n'
ON = '            return Transition(state._replace(low=max(state.low, number + 1)), "Farther on.")\n'
BACK = '        return Transition(state._replace(high=min(state.high, number - 1)), "Farther back.")\n'
CALL = "        call = call_of(action, self.tools)\n"
GOLD = '        return f"guess[{(state.low + state.high) // 2}]"\n'
TASK = '        return Task("library/Desk-v0", "The books have the numbers 0 to 239.", {"book": book}, gold=f"no. {book}")\n'
TRANSITION, INITIAL, GENERATE = "    def transition", "    def initial", "    @classmethod"
FREEZE = (
    "Keep everything in the state, and freeze it (a NamedTuple or @dataclass(frozen=True)): return a new one."
)
RETURN = "return Transition(state, observation, {'outcome': 1.0}, EndReason.SOLVED), or without the last two."


def found(text: str) -> tuple[tuple[str, str], ...]:
    """Something else is returned where the book is found."""
    return ((FOUND, f"            {text}\n"),)


def run(*lines: str) -> tuple[tuple[str, str], ...]:
    """What is run beside a desk.py without a mistake."""
    imports = (
        "from turnwise import Split, Suite, make, register",
        "from turnwise.envs.registry import suite_task",
    )
    return ((RUN, "\n".join((*imports, *lines, ""))),)


MISTAKES = (
    # --- what a step returns: the habits of other libraries ---
    Mistake(
        "Gymnasium's five values are returned",
        found('return "There it is.", 1.0, True, False, {}'),
        "E1",
        "LibraryDesk.transition returned a tuple of 5, not a Transition (LINE). "
        f"→ That is what gymnasium's step() returns. R{RETURN[1:]}",
        TRANSITION,
    ),
    Mistake(
        "Gymnasium's `reset` and `step` are written instead of `initial` and `transition`",
        (("", GYMNASIUM),),
        "check",
        "LibraryDesk does not define initial(…). It writes step(), which the base class keeps (LINE). → Write "
        "initial(task) -> (state, observation) and transition(state, action) -> Transition(…).",
        "class LibraryDesk",
    ),
    Mistake(
        "A plain `gymnasium.Env`",
        (("class LibraryDesk(AgentEnv[Desk])", "class LibraryDesk(gymnasium.Env)"),),
        "check",
        "FILE has no turnwise.AgentEnv: LibraryDesk is a gymnasium.Env. → Write an AgentEnv that plays it: docs/how-to/gymnasium.md.",
    ),
    Mistake(
        "Rewards as a number",
        found('return Transition(state, "There it is.", 1.0, EndReason.SOLVED)'),
        "E1",
        "LibraryDesk.transition returned the rewards 1.0, which have no names (LINE). "
        "→ Name the parts: rewards={'outcome': 1.0}.",
        TRANSITION,
    ),
    Mistake(
        "`done=True` in place of an EndReason",
        found('return Transition(state, "There it is.", {"outcome": 1.0}, True)'),
        "E2",
        "LibraryDesk.transition ended the episode with end=True, which is no EndReason (LINE). "
        "→ Say why it ended: EndReason.SOLVED, EndReason.FAILED or EndReason.GAVE_UP.",
        TRANSITION,
    ),
    Mistake(
        "`done=False` while it goes on",
        ((ON, '            return Transition(state, "Farther on.", {}, False)\n'),),
        "E2",
        "LibraryDesk.transition ended the episode with end=False, which is no EndReason (LINE). "
        "→ Leave it out (None) while the episode goes on.",
        TRANSITION,
    ),
    Mistake(
        "An end as a string",
        found('return Transition(state, "There it is.", {"outcome": 1.0}, "solved")'),
        "E2",
        "LibraryDesk.transition ended the episode with end='solved', which is no EndReason (LINE). → Write EndReason.SOLVED.",
        TRANSITION,
    ),
    Mistake(
        "A path without `return`",
        ((BACK, "        state._replace(high=number - 1)\n"),),
        "E1",
        "LibraryDesk.transition returned None, not a Transition (LINE). "
        f"→ Some path through it has no `return`: {RETURN}",
        TRANSITION,
    ),
    Mistake(
        "`async def transition`",
        (("    def transition", "    async def transition"),),
        "check",
        "LibraryDesk.transition is `async` (LINE). → Write plain `def`: slow steps run in threads of their own.",
        "    async def transition",
    ),
    # --- rewards ---
    Mistake(
        "A misspelt part of the reward",
        found('return Transition(state, "There it is.", {"outcom": 1.0}, EndReason.SOLVED)'),
        "E1",
        "LibraryDesk.transition paid 'outcom', which its reward_components do not declare (LINE). → Did you mean 'outcome'?",
        TRANSITION,
    ),
    Mistake(
        "A part that was never declared",
        ((ON, '            return Transition(state, "Farther on.", {"hint": 0.1})\n'),),
        "E1",
        "LibraryDesk.transition paid 'hint', which its reward_components do not declare (LINE). "
        "→ Add 'hint' to `reward_components` with its RewardKind.",
        TRANSITION,
    ),
    Mistake(
        "A reward of NaN",
        ((ON, '            return Transition(state, "Farther on.", {"outcome": float("nan")})\n'),),
        "E1",
        "LibraryDesk.transition paid outcome=nan (LINE). "
        "→ Each reward must be a finite number, at most 3.4e+38 in size (what a float32 holds).",
        TRANSITION,
    ),
    Mistake(
        "A reward that no float32 holds",
        found('return Transition(state, "There it is.", {"outcome": 1e39}, EndReason.SOLVED)'),
        "E1",
        "LibraryDesk.transition paid outcome=1e+39 (LINE). "
        "→ Each reward must be a finite number, at most 3.4e+38 in size (what a float32 holds).",
        TRANSITION,
    ),
    Mistake(
        "A reward of True",
        found(
            'return Transition(state, "There it is.", {"outcome": number == state.book}, EndReason.SOLVED)'
        ),
        "E1",
        "LibraryDesk.transition paid outcome=True, which is a bool (LINE). "
        "→ Each reward must be a number: outcome=1.0.",
        TRANSITION,
    ),
    Mistake(
        "A reward of numpy's",
        found('return Transition(state, "There it is.", {"outcome": np.float32(1)}, EndReason.SOLVED)'),
        "E1",
        "LibraryDesk.transition paid outcome=np.float32(1.0), which is a float32 (LINE). "
        "→ Each reward must be a number: outcome=1.0.",
        TRANSITION,
    ),
    # --- observations ---
    Mistake(
        "Observations as a dict",
        ((ON, '            return Transition(state, {"hint": "farther on"})\n'),),
        "E8",
        "LibraryDesk.transition returned a dict as the observation (LINE). "
        "→ Write it as text, such as json.dumps(observation).",
        TRANSITION,
    ),
    Mistake(
        "Observations as chat messages of dicts (TRL's habit)",
        ((ON, '            return Transition(state, [{"role": "user", "content": "Farther on."}])\n'),),
        "E8",
        "LibraryDesk.transition returned a list as the observation (LINE). "
        "→ An observation is text (or Messages): say in words what the agent sees.",
        TRANSITION,
    ),
    Mistake(
        "Observations as bytes",
        ((ON, '            return Transition(state, b"Farther on.")\n'),),
        "E8",
        "LibraryDesk.transition returned a bytes as the observation (LINE). "
        "→ Decode it: observation.decode(errors='replace').",
        TRANSITION,
    ),
    Mistake(
        "No observation",
        ((ON, "            return Transition(state, None)\n"),),
        "E8",
        "LibraryDesk.transition returned None as the observation (LINE). "
        "→ An observation is text (or Messages): say in words what the agent sees.",
        TRANSITION,
    ),
    Mistake(
        "Text that is not valid Unicode",
        ((ON, '            return Transition(state, "Farther on \\ud800.")\n'),),
        "E8",
        "UnicodeWarning: LibraryDesk.transition returned text that is not valid Unicode: '\\ud800' at character 11 "
        "(LINE). It is shown as U+FFFD. → Decode bytes with errors='replace'.",
        TRANSITION,
    ),
    # --- the first state, and states ---
    Mistake(
        "`initial` returns Gymnasium's observation and info",
        ((START, '        return task.prompt, {"book": 3}\n'),),
        "E1",
        "LibraryDesk.initial returned a dict as the observation (LINE). "
        "→ The state comes first, the observation (text) second: return state, observation.",
        INITIAL,
    ),
    Mistake(
        "`initial` returns a dict",
        ((START, '        return {"book": task.options["book"]}\n'),),
        "E1",
        "LibraryDesk.initial returned a dict, not a state and an observation (LINE). → return state, observation.",
        INITIAL,
    ),
    Mistake(
        "`initial` returns the state alone",
        ((START, '        return Desk(0, 239, task.options["book"])\n'),),
        "E1",
        "LibraryDesk.initial returned a Desk, not a state and an observation (LINE). → return state, observation.",
        INITIAL,
    ),
    Mistake(
        "A state that can be changed",
        (("class Desk(NamedTuple):", "@dataclass\nclass Desk:"),),
        "E1",
        "LibraryDesk.initial returned a Desk as state, which can be changed in place (LINE). → Freeze it, "
        "@dataclass(frozen=True), and return dataclasses.replace(state, …): snapshots and forks share states.",
        INITIAL,
    ),
    Mistake(
        "A dict as state",
        ((START, '        return {"low": 0, "book": task.options["book"]}, task.prompt\n'),),
        "E1",
        "LibraryDesk.initial returned a dict as state, which can be changed in place (LINE). → Use a NamedTuple or a "
        "frozen dataclass, and return a new one: snapshots and forks share states.",
        INITIAL,
    ),
    Mistake(
        "A list inside of a frozen state is changed",
        (
            ("    book: int\n", "    book: int\n    said: list\n"),
            (START, '        return Desk(0, 239, task.options["book"], []), task.prompt\n'),
            (
                ON,
                '            state.said.append(number)\n            return Transition(state, f"{state.said}")\n',
            ),
        ),
        "E4",
        "transition changes the Desk that it is given (LINE). → " + FREEZE,
        TRANSITION,
    ),
    Mistake(
        "What happened is kept on `self`",
        (
            (
                START,
                '        self.tries = 0\n        return Desk(0, 239, task.options["book"]), task.prompt\n',
            ),
            (
                ON,
                '            self.tries += 1\n            return Transition(state, f"Try {self.tries}: on.")\n',
            ),
        ),
        "E4",
        "a step changes self.tries (LINE). → " + FREEZE,
        TRANSITION,
    ),
    # --- actions ---
    Mistake(
        "The action is taken for a string",
        ((CALL, "        call = call_of(action.strip(), self.tools)\n"),),
        "E1",
        "AttributeError: 'Message' object has no attribute 'strip' (LINE) "
        "→ An action is a Message: its text is action.content, its calls are action.tool_calls.",
        "        call = call_of(action.strip()",
    ),
    Mistake(
        "An exception where an action means nothing",
        ((CALL, f'{CALL}        if call.name != "guess":\n            raise ValueError("unknown")\n'),),
        "E7",
        "an unknown tool raises ValueError: unknown (LINE) "
        "→ Raise ToolError(…) where an action means nothing: it is answered, and the episode goes on.",
        "            raise ValueError",
    ),
    Mistake(
        "A text is parsed without a net",
        (
            (CALL, "        number = int(action.content[6:-1])\n"),
            ('        number = find_tool(self.tools, call.name).validate(call)["number"]\n', ""),
        ),
        "E7",
        "an empty text raises ValueError: invalid literal for int() with base 10: '' (LINE) "
        "→ Raise ToolError(…) where an action means nothing: it is answered, and the episode goes on.",
        "        number = int(",
    ),
    Mistake(
        "`sys.exit` in a step",
        ((CALL, "        import sys\n\n        sys.exit(3)\n"),),
        "E1",
        "SystemExit: 3 (LINE) → Return an EndReason (GAVE_UP or FAILED); an environment does not leave the process.",
        "        sys.exit(3)",
    ),
    Mistake(
        "A loop without an end",
        ((CALL, CALL + "        tries = 0\n        while True:\n            tries += 1\n"),),
        "E1",
        "DeadlineError: step() of library/Desk-v0 took more than 0.5 s",
    ),
    # --- the solution ---
    Mistake(
        "No `gold`",
        (("    def gold(self, state):\n" + GOLD, ""),),
        "E6",
        "LibraryDesk does not define gold(state) (LINE). "
        "→ Write it: the next action of a solution that scores 1 (E6, and warm starts imitate it).",
        "class LibraryDesk",
    ),
    Mistake(
        "`gold` returns a call as a dict (OpenAI's form)",
        ((GOLD, '        return {"name": "guess", "arguments": {"number": state.book}}\n'),),
        "E6",
        "LibraryDesk.gold returned a dict, which is no action (LINE). "
        "→ Return what the agent says: text, or a Message with tool calls.",
        "    def gold",
    ),
    Mistake(
        "`gold` is not the solution",
        ((GOLD, '        return f"guess[{state.low}]"\n'),),
        "E6",
        "after 9 turns with the score 0. It last did 'guess[8]', and was answered 'Farther on.'. → Raise turn_limit, or let gold take fewer turns.",
    ),
    Mistake(
        "`gold` says the same again and again",
        ((GOLD, '        return "guess[0]"\n'),),
        "E6",
        "gold repeats itself: look at the state it decides by.",
    ),
    Mistake(
        "The end is FAILED and the outcome 1",
        ((FOUND, FOUND.replace("SOLVED", "FAILED")),),
        "E6",
        "it ended failed after",
    ),
    Mistake(
        "The end is SOLVED and the outcome 0",
        ((FOUND, FOUND.replace("1.0", "0.0")),),
        "E6",
        "→ An episode that ends SOLVED pays the outcome 1 in all",
    ),
    Mistake(
        "A `turn_limit` below what gold needs",
        (("    turn_limit = 9\n", "    turn_limit = 2\n"),),
        "E6",
        "it ended turn_limit after 2 turns with the score 0",
    ),
    Mistake(
        "`system` is a list",
        (
            (
                '    system = "Find the book with guess[number]."\n',
                '    system = ["Find the book.", "guess[number]"]\n',
            ),
        ),
        "check",
        "LibraryDesk has system=['Find the book.', 'guess[number]'], which is no text (LINE). → Write one text: system = 'You are …'.",
        "class LibraryDesk",
    ),
    Mistake(
        "Two tools of the same name",
        (("    tools = (tool(guess),)\n", "    tools = (tool(guess), tool(guess))\n"),),
        "check",
        "LibraryDesk has two tools called 'guess' (LINE). → Give one of the functions another name",
        "class LibraryDesk",
    ),
    Mistake(
        "`tools` is a list of tools",
        (("    tools = (tool(guess),)\n", "    tools = [tool(guess)]\n"),),
        "check",
        "→ Write round brackets: tools = (tool(one), tool(two)).",
    ),
    Mistake(
        "`potential` returns nothing",
        ((GOLD, GOLD + "\n    def potential(self, state):\n        state.high - state.low\n"),),
        "E1",
        "potential(state) returns nothing: no line of it says `return` and a number. → Return a number, or leave potential out.",
    ),
    Mistake(
        "A kind of reward that there is not",
        (
            (
                "    turn_limit = 9\n",
                "    turn_limit = 9\n    reward_components = {'outcome': RewardKind.PROCES}\n",
            ),
            ("from turnwise import AgentEnv", "from turnwise import RewardKind, AgentEnv"),
        ),
        "check",
        "→ RewardKind has OUTCOME, ",
    ),
    Mistake(
        "Numbers as keys of a task's options",
        ((TASK, '        return Task("library/Desk-v0", "Go.", {"book": book, "shelves": {1: "a"}})\n'),),
        "E3",
        "the options of a task have the key 1, which is no text: saved as JSON it is '1'. → Write '1', or a list of pairs.",
    ),
    Mistake(
        "A random generator in the state",
        (("    book: int\n", "    book: int\n    chance: random.Random = random.Random(0)\n"),),
        "E3",
        "the state holds a random generator in chance, which changes as it is used. → Draw from self.rng(",
    ),
    Mistake(
        "An error for some arguments",
        (
            (
                CALL,
                CALL
                + '        if "null" in str(call.arguments) or call.arguments.get("number") == 119:\n            raise KeyError("shelf")\n',
            ),
        ),
        "E1",
        "the action 'guess[119]' raises KeyError: 'shelf' (",
    ),
    # --- tasks ---
    Mistake(
        "A date in a task's options",
        ((TASK, '        return Task("library/Desk-v0", "Go.", {"book": book, "due": date(2026, 1, 2)})\n'),),
        "check",
        "A task's options['due'] is datetime.date(2026, 1, 2) (date), which JSON cannot hold (LINE). → Tasks are data: "
        "text, numbers, lists and dicts with text as keys; a date is date.isoformat().",
        '        return Task("library/Desk-v0", "Go."',
    ),
    Mistake(
        "A task as a dict",
        ((TASK, '        return {"prompt": "Go.", "book": book}\n'),),
        "check",
        "LibraryDesk.generate returned a dict, not a Task (LINE). → return Task(env_id, prompt, options).",
        GENERATE,
    ),
    Mistake(
        "`generate` without @classmethod",
        (("    @classmethod\n    def generate(cls,", "    def generate(self,"),),
        "check",
        "LibraryDesk.generate is no class method (LINE). → Write @classmethod above it.",
        "    def generate",
    ),
    Mistake(
        "`generate` without the split",
        (
            ("def generate(cls, rng, split, *, books: int = 240)", "def generate(cls, rng)"),
            ("3 * rng.randrange(books // 3) + list(Split).index(split)", "rng.randrange(240)"),
        ),
        "check",
        "LibraryDesk.generate cannot be called: too many positional arguments (LINE). "
        "→ Write generate(cls, rng, split, *, knob=default, …), each knob with a default.",
        GENERATE,
    ),
    Mistake(
        "Splits that share tasks",
        (("3 * rng.randrange(books // 3) + list(Split).index(split)", "rng.randrange(books)"),),
        "E6",
        "share task",
    ),
    Mistake(
        "Details that JSON cannot hold",
        ((ON, '            return Transition(state, "Farther on.", details={"at": date(2026, 1, 2)})\n'),),
        "E1",
        "LibraryDesk.transition returned details that JSON cannot hold: Object of type date is not JSON serializable "
        "(LINE). → Details are saved as JSON: use numbers, text, lists and dicts with text as keys.",
        TRANSITION,
    ),
    # --- declarations ---
    Mistake(
        "A tool that is a plain function",
        (("    tools = (tool(guess),)", "    tools = (guess,)"),),
        "check",
        "which is no tuple of tools (LINE). → Wrap each function, and mind the comma: tools = (tool(function),).",
        "class LibraryDesk",
    ),
    Mistake(
        "One tool, and no comma",
        (("    tools = (tool(guess),)", "    tools = (tool(guess))"),),
        "check",
        "which is no tuple of tools (LINE). → Wrap each function, and mind the comma: tools = (tool(function),).",
        "class LibraryDesk",
    ),
    Mistake(
        "Tools as JSON schemas (OpenAI's form)",
        (
            (
                "    tools = (tool(guess),)",
                '    tools = [{"type": "function", "function": {"name": "guess"}}]',
            ),
        ),
        "check",
        "which is no tuple of tools (LINE). → Wrap each function, and mind the comma: tools = (tool(function),).",
        "class LibraryDesk",
    ),
    Mistake(
        "A tool without types",
        (("def guess(number: int) -> None:", "def guess(number):"),),
        "check",
        "FILE cannot be imported: TypeError: tool 'guess': parameter 'number' needs a type annotation (LINE). "
        "→ Fix that line.",
        "    tools = (tool(guess),)",
    ),
    Mistake(
        "A tool with a type that JSON does not know",
        (("def guess(number: int) -> None:", "def guess(number: np.ndarray) -> None:"),),
        "check",
        "FILE cannot be imported: TypeError: tool 'guess': parameter 'number' is an 'ndarray', which JSON cannot hold: use "
        "str, int, float, bool, list, dict or Literal[…] (LINE). → Fix that line.",
        "    tools = (tool(guess),)",
    ),
    Mistake(
        "Reward components without the outcome",
        (("    turn_limit = 9\n", '    turn_limit = 9\n    reward_components = {"score": "outcome"}\n'),),
        "check",
        "LibraryDesk has reward_components without 'outcome': ['score'] (LINE). "
        "→ The score is the part called 'outcome': reward_components = {'outcome': RewardKind.OUTCOME, …}.",
        "class LibraryDesk",
    ),
    Mistake(
        "A turn limit of 0",
        (("    turn_limit = 9\n", "    turn_limit = 0\n"),),
        "check",
        "LibraryDesk has turn_limit=0 (LINE). → It is how many turns an episode may take: a whole number above 0.",
        "class LibraryDesk",
    ),
    Mistake(
        "`__init__` without the options of the base class",
        (("    def initial", "    def __init__(self):\n        self.shelf = 3\n\n    def initial"),),
        "E1",
        "LibraryDesk.__init__ does not take shaping=… (LINE). → Write def __init__(self, *, shaping=0.0, "
        "render_mode=None), and call super().__init__(shaping=shaping, render_mode=render_mode) in it.",
        "    def __init__",
    ),
    # --- where only a well-formed, wrong action comes to ---
    Mistake(
        "Nothing is returned in the third turn",
        (
            (
                "        if number < state.book:\n",
                "        if self.now.turn >= 2:\n            return None\n        if number < state.book:\n",
            ),
        ),
        "E2",
        "LibraryDesk.transition returned None, not a Transition (LINE).",
        "    def transition",
    ),
    Mistake(
        "A counter at the top of the file",
        (
            ("class Desk(NamedTuple):", "COUNT = 0\n\n\nclass Desk(NamedTuple):"),
            (CALL, "        global COUNT\n        COUNT += 1\n" + CALL),
            ('"Farther on.")', 'f"Farther on ({COUNT}).")'),
        ),
        "E3",
        "a step changes the global COUNT (LINE).",
        "    def transition",
    ),
    # --- chance ---
    Mistake(
        "Chance from `random`",
        ((ON, '            return Transition(state, random.choice(["On.", "Farther on."]))\n'),),
        "E3",
        "the environment draws from the global RNG (random or numpy.random). "
        '→ Draw from self.rng("name"), in generate from its rng.',
    ),
    Mistake(
        "The clock",
        ((ON, '            return Transition(state, f"Farther on ({time.perf_counter_ns()}).")\n'),),
        "E3",
        "a second run in this process, with the global RNG seeded otherwise, gives another episode",
    ),
    # --- what gives the answer away ---
    Mistake(
        "The answer stands in the prompt",
        ((TASK, TASK.replace('"The books have the numbers 0 to 239."', 'f"Ticket {book}: find the book."')),),
        "E8",
        "a copying agent takes the first number of the first text",
    ),
    Mistake(
        "The gold stands in the first observation",
        ((START, START.replace("task.prompt", 'f"{task.prompt} (debug: {task.gold})"')),),
        "E8",
        "library/Desk-v0: the first observation shows the gold, such as 'no. ",
    ),
    # --- registering ---
    Mistake(
        "A misspelt class in `register`",
        run('register("library/Desk-v0", "desk:LibraryDsk", "Books.")', 'make("library/Desk-v0")'),
        "make",
        "There is no 'LibraryDsk' in desk (registered as library/Desk-v0 at LINE). → Did you mean 'LibraryDesk'?",
        "register(",
    ),
    Mistake(
        "A misspelt module in `register`",
        run('register("library/Desk-v0", "dessk:LibraryDesk", "Books.")', 'make("library/Desk-v0")'),
        "make",
        "There is no module 'dessk' (registered as library/Desk-v0 at LINE). "
        "→ Write module:Class as it is imported, and install its package (pip install -e .).",
        "register(",
    ),
    Mistake(
        "The class itself in `register` (Gymnasium takes it)",
        run("import desk", 'register("library/Desk-v0", desk.LibraryDesk, "Books.")'),
        "register",
        "library/Desk-v0 is registered with <class 'desk.LibraryDesk'>. "
        "→ Say where its class is as text: 'desk:LibraryDesk'.",
    ),
    Mistake(
        "A dot before the class",
        run('register("library/Desk-v0", "desk.LibraryDesk", "Books.")'),
        "register",
        "library/Desk-v0 is registered with 'desk.LibraryDesk'. "
        "→ Say where its class is as text: 'package.module:Class'.",
    ),
    Mistake(
        "An id with a blank",
        run('register("library desk", "desk:LibraryDesk", "Books.")'),
        "register",
        "'library desk' is no id of an environment. → Write it as family/Name-v0.",
    ),
    Mistake(
        "An id that is taken",
        run('register("turnwise/Shop-v0", "desk:LibraryDesk", "Books.")'),
        "register",
        "The environment id 'turnwise/Shop-v0' is taken by turnwise.envs.shop.env:ShopEnv. → Choose another id.",
    ),
    Mistake(
        "A function as environment",
        run('register("library/Desk-v0", "desk:guess", "Books.")', 'make("library/Desk-v0")'),
        "make",
        "desk:guess is no class (registered as library/Desk-v0 at LINE). "
        "→ Name a class that inherits from turnwise.AgentEnv.",
        "register(",
    ),
    Mistake(
        "A misspelt knob in a suite",
        run(
            'register("library/Desk-v0", "desk:LibraryDesk", "Books.")',
            'suite_task(Suite("library/easy", "library/Desk-v0", "Few.", {"bokos": 30}), Split.TRAIN, 0)',
        ),
        "eval, train",
        "LibraryDesk.generate cannot be called with the suite's knobs {'bokos': 30}: "
        "got an unexpected keyword argument 'bokos'",
    ),
    Mistake(
        "It was never registered, or its package is not installed",
        run('make("library/Desk-v0")'),
        "make",
        "If it is yours: is its package installed (pip install -e .), with an entry point in the group "
        "'turnwise.plugins' whose module or function registers it? Or give its file: path/to/file.py.",
    ),
    Mistake(
        "A misspelt id",
        run('make("turnwise/Shpo-v0")'),
        "make",
        "There is no environment 'turnwise/Shpo-v0'. → Did you mean 'turnwise/Shop-v0'?",
    ),
    # --- evaluating it all the same ---
    Mistake(
        "A dict as observation, evaluated without a check",
        ((ON, '            return Transition(state, {"hint": "farther on"})\n'),),
        "eval",
        "LibraryDesk.transition returned a dict as the observation",
        TRANSITION,
    ),
    Mistake(
        "A hole in a step, evaluated without a check",
        ((ON, "            return Transition(state, [][0])\n"),),
        "eval",
        "IndexError: list index out of range",
    ),
    Mistake(
        "No class of that name",
        (("class LibraryDesk(", "class LibraryDsk("),),
        "check LibraryDesk",
        "There is no 'LibraryDesk' in FILE. → Did you mean 'LibraryDsk'?",
    ),
    Mistake(
        "A library that is not installed",
        (("import numpy as np", "import nunpy as np"),),
        "check",
        "FILE needs 'nunpy': ModuleNotFoundError: No module named 'nunpy' (LINE). → Install that library.",
        "import nunpy",
    ),
    Mistake(
        "A syntax error",
        (("    def gold(self, state):", "    def gold(self, state:"),),
        "check",
        "FILE cannot be imported: SyntaxError:",
        "    def gold(",
    ),
)


def source(mistake: Mistake) -> str:
    """The file in which the mistake is made."""
    text = DESK
    for old, new in mistake.swaps:
        if old in ("", RUN):
            return new
        assert old in text, f"{mistake.what}: {old!r} is not in the environment"
        text = text.replace(old, new)
    return text


def line(mistake: Mistake) -> int:
    """The number of the line that the message must name."""
    starts = [n for n, text in enumerate(source(mistake).splitlines(), 1) if text.startswith(mistake.at)]
    assert starts, f"{mistake.what}: no line begins with {mistake.at!r}"
    return starts[0]


def page() -> str:
    """The table of all mistakes, in Markdown."""
    rows = [f"| {_cell(mistake.what)} | `{mistake.verb}` | {_cell(mistake.told)} |" for mistake in MISTAKES]
    return "\n".join(
        (
            "# Mistakes in environments, and the messages for them",
            "",
            "Written by `python tests/contract/mistakes.py`; `tests/contract/test_mistakes.py` makes every mistake in the",
            "environment of that file and compares the message. LINE is the `file.py:LINE` of the author's own code, FILE the",
            "file. What finds it is a requirement of `turnwise check` (one cause is reported once, with the others that it",
            "breaks), `check` before anything is played, `register`, `make` or `turnwise eval`.",
            "",
            "| mistake | found by | message, or the part of it that matters |",
            "|---|---|---|",
            *rows,
            "",
        )
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
