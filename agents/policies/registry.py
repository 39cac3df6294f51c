"""Policies by their spec: ``scripted:gold``, ``vllm:PATH``, ``openai:MODEL@URL``, ``human``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast, get_args

from turnwise.agents.core import Engine, Policy, Sampling
from turnwise.errors import MissingDependencyError, NotFoundError, TurnwiseError

if TYPE_CHECKING:
    from turnwise.agents.policies.model import ModelPolicy

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_LONGEST_CONTEXT = 8192


class Options(NamedTuple):
    """What a caller may ask of any policy; those that cannot use an option leave it."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 0  # of one message; 0: as a model was trained, or 256
    context_length: int = 0  # tokens; 0: what the model was made for, at most 8192
    max_sequences: int = 64
    seed: int = 0
    tools: str = ""  # how tools are shown to a model (Renderer's tools_format); "": as it was trained

    def sampling(self, trained: int = Sampling().max_tokens) -> Sampling:
        """How tokens are drawn of a model that was trained with messages of at most ``trained`` tokens."""
        return Sampling(self.temperature, self.top_p, self.max_tokens or trained)


class PolicyKind(NamedTuple):
    """A way to play: the form of its spec, what it is, and how it is made of the part after the colon."""

    spec: str
    about: str
    make: Callable[[str, Options], Policy]
    scripts: bool = False  # made of scripts, so that making it costs nothing


def make_policy(spec: str, **options: object) -> Policy:
    """The policy that a spec names; ``options`` are the fields of :class:`Options`.

    >>> make_policy("scripted:echo").name
    'scripted:echo'

    Raises:
        NotFoundError: no such kind of policy, or no such script.
        TurnwiseError: the model is not there or cannot be loaded.
    """
    entry, target = _parsed(spec)
    return entry.make(target, Options(**options))  # pyright: ignore[reportArgumentType]


def check_spec(spec: str) -> None:
    """Refuse a spec that names no kind of policy, or no script; models are not looked for.

    Raises:
        TurnwiseError: with the nearest name, or the remedy.
    """
    entry, target = _parsed(spec)
    if entry.scripts:
        entry.make(target, Options())


def _parsed(spec: str) -> tuple[PolicyKind, str]:
    kind, _, target = spec.partition(":")
    if kind not in POLICIES:
        raise NotFoundError("kind of policy", kind, POLICIES)
    entry = POLICIES[kind]
    if ":" in entry.spec and not target:
        raise TurnwiseError(f"The policy {spec!r} is not complete.", f"Write {entry.spec}.")
    return entry, target


def find_model(name: str) -> str:
    """The folder of a model (of a run: its best on dev), or its Hugging Face id.

    Raises:
        TurnwiseError: it is a path at which there is no model.
    """
    path = Path(name).expanduser()
    for folder in (path, path / "best" / "model"):
        if (folder / "config.json").is_file():
            return str(folder)
    if path.exists():
        inside = sorted(str(found.parent) for found in path.glob("**/config.json"))[:3]
        remedy = f"Inside it: {', '.join(inside)}." if inside else "A model's folder has a config.json."
        raise TurnwiseError(f"{name} holds no model.", remedy)
    if not _HUB_ID.fullmatch(name) or ("/" in name and path.parent.is_dir()):
        raise TurnwiseError(
            f"There is no model folder {name}.", "Give a folder with a config.json, or a Hugging Face id."
        )
    return name


def model_policy(
    kind: str, name: str, make_engine: Callable[[str, int], Engine], options: Options
) -> ModelPolicy:
    """A model behind its own tokeniser's chat template.

    Raises:
        TurnwiseError: the model's folder or id has no config or tokeniser that can be read.
    """
    try:
        from transformers import AutoConfig, AutoTokenizer
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "transformers is not installed.", "Run `python3 scripts/install.py`."
        ) from error

    from turnwise.agents.policies.model import ModelPolicy, read_habits
    from turnwise.agents.renderer import Renderer
    from turnwise.agents.template import ToolsFormat

    model = find_model(name)
    try:
        config = AutoConfig.from_pretrained(model).get_text_config()
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError, json.JSONDecodeError) as error:
        text = " ".join(str(error).split())[:200]
        remedy = "Give an existing folder, or an id that Hugging Face (or its cache on this machine) has."
        raise TurnwiseError(f"The model {name!r} cannot be loaded: {text}", remedy) from error
    most = getattr(config, "max_position_embeddings", _LONGEST_CONTEXT)
    context = options.context_length or min(most, _LONGEST_CONTEXT)
    habits = read_habits(model)
    tools = options.tools or habits.tools_format
    if tools not in get_args(ToolsFormat):
        raise NotFoundError("way to show tools", tools, get_args(ToolsFormat))
    renderer = Renderer(tokenizer, tools_format=cast(ToolsFormat, tools))
    sampling = options.sampling(habits.max_tokens)
    return ModelPolicy(make_engine(model, context), renderer, sampling, name=f"{kind}:{name}")


def _scripted(name: str, options: Options) -> Policy:
    from turnwise.agents.policies.scripted import scripted

    return scripted(name)


def _mixture(target: str, options: Options) -> Policy:
    from turnwise.agents.policies.mixture import mixture

    return mixture(target)


def _human(_: str, options: Options) -> Policy:
    from turnwise.agents.policies.human import HumanPolicy

    return HumanPolicy()


def _openai(target: str, options: Options) -> Policy:
    from turnwise.agents.policies.openai import OpenAIPolicy

    model, _, url = target.partition("@")
    return OpenAIPolicy(model, url, sampling=options.sampling())


def _torch(name: str, options: Options) -> Policy:
    def engine(model: str, context: int) -> Engine:
        from turnwise.agents.policies.torch import TorchEngine

        return TorchEngine(model, context_length=context, max_sequences=options.max_sequences)

    return model_policy("torch", name, engine, options)


def _vllm(name: str, options: Options) -> Policy:
    def engine(model: str, context: int) -> Engine:
        from turnwise.agents.policies.vllm import VllmEngine

        return VllmEngine(
            model, context_length=context, max_sequences=options.max_sequences, seed=options.seed
        )

    return model_policy("vllm", name, engine, options)


POLICIES: Mapping[str, PolicyKind] = {
    "scripted": PolicyKind(
        "scripted:NAME", "gold, or a floor: null, constant, echo, random, ...", _scripted, True
    ),
    "mix": PolicyKind("mix:NAME=W,NAME=W", "Scripts drawn anew before each turn, by weight.", _mixture, True),
    "vllm": PolicyKind("vllm:PATH_OR_ID", "A language model sampled by vLLM in this process.", _vllm),
    "torch": PolicyKind("torch:PATH_OR_ID", "A language model sampled by plain PyTorch.", _torch),
    "openai": PolicyKind("openai:MODEL@URL", "Any OpenAI-compatible server (OPENAI_API_KEY).", _openai),
    "human": PolicyKind("human", "You, in the terminal.", _human),
}
"""Every kind of policy, by the word before the colon of its spec."""
