"""``turnwise/ShopHuman-v0``: predict, page by page, what a described person does next in the shop (Shop-R1)."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple

import pydantic

from turnwise.envs.core import AgentEnv, End, Kind, Transition
from turnwise.envs.messages import Message
from turnwise.envs.shop.engine import clickables
from turnwise.envs.shop.goals import draw_task, world_of
from turnwise.envs.shop.human.personas import Persona, draw_persona
from turnwise.envs.shop.human.reward import Act, Layers, layers, same
from turnwise.envs.shop.human.sessions import LONGEST, SEARCH, Moment, habit, play
from turnwise.envs.shop.knobs import knobs_of
from turnwise.envs.shop.pages import render
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, canonical, derive_rng, digest
from turnwise.tools.calls import parse_hermes
from turnwise.tools.core import ToolCall, ToolError, find_tool, tool
from turnwise.tools.reading import load_json, value_end

ENV = "turnwise/ShopHuman-v0"
_OWN = ("whim",)


def click(name: str) -> None:
    """The person clicks something on the page: a product, an option or a button."""


def type_and_submit(name: str, text: str) -> None:
    """The person types a text into the field called name, and submits it."""


def terminate() -> None:
    """The person leaves the shop."""


class HumanKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """What a suite may set beside the shop's own knobs."""

    whim: float = pydantic.Field(0.1, ge=0, le=1)  # how often a person does anything but the usual


class Session(NamedTuple):
    persona: Persona
    moments: tuple[Moment, ...]


class Watching(NamedTuple):
    """How far the session was watched, and how many predictions were exactly right, and of the right type."""

    task: str
    place: int = 0
    exact: int = 0
    typed: int = 0


class ShopHumanEnv(AgentEnv[Watching]):
    """One prediction per turn; then the page on which the person really came is shown.

    The outcome, at the end, is the share of predictions that were exactly right. ``hierarchy`` weighs Shop-R1's
    layers, paid at each turn, and ``scale`` is its difficulty scale D. What cannot be read is answered with why,
    and may be said again, a few times.
    """

    system = (
        "You watch a person in a web shop. Predict the next action of this person on the page that you see. Answer "
        'with JSON: {"rationale": "…", "action": {"type": "click", "name": "…"}}, or with the action '
        '{"type": "type_and_submit", "name": "search", "text": "…"} or {"type": "terminate"}. '
        "Then you see what the person did, and the next page."
    )
    tools = (tool(click), tool(type_and_submit), tool(terminate))
    ledger: Mapping[str, Kind] = {"outcome": Kind.OUTCOME, **dict.fromkeys(Layers._fields, Kind.STEP)}
    turn_limit = LONGEST + 5
    floor: ClassVar[float] = 0.02
    blocking: ClassVar[bool] = False

    def __init__(
        self,
        *,
        shaping: float = 0.0,
        hierarchy: float = 1.0,
        scale: float = 10.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.hierarchy, self.scale = hierarchy, scale

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        own = {name: knobs.pop(name) for name in _OWN if name in knobs}
        chosen = check_knobs(HumanKnobs, own, "shopper")
        shopping = draw_task(rng, split, knobs_of(knobs))
        options = {**shopping.options, "wish": shopping.prompt, "whim": chosen.whim}
        options |= {"query": shopping.gold["query"], "seed": digest(shopping.id, rng.getrandbits(62))}
        options["turn_limit"] = cls.turn_limit
        persona = _persona(options["seed"])
        return Task(ENV, f"{persona.describe()}\nThe wish: {shopping.prompt}", options)

    def initial(self, task: Task) -> tuple[Watching, str]:
        session = session_of(task)
        return Watching(task.id), f"{task.prompt}\n\n{render(session.moments[0].shop)}"

    def transition(self, state: Watching, action: Message) -> Transition[Watching]:
        predicted = read_act(action, self.tools)
        moments = session_of(self.task).moments
        done = moments[state.place].act
        paid = layers(predicted, done, self.scale)
        after = Watching(
            state.task,
            state.place + 1,
            state.exact + same(predicted, done),
            state.typed + (predicted.type == done.type),
        )
        rewards = (
            {name: self.hierarchy * part for name, part in paid._asdict().items()} if self.hierarchy else {}
        )
        told = f"The person did: {write_act(done)}"
        if after.place < len(moments):
            return Transition(after, f"{told}\n\n{render(moments[after.place].shop)}", rewards)
        share = after.exact / len(moments)
        end = End.SOLVED if after.exact == len(moments) else End.FAILED
        details = {"exact": share, "type": after.typed / len(moments), "actions": len(moments)}
        return Transition(after, f"{told}\nThe session is over.", {"outcome": share, **rewards}, end, details)

    def gold(self, state: Watching) -> str:
        return write_act(session_of(self.task).moments[state.place].act)

    def demonstrate(self, state: Watching, rng: Random) -> str:
        """Predicts the average shopper, whoever it is."""
        moment = session_of(self.task).moments[state.place]
        return write_act(habit(Persona(), moment.shop, moment.mind))

    def potential(self, state: Watching) -> float:
        """The share of the session that was predicted exactly so far."""
        return state.exact / len(session_of(self.task).moments)

    def admissible(self, state: Watching) -> Sequence[str]:
        shop = session_of(self.task).moments[state.place].shop
        acts = [Act("click", name) for name in clickables(shop)]
        goal = shop.world.goal
        acts.append(Act("type_and_submit", SEARCH, " ".join((*goal.attributes, *goal.nouns))))
        return [write_act(act) for act in (*acts, Act("terminate"))]

    def state_key(self, state: Watching) -> str:
        return digest(*state)


def read_act(action: Message, tools: Sequence[Any]) -> Act:
    """A prediction: a tool call, or the JSON of Shop-R1.

    Raises:
        ToolError: it is neither.
    """
    calls, text = action.tool_calls, action.content
    if not calls and "<tool_call>" in text:
        parsed = parse_hermes(text)
        if parsed.error is not None:
            raise ToolError(parsed.error)
        calls = parsed.calls
    if not calls:
        calls = (_json_call(text),)
    if len(calls) != 1:
        raise ToolError("Predict one action.")
    found = find_tool(tools, calls[0].name)
    return Act(found.spec.name, **found.validate(calls[0]))  # pyright: ignore[reportArgumentType]


def write_act(act: Act) -> str:
    """The JSON of an action.

    >>> write_act(Act("click", "buy now"))
    '{"action":{"name":"buy now","type":"click"}}'
    """
    return canonical({"action": {name: part for name, part in act._asdict().items() if part}})


def _json_call(text: str) -> ToolCall:
    begin = text.find("{")
    said = load_json(text[begin : value_end(text, begin)]) if begin >= 0 else None
    named: Mapping[str, Json] | None = said.get("action") if isinstance(said, dict) else None
    if not isinstance(named, dict) or not isinstance(named.get("type"), str):
        example = json.dumps({"rationale": "…", "action": {"type": "click", "name": "…"}}, ensure_ascii=False)
        raise ToolError(f"No prediction found. Answer with JSON such as {example}.")
    return ToolCall(named["type"], {name: value for name, value in named.items() if name != "type"})


def session_of(task: Task) -> Session:
    """What the person of this task did.

    Raises:
        EnvError: the task is no shopper's.
    """
    try:
        return _session(canonical(dict(task.options)))
    except KeyError as error:
        raise EnvError(f"This is no task of {ENV}: {error}.", "Take tasks from a shop-human suite.") from None


@functools.lru_cache(maxsize=1024)
def _session(written: str) -> Session:
    """The session that a task's options, as JSON, describe."""
    options = json.loads(written)
    world = world_of(Task(ENV, options["wish"], options, {"query": options["query"]}))
    persona = _persona(options["seed"])
    rng = derive_rng(ENV, "session", options["seed"])
    return Session(persona, play(world, persona, options["whim"], rng))


def _persona(seed: str) -> Persona:
    return draw_persona(derive_rng(ENV, "persona", seed))
