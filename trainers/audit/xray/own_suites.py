"""Suites of Turnwise: scripted agents play their tasks, and the environment judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from turnwise.envs.baselines import SCRIPTS, Script, ScriptMoment
from turnwise.envs.check.walks import Walk, walk
from turnwise.envs.core import AgentEnv
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Task, canonical
from turnwise.trainers.audit.xray.core import (
    Attempt,
    Judged,
    ProbedTask,
    TaskSet,
    Verdict,
    XrayCost,
    XTask,
    quoted,
)
from turnwise.trainers.audit.xray.options import XrayOptions

_USUAL_N = 100
_KEYS = (
    "correct",
    "The answer is correct.",
    "Solution",
    "yes",
    "done",
    "\\boxed{}",
    "<answer>correct</answer>",
    ":",
)


def _says(text: str) -> Script:
    def tell(now: ScriptMoment) -> str:
        return text

    return tell


def _copies(now: ScriptMoment) -> str:
    return now.env.task.prompt or now.observation[-1].content


AGENTS: Mapping[str, Sequence[tuple[str, Script]]] = {
    "empty": [("null", SCRIPTS["null"])],
    "no-op": [("I don't know.", _says("I don't know."))],
    "garbage": [("garbage", _says("zqx vrml 83151.77 blorp"))],
    "gold": [("gold", SCRIPTS["gold"])],
    "copy": [("copy", _copies), ("echo", SCRIPTS["echo"])],
    "key word": [(key, _says(key)) for key in _KEYS],
    "repeat": [
        ("first action again and again", SCRIPTS["constant"]),
        ("all candidates at once", SCRIPTS["answer_spam"]),
    ],
}
"""Agents of a suite: what each says, turn after turn."""


def read_suite(name: str, options: XrayOptions) -> TaskSet:
    """The first tasks of a suite's split, a hundred unless --n says how many."""
    suite = get_suite(name)
    wanted = options.n or _USUAL_N
    tasks = [*suite_tasks(suite, options.split, min(wanted, suite.length(options.split) or wanted))]
    env = make(suite.env)
    try:
        read = [_read(env, at, task) for at, task in enumerate(tasks)]
    finally:
        env.close()
    by_id = dict(zip((one.id for one in read), tasks, strict=True))
    plays = sum(len(scripts) for scripts in AGENTS.values()) + 1
    return TaskSet(
        name, f"suite {name}, {options.split}", read, (), len(read), lambda asked: _probe(suite.env, asked, by_id, options.line),
        lambda n: XrayCost(n, n * plays, 0, n * plays * 0.01),
    )  # fmt: skip


def _read(env: AgentEnv[object], at: int, task: Task) -> XTask:
    """A task with what the first observation shows, by which tasks that look alike differ."""
    observation, _ = env.reset(seed=0, options={"task": task})
    shown = "\n".join(message.content for message in observation if message.role != "system")
    return XTask(
        f"{at} {task.id[:12]}",
        f"{task.env} task {at}",
        shown or task.prompt,
        (),
        canonical(task.to_json()),
        visible={"task": task.id},
    )


def _probe(name: str, asked: Sequence[XTask], by_id: Mapping[str, Task], line: float) -> list[ProbedTask]:
    with closing(make(name)) as env:
        return [ProbedTask(one, [*_judged(env, by_id[one.id])], line) for one in asked]


def _judged(env: AgentEnv[object], task: Task) -> Iterator[Judged]:
    for agent, scripts in AGENTS.items():
        for label, script in scripts:
            yield Judged(Attempt(agent, label, label), "plain", _played(env, task, label, script))
    yield Judged(Attempt("gold", "gold", "gold"), "again", _played(env, task, "gold", SCRIPTS["gold"]))


def _played(env: AgentEnv[object], task: Task, name: str, script: Script) -> Verdict:
    try:
        walked: Walk = walk(env, task, name, play=script, others=None if name == "gold" else SCRIPTS["rival"])
    except (TurnwiseError, NotImplementedError) as error:
        return Verdict(None, quoted(str(error), 200))
    return Verdict(float(walked.success), log=f"score {walked.score:g}")
