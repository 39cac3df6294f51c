"""Published benchmarks row by row: what our environments show and judge beside the benchmarks' own programs; foreign-fidelity.json.

    python benchmarks/foreign_fidelity.py bfcl:simple_python tau2:airline …      # these, whole; with no name, all
    python benchmarks/foreign_fidelity.py bfcl:live_multiple --rows 40 --seed 3    # some rows, drawn

Each row is played by several scripts, right ones and wrong ones, once by our environment and once by the package's own runner
(foreign_reference.py). Compared are what the model is shown before each of its messages, the tools that it is offered, and the verdict.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import datetime
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from turnwise.envs.core import AgentEnv
from turnwise.envs.foreign.env import ForeignEnv
from turnwise.envs.foreign.live import LiveWorld, WorldProgram
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.machine import describe
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall

FILE = Path(__file__).with_name("foreign-fidelity.json")
REFERENCE = Path(__file__).with_name("foreign_reference.py")
SUITES = (
    *(f"bfcl:{name}" for name in (
        "simple_python", "multiple", "parallel", "parallel_multiple", "simple_java", "simple_javascript", "irrelevance",
        "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance",
        "multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context",
    )),
    "tau2:airline", "tau2:retail", "tau2:telecom",
)  # fmt: skip

Said = dict[str, Any]
"""A message of a script: ``text``, and ``calls`` with names and arguments."""


class Difference(NamedTuple):
    """Where the two differ: the row, the script, what is different, and both sides in short."""

    row: int
    script: str
    what: str
    ours: str
    theirs: str


class Shown(NamedTuple):
    """What is shown before a message: rules, texts, and tools as JSON (empty where they are not compared)."""

    to: str
    system: str
    texts: tuple[str, ...]
    tools: str = ""


class Outcome(NamedTuple):
    """An episode: what was shown, and what it came to."""

    shown: tuple[Shown, ...]
    verdict: str


def play_ours(
    env: AgentEnv[Any], task: Task, script: Sequence[Said], verdict: Callable[[Any], str]
) -> Outcome:
    """Play a script by our environment, and ends where that ends."""
    messages, _ = env.reset(options={"task": task})
    shown: list[Shown] = []
    info: Mapping[str, Any] = {}
    for number, said in enumerate(script):
        tools = json.dumps(
            [tool.spec.to_json()["function"] for tool in env.tools_for(env.agent)], sort_keys=True
        )
        shown.append(
            Shown(
                env.agent,
                "\n\n".join(one.content for one in messages if one.role == "system"),
                tuple(one.content for one in messages if one.role != "system"),
                tools,
            )
        )
        calls = tuple(
            ToolCall(call["name"], call["arguments"], f"c{number}_{n}")
            for n, call in enumerate(said.get("calls", []))
        )
        step = env.step(Message("assistant", said.get("text", ""), calls))
        messages, info = step.observation, step.info
        if info.get("end"):
            break
    return Outcome(tuple(shown), verdict(info))


# --- BFCL ---------------------------------------------------------------------------------------------


def bfcl_scripts(
    gold: Sequence[Said] | None, functions: Sequence[str], several: bool
) -> Iterator[tuple[str, list[Said]]]:
    """Scripts of a row: the published answer, and what breaks it in one place."""
    words = {"text": "I cannot help with that."}
    turns = sum("calls" not in said for said in gold or [])
    yield "words", [words] * (turns if several else 1)
    if not several:
        yield "an unknown function", [{"calls": [{"name": "no_such_function", "arguments": {}}]}]
        for name in functions[:1]:  # some rows of irrelevance have none
            yield "a call without arguments", [{"calls": [{"name": name, "arguments": {}}]}]
    if not gold or not any(said.get("calls") for said in gold):
        return
    yield "the answer", list(gold)
    first = next(number for number, said in enumerate(gold) if said.get("calls"))
    call = gold[first]["calls"][0]
    for name, arguments in _changed(call["arguments"]):
        broken = copy.deepcopy(list(gold))
        broken[first]["calls"][0]["arguments"] = arguments
        yield name, broken
    last = max(number for number, said in enumerate(gold) if said.get("calls"))
    yield "a call left out", _without(gold, last)
    if not several:
        yield "a call twice", [{"calls": [*gold[0]["calls"], gold[0]["calls"][-1]]}]
        yield "in another order", [{"calls": gold[0]["calls"][::-1]}]


def _without(gold: Sequence[Said], number: int) -> list[Said]:
    """The script without the last call of a message; without the message where that was its only one, unless it is the only one."""
    left = copy.deepcopy(list(gold))
    left[number]["calls"].pop()
    if left[number]["calls"]:
        return left
    return [said for at, said in enumerate(left) if at != number] or [{"text": "Nothing to call."}]


def _changed(arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if arguments:
        name, value = next(iter(arguments.items()))
        yield "an argument left out", {key: each for key, each in arguments.items() if key != name}
        yield "another value", {**arguments, name: _other(value)}
        yield "a value of another type", {**arguments, name: [value]}
    yield "an argument too many", {**arguments, "no_such_argument": 1}


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value} x" if isinstance(value, str) else [value, value]


def bfcl_row(
    env: ForeignEnv, live: LiveWorld, category: str, index: int, task: Task, only: Sequence[str] = ()
) -> Iterator[tuple[str, Outcome, list[Difference]]]:
    several = category.startswith("multi_turn")
    env.reset(options={"task": task})
    functions = [tool.spec.name for tool in env.tools]
    gold = None if category == "live_relevance" else _gold(env, task)
    for name, script in bfcl_scripts(gold, functions, several):
        if only and name not in only:
            continue
        ours = play_ours(env, task, script, lambda info: str(info.get("end") == "solved"))
        answer = live.list({"benchmark": "bfcl", "category": category, "index": index, "script": script})
        theirs = Outcome(tuple(_bfcl_shown(one) for one in answer["shown"]), str(answer["valid"]))
        yield name, theirs, differences(index, name, ours, theirs)


def _bfcl_shown(one: Mapping[str, Any]) -> Shown:
    tools = [
        {key: tool["function"][key] for key in ("name", "description", "parameters")} for tool in one["tools"]
    ]
    return Shown(
        "agent",
        "\n\n".join(each["content"] for each in one["messages"] if each["role"] == "system"),
        tuple(each["content"] for each in one["messages"] if each["role"] != "system"),
        json.dumps(tools, sort_keys=True),
    )


# --- τ² -----------------------------------------------------------------------------------------------


def tau2_scripts(gold: Sequence[Said]) -> Iterator[tuple[str, list[Said]]]:
    """Scripts of a task: its own actions, nothing, and what breaks them in one place."""
    yield "the answer", list(gold)
    yield "nothing", [{"text": said} for said in ("Hello.", "Goodbye.", "###STOP###")]
    calls = [number for number, said in enumerate(gold) if said.get("calls")]
    wrong = {"calls": [{"name": "no_such_tool", "arguments": {}}]}
    hello = [{"text": "Hello."}]
    yield (
        "ten errors",
        [
            *hello,
            *[{"calls": [*wrong["calls"], *wrong["calls"]]}] * 5,
            {"text": "Sorry."},
            {"text": "###STOP###"},
        ],
    )
    if calls:
        yield "the last call left out", [said for number, said in enumerate(gold) if number != calls[-1]]
        changed = copy.deepcopy(list(gold))
        call = changed[calls[-1]]["calls"][0]
        call["arguments"] = next(_changed(call["arguments"]))[1]
        yield "the last call with other arguments", changed
        both = [
            {"calls": [*said["calls"], *said["calls"]]} if n == calls[0] else said
            for n, said in enumerate(gold)
        ]
        yield "the first call twice in one message", both


def tau2_row(
    env: ForeignEnv, live: LiveWorld, domain: str, index: int, task: Task, only: Sequence[str] = ()
) -> Iterator[tuple[str, Outcome, list[Difference]]]:
    for name, script in tau2_scripts(_gold(env, task) or []):
        if only and name not in only:
            continue
        ours = play_ours(env, task, script, _tau2_verdict)
        answer = live.list(
            {"benchmark": "tau2", "domain": domain, "id": task.options["id"], "script": script}
        )
        role = {"assistant": "agent", "user": "user"}
        shown = tuple(Shown(role[one["to"]], "", tuple(one["texts"])) for one in answer["shown"])
        theirs = Outcome(shown, f"{answer['reward']:g} {answer['why']}")
        bare = ours._replace(shown=tuple(one._replace(system="", tools="") for one in ours.shown))
        yield name, theirs, differences(index, name, bare, theirs)


def _tau2_verdict(info: Mapping[str, Any]) -> str:
    paid = info.get("rewards_to", {}).get("agent", info.get("rewards", {}))
    return f"{paid.get('outcome', 0.0):g} {info.get('details', {}).get('why', info.get('end'))}"


class Reason(NamedTuple):
    """Why a difference stays: in this suite and this respect, in one script or in all, in one row or in all."""

    suite: str
    what: str
    why: str
    script: str = ""
    row: int | None = None

    def tells(self, suite: str, one: Mapping[str, Any]) -> bool:
        at = self.script in ("", one["script"]) and self.row in (None, one["row"])
        return at and (suite, one["what"]) == (self.suite, self.what)


_NOT_OFFERED = "a function that is not offered is no call here (E7); there any call is right"
_ONE_MESSAGE = "what was said before the last message of a row is told in one message with it"
_MISSING = "the published calls use a function that is not offered then, which is refused here (E7) and carried out there"
_NO_ERROR = "a call of a tool that is not offered is refused here (E7); there it is one of the ten errors that end an episode"
_TOLD = ("verdict", "texts")
REASONS = (
    Reason("bfcl:live_relevance", "verdict", _NOT_OFFERED, "an unknown function"),
    Reason("bfcl:live_irrelevance", "number of messages", _ONE_MESSAGE),
    *(Reason("bfcl:multi_turn_miss_func", what, _MISSING, row=49) for what in _TOLD),
    *(Reason(f"tau2:{domain}", what, _NO_ERROR, "ten errors") for domain in ("airline", "retail", "telecom") for what in (*_TOLD, "messages asked for")),
)  # fmt: skip


def reason_of(suite: str, one: Mapping[str, Any]) -> str:
    """Return why a difference stays; empty where nobody knows."""
    return next((reason.why for reason in REASONS if reason.tells(suite, one)), "")


# --- both ---------------------------------------------------------------------------------------------

ROWS: Mapping[str, Callable[..., Iterable[tuple[str, Outcome, list[Difference]]]]] = {
    "bfcl": bfcl_row,
    "tau2": tau2_row,
}


def _gold(env: ForeignEnv, task: Task) -> list[Said] | None:
    """The world's own plan as a script; it is not played here, since what is refused would be said again."""
    live = env.borrowed()
    live.go_to(task)
    plan = live.gold()
    return [{"text": act} if isinstance(act, str) else act for act in plan] if plan else None


def differences(row: int, script: str, ours: Outcome, theirs: Outcome) -> list[Difference]:
    """Everything in which two episodes differ."""
    found: list[Difference] = []

    def compare(what: str, mine: Any, other: Any) -> None:
        if mine != other:
            found.append(Difference(row, script, what, *_apart(str(mine), str(other))))

    compare("verdict", ours.verdict, theirs.verdict)
    compare("messages asked for", len(ours.shown), len(theirs.shown))
    for mine, other in zip(ours.shown, theirs.shown, strict=False):
        compare("who is asked", mine.to, other.to)
        compare("rules", mine.system, other.system)
        compare("texts", "\n\n".join(mine.texts), "\n\n".join(other.texts))
        compare("number of messages", len(mine.texts), len(other.texts))
        compare("tools", mine.tools, other.tools)
    return list(dict.fromkeys(found))


def _apart(mine: str, other: str) -> tuple[str, str]:
    """Both from where they differ, in short."""
    at = next(
        (n for n, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), min(len(mine), len(other))
    )
    begin = max(0, at - 20)
    return mine[begin : at + 60], other[begin : at + 60]


def compare_suite(
    name: str, rows: int, seed: int, only: Sequence[str] = (), seconds: float = 1e9
) -> dict[str, Any]:
    """Play the rows of a suite, or some of them, by all scripts, or by those that are named, as long as there is time."""
    world, _, path = name.partition(":")
    suite, began, until = get_suite(name), time.process_time(), time.monotonic() + seconds
    env = make(suite.env)
    assert isinstance(env, ForeignEnv)
    program = env.program()
    live = LiveWorld(WorldProgram(program.python, str(REFERENCE), program.start, 300.0))
    size, done = suite.size or 0, 0
    chosen = sorted(Random(seed).sample(range(size), rows)) if 0 < rows < size else range(size)
    scripts, right, found = dict[str, int](), dict[str, int](), list[Difference]()
    with contextlib.closing(env), contextlib.closing(live):
        for index in chosen:
            if time.monotonic() > until:
                break
            task = suite_task(suite, Split.TEST, index)
            for script, theirs, differ in ROWS[world](env, live, path, index, task, only):
                scripts[script] = scripts.get(script, 0) + 1
                right[script] = right.get(script, 0) + (theirs.verdict.split()[0] in ("True", "1"))
                found += differ
            done += 1
    apart = {(one.row, one.script) for one in found}
    return {
        "rows": done, "of": size, "episodes": sum(scripts.values()), "equal": sum(scripts.values()) - len(apart),
        "verdicts_differ": sum(one.what == "verdict" for one in found), "scripts": scripts, "right_there": right,
        "different": [{**one._asdict(), "why": reason_of(name, one._asdict())} for one in found], "cpu_s_here": round(time.process_time() - began, 1),
    }  # fmt: skip


def keep(name: str, row: Mapping[str, Any]) -> None:
    known = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {"suites": {}}
    known["suites"][name] = {**row, "date": str(datetime.date.today())}
    known["suites"] = {
        suite: known["suites"][suite] for suite in (*SUITES, "humaneval") if suite in known["suites"]
    }
    FILE.write_text(
        json.dumps({"machine": describe(), "suites": known["suites"]}, indent=1, ensure_ascii=False) + "\n",
        "utf-8",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*")
    parser.add_argument(
        "--rows",
        type=int,
        default=0,
        help="of each suite, drawn; all by default",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--script", action="append", default=[], help="by its name, again for more; all by default"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="of each suite, then its first rows count")
    given = parser.parse_args()
    for name in given.suites or SUITES:
        found = compare_suite(name, given.rows, given.seed, given.script, given.seconds)
        keep(name, found)
        told = {key: value for key, value in found.items() if key != "different"}
        print(name, json.dumps(told, ensure_ascii=False), flush=True)
        for one in found["different"][:12]:
            print("   ", *one.values(), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
