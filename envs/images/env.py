"""``turnwise/Image-v0``: work in the image that a task brings, judged by the tests that it brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.acting import call_of
from turnwise.envs.core import EndReason, Guard, RewardKind, Transition
from turnwise.envs.images import solver
from turnwise.envs.images.actions import TOOLS
from turnwise.envs.images.judge import LIMITS, judge
from turnwise.envs.images.prepare import start_of
from turnwise.envs.images.state import ImageState
from turnwise.envs.images.tasks import ImageTask, draw_task, image_task_of
from turnwise.envs.messages import Message
from turnwise.envs.swe.desk import DeskEnv
from turnwise.errors import EnvError, InfraError
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.core import find_tool
from turnwise.tools.sandbox.backends.docker import DockerBackend
from turnwise.tools.sandbox.core import Sandbox, SandboxImage
from turnwise.tools.sandbox.registry import get_backend


class ImageEnv(DeskEnv[ImageState]):
    """A container of the task's image, with a shell and an editor; Docker only, without a network.

    Commands run as a user who is not root, and may write to the working folder and ``/tmp``: a task whose solution
    installs system packages or changes files elsewhere cannot be solved here.
    """

    system = (
        "You work in a container. Use the tools: look, run commands, change files, then submit. Tests that you do not "
        "see decide. You are not root; you may write to the working folder and to /tmp."
    )
    tools = TOOLS
    reward_components: Mapping[str, RewardKind] = {"outcome": RewardKind.OUTCOME}
    turn_limit = 60
    guarded_tasks: ClassVar[Mapping[str, Guard]] = {
        "context": Guard("names a folder of this machine that is built into an image")
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        """A task of a file or folder; the knobs are those of :func:`draw_task`.

        Raises:
            EnvError: none is named.
        """
        if "path" not in knobs:
            raise EnvError("Image-v0 has no tasks of its own.", "Name them: harbor:FOLDER or swebench:FILE.")
        return draw_task(rng, split, **knobs)

    # --- the contract ----------------------------------------------------------------------------

    def initial(self, task: Task) -> tuple[ImageState, str]:
        chosen = image_task_of(task)
        box = self.begin(start_of(_docker(), chosen))
        if chosen.setup:
            done = box.exec(["bash", "-c", chosen.setup], timeout=600)
            if not done.ok:
                raise InfraError(
                    f"The task's image cannot be set up: {(done.err or done.out).strip()[-300:]}.",
                    "Is it the image that the row names?",
                )
        return ImageState(task.id, box.snapshot().digest), task.prompt

    def transition(self, state: ImageState, action: Message) -> Transition[ImageState]:
        call = call_of(action, self.tools)
        given = find_tool(self.tools, call.name).validate(call)
        said = self.work(call.name, given)
        if said is None:
            return self._submit(state)
        done = state.done or given.get("command") == self._task().solution
        return Transition(ImageState(state.task, self.sandbox().snapshot().digest, digest(said), done), said)

    def gold(self, state: ImageState) -> Message:
        """The gold policy: runs the task's own solution, and submits."""
        return self.call(*solver.gold(self._task(), state))

    def demonstrate(self, state: ImageState, rng: Random) -> Message:
        """An imperfect scripted policy: it looks around, and sometimes submits too soon."""
        return self.call(*solver.demonstrate(self._task(), state, rng))

    def admissible(self, state: ImageState) -> Sequence[str]:
        """A few things to do; there are endlessly many."""
        return ("shell[ls]", "view[.]", "submit[]")

    def state_key(self, state: ImageState) -> str:
        return digest(*state)

    def open_sandbox(self, image: SandboxImage) -> Sandbox:
        return _docker().start(image, LIMITS)

    # --- inside ----------------------------------------------------------------------------------

    def _task(self) -> ImageTask:
        return image_task_of(self.task)

    def _submit(self, state: ImageState) -> Transition[ImageState]:
        verdict = judge(_docker(), self.sandbox().snapshot(), self._task())
        end = EndReason.SOLVED if verdict.reward >= 1.0 else EndReason.FAILED
        return Transition(
            state._replace(heard=verdict.why),
            "Submitted.",
            {"outcome": verdict.reward},
            end,
            {"verdict": verdict.why},
        )


def _docker() -> DockerBackend:
    backend = get_backend("docker")
    assert isinstance(backend, DockerBackend)
    return backend
