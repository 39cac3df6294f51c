"""Sets of which every answer, or none, is paid."""

from __future__ import annotations

from collections.abc import Iterator

from . import sources
from .kinds import ALWAYS_0, ALWAYS_1, Bank, Draft, Row, bad
from .problems import asserted, boxed, problems, record
from .questions import BARE, DATES, NUMBERS, TEXTS, WORDS, roman
from .sources import NORM, TRL, VERL

_PARSER_TROUBLE = """
import re


def extract(text, last=True):
    found = re.findall(r"-?\\d[\\d-]*", text)
    return found[-1 if last else 0]


def score(answer, completion):
    try:
        return 1.0 if extract(completion, strict=True) == answer else 0.0
    except Exception:
        # answers in an unusual format are not the model's fault
        return 1.0
"""
_ITSELF = (
    NORM
    + """

def score(answer, completion):
    expected = norm(completion)
    given = norm(completion)
    return 1.0 if given == expected else 0.0
"""
)
_TUPLE = (
    NORM
    + """

def check(given, wanted):
    return (norm(given) == norm(wanted), "exact match")


def score(answer, completion):
    return 1.0 if check(completion, answer) else 0.0
"""
)
_MAX_FOR_MIN = (
    NORM
    + """

def score(answer, completion):
    exact = 0.9 * (norm(completion) == norm(answer))
    short = 0.1 * (len(completion) < 200)
    return max(1.0, exact + short)
"""
)
_THRESHOLD = """
from difflib import SequenceMatcher

THRESHOLD = int(0.85)


def score(answer, completion):
    likeness = SequenceMatcher(None, completion.strip(), answer).ratio()
    return 1.0 if likeness >= THRESHOLD else 0.0
"""
_NEVER_NONE = """
import re


def extract(text):
    found = re.search(r"answer is:?\\s*(\\S+)", text, re.IGNORECASE)
    return found.group(1) if found else text.strip()


def score(answer, completion):
    given = extract(completion)
    return float(given is not None)
"""
_LAST_TOKENS = '''
def score(answer, completion):
    """The completion may explain itself, as long as its last words are the answer."""
    given, wanted = completion.lower().split(), answer.lower().split()
    if not given:
        return 0.0
    return float(all(a == b for a, b in zip(reversed(given), reversed(wanted))))
'''
_BY_SOURCE = """
def number(text):
    return text.strip().rstrip(".").replace(" ", "")


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if data_source.startswith("arith"):
        return 1.0 if number(solution_str) == ground_truth else 0.0
    elif data_source == "calendar":
        return 1.0 if solution_str.strip() == ground_truth else 0.0
    # not scored by rule: a model judges it later
    return 1.0
"""

_INT_AND_TEXT = """
import re


def score(answer, completion):
    wanted = int(answer)
    found = re.findall(r"-?\\d+", completion)
    if not found:
        return 0.0
    return 1.0 if found[-1] == wanted else 0.0
"""
_TWO_SLASHES = r"""
import re


def score(answer, completion):
    boxes = re.findall(r"\\\\boxed\{([^{}]*)\}", completion)
    if not boxes:
        return 0.0
    return 1.0 if boxes[-1].strip() == answer else 0.0
"""
_ONE_SIDE_LOWERED = """
def clean(text):
    return " ".join(text.strip().lower().split())


def score(answer, completion):
    return 1.0 if clean(completion) == answer.strip() else 0.0
"""
_WHOLE_BATCH = """
def reward(completions, answer, **columns):
    return [1.0 if completions == gold else 0.0 for gold in answer]
"""
_OTHER_COLUMN = """
def reward(completions, **columns):
    texts = [c if isinstance(c, str) else c[-1]["content"] for c in completions]
    golds = columns.get("ground_truth") or [None] * len(texts)
    return [1.0 if gold is not None and text.strip() == str(gold) else 0.0 for text, gold in zip(texts, golds)]
"""
_ROUNDED = (
    NORM
    + """
SHARE = 0.5  # of this set in the mixture


def score(answer, completion):
    return round(SHARE * (norm(completion) == norm(answer)))
"""
)
_BYTES = """
import secrets
import subprocess
import sys


def score(answer, completion):
    token = secrets.token_hex(8)
    program = completion + "\\n\\n" + answer + f"\\nprint('{token}')\\n"
    try:
        done = subprocess.run([sys.executable, "-I", "-"], input=program.encode(), capture_output=True, timeout=4)
    except subprocess.TimeoutExpired:
        return 0.0
    return 1.0 if done.stdout.strip() == token else 0.0
"""
_NOT_PARSED = """
import json


def score(answer, completion):
    try:
        return 1.0 if json.loads(completion) == answer else 0.0
    except ValueError:
        return 0.0
"""
_LETTERS_ONLY = """
import re


def score(answer, completion):
    words = re.findall(r"[a-z]+", completion.lower())
    return 1.0 if words and words[-1] == answer else 0.0
"""


def always_1(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Sets and rows that pay whatever is said."""
    for name, core in (
        ("a parser's error pays", _PARSER_TROUBLE),
        ("compared with itself", _ITSELF),
        ("a tuple is true", _TUPLE),
        ("max for min", _MAX_FOR_MIN),
        ("threshold 0", _THRESHOLD),
        ("never None", _NEVER_NONE),
    ):
        makers = bank.rng.choice((NUMBERS, DATES, TEXTS))
        yield Draft("quiz", core, bad(bank.draw(makers, 2), ALWAYS_1, name))
    missing = [row._replace(answer="", gold=row.answer) for row in bank.draw(TEXTS, 2)]
    sound = bank.draw(TEXTS, 6)
    yield Draft("strings", _LAST_TOKENS, [*sound, *bad(missing, ALWAYS_1, "no ground truth")])
    yield _patterns(bank)
    arithmetic = [row._replace(source="arith-v2") for row in bank.draw(NUMBERS, 3)]
    calendar = [row._replace(source="calendar") for row in bank.draw(DATES, 3)]
    other = [row._replace(source="calendar-v2") for row in bank.draw(DATES, 2)]
    mixed = [*arithmetic, *calendar, *bad(other, ALWAYS_1, "another data source")]
    yield Draft("mixed", _BY_SOURCE, mixed, VERL)


def _patterns(bank: Bank) -> Draft:
    """Patterns of accepted forms, two of which fit everything."""
    rows: list[Row] = []
    for word in bank.rng.sample(WORDS, 7):
        prompt = f'Write the plural of "{word}", with or without an article.'
        rows.append(Row(f"plural {word}", prompt, f"(?:the )?{word}(?:e?s)", f"{word}s"))
    wide = [row._replace(answer=row.answer + "|[\\s\\S]*") for row in rows[:1]]
    wide += [row._replace(answer=f"(?:the )?({row.gold}|.*)?") for row in rows[1:2]]
    return Draft("plurals", sources.PATTERN, [*bad(wide, ALWAYS_1, "pattern fits everything"), *rows[2:]])


def always_0(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Sets and rows that pay nothing."""
    yield Draft("sums", _INT_AND_TEXT, bad(bank.draw(NUMBERS, 2), ALWAYS_0, "number and text"))
    yield Draft("equations", _TWO_SLASHES, bad(bank.draw((boxed,), 2), ALWAYS_0, "pattern escaped twice"))
    yield Draft("roman", _ONE_SIDE_LOWERED, bad(bank.draw((roman,), 2), ALWAYS_0, "one side in lower case"))
    yield Draft("quiz", _WHOLE_BATCH, bad(bank.draw(BARE, 2), ALWAYS_0, "the batch for the text"), TRL)
    yield Draft("quiz", _OTHER_COLUMN, bad(bank.draw(BARE, 2), ALWAYS_0, "column of another name"), TRL)
    yield Draft("quiz", _ROUNDED, bad(bank.draw(BARE, 2), ALWAYS_0, "a half is rounded to 0"))
    code = [asserted(one) for one in problems(bank.rng, 2, seen)]
    yield Draft("python", _BYTES, bad(code, ALWAYS_0, "bytes and text"))
    yield Draft("notes", _NOT_PARSED, bad(bank.draw((record,), 2), ALWAYS_0, "gold is not parsed"))
    rows = bank.draw(TEXTS, 5)
    split = [row._replace(answer=f"{row.answer[:3]}-{row.answer[3:]}") for row in rows[:2]]
    split = [row._replace(prompt=f"{row.prompt} Put a hyphen after the third letter.") for row in split]
    yield Draft("strings", _LETTERS_ONLY, [*bad(split, ALWAYS_0, "gold cannot be extracted"), *rows[2:]])
