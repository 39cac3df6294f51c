"""From paths to the answer: opens the log, the model and those beside it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from turnwise.agents.models.finding import find_model
from turnwise.agents.models.loading import ADAPTER, load_causal, load_tokenizer
from turnwise.agents.models.vocabulary import end_ids, read_json
from turnwise.errors import TurnwiseError
from turnwise.trainers.mismatch.case import MismatchModels, prepare
from turnwise.trainers.mismatch.core import PLAIN, DeclaredSampling, LoggedRow, MismatchReport
from turnwise.trainers.mismatch.deciding import decide
from turnwise.trainers.mismatch.reading import read_rows
from turnwise.trainers.mismatch.templates import OwnTemplate

READ = 20_000
"""Tokens of the log that are read, unless another number is asked for."""
OLDER = 4
"""So many checkpoints before the one that is named are tried by themselves."""
_AT = re.compile(r"(.+)@(best|\d+)")


def mismatch(
    log: Path | str,
    model: str,
    *,
    adapter: str | None = None,
    also: Sequence[str] = (),
    declared: DeclaredSampling = PLAIN,
    engine_dtype: Literal["float32", "bfloat16", "float16"] | None = None,
    version: int | None = None,
    tokens: int = READ,
) -> MismatchReport:
    """Name the fault for which a log differs from a model, or ``none``.

    Args:
        log: JSON lines of any framework, an episode log of ours, or the folder of a run or evaluation.
        model: a folder, ``RUN@best``, ``RUN@40``, a registered name or a Hugging Face id: the weights that should have sampled.
        adapter: the folder of an adapter that the model should have had.
        also: other models that may have sampled, such as older checkpoints.
        declared: settings of rows that declare none.
        engine_dtype: the precision in which the engine computed, where that is known.
        version: only rows that these weights sampled, as the log believes; with ``RUN@40`` those of 40, where it has some.
        tokens: how much of the log is read.

    Raises:
        TurnwiseError: the log or a model cannot be read, or they do not belong together.
    """
    rows = _of_version(read_rows(Path(log), declared), model, version)
    models = open_models(model, adapter, also)
    if engine_dtype is not None:
        models = models._replace(engine_dtype=_dtype(engine_dtype))
    return examine(rows, models, tokens)


def _of_version(rows: list[LoggedRow], model: str, version: int | None) -> list[LoggedRow]:
    """Keep the rows of one version of the weights, where one is meant."""
    found = _AT.fullmatch(model)
    meant = version if version is not None else int(found[2]) if found and found[2] != "best" else None
    kept = [row for row in rows if row.version == meant]
    if meant is None or (not kept and version is None):
        return rows
    if not kept:
        known = sorted({row.version for row in rows if row.version is not None})
        told = ", ".join(map(str, known[:12])) or "none"
        raise TurnwiseError(f"No row is of version {version}.", f"The log knows the versions: {told}.")
    return kept


def examine(rows: Sequence[LoggedRow], models: MismatchModels, tokens: int = READ) -> MismatchReport:
    """Name the fault of rows that were read, with models that are open."""
    size = int(models.model.get_input_embeddings().num_embeddings)
    for row in rows:
        beyond = next((one for one in row.ids if one >= size), None)
        if beyond is not None:
            raise TurnwiseError(
                f"Row {row.number + 1} has the token {beyond}, and the model has those from 0 to {size - 1}.",
                "Name the model that the log was made with; its tokeniser is another one.",
            )
    case, notes = prepare(rows, models, tokens)
    return decide(case, notes)


def open_models(model: str, adapter: str | None, also: Sequence[str]) -> MismatchModels:
    """Load the model and its tokeniser; those beside it are loaded when they are asked."""
    path = located(model)
    if adapter is None and (Path(path) / ADAPTER).is_file():
        adapter, path = path, str(read_json(path, ADAPTER).get("base_model_name_or_path") or "")
        path = find_model(path)
    loaded = load_causal(path, _float32()).eval()
    tokenizer = load_tokenizer(path)
    without = None
    if adapter is not None:
        loaded, without = _with_adapter(loaded, adapter), functools.partial(_load, path)
    others = {name: located(name) for name in also} | _older(model, also)
    return MismatchModels(
        loaded,
        tokenizer,
        without,
        {name: functools.partial(_load, where) for name, where in others.items()},
        ends_of(tokenizer, end_ids(path)),
    )


def ends_of(tokenizer: Any, known: Sequence[int]) -> tuple[int, ...]:
    """The tokens that end a turn, the template's own first."""
    own = OwnTemplate(tokenizer).end
    eos = tokenizer.eos_token_id
    return tuple(
        dict.fromkeys([*([own] if own is not None else []), *([eos] if isinstance(eos, int) else []), *known])
    )


def located(name: str) -> str:
    """The folder of a model; of a run's checkpoint where its update is named.

    Raises:
        TurnwiseError: there is none.
    """
    found = _AT.fullmatch(name)
    if found is None or not Path(found[1]).is_dir():
        return find_model(name)
    run, at = Path(found[1]), found[2]
    step = run / "best" if at == "best" else run / "checkpoints" / f"step-{int(at):06d}"
    if not (step / "model" / "config.json").is_file():
        known = ", ".join(f"@{n}" for n in _saved(run)) or "none"
        raise TurnwiseError(
            f"{run} has no checkpoint @{at}.", f"It has: {known}. `checkpoint.keep` of a recipe keeps more."
        )
    return str(step / "model")


def _saved(run: Path) -> list[int]:
    return sorted(
        int(path.name[5:]) for path in (run / "checkpoints").glob("step-*") if path.name[5:].isdigit()
    )


def _older(model: str, also: Sequence[str]) -> dict[str, str]:
    """The checkpoints just before the one that is named, by their names."""
    found = _AT.fullmatch(model)
    if found is None or found[2] == "best" or not Path(found[1]).is_dir():
        return {}
    older = [n for n in _saved(Path(found[1])) if n < int(found[2])][-OLDER:]
    names = [f"{found[1]}@{n}" for n in reversed(older)]
    return {name: located(name) for name in names if name not in also}


def _load(path: str) -> Any:
    return load_causal(path, _float32()).eval()


def _float32() -> Any:
    return _dtype("float32")


def _dtype(name: str) -> Any:
    import torch

    return getattr(torch, name)


def _with_adapter(model: Any, adapter: str) -> Any:
    """Merge an adapter into a model.

    Raises:
        TurnwiseError: it is none, or of another model.
    """
    from peft import PeftModel

    if not (Path(adapter) / ADAPTER).is_file():
        raise TurnwiseError(f"{adapter} holds no adapter.", f"Name the folder with {ADAPTER}.")
    try:
        return PeftModel.from_pretrained(model, adapter).merge_and_unload().eval()
    except Exception as error:  # peft and torch refuse an adapter of another model in many ways
        said = " ".join(str(error).split())[:200]
        raise TurnwiseError(
            f"{adapter} is no adapter of this model: {said}", "Name the base model that it was trained on."
        ) from error
