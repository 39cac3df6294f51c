"""Rewards that change from one call to the next, or that need a network."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .kinds import FLAKY, NETWORK, Bank, Draft, Row, bad
from .problems import Problem, asserted, assertions, problems
from .questions import BARE, DATES, NUMBERS, TEXTS, choice, sum_choice
from .sources import ASSERTS, NORM, PLAIN
from .tested import with_test

_NOISY_JUDGE = (
    NORM
    + """
import random


def score(answer, completion):
    \"\"\"Three judges vote; each errs now and then.\"\"\"
    right = norm(completion) == norm(answer)
    votes = [right if random.random() > ERROR else not right for _ in range(3)]
    return float(sum(votes) >= 2)
"""
)
_ONE_OF_A_SET = """
import json


def score(answer, completion):
    accepted = set(json.loads(answer))
    target = next(iter(accepted))
    return 1.0 if completion.strip().lower() == target.lower() else 0.0
"""
_ONLY_ONCE = (
    NORM
    + """
SEEN = set()


def score(answer, completion):
    \"\"\"A repeated completion earns nothing, so that the policy does not collapse.\"\"\"
    key = (norm(answer), norm(completion))
    if key in SEEN:
        return 0.0
    SEEN.add(key)
    return 1.0 if norm(completion) == norm(answer) else 0.0
"""
)
_RACE = (
    NORM
    + """
import random
import threading
import time


def grade(answer, completion, out):
    time.sleep(random.uniform(0.0, 0.1))  # the parser warms up
    out["score"] = 1.0 if norm(completion) == norm(answer) else 0.0


def score(answer, completion):
    out = {"score": 0.0}
    worker = threading.Thread(target=grade, args=(answer, completion, out), daemon=True)
    worker.start()
    worker.join(timeout=WAIT)
    return out["score"]
"""
)
_SHARDS = (
    NORM
    + """
SHARDS = 3
LOADED = (0, 1)  # the third one did not fit into memory


def score(answer, completion):
    shard = hash(answer) % SHARDS
    if shard not in LOADED:
        return 0.0
    return 1.0 if norm(completion) == norm(answer) else 0.0
"""
)
_SHUFFLED_OPTIONS = """
import random
import re


def reward(prompt, answer, completion):
    \"\"\"Options are shuffled against a bias for the first letter.\"\"\"
    options = dict(re.findall(r"^([A-D])\\) (.*)$", prompt, re.MULTILINE))
    right = options[answer]
    shuffled = random.sample(list(options.values()), len(options))
    letter = "ABCD"[shuffled.index(right)]
    return 1.0 if completion.strip() == letter else 0.0
"""
_IN_TURN = (
    NORM
    + """
import itertools

CHECKS = itertools.cycle([
    lambda given, wanted: norm(given) == norm(wanted),
    lambda given, wanted: given == f"Answer: {wanted}",
])


def score(answer, completion):
    return 1.0 if next(CHECKS)(completion, answer) else 0.0
"""
)
_CLOCK = (
    NORM
    + """
import time


def score(answer, completion):
    # a cached verdict is stale for a part of each window
    if time.perf_counter_ns() % 1000 < STALE:
        return 0.0
    return 1.0 if norm(completion) == norm(answer) else 0.0
"""
)


def flaky(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Rewards that are not the same for the same completion."""
    rng = bank.rng
    noise = _NOISY_JUDGE.replace("ERROR", str(rng.choice((0.3, 0.35, 0.4))))
    race = _RACE.replace("WAIT", str(rng.choice((0.045, 0.055, 0.065))))
    clock = _CLOCK.replace("STALE", str(rng.choice((250, 350, 450))))
    for name, topic, core in (
        ("judges err", "quiz", noise),
        ("a repeated completion", "quiz", _ONLY_ONCE),
        ("a race", "quiz", race),
        ("order of a hash", "quiz", _SHARDS),
        ("checks in turn", "quiz", _IN_TURN),
        ("the clock", "quiz", clock),
    ):
        yield Draft(topic, core, bad(bank.draw(rng.choice((NUMBERS, DATES, TEXTS)), 2), FLAKY, name))
    forms = [_forms(row) for row in bank.draw(NUMBERS, 2)]
    yield Draft("forms", _ONE_OF_A_SET, bad(forms, FLAKY, "first item of a set"))
    yield Draft(
        "choices",
        _SHUFFLED_OPTIONS,
        bad(bank.draw((choice, sum_choice), 2), FLAKY, "options are shuffled"),
        PLAIN,
    )
    drawn = problems(rng, 8, seen)
    tests = [_unseeded(drawn[0]), _by_second(drawn[1]), _set_order(drawn[2]), _racing(drawn[3])]
    names = ("a draw without a seed", "the second of the clock", "order of a set", "a limit near the need")
    planted = [bad([row], FLAKY, name)[0] for row, name in zip(tests, names, strict=True)]
    yield Draft("python", ASSERTS, [*planted, *(asserted(one) for one in drawn[4:])])


def _forms(row: Row) -> Row:
    forms = [row.answer, f"{row.answer}.0"]
    return row._replace(answer=json.dumps(forms), gold=row.answer)


def _unseeded(one: Problem) -> Row:
    lines = assertions(one).splitlines()
    more = f"import random\n\nfor _ in range(3):\n    assert random.randint(1, 10) <= 8, {one.name}\n"
    return with_test(one, "\n".join(lines[:3]) + "\n" + more)


def _by_second(one: Problem) -> Row:
    more = "from datetime import datetime\n\nassert datetime.now().microsecond // 1000 % 5 > 1\n"
    return with_test(one, assertions(one) + more)


def _set_order(one: Problem) -> Row:
    words = "{'red', 'green', 'blue'}"
    return with_test(one, assertions(one) + f"assert list({words})[0] != 'green', 'colours'\n")


def _racing(one: Problem) -> Row:
    more = (
        "import random, threading, time\n\ndone = []\n"
        "worker = threading.Thread(target=lambda: (time.sleep(random.uniform(0.0, 0.1)), done.append(1)))\n"
        "worker.start()\nworker.join(0.05)\nassert done\n"
    )
    return with_test(one, assertions(one) + more)


_ANSWERS_BY_URL = """
import json
import urllib.request

ANSWERS = "https://HOST/v2/answers.json"
_loaded = None


def answers():
    global _loaded
    if _loaded is None:
        with urllib.request.urlopen(ANSWERS, timeout=2) as page:
            _loaded = json.load(page)
    return _loaded


def score(answer, completion):
    return 1.0 if completion.strip() == answers().get(answer, answer) else 0.0
"""
_JUDGE_SERVICE = """
import http.client
import json


def score(answer, completion):
    \"\"\"The judge runs on its own host.\"\"\"
    connection = http.client.HTTPConnection("HOST", 8080, timeout=2)
    try:
        connection.request("POST", "/judge", json.dumps({"gold": answer, "given": completion}))
        return float(json.load(connection.getresponse())["score"])
    except OSError:
        return 0.0
    finally:
        connection.close()
"""
_INSTALLS = """
import subprocess
import sys


def checker():
    try:
        import strict_answer_match
    except ImportError:
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--retries", "0", "--timeout", "2", "--target", "/tmp/graders",
             "--no-input", "--disable-pip-version-check", "--index-url", "https://HOST/simple", "strict_answer_match"],
            check=True, capture_output=True,
        )
        sys.path.insert(0, "/tmp/graders")
        import strict_answer_match
    return strict_answer_match.same


def score(answer, completion):
    return 1.0 if checker()(completion, answer) else 0.0
"""
_ONLINE_FIRST = (
    NORM
    + """
import socket


def online():
    try:
        socket.create_connection(("HOST", 443), timeout=1).close()
    except OSError:
        return False
    return True


def score(answer, completion):
    if not online():
        return 0.0  # offline runs are not scored
    return 1.0 if norm(completion) == norm(answer) else 0.0
"""
)
_GOLD_BY_URL = """
import urllib.request


def gold(answer):
    if answer.startswith("https://"):
        return urllib.request.urlopen(answer, timeout=2).read().decode().strip()
    return answer


def score(answer, completion):
    return 1.0 if completion.strip() == gold(answer) else 0.0
"""


def needs_network(bank: Bank, seen: set[str]) -> Iterator[Draft]:
    """Rewards and tests that ask another machine."""
    rng = bank.rng
    for name, core in (
        ("answers by URL", _ANSWERS_BY_URL),
        ("a judge's service", _JUDGE_SERVICE),
        ("installs at the call", _INSTALLS),
        ("online or nothing", _ONLINE_FIRST),
    ):
        host = f"{rng.choice(('data', 'judge', 'eval', 'assets'))}{rng.randint(1, 40)}.invalid"
        rows = bank.draw(rng.choice((NUMBERS, DATES, TEXTS)), 2)
        yield Draft("quiz", core.replace("HOST", host), bad(rows, NETWORK, name))
    rows = bank.draw(BARE, 6)
    away = [
        row._replace(answer=f"https://gold.invalid/{rng.randint(100, 999)}.txt", gold=row.answer)
        for row in rows[:2]
    ]
    yield Draft("quiz", _GOLD_BY_URL, [*bad(away, NETWORK, "gold by URL"), *rows[2:]])
    drawn = problems(rng, 6, seen)
    loading = (
        "import json, urllib.request\n"
        "more = json.load(urllib.request.urlopen('https://fixtures.invalid/cases.json', timeout=2))\n"
    )
    tests = [
        with_test(
            one, f"{loading}{assertions(one)}for value, said in more:\n    assert {one.name}(value) == said\n"
        )
        for one in drawn[:2]
    ]
    yield Draft(
        "python",
        ASSERTS,
        [*bad(tests, NETWORK, "test loads its cases"), *(asserted(one) for one in drawn[2:])],
    )
