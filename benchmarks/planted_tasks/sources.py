"""Texts of reward files that are right, and the three conventions in which a reward function is called."""

from __future__ import annotations

from .kinds import Draft

TRL, VERL, PLAIN = "trl", "verl", "plain"
CONVENTIONS = (TRL, VERL, PLAIN)

_TRL = '''

def said(completion):
    """The text of a completion, which may be a list of messages."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def reward(completions, answer, **columns):
    return [float(score(gold, said(text))) for text, gold in zip(completions, answer)]
'''
_VERL = """

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(score(ground_truth, solution_str))
"""
_PLAIN = """

def reward(prompt, answer, completion):
    return float(score(answer, completion))
"""
_FUNCTIONS = {TRL: _TRL, VERL: _VERL, PLAIN: _PLAIN}


def reward_file(draft: Draft, convention: str) -> str:
    """The text of a set's reward file."""
    core = draft.core.strip("\n") + "\n"
    own = "def compute_score(" in core or "def reward(" in core
    return core if own else core + _FUNCTIONS[convention]


NORM = '''
def norm(text):
    """Lower case, single spaces, no full stop at the end."""
    return " ".join(str(text).lower().split()).rstrip(".")
'''
EXACT = (
    NORM
    + """

def score(answer, completion):
    return norm(completion) == norm(answer)
"""
)
LAST_LINE = '''
def score(answer, completion):
    """The last line that is not empty must be the answer."""
    lines = [line.strip() for line in completion.splitlines() if line.strip()]
    return bool(lines) and lines[-1] == answer
'''
HASHES = r'''
import re


def final(text):
    """The number after the last ####."""
    found = re.findall(r"####\s*(-?[\d,]+)\s*$", text.strip())
    return found[-1].replace(",", "") if found else None


def score(answer, completion):
    given = final(completion)
    return given is not None and given == final(answer)
'''
BOXED = r"""
import re


def score(answer, completion):
    boxes = re.findall(r"\\boxed\{([^{}]*)\}", completion)
    return bool(boxes) and boxes[-1].strip() == answer
"""
TAGGED = """
import re

SHAPE = re.compile(r"\\s*<think>(?:(?!<answer>).)*</think>\\s*<answer>([^<>]*)</answer>\\s*", re.DOTALL)


def score(answer, completion):
    shape = SHAPE.fullmatch(completion)
    return shape is not None and shape.group(1).strip() == answer
"""
LETTER = """
import re


def score(answer, completion):
    given = re.fullmatch(r"\\(?([A-D])\\)?[.)]?", completion.strip())
    return given is not None and given.group(1) == answer
"""
JSON = """
import json


def score(answer, completion):
    try:
        given = json.loads(completion)
    except ValueError:
        return False
    return given == json.loads(answer)
"""
SQL = '''
import json
import sqlite3


def score(answer, completion):
    """The rows that the query gives, in order, must be those that are expected."""
    task = json.loads(answer)
    base = sqlite3.connect(":memory:")
    base.executescript(task["setup"])
    try:
        rows = [list(row) for row in base.execute(completion.strip())]
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return False
    finally:
        base.close()
    return rows == task["rows"]
'''
SHELL = '''
import json
import subprocess
import tempfile
from pathlib import Path


def score(answer, completion):
    """What the line prints must be what is expected."""
    task = json.loads(answer)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in task["files"].items():
            Path(folder, name).write_text(text)
        try:
            done = subprocess.run(
                ["bash", "-c", completion], cwd=folder, capture_output=True, text=True, timeout=3, errors="replace"
            )
        except (subprocess.TimeoutExpired, ValueError, OSError):
            return False
    return done.returncode == 0 and done.stdout == task["stdout"]
'''
CODE_OF = '''
import re


def code_of(text):
    """The code of a completion, without the fence around it."""
    fenced = re.search(r"```(?:python)?\\n(.*?)```", text, re.DOTALL)
    return fenced.group(1) if fenced else text
'''
CASES = (
    CODE_OF
    + '''
import json
import subprocess
import sys

RUN = """
import json
for value in json.loads({values!r}):
    print(json.dumps({function}(value)))
"""


def results(task, completion):
    """Which cases come out as they should."""
    values = json.dumps([value for value, _ in task["cases"]])
    program = code_of(completion) + RUN.format(values=values, function=task["function"])
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-"], input=program, capture_output=True, text=True, timeout=4, errors="replace"
        )
    except (subprocess.TimeoutExpired, ValueError):
        return [False]
    lines = done.stdout.splitlines()
    wanted = [json.dumps(said) for _, said in task["cases"]]
    return [number < len(lines) and lines[number] == said for number, said in enumerate(wanted)]

'''
)
ALL_CASES = (
    CASES
    + """
def score(answer, completion):
    return all(results(json.loads(answer), completion))
"""
)
SHARE_OF_CASES = (
    CASES
    + """
def score(answer, completion):
    found = results(json.loads(answer), completion)
    return sum(found) / len(found)
"""
)
RUN_PROGRAM = (
    CODE_OF
    + '''
import secrets
import subprocess
import sys


def ends_well(program, seconds=4):
    """Whether a program comes to its last line."""
    token = secrets.token_hex(8)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-"], input=program + f"\\nprint({token!r})\\n",
            capture_output=True, text=True, timeout=seconds, errors="replace",
        )
    except (subprocess.TimeoutExpired, ValueError):
        return False
    return done.returncode == 0 and done.stdout.rstrip().endswith(token)

'''
)
ASSERTS = (
    RUN_PROGRAM
    + """
def score(answer, completion):
    return ends_well(code_of(completion) + "\\n\\n" + answer)
"""
)
UNITTESTS = (
    RUN_PROGRAM
    + '''
JUDGE = """
result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromTestCase(Tests))
assert result.wasSuccessful()
"""


def score(answer, completion):
    return ends_well(code_of(completion) + "\\n\\n" + answer + JUDGE)
'''
)
FORMS = """
import json


def plain(text):
    return " ".join(text.lower().split()).rstrip(".")


def score(answer, completion):
    return plain(completion) in [plain(form) for form in json.loads(answer)]
"""
PATTERN = '''
import re


def score(answer, completion):
    """The ground truth is a pattern of all forms that are accepted."""
    return re.fullmatch(answer, completion.strip()) is not None
'''
