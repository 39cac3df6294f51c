"""``turnwise/Triples-v0``: code triples of a program, an input and an output, proposed and solved (Absolute Zero).

Tasks are made in a run by the proposers `azr_propose` and `azr_solve`: one asks for a triple, the other hides a part of one that was accepted. A
proposal is accepted where the program gives the same plain output in three runs of different lengths, each in a sandbox. The suites
``triples:propose`` and ``triples:solve`` are of small triples by chance, which a small model can imitate and be measured by.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

from turnwise.envs.code.kernel import NotPlain, decode, encode
from turnwise.envs.code.problem import same
from turnwise.envs.code.runner import get_runner
from turnwise.envs.code.small_triples import small_triple
from turnwise.envs.core import AgentEnv, EndReason, Guard, Transition
from turnwise.envs.messages import Message
from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task, digest

ENV = "turnwise/Triples-v0"
Ask: TypeAlias = Literal["deduction", "abduction"]
ASKS: tuple[Ask, ...] = get_args(Ask)
HIDDEN: Mapping[Ask, str] = {"deduction": "output", "abduction": "input"}
RUNS = 3
LONGEST = {"python": 2000, "input": 400, "output": 2000}
"""Characters of a part of a triple."""
ENTRY = "f"
ROLES = ("propose", "solve")
REFERENCES = 3
"""Triples at most that a proposal by chance is shown."""
SKILL = 0.7
"""How often the demonstrator's answer is right."""
SYSTEM = "Write each part in a fenced block of its own, as asked: ```python, ```input or ```output. Inputs are the arguments of f, outputs what it returns, as Python writes them."


class Triple(NamedTuple):
    """A program that defines ``f``, its arguments as Python writes them, and what it returns, encoded as plain values are."""

    program: str
    given: str
    output: Json

    def shown(self, hidden: str = "") -> str:
        """Its blocks, but for the part of this name."""
        value = repr(decode(self.output))
        parts = {"python": self.program, "input": self.given, "output": value}
        return "\n".join(_block(name, text) for name, text in parts.items() if name != hidden)


SEED = Triple("def f(x):\n    return x", "'Hello World'", "Hello World")
"""The trivial triple with which a pool begins."""


def propose_task(ask: Ask, known: Sequence[Triple], number: int) -> Task:
    """Ask for a new triple; ``known`` are shown, and the ``number`` tells one such task from another."""
    shown = "\n\n".join(one.shown() for one in known)
    prompt = (
        f"Propose a new program f with an input, for a task of {ask} : whoever solves it is shown "
        f"{'the program and the input, and says the output' if ask == 'deduction' else 'the program and the output, and says an input'} . "
        f"It should be neither too easy nor impossible . Here are others :\n\n{shown}\n\nWrite a ```python and an ```input block ."
    )
    return Task(ENV, prompt, {"role": f"propose {ask}", "ask": ask, "number": number}, SEED.shown("output"))


def solve_task(ask: Ask, triple: Triple) -> Task:
    """Hide a part of a triple: its output, or its input."""
    hidden = HIDDEN[ask]
    prompt = f"{triple.shown(hidden)}\n\nWhich {hidden} {'does f give' if ask == 'deduction' else 'gives this output'} ? Write an ```{hidden} block ."
    options = {"role": f"solve {ask}", "ask": ask, "triple": [*triple]}
    gold = repr(decode(triple.output)) if ask == "deduction" else triple.given
    return Task(ENV, prompt, options, _block(hidden, gold))


def _block(name: str, text: str) -> str:
    return f"```{name}\n{text}\n```"


class TriplesState(NamedTuple):
    """A task, and whether it was answered."""

    task: str
    answered: bool = False


class TriplesEnv(AgentEnv[TriplesState]):
    """One answer, which ends the episode: a triple that is accepted or not, or the hidden part of one.

    ``info["details"]`` tells of an accepted proposal its ``triple``, and of an answer that has not the blocks that were asked for that it is ``malformed``.

    Args:
        backend: where programs run, as for turnwise/Code-v0.
        unsafe: says that the policy is trusted with this machine.
        seconds: for one run of a program.
    """

    system = SYSTEM
    turn_limit = 1
    copies: ClassVar[str] = (
        "A triple may be shown that is to be proposed again; whether it is new is for who asks."
    )
    guarded_options: ClassVar[Mapping[str, Guard]] = {
        "backend": Guard("says where a model's code runs"),
        "unsafe": Guard("runs a model's code without a sandbox"),
    }

    def __init__(
        self, *, backend: str = "auto", unsafe: bool = False, seconds: float = 5.0, shaping: float = 0.0, render_mode: str | None = None
    ) -> None:  # fmt: skip
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.backend, self.unsafe, self.seconds = backend, unsafe, seconds

    @classmethod
    def generate(cls, rng: Random, split: Split, *, role: str = "propose", **knobs: Json) -> Task:
        if role not in ROLES or knobs:
            raise EnvError(
                f"Triples have no knobs { ({'role': role} | knobs)!r}.", "Give role: propose or solve."
            )
        if role == "solve":
            return solve_task(rng.choice(ASKS), _drawn(rng, split))
        number = 3 * rng.randrange(10**9) + list(Split).index(split)
        return propose_task(
            rng.choice(ASKS), [_drawn(rng, split) for _ in range(rng.randint(1, REFERENCES))], number
        )

    def initial(self, task: Task) -> tuple[TriplesState, str]:
        return TriplesState(task.id), task.prompt

    def transition(self, state: TriplesState, action: Message) -> Transition[TriplesState]:
        found, options = blocks(action.content), self.task.options
        right = self._proposed(found) if "triple" not in options else self._solved(found, options)
        end = EndReason.SOLVED if right.accepted else EndReason.FAILED
        rewards = {"outcome": float(right.accepted)}
        return Transition(state._replace(answered=True), right.said, rewards, end, right.details)

    def _proposed(self, found: Mapping[str, str]) -> _TripleVerdict:
        program, given = found.get("python"), found.get("input")
        values = None if given is None else arguments(given)
        if program is None or given is None:
            return _TripleVerdict(False, "a block is missing .", {"malformed": True})
        if values is None or "def f(" not in program:
            return _TripleVerdict(False, "there is no f, or its input is not plain .")
        output = self._run(program, values, RUNS)
        if output is None or len(repr(output.value)) > LONGEST["output"]:
            return _TripleVerdict(False, "it does not run to one plain output .")
        triple = Triple(program, given, encode(output.value))
        return _TripleVerdict(True, "accepted .", {"triple": [*triple]})

    def _solved(self, found: Mapping[str, str], options: Mapping[str, Json]) -> _TripleVerdict:
        triple = Triple(*options["triple"])
        answer = found.get(HIDDEN[options["ask"]])
        if answer is None:
            return _TripleVerdict(False, "a block is missing .", {"malformed": True})
        wanted = decode(triple.output)
        if options["ask"] == "deduction":
            said = arguments(answer)
            right = said is not None and same(said[0] if len(said) == 1 else said, wanted)
            return _TripleVerdict(right, "noted .")
        values = arguments(answer)
        output = None if values is None else self._run(triple.program, values, 1)
        return _TripleVerdict(output is not None and same(output.value, wanted), "noted .")

    def _run(self, program: str, values: tuple[object, ...], runs: int) -> _TripleOutput | None:
        """The output of a program, where each run of one, two … calls gives the same; None where it gives none."""
        runner, outputs = get_runner(self.backend, unsafe=self.unsafe), list[object]()
        for calls in range(1, runs + 1):
            ran = runner.answers(program, ENTRY, [values] * calls, "calls", self.seconds)
            if ran.error or any(answer.error for answer in ran.answers) or len(ran.answers) != calls:
                return None
            outputs += [answer.value for answer in ran.answers]
        return _TripleOutput(outputs[0]) if all(same(one, outputs[0]) for one in outputs) else None

    def gold(self, state: TriplesState) -> str:
        return str(self.task.gold)

    def demonstrate(self, state: TriplesState, rng: Random) -> str:
        """Proposes a small triple by chance, and solves with `SKILL`; otherwise it answers for another triple."""
        other, options = Triple(*small_triple(rng)), self.task.options
        if "triple" not in options:
            return other.shown("output")
        if rng.random() < SKILL:
            return self.gold(state)
        wrong = other.given if options["ask"] == "abduction" else repr(decode(other.output))
        return _block(HIDDEN[options["ask"]], wrong)

    def state_key(self, state: TriplesState) -> str:
        return digest(*state)


def _drawn(rng: Random, split: Split) -> Triple:
    """A small triple of this split: program and input together are of one alone."""

    while True:
        found = Triple(*small_triple(rng))
        if in_split(split, ENV, found.program, found.given):
            return found


def triples_suite(path: str) -> Suite:
    """The suite ``triples:propose`` or ``triples:solve``.

    >>> triples_suite("solve").knobs
    {'role': 'solve'}

    Raises:
        EnvError: it is neither.
    """
    if path not in ROLES:
        raise EnvError(f"There is no suite triples:{path}.", "Name triples:propose or triples:solve.")
    return Suite(f"triples:{path}", ENV, f"Small code triples by chance: {path}.", {"role": path})


class _TripleVerdict(NamedTuple):
    """Outcome of an answer: right or accepted, what is told, and details."""

    accepted: bool
    said: str
    details: Mapping[str, Json] = {}


class _TripleOutput(NamedTuple):
    """An output, which may be None."""

    value: object


def blocks(text: str) -> dict[str, str]:
    """The fenced blocks of a message by name; the last of each name, and none that is too long.

    >>> blocks("So:\\n```python\\ndef f(x):\\n    return 2 * x\\n```\\nand\\n```input\\n3\\n```\\n```output")
    {'python': 'def f(x):\\n    return 2 * x', 'input': '3'}
    """
    found: dict[str, str] = {}
    pieces = text.split("```")
    for inside in pieces[1:-1:2]:
        name, _, body = inside.partition("\n")
        name, body = name.strip().lower(), body.strip("\n")
        if name in LONGEST and len(body) <= LONGEST[name]:
            found[name] = body.rstrip() if name == "python" else body.strip()
    return found


def arguments(text: str) -> tuple[object, ...] | None:
    """The plain values that Python reads in a text, as the arguments of a call; None where it reads something else.

    >>> arguments("1, [2]"), arguments("'a'"), arguments("(1, 2)"), arguments(""), arguments("x"), arguments("1)(2")
    ((1, [2]), ('a',), ((1, 2),), (), None, None)
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a policy says, such as 1or 2
            call = ast.parse(f"f({text}\n)", mode="eval").body
        if not isinstance(call, ast.Call) or call.keywords or not isinstance(call.func, ast.Name):
            return None
        values = tuple(ast.literal_eval(one) for one in call.args)
        encode(list(values))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, NotPlain):
        return None
    return values
