"""turnwise/SWE-v0: repair a bug in a repository, with a shell, an editor and tests that one does not see."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple

from turnwise.envs.core import End, Kind, Transition
from turnwise.envs.live import LiveEnv
from turnwise.envs.messages import Message
from turnwise.envs.swe import desk
from turnwise.envs.swe.grade import Verdict, accepted, grade
from turnwise.envs.swe.guidance import feedback, plan
from turnwise.envs.swe.instance import Instance, instance_of
from turnwise.envs.swe.place import definition, draw, image_of, narrowed
from turnwise.envs.swe.suite import LIMITS
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.calls import parse_verb
from turnwise.tools.core import ToolCall, find_tool
from turnwise.tools.sandbox.core import MIB, Backend, Image, PathError, Sandbox
from turnwise.tools.sandbox.registry import get_backend, isolated_backend

_REPRODUCED, _LOCATED = 0.1, 0.1  # what the steps pay


class SweState(NamedTuple):
    """A moment: ``files`` is a hash of everything in the sandbox, ``heard`` one of the last answer.

    ``progress`` is the share of failing tests that pass by now (known only where shaping asks for it).
    """

    task: str
    files: str
    heard: str = ""
    looked: bool = False
    located: bool = False
    attempts: int = 0
    progress: float = 0.0


class SweEnv(LiveEnv[SweState]):
    """One repository with one bug. Options:

    ``rewards``: how step rewards join the outcome. ``gated`` (G-RA): reproducing the failure (a script
    ``reproduce.py`` that fails with the bug and runs without it) and finding the place pay 0.1 each, but only
    at a submission that passes the gate; ``direct`` pays them whatever comes of it; ``outcome`` never.
    ``gate``: what opens it, a task that is ``resolved`` or any ``patch`` at all.
    ``place``: what counts as the place, the right ``file`` or the right ``function``.
    ``guidance``: help for Agent-RLVR (envs/swe/guidance.py).
    """

    system = (
        "You repair bugs in a Python repository. Work with the tools: look, change the package's code, try it with "
        "the shell, then submit. Tests that you do not see decide. Changes outside of the package do not count."
    )
    tools = desk.TOOLS
    ledger: Mapping[str, Kind] = {"outcome": Kind.OUTCOME, "reproduced": Kind.STEP, "located": Kind.STEP}
    turn_limit = 40
    floor = 0.0

    def __init__(
        self,
        *,
        backend: str = "",
        rewards: Literal["gated", "direct", "outcome"] = "gated",
        gate: Literal["resolved", "patch"] = "resolved",
        place: Literal["file", "function"] = "function",
        guidance: Literal["", "plan", "feedback"] = "",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._backend_name, self._rewards, self._gate = backend, rewards, gate
        self._place, self._guidance = place, guidance
        self._box: Sandbox | None = None

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        """A task of a file; the knobs are those of :func:`draw`."""
        return draw(rng, split, **knobs)

    # --- the contract ----------------------------------------------------------------------------

    def initial(self, task: Task) -> tuple[SweState, str]:
        instance = instance_of(task)
        self.close()
        self._box = self._backend().start(image_of(instance), LIMITS)
        told = f"{task.prompt}\n\n{plan(instance)}" if self._guidance == "plan" else task.prompt
        return SweState(task.id, self._box.snapshot().digest), told

    def transition(self, state: SweState, action: Message) -> Transition[SweState]:
        call = action.tool_calls[0] if action.tool_calls else parse_verb(action.content, self.tools)
        given = find_tool(self.tools, call.name).validate(call)
        box, name = self._sandbox(), call.name
        match name:
            case "shell":
                said = desk.run_shell(box, given["command"])
            case "view":
                said = desk.run_view(box, given["path"], given["first"], given["last"])
            case "search":
                said = desk.run_search(box, given["pattern"], given["path"])
            case "edit":
                said = desk.run_edit(box, given["path"], given["old"], given["new"])
            case "create":
                said = desk.run_create(box, given["path"], given["text"])
            case _:
                return self._submit(state)
        state = state._replace(heard=digest(said), looked=state.looked or name in ("view", "search"))
        if name in ("shell", "edit", "create"):
            state = self._changed(state)
        return Transition(state, said)

    def gold(self, state: SweState) -> Message:
        """Looks at the place, repairs it there, submits."""
        instance, box = instance_of(self.task), self._sandbox()
        path, right = instance.edit.path, instance.fixed()[instance.edit.path].decode()
        try:
            text = box.read(path, limit=2 * MIB).decode("utf-8", "replace")
        except PathError:
            text = ""
        if text == right:
            return self._call(state, "submit")
        line = right[: instance.edit.start].count("\n") + 1
        if not state.looked:
            return self._call(state, "view", path=path, first=max(line - 10, 1), last=line + 30)
        if text == instance.broken()[path].decode():
            old, new = narrowed(instance, text)
            return self._call(state, "edit", path=path, old=old, new=new)
        return self._call(state, "create", path=path, text=right)

    def demonstrate(self, state: SweState, rng: Random) -> Message:
        """Knows the tools; looks around a lot, and now and then submits what it has not repaired."""
        instance = instance_of(self.task)
        draw = rng.random()
        if draw < 0.25:
            return self._call(state, "search", pattern=f"def {instance.where.rpartition('.')[2]}", path=".")
        if draw < 0.4:
            return self._call(state, "shell", command=f"ls {instance.source.source}")
        return self._call(state, "submit") if draw < 0.5 else self.gold(state)

    def potential(self, state: SweState) -> float:
        """The share of failing tests that pass by now."""
        return state.progress

    def admissible(self, state: SweState) -> Sequence[str]:
        """A few things to do; there are endlessly many."""
        return ("shell[ls]", "view[.]", "search[def ]", "shell[git status]", "submit[]")

    def state_key(self, state: SweState) -> str:
        return digest(*state)

    # --- the live world --------------------------------------------------------------------------

    def capture(self) -> Image:
        return self._sandbox().snapshot()

    def revive(self, captured: object) -> None:
        assert isinstance(captured, Image)
        if self._box is None:
            self._box = self._backend().start(captured, LIMITS)
        else:
            self._box.restore(captured)

    def detach(self) -> None:
        self._box = None

    def close(self) -> None:
        """End the sandbox."""
        if self._box is not None:
            self._box.close()
            self._box = None

    # --- inside ----------------------------------------------------------------------------------

    def _backend(self) -> Backend:
        return get_backend(self._backend_name) if self._backend_name else isolated_backend()

    def _sandbox(self) -> Sandbox:
        if self._box is None:
            raise EnvError("The environment was closed.", "Call reset() first.")
        return self._box

    def _call(self, state: SweState, name: str, **arguments: Json) -> Message:
        return Message("assistant", "", (ToolCall(name, arguments, f"call_{self.now.turn}"),))

    def _files(self, instance: Instance) -> dict[str, bytes]:
        """What the agent made of the package."""
        box, source = self._sandbox(), instance.source.source
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
        """What follows from the files as they are now."""
        files = self._sandbox().snapshot().digest
        if files == state.files:
            return state
        instance = instance_of(self.task)
        located = state.located or self._is_located(instance)
        if self.shaping:
            verdict = grade(self._backend(), instance, self._files(instance))
            count = len(instance.fail_to_pass)
            state = state._replace(progress=(count - len(verdict.failed)) / count)
        return state._replace(files=files, located=located)

    def _is_located(self, instance: Instance) -> bool:
        path = instance.edit.path
        try:
            text = self._sandbox().read(path, limit=2 * MIB).decode("utf-8", "replace")
        except PathError:
            return False
        broken = instance.broken()[path].decode()
        if self._place == "file":
            return text != broken
        return definition(text, instance.where) != definition(broken, instance.where)

    def _submit(self, state: SweState) -> Transition[SweState]:
        instance = instance_of(self.task)
        files = self._files(instance)
        verdict = grade(self._backend(), instance, files)
        state = state._replace(attempts=state.attempts + 1, heard=verdict.why)
        if not verdict.resolved and self._guidance == "feedback" and state.attempts == 1:
            return Transition(state, feedback(verdict))
        rewards = {"outcome": float(verdict.resolved), **self._steps(state, instance, files, verdict)}
        end = End.SOLVED if verdict.resolved else End.FAILED
        return Transition(state, "Submitted.", rewards, end, {"verdict": verdict.why})

    def _steps(
        self, state: SweState, instance: Instance, files: Mapping[str, bytes], verdict: Verdict
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
        """Whether reproduce.py fails with the bug and runs without it: what no script can know but by trying."""
        try:
            script = self._sandbox().read("reproduce.py", limit=MIB)
        except PathError:
            return False
        codes: list[bool] = []
        for files in (instance.broken(), dict(instance.fixed())):
            shown = {path: data for path, data in files.items() if path not in instance.hidden}
            with self._backend().start(image_of(instance, {**shown, "reproduce.py": script}), LIMITS) as box:
                codes.append(box.exec(["python3", "reproduce.py"], timeout=30).ok)
        return codes == [False, True]
