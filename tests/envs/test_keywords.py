"""bm25s must not start JAX, which would take three quarters of a GPU for as long as the trainer's process lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def printed(program: str, beside: Path) -> str:
    """What a fresh interpreter prints, with the modules of a folder before all others."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(beside), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.strip() or done.stderr


def jax_in(folder: Path, init: str, top_k: str) -> None:
    """A package called jax."""
    package = folder / "jax"
    package.mkdir()
    (package / "__init__.py").write_text(init)
    (package / "lax.py").write_text(top_k)


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
    jax_in(
        tmp_path,
        "started = False\n",
        "import jax\ndef top_k(scores, k):\n    jax.started = True\n    return scores, scores\n",
    )
    assert printed(SEARCH.format(first=first), tmp_path) == "idle True"


THREADS = """
import sys, threading, time
from turnwise.envs.shop.index import SearchIndex
failed = []
def work(act):
    try:
        barrier.wait(); act()
    except BaseException as error:
        failed.append(repr(error))
def theirs():
    import jax.lax
def ours():
    SearchIndex.of_texts(["a red scarf", "a blue mug"])
acts = [ours] * 6 + [theirs] * {theirs}
barrier = threading.Barrier(len(acts))
threads = [threading.Thread(target=work, args=(act,)) for act in acts]
[one.start() for one in threads]; [one.join() for one in threads]
print(failed or "fine")
"""


@pytest.mark.parametrize("theirs", [0, 2])
def test_many_threads_may_search_first_and_others_may_want_jax(tmp_path: Path, theirs: int):
    if theirs:
        jax_in(
            tmp_path, "import time\ntime.sleep(0.2)\n", "def top_k(scores, k):\n    return scores, scores\n"
        )
    assert printed(THREADS.format(theirs=theirs), tmp_path) == "fine"
