"""Sources of tasks: files of instances, by split."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.levels import measured_level
from turnwise.envs.swe.packages import tasks_file
from turnwise.errors import EnvError, FileError, TurnwiseError
from turnwise.tasks.core import Split, Task
from turnwise.texts import json_rows

_HERE = Path(__file__).parent


def draw_task(
    rng: Random,
    split: Split,
    *,
    tasks: str = "small",
    packages: Sequence[str] = (),
    operators: Sequence[str] = (),
    failing: Sequence[int] = (1, 1_000_000),
    levels: Sequence[int] = (),
    review: bool = False,
) -> Task:
    """One of the tasks of a file: ``small`` (comes with Turnwise), ``sample`` (a few of PyPI packages), ``built``, ``releases``,
    ``history`` (releases of PyPI packages) and ``hard`` (bugs of several places), which come with Turnwise, ``adopted``, or a path.

    ``review``: a ``submit`` is answered with what the tests say that the agent can see, and can be taken back while turns
    are left; the next one with the same files counts. ``failing``: how many tests fail, at least and at most: few are harder to find.
    ``levels``: only tasks that are so hard (1 to 4, :mod:`turnwise.envs.swe.levels`; 0: not measured).

    Raises:
        EnvError: none is as it should be.
    """
    found = [
        one
        for one in in_split(load_instances(place_of(tasks)), split)
        if (not packages or one.package in packages)
        and (not operators or one.operator in operators)
        and (not levels or measured_level(one) in levels)
        and failing[0] <= len(one.fail_to_pass) <= failing[1]
    ]
    if not found:
        raise EnvError(f"No task of {tasks!r} fits, in {split.value}.", "Build more, or ask for less.")
    return rng.choice(found).task(review=review)


def place_of(tasks: str) -> Path:
    """The file of tasks that a word or a path means."""
    own = {
        "small": _HERE / "small.jsonl",
        "sample": _HERE / "sample.jsonl",
        "built": tasks_file(),
        "adopted": tasks_file("adopted"),
        "releases": tasks_file("releases"),
        "history": _HERE / "history.jsonl.gz",
        "hard": _HERE / "hard.jsonl.gz",
    }
    return own.get(tasks) or Path(tasks)


@cache
def load_instances(path: Path) -> tuple[Instance, ...]:
    """The tasks of a file, one JSON object a line; packed if its name ends in ``.gz``."""
    return tuple(_lines(path))


def in_split(instances: tuple[Instance, ...], split: Split) -> list[Instance]:
    """The tasks of a split. Functions are not shared: what was repaired in training is not in the test."""
    from turnwise.envs.worlds.knobs import in_split as belongs

    return [one for one in instances if belongs(split, "repair", one.package, one.edit.path, one.where)]


def _lines(path: Path) -> Iterator[Instance]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise TurnwiseError(f"There are no tasks at {path}.", "Make them: turnwise swe build.") from None
    except IsADirectoryError:
        raise TurnwiseError(
            f"{path} is a folder, not a file of tasks.", f"Task folders are the suite harbor:{path}"
        ) from None
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    remedy = "Make the tasks anew: turnwise swe build."
    for number, row in json_rows(data.split(b"\n"), str(path), remedy):
        try:
            yield Instance.from_json(row)
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{path}:{number} is no task of a repair: {error!r}.", remedy) from None
