"""The tasks of a suite as rows, for trainers that read data sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from turnwise.durable import write_whole
from turnwise.envs.core import tool_specs
from turnwise.envs.offered.session import OfferedEpisode
from turnwise.tasks.core import Json, Split, canonical, digest


@dataclass(frozen=True)
class OfferedRow:
    """A task as others read it.

    Attributes:
        prompt: the messages before the first action, with role and content.
        tools: as chat templates and servers take them.
        hash: of prompt and tools; another hash is another task.
    """

    suite: str
    split: str
    index: int
    seed: int
    task: str
    env: str
    prompt: list[dict[str, str]]
    tools: list[dict[str, Json]]
    hash: str

    def to_json(self) -> dict[str, Json]:
        return asdict(self)


def task_rows(suite: str, n: int, *, split: Split = Split.TRAIN, start: int = 0) -> Iterator[OfferedRow]:
    """Rows of tasks ``start … start + n − 1`` of a suite, whose episodes have their index as seed."""
    for index in range(start, start + n):
        episode = OfferedEpisode(suite, index, split)
        prompt = [{"role": message.role, "content": message.content} for message in episode.opening]
        tools = tool_specs(episode.tools)
        task = episode.env.task
        episode.close()
        yield OfferedRow(
            suite, str(split), index, index, task.id, task.env, prompt, tools, digest(prompt, tools)
        )


def write_rows(suite: str, file: Path, n: int, *, split: Split = Split.TRAIN, start: int = 0) -> None:
    """Write such rows, one JSON object a line.

    Raises:
        NotFoundError: there is no such suite.
        EnvError: several agents play in it.
    """
    rows = task_rows(suite, n, split=split, start=start)
    write_whole(file, "".join(canonical(row.to_json()) + "\n" for row in rows))
