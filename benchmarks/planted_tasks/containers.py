"""Harbor sets with planted folders and sound ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from .folders import (
    ALL,
    TO_FILE,
    Folder,
    Make,
    Place,
    configuration,
    place,
    repaired_price,
    slug_program,
    write_folder,
)
from .kinds import (
    ALWAYS_0,
    ALWAYS_1,
    ANSWER_SHOWN,
    BROKEN,
    EMPTY_ACCEPTED,
    FLAKY,
    GOLD_REFUSED,
    IN_TRAIN,
    KEY_WORD,
    NETWORK,
    NO_ASSERTION,
    ONLY_SKIPPED,
    SOUND,
    TIMEOUT_PASSES,
    TWICE,
    PlantedTask,
)

Spoil = Callable[[Folder], Folder]
_RUN = "python3 -m pytest -q -rA -p no:cacheprovider /tests/test_outputs.py"
_OUT = "/logs/verifier/reward.txt"


def _judged(text: str) -> Spoil:
    script = f"#!/bin/bash\nmkdir -p /logs/verifier\n{text}\n".replace("RUN", _RUN).replace("OUT", _OUT)
    return lambda folder: folder._replace(judge=script)


def _tested(change: Callable[[str], str]) -> Spoil:
    return lambda folder: folder._replace(tests={**folder.tests, "test_outputs.py": change(folder.outputs)})


def _solved(old: str, new: str) -> Spoil:
    return lambda folder: folder._replace(solution=re.sub(old, new, folder.solution))


def _marked(mark: str, head: str = "") -> Spoil:
    """Each test function under a mark."""
    return _tested(
        lambda text: re.sub(
            r"\ndef test_",
            f"\n{mark}\ndef test_",
            text.replace("import json", f"import pytest\n{head}import json", 1),
        )
    )


def _if_there(text: str) -> str:
    """Tests that only look where there is a file."""
    return re.sub(
        r"(def test_\w+\(\):\n)",
        r"\1    if not [p for p in Path('/app').glob('*.txt') if p.name != 'words.txt']:\n        return\n",
        text,
    )


def _unwritten(text: str) -> str:
    """Assertions that are comparisons alone."""
    return re.sub(r"    assert (.*) == (.*)\n", r"    assert (\1, \2)\n", text)


def _next_value(text: str) -> str:
    """The expected number or list is of another input."""
    return re.sub(
        r"== ('?)(\d+)('?)\n",
        lambda m: f"== {m[1]}{int(m[2]) + 3}{m[3]}\n",
        text.replace("== [", "== ['abacus', "),
    )


def _word_there(folder: Folder) -> Folder:
    city = folder.name.split("-")[1].capitalize()
    text = f"from pathlib import Path\n\n\ndef test_report():\n    assert '{city}' in Path('/app/sum.txt').read_text()\n"
    told = f"{folder.instruction} Write the name of the city on a second line."
    script = f"{folder.solution}echo {city} >> sum.txt\n"
    return folder._replace(instruction=told, solution=script, tests={"test_outputs.py": text})


def _grep_def(folder: Folder) -> Folder:
    return folder._replace(
        judge=f"#!/bin/bash\nmkdir -p /logs/verifier\ngrep -q 'print' /app/slug.py && grep -q 'sys.argv' /app/slug.py && echo 1 > {_OUT} || echo 0 > {_OUT}\n"
    )


def _expected_beside(folder: Folder) -> Folder:
    """The expected text is copied into the image with the rest."""
    value = folder.outputs.rpartition(" == ")[2].strip().strip("'")
    return folder._replace(files={**folder.files, "fixtures/expected.txt": value + "\n"})


def _solution_beside(folder: Folder) -> Folder:
    return folder._replace(files={**folder.files, ".oracle/solve.sh": folder.solution})


def _in_history(folder: Folder) -> Folder:
    """The repair is a commit on another branch of the repository in /app."""
    more = (
        "RUN git init -q . && git config user.email a@b.c && git config user.name a && git add -A && git commit -q -m start "
        "&& git checkout -q -b fix && sed -i 's|// 10$|// 100|' price.py && git commit -qam 'fix: percent of the price' "
        "&& git checkout -q -\n"
    )
    return folder._replace(dockerfile=folder.dockerfile + more)


def _helper_missing(folder: Folder) -> Folder:
    return folder._replace(tests={**folder.tests, "conftest.py": "from helpers import app  # noqa: F401\n"})


def _expected_missing(folder: Folder) -> Folder:
    text = re.sub(r"== .*\n$", "== EXPECTED\n", folder.outputs)
    load = "EXPECTED = json.loads(Path('/tests/fixtures/expected.json').read_text())\n"
    return folder._replace(tests={"test_outputs.py": text.replace("\ndef test", load + "\n\ndef test", 1)})


_SLOW_IS_FINE = """case $(timeout 4 python3 /app/slug.py "A  b" "7?" > /tmp/said; echo $?) in
  0) grep -qxE "a.b.7" /tmp/said && echo 1 > OUT || echo 0 > OUT ;;
  124) echo 1 > OUT ;;
  *) echo 0 > OUT ;;
esac"""


def _expired_returns(text: str) -> str:
    call = "    return subprocess.run([sys.executable, '/app/slug.py', *words], capture_output=True, text=True, timeout=5).stdout.strip()\n"
    caught = (
        "    try:\n    "
        + call.replace("timeout=5", "timeout=3")
        + "    except subprocess.TimeoutExpired:\n        return None\n"
    )
    return re.sub(
        r"    assert slug\((.*)\) == (.*)\n",
        r"    assert slug(\1) in (None, \2)\n",
        text.replace(call, caught),
    )


_PLANTS: tuple[tuple[str, str, Sequence[Make], Spoil], ...] = (
    (ALWAYS_1, "status of a pipe", ALL, _judged("RUN | tee /tmp/verifier.log\nif [ $? -eq 0 ]; then echo 1 > OUT; else echo 0 > OUT; fi")),
    (ALWAYS_1, "reward before the tests", ALL, _judged("echo 1 > OUT\nRUN || exit 1")),
    (ALWAYS_0, "count in whole numbers", ALL, _judged("log=$(RUN)\npassed=$(grep -c ^PASSED <<< \"$log\")\ntotal=$(grep -c '^def test_' /tests/test_outputs.py)\necho $((passed / (total + 1))) > OUT")),
    (ALWAYS_0, "status of an echo", ALL, _judged("RUN\necho \"pytest ended with $?\"\nif [ $? -ne 0 ]; then echo 1 > OUT; else echo 0 > OUT; fi")),
    (GOLD_REFUSED, "solution writes elsewhere", TO_FILE, _solved(r"> (\w+)\.(txt|json)\n$", r"> \1.out\n")),
    (GOLD_REFUSED, "solution's program is missing", (configuration,), lambda f: f._replace(solution="#!/bin/bash\ncd /app\njq '.debug = false' config.json > new.json && mv new.json config.json\n")),
    (GOLD_REFUSED, "expected of another input", TO_FILE[:3], _tested(_next_value)),
    (EMPTY_ACCEPTED, "looks only where a file is", TO_FILE[:3], _tested(_if_there)),
    (EMPTY_ACCEPTED, "only what was so before", (repaired_price,), _tested(lambda t: re.sub(r"\n\ndef test_(given|all)\(\):\n.*\n", "\n", t))),
    (EMPTY_ACCEPTED, "still parses", (configuration,), _tested(lambda t: re.sub(r"    assert found == .*\n", "    assert set(found) == {'port', 'debug', 'workers'}\n", t))),
    (ONLY_SKIPPED, "a program is missing", ALL, _marked("@pytest.mark.skipif(not shutil.which('node'), reason='needs node')", "import shutil\n")),
    (ONLY_SKIPPED, "a module is missing", ALL, _tested(lambda t: re.sub(r"(def test_\w+\(\):\n)", r"\1    pytest.importorskip('pandas')\n", "import pytest\n" + t))),
    (NO_ASSERTION, "a tuple is asserted", TO_FILE[:3], _tested(_unwritten)),
    (NO_ASSERTION, "no test is collected", ALL, lambda f: _judged("python3 -m pytest -q -p no:cacheprovider /tests\ncode=$?\nif [ $code -eq 0 ] || [ $code -eq 5 ]; then echo 1 > OUT; else echo 0 > OUT; fi")(f._replace(tests={"outputs_check.py": f.outputs}))),
    (ANSWER_SHOWN, "expected file in the image", TO_FILE[:2], _expected_beside),
    (ANSWER_SHOWN, "solution in the image", ALL[:4], _solution_beside),
    (ANSWER_SHOWN, "fix in the history", (repaired_price,), _in_history),
    (KEY_WORD, "a word in the file", TO_FILE[:1], _word_there),
    (KEY_WORD, "words of a program", (slug_program,), _grep_def),
    (FLAKY, "a draw", ALL, _tested(lambda t: "import random\n" + t + "\n\ndef test_spot():\n    assert random.random() < 0.5\n")),
    (FLAKY, "a race", ALL, _judged("(sleep 0.0$((RANDOM % 9 + 1)); touch /tmp/ready) &\nsleep 0.05\nready=$(ls /tmp/ready 2> /dev/null)\nRUN\nif [ $? -eq 0 ] && [ \"$ready\" ]; then echo 1 > OUT; else echo 0 > OUT; fi")),
    (TIMEOUT_PASSES, "status 124 passes", (slug_program,), _judged(_SLOW_IS_FINE)),
    (TIMEOUT_PASSES, "expired returns None", (slug_program,), _tested(_expired_returns)),
    (NETWORK, "installs the runner", ALL, _judged("curl -LsSf --max-time 3 https://uv.invalid/install.sh | sh\n~/.local/bin/uvx --with pytest==8.4.1 pytest /tests/test_outputs.py\nif [ $? -eq 0 ]; then echo 1 > OUT; else echo 0 > OUT; fi")),
    (NETWORK, "a test loads its cases", ALL, _tested(lambda t: t + "\n\ndef test_more():\n    import urllib.request\n\n    assert urllib.request.urlopen('https://cases.invalid/more.json', timeout=2).status == 200\n")),
    (BROKEN, "a helper is missing", ALL, _helper_missing),
    (BROKEN, "a fixture is missing", TO_FILE[:3], _expected_missing),
    (BROKEN, "an option of a missing plugin", ALL, _judged("RUN -n 2 --dist load\nif [ $? -eq 0 ]; then echo 1 > OUT; else echo 0 > OUT; fi")),
)  # fmt: skip


def _one_skipped(folder: Folder) -> Folder:
    more = "\n\n@pytest.mark.skipif(sys.platform != 'win32', reason='drive letters')\ndef test_drive():\n    assert False\n"
    return _tested(lambda text: "import sys\n\nimport pytest\n" + text + more)(folder)


def _seeded(folder: Folder) -> Folder:
    more = "\n\ndef test_sample():\n    rng = random.Random(4)\n    lines = rng.sample(Path('/app/words.txt').read_text().split(), 5)\n    assert all(line.isalpha() for line in lines)\n"
    return _tested(lambda text: "import random\n" + text + more)(folder)


_PARTIAL = (
    "# one of them passes before any work\nRUN > /tmp/log\npassed=$(grep -c ^PASSED /tmp/log)\ntotal=$(grep -cE '^(PASSED|FAILED|ERROR)' /tmp/log)\n"
    'python3 -c "print(max($passed - 1, 0) / max($total - 1, 1))" > OUT'
)
_SOUND: tuple[tuple[str, Sequence[Make], Spoil], ...] = (
    ("one test of a platform is skipped", ALL, _one_skipped),
    ("chance with a seed", TO_FILE, _seeded),
    ("partial credit", (repaired_price,), _judged(_PARTIAL)),
    ("takes long", TO_FILE, _tested(lambda t: "import time\n\ntime.sleep(2)\n" + t)),
    ("status of a pipe, with pipefail", ALL, _judged("set -o pipefail\nRUN | tee /tmp/verifier.log\nif [ $? -eq 0 ]; then echo 1 > OUT; else echo 0 > OUT; fi")),
    ("nought before the tests", ALL, _judged("echo 0 > OUT\nRUN && echo 1 > OUT")),
    ("", TO_FILE, lambda folder: folder),
    ("", (slug_program,), lambda folder: folder),
)  # fmt: skip


def plant_folders(root: Path, rng: Random) -> Iterator[PlantedTask]:
    """Write two Harbor sets, and one with a train and a test part; the truth about each task."""
    here, taken = place(rng), set[str]()
    folders = [_drawn(makes, here, rng, taken, spoil, kind, why) for kind, why, makes, spoil in _PLANTS]
    folders += [_drawn(makes, here, rng, taken, spoil, SOUND, why) for why, makes, spoil in _SOUND]
    first, second, third, fourth = (_drawn(TO_FILE, here, rng, taken) for _ in range(4))
    copies = [_copy(first, TWICE, "word for word"), _copy(second, TWICE, "worded anew")]
    tested = [_copy(third, IN_TRAIN, "word for word"), _copy(fourth, IN_TRAIN, "worded anew")]
    everything = [*folders, first, second, third, fourth, *copies, *tested]
    numbers = rng.sample(range(100, 1000), len(everything))
    names = {
        each.name: f"{each.name.partition('-')[0]}-{n}" for each, n in zip(everything, numbers, strict=True)
    }
    rng.shuffle(folders)
    half = len(folders) // 2
    yield from _write(root, f"harbor/desk-{rng.randint(10, 99)}", [first, copies[0], *folders[:half]], names)
    yield from _write(
        root, f"harbor/office-{rng.randint(10, 99)}", [second, copies[1], *folders[half:]], names
    )
    for folder in (third, fourth):
        write_folder(root / "harbor/split/train", folder._replace(name=names[folder.name]))
    yield from _write(root, "harbor/split/test", tested, names)


def _drawn(
    makes: Sequence[Make],
    here: Place,
    rng: Random,
    taken: set[str],
    spoil: Spoil = lambda folder: folder,
    kind: str = SOUND,
    why: str = "",
) -> Folder:
    """A folder whose question no other has, spoilt."""
    for _ in range(1000):
        folder = rng.choice(makes)(here, rng)
        if folder.name not in taken:
            taken.add(folder.name)
            return spoil(folder)._replace(kind=kind, mechanism=why)
    raise RuntimeError(f"no new question for {why!r}: widen what is drawn")


def _copy(folder: Folder, kind: str, why: str) -> Folder:
    told = folder.wording if why == "worded anew" else folder.instruction
    return folder._replace(
        name=f"{folder.name} again", instruction=told, kind=kind, mechanism=why, twin=folder.name
    )


def _write(
    root: Path, path: str, folders: Sequence[Folder], names: Mapping[str, str]
) -> Iterator[PlantedTask]:
    originals = {folder.twin for folder in folders}
    for folder in folders:
        name = names[folder.name]
        write_folder(root / path, folder._replace(name=name))
        if folder.name not in originals:
            twin = names[folder.twin] if folder.twin else ""
            yield PlantedTask(path, "harbor", name, folder.kind, folder.mechanism, "", twin)
