"""Turnwise: agentic multi-turn environments, and trainers that assign credit turn by turn."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from turnwise.when_imported import when_imported

__version__ = "0.2.0"

if TYPE_CHECKING:
    from turnwise.agents.core import (
        Act,
        Completion,
        Engine,
        Episode,
        Finish,
        History,
        MemoryMark,
        Outcome,
        Policy,
        Reply,
        Sampling,
        Served,
        Trajectory,
        Turn,
        TurnPlace,
        Usage,
        VersionSpan,
    )
    from turnwise.agents.evaluation.evaluate import Evaluation, TooManyFailedError, evaluate, evaluate_async
    from turnwise.agents.evaluation.failures import Cause
    from turnwise.agents.evaluation.programs import ProgramFigures
    from turnwise.agents.evaluation.replies import ReplyFigures
    from turnwise.agents.evaluation.searched import SearchFigures
    from turnwise.agents.evaluation.spending import Spending
    from turnwise.agents.evaluation.statistics import Interval
    from turnwise.agents.hosting.in_process import Gateway, OpenSession, SessionMaker, gateway, session
    from turnwise.agents.log.episode_log import EpisodeLog
    from turnwise.agents.log.episodes import Episodes, load_episodes
    from turnwise.agents.log.records import EnvVersion, Record
    from turnwise.agents.policies.options import PolicyOptions
    from turnwise.agents.policies.own import PolicyLike
    from turnwise.agents.policies.registry import make_policy
    from turnwise.agents.replay import Difference, ReplayReport, replay, replay_async
    from turnwise.agents.rollout import Limits
    from turnwise.agents.rollout_tasks import EpisodeSearch, rollout, rollout_async
    from turnwise.agents.workers.pool import WorkerPool
    from turnwise.envs.core import (
        AgentEnv,
        EndReason,
        ForkCost,
        Guard,
        Info,
        RewardKind,
        Snapshot,
        Step,
        Transition,
    )
    from turnwise.envs.messages import Image, Message, Messages
    from turnwise.envs.registry import get_suite, make, register, register_suite, suite_task, suite_tasks
    from turnwise.envs.trust import LoggedEnv
    from turnwise.errors import EnvError, NotFoundError, RecipeError, RunError, TurnwiseError
    from turnwise.fault import FaultCause, Party
    from turnwise.registry import component
    from turnwise.tasks.core import Json, Split, Suite, Task
    from turnwise.tools.core import Tool, ToolCall, ToolError, ToolSpec, Verbatim, tool
    from turnwise.trainers.compare.comparison import Comparison, compare
    from turnwise.trainers.core import (
        Group,
        PartState,
        RowMask,
        ScheduleMoment,
        TeacherTop,
        TokenBatch,
        TokenCredit,
        TokenLoss,
        TokenView,
        TurnBatch,
        TurnTree,
        WholeBatch,
        WholeLoss,
    )
    from turnwise.trainers.recipe.explain import explain
    from turnwise.trainers.recipe.load import RecipeLike, load_recipe
    from turnwise.trainers.recipe.schema import Recipe
    from turnwise.trainers.run.loop import train, train_async
    from turnwise.trainers.run.progress import CheckpointEvaluation, TrainingResult
    from turnwise.trainers.search.run import make_search

_HOMES = {
    "turnwise.agents.core": (
        "Act", "Completion", "Engine", "Episode", "Finish", "History", "Outcome", "Policy", "Reply", "Sampling", "Served",
        "MemoryMark", "Trajectory", "Turn", "TurnPlace", "Usage", "VersionSpan",
    ),
    "turnwise.agents.evaluation.spending": ("Spending",),
    "turnwise.agents.evaluation.evaluate": ("Evaluation", "TooManyFailedError", "evaluate", "evaluate_async"),
    "turnwise.agents.evaluation.failures": ("Cause",),
    "turnwise.agents.evaluation.programs": ("ProgramFigures",),
    "turnwise.envs.trust": ("LoggedEnv",),
    "turnwise.agents.evaluation.replies": ("ReplyFigures",),
    "turnwise.agents.evaluation.searched": ("SearchFigures",),
    "turnwise.agents.evaluation.statistics": ("Interval",),
    "turnwise.agents.hosting.in_process": ("Gateway", "OpenSession", "SessionMaker", "gateway", "session"),
    "turnwise.agents.log.episode_log": ("EpisodeLog",),
    "turnwise.agents.log.episodes": ("Episodes", "load_episodes"),
    "turnwise.agents.log.records": ("EnvVersion", "Record"),
    "turnwise.agents.policies.options": ("PolicyOptions",),
    "turnwise.agents.policies.own": ("PolicyLike",),
    "turnwise.agents.policies.registry": ("make_policy",),
    "turnwise.agents.replay": ("Difference", "ReplayReport", "replay", "replay_async"),
    "turnwise.agents.rollout": ("Limits",),
    "turnwise.agents.rollout_tasks": ("EpisodeSearch", "rollout", "rollout_async"),
    "turnwise.agents.workers.pool": ("WorkerPool",),
    "turnwise.envs.core": ("AgentEnv", "EndReason", "ForkCost", "Guard", "Info", "RewardKind", "Snapshot", "Step", "Transition"),
    "turnwise.envs.messages": ("Image", "Message", "Messages"),
    "turnwise.envs.registry": (
        "get_suite", "make", "register", "register_suite", "suite_task", "suite_tasks",
    ),
    "turnwise.errors": ("EnvError", "NotFoundError", "RecipeError", "RunError", "TurnwiseError"),
    "turnwise.fault": ("FaultCause", "Party"),
    "turnwise.tasks.core": ("Json", "Split", "Suite", "Task"),
    "turnwise.tools.core": ("Tool", "ToolCall", "ToolError", "ToolSpec", "Verbatim", "tool"),
    "turnwise.trainers.compare.comparison": ("Comparison", "compare"),
    "turnwise.trainers.core": (
        "Group", "PartState", "RowMask", "ScheduleMoment", "TeacherTop", "TokenBatch", "TokenCredit", "TokenLoss",
        "TokenView", "TurnBatch", "TurnTree", "WholeBatch", "WholeLoss",
    ),
    "turnwise.trainers.recipe.explain": ("explain",),
    "turnwise.trainers.recipe.load": ("RecipeLike", "load_recipe"),
    "turnwise.trainers.recipe.schema": ("Recipe",),
    "turnwise.registry": ("component",),
    "turnwise.trainers.search.run": ("make_search",),
    "turnwise.trainers.run.loop": ("train", "train_async"),
    "turnwise.trainers.run.progress": ("CheckpointEvaluation", "TrainingResult"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Act",
    "AgentEnv",
    "Cause",
    "CheckpointEvaluation",
    "Comparison",
    "Completion",
    "Difference",
    "EndReason",
    "Engine",
    "EnvError",
    "EnvVersion",
    "Episode",
    "EpisodeLog",
    "EpisodeSearch",
    "Episodes",
    "Evaluation",
    "FaultCause",
    "Finish",
    "ForkCost",
    "Gateway",
    "Group",
    "Guard",
    "History",
    "Image",
    "Info",
    "Interval",
    "Json",
    "Limits",
    "LoggedEnv",
    "MemoryMark",
    "Message",
    "Messages",
    "NotFoundError",
    "OpenSession",
    "Outcome",
    "PartState",
    "Party",
    "Policy",
    "PolicyLike",
    "PolicyOptions",
    "ProgramFigures",
    "Recipe",
    "RecipeError",
    "RecipeLike",
    "Record",
    "ReplayReport",
    "Reply",
    "ReplyFigures",
    "RewardKind",
    "RowMask",
    "RunError",
    "Sampling",
    "ScheduleMoment",
    "SearchFigures",
    "Served",
    "SessionMaker",
    "Snapshot",
    "Spending",
    "Split",
    "Step",
    "Suite",
    "Task",
    "TeacherTop",
    "TokenBatch",
    "TokenCredit",
    "TokenLoss",
    "TokenView",
    "TooManyFailedError",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolSpec",
    "TrainingResult",
    "Trajectory",
    "Transition",
    "Turn",
    "TurnBatch",
    "TurnPlace",
    "TurnTree",
    "TurnwiseError",
    "Usage",
    "Verbatim",
    "VersionSpan",
    "WholeBatch",
    "WholeLoss",
    "WorkerPool",
    "compare",
    "component",
    "evaluate",
    "evaluate_async",
    "explain",
    "gateway",
    "get_suite",
    "load_episodes",
    "load_recipe",
    "make",
    "make_policy",
    "make_search",
    "register",
    "register_suite",
    "replay",
    "replay_async",
    "rollout",
    "rollout_async",
    "session",
    "suite_task",
    "suite_tasks",
    "tool",
    "train",
    "train_async",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Names load on first use, so that `import turnwise` and `turnwise --help` stay light.
    if name in _HOME_OF:
        from turnwise.extras import needing

        home = _HOME_OF[name]
        with needing(f"turnwise.{name}", extra="train" if home.startswith("turnwise.trainers.") else ""):
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'turnwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


# Last, since plugins import from here. gymnasium.make knows our ids in either order of imports; to import it here
# would cost a quarter of a second.
when_imported("gymnasium", lambda: importlib.import_module("turnwise.envs"))
