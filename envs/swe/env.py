"""``turnwise/SWE-v0``: fix a bug in a repository, with a shell, an editor and hidden tests."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, ClassVar, Literal

from turnwise.envs.acting import call_of
from turnwise.envs.core import EndReason, Guard, RewardKind, Transition
from turnwise.envs.messages import Message
from turnwise.envs.swe import actions, solver
from turnwise.envs.swe.desk import DeskEnv
from turnwise.envs.swe.guidance import feedback, plan, report
from turnwise.envs.swe.instance import Instance, instance_of
from turnwise.envs.swe.place import image_of, is_changed, repair_places
from turnwise.envs.swe.reward import RepairVerdict, accepted, grade
from turnwise.envs.swe.state import SweState
from turnwise.envs.swe.suite import LIMITS
from turnwise.envs.swe.tasks import draw_task
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.texts import kept
from turnwise.tools.core import find_tool
from turnwise.tools.sandbox.core import MIB, Backend, PathError, Sandbox, SandboxImage
from turnwise.tools.sandbox.registry import get_backend, get_pool

_REPRODUCED, _LOCATED = 0.1, 0.1  # what the steps pay
_KEPT = 256  # verdicts that a process remembers


@lru_cache(maxsize=_KEPT)
def judged(
    backend: Backend, instance: Instance, files: tuple[tuple[str, bytes], ...], *, count: bool = False
) -> RepairVerdict:
    """:func:`grade` once for the same files: groups often hand in the same repair, and who trusts in luck tosses once.

    Raises:
        VerifierError, SandboxError: see :func:`grade`; it is tried again the next time.
    """
    return grade(backend, instance, dict(files), count=count)


class SweEnv(DeskEnv[SweState]):
    """One repository with one bug. Options:

    ``rewards``: how step rewards join the outcome. ``gated`` (G-RA): reproducing the failure (a script
    ``reproduce.py`` that fails with the bug and runs without it) and finding the place pay 0.1 each, but only
    at a submission that passes the gate; ``direct`` pays them whatever comes of it; ``outcome`` never.
    ``gate``: what opens it, a task that is ``resolved`` or any ``patch`` at all.
    ``place``: what counts as the place, the right ``file`` or the right ``function``.
    ``guidance``: help for Agent-RLVR (envs/swe/guidance.py).
    ``backend``: where commands run, by name; else the first that works here and isolates. ``unsafe``: admits
    ``process``, which isolates nothing.
    """

    system = (
        "You repair bugs in a Python repository. Work with the tools: look, change the package's code, try it with "
        "the shell, then submit. Tests that you do not see decide. Changes outside of the package do not count."
    )
    tools = actions.TOOLS
    reward_components: Mapping[str, RewardKind] = {
        "outcome": RewardKind.OUTCOME,
        "reproduced": RewardKind.STEP,
        "located": RewardKind.STEP,
    }
    turn_limit = 40
    max_trivial_score = 0.0

    guarded_options: ClassVar[Mapping[str, Guard]] = {
        "backend": Guard("says where a model's code runs"),
        "unsafe": Guard("runs a model's code without a sandbox"),
    }
    guarded_tasks: ClassVar[Mapping[str, Guard]] = {
        "origin": Guard("names a package that is fetched and installed")
    }

    def __init__(
        self,
        *,
        backend: str = "",
        unsafe: bool = False,
        rewards: Literal["gated", "direct", "outcome"] = "gated",
        gate: Literal["resolved", "patch"] = "resolved",
        place: Literal["file", "function"] = "function",
        guidance: Literal["", "plan", "feedback"] = "",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._backend_name, self._unsafe, self._rewards, self._gate = backend, unsafe, rewards, gate
        if backend:
            get_backend(backend, unsafe=unsafe)  # a wrong name is told now
        self._place, self._guidance = place, guidance

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        """A task of a file; the knobs are those of :func:`draw_task`."""
        return draw_task(rng, split, **knobs)

    @classmethod
    def failure_report(cls, task: Task, details: Mapping[str, Json]) -> str:
        """Name the tests that failed, and give a plan (Da et al. 2025, Agent-RLVR)."""
        return report(instance_of(task), details)

    # --- the contract ----------------------------------------------------------------------------

    def initial(self, task: Task) -> tuple[SweState, str]:
        instance = instance_of(task)
        box = self.begin(image_of(instance))
        told = f"{task.prompt}\n\n{plan(instance)}" if self._guidance == "plan" else task.prompt
        return SweState(task.id, box.snapshot().digest), told

    def transition(self, state: SweState, action: Message) -> Transition[SweState]:
        call = call_of(action, self.tools)
        given = find_tool(self.tools, call.name).validate(call)
        name = call.name
        said = self.work(name, given)
        if said is None:
            return self._submit(state)
        state = state._replace(heard=digest(said), looked=state.looked or name in ("view", "search"))
        if name in ("shell", "edit", "create"):
            state = self._changed(state)
        return Transition(state, said)

    def gold(self, state: SweState) -> Message:
        """The gold policy: views the place of the bug, fixes it, and submits."""
        return self.call(*solver.gold(instance_of(self.task), state, self.sandbox()))

    def demonstrate(self, state: SweState, rng: Random) -> Message:
        """An imperfect scripted policy: it explores too much, and sometimes submits without a fix."""
        return self.call(*solver.demonstrate(instance_of(self.task), state, self.sandbox(), rng))

    def potential(self, state: SweState) -> float:
        """The share of failing tests that pass by now."""
        return state.progress

    def admissible(self, state: SweState) -> Sequence[str]:
        """A few things to do; there are endlessly many."""
        return ("shell[ls]", "view[.]", "search[def ]", "shell[git status]", "submit[]")

    def state_key(self, state: SweState) -> str:
        return digest(*state)

    def open_sandbox(self, image: SandboxImage) -> Sandbox:
        return self._backend().start(image, LIMITS)

    # --- inside ----------------------------------------------------------------------------------

    def _backend(self) -> Backend:
        return get_pool(self._backend_name, unsafe=self._unsafe)

    def _judged(
        self, instance: Instance, files: Mapping[str, bytes], *, count: bool = False
    ) -> RepairVerdict:
        return judged(self._backend(), instance, tuple(sorted(files.items())), count=count)

    def _files(self, instance: Instance) -> dict[str, bytes]:
        """Read the package's files as the agent left them."""
        box, source = self.sandbox(), instance.source.source
        folder, depth = ("", 1) if source.endswith(".py") else (source, 20)
        found: dict[str, bytes] = {}
        with contextlib.suppress(PathError):  # no such folder any more
            for info in box.list(folder, depth=depth, limit=5000):
                path = f"{folder}/{info.path}".lstrip("/")
                if info.kind == "file" and instance.source.is_source(path):
                    with contextlib.suppress(PathError):  # what cannot be read is not there
                        found[path] = box.read(path, limit=2 * MIB)
        return found

    def _changed(self, state: SweState) -> SweState:
        """Return the state that follows from the files as they are now."""
        files = self.sandbox().snapshot().digest
        if files == state.files:
            return state
        instance = instance_of(self.task)
        located = state.located or self._is_located(instance)
        if self.shaping:
            verdict = self._judged(instance, self._files(instance), count=True)
            count = len(instance.fail_to_pass)
            state = state._replace(progress=(count - len(verdict.failed)) / count)
        return state._replace(files=files, located=located)

    def _is_located(self, instance: Instance) -> bool:
        """Say whether the right file is another than it was, or a function that is a place of the repair.

        A caller that nobody told of a change is one, beside the functions that the true repair changes.
        """
        broken = instance.broken()
        places = {(edit.path, "") for edit in instance.edits}
        for path, name in places if self._place == "file" else repair_places(instance):
            try:
                text = kept(self.sandbox().read(path, limit=2 * MIB))
            except PathError:
                continue
            if is_changed(kept(broken.get(path, b"")), text, name):
                return True
        return False

    def _submit(self, state: SweState) -> Transition[SweState]:
        instance = instance_of(self.task)
        if self._may_be_taken_back(state):
            said = actions.run_review(self.sandbox(), instance)
            return Transition(state._replace(handed_in=state.files, heard=digest(said)), said)
        files = self._files(instance)
        verdict = self._judged(instance, files)
        state = state._replace(attempts=state.attempts + 1, heard=verdict.why)
        if not verdict.resolved and self._guidance == "feedback" and state.attempts == 1:
            return Transition(state, feedback(verdict))
        rewards = {"outcome": float(verdict.resolved), **self._steps(state, instance, files, verdict)}
        end = EndReason.SOLVED if verdict.resolved else EndReason.FAILED
        details: dict[str, Json] = {"verdict": verdict.why, "resolved": verdict.resolved}
        details |= {"failed": list(verdict.failed[:50]), "broken": list(verdict.broken[:50])}
        return Transition(state, "Submitted.", rewards, end, details)

    def _may_be_taken_back(self, state: SweState) -> bool:
        """Say whether this is the first ``submit`` with these files.

        False unless the suite lets an agent think again.
        """
        is_last = self.now.turn + 1 >= self.task.options.get("turn_limit", self.turn_limit)
        return self.task.options["review"] and state.handed_in != state.files and not is_last

    def _steps(
        self, state: SweState, instance: Instance, files: Mapping[str, bytes], verdict: RepairVerdict
    ) -> dict[str, float]:
        patched = accepted(instance, files) != instance.broken()
        passed = verdict.resolved if self._gate == "resolved" else patched
        if self._rewards == "outcome" or (self._rewards == "gated" and not passed):
            return {}
        return {
            "located": _LOCATED * state.located,
            "reproduced": _REPRODUCED * self._is_reproduced(instance),
        }

    def _is_reproduced(self, instance: Instance) -> bool:
        """Say whether reproduce.py fails with the bug and runs without it.

        No script can know this but by trying.
        """
        try:
            script = self.sandbox().read("reproduce.py", limit=MIB)
        except PathError:
            return False
        codes: list[bool] = []
        for files in (instance.broken(), dict(instance.fixed())):
            shown = {path: data for path, data in files.items() if path not in instance.hidden}
            with self._backend().start(image_of(instance, {**shown, "reproduce.py": script}), LIMITS) as box:
                codes.append(box.exec(["python3", "reproduce.py"], timeout=30).ok)
        return codes == [False, True]
