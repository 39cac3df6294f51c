"""What a worker has rewritten, pytest takes as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc, get_cache_dir
from rewriting import rewrite


def test_a_file_is_rewritten_once_and_again_when_it_has_changed(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    file = tmp_path / "test_some.py"
    file.write_text("def test_this():\n    assert [1] == [1]\n")
    kept = get_cache_dir(file) / f"test_some{PYC_TAIL}"
    rewrite(pytestconfig, [file])
    assert _read_pyc(file, kept) is not None
    before = kept.stat().st_mtime_ns
    rewrite(pytestconfig, [file])
    assert kept.stat().st_mtime_ns == before
    file.write_text("def test_that():\n    assert True\n")
    rewrite(pytestconfig, [file])
    code = _read_pyc(file, kept)
    assert code is not None
    assert "test_that" in code.co_names
