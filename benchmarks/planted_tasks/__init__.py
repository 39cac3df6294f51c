"""Sets of tasks with known defects, to measure tools that look for defects: ``python -m benchmarks.planted_tasks FOLDER --seed 1``.

A seed gives the same sets with other numbers, wordings, conventions, names and orders. Fourteen kinds of defects (``kinds``), each
in several mechanisms as they are reported of public task sets, stand beside sound tasks, many of which look like a defect.

    jsonl/TOPIC-NNN/     tasks.jsonl, or train.jsonl and test.jsonl; reward.py in the convention of TRL, verl or a plain
                         function. A row's gold is its ``solution`` where it has one, else its ``answer`` (verl: ground truth),
                         in the form that the prompt asks for.

    harbor/SET/TASK/     Harbor folders, which share one environment; the base image is ``turnwise-base:latest``.
    swe/SET/             SWE rows over the git repository ``repo`` beside them.

    kinds        the vocabulary              writing   a set → files        paying   calls a set's reward function
    questions    short answers               problems  answers that are run or parsed
    sources      reward files that are right
    constant, gold, tested, leaks, unsteady, unready, copies    planted kinds        lookalikes   sound ones
    folders      task folders                containers    those that are planted
    repositories a repository and its bugs   repairs       the rows that are planted
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from . import constant, copies, gold, leaks, lookalikes, tested, unready, unsteady
from .containers import plant_folders
from .kinds import ALSO, KINDS, SOUND, Bank, Draft, PlantedTask
from .repairs import plant_rows
from .writing import write_set

__all__ = ["ALSO", "KINDS", "SOUND", "PlantedTask", "plant"]


def plant(folder: Path, seed: int) -> Sequence[PlantedTask]:
    """Write all sets of a seed to a folder that is empty or not there; the truth about each task.

    Raises:
        FileExistsError: something is in the folder.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name another folder.")
    rng = Random(f"planted tasks {seed}")
    drafts = list(_drafts(rng))
    rng.shuffle(drafts)
    tasks = [task for number, draft in enumerate(drafts) for task in write_set(folder, number, draft, rng)]
    return [*tasks, *plant_folders(folder, rng), *plant_rows(folder, rng)]


def _drafts(rng: Random) -> Iterator[Draft]:
    bank, seen = Bank(rng), set[str]()
    for makes in (
        constant.always_1, constant.always_0, gold.gold_refused, gold.empty_accepted, tested.only_skipped, tested.no_assertion,
        leaks.answer_shown, leaks.key_word, unsteady.flaky, tested.timeout_passes, unsteady.needs_network, unready.broken,
        copies.same_twice, copies.test_in_train, lookalikes.shown_by_chance, lookalikes.odd_answers,
        lookalikes.strict_formats, lookalikes.tests_that_hold, lookalikes.templates,
    ):  # fmt: skip
        yield from makes(bank, seen)
