"""SWE sets with planted rows and sound ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from .kinds import (
    ALWAYS_0,
    ANSWER_SHOWN,
    BROKEN,
    EMPTY_ACCEPTED,
    FLAKY,
    GOLD_REFUSED,
    IN_TRAIN,
    NETWORK,
    NO_ASSERTION,
    SOUND,
    TWICE,
    PlantedTask,
)
from .questions import WORDS
from .repositories import DOCKERFILE, FUNCTIONS, Function, committed, diff, head_of, tests_of


class Repair(NamedTuple):
    """A row before it is written: the module's repair, its test file before and after, and which tests must pass."""

    one: Function
    told: str
    patch: str
    old_tests: str
    new_tests: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    kind: str = SOUND
    mechanism: str = ""
    twin: str = ""
    broken: str = ""
    files: Mapping[str, str] = {}


def repair(package: str, one: Function) -> Repair:
    """A sound row."""
    old = head_of(package, one) + tests_of(package, one, one.before, 0)
    new = old + tests_of(package, one, one.after, len(one.before))
    file = f"tests/test_{one.name}.py"
    names = [f"{file}::test_{one.name}_{number}" for number in range(len(one.before) + len(one.after))]
    split = len(one.before)
    patch = diff(f"{package}/{one.name}.py", one.broken, one.right)
    return Repair(
        one,
        f"{one.told} ({package})",
        patch,
        old,
        new,
        tuple(names[split:]),
        tuple(names[:split]),
        broken=one.broken,
    )


def _more(one: Function, *lines: str) -> str:
    """One more test, of these lines."""
    return "".join((f"\n\ndef test_{one.name}_more():\n", *(f"    {line}\n" for line in lines)))


def _demanded(made: Repair, last: str, *lines: str) -> Repair:
    """The row with one more test, which has to pass."""
    return made._replace(
        new_tests=made.new_tests + _more(made.one, *lines), fail_to_pass=(*made.fail_to_pass, last)
    )


def _planted(package: str, kind: str, why: str, made: Repair) -> Repair:
    """The row with this defect."""
    one, file = made.one, f"tests/test_{made.one.name}.py"
    last = f"{file}::test_{one.name}_more"
    held = f"assert {one.after[0][0]} == {one.after[0][1]}"
    refused = ("with pytest.raises(Exception):", f"    {held}")
    spoilt = {
        "parameters of another system": lambda: made._replace(fail_to_pass=tuple(f"{name}[C:\\\\data-Darwin]" for name in made.fail_to_pass)),
        "tests of other names": lambda: made._replace(fail_to_pass=tuple(f"{name}_regression" for name in made.fail_to_pass)),
        "the patch is unfinished": lambda: made._replace(patch=diff(f"{package}/{one.name}.py", one.broken, "# see the issue\n" + one.broken)),
        "must pass, and holds only before": lambda: made._replace(
            old_tests=made.old_tests + _more(one, *refused), new_tests=made.old_tests + _more(one, *refused) + tests_of(package, one, one.after, len(one.before)),
            pass_to_pass=(*made.pass_to_pass, last),
        ),
        "repaired in the base": lambda: made._replace(broken=one.right, patch=diff(f"{package}/{one.name}.py", one.right, one.right + "\n# done\n")),
        "tests what held before": lambda: made._replace(
            new_tests=made.old_tests + _more(one, f"assert {one.before[0][0]} == {one.before[0][1]}"), fail_to_pass=(last,)
        ),
        "compared, not asserted": lambda: _new_function(package, made, f"    {one.name}_all(['a']) == []\n"),
        "the assertion is caught": lambda: _new_function(package, made, f"    result = {one.name}_all([])\n    try:\n        assert result == [None]\n    except AssertionError:\n        print('differs')\n"),
        "the patch in the issue": lambda: made._replace(told=f"{made.told}\n\nProposed change:\n\n{made.patch}"),
        "the repair as a left-over file": lambda: made._replace(files={f"{package}/{one.name}.py.new": one.right}),
        "order of a set": lambda: _demanded(made, last, held, "assert next(iter({'north', 'south'})) == 'north'"),
        "a draw without a seed": lambda: _demanded(made, last, held, "assert random.random() < 0.6"),
        "a test asks a host": lambda: _demanded(
            made, last, "import urllib.request\n", held, "assert urllib.request.urlopen('https://echo.invalid/get', timeout=2).status == 200"
        ),
        "a test imports what is missing": lambda: made._replace(new_tests="import ddt\n" + made.new_tests),
        "a fixture is missing": lambda: made._replace(
            new_tests=made.new_tests.replace(f"test_{one.name}_{len(one.before)}()", f"test_{one.name}_{len(one.before)}(benchmark_data)")
        ),
    }  # fmt: skip
    found = spoilt[why]()
    return found._replace(
        kind=kind, mechanism=why, old_tests=_imports(found.old_tests), new_tests=_imports(found.new_tests)
    )


def _imports(tests: str) -> str:
    used = [name for name in ("pytest", "random") if f"{name}." in tests]
    return "".join(f"import {name}\n" for name in used) + tests


def _new_function(package: str, made: Repair, body: str) -> Repair:
    """A row that asks for a new function, of which the tests assert nothing."""
    one, path = made.one, f"{package}/{made.one.name}.py"
    added = f"{one.broken}\n\ndef {one.name}_all(items):\n    return [{one.name}(item) for item in items]\n"
    name = f"test_{one.name}_all"
    call = made.old_tests.replace(f"import {one.name}\n", f"import {one.name}\n", 1)
    tests = call + f"\n\ndef {name}():\n    from {package}.{one.name} import {one.name}_all\n\n{body}"
    return made._replace(
        told=f"Add {one.name}_all to {package}.{one.name}, which gives the list of the results of {one.name} for all items.",
        patch=diff(path, one.broken, added), new_tests=tests, fail_to_pass=(f"tests/test_{one.name}.py::{name}",),
    )  # fmt: skip


_PLANTS: tuple[tuple[str, str], ...] = (
    (ALWAYS_0, "parameters of another system"), (ALWAYS_0, "tests of other names"),
    (GOLD_REFUSED, "the patch is unfinished"), (GOLD_REFUSED, "must pass, and holds only before"),
    (EMPTY_ACCEPTED, "repaired in the base"), (EMPTY_ACCEPTED, "tests what held before"),
    (NO_ASSERTION, "the assertion is caught"), (ANSWER_SHOWN, "the patch in the issue"),
    (ANSWER_SHOWN, "the repair as a left-over file"), (FLAKY, "order of a set"), (FLAKY, "a draw without a seed"),
    (NETWORK, "a test asks a host"), (BROKEN, "a test imports what is missing"), (BROKEN, "a fixture is missing"),
)  # fmt: skip


def plant_rows(root: Path, rng: Random) -> Iterator[PlantedTask]:
    """Write an SWE set, and one with train and test rows; the truth about each row."""
    functions = rng.sample(FUNCTIONS, len(FUNCTIONS))
    first, second = rng.sample(WORDS, 2)
    rows = [
        _planted(first, kind, why, repair(first, one))
        for (kind, why), one in zip(_PLANTS, functions, strict=False)
    ]
    rows += [_hard(first, one) for one in functions[len(_PLANTS) :]]
    again = next(row for row in rows if row.kind == SOUND)
    rows.append(again._replace(kind=TWICE, mechanism="word for word", twin=again.one.name))
    yield from _write(
        root / "swe" / f"{first}-{rng.randint(10, 99)}", root, first, (("tasks.jsonl", rows),), rng
    )
    chosen = [repair(second, one) for one in rng.sample(FUNCTIONS, 6)]
    copies = [
        chosen[0]._replace(told=chosen[0].told),
        chosen[1]._replace(told=f"I found a bug. {chosen[1].told} Please repair it."),
    ]
    whys = ("word for word", "politely")
    test = [
        row._replace(kind=IN_TRAIN, mechanism=why, twin=row.one.name)
        for row, why in zip(copies, whys, strict=True)
    ]
    files = (("train.jsonl", chosen[:4]), ("test.jsonl", [*test, *chosen[4:]]))
    yield from _write(root / "swe" / f"{second}-{rng.randint(10, 99)}", root, second, files, rng)


def _hard(package: str, one: Function) -> Repair:
    """A sound row with a skipped test of another platform, whose name no list has, in its file."""
    made = repair(package, one)
    skipped = f"\n\n@pytest.mark.skipif(sys.platform != 'win32', reason='drive letters')\ndef test_{one.name}_drive():\n    assert False\n"
    return made._replace(
        new_tests="import sys\n\nimport pytest\n" + made.new_tests + skipped,
        mechanism="one test of a platform is skipped",
    )


def _write(
    folder: Path, root: Path, package: str, files: Sequence[tuple[str, Sequence[Repair]]], rng: Random
) -> Iterator[PlantedTask]:
    rows = [row for _, each in files for row in each]
    texts = {
        f"{package}/__init__.py": f'"""{package.capitalize()}: small helpers."""\n',
        "conftest.py": "",
        "README.md": f"# {package}\n",
    }
    for row in rows:
        texts[f"{package}/{row.one.name}.py"] = row.broken
        texts[f"tests/test_{row.one.name}.py"] = row.old_tests
        texts |= row.files
    commit = committed(folder / "repo", texts)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    numbers = iter(rng.sample(range(100, 1000), len(rows)))
    ids = {id(row): f"planted__{package}-{next(numbers)}" for row in rows}
    originals = {row.one.name for row in rows if row.twin}
    for name, each in files:
        shuffled = rng.sample(list(each), len(each))
        lines = [json.dumps(_columns(row, ids[id(row)], folder, package, commit)) for row in shuffled]
        (folder / name).write_text("\n".join(lines) + "\n")
        path = str((folder / name).relative_to(root))
        for row in shuffled:
            if row.kind != SOUND or row.one.name not in originals:
                twin = (
                    next(
                        (ids[id(other)] for other in rows if row.twin == other.one.name and not other.twin),
                        "",
                    )
                    if row.twin
                    else ""
                )
                yield PlantedTask(path, "swe", ids[id(row)], row.kind, row.mechanism, "", twin)


def _columns(row: Repair, name: str, folder: Path, package: str, commit: str) -> Mapping[str, str]:
    file = f"tests/test_{row.one.name}.py"
    return {
        "instance_id": name, "repo": str((folder / "repo").resolve()), "base_commit": commit, "version": "1.0",
        "problem_statement": row.told, "hints_text": "", "patch": row.patch,
        "test_patch": diff(file, row.old_tests, row.new_tests), "image_name": f"planted-{package}:{commit[:12]}",
        "FAIL_TO_PASS": json.dumps(row.fail_to_pass), "PASS_TO_PASS": json.dumps(row.pass_to_pass),
        "test_cmd": f"python3 -m pytest -rA --tb=no -p no:cacheprovider {file}",
    }  # fmt: skip
