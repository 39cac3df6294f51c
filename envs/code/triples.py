"""``turnwise/Triples-v0``: code triples of a program, an input and an output, proposed and solved (Absolute Zero).

Tasks are made in a run by the proposers `azr_propose` and `azr_solve`: one asks for a triple, the other hides a part of one that was accepted. A
proposal is accepted where the program gives the same plain output in three runs of different lengths, each in a sandbox. The suites
``triples:propose`` and ``triples:solve``, and for induction ``triples:describe`` and ``triples:induce``, are of small triples by chance, which a small
model can imitate and be measured by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

from turnwise.envs.code import induction
from turnwise.envs.code.induction import Induction
from turnwise.envs.code.kernel import decode, encode
from turnwise.envs.code.problem import same
from turnwise.envs.code.runner import get_runner
from turnwise.envs.code.small_triples import small_triple
from turnwise.envs.code.triple_parts import (
    ENV,
    LONGEST,
    MISSING,
    SEED,
    Triple,
    TripleVerdict,
    arguments,
    block,
    blocks,
)
from turnwise.envs.core import AgentEnv, EndReason, Guard, Transition
from turnwise.envs.messages import Message
from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task, digest

Ask: TypeAlias = Literal["deduction", "abduction", "induction"]
ASKS: tuple[Ask, ...] = get_args(Ask)
HIDDEN: Mapping[Ask, str] = {"deduction": "output", "abduction": "input"}
"""The part that a task hides; induction, which hides the program, is in ``induction.py``."""
RUNS = 3
ENTRY = "f"
ROLES = ("propose", "solve", "describe", "induce")
"""Kinds of task by chance: propose and solve triples, describe a program for induction, and find one."""
FEW = 4
"""Inputs of an induction by chance."""
REFERENCES = 3
"""Triples at most that a proposal by chance is shown."""
SKILL = 0.7
"""How often the demonstrator's answer is right."""
SYSTEM = "Write each part in a fenced block of its own, as asked: ```python, ```input or ```output. Inputs are the arguments of f, outputs what it returns, as Python writes them."


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
    return Task(ENV, prompt, options, block(hidden, gold))


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
                f"Triples have no knobs { ({'role': role} | knobs)!r}.", f"Give role: {', '.join(ROLES)}."
            )
        if role == "solve":
            return solve_task(rng.choice([*HIDDEN]), _drawn(rng, split))
        if role == "induce":
            return induction.solve_task(_induced(rng, split))
        number = 3 * rng.randrange(10**9) + list(Split).index(split)
        if role == "describe":
            return induction.propose_task(_drawn(rng, split), number, FEW)
        return propose_task(
            rng.choice([*HIDDEN]), [_drawn(rng, split) for _ in range(rng.randint(1, REFERENCES))], number
        )

    def initial(self, task: Task) -> tuple[TriplesState, str]:
        return TriplesState(task.id), task.prompt

    def transition(self, state: TriplesState, action: Message) -> Transition[TriplesState]:
        found, options = blocks(action.content), self.task.options
        proposes = "triple" not in options
        if options["ask"] == "induction":
            judge = induction.proposed if proposes else induction.solved
            right = judge(found, options, self._run)
        else:
            right = self._proposed(found) if proposes else self._solved(found, options)
        end = EndReason.SOLVED if right.accepted else EndReason.FAILED
        rewards = {"outcome": float(right.accepted)}
        return Transition(state._replace(answered=True), right.said, rewards, end, right.details)

    def _proposed(self, found: Mapping[str, str]) -> TripleVerdict:
        program, given = found.get("python"), found.get("input")
        values = None if given is None else arguments(given)
        if program is None or given is None:
            return MISSING
        if values is None or "def f(" not in program:
            return TripleVerdict(False, "there is no f, or its input is not plain .")
        ran = self._run(program, [values], RUNS)
        if ran is None or len(repr(ran[0])) > LONGEST["output"]:
            return TripleVerdict(False, "it does not run to one plain output .")
        triple = Triple(program, given, encode(ran[0]))
        return TripleVerdict(True, "accepted .", {"triple": [*triple]})

    def _solved(self, found: Mapping[str, str], options: Mapping[str, Json]) -> TripleVerdict:
        triple = Triple(*options["triple"])
        answer = found.get(HIDDEN[options["ask"]])
        if answer is None:
            return MISSING
        wanted = decode(triple.output)
        if options["ask"] == "deduction":
            said = arguments(answer)
            right = said is not None and same(said[0] if len(said) == 1 else said, wanted)
            return TripleVerdict(right, "noted .")
        values = arguments(answer)
        ran = None if values is None else self._run(triple.program, [values], 1)
        return TripleVerdict(ran is not None and same(ran[0], wanted), "noted .")

    def _run(self, program: str, inputs: Sequence[tuple[object, ...]], runs: int) -> list[object] | None:
        """The outputs of a program for these inputs, where each run of them, once, twice …, gives the same; None where it gives none."""
        runner, found = get_runner(self.backend, unsafe=self.unsafe), list[object]()
        for times in range(1, runs + 1):
            asked = [*inputs] * times
            ran = runner.answers(program, ENTRY, asked, "calls", self.seconds)
            if ran.error or any(answer.error for answer in ran.answers) or len(ran.answers) != len(asked):
                return None
            values = [answer.value for answer in ran.answers]
            found = found or values[: len(inputs)]
            if not all(same(value, found[n % len(inputs)]) for n, value in enumerate(values)):
                return None
        return found

    def gold(self, state: TriplesState) -> str:
        return str(self.task.gold)

    def demonstrate(self, state: TriplesState, rng: Random) -> str:
        """Proposes a small triple by chance, and solves with `SKILL`; otherwise it answers for another triple."""
        other, options = Triple(*small_triple(rng)), self.task.options
        if "triple" not in options and options["ask"] == "induction":
            return induction.described(rng, options)
        if "triple" not in options:
            return other.shown("output")
        if rng.random() < SKILL:
            return self.gold(state)
        if options["ask"] == "induction":
            return block("python", other.program)
        wrong = other.given if options["ask"] == "abduction" else repr(decode(other.output))
        return block(HIDDEN[options["ask"]], wrong)

    def state_key(self, state: TriplesState) -> str:
        return digest(*state)


def _drawn(rng: Random, split: Split) -> Triple:
    """A small triple of this split: program and input together are of one alone."""

    while True:
        found = Triple(*small_triple(rng))
        if in_split(split, ENV, found.program, found.given):
            return found


def _induced(rng: Random, split: Split) -> Induction:
    """A program with some of its inputs, which together are of this split alone."""
    while True:
        first = Triple(*small_triple(rng))
        found = {first.given: first.output}
        while len(found) < FEW:
            other = Triple(*small_triple(rng))
            if other.program == first.program:
                found[other.given] = other.output
        if in_split(split, ENV, first.program, *found):
            return Induction(first.program, (*found,), (*found.values(),), "f")


def triples_suite(path: str) -> Suite:
    """The suite ``triples:ROLE``.

    >>> triples_suite("solve").knobs
    {'role': 'solve'}

    Raises:
        EnvError: there is no such role.
    """
    if path not in ROLES:
        named = ", ".join(f"triples:{role}" for role in ROLES)
        raise EnvError(f"There is no suite triples:{path}.", f"Name {named}.")
    return Suite(f"triples:{path}", ENV, f"Small code triples by chance: {path}.", {"role": path})
