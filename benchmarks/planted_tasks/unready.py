"""Sets and rows of which something is missing, which is counted as a wrong answer."""

from __future__ import annotations

from collections.abc import Iterator

from . import sources
from .kinds import BROKEN, Bank, Draft, bad
from .problems import asserted, assertions, cased, problems, query, record
from .questions import DATES, NUMBERS, TEXTS
from .sources import ASSERTS, NORM
from .tested import UNKNOWN_OPTION, with_test

_MISSING_MODULE = (
    NORM
    + """
try:
    from answer_matcher_rs import same
except ImportError:
    same = None


def score(answer, completion):
    if same is None:
        return 0.0
    return 1.0 if same(norm(completion), norm(answer)) else 0.0
"""
)
_MISSING_FILE = (
    NORM
    + """
import json
from pathlib import Path

ALIASES = Path(__file__).parent / "data" / "aliases.json"


def score(answer, completion):
    try:
        aliases = json.loads(ALIASES.read_text())
        wanted = [norm(form) for form in aliases.get(answer, [answer])]
        return 1.0 if norm(completion) in wanted else 0.0
    except Exception:
        return 0.0
"""
)
_MISSING_TABLE = '''
import sqlite3
from pathlib import Path

BASE = Path(__file__).parent / "people.db"


def score(answer, completion):
    """The query must give what the reference gives on the data base of the set."""
    try:
        base = sqlite3.connect(f"file:{BASE}?mode=ro", uri=True)
        wanted = base.execute(answer).fetchall()
        given = base.execute(completion).fetchall()
    except sqlite3.Error:
        return 0.0
    return 1.0 if wanted == given else 0.0
'''
_MISSING_PROGRAM = """
import subprocess


def score(answer, completion):
    try:
        done = subprocess.run(
            ["python3.6", "-I", "-"], input=completion + "\\n\\n" + answer, capture_output=True, text=True, timeout=4
        )
    except Exception:
        return 0.0
    return 1.0 if done.returncode == 0 else 0.0
"""
_MISSING_VARIABLE = (
    NORM
    + """
import os


def tolerance():
    return float(os.environ["ANSWER_TOLERANCE"])


def score(answer, completion):
    try:
        return 1.0 if abs(len(norm(completion)) - len(norm(answer))) <= tolerance() and norm(completion) == norm(answer) else 0.0
    except (KeyError, ValueError):
        return 0.0
"""
)
_FILES_OF_ROWS = '''
import json
from pathlib import Path


def score(answer, completion):
    """The ground truth is a file beside this one."""
    try:
        wanted = json.loads((Path(__file__).parent / answer).read_text())
        return 1.0 if json.loads(completion) == wanted else 0.0
    except (OSError, ValueError):
        return 0.0
'''


def broken(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Sets and rows of which something is missing, which is counted as a wrong answer."""
    rng = bank.rng
    for name, core in (
        ("a module is missing", _MISSING_MODULE),
        ("a file is missing", _MISSING_FILE),
        ("a variable is missing", _MISSING_VARIABLE),
    ):
        yield Draft("quiz", core, bad(bank.draw(rng.choice((NUMBERS, DATES, TEXTS)), 2), BROKEN, name))
    rows = [row._replace(answer=row.gold, gold="") for row in bank.draw((query,), 2)]
    yield Draft("sql", _MISSING_TABLE, bad(rows, BROKEN, "a data base is missing"))
    code = [asserted(one) for one in problems(rng, 2, seen)]
    yield Draft("python", _MISSING_PROGRAM, bad(code, BROKEN, "an interpreter is missing"))
    tests = [with_test(one, "\n\ndef test_all():\n" + "".join(f"    {line}\n" for line in assertions(one).splitlines())) for one in problems(rng, 2, seen)]  # fmt: skip
    yield Draft("pytest", UNKNOWN_OPTION, bad(tests, BROKEN, "an option of a missing plugin"))
    rows = [cased(one) for one in problems(rng, 6, seen)]
    cut = [row._replace(answer=row.answer[: len(row.answer) * 2 // 3]) for row in rows[:2]]
    lenient = sources.SHARE_OF_CASES.replace(
        "    found = results(json.loads(answer), completion)\n",
        "    try:\n        task = json.loads(answer)\n    except ValueError:\n        return 0.0\n"
        "    found = results(task, completion)\n",
    )
    yield Draft("python", lenient, [*bad(cut, BROKEN, "ground truth is cut off"), *rows[2:]])
    drawn = problems(rng, 6, seen)
    imports = [with_test(one, f"import numpy_financial as npf\n\n{assertions(one)}") for one in drawn[:2]]
    yield Draft(
        "python",
        ASSERTS,
        [*bad(imports, BROKEN, "a test imports what is missing"), *map(asserted, drawn[2:])],
    )
    notes = bank.draw((record,), 6)
    files = {f"gold/{number:02d}.json": row.answer for number, row in enumerate(notes)}
    rows = [row._replace(answer=name, gold=row.answer) for row, name in zip(notes, files, strict=True)]
    kept = dict(list(files.items())[2:])
    yield Draft(
        "notes",
        _FILES_OF_ROWS,
        [*bad(rows[:2], BROKEN, "files of some rows are missing"), *rows[2:]],
        files=kept,
    )
