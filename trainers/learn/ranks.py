"""A learner of a team whose other learners are processes: what they find is added up by gloo.

The process group is this object's own; nothing global is set up, so that an engine in the same process may have groups of
its own. A learner that is gone closes its connections, by which the others learn of it at once; one that says nothing
for ``patience_s`` is given up.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from turnwise.errors import RunError
from turnwise.trainers.learn.team import copied
from turnwise.trainers.learn.weights import Weights

LOOPBACK = "127.0.0.1"
PATIENCE_S = 600.0
"""Seconds that the others may take longer than this process between two sums."""
MEET_S = 60.0
"""Seconds that they may take to find one another."""
BUCKET = 1 << 24
"""So many numbers are added up at a time."""
Result = TypeVar("Result")


class Meeting(NamedTuple):
    """Meeting point of learners.

    Attributes:
        store: torch's, which all of them reach.
        host: the address by which the others reach this one.
    """

    store: Any
    host: str = LOOPBACK

    @classmethod
    def in_file(cls, path: Path, size: int) -> Meeting:
        """In a file in a folder of their own, for ``size`` learners of one machine."""
        from torch import distributed

        store: Any = distributed.FileStore(os.fspath(path), size)  # pyright: ignore[reportPrivateImportUsage]
        return cls(store)


class Rank:
    """One of ``size`` learners, each in a process of its own (a :class:`~turnwise.trainers.learn.team.Team`).

    Args:
        rank: this one's number.
        size: how many there are.
        meeting: where they find one another.
        patience_s: how long they wait for each other.
        why: says what is known of why another is gone.

    Raises:
        RunError: the others do not come.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        meeting: Meeting,
        *,
        patience_s: float = PATIENCE_S,
        why: Callable[[], str] = lambda: "",
    ) -> None:
        self.rank, self.size, self.mine = rank, size, (rank,)
        self._why = why
        self._options = _patience(patience_s)
        self._group: Any = self._heard(lambda: _group(rank, size, meeting))

    def sum_(self, x: Tensor) -> None:
        """Add up what all have found.

        Raises:
            RunError: a learner is gone.
        """
        self._heard(lambda: self._group.allreduce([x], self._options).wait())

    def gather(self, said: Sequence[str]) -> list[str]:
        """Gather what each of them says.

        Raises:
            RunError: a learner is gone.
        """
        own = torch.frombuffer(bytearray(said[0].encode() or b" "), dtype=torch.uint8)
        length_L = torch.zeros(self.size, dtype=torch.long)
        length_L[self.rank] = len(own)
        self.sum_(length_L)
        lengths = length_L.tolist()
        text_LC = torch.zeros(self.size, max(lengths), dtype=torch.uint8)
        text_LC[self.rank, : len(own)] = own
        self.sum_(text_LC)
        return [bytes(row_C[:n].tolist()).decode().strip() for row_C, n in zip(text_LC, lengths, strict=True)]

    @contextlib.contextmanager
    def share(self, number: int, weights: Sequence[Weights]) -> Iterator[None]:
        """Take all gradients of this process for those of its share."""
        yield

    def add_up(self, weights: Sequence[Weights]) -> None:
        """Add up all learners' gradients; a parameter for which nobody has one gets none.

        Raises:
            RunError: a learner is gone.
        """
        parameters = copied(weights)
        has_P = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)
        self.sum_(has_P)
        wanted = [parameter for parameter, has in zip(parameters, has_P.tolist(), strict=True) if has]
        for bucket in _buckets(wanted):
            self._add_up(bucket)

    def _add_up(self, bucket: Sequence[nn.Parameter]) -> None:
        each = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        flat = torch.cat([gradient.reshape(-1).cpu() for gradient in each])
        self.sum_(flat)
        start = 0
        for parameter, gradient in zip(bucket, each, strict=True):
            gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
            parameter.grad = gradient
            start += gradient.numel()

    def _heard(self, act: Callable[[], Result]) -> Result:
        try:
            return act()
        except RuntimeError as error:
            why = self._why() or str(error).strip().splitlines()[0][:200]
            raise gone(self.rank, self.size, why) from error


def gone(rank: int, size: int, why: str) -> RunError:
    """The error of a learner that waits for another in vain."""
    return RunError(
        f"Learner {rank} of {size} waits for another that is gone or wedged: {why}",
        "Go on with --resume, which takes the newest checkpoint; scale.learners may be another then.",
    )


def _patience(seconds: float) -> Any:
    from torch.distributed import AllreduceOptions

    options: Any = AllreduceOptions()
    options.timeout = timedelta(seconds=seconds)
    return options


def _group(rank: int, size: int, meeting: Meeting) -> Any:
    from torch import distributed

    made: Any = distributed.ProcessGroupGloo
    options = made._Options()
    options._timeout = timedelta(seconds=MEET_S)
    options._devices = [made.create_device(hostname=meeting.host)]
    meeting.store.set_timeout(timedelta(seconds=MEET_S))
    return made(meeting.store, rank, size, options)


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Parameters of one type in a row, about :data:`BUCKET` numbers together."""
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        full = sum(p.numel() for p in bucket) + parameter.numel() > BUCKET
        if bucket and (full or parameter.dtype != bucket[0].dtype):
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket
