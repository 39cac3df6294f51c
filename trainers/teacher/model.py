"""Another model as the teacher."""

from __future__ import annotations

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


@component("teacher", "model", gives=GIVES)
class ModelTeacher(Teacher):
    """A frozen model, which reads what the policy read and must have its tokeniser; on-policy distillation.

    Agarwal et al. 2023 (GKD, 2306.13649) is such a teacher with the loss ``distill``.

    >>> ModelTeacher.model is None
    True
    """

    def __init__(self, setup: TeacherSetup, *, path: str = "") -> None:
        if not path:
            raise RecipeError(
                "teacher 'model' has no path.", "Name a model: teacher: {name: model, path: …}."
            )
        self.model = setup.load(path)
        vocabulary = int(self.model.get_input_embeddings().weight.shape[0])  # pyright: ignore
        if vocabulary < len(setup.tokenizer):
            raise RecipeError(
                f"The teacher {path} knows {vocabulary} tokens, and the policy's tokeniser {len(setup.tokenizer)}.",
                "Choose a teacher with the policy's tokeniser.",
            )
