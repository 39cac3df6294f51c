"""τ²-bench's side: its environments and its evaluator, between an agent and a user who both play elsewhere."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import gc
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing it asks the network

from loguru import logger  # type: ignore[import-not-found]

logger.remove()

from tau2.agent.llm_agent import LLMAgent  # type: ignore[import-not-found]
from tau2.config import DEFAULT_MAX_ERRORS, DEFAULT_MAX_STEPS  # type: ignore[import-not-found]
from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage  # type: ignore[import-not-found]
from tau2.data_model.simulation import SimulationRun, TerminationReason  # type: ignore[import-not-found]
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation  # type: ignore[import-not-found]
from tau2.orchestrator.orchestrator import DEFAULT_FIRST_AGENT_MESSAGE  # type: ignore[import-not-found]
from tau2.registry import registry  # type: ignore[import-not-found]
from tau2.user.user_simulator import UserSimulator  # type: ignore[import-not-found]

DOMAINS = ("airline", "retail", "telecom")
# An episode reads a data base of 7 MB several times: looking through it for garbage takes half of all its time.
gc.freeze()
gc.set_threshold(100_000, 50, 50)
KINDS = {"agent": AssistantMessage, "user": UserMessage}
ROLES = {"agent": "assistant", "user": "user"}


class Tau2Side:
    """One conversation; steps and errors are counted as its orchestrator counts them."""

    def open(self, options: dict[str, Any]) -> dict[str, Any]:
        """Begin a task: the agent has said hello, and the user is asked."""
        self.domain = options["domain"]
        self.task = next(task for task in _tasks(self.domain) if task.id == options["id"])
        self.env = registry.get_env_constructor(self.domain)()
        state = self.task.initial_state
        if state is not None and state.message_history:
            raise ValueError(f"task {self.task.id} begins in the middle of a conversation")
        self.env.set_state(state and state.initialization_data, state and state.initialization_actions, [])
        self.messages: list[Any] = [DEFAULT_FIRST_AGENT_MESSAGE.model_copy()]
        self.speaker, self.steps, self.errors, self.told = "user", 0, 0, set()
        return self._to("user", {"text": self.messages[0].content})

    def step(self, act: dict[str, Any]) -> dict[str, Any]:
        """Words go to the other one, calls to the environment, whose answer comes back."""
        calls = [
            ToolCall(id=f"{len(self.messages)}_{n}", name=call["name"], arguments=call["arguments"], requestor=ROLES[self.speaker])
            for n, call in enumerate(act.get("calls", []))
        ]  # fmt: skip
        if not calls and not act["text"].strip():
            return {"refused": "Say something, or make a call."}
        said = KINDS[self.speaker](
            role=ROLES[self.speaker], content=act["text"] or None, tool_calls=calls or None
        )
        self.messages.append(said)
        self.steps += 1
        if calls:
            answers = [self.env.get_response(call) for call in calls]
            self.env.sync_tools()  # a call that failed has not done it
            self.messages += answers
            self.steps += 1
            self.errors += sum(answer.error for answer in answers)
            if self.errors >= DEFAULT_MAX_ERRORS:
                return self._over(TerminationReason.TOO_MANY_ERRORS)
            told = {"results": [answer.content for answer in answers]}
            then = self.speaker
        else:
            if self.speaker == "user" and UserSimulator.is_stop(said):
                return self._over(TerminationReason.USER_STOP)
            told = {"text": act["text"]}
            then = "agent" if self.speaker == "user" else "user"
        return (
            self._over(TerminationReason.MAX_STEPS)
            if self.steps >= DEFAULT_MAX_STEPS
            else self._to(then, told)
        )

    def gold(self) -> list[Any]:
        """Its own actions, each done by the one who does it there; then the agent says what must be said, and the user stops."""
        criteria = self.task.evaluation_criteria
        acts: list[Any] = ["Hello, I need help."]
        speaker = "agent"
        for action in criteria.actions or []:
            doer = "user" if action.requestor == "user" else "agent"
            if doer != speaker:
                acts.append("Please go on.")
            speaker = doer
            acts.append({"calls": [{"name": action.name, "arguments": action.arguments}]})
        acts += ["That is done."] if speaker == "user" else []
        return [*acts, " ".join([*(criteria.communicate_info or []), "All is done."]), "###STOP###"]

    def list(self, asked: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
        """The names of the tasks of each domain, by its published lists."""
        return {name: registry.get_task_splits_loader(name)() for name in DOMAINS}

    def _to(self, agent: str, told: dict[str, Any]) -> dict[str, Any]:
        self.speaker = agent
        if agent in self.told:
            return {"agent": agent, **told}
        self.told.add(agent)
        tools, specs = self._offered(agent)
        if agent == "agent":
            system = LLMAgent(tools, self.env.get_policy()).system_prompt
        else:
            system = UserSimulator(tools=tools, instructions=str(self.task.user_scenario)).system_prompt
        return {"agent": agent, **told, "system": system, "tools": specs}

    def _offered(self, agent: str) -> tuple[Any, list[Any]]:
        """An agent's tools and how they are described: the same in all tasks of a domain, and dear to make."""
        if (self.domain, agent) not in _offers:
            if agent == "agent":
                tools = self.env.get_tools()
            else:
                tools = self.env.get_user_tools() if self.env.user_tools is not None else None
            specs = [tool.openai_schema["function"] for tool in tools or []]
            _offers[self.domain, agent] = tools, specs
        return _offers[self.domain, agent]

    def _over(self, why: Any) -> dict[str, Any]:
        run = SimulationRun(
            id="0", task_id=self.task.id, start_time="", end_time="", duration=0.0, termination_reason=why, messages=self.messages
        )  # fmt: skip
        found = evaluate_simulation(run, self.task, EvaluationType.ALL, False, self.domain)
        parts = {
            str(getattr(name, "value", name)): value for name, value in (found.reward_breakdown or {}).items()
        }
        end = (
            "turn_limit"
            if why == TerminationReason.MAX_STEPS
            else "solved"
            if found.reward >= 1.0
            else "failed"
        )
        return {
            "text": "",
            "rewards": {"outcome": float(found.reward)},
            "end": end,
            "details": {"parts": parts, "why": why.value},
        }


_known: dict[str, list[Any]] = {}
_offers: dict[tuple[str, str], tuple[Any, list[Any]]] = {}


def _tasks(domain: str) -> list[Any]:
    if domain not in _known:
        _known[domain] = registry.get_tasks_loader(domain)(None)
    return _known[domain]


SIDE = Tau2Side
