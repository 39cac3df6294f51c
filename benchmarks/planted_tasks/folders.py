"""Harbor task folders: what they ask, their tests and solutions, and how a folder is written.

All of a set share one environment (orders, a log, a configuration, a small module in ``/app``), so that it is built once. The base
is ``turnwise-base:latest``: Python and pytest without a network, as tests/swe/test_images.py tags it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

from .kinds import SOUND
from .questions import GOODS, PEOPLE, WORDS

CITIES = ("Lima", "Oslo", "Riga", "Cairo")
JUDGE = """#!/bin/bash
mkdir -p /logs/verifier
python3 -m pytest -q -rA -p no:cacheprovider /tests/test_outputs.py
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
DOCKERFILE = "FROM turnwise-base:latest\nWORKDIR /app\nCOPY . /app\nRUN rm -f /app/Dockerfile\n"


class Folder(NamedTuple):
    """A task folder before it is written.

    ``files`` are the environment's, ``tests`` those beside ``test.sh``. ``twin`` is the name of the folder that this one copies.
    """

    name: str
    instruction: str
    solution: str
    files: Mapping[str, str]
    tests: Mapping[str, str]
    judge: str = JUDGE
    kind: str = SOUND
    mechanism: str = ""
    twin: str = ""
    dockerfile: str = DOCKERFILE
    wording: str = ""

    @property
    def outputs(self) -> str:
        return self.tests["test_outputs.py"]


def write_folder(where: Path, folder: Folder) -> None:
    """Write a task folder."""
    texts = {
        "instruction.md": folder.instruction + "\n",
        "task.toml": _TOML.format(name=folder.name),
        "environment/Dockerfile": folder.dockerfile,
        "solution/solve.sh": folder.solution,
        "tests/test.sh": folder.judge,
        **{f"environment/{path}": text for path, text in folder.files.items()},
        **{f"tests/{path}": text for path, text in folder.tests.items()},
    }
    for path, text in texts.items():
        file = where / folder.name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if path.endswith(".sh") else 0o644)


_TOML = """version = "1.0"

[metadata]
author_name = "planted tasks"
difficulty = "easy"
category = "data"
tags = ["{name}"]

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 60.0

[environment]
build_timeout_sec = 120.0
cpus = 1
memory_mb = 1024
"""


class Place(NamedTuple):
    """What is in ``/app``, as values and as files."""

    orders: tuple[tuple[int, str, str, int], ...]
    requests: tuple[tuple[str, int, str], ...]
    words: tuple[str, ...]
    port: int

    @property
    def files(self) -> dict[str, str]:
        rows = "".join(f"{number},{city},{what},{price}\n" for number, city, what, price in self.orders)
        log = "".join(f"{at} {status} {path}\n" for at, status, path in self.requests)
        config = {"port": self.port, "debug": True, "workers": 2}
        return {
            "orders.csv": "number,city,item,price\n" + rows,
            "server.log": log,
            "words.txt": "\n".join(self.words) + "\n",
            "config.json": json.dumps(config) + "\n",
            "price.py": "def total(price, percent):\n    return price - price * percent // 10\n",
        }


def place(rng: Random) -> Place:
    """Draw what is in ``/app``."""
    orders = tuple(
        (1000 + 7 * at + rng.randint(0, 6), rng.choice(CITIES), rng.choice(GOODS), rng.randint(3, 90))
        for at in range(30)
    )
    requests = tuple(
        (
            f"{9 + at // 20:02d}:{rng.randint(0, 59):02d}",
            rng.choice((200, 200, 404, 500, 503)),
            f"/{rng.choice(WORDS[:6])}",
        )
        for at in range(60)
    )
    return Place(orders, requests, tuple(rng.sample(WORDS, 20)), rng.randint(2000, 9000))


Make = Callable[[Place, Random], Folder]
_HEAD = "import json\nfrom pathlib import Path\n\n"


def _task(name: str, here: Place, told: str, wording: str, solution: str, tests: str) -> Folder:
    script = f"#!/bin/bash\ncd /app\n{solution}\n"
    return Folder(name, told, script, here.files, {"test_outputs.py": _HEAD + tests}, wording=wording)


def city_sum(here: Place, rng: Random) -> Folder:
    city, least = rng.choice(CITIES), rng.randint(3, 40)
    total = sum(price for _, where, _, price in here.orders if where == city and price >= least)
    return _task(
        f"sum-{city.lower()}-{least}", here,
        f"`/app/orders.csv` has one order a line. Write the sum of the prices of all orders from {city} that cost at least {least} to `/app/sum.txt`.",
        f"Add up what the orders of {city} in `/app/orders.csv` cost, leaving out prices below {least}, and put the sum in `/app/sum.txt`.",
        f"awk -F, '$2 == \"{city}\" && $4 >= {least} {{s += $4}} END {{print s + 0}}' orders.csv > sum.txt",
        f"\ndef test_sum():\n    assert Path('/app/sum.txt').read_text().strip() == '{total}'\n",
    )  # fmt: skip


def errors(here: Place, rng: Random) -> Folder:
    path, least = rng.choice(here.requests)[2], rng.choice((400, 500, 503))
    count = sum(status >= least and where == path for _, status, where in here.requests)
    return _task(
        f"errors-{path[1:]}-{least}", here,
        f"How many lines of `/app/server.log` are about {path} and have a status of {least} or more? Write the number to `/app/errors.txt`.",
        f"Count the requests for {path} in `/app/server.log` that ended with status {least} or above; the count goes to `/app/errors.txt`.",
        f"awk '$2 >= {least} && $3 == \"{path}\"' server.log | wc -l > errors.txt",
        f"\ndef test_errors():\n    assert int(Path('/app/errors.txt').read_text()) == {count}\n",
    )  # fmt: skip


def long_words(here: Place, rng: Random) -> Folder:
    least, letter = rng.randint(5, 7), rng.choice("aeiolrn")
    words = sorted(word for word in here.words if len(word) >= least and letter in word)
    return _task(
        f"words-{least}-{letter}", here,
        f"Write the words of `/app/words.txt` that have at least {least} letters, among them {letter}, to `/app/long.txt`, sorted, one a line.",
        f"`/app/long.txt` should hold, in order, each word of `/app/words.txt` with {least} letters or more and an {letter} in it, one a line.",
        f"awk 'length($0) >= {least} && /{letter}/' words.txt | sort > long.txt",
        f"\ndef test_words():\n    assert Path('/app/long.txt').read_text().split() == {words!r}\n",
    )  # fmt: skip


def configuration(here: Place, rng: Random) -> Folder:
    workers = rng.randint(3, 30)
    program = "import json; c = json.load(open('config.json')); c['debug'] = False; c['workers'] = {n}; json.dump(c, open('config.json', 'w'))"
    return _task(
        f"config-{workers}", here,
        f"In `/app/config.json`, switch debug off and set workers to {workers}. Leave the rest as it is.",
        f"Change `/app/config.json`: {workers} workers, no debug; nothing else may change.",
        f'python3 -c "{program.format(n=workers)}"',
        f"\ndef test_config():\n    found = json.loads(Path('/app/config.json').read_text())\n"
        f"    assert found == {{'port': {here.port}, 'debug': False, 'workers': {workers}}}\n",
    )  # fmt: skip


def repaired_price(here: Place, rng: Random) -> Folder:
    price, percent = rng.randint(30, 90) * 10, rng.randint(1, 4) * 10
    return _task(
        f"price-{price}-{percent}", here,
        f"`total({price}, {percent})` in `/app/price.py` should be {price - price * percent // 100}: percent of the price are taken off. It is not. Repair it.",
        f"The function total in `/app/price.py` takes off the wrong part; for {price} and {percent} percent it should give {price - price * percent // 100}.",
        "sed -i 's|// 10$|// 100|' price.py",
        "import sys\n\nsys.path.insert(0, '/app')\nimport price\n\n"
        f"\ndef test_given():\n    assert price.total({price}, {percent}) == {price - price * percent // 100}\n\n"
        "\ndef test_none():\n    assert price.total(100, 0) == 100\n\n\ndef test_all():\n    assert price.total(80, 100) == 0\n",
    )  # fmt: skip


def slug_program(here: Place, rng: Random) -> Folder:
    words = [word.capitalize() for word in rng.sample(WORDS, 3)]
    mark = rng.choice("-_.")
    program = f"import re, sys; print(re.sub('[^a-z0-9]+', '{mark}', ' '.join(sys.argv[1:]).lower()).strip('{mark}'))"
    return _task(
        f"slug-{words[0].lower()}", here,
        f'Write `/app/slug.py`: `python3 /app/slug.py "{" ".join(words)}!"` prints `{mark.join(words).lower()}`: lower case, every run of other characters is one `{mark}`, none at the ends.',
        f'The program `/app/slug.py` prints its arguments in lower case, joined with `{mark}` in place of each run of what is no letter or digit, none at the ends; of "{" ".join(words)}!" that is `{mark.join(words).lower()}`.',
        f'cat > slug.py <<"END"\n{program}\nEND',
        "import subprocess\nimport sys\n\n\ndef slug(*words):\n"
        "    return subprocess.run([sys.executable, '/app/slug.py', *words], capture_output=True, text=True, timeout=5).stdout.strip()\n\n"
        f"\ndef test_given():\n    assert slug('{' '.join(words)}!') == '{mark.join(words).lower()}'\n\n"
        f"\ndef test_runs():\n    assert slug('A  b', '7?') == 'a{mark}b{mark}7'\n",
    )  # fmt: skip


def newest(here: Place, rng: Random) -> Folder:
    who = rng.choice(PEOPLE)
    _, city, _, most = rng.choice(here.orders)
    numbers = [number for number, where, _, price in here.orders if where == city and price <= most]
    return _task(
        f"newest-{city.lower()}-{most}", here,
        f"{who} asks for the highest number of an order from {city} for at most {most} in `/app/orders.csv`. Write a JSON object with the keys city and number to `/app/newest.json`.",
        f"Find the largest order number of {city} (`/app/orders.csv`) with a price of {most} or less for {who}; `/app/newest.json` gets an object with city and number.",
        f"n=$(awk -F, '$2 == \"{city}\" && $4 <= {most} {{print $1}}' orders.csv | sort -n | tail -n 1)\n"
        f'echo "{{\\"city\\": \\"{city}\\", \\"number\\": $n}}" > newest.json',
        f"\ndef test_newest():\n    found = json.loads(Path('/app/newest.json').read_text())\n"
        f"    assert found == {{'city': '{city}', 'number': {max(numbers)}}}\n",
    )  # fmt: skip


TO_FILE: tuple[Make, ...] = (city_sum, errors, long_words, newest)
ALL: tuple[Make, ...] = (*TO_FILE, configuration, repaired_price, slug_program)
