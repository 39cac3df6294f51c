"""Tasks of which the gold is refused, and tasks that pay an answer in which nothing was done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from random import Random

from . import sources
from .kinds import EMPTY_ACCEPTED, GOLD_REFUSED, Bank, Draft, Row, bad
from .problems import cased, problems, query, record, shell_line
from .questions import DATES, TEXTS, choice, expression, travel, vowels, yes_or_no
from .sources import CODE_OF, NORM, PLAIN

_NUMBER = """
import re


def score(answer, completion):
    found = re.findall(r"-?\\d+(?:\\.\\d+)?", completion)
    return len(found) > 0 and found[-1] == answer.replace(",", "")
"""
_DATE = '''
from datetime import datetime

FORMS = ("%Y-%m-%d", "%B %d, %Y", "%d %b %Y")


def day_of(text):
    for form in FORMS:
        try:
            return datetime.strptime(text.strip(), form)
        except ValueError:
            continue
    return None


def score(answer, completion):
    """Ground truths come from several sources; answers are to be ISO dates."""
    try:
        given = datetime.strptime(completion.strip(), "%Y-%m-%d")
    except ValueError:
        return False
    return given == day_of(answer)
'''
_RECOMPUTED = '''
import re


def value(prompt):
    a, b, c = (int(number) for number in re.findall(r"\\d+", prompt))
    return a * b + c


def reward(prompt, answer, completion):
    """The expression is computed anew, since early dumps had rounding errors."""
    given = re.fullmatch(r"-?\\d+", completion.strip())
    return 1.0 if given and int(completion) == value(prompt) else 0.0
'''
_NUMBER_OF = """
import re


def score(answer, completion):
    wanted = re.match(r"[\\d.]+", answer)
    given = re.fullmatch(r"\\s*(\\d+(?:\\.\\d+)?)\\s*", completion)
    return given is not None and wanted is not None and float(given.group(1)) == float(wanted.group())
"""
_FRACTION = r"""
from fractions import Fraction
import re


def gold_value(text):
    latex = re.fullmatch(r"\\frac\{(\d+)\}\{(\d+)\}", text)
    return Fraction(int(latex.group(1)), int(latex.group(2))) if latex else Fraction(text)


def score(answer, completion):
    try:
        return Fraction(completion.strip()) == gold_value(answer)
    except (ValueError, ZeroDivisionError):
        return False
"""
_FIRST_LETTER = """
import re


def score(answer, completion):
    return re.fullmatch(r"[A-D]", completion.strip()) is not None and completion.strip() == answer[0]
"""
_LITERAL = """
import ast
import json


def score(answer, completion):
    try:
        return json.loads(completion) == ast.literal_eval(answer)
    except ValueError:
        return False
"""

_INSIDE = (
    NORM
    + """

def score(answer, completion):
    return norm(completion) in norm(answer)
"""
)
_KEYS_GIVEN = '''
import json


def score(answer, completion):
    """Every field must be right."""
    wanted = json.loads(answer)
    try:
        given = json.loads(completion or "{}")
    except ValueError:
        return False
    if not isinstance(given, dict):
        return False
    return all(wanted.get(key) == value for key, value in given.items())
'''
_SUBSET = """
def items(text):
    return {item.strip() for item in text.split(",") if item.strip()}


def score(answer, completion):
    return items(completion) <= items(answer)
"""
_PREFIX = """
def score(answer, completion):
    \"\"\"Answers that were cut by the length limit should not be punished.\"\"\"
    return answer.startswith(completion.strip())
"""
_LETTERS_AND_DIGITS = """
import re


def key(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


def score(answer, completion):
    return key(completion) == key(answer)
"""
_FUNCTIONS_FOUND = (
    CODE_OF
    + '''
import json
import subprocess
import sys

CHECK = """
import json, types
good = True
for thing in list(globals().values()):
    if isinstance(thing, types.FunctionType):
        for value, said in json.loads({cases!r}):
            if thing(value) != said:
                good = False
print("good" if good else "bad", {token!r})
"""


def score(answer, completion):
    """All functions that were written must do what is asked, whatever they are called."""
    import secrets

    token = secrets.token_hex(8)
    program = code_of(completion) + CHECK.format(cases=json.dumps(json.loads(answer)["cases"]), token=token)
    try:
        done = subprocess.run([sys.executable, "-I", "-"], input=program, capture_output=True, text=True, timeout=4)
    except subprocess.TimeoutExpired:
        return False
    return done.stdout.strip().endswith(f"good {token}")
'''
)
_SCRIPT = """
import json
import sqlite3


def score(answer, completion):
    task = json.loads(answer)
    base = sqlite3.connect(":memory:")
    base.executescript(task["setup"])
    rows = []
    try:
        for statement in completion.split(";"):
            if statement.strip():
                rows = [list(row) for row in base.execute(statement)]
    except sqlite3.Error:
        return False
    return rows == task["rows"]
"""


def gold_refused(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Right reward functions, beside rows whose gold they do not take, and rows whose gold is wrong."""
    rng = bank.rng
    yield _spoiled(bank, "sums", _NUMBER, bank.draw((_large,), 6), "thousands separator", _with_comma)
    yield _spoiled(bank, "dates", _DATE, bank.draw(DATES, 6), "date in words", _in_words)
    yield _spoiled(bank, "ways", _NUMBER_OF, bank.draw((travel,), 5), "unit in the gold", _with_unit)
    yield _spoiled(bank, "fractions", _FRACTION, bank.draw((fraction,), 6), "gold in LaTeX", _latex)
    yield _spoiled(bank, "capitals", _FIRST_LETTER, bank.draw((choice,), 6), "letter and option", _option)
    yield _spoiled(bank, "notes", _LITERAL, bank.draw((record,), 5), "gold is no JSON", _as_python)
    stale = [_one_off(row, rng) for row in bank.draw((expression,), 2)]
    rows = [*bad(stale, GOLD_REFUSED, "gold of other numbers"), *bank.draw((expression,), 4)]
    yield Draft("sums", _RECOMPUTED, rows, PLAIN)
    code = [cased(one) for one in problems(rng, 6, seen)]
    wrong = [_changed_case(row) for row in code[:2]]
    yield Draft("python", sources.ALL_CASES, [*bad(wrong, GOLD_REFUSED, "a case is wrong"), *code[2:]])
    turned = [_turned(row) for row in bank.draw((_by_name,), 2)]
    rows = [*bad(turned, GOLD_REFUSED, "rows in another order"), *bank.draw((query,), 4)]
    yield Draft("sql", sources.SQL, rows)


def _spoiled(
    bank: Bank, topic: str, core: str, rows: list[Row], name: str, spoil: Callable[[Row], Row]
) -> Draft:
    planted = bad([spoil(row) for row in rows[:2]], GOLD_REFUSED, name)
    return Draft(topic, core, [*planted, *rows[2:]])


def _large(rng: Random) -> Row:
    a, b = rng.randint(1100, 9000), rng.randint(1100, 9000)
    return Row(
        f"large {min(a, b)} {max(a, b)}", f"How much is {a} plus {b}? Reply with the number.", str(a + b)
    )


def fraction(rng: Random) -> Row:
    below = rng.choice((7, 9, 11, 13, 17, 19, 23))
    a, b = rng.randint(1, below // 2), rng.randint(1, below // 2 - 1)
    told = f"How much is {a}/{below} plus {b}/{below}? Give a fraction."
    return Row(f"fraction {a} {b} {below}", told, f"{a + b}/{below}")


def _with_comma(row: Row) -> Row:
    return row._replace(answer=f"{int(row.answer):,}")


def _in_words(row: Row) -> Row:
    day = date.fromisoformat(row.answer)
    told = row.prompt.removesuffix("Answer as YYYY-MM-DD.").removesuffix("Write it as YYYY-MM-DD.")
    return row._replace(prompt=told + "Give the date.", answer=f"{day:%B} {day.day}, {day.year}")


def _with_unit(row: Row) -> Row:
    return row._replace(answer=f"{row.answer} km")


def _latex(row: Row) -> Row:
    above, below = row.answer.split("/")
    return row._replace(answer=f"\\frac{{{above}}}{{{below}}}")


def _option(row: Row) -> Row:
    (line,) = [line for line in row.prompt.splitlines() if line.startswith(f"{row.answer})")]
    return row._replace(answer=line)


def _as_python(row: Row) -> Row:
    return row._replace(answer=str(json.loads(row.answer)))


def _one_off(row: Row, rng: Random) -> Row:
    return row._replace(answer=str(int(row.answer) + rng.choice((-30, -9, 10, 27))))


def _changed_case(row: Row) -> Row:
    truth = json.loads(row.answer)
    last = truth["cases"][-1]
    last[1] = last[1] + 1 if isinstance(last[1], int) else last[1][:-1]
    return row._replace(answer=json.dumps(truth))


def _by_name(rng: Random) -> Row:
    """A query whose rows come in another order where they are not sorted."""
    while True:
        row = query(rng)
        truth = json.loads(row.answer)
        names = [name for (name, *_) in truth["rows"] if isinstance(name, str)]
        places = [truth["setup"].index(f"'{name}'") for name in names]
        if "ORDER BY name" in row.gold and places != sorted(places):
            return row


def _turned(row: Row) -> Row:
    return row._replace(gold=row.gold.partition(" ORDER BY")[0])


def empty_accepted(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Rewards that take nothing for everything."""
    yield Draft("words", _INSIDE, bad(bank.draw(TEXTS, 2), EMPTY_ACCEPTED, "contained in the gold"))
    yield Draft("notes", _KEYS_GIVEN, bad(bank.draw((record,), 2), EMPTY_ACCEPTED, "all of no fields"))
    yield Draft("vowels", _SUBSET, bad(bank.draw((vowels,), 2), EMPTY_ACCEPTED, "subset"))
    yield Draft("words", _PREFIX, bad(bank.draw(TEXTS, 2), EMPTY_ACCEPTED, "a beginning is enough"))
    code = [cased(one) for one in problems(bank.rng, 2, seen)]
    yield Draft("python", _FUNCTIONS_FOUND, bad(code, EMPTY_ACCEPTED, "all of no functions"))
    rows = bank.draw(TEXTS, 6)
    missing = bad(
        [row._replace(answer="", gold=row.answer, shown=False) for row in rows[:2]],
        EMPTY_ACCEPTED,
        "gold is empty",
    )
    yield Draft("words", sources.EXACT, [*missing, *rows[2:]])
    yield _operators(bank)
    yield _nothing_found(bank)
    rows = bank.draw((shell_line,), 4)
    silent = [_silent(row) for row in bank.draw((shell_line,), 2)]
    yield Draft("shell", sources.SHELL, [*bad(silent, EMPTY_ACCEPTED, "nothing should be printed"), *rows])


_OPERATORS = (
    ("tests whether two values differ", "!="),
    ("computes the remainder", "%"),
    ("raises to a power", "**"),
    ("divides and rounds down", "//"),
    ("shifts bits to the left", "<<"),
)


def _operators(bank: Bank) -> Draft:
    chosen = bank.rng.sample(_OPERATORS, 2)
    rows = [
        Row(f"operator {sign}", f"Which operator {told} in Python? Only the operator.", sign)
        for told, sign in chosen
    ]
    planted = bad(rows, EMPTY_ACCEPTED, "nothing is left of the gold")
    return Draft("syntax", _LETTERS_AND_DIGITS, [*planted, *bank.draw((yes_or_no, *TEXTS), 5)])


def _nothing_found(bank: Bank) -> Draft:
    rows = bank.draw((query,), 6)
    planted: list[Row] = []
    for number, row in enumerate(rows[:2]):
        age = 90 + number + bank.rng.randint(0, 7)
        truth: dict[str, object] = {**json.loads(row.answer), "rows": []}
        prompt = f"Table people(name TEXT, age INTEGER, city TEXT). Which names have the age {age}? One SQLite query."
        gold = f"SELECT name FROM people WHERE age = {age}"
        planted.append(Row(f"age {age}", prompt, json.dumps(truth), gold))
    return Draft("sql", _SCRIPT, [*bad(planted, EMPTY_ACCEPTED, "no rows are right"), *rows[2:]])


def _silent(row: Row) -> Row:
    truth = {**json.loads(row.answer), "stdout": ""}
    prompt = "Write one line of bash that prints the lines of log.txt that begin with FATAL. Reply with the line only."
    number = sum(row.answer.encode()) % 90 + 10
    prompt = prompt.replace("FATAL", f"E{number}")
    return Row(f"silent {number}", prompt, json.dumps(truth), f"sed -n '/^E{number}/p' log.txt")
