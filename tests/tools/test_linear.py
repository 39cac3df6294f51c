"""Reading calls takes work in proportion to the text: characters and calls are counted, nothing is timed."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from turnwise.tools import calls, reading
from turnwise.tools.core import ToolError, ToolSpec, tool
from turnwise.tools.dialects import glm, harmony, hermes, llama, mistral, pythonic, qwen_xml, tags
from turnwise.tools.dialects.hostile import REPEATED, UNCLOSED
from turnwise.tools.dialects.registry import dialects, read_calls
from turnwise.tools.notations import LONGEST, read_written

MODULES = (reading, calls, glm, harmony, hermes, llama, mistral, pythonic, qwen_xml, tags)
SPECS = (ToolSpec("search", "", {"type": "object", "properties": {"query": {"type": "string"}}}),)


def search(query: str) -> str:
    """Look words up."""
    return query


class Meter:
    """Counts what is done: characters that are copied or looked at, and calls of functions."""

    work = 0


class Text(str):
    """A text that notes on the meter what is done with it."""

    __slots__ = ("meter",)
    meter: Meter

    @classmethod
    def of(cls, text: str, meter: Meter) -> Text:
        made = cls(text)
        made.meter = meter
        return made

    def _new(self, text: str) -> Text:
        self.meter.work += len(text)
        return Text.of(text, self.meter)

    def __getitem__(self, key: Any) -> Text:
        return self._new(super().__getitem__(key))

    def find(self, what: str, begin: Any = 0, *end: Any) -> int:
        found = super().find(what, begin, *end)
        self.meter.work += (found if found >= 0 else len(self)) - begin
        return found

    def index(self, what: str, begin: Any = 0, *end: Any) -> int:
        found = super().index(what, begin, *end)
        self.meter.work += found - begin
        return found

    def strip(self, what: str | None = None) -> Text:
        self.meter.work += len(self)
        return self._new(super().strip(what))

    def rstrip(self, what: str | None = None) -> Text:
        return self._new(super().rstrip(what))

    def lstrip(self, what: str | None = None) -> Text:
        return self._new(super().lstrip(what))

    def removeprefix(self, what: str) -> Text:
        return self._new(super().removeprefix(what))

    def removesuffix(self, what: str) -> Text:
        return self._new(super().removesuffix(what))

    def partition(self, mark: str) -> tuple[Text, Text, Text]:
        before, found, after = map(self._new, super().partition(mark))
        return before, found, after

    def rpartition(self, mark: str) -> tuple[Text, Text, Text]:
        before, found, after = map(self._new, super().rpartition(mark))
        return before, found, after


class Noted:
    """A pattern that notes how far it read."""

    def __init__(self, pattern: re.Pattern[str], meter: Meter) -> None:
        self.pattern, self.meter = pattern, meter

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.pattern, name)

        def call(*arguments: Any) -> Any:
            text, begin = arguments[-1] if name == "sub" else arguments[0], 0
            begin = arguments[1] if name != "sub" and len(arguments) > 1 else 0
            if name == "finditer":
                return self.one_by_one(text, begin)
            if name == "sub":
                self.meter.work += len(text)
                return method(*arguments)
            found = method(*arguments)
            read = found.end() if found else len(text) if name == "search" else begin
            self.meter.work += read - begin
            return found

        return call

    def one_by_one(self, text: str, begin: int) -> Iterator[re.Match[str]]:
        for found in self.pattern.finditer(text, begin):
            self.meter.work += found.end() - begin
            begin = found.end()
            yield found
        self.meter.work += len(text) - begin


@contextlib.contextmanager
def metered(modules: tuple[ModuleType, ...]) -> Iterator[Meter]:
    """Counts calls of functions and what the modules' patterns read."""
    meter = Meter()

    def note(_: object, event: str, __: object) -> None:
        meter.work += event in ("call", "c_call")

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name, value in list(vars(module).items()):
                if isinstance(value, re.Pattern):
                    patch.setattr(module, name, Noted(value, meter))
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            yield meter
        finally:
            sys.setprofile(before)


def work_of(text: str) -> int:
    with metered(MODULES) as meter:
        for dialect in dialects():
            dialect.parse(Text.of(text, meter), SPECS)
    return meter.work


@pytest.mark.parametrize("shape", [*REPEATED, *UNCLOSED])
def test_twice_the_text_is_twice_the_work(shape: str) -> None:
    make = {**REPEATED, **UNCLOSED}[shape]
    once, twice = work_of(make(300)), work_of(make(600))
    assert twice <= 2.2 * once + 2000
    assert once <= 60 * len(make(300)) + 20_000


def test_the_meter_sees_a_copy_of_the_rest_for_every_call() -> None:
    def wasteful(text: str) -> None:
        place = 0
        while text[place:].strip():
            place += 3

    def work(n: int) -> int:
        with metered(()) as meter:
            wasteful(Text.of("f{}" * n, meter))
        return meter.work

    assert work(2000) > 3.5 * work(1000)


@pytest.mark.slow
@pytest.mark.parametrize("shape", UNCLOSED)
def test_a_million_hostile_characters_are_read(shape: str) -> None:
    """What tries all ways of dividing the text would take hours here, and hang the test."""
    make = UNCLOSED[shape]
    text = make(1_000_000 // (len(make(2)) - len(make(1))))
    read_calls(text, SPECS)
    with contextlib.suppress(ToolError):
        read_written(text, [tool(search)])
        read_written(text[:LONGEST], [tool(search)])


@pytest.mark.slow
@pytest.mark.parametrize("shape", REPEATED)
def test_thousands_of_calls_are_read(shape: str) -> None:
    read_calls(REPEATED[shape](5_000), SPECS)
