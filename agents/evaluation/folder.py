"""The folder of an evaluation: its request, the episodes so far, and the figures.

asked.json              written first: suite, split, seed, policy, …; a resume must ask the same
episodes.jsonl.zst      every finished episode, on the disk within a second
evaluation.json         the figures; written last, whole or not at all
.lock                   held while somebody plays
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.log.episode_log import keep_records
from turnwise.durable import hold_folder, write_whole
from turnwise.errors import RunError
from turnwise.secrets import redact_options
from turnwise.tasks.core import Json

_LONGEST = 60


class EvaluationFolder:
    """The files of one evaluation (``eval --out``)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked = path / "asked.json"
        self.log = path / "episodes.jsonl.zst"
        self.summary = path / "evaluation.json"

    @property
    def begun(self) -> bool:
        """True if the folder holds episodes; a start that failed at once leaves only the request."""
        return self.summary.exists() or (self.log.exists() and self.log.stat().st_size > 0)

    def played(self) -> list[Episode]:
        """The episodes that are finished and count. What failed, and copies, leave the log: they are played again.

        Raises:
            TurnwiseError: the log is damaged before its end.
        """
        if not self.log.exists():
            return []
        seen: set[tuple[str, int]] = set()

        def keep(episode: Episode) -> bool:
            key = (episode.task.id, episode.seed)
            new = episode.outcome.counts and key not in seen
            seen.update({key} if new else ())
            return new

        return [record.episode for record in keep_records(self.log, lambda record: keep(record.episode))]

    def write(self, evaluation: Evaluation, *, interrupted: bool) -> None:
        """Write the figures.

        Raises:
            RunError: the disk is full; the episodes are in the log.
        """
        data = evaluation.to_json(results=True) | {"interrupted": interrupted}
        _write(self.summary, data)


@contextmanager
def open_folder(path: Path, asked: Mapping[str, Json], *, resume: bool) -> Iterator[EvaluationFolder]:
    """Open an evaluation's folder, locked for other processes while it is played.

    Raises:
        RunError: another process plays there, an evaluation is there already and ``resume`` is False, or what
            was asked of it differs.
    """
    with hold_folder(path, "evaluates", _unwritable):
        asked = redact_options(asked)
        folder = EvaluationFolder(path)
        if folder.begun:
            _check(folder, asked, resume)
        else:
            _write(folder.asked, asked)
        yield folder


def now() -> str:
    """The time that chat templates are told in an evaluation which begins now."""
    return datetime.now().isoformat(timespec="seconds")


def clock_of(path: Path) -> str:
    """The time that the evaluation in this folder tells chat templates, from its beginning on; now, if it has none."""
    try:
        asked = json.loads((path / "asked.json").read_text("utf-8"))
        return str(asked["clock"])
    except (OSError, ValueError, TypeError, KeyError):  # what is wrong with it is told where it is compared
        return now()


def _check(folder: EvaluationFolder, asked: Mapping[str, Json], resume: bool) -> None:
    if not resume:
        raise RunError(
            f"{folder.path} holds an evaluation already.", "Go on with --resume, or choose another --out."
        )
    try:
        before = dict(json.loads(folder.asked.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"What was asked cannot be read from {folder.asked}: {error}.", "Evaluate anew in another --out."
        ) from error
    now = json.loads(json.dumps(asked))
    changed = [
        f"{name} (was {_short(before.get(name))}, now {_short(now.get(name))})"
        for name in {**before, **now}
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise RunError(
            f"The evaluation in {folder.path} was started with another {', '.join(changed)}.",
            "Resume with what it was started with, or choose another --out.",
        )


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _write(path: Path, data: Mapping[str, Json]) -> None:
    try:
        write_whole(path, json.dumps(data, indent=1, ensure_ascii=True) + "\n")
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> RunError:
    return RunError(
        f"{path} cannot be written: {error.strerror or error}.",
        "Make room or check the path, then go on with --resume; finished episodes are kept.",
    )
