"""Requirements of models with a short name: config, tokeniser, weights and a chat template that can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turnwise.agents.models.finding import find_model
from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require, says_what_it_is


def _folder(entry: Component) -> str:
    if entry.lacking:
        raise NotTested(f"{', '.join(entry.lacking)} is not installed.")
    found = find_model(entry.name)
    if not Path(found).is_dir():
        raise NotTested(f"It is {found}, which only the Hub has.")
    return found


def is_a_model(entry: Component) -> str:
    """A folder with a config, a tokeniser that fits it, and weights in safetensors."""
    from turnwise.agents.models.loading import load_config, load_tokenizer
    from turnwise.agents.models.vocabulary import check_rows

    folder = _folder(entry)
    config: Any = load_config(folder)
    check_rows(load_tokenizer(folder), config.get_text_config().vocab_size, folder)
    require([*Path(folder).glob("*.safetensors")], f"{folder} holds no weights in safetensors.")
    return f"{config.model_type} in {folder}"


def is_found_again(entry: Component) -> None:
    """The same folder each time: whatever it makes, it makes once."""
    require(_folder(entry) == _folder(entry), "It was another folder the second time.")


def reads_chats(entry: Component) -> str:
    """Its chat template writes a question as a prompt, whose text its tokeniser gives back."""
    from turnwise.agents.models.loading import load_tokenizer
    from turnwise.agents.policies.model import ChatFormat, make_renderer
    from turnwise.envs.messages import Message

    folder = _folder(entry)
    renderer = make_renderer(load_tokenizer(folder), folder, ChatFormat())
    ids = renderer.start([Message("user", "How many eggs?")], ())
    require("How many eggs?" in renderer.tokenizer.decode([*ids]), "The prompt does not hold the question.")
    return f"{len(ids)} tokens"


REQUIREMENTS: dict[str, Requirements] = {
    "model": {
        "says what it is": says_what_it_is,
        "is a model": is_a_model,
        "is found again": is_found_again,
        "reads chats": reads_chats,
    }
}
