"""Gives a task what judges it: twins of its tests, probes, and the proof that the true repair passes and the bug does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from turnwise.envs.swe.confirm import make_twins
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.probes import make_probes
from turnwise.envs.swe.reward import grade
from turnwise.errors import VerifierError
from turnwise.tools.sandbox.core import Backend, SandboxImage


def prove(backend: Backend, image: SandboxImage, task: Instance, lines: Mapping[str, int]) -> Instance | None:
    """A task with its twins and probes; None where no failing test has a twin, or the true repair is not accepted.

    ``image`` is the repository with the true repair, ``lines`` say where tests fail with the bug. Tests without a twin
    must pass as well, but do not decide alone.

    Raises:
        SandboxError: the sandbox failed.
    """
    twins = make_twins(backend, image, task.source, lines, task.pass_to_pass)
    if not any(twin.failing & set(task.fail_to_pass) for twin in twins):
        return None
    probes = make_probes(backend, task.source, task.fixed(), task.broken(), task.fail_to_pass)
    made = dataclasses.replace(task, twins=twins, probes=probes)
    try:
        return made if grade(backend, made, made.fixed()).resolved else None
    except VerifierError:
        return None
