"""Another model as the teacher."""

from __future__ import annotations

from torch import Tensor

from turnwise.agents.models.loading import load_tokenizer
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess
from turnwise.trainers.kit.stand_in import wave
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
        own, theirs = setup.tokenizer.get_vocab(), load_tokenizer(path).get_vocab()
        other = sorted(token for token, number in own.items() if theirs.get(token) != number)
        if other:
            raise RecipeError(
                f"The teacher {path} has another vocabulary than the policy: {len(other)} of {len(own)} tokens have other numbers "
                f"there or none, such as {other[0]!r}.",
                "Choose a teacher with the policy's tokeniser.",
            )
        self.model = setup.load(path)
