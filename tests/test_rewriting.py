"""What a worker has rewritten, pytest takes as it is."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_collecting_loads_no_library_that_is_lazy(tmp_path: Path) -> None:
    """Pytest asks everything in a file whether it is a test; that alone once loaded each library in each worker."""
    (tmp_path / "slow_to_load.py").write_text("raise SystemExit('it was loaded')\n")
    (tmp_path / "test_some.py").write_text(
        "from lazily import Lazily\n\nlibrary = Lazily('slow_to_load')\n\n\ndef test_this():\n    pass\n"
    )
    kit = Path(__file__).with_name("kit")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "PYTHONPATH": f"{kit}:{tmp_path}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout
