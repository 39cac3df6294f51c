"""The policy as it was when reinforcement began, as the teacher."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


@component("teacher", "reference", gives=GIVES, needs=("reference",), paper="2310.16763")
class ReferenceTeacher(Teacher):
    """The frozen reference, so that a loss may hold the policy to its whole distributions and not to the sampled tokens alone.

    SuperHF (Mukobi et al. 2023) is imitation of the best of n with 0.23·KL(π₀ ‖ π) at each token:
    ``loss: [nll, {name: distill, weight: 0.23}]`` with this teacher. ``top`` is exact where it is the whole vocabulary; of a smaller one all
    other tokens are one more outcome. With adapters it is the model without them.

    >>> ReferenceTeacher(None).of_reference
    True
    """

    of_reference = True

    def __init__(self, setup: TeacherSetup) -> None:
        """Nothing is loaded: the learner has the reference."""
