"""SWE rows over a small git repository that is made here: its modules each have a bug, rows have the repair and the tests.

The repository is ``repo`` beside the rows, whose column ``repo`` is its path. ``image_name`` is what ``docker build -t NAME -f
Dockerfile repo`` in the set's folder makes, with which ``turnwise eval swebench:FILE`` plays the rows.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

DOCKERFILE = "FROM turnwise-base:latest\nWORKDIR /testbed\nCOPY . /testbed\n"


class Function(NamedTuple):
    """A module with one function: broken, right, and expressions with their values that hold before, and only after the repair."""

    name: str
    broken: str
    right: str
    told: str
    before: Sequence[tuple[str, str]]
    after: Sequence[tuple[str, str]]


FUNCTIONS: tuple[Function, ...] = (
    Function("slug", 'import re\n\n\ndef slug(text):\n    return text.lower().replace(" ", "-")\n', 'import re\n\n\ndef slug(text):\n    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")\n', "slug keeps punctuation and makes two hyphens of two spaces.", [("slug('A b')", "'a-b'")], [("slug('A  b!')", "'a-b'"), ("slug(' x ')", "'x'")]),
    Function("clamp", "def clamp(value, low, high):\n    return min(value, high)\n", "def clamp(value, low, high):\n    return max(low, min(value, high))\n", "clamp does not keep to the lower bound.", [("clamp(5, 0, 3)", "3")], [("clamp(-2, 0, 3)", "0"), ("clamp(1, 2, 3)", "2")]),
    Function("chunks", "def chunks(items, size):\n    return [items[at:at + size] for at in range(0, len(items) - size + 1, size)]\n", "def chunks(items, size):\n    return [items[at:at + size] for at in range(0, len(items), size)]\n", "chunks loses the last, shorter piece.", [("chunks([1, 2, 3, 4], 2)", "[[1, 2], [3, 4]]")], [("chunks([1, 2, 3], 2)", "[[1, 2], [3]]"), ("chunks([1], 4)", "[[1]]")]),
    Function("initials", 'def initials(name):\n    return "".join(part[0] for part in name.split(" "))\n', 'def initials(name):\n    return "".join(part[0].upper() for part in name.split())\n', "initials fails for two spaces and keeps lower case.", [("initials('Ada Lovelace')", "'AL'")], [("initials('ada lovelace')", "'AL'"), ("initials('Ada  L')", "'AL'")]),
    Function("median", "def median(values):\n    return sorted(values)[len(values) // 2]\n", "def median(values):\n    ordered = sorted(values)\n    middle = len(ordered) // 2\n    if len(ordered) % 2:\n        return ordered[middle]\n    return (ordered[middle - 1] + ordered[middle]) / 2\n", "median of an even number of values is one of the two in the middle.", [("median([3, 1, 2])", "2")], [("median([1, 2, 3, 4])", "2.5"), ("median([5, 1])", "3.0")]),
    Function("leap", "def leap(year):\n    return year % 4 == 0\n", "def leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n", "leap takes all centuries for leap years.", [("leap(2024)", "True"), ("leap(2023)", "False")], [("leap(1900)", "False"), ("leap(2100)", "False")]),
    Function("percent", "def percent(part, whole):\n    return 100 * part / whole\n", "def percent(part, whole):\n    return 100 * part / whole if whole else 0.0\n", "percent divides by zero where the whole is nothing.", [("percent(1, 4)", "25.0")], [("percent(0, 0)", "0.0"), ("percent(3, 0)", "0.0")]),
    Function("titled", "def titled(text):\n    return text.title()\n", 'def titled(text):\n    return " ".join(word.capitalize() for word in text.split(" "))\n', "titled writes the letter after an apostrophe large.", [("titled('two words')", "'Two Words'")], [("titled(\"don't go\")", '"Don\'t Go"'), ("titled(\"it's\")", '"It\'s"')]),
    Function("flag", 'def flag(text):\n    return text == "true"\n', 'def flag(text):\n    return text.strip().lower() in ("true", "yes", "on", "1")\n', "flag takes only true, not yes, on or 1, nor capitals.", [("flag('true')", "True"), ("flag('no')", "False")], [("flag('Yes')", "True"), ("flag(' on ')", "True")]),
    Function("masked", 'def masked(number):\n    return "*" * (len(number) - 4) + number[-4:]\n', 'def masked(number):\n    if len(number) <= 4:\n        return "*" * len(number)\n    return "*" * (len(number) - 4) + number[-4:]\n', "masked shows the whole of a short number.", [("masked('123456')", "'**3456'")], [("masked('123')", "'***'"), ("masked('1234')", "'****'")]),
    Function("pairs", 'def pairs(text):\n    return dict(item.split("=") for item in text.split(";"))\n', 'def pairs(text):\n    items = [item.partition("=") for item in text.split(";") if item.strip()]\n    return {key.strip(): value.strip() for key, _, value in items}\n', "pairs fails for a semicolon at the end and for values with an equals sign.", [("pairs('a=1;b=2')", "{'a': '1', 'b': '2'}")], [("pairs('a=1;')", "{'a': '1'}"), ("pairs('q=x=y')", "{'q': 'x=y'}")]),
    Function("squeezed", 'def squeezed(text):\n    return text.replace("  ", " ")\n', 'def squeezed(text):\n    return " ".join(text.split())\n', "squeezed leaves two spaces where there were four.", [("squeezed('a  b')", "'a b'")], [("squeezed('a    b')", "'a b'"), ("squeezed(' a ')", "'a'")]),
    Function("roman", 'def roman(number):\n    signs = ((10, "X"), (5, "V"), (1, "I"))\n    said = ""\n    for value, sign in signs:\n        said += sign * (number // value)\n        number %= value\n    return said\n', 'def roman(number):\n    signs = ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))\n    said = ""\n    for value, sign in signs:\n        said += sign * (number // value)\n        number %= value\n    return said\n', "roman writes IIII for 4 and VIIII for 9.", [("roman(12)", "'XII'")], [("roman(4)", "'IV'"), ("roman(19)", "'XIX'")]),
    Function("shortened", 'def shortened(text, most):\n    return text[:most] + "..."\n', 'def shortened(text, most):\n    return text if len(text) <= most else text[:most - 3] + "..."\n', "shortened adds dots to short texts and is longer than it may be.", [("shortened('abcdef', 3)[-3:]", "'...'")], [("shortened('abc', 5)", "'abc'"), ("shortened('abcdefgh', 6)", "'abc...'")]),
    Function("ordinal", 'def ordinal(number):\n    ends = {1: "st", 2: "nd", 3: "rd"}\n    return f"{number}{ends.get(number % 10, \'th\')}"\n', 'def ordinal(number):\n    ends = {1: "st", 2: "nd", 3: "rd"}\n    if 10 < number % 100 < 20:\n        return f"{number}th"\n    return f"{number}{ends.get(number % 10, \'th\')}"\n', "ordinal of 11, 12 and 13 is wrong.", [("ordinal(21)", "'21st'")], [("ordinal(11)", "'11th'"), ("ordinal(112)", "'112th'")]),
    Function("overlap", "def overlap(first, second):\n    return first[0] < second[1] and first[1] > second[0] + 1\n", "def overlap(first, second):\n    return first[0] < second[1] and first[1] > second[0]\n", "overlap misses ranges that share one step.", [("overlap((0, 5), (2, 9))", "True")], [("overlap((0, 3), (2, 9))", "True"), ("overlap((4, 6), (5, 8))", "True")]),
    Function("flattened", "def flattened(items):\n    return [each for item in items for each in item]\n", "def flattened(items):\n    found = []\n    for item in items:\n        found += flattened(item) if isinstance(item, list) else [item]\n    return found\n", "flattened goes down one step only and fails for what is no list.", [("flattened([[1], [2]])", "[1, 2]")], [("flattened([1, [2]])", "[1, 2]"), ("flattened([[1, [2, [3]]]])", "[1, 2, 3]")]),
    Function("duration", 'def duration(text):\n    return int(text.rstrip("m")) * 60\n', 'import re\n\n\ndef duration(text):\n    units = {"h": 3600, "m": 60, "s": 1}\n    return sum(int(n) * units[unit] for n, unit in re.findall(r"(\\d+)([hms])", text))\n', "duration understands minutes only.", [("duration('2m')", "120")], [("duration('1h30m')", "5400"), ("duration('5s')", "5")]),
)  # fmt: skip


def tests_of(package: str, one: Function, checks: Sequence[tuple[str, str]], first: int) -> str:
    """Test functions, one for each check."""
    return "".join(
        f"\n\ndef test_{one.name}_{number}():\n    assert {said} == {value}\n"
        for number, (said, value) in enumerate(checks, first)
    )


def head_of(package: str, one: Function) -> str:
    return f"from {package}.{one.name} import {one.name}\n"


def diff(path: str, before: str, after: str) -> str:
    """A patch from one text to another; an empty text is a file that is not there."""
    old, new = ("/dev/null" if not before else f"a/{path}"), f"b/{path}"
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), old, new)
    mode = "" if before else "new file mode 100644\n"
    return f"diff --git a/{path} b/{path}\n{mode}" + "".join(lines)


def committed(folder: Path, files: Mapping[str, str]) -> str:
    """Make a repository of the files; the hash of its commit, which is the same each time."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        (folder / path).chmod(0o644)
    when = "2026-01-05T10:00:00+00:00"
    person = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Planter"), ("EMAIL", "planter@turnwise.invalid"), ("DATE", when))}  # fmt: skip
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main", ".")
    git("add", "-A", "-f", ".")
    git("commit", "-q", "--no-gpg-sign", "-m", "As it is")
    return git("rev-parse", "HEAD")
