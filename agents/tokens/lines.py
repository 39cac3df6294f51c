"""Lines that a tokeniser reads alone as it reads them in a text, so that those that come again are tokenised once.

Between a line that ends in a printable ASCII character and a next one that begins with such a character, the known patterns that cut a
text into words always cut: no word goes from a line feed on to what follows it, and none looks beyond. So the tokens of the text are those
of its lines. That holds for byte-level BPE with one of these patterns; for any other tokeniser nothing is known, and nothing is cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

LINE_ENDS: Final = re.compile(r"(?<=[!-~]\n)(?=[!-~])")
LEAST: Final = 512
"""Characters of a text from which on it is cut: each line is a call of the tokeniser."""

_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|NUMBER| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
KNOWN_PATTERNS: Final = tuple(_PATTERN.replace("NUMBER", number) for number in (r"\p{N}", r"\p{N}{1,3}"))
"""Of Qwen2, and of GPT-4 and Llama 3; GPT-2's stands in the step ``ByteLevel`` itself."""


def reads_lines_alone(spec: Mapping[str, Any]) -> bool:
    """Return whether a tokeniser, as its file describes it, has the same tokens for a text as for its lines."""
    normalizer, model = spec["normalizer"], spec["model"]
    if normalizer is not None and normalizer["type"] != "NFC":
        return False
    if model["type"] != "BPE" or model.get("dropout") or model.get("continuing_subword_prefix"):
        return False
    if any(
        "\n" in token["content"] or token["lstrip"] or token["rstrip"] or token["single_word"]
        for token in spec["added_tokens"]
    ):
        return False
    first: Mapping[str, Any] = spec["pre_tokenizer"] or {"type": ""}
    steps: Sequence[Mapping[str, Any]] = first["pretokenizers"] if first["type"] == "Sequence" else [first]
    return all(map(_is_known, steps)) and any(map(_cuts_words, steps))


def _is_known(step: Mapping[str, Any]) -> bool:
    if step["type"] == "ByteLevel":
        return not step["add_prefix_space"]
    return step["type"] == "Digits" or _cuts_words(step)


def _cuts_words(step: Mapping[str, Any]) -> bool:
    if step["type"] == "Split":
        isolated = step["behavior"] == "Isolated" and not step["invert"]
        return isolated and step["pattern"].get("Regex") in KNOWN_PATTERNS
    return step["type"] == "ByteLevel" and bool(step.get("use_regex", True))
