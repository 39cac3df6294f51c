"""bm25s must not start JAX, which would take three quarters of a GPU for as long as the trainer's process lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEARCH = """
import sys
{first}
from turnwise.envs.shop.index import SearchIndex
index = SearchIndex.of_texts(["a red scarf", "a blue mug", "a soft red hat"])
assert index.rank("red") == (0, 2), index.rank("red")
print("started" if getattr(sys.modules.get("jax"), "started", False) else "idle", sys.modules.get("jax.lax", "absent") is not None)
"""


@pytest.mark.parametrize("first", ["", "import jax", "import jax.lax"])
def test_jax_is_installed_and_stays_idle(tmp_path: Path, first: str):
    package = tmp_path / "jax"
    package.mkdir()
    (package / "__init__.py").write_text("started = False\n")
    (package / "lax.py").write_text(
        "import jax\ndef top_k(scores, k):\n    jax.started = True\n    return scores, scores\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(  # what it prints says more than its status
        [sys.executable, "-c", SEARCH.format(first=first)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["idle", "True"], done.stdout + done.stderr
