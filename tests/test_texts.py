"""Bytes of files: editors keep them, and readers of JSON lines split at line feeds and name what is not UTF-8."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from turnwise.envs.check.rewording import load_rewordings
from turnwise.envs.code.datasets import load_problems
from turnwise.envs.code.published import load_published
from turnwise.envs.search.datasets import load_questions
from turnwise.envs.swe.actions import run_create, run_edit, run_view
from turnwise.envs.swe.importers import read_instances
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.tasks import load_instances
from turnwise.errors import FileError
from turnwise.texts import as_bytes, kept, lines_of, read_json_lines, shown
from turnwise.tools.core import ToolError
from turnwise.tools.sandbox.core import PathError, Sandbox


class Box:
    """The two methods of a sandbox that editors use, over a dict."""

    def __init__(self, **files: bytes) -> None:
        self.files = files

    def read(self, path: str, *, limit: int) -> bytes:
        if path not in self.files:
            raise PathError(path, "there is none")
        return self.files[path][:limit]

    def write(self, path: str, data: bytes) -> None:
        self.files[path] = data


def edited(data: bytes, old: str, new: str, name: str = "a.py") -> bytes:
    box = Box(**{name: data})
    run_edit(cast(Sandbox, box), name, old, new)
    return box.files[name]


LATIN = b"# -*- coding: latin-1 -*-\nCITY = 'Z\xfcrich'\ndef f():\n    return 1\n"


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (LATIN, "return 1", "return 3", LATIN.replace(b"1\n", b"3\n")),
        (b"a = 1\r\nb = 2\r\nc = 3\r\n", "a = 1\nb = 2", "a = 1\nb = 5\nd = 4", b"a = 1\r\nb = 5\r\nd = 4\r\nc = 3\r\n"),
        (b"a = 1\r\nb = 2\r\n", "a = 1\r\nb = 2", "a = 7\r\nb = 2", b"a = 7\r\nb = 2\r\n"),
        (b"\xef\xbb\xbfa = 1\nb = 2\n", "a = 1", "a = 2", b"\xef\xbb\xbfa = 2\nb = 2\n"),
        (b"a = 1\r\nb = 2\nc = 3\r", "b = 2\n", "b = 4\n", b"a = 1\r\nb = 4\nc = 3\r"),
        (b"s = '\xed\xb3\xbc\xff'\nt = 1\n", "t = 1", "t = 2", b"s = '\xed\xb3\xbc\xff'\nt = 2\n"),
    ],
    ids=["latin-1", "returns", "returns-said", "mark", "mixed", "no-encoding"],
)  # fmt: skip
def test_an_edit_changes_no_byte_beside_it(data: bytes, old: str, new: str, expected: bytes) -> None:
    assert edited(data, old, new) == expected


def test_a_file_with_a_byte_order_mark_is_still_checked_for_its_syntax() -> None:
    with pytest.raises(ToolError, match="would not parse, line 2"):
        edited(b"\xef\xbb\xbfa = 1\nb = 2\n", "b = 2", "b = (")
    with pytest.raises(ToolError, match="would not parse, line 4"):
        edited(LATIN, "return 1", "return (")


def test_an_editor_writes_no_bytes_that_a_model_smuggles_in_as_half_characters() -> None:
    for write in (run_create, lambda box, path, text: run_edit(box, path, "x", text)):
        box = Box(**{"a.txt": b"x\n"})
        with pytest.raises(ToolError, match="not valid Unicode"):
            write(cast(Sandbox, box), "a.txt", "\udcff")
        assert box.files["a.txt"] == b"x\n"


def test_view_counts_lines_as_grep_and_tracebacks_do_and_shows_valid_text() -> None:
    box = cast(Sandbox, Box(**{"a.py": b"def f():\n    pass\n\x0c\ndef g():\n    '\xe2\x80\xa8 \xfc'\r\n"}))
    rows = run_view(box, "a.py", 1, 20).split("\n")
    assert rows[3] == "    4  def g():"
    assert rows[4] == "    5      '\u2028 \ufffd'"
    assert rows[-1] == "[5 lines in all]"


def test_places_of_nodes_hold_behind_form_feeds_and_foreign_bytes() -> None:
    text = kept(b"a = 'Z\xfcrich'\n\x0c\ndef g():\n    return '\xfc' + name\n")
    source = SourceText(text)
    assert source.of(source.tree.body[1]) == "def g():\n    return '\udcfc' + name"
    assert as_bytes(text) == as_bytes(source.text)
    assert len(shown(text)) == len(text)


def test_lines_of_are_those_of_grep() -> None:
    assert lines_of("") == []
    assert lines_of("\n") == [""]
    assert lines_of("a\x0b\x1c\x85\u2029b\r\nc") == ["a\x0b\x1c\x85\u2029b", "c"]


def _mbpp(text: str) -> dict[str, Any]:
    return {
        "task_id": 1,
        "text": text,
        "test_list": ["assert f(1) == 1", "assert f(2) == 1"],
        "code": "def f(x):\n    return 1",
    }


def _instance(text: str) -> dict[str, Any]:
    return {
        "instance_id": "a__b-1", "repo": "a/b", "base_commit": "c", "patch": "", "test_patch": "",
        "problem_statement": text, "FAIL_TO_PASS": "[]", "PASS_TO_PASS": "[]", "version": "1",
    }  # fmt: skip


# What is read, as texts, and a row of the kind.
READERS: dict[str, tuple[Callable[[Path], Iterable[str]], Callable[[str], dict[str, Any]]]] = {
    "published": (lambda path: [one.statement for _, one in load_published("mbpp", str(path))], _mbpp),
    "problems": (lambda path: [one.statement for one in load_problems(str(path), "mbpp").problems.values()], _mbpp),
    "instances": (lambda path: [one.issue for one in read_instances(path)], _instance),
    "questions": (lambda path: [one.text for one in load_questions(path)[0]], lambda text: {"question": text, "answer": "a"}),
    "rewordings": (
        lambda path: [one.others[0] for one in load_rewordings(path).messages],
        lambda text: {"gold": text, "template": text},
    ),
    "plain": (lambda path: [row.value["text"] for row in read_json_lines(path)], lambda text: {"text": text}),
    "tasks": (lambda path: [one.issue for one in load_instances(path)], lambda text: {"issue": text}),
}  # fmt: skip
HARD = "one\u2028two\u2029three\x85four ü"


@pytest.mark.parametrize("name", [name for name in READERS if name != "tasks"])
def test_a_line_may_hold_every_separator_of_unicode_and_the_file_a_mark_and_returns(
    name: str, tmp_path: Path
) -> None:
    read, row = READERS[name]
    lines = [json.dumps(row(f"{HARD} {at}?"), ensure_ascii=False) for at in range(2)]
    (tmp_path / "a.jsonl").write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n\r\n").encode())
    found = list(read(tmp_path / "a.jsonl"))
    assert len(found) == (1 if name == "problems" else 2)  # by name, and both have one
    assert all(HARD in text for text in found)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_a_file_in_another_encoding_is_an_error_with_the_file_and_the_line(
    name: str, encoding: str, tmp_path: Path
) -> None:
    read, row = READERS[name]
    lines = [json.dumps(row(text), ensure_ascii=False) for text in ("plain", "Zürich")]
    (tmp_path / "a.jsonl").write_bytes("\n".join(lines).encode(encoding))
    with pytest.raises(FileError, match=r"a\.jsonl:[12] ") as told:
        list(read(tmp_path / "a.jsonl"))
    assert ("UTF-16" in str(told.value)) == (encoding != "latin-1")
