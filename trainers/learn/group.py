"""The process group of learners among whom weights are divided: the default one of each of their processes."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch

from turnwise.trainers.learn.ranks import LOOPBACK, Meeting

_INTERFACE = "GLOO_SOCKET_IFNAME"


@contextlib.contextmanager
def process_group(
    rank: int, size: int, meeting: Meeting, device: torch.device, patience_s: float
) -> Iterator[None]:
    """Have the default process group of this process for a while: gloo, and NCCL for what is on GPUs.

    FSDP2 needs a default group. An engine that has groups of its own must therefore be in another process.
    """
    from torch import distributed

    store: Any = distributed.PrefixStore("weights", meeting.store)  # pyright: ignore[reportPrivateImportUsage]
    with _reached_by(meeting.host):
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=patience_s),
        )
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextlib.contextmanager
def _reached_by(host: str) -> Iterator[None]:
    """Have gloo listen where the others reach this process, and nowhere else."""
    before = os.environ.get(_INTERFACE)
    if before is None and (name := _interface_of(host)):
        os.environ[_INTERFACE] = name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_INTERFACE, None)


def _interface_of(host: str) -> str:
    """Return the name of the network interface with this address; empty where none has it."""
    import psutil

    address = socket.gethostbyname(host) if host != LOOPBACK else host
    for name, addresses in psutil.net_if_addrs().items():
        if any(one.address == address for one in addresses):
            return name
    return ""
