"""GPUs of this machine for the roles of a run: each has its own, unless it was asked for that engines share the
learners'."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.errors import RunError
from turnwise.tools.processes import gpu_names


class GpuShares(NamedTuple):
    """GPUs by the names that CUDA_VISIBLE_DEVICES has for them; nothing where the run is on a CPU.

    Attributes:
        learners: one each; the first is this process's.
        engines: those of each engine.
        free: nobody's.
    """

    learners: tuple[str, ...] = ()
    engines: tuple[tuple[str, ...], ...] = ()
    free: tuple[str, ...] = ()


def share_gpus(
    device: str, *, learners: int, engines: int = 0, each: int = 1, together: bool = False
) -> GpuShares:
    """Give every learner a GPU and every engine ``each`` of the others.

    Args:
        device: as a recipe names it: auto, cuda or cpu.
        learners: processes that learn.
        engines: servers of this machine; an engine in this process is none.
        each: GPUs of an engine.
        together: where the others are too few, engines have the learners' too; no two engines have the same.

    Raises:
        RunError: this process sees fewer than that.
    """
    import torch

    if device == "cpu" or not torch.cuda.is_available():
        return GpuShares()
    seen = gpu_names(torch.cuda.device_count())
    if len(seen) < (max(learners, engines * each) if together else learners + engines * each):
        needs = [f"{learners} for scale.learners"] + [f"{each} for each of {engines} engines"] * bool(engines)
        raise RunError(
            f"The run needs {learners + engines * each} GPUs ({', '.join(needs)}), and this process sees {len(seen)}.",
            "Ask for fewer of them, have engines share the learners' (--on local:engines=1,gpus=shared), or leave engines "
            "out of --on: an engine in the learner's process shares its GPU.",
        )
    order = [*seen[learners:], *seen[:learners]]  # a learner's is shared where nothing else is left
    own = tuple(tuple(order[n * each : (n + 1) * each]) for n in range(engines))
    return GpuShares(tuple(seen[:learners]), own, tuple(seen[learners + engines * each :]))
