"""docs/api.md, the reference of all public names, written from their docstrings: ``python -m turnwise.api_page``."""

from __future__ import annotations

import enum
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import turnwise

HEAD = """\
# API reference

Everything that a program may use is a name of `turnwise` itself; it is loaded when it is first used. Deeper modules
are for those who add components ([architecture](architecture.md)) and may change.

```python
import turnwise

print(turnwise.evaluate("shop/easy", "scripted:gold", episodes=4).success)
```

Functions that wait (`train`, `evaluate`, `rollout`, `replay`) run an event loop of their own. In a notebook or an async
function, where one is running, await the function of the same name with `_async`.

"""
FOOT = "This page is generated (`python -m turnwise.api_page`); a test keeps it up to date.\n"

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Train, evaluate, compare": (
        "train", "train_async", "evaluate", "evaluate_async", "compare", "rollout", "rollout_async", "replay",
        "replay_async", "load_episodes", "load_recipe", "explain",
    ),
    "Environments, tasks and policies": (
        "make", "make_policy", "make_search", "get_suite", "suite_task", "suite_tasks",
    ),
    "Agents of any kind": ("gateway", "session", "Gateway", "OpenSession", "SessionMaker"),
    "Add your own": ("register", "register_suite", "component", "tool"),
    "What is written by authors": ("AgentEnv", "Policy", "Engine"),
    "What comes back": (
        "TrainingResult", "CheckpointEvaluation", "Evaluation", "Interval", "Cause", "ReplyFigures", "ProgramFigures",
        "SearchFigures", "Comparison", "Episodes", "ReplayReport", "Difference",
    ),
    "Episodes": (
        "Episode", "Trajectory", "Turn", "Act", "Outcome", "EndReason", "ForkCost", "History", "Reply", "TurnPlace", "MemoryMark", "Served", "Finish",
        "Usage", "FaultCause", "Party", "VersionSpan", "Record", "EnvVersion", "EpisodeLog", "LoggedEnv",
    ),
    "Environments": ("Transition", "Step", "Info", "RewardKind", "Snapshot", "Message", "Messages", "Image", "Guard"),
    "Tasks and tools": ("Task", "Suite", "Split", "Tool", "ToolSpec", "ToolCall", "Verbatim", "Json"),
    "Sampling": ("Sampling", "Completion", "Limits", "PolicyOptions", "PolicyLike", "Spending", "WorkerPool", "EpisodeSearch"),
    "Recipes and their parts": (
        "Recipe", "RecipeLike", "Group", "TurnBatch", "TurnTree", "TokenView", "TokenBatch", "TokenLoss", "TokenCredit", "RowMask",
        "TeacherTop", "WholeBatch", "WholeLoss", "ScheduleMoment", "PartState",
    ),
    "Errors": (
        "TurnwiseError", "NotFoundError", "EnvError", "RecipeError", "RunError", "ToolError", "TooManyFailedError",
    ),
}  # fmt: skip
"""Every public name, by what it is for."""

_PARAGRAPHS = {"Args:", "Attributes:", "Returns:", "Raises:"}


def page() -> str:
    """The page."""
    contents = "".join(
        f"- **{title}**: {', '.join(f'[`{name}`](#{_anchor(name)})' for name in names)}\n"
        for title, names in SECTIONS.items()
    )
    return HEAD + contents + "".join(_sections()) + "\n" + FOOT


def _anchor(name: str) -> str:
    return f"api-{name.lower()}" if name[0].isupper() else f"api-function-{name}"


def _sections() -> Iterator[str]:
    for title, names in SECTIONS.items():
        yield f"\n## {title}\n"
        for name in names:
            yield f'\n### <a id="{_anchor(name)}"></a>`{name}`\n\n'
            yield from _entry(name, getattr(turnwise, name))


def _entry(name: str, thing: Any) -> Iterator[str]:
    if name.endswith("_async"):
        yield f"The arguments and the result of [`{name.removesuffix('_async')}`]"
        yield f"(#{_anchor(name.removesuffix('_async'))}), to be awaited.\n"
        return
    if inspect.isfunction(thing):
        yield f"```python\n{name}{_signature(thing)}\n```\n\n"
    yield _prose(inspect.getdoc(thing) or "" if _is_own(thing) else _alias(thing))
    if inspect.isclass(thing):
        yield from _members(thing)


def _is_own(thing: Any) -> bool:
    return getattr(thing, "__module__", "").startswith("turnwise")


def _alias(thing: Any) -> str:
    if thing is Any:
        return "A value that ``json.dumps`` accepts: None, bool, int, float, str, list or dict of such."
    union = typing.get_origin(thing) in (typing.Union, types.UnionType)
    names = [_short(inspect.formatannotation(each)) for each in (get_args(thing) if union else (thing,))]
    return f"A name for {' | '.join(f'``{name}``' for name in names)}."


def _short(text: str) -> str:
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)


def _written(annotation: Any) -> str:
    """An annotation as its author wrote it; NamedTuples keep theirs as references."""
    return annotation.__forward_arg__ if isinstance(annotation, typing.ForwardRef) else str(annotation)


def _signature(function: Any) -> str:
    """Parameters, one a line where they are many, and the result."""
    signature = inspect.signature(inspect.unwrap(function))
    rows: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for at, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.KEYWORD_ONLY not in kinds[:at]:
            rows += [] if parameter.VAR_POSITIONAL in kinds[:at] else ["*"]
        rows.append(_parameter(parameter))
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.POSITIONAL_ONLY not in kinds[at + 1 :]:
            rows.append("/")
    inline = f"({', '.join(rows)}) -> {signature.return_annotation}"
    if len(inline) <= 90:
        return inline
    return "(\n" + "".join(f"    {row},\n" for row in rows) + f") -> {signature.return_annotation}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = parameter.default
    shown = (
        f" = {type(default).__name__}.{default.name}" if isinstance(default, enum.Enum) else f" = {default!r}"
    )
    written = f"{stars}{parameter.name}: {_short(str(parameter.annotation))}"
    return written if default is parameter.empty else written + shown


def _members(cls: type) -> Iterator[str]:
    """A class's values, fields that its docstring does not explain, and public methods."""
    if issubclass(cls, enum.Enum):
        yield "\nOne of " + ", ".join(f"`{member.name}`" for member in cls) + ".\n"
        return
    fields = [name for name in inspect.get_annotations(cls) if name[0] != "_"]
    documented = inspect.getdoc(cls) or ""
    if (
        fields
        and "Attributes:" not in documented
        and "Args:" not in documented
        and not typing.is_typeddict(cls)
    ):
        listed = ", ".join(f"`{name}: {_short(_written(cls.__annotations__[name]))}`" for name in fields)
        yield f"\nFields: {listed}.\n"
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if name[0] == "_" or not inspect.isfunction(function) or not (said := inspect.getdoc(function)):
            continue
        form = name if isinstance(member, property) else f"{name}{_without_self(function)}"
        yield f"\n- `{form}`: {_inline(said.partition(chr(10) * 2)[0])}"
    yield "\n"


def _without_self(function: Any) -> str:
    names = [
        str(p).partition(":")[0].partition("=")[0] for p in inspect.signature(function).parameters.values()
    ]
    return f"({', '.join(name for name in names if name not in ('self', 'cls'))})"


def _inline(text: str) -> str:
    text = re.sub(
        r":[a-z]+:`~?([^`]+)`", lambda role: f"`{role[1].rpartition('.')[2]}`", " ".join(text.split())
    )
    return text.replace("``", "`")


def _prose(text: str) -> str:
    """A docstring as Markdown: paragraphs, lists of arguments, examples as code."""
    blocks = re.split(r"\n\s*\n", text.strip())
    written: list[str] = []
    for block in blocks:
        first, _, rest = block.partition("\n")
        if block.startswith(">>>"):
            written.append(f"```python\n{block}\n```")
        elif first in _PARAGRAPHS:
            written.append(f"**{first}**\n\n{_listed(inspect.cleandoc(rest))}")
        elif written and block.startswith("    "):
            written[-1] = written[-1].removesuffix("::") + (":" if written[-1].endswith("::") else "")
            written.append(f"```python\n{inspect.cleandoc(block)}\n```")
        else:
            written.append(_inline(block))
    return "\n\n".join(written) + "\n"


def _listed(text: str) -> str:
    """The entries of an Args paragraph, one an item; a paragraph as it is."""
    items = re.split(r"\n(?=\S)", text)
    if not all(re.match(r"[\w, *]+: ", item) for item in items):
        return _inline(text)
    return "\n".join(
        f"- `{name}`: {_inline(said)}" for name, _, said in (item.partition(": ") for item in items)
    )


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/api.md")
    target.write_text(page(), "utf-8")
    print(f"wrote {target}")
