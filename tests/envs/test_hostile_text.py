"""What worlds read of messages: patterns that never try text twice, reading exactly what the plain patterns did.

What tries all ways of dividing these texts would take hours, and hang the test; nothing is timed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.envs.code import actions as code_acts
from turnwise.envs.lab.tasks import _SIGNS
from turnwise.envs.messages import Message, without_guidance
from turnwise.envs.search import actions as search_acts
from turnwise.envs.small.actions import _LINE, read_action
from turnwise.tools.calculator import calculate
from turnwise.tools.core import ToolError, tool


def swap(first: int, second: int) -> None:
    """Swap two."""


def searched(text: str) -> object:
    return search_acts.read_call(Message("assistant", text))


def coded(text: str) -> object:
    return code_acts.read(Message("assistant", text))


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (calculate, "1" * 1900 + "x"),
        (calculate, "(" * 60 + "1." * 600 + "x"),
        (lambda text: read_action(Message("assistant", text), [tool(swap)]), "swap" + " " * 19_000 + "x"),
        (lambda text: read_action(Message("assistant", text), [tool(swap)]), "a" + " a" * 9_000 + "\x01"),
        (searched, "<search>" * 2000),
        (searched, "<answer>" + "<search> " * 2000),
        (coded, "submit" + "\t" * 90_000 + "x\x01"),
        (coded, "submit a" + " \t" * 40_000 + "b"),
        (without_guidance, "<guidance>" * 100_000),
        (without_guidance, " " * 1_000_000),
        (lambda text: _SIGNS.sub(r" \1 ", text), "x" + " " * 1_000_000 + "y"),
    ],
)
def test_hostile_text_is_read_or_refused(read: Callable[[str], object], text: str) -> None:
    with contextlib.suppress(ToolError):
        read(text)


some_text = st.lists(
    st.sampled_from(["submit", "swap", "a", "b", " ", "  ", "\t", ".", ",", ":", "(", "<guidance>", "</guidance>", "<search>",
                     "</search>", "<answer>", "</answer>", "1"]), max_size=14,
).map("".join)  # fmt: skip


@given(some_text)
def test_signs_are_set_apart_as_the_plain_pattern_does(text: str) -> None:
    assert _SIGNS.sub(r" \1 ", text) == re.sub(r"\s*([.,;:()])\s*", r" \1 ", text)


@given(some_text)
def test_guidance_is_taken_out_as_the_plain_pattern_does(text: str) -> None:
    assert without_guidance(text) == re.sub(r"\s*<guidance>.*?</guidance>", "", text, flags=re.DOTALL)


@given(some_text)
def test_tags_are_found_as_the_plain_pattern_does(text: str) -> None:
    match = re.search(r"<(search|answer)>(.*?)</\1>", text, re.DOTALL)
    assert search_acts._tagged(text) == (match.groups() if match else None)


@given(some_text)
def test_a_line_is_taken_apart_as_the_plain_pattern_does(text: str) -> None:
    plain = re.fullmatch(r"\s*([a-z_]+)\s*(.*?)\s*\.?\s*", text, re.DOTALL)
    match = _LINE.fullmatch(text)
    assert (plain is None) == (match is None)
    if plain and match:
        assert plain.groups() == (match[1], match[2].rstrip().removesuffix(".").rstrip())


@given(some_text)
def test_a_verb_is_taken_apart_as_the_plain_pattern_does(text: str) -> None:
    plain = re.fullmatch(r"[ \t]*(test|run|submit)\b[ \t]*(.*?)[ \t]*", text, re.IGNORECASE)
    match = code_acts._VERB.fullmatch(text)
    assert (plain is None) == (match is None)
    if plain and match:
        assert plain.groups() == (match[1], match[2].rstrip(" \t"))
