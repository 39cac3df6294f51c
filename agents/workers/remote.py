"""An environment in a worker process, as an episode sees it."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Elsewhere, Fault
from turnwise.agents.workers.wire import WorkerAnswer, WorkerFacts
from turnwise.agents.workers.worker import Worker
from turnwise.envs.core import AgentEnv, EndReason, Snapshot, Step
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import Tool, ToolSpec

ASIDE_S = 60.0
"""Seconds for a question that a script asks beside the episode."""


class RemoteEnv(Elsewhere):
    """Stands for an environment in a worker process.

    What an episode calls is asked there (:meth:`ask`) and awaited. Scripts, which are privileged, may ask for anything
    else that its class has (``env.gold(env.state)``); that blocks.

    Args:
        cls: the environment's class.
        worker: the process.
        slot: its place there.
        on_close: called once it is closed.
    """

    def __init__(
        self, cls: type[AgentEnv[Any]], worker: Worker, slot: int, on_close: Callable[[RemoteEnv], None]
    ) -> None:
        self.cls, self.worker, self.slot = cls, worker, slot
        self.checkpoint: Snapshot[Any] | None = None
        self._on_close = on_close
        self._facts = WorkerFacts((), "", {})
        self._tools: Mapping[str, tuple[Tool, ...]] = {}
        self._task: Task | None = None
        self._seed, self._turn = 0, 0
        self._end: EndReason | None = None

    @property
    def usable(self) -> bool:
        """True if it can serve another episode."""
        return self.worker.usable and self.slot not in self.worker.stuck

    def serve(self, key: object) -> None:
        """Note that the environment now serves the episode ``key``."""
        self.worker.slots[self.slot] = key

    async def ask(self, method: str, seconds: float, *args: Any, **kwargs: Any) -> Any:
        if method == "close":
            return self.close()
        what = f"{method}() of {self.cls.__name__}"
        answer = await asyncio.wrap_future(self.worker.ask(self.slot, method, what, seconds, args, kwargs))
        return self._heard(method, answer, args, kwargs)

    def ask_now(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Ask, and wait for the answer."""
        what = f"{method}() of {self.cls.__name__}"
        answer = self.worker.ask(self.slot, method, what, ASIDE_S, args, kwargs).result()
        return self._heard(method, answer, args, kwargs)

    def close(self) -> None:
        """Leave the worker. Its environment is closed there, without waiting for it."""
        if self.slot in self.worker.slots:
            self.worker.ask(self.slot, "close", f"close() of {self.cls.__name__}", ASIDE_S, (), {})
            self._on_close(self)

    # --- what is known without asking ------------------------------------------------------------

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._facts.agents

    @property
    def agent(self) -> str:
        return self._facts.agent

    @property
    def calls_per_turn(self) -> int | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.cls.calls_per_turn

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        return self._tools[agent]

    @property
    def tools(self) -> tuple[Tool, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._tools[self.agent]

    @property
    def now(self) -> Snapshot[Any]:
        assert self._task is not None, "reset() comes first"
        return Snapshot(self._task, self._seed, self.state, self._turn, self._end)

    @property
    def task(self) -> Task:
        assert self._task is not None, "reset() comes first"
        return self._task

    def __getattribute__(self, name: str) -> Any:
        # What the class defines for its environments is asked there, not taken from the base class here.
        if name in _METHODS:
            return lambda *args, **kwargs: object.__getattribute__(self, "ask_now")(name, *args, **kwargs)
        if name in _VALUES:
            return object.__getattribute__(self, "ask_now")(name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        own = getattr(
            object.__getattribute__(self, "cls"), name
        )  # raises AttributeError with its class's name
        if callable(own):
            return lambda *args, **kwargs: self.ask_now(name, *args, **kwargs)
        return self.ask_now(name)

    # --- inside ----------------------------------------------------------------------------------

    def _heard(
        self, method: str, answer: WorkerAnswer, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        answer.raise_fault()
        try:
            value = pickle.loads(answer.value)
        except Exception as error:
            message = (
                f"what {method}() of {self.cls.__name__} gives cannot be read outside its worker process"
            )
            raise Fault(Outcome.ENV_ERROR, f"{message}: {type(error).__name__}: {error}") from error
        if answer.facts is not None:
            if answer.facts.tools != self._facts.tools:
                self._tools = {name: tuple(map(_shown, specs)) for name, specs in answer.facts.tools.items()}
            self._facts, self.checkpoint = answer.facts, answer.checkpoint
        match method:
            case "reset":
                self._task, self._seed = kwargs["options"]["task"], kwargs["seed"]
                self._turn, self._end = 0, None
            case "restore":
                (moment,) = args
                self._task, self._seed, self._turn, self._end = (
                    moment.task,
                    moment.seed,
                    moment.turn,
                    moment.end,
                )
            case "step":
                step: Step = value
                self._turn, self._end = step.info.get("turn", 0), step.info.get("end")
            case _:
                pass
        return value


_VALUES = frozenset({"state", "system", "reward_components", "turn_limit", "observation_limit", "shaping"})
_METHODS = frozenset(
    {
        "gold",
        "demonstrate",
        "recorded",
        "admissible",
        "potential",
        "state_key",
        "current_agent",
        "system_for",
        "generate",
    }
)


def _shown(spec: ToolSpec) -> Tool:
    """A tool that can be shown and not run: it runs in the worker."""

    def elsewhere(*_: Any, **__: Any) -> Any:
        raise EnvError(f"The tool {spec.name} runs in a worker process.", "Call it through step().")

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
        return dict(arguments)

    return Tool(spec, elsewhere, check)
