"""``turnwise/Deduce-v0``: deduction over a graph, where half of the questions have no answer.

Two families of tasks: ``equations``, where each thing is a sum of
others, and ``rules``, where the colours of some things follow from those of others. A question is made
unanswerable by perturbing one edge that its answer depends on; the right reply is then to abstain *and* to
name what cannot be known, so that always abstaining earns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, Literal, NamedTuple

import pydantic

from turnwise.envs.core import EndReason, RewardKind
from turnwise.envs.small.env import CallEnv, CallResult
from turnwise.envs.small.graphs import COLOURS, DeduceGraph, draw_graph, draw_names, graph_of, needed
from turnwise.envs.wordings import ways
from turnwise.envs.worlds.commands import WorldCache
from turnwise.envs.worlds.knobs import check_knobs, first_drawn
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.core import ToolError, tool

ENV = "turnwise/Deduce-v0"
_ASKS = ways("What {what} is {name}? | Which {what} has {name}? | Find out the {what} of {name}.")
_PLAIN_ANSWERS = 3  # wrong numbers that `admissible` offers


def look(name: str) -> None:
    """Read what is written about a thing."""


def answer(value: str) -> None:
    """Answer the question with a number or a colour. Ends the task."""


def abstain(missing: str) -> None:
    """Say that there is no answer, and which thing it is that cannot be known. Ends the task."""


class DeduceKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite of deduction."""

    family: Literal["equations", "rules"] = "equations"
    things: int = pydantic.Field(10, ge=4, le=40)
    depth: tuple[int, int] = (2, 4)  # steps from what is given to what is asked, at least and at most
    told: bool = False  # everything is told at the beginning; else it is looked up
    unanswerable: float = pydantic.Field(0.5, ge=0, le=1)  # share of such questions
    spare: int = pydantic.Field(4, ge=0)  # turns allowed beyond those that are needed


class DeduceState(NamedTuple):
    """Things that the agent has read about."""

    task: str
    read: frozenset[str] = frozenset()


class DeduceEnv(CallEnv[DeduceState]):
    """Look things up, deduce, answer or abstain. ``wrong`` is charged for a wrong answer (not for abstaining)."""

    tools = (tool(look), tool(answer), tool(abstain))
    system = (
        "Find what is asked. Each turn: look[thing], answer[value], or, where it cannot be known, abstain[thing] "
        "with the first thing that cannot."
    )
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {"10": {}, "40": {"things": 40, "depth": [4, 8]}}

    def __init__(self, *, shaping: float = 0.0, wrong: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.wrong = wrong
        if wrong:
            self.reward_components = {**self.reward_components, "wrong": RewardKind.COST}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        chosen = check_knobs(DeduceKnobs, knobs, "deduction")
        broken = rng.random() < chosen.unanswerable  # not drawn again, so that the share is exact

        def draw(rng: Random) -> Task | None:
            names = draw_names(rng, chosen.things, split)
            data = draw_graph(rng, chosen.family, names, broken)
            if data is None:
                return None
            graph = graph_of(data)
            if not chosen.depth[0] <= graph.depth <= chosen.depth[1]:
                return None
            turns = 1 if chosen.told else len(needed(graph)) + 1
            what = "number" if chosen.family == "equations" else "colour"
            prompt = _ASKS.of(split)[0].format(what=what, name=data["question"])
            options = {
                **data,
                "language": split.value,
                "told": chosen.told,
                "turn_limit": turns + chosen.spare,
            }
            return Task(ENV, prompt, options, {"turns": turns})

        return first_drawn(draw, rng, split, "deduction")

    def initial(self, task: Task) -> tuple[DeduceState, str]:
        graph = _graphs(task)
        if task.options["told"]:
            return DeduceState(task.id, graph.names), "\n".join((*map(graph.text, graph.shown), task.prompt))
        return DeduceState(task.id), f"things : {' , '.join(graph.shown)} .\n{task.prompt}"

    def do(self, state: DeduceState, name: str, arguments: Mapping[str, Json]) -> CallResult[DeduceState]:
        graph = _graphs(self.task)
        said = next(iter(arguments.values())).strip().lower().rstrip(". ").replace("\u2212", "-")
        if name == "look":
            if said not in graph.names:
                raise ToolError(f"There is no {said[:40]!r}. Things: {', '.join(graph.shown)}.")
            return CallResult(state._replace(read=state.read | {said}), graph.text(said))
        if name == "answer":
            if said not in COLOURS and not said.removeprefix("-").removeprefix("+").isdecimal():
                raise ToolError("Answer with one whole number or one colour.")
            right = graph.answer is not None and _plain(said) == graph.answer
        elif said not in graph.names:
            raise ToolError(f"Abstain with the thing that cannot be known, one of: {', '.join(graph.shown)}.")
        else:
            right = said == graph.missing
        charged = {"wrong": -self.wrong} if self.wrong and name == "answer" and not right else {}
        return CallResult(state, "noted .", EndReason.SOLVED if right else EndReason.FAILED, charged)

    def gold(self, state: DeduceState) -> str:
        graph = _graphs(self.task)
        for name in needed(graph):
            if name not in state.read:
                return f"look {name}"
        return f"answer {graph.answer}" if graph.answer is not None else f"abstain {graph.missing}"

    def demonstrate(self, state: DeduceState, rng: Random) -> str:
        """Looks at too much, and guesses now and then."""
        graph, luck = _graphs(self.task), rng.random()
        if luck < 0.08:
            return rng.choice([said for said in self.admissible(state) if not said.startswith("look")])
        return f"look {rng.choice(graph.shown)}" if luck < 0.25 else self.gold(state)

    def potential(self, state: DeduceState) -> float:
        """The share of what must be read that has been read; 0 where all was told."""
        wanted = needed(_graphs(self.task))
        if self.task.options["told"]:
            return 0.0
        return sum(name in state.read for name in wanted) / len(wanted)

    def admissible(self, state: DeduceState) -> Sequence[str]:
        graph = _graphs(self.task)
        values = COLOURS if self.task.options["family"] == "rules" else map(str, range(_PLAIN_ANSWERS))
        looks, silences = ([f"{verb} {name}" for name in graph.shown] for verb in ("look", "abstain"))
        return [*looks, *(f"answer {value}" for value in values), *silences]

    def state_key(self, state: DeduceState) -> str:
        return digest(state.task, sorted(state.read))


_graphs: WorldCache[DeduceGraph] = WorldCache(lambda task: graph_of(task.options))


def _plain(said: str) -> str:
    """A number as it is written most.

    >>> _plain("+7"), _plain("007"), _plain("red")
    ('7', '7', 'red')
    """
    return str(int(said)) if said.removeprefix("-").removeprefix("+").isdecimal() else said
