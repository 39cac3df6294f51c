"""Another model as the teacher."""

from __future__ import annotations

from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess
from turnwise.trainers.kit.stand_in import wave
from turnwise.trainers.learn.model import same_tokens
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {GIVES[0]: p.logp_NK.detach() + 0.3 * wave(p)}


@component("teacher", "model", gives=GIVES, stand_in=_stand_in)
class ModelTeacher(Teacher):
    """A frozen model, which reads what the policy read and must have its tokeniser; on-policy distillation.

    Agarwal et al. 2023 (GKD, 2306.13649) is such a teacher with the loss ``distill``. Its head may have other rows than the
    policy's, as heads are padded: its distribution is taken over the policy's (``CutModel`` in teacher/core.py).

    >>> ModelTeacher.model is None
    True
    """

    def __init__(self, setup: TeacherSetup, *, path: str = "") -> None:
        if not path:
            raise RecipeError(
                "teacher 'model' has no path.", "Name a model: teacher: {name: model, path: …}."
            )
        same_tokens(setup.tokenizer, path, "The teacher")
        self.model = setup.load(path)
