"""Our suites as tasks of inspect_ai (0.3), which plays and logs them with any of its models.

    import turnwise.envs.offered.inspect_task as offered
    inspect_ai.eval(offered.inspect_task("shop/easy", 50), model="openai/…")

The score is the reward of the whole episode; the sample's metadata say why it ended.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from turnwise.envs.messages import Message, Messages
from turnwise.envs.offered.rows import task_rows
from turnwise.envs.offered.session import OfferedEpisode
from turnwise.errors import MissingDependencyError
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall

if TYPE_CHECKING:
    from inspect_ai import Task  # pyright: ignore


def inspect_task(suite: str, n: int, *, split: Split = Split.TEST, start: int = 0) -> Task:
    """A task of inspect_ai: the tasks ``start … start + n − 1`` of a suite as samples, each played to its end.

    Raises:
        NotFoundError: there is no such suite.
        MissingDependencyError: inspect_ai is not installed.
    """
    try:
        from inspect_ai import Task  # pyright: ignore
        from inspect_ai.dataset import Sample  # pyright: ignore
        from inspect_ai.scorer import Score, mean, scorer, stderr  # pyright: ignore
        from inspect_ai.solver import solver  # pyright: ignore
    except ImportError as error:
        raise MissingDependencyError(
            f"inspect_ai cannot be imported: {error}.", "pip install inspect-ai"
        ) from error

    @solver
    def play() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            with contextlib.closing(OfferedEpisode(suite, int(state.metadata["index"]), split)) as episode:
                return await _played(state, episode)

        return solve

    @scorer(metrics=[mean(), stderr()])
    def reward() -> Any:
        async def score(state: Any, target: Any) -> Any:
            return Score(value=state.metadata["reward"], explanation=state.metadata["end"])

        return score

    samples = [
        Sample(
            input=_told(Messages(Message(one["role"], one["content"]) for one in row.prompt)),  # type: ignore[arg-type]
            id=row.index,
            metadata={"index": row.index, "task": row.task, "hash": row.hash},
        )
        for row in task_rows(suite, n, split=split, start=start)
    ]
    return Task(dataset=samples, solver=play(), scorer=reward(), name=suite.replace("/", "-"))


async def _played(state: Any, episode: OfferedEpisode) -> Any:
    from inspect_ai.model import get_model  # pyright: ignore
    from inspect_ai.tool import ToolInfo  # pyright: ignore

    model = get_model()
    while not episode.end and not state.completed:
        tools = [ToolInfo.model_validate(tool.spec.to_json()["function"]) for tool in episode.tools]
        state.output = await model.generate(state.messages, tools=tools)
        said = state.output.message
        state.messages.append(said)
        calls = [ToolCall(call.function, call.arguments, call.id) for call in said.tool_calls or ()]
        unread = next((call.parse_error for call in said.tool_calls or () if call.parse_error), "")
        heard = episode.play(Message("assistant", said.text, tuple(calls), malformed=unread or ""))
        state.messages += _told(heard)
    state.metadata |= {"reward": episode.reward, "end": episode.end}
    return state


def _told(messages: Messages) -> list[Any]:
    from inspect_ai.model import ChatMessageSystem, ChatMessageTool, ChatMessageUser  # pyright: ignore

    kinds: dict[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return [
        ChatMessageTool(content=one.content, tool_call_id=one.tool_call_id)
        if one.role == "tool"
        else kinds[one.role](content=one.content)
        for one in messages
    ]
