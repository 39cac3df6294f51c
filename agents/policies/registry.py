"""Policies by their spec: ``scripted:gold``, ``vllm:PATH``, ``openai:MODEL@URL``, ``human``.

The word before the colon names a component of the kind ``policy``, a function ``(target, options) → Policy`` that is
given what stands after it; or one of the kind ``engine``, which then samples from the model that stands there.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnwise.agents.core import Policy
from turnwise.agents.engines.registry import open_engine
from turnwise.agents.models.finding import find_model
from turnwise.agents.policies.options import PolicyOptions, options_of
from turnwise.agents.tokens.template import check_tools_format
from turnwise.envs.baselines import SCRIPTS
from turnwise.errors import TurnwiseError
from turnwise.extras import needing
from turnwise.registry import Component, components, likely_component, not_found

if TYPE_CHECKING:
    from turnwise.agents.policies.model import ModelPolicy

_LONGEST_CONTEXT = 8192
_MEBIBYTE = 1 << 20


def make_policy(spec: str, **options: object) -> Policy:
    """The policy that a spec names. Close it (``policy.close()``) where it holds a model.

    >>> make_policy("scripted:echo").name
    'scripted:echo'

    Args:
        spec: such as ``scripted:gold``, ``vllm:PATH``, ``openai:MODEL@URL``, ``my_module:act`` or
            ``path/to/file.py:act`` (`turnwise list policy`).
        options: the fields of :class:`PolicyOptions`, such as ``temperature=0.0``; those that cannot use one leave it. They
            may also stand after the spec, as in a recipe: ``openai:MODEL@URL {reasoning_effort: high}``.

    Returns:
        The policy, ready to play.

    Raises:
        NotFoundError: no such kind of policy, or no such script.
        TurnwiseError: the model is not there or cannot be loaded.
    """
    spec, own = spec_options(spec)
    entry, target = _parsed(spec)
    asked = options_of({**options, **own})
    if entry.kind == "engine":
        return _engine_policy(entry, target, asked)
    if asked.template and not asked.model:
        raise TurnwiseError(
            f"Options of a chat template ({', '.join(asked.template)}) are for a model that is sampled here, and {spec!r} is none.",
            "A server has its own way to be told; vLLM's is chat_template_kwargs.",
        )
    if asked.context and not entry.told_context:
        raise TurnwiseError(
            f"A context manager ({asked.context['name']}) chooses what a model is shown, and {spec!r} is none.",
            "Leave it out, or name a model: vllm:PATH, openai:MODEL@URL.",
        )
    return entry.target(target, asked)


def check_spec(spec: str) -> None:
    """Refuse a spec that names no kind of policy, or no script; models are not looked for.

    Raises:
        TurnwiseError: with the nearest name, or the remedy.
    """
    spec, own = spec_options(spec)
    entry, target = _parsed(spec)
    options = options_of(own)
    if entry.costless:
        entry.target(target, options)


def spec_options(spec: str) -> tuple[str, dict[str, Any]]:
    """A spec without the options that stand in it, and these.

    >>> spec_options("openai:o3@https://host/v1 {reasoning_effort: high}")
    ('openai:o3@https://host/v1', {'reasoning_effort': 'high'})

    Raises:
        TurnwiseError: they cannot be read.
    """
    if not spec.endswith("}") or " {" not in spec:
        return spec, {}
    import yaml  # where options are told this way

    from turnwise.plain_yaml import read_yaml

    plain, _, text = spec.partition(" {")
    try:
        options: Any = read_yaml("{" + text)
    except yaml.YAMLError:
        options = None
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise TurnwiseError(
            f"The options of the policy {plain!r} cannot be read.",
            "Write them as OPTION: VALUE in braces, such as {reasoning_effort: high}.",
        )
    return plain.rstrip(), options


def fingerprint(spec: str) -> str:
    """A hash of the files that decide how a policy plays (weights, source); empty where there are none here.

    Of each file, name, size, and first and last mebibyte: weights that were trained on differ there.

    Raises:
        TurnwiseError: it names no policy, or files that are not there.
    """
    files = files_of(spec)
    if not files:
        return ""
    text = hashlib.blake2b(digest_size=8)
    for path in sorted(files):
        size = path.stat().st_size
        text.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            text.update(file.read(_MEBIBYTE))
            file.seek(max(0, size - _MEBIBYTE))
            text.update(file.read(_MEBIBYTE))
    return text.hexdigest()


def files_of(spec: str) -> list[Path]:
    """The files that decide how a policy plays; none where they are elsewhere.

    Raises:
        TurnwiseError: it names no policy, or files that are not there.
    """
    entry, target = _parsed(spec_options(spec)[0])
    return _model_files(target) if entry.kind == "engine" else entry.files(target) if entry.files else []


def _model_files(name: str) -> list[Path]:
    folder = Path(find_model(name.partition("@")[0]))
    return [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []


def policies() -> list[Component]:
    """All that can play: policies, and the engines that sample from a model."""
    return [*components("policy"), *components("engine")]


def spec_form(entry: Component) -> str:
    """Return the form in which a component's spec is written; an engine that runs elsewhere is named with its address.

    >>> from turnwise.registry import get_component
    >>> spec_form(get_component("engine", "torch")), spec_form(get_component("policy", "human"))
    ('torch:PATH_OR_ID', 'human')
    """
    if entry.kind == "engine" and "urls" in entry.options:
        return f"{entry.name}:PATH_OR_ID@URL"
    return f"{entry.name}:PATH_OR_ID" if entry.kind == "engine" else entry.form or entry.name


def _parsed(spec: str) -> tuple[Component, str]:
    kind, _, target = spec.partition(":")
    if spec in SCRIPTS:
        raise TurnwiseError(f"The policy {spec!r} names no kind.", f"Write scripted:{spec}.")
    entry = _quickly(kind)
    if entry is None:
        known = {entry.name: entry for entry in reversed(policies())}
        if kind not in known and _names_own(spec):
            kind, target = "python", spec
        if kind not in known and kind.endswith(".py"):
            raise TurnwiseError(
                f"{kind} is a file, and which policy in it is meant is not said.", f"Write {kind}:NAME."
            )
        if kind not in known:
            raise not_found("kind of policy", kind, known)
        entry = known[kind]
    form = spec_form(entry)
    if ":" in form and not target:
        raise TurnwiseError(f"The policy {spec!r} is not complete.", f"Write {form}.")
    return entry, target


def _quickly(kind: str) -> Component | None:
    """A policy or an engine of ours; nothing is imported that is not needed for it."""
    found = (likely_component(family, kind) for family in ("policy", "engine"))
    return next(filter(None, found), None)


def _names_own(spec: str) -> bool:
    """Say whether a spec names the place of a policy: ``path/to/file.py:object``, or ``module:object``."""
    where, _, name = spec.rpartition(":")
    if where.endswith(".py") or not all(part.isidentifier() for part in where.split(".")):
        return where.endswith(".py") and name != ""
    from turnwise.envs.sources import look_here

    look_here()
    try:
        return importlib.util.find_spec(where) is not None
    except (ImportError, ValueError):
        return False


def _engine_policy(entry: Component, name: str, options: PolicyOptions) -> ModelPolicy:
    """A model that the engine samples from, behind its own tokeniser's chat template.

    Raises:
        TurnwiseError: the model's folder or id has no config or tokeniser that can be read.
    """
    with needing(f"a model in this process ({entry.name}:{name})"):
        import transformers  # noqa: F401  # pyright: ignore[reportUnusedImport]

    from turnwise.agents.models.hub import reach
    from turnwise.agents.models.loading import load_config, load_tokenizer, longest_sequence
    from turnwise.agents.models.vocabulary import check_rows
    from turnwise.agents.policies.model import ModelPolicy, make_renderer, read_chat_format

    folder, _, url = name.partition("@") if "urls" in entry.options else (name, "", "")
    model = reach(find_model(folder))
    config, tokenizer = load_config(model), load_tokenizer(model)
    check_rows(tokenizer, config.get_text_config().vocab_size, model)
    context = options.context_length or min(longest_sequence(config) or _LONGEST_CONTEXT, _LONGEST_CONTEXT)
    trained = read_chat_format(model)
    chat_format = trained._replace(
        tools_format=options.tools or trained.tools_format,
        instruction=options.instruction or trained.instruction,
        template={**trained.template, **options.template},
        clock=trained.clock or options.clock,
        context=options.context or trained.context,
    )
    check_tools_format(chat_format.tools_format)
    renderer = make_renderer(tokenizer, model, chat_format)
    asked: dict[str, object] = {"context_length": context, "max_sequences": options.max_sequences}
    asked |= {"seed": options.seed, "urls": [url] if url else [], "token_file": options.token_file}
    engine = open_engine(entry.name, model, **{key: asked[key] for key in asked if key in entry.options})
    sampling = options.sampling(chat_format.max_tokens)
    return ModelPolicy(engine, renderer, sampling, name=f"{entry.name}:{name}")
