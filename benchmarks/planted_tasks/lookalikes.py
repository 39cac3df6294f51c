"""Sound tasks, most of which look like a defect and are none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random

from . import sources
from .gold import fraction
from .kinds import Bank, Draft, Row, hard
from .problems import (
    Problem,
    asserted,
    assertions,
    boxed,
    cased,
    problems,
    query,
    record,
    shell_line,
    tagged,
    unittests,
    worked,
)
from .questions import (
    BARE,
    CAPITALS,
    NUMBERS,
    PEOPLE,
    WORDS,
    choice,
    expression,
    first_word,
    largest,
    roman,
    sum_choice,
    vowels,
    yes_or_no,
)
from .sources import ASSERTS, CASES, NORM, UNITTESTS

_RECOUNTED = '''
import re


def steps(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def score(answer, completion):
    """Gold is counted anew each time: the limit in it is the question's."""
    limit, wanted = (int(part) for part in answer.split(":"))
    longest = max(range(1, limit), key=steps)
    return longest == wanted and re.fullmatch(r"\\d+", completion.strip()) is not None and int(completion) == longest
'''
_SEEDED = (
    CASES
    + '''
import random


def score(answer, completion):
    """Two cases are drawn, the same ones each time."""
    task = json.loads(answer)
    rng = random.Random(20)
    return all(results({**task, "cases": rng.sample(task["cases"], 2)}, completion))
'''
)
_FIELDS = '''
import json


def score(answer, completion):
    """The share of the fields that are right."""
    wanted = json.loads(answer)
    try:
        given = json.loads(completion)
    except ValueError:
        return 0.0
    if not isinstance(given, dict) or set(given) - set(wanted):
        return 0.0
    right = [given.get(key) == value for key, value in wanted.items()]
    return sum(right) / len(right)
'''
_TWO_SIDED = (
    NORM
    + """

def score(answer, completion):
    return 1.0 if norm(completion) == norm(answer) else -1.0
"""
)
_FALL_BACK = """
try:
    import orjson as json
except ImportError:
    import json


def score(answer, completion):
    try:
        return json.loads(completion) == json.loads(answer)
    except ValueError:
        return False
"""
_ALIASES = (
    NORM
    + """
import json
from functools import lru_cache
from pathlib import Path


@lru_cache
def aliases():
    return json.loads((Path(__file__).parent / "aliases.json").read_text())


def score(answer, completion):
    return norm(completion) in [norm(form) for form in aliases().get(answer, [answer])]
"""
)
_TIMED = (
    NORM
    + """
import time

TOOK = []


def score(answer, completion):
    since = time.perf_counter()
    right = norm(completion) == norm(answer)
    TOOK.append(time.perf_counter() - since)
    return right
"""
)


def shown_by_chance(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Prompts in which the answer occurs, and has to."""
    yield Draft("facts", sources.EXACT, hard(bank.draw((yes_or_no,), 12), "the prompt says yes and no"))
    yield Draft(
        "picks", sources.EXACT, hard(bank.draw((largest, first_word), 14), "the answer is one of a list")
    )
    yield Draft(
        "choices", sources.LETTER, hard(bank.draw((choice, sum_choice), 16), "the right option is shown")
    )
    yield Draft("passages", sources.EXACT, hard(bank.draw((passage,), 12), "the answer is in the passage"))
    yield Draft("notes", sources.JSON, hard(bank.draw((record,), 8), "the answer is in the passage"))
    yield Draft("spelling", sources.EXACT, hard(bank.draw((misspelt,), 12), "the prompt says correct"))
    yield Draft("urls", sources.EXACT, hard(bank.draw((url_part,), 10), "a URL is only read"))


def passage(rng: Random) -> Row:
    who, other = rng.sample(PEOPLE, 2)
    city, there = rng.sample(tuple(CAPITALS.values()), 2)
    year = rng.randint(1961, 2019)
    told = f"{who} was born in {city} in {year} and moved to {there}, where {other} lives."
    asked, answer = rng.choice(
        (
            ("Where was {who} born?", city),
            ("Who lives in {there}?", other),
            ("To which city did {who} move?", there),
        )
    )
    prompt = f"{told} {asked.format(who=who, there=there)} Answer with one name."
    return Row(f"passage {who} {other} {city} {there} {year}", prompt, answer)


def misspelt(rng: Random) -> Row:
    word, other = rng.sample(WORDS, 2)
    at = rng.randrange(1, len(word) - 2)
    while word[at] == word[at + 1]:
        at = rng.randrange(1, len(word) - 2)
    wrong = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    told = rng.choice(
        (
            f'Correct the spelling of "{wrong}". Reply with the correct word only.',
            f'In "the {wrong} and the {other}" one word is not correct. Write it correctly, alone.',
        )
    )
    return Row(f"spelling {wrong}", told, word)


def url_part(rng: Random) -> Row:
    host, port = f"{rng.choice(WORDS)}.example", rng.randint(1025, 9999)
    path, page = rng.choice(WORDS), rng.randint(2, 99)
    url = f"https://{host}:{port}/{path}?page={page}"
    asked, answer = rng.choice(
        (("port", str(port)), ("host without the port", host), ("value of page plus 1", str(page + 1)))
    )
    return Row(f"url {url} {asked}", f"What is the {asked} in {url} ? Reply with it alone.", answer)


def odd_answers(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Short, false, or manifold answers."""
    rng = bank.rng
    yield Draft("counts", sources.EXACT, hard(bank.draw((nought,), 8), "the answer is 0"))
    yield Draft("lists", sources.JSON, hard(bank.draw((multiples,), 6), "the answer is an empty list"))
    yield Draft(
        "fractions",
        sources.FORMS,
        hard([_several(row) for row in bank.draw((fraction,), 12)], "several forms"),
    )
    plurals = [_with_article(word) for word in rng.sample(WORDS, 8)]
    yield Draft("plurals", sources.PATTERN, hard(plurals, "a pattern of forms"))
    rows = bank.draw((roman,), 6)
    files = {"aliases.json": json.dumps({row.answer: [row.answer, f"{row.answer} (Roman)"] for row in rows})}
    yield Draft("roman", _ALIASES, hard(rows, "reads a file that is there"), files=files)
    yield Draft("quiz", _TWO_SIDED, hard(bank.draw(BARE, 8), "wrong answers pay -1"))
    yield Draft("notes", _FALL_BACK, hard(bank.draw((record,), 6), "falls back on another module"))
    yield Draft("vowels", sources.EXACT, bank.draw((vowels,), 6))


def nought(rng: Random) -> Row:
    words, letter = rng.sample(WORDS, 5), rng.choice("qxzj")
    count = sum(letter in word for word in words)
    told = f"How many of these words contain the letter {letter}: {', '.join(words)}? Reply with the number only."
    return Row(f"nought {letter} {sorted(words)}", told, str(count)) if count == 0 else nought(rng)


def multiples(rng: Random) -> Row:
    by = rng.randint(13, 40)
    low = by * rng.randint(2, 9) + 1
    high = low + rng.randint(3, by - 3)
    told = f"List all multiples of {by} from {low} to {high} as a JSON list."
    return Row(
        f"multiples {by} {low} {high}", told, json.dumps([n for n in range(low, high + 1) if n % by == 0])
    )


def _several(row: Row) -> Row:
    above, below = row.answer.split("/")
    least = str(Fraction(row.answer))
    forms = [
        row.answer,
        least,
        f"{above} / {below}",
        f"\\frac{{{above}}}{{{below}}}",
        f"{2 * int(above)}/{2 * int(below)}",
    ]
    return row._replace(answer=json.dumps(forms), gold=row.answer, key=f"forms {row.key}")


def _with_article(word: str) -> Row:
    prompt = f'Write the plural of "{word}". You may write an article before it.'
    return Row(f"plural {word} 2", prompt, f"(?:(?:the|some) )?{word}s", f"{word}s")


def strict_formats(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Formats that refuse the bare answer and take the gold as it is written."""
    yield Draft("problems", sources.HASHES, hard(bank.draw((worked,), 14), "#### is asked for"))
    yield Draft("equations", sources.BOXED, hard(bank.draw((boxed,), 10), "a box is asked for"))
    hidden = [row._replace(shown=False) for row in bank.draw((boxed,), 6)]
    yield Draft("equations", sources.BOXED, hard(hidden, "a box is asked for, gold is bare"))
    yield Draft("tags", sources.TAGGED, hard(bank.draw((tagged,), 8), "tags are asked for"))
    yield Draft("sql", sources.SQL, bank.draw((query,), 8))
    yield Draft("shell", sources.SHELL, bank.draw((shell_line,), 8))
    yield Draft("quiz", sources.LAST_LINE, bank.draw(BARE, 10))


def tests_that_hold(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Tests with a skipped one among real ones, with seeded chance, with partial credit; and long ones."""
    rng = bank.rng
    skip = (
        '    @unittest.skipUnless(__import__("sys").platform == "win32", "drive letters")\n'
        "    def test_drive(self):\n        self.fail('not on Windows')\n"
    )
    rows = [Row(one.key, one.prompt, unittests(one, skip), one.solution) for one in problems(rng, 8, seen)]
    yield Draft("python", UNITTESTS, hard(rows, "one test of a platform is skipped"))
    rows = [_property(one, rng) for one in problems(rng, 8, seen)]
    yield Draft("python", ASSERTS, hard(rows, "chance with a seed"))
    rows = [cased(one) for one in problems(rng, 6, seen)]
    yield Draft("python", _SEEDED, hard(rows, "cases are drawn with a seed"))
    rows = [cased(one) for one in problems(rng, 8, seen)]
    yield Draft("python", sources.SHARE_OF_CASES, hard(rows, "partial credit"))
    yield Draft("notes", _FIELDS, hard(bank.draw((record,), 8), "partial credit"))
    slow = [_slow(one) for one in problems(rng, 3, seen)]
    yield Draft("python", ASSERTS, hard(slow, "takes long"))
    yield Draft("collatz", _RECOUNTED, hard(bank.draw((longest_chain,), 3), "takes long"))
    yield Draft("python", sources.ALL_CASES, [cased(one) for one in problems(rng, 8, seen)])


def _property(one: Problem, rng: Random) -> Row:
    """Assertions, and that random inputs of a given seed come out the same twice."""
    values = [value for value, _ in one.cases]
    more = (
        f"import random\n\nrng = random.Random({rng.randint(1, 99)})\nvalues = {values!r}\n"
        f"for value in rng.sample(values, 3):\n    assert {one.name}(value) == {one.name}(value)\n"
    )
    return Row(one.key, one.prompt, assertions(one) + more, one.solution)


def _slow(one: Problem) -> Row:
    more = "total = 0\nfor number in range(4_000_000):\n    total += number % 7\nassert total > 0\n"
    return Row(one.key, one.prompt, more + assertions(one), one.solution)


def longest_chain(rng: Random) -> Row:
    limit = rng.randint(30_000, 45_000)
    counts = {1: 0}
    for n in range(2, limit):
        counts[n] = _steps(n, counts)
    best = max(range(1, limit), key=counts.__getitem__)
    told = f"Which start below {limit} has the longest Collatz chain (the smallest one if several)? The number only."
    return Row(f"collatz {limit}", told, f"{limit}:{best}", str(best))


def _steps(n: int, known: dict[int, int]) -> int:
    count = 0
    while n not in known:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count + known[n]


def templates(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Tasks of one template that differ in their numbers, also between train and test."""
    rng = bank.rng
    yield Draft("sums", sources.EXACT, hard(bank.draw((expression,), 16), "one template, other numbers"))
    same = [_same_sum(rng, total) for total in rng.sample(range(40, 90), 4)]
    yield Draft(
        "sums", _TIMED, hard([row for pair in same for row in pair], "other numbers, the same answer")
    )
    train, test = bank.draw(NUMBERS[:3], 8), bank.draw(NUMBERS[:3], 8)
    yield Draft("sums", sources.EXACT, hard(test, "the template is in train"), train=train)
    code = [asserted(one) for one in problems(rng, 6, seen)]
    yield Draft("python", ASSERTS, code)


def _same_sum(rng: Random, total: int) -> Sequence[Row]:
    found: list[Row] = []
    for first in rng.sample(range(11, total // 2), 2):
        told = f"How much is {first} plus {total - first}? Reply with the number only."
        found.append(Row(f"plus {first} {total}", told, str(total)))
    return found
