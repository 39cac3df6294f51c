"""Errors name the line that their author can fix."""

import importlib
import sys

import pytest

from turnwise.blame import AuthorError, authors_place, describe, place, written_at
from turnwise.envs.craft.env import CraftEnv
from turnwise.errors import EnvError, InfraError

HELPER = """
import json

def fall(text):
    return json.loads(text)
"""
ENV = """
from helpers import fall

class Base:
    def inherited(self):
        return [].pop()

class Thing(Base):
    def direct(self):
        raise ValueError("two\\nlines")

    def below(self):
        fall("{")

    def again(self):
        try:
            self.direct()
        except ValueError as error:
            raise KeyError("x") from error
"""


@pytest.fixture
def thing(tmp_path, monkeypatch):
    """A class in a file of its own, beside a module that it uses."""
    folder = tmp_path / "word_chain"
    folder.mkdir()
    (folder / "helpers.py").write_text(HELPER)
    (folder / "thing.py").write_text(ENV)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("thing").Thing
    for name in ("thing", "helpers"):
        sys.modules.pop(name, None)


def caught(call, *args) -> BaseException:
    with pytest.raises(BaseException) as raised:  # noqa: PT011
        call(*args)
    return raised.value


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ("direct", "word_chain/thing.py:10"),
        ("below", "word_chain/helpers.py:5"),
        ("inherited", "word_chain/thing.py:6"),
        ("again", "word_chain/thing.py:19"),
    ],
)
def test_the_deepest_line_of_the_authors(thing, method, where):
    error = caught(getattr(thing(), method))
    assert place(error, thing) == place(error) == where


def test_a_path_is_relative_to_where_one_is(thing, tmp_path, monkeypatch):
    error = caught(thing().direct)
    monkeypatch.chdir(tmp_path / "word_chain")
    assert place(error, thing) == "thing.py:10"


def test_one_line_with_kind_words_and_place(thing):
    assert describe(caught(thing().direct), thing) == "ValueError: two lines (word_chain/thing.py:10)"
    assert describe(ValueError()) == "ValueError"
    assert describe(InfraError("The container died.", "Wait.")) == "InfraError: The container died. → Wait."
    assert describe(AuthorError("It returned 3.", "Return 4.", "a/b.py:3")) == (
        "It returned 3 (a/b.py:3). → Return 4."
    )


def test_an_error_of_ours_from_one_of_theirs_names_their_line(thing):
    error = caught(_wrap, thing)
    assert describe(error, thing) == "EnvError: It fell. → Fix it. (word_chain/thing.py:10)"
    assert place(caught(_group, error), thing) == "word_chain/thing.py:10"


def _wrap(thing):
    try:
        thing().direct()
    except ValueError as error:
        raise EnvError("It fell.", "Fix it.") from error


def _group(error):
    raise ExceptionGroup("several", [error])


def test_without_a_traceback_there_is_no_place():
    assert place(ValueError("x")) == ""


def test_a_message_that_cannot_be_shown():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    assert describe(Odd()) == "Odd: its message cannot be shown (RuntimeError)"


def test_a_syntax_error_is_where_it_is_written(tmp_path, monkeypatch):
    (tmp_path / "crooked.py").write_text("x = 1\ndef f(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    error = caught(importlib.import_module, "crooked")
    assert place(error).endswith("/crooked.py:2")


def test_our_own_families_are_authors_too_and_our_machinery_is_not():
    env = CraftEnv()
    env.reset(seed=0)
    assert "core.py" in place(caught(CraftEnv().step, "x"), CraftEnv)
    assert authors_place(caught(CraftEnv().step, "x"), CraftEnv) == ""
    error = caught(env.transition, None, None)
    assert "envs/worlds/" in place(error, CraftEnv)
    assert place(error) == place(error, CraftEnv)


def test_where_something_is_written(thing):
    assert written_at(thing.direct) == written_at(thing().direct) == "word_chain/thing.py:9"
    assert written_at(thing) == "word_chain/thing.py:8"
    assert written_at(len) == written_at(3) == ""


def test_who_only_calls_turnwise_is_not_to_blame(tmp_path, monkeypatch):
    """A script beside its environment calls us; that line is not the cause."""
    (tmp_path / "calls_make.py").write_text(
        "def run():\n    from turnwise import make\n    make('no/such-v0')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    error = caught(importlib.import_module("calls_make").run)
    assert authors_place(error) == ""
    assert "envs/registry.py" in place(error)
