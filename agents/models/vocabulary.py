"""Tokens of a model according to its own files: which of them end a reply, and how many it knows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

from turnwise.errors import TurnwiseError

GENERATION, CONFIG = "generation_config.json", "config.json"


def end_ids(model: str | Path) -> tuple[int, ...]:
    """The tokens with which a model ends a reply, as its config and its generation config say.

    Templates and tokenisers name one of them; a model that calls tools often ends a call with another one.
    """
    found = {one for name in (GENERATION, CONFIG) for one in _ends(read_json(model, name))}
    return tuple(sorted(found))


def keep_ends(model: Any, ends: Collection[int]) -> None:
    """Let a loaded model know the tokens that end a reply, so that whoever serves it from its folder stops there too."""
    config = getattr(model, "generation_config", None)
    if config is not None:
        config.eos_token_id = sorted(ends)


def write_generation_config(folder: Path, model: Any) -> None:
    """Write how a model is sampled from beside its weights, as its authors wrote it."""
    config = getattr(model, "generation_config", None)
    if config is not None:  # not by its own method, which refuses what some authors wrote
        text = json.dumps(config.to_diff_dict(), indent=2, sort_keys=True)
        (folder / GENERATION).write_text(f"{text}\n", "utf-8")


def _ends(said: dict[str, Any]) -> Iterator[int]:
    for part in (said, said.get("text_config")):
        given = cast("dict[str, Any]", part).get("eos_token_id") if isinstance(part, dict) else None
        for one in given if isinstance(given, list) else [given]:
            if isinstance(one, int) and one >= 0 and not isinstance(one, bool):
                yield one


def read_json(model: str | Path, name: str) -> dict[str, Any]:
    """A JSON file of a model's folder, or of the Hub; empty where there is none."""
    path = Path(model) / name
    if not Path(model).exists():
        from transformers.utils.hub import cached_file

        try:
            found = cached_file(str(model), name, _raise_exceptions_for_missing_entries=False)
        except OSError:
            found = None
        path = Path(found) if found else path
    if not path.is_file():
        return {}
    try:
        read = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise TurnwiseError(
            f"{path} is no JSON: {str(error)[:100]}.", "Fetch the model's folder again, or mend the file."
        ) from None
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {}


def check_rows(tokenizer: Any, rows: int, model: str | Path) -> None:
    """Refuse a tokeniser with tokens that the model has no embedding for, if text or a chat template can write them.

    An engine reads beyond its table then, or fails in mid-run. Rows beyond the tokeniser (padding) are no harm, nor are special
    tokens that nothing writes.

    Raises:
        TurnwiseError: with the first of them and the remedy.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    if max(vocabulary.values(), default=0) < rows:
        return
    template = tokenizer.chat_template or ""
    source = template if isinstance(template, str) else "\n".join(template.values())
    special = {str(one) for one in tokenizer.added_tokens_decoder.values() if one.special}
    beyond = sorted(
        (number, text)
        for text, number in vocabulary.items()
        if number >= rows and (text not in special or text in source or text == tokenizer.eos_token)
    )
    if beyond:
        number, text = beyond[0]
        more = f" and {len(beyond) - 1} more" if len(beyond) > 1 else ""
        raise TurnwiseError(
            f"The tokeniser of {model} has the token {text!r} with the id {number}{more}, and the model has rows for {rows} "
            f"tokens (0 to {rows - 1}).",
            "Enlarge its embeddings and save it again: model.resize_token_embeddings(len(tokenizer)); or use the tokeniser "
            "that it was trained with.",
        )
