"""Judges answers with a stranger's reward function, in a sandbox: ``driver.py`` reads a JSON request and writes JSON lines.

Nothing is imported from Turnwise. A call that takes too long ends the process with code 87, after a line that says so; the caller goes on behind it.
"""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import sitecustomize as spy
from xray_checks import CheckTrace

COMPLETION = (
    "completion",
    "response",
    "solution_str",
    "output",
    "prediction",
    "pred",
    "text",
    "generated",
    "model_output",
    "generation",
    "predict_str",
    "model_answer",
    "candidate",
    "reply",
)
GOLD = (
    "answer",
    "ground_truth",
    "solution",
    "gold",
    "reference",
    "target",
    "label",
    "expected",
    "reward_model",
    "gold_answer",
    "reference_answer",
    "final_answer",
    "correct_answer",
)
PROMPT = ("prompt", "question", "problem", "input", "query", "instruction", "prompts")
OUT = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def tell(**what: Any) -> None:
    OUT.write(json.dumps(what, default=str) + "\n")
    OUT.flush()


def load(path: str) -> Any:
    """The module of a file, with its folder on the path of imports."""
    folder, name = os.path.split(os.path.abspath(path))
    sys.path.insert(0, folder)
    parts = [os.path.splitext(name)[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, last = os.path.split(folder)
        parts.insert(0, last)
        sys.path.insert(0, folder)
    name = ".".join(parts)
    name = name.removesuffix(".__init__")
    if len(parts) > 1:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class RewardCaller:
    """Calls a reward function by one of the documented conventions, which its parameters tell."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        signature = inspect.signature(function).parameters.values()
        self.names = [p.name for p in signature if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.needed = [p.name for p in signature if p.default is p.empty and p.name in self.names]
        self.rest = any(p.kind is p.VAR_KEYWORD for p in signature)
        self.kind = (
            "trl" if "completions" in self.names else "verl" if "solution_str" in self.names else "plain"
        )
        self.chat = None

    def __call__(self, job: dict[str, Any]) -> Any:
        if self.kind == "trl":
            return self.trl(job)
        given, row = {}, job["row"]
        taken_text = False
        if self.kind == "verl":
            extra = row.get("extra_info")
            known = {
                "data_source": row.get("data_source", ""),
                "solution_str": job["text"],
                "ground_truth": job["gold"],
                "extra_info": extra if isinstance(extra, dict) else row,
            }
            given = {name: known[name] for name in self.names if name in known}
            taken_text = True
        texts = [name for name in self.names if name in COMPLETION]
        for name in self.names:
            if name in given:
                continue
            if name in COMPLETION and not taken_text and name == texts[0]:
                given[name], taken_text = job["text"], True
            elif name in row and name not in GOLD + PROMPT:
                given[name] = row[name]
            elif name in PROMPT:
                given[name] = job["prompt"]
            elif name in GOLD:
                given[name] = row[name] if name in row else job["gold"]
            elif name in row:
                given[name] = row[name]
            elif name in (
                "row",
                "task",
                "example",
                "item",
                "sample",
                "doc",
                "info",
                "extra_info",
                "metadata",
            ):
                given[name] = row
        missing = [name for name in self.needed if name not in given]
        if missing and not taken_text and len(missing) == 1:
            given[missing.pop()] = job["text"]
        if missing:
            raise TypeError(
                "no column for the parameter{} {}".format("s" * (len(missing) > 1), ", ".join(missing))
            )
        if self.rest:
            given.update((k, v) for k, v in row.items() if k not in given and k.isidentifier())
        positional = [
            n for n, p in inspect.signature(self.function).parameters.items() if p.kind is p.POSITIONAL_ONLY
        ]
        return self.function(*[given.pop(name) for name in positional], **given)

    def trl(self, job: dict[str, Any]) -> Any:
        tries = [self.chat] if self.chat is not None else [isinstance(job["row"].get("prompt"), list), None]
        for chat in tries:
            if chat is None:
                chat = not tries[0]
            try:
                found = self.trl_call(job, chat)
            except (TypeError, KeyError, AttributeError, IndexError):
                if self.chat is not None or chat is not tries[0]:
                    raise
                continue
            self.chat = chat
            return found
        return None

    def trl_call(self, job: dict[str, Any], chat: bool) -> Any:
        text = [{"role": "assistant", "content": job["text"]}] if chat else job["text"]
        prompt = job["row"].get("prompt", job["prompt"])
        if chat and not isinstance(prompt, list):
            prompt = [{"role": "user", "content": prompt}]
        given = {k: [v] for k, v in job["row"].items() if k.isidentifier() and (self.rest or k in self.names)}
        known = {
            "prompts": [prompt],
            "completions": [text],
            "completion_ids": [[1, 2, 3]],
            "completions_ids": [[1, 2, 3]],
            "trainer_state": None,
        }
        given.update(
            (k, v)
            for k, v in known.items()
            if k in self.names or (self.rest and k in ("prompts", "completions"))
        )
        for name in self.needed:
            if name not in given and name in GOLD:
                given[name] = [job["gold"]]
            elif name not in given and name in PROMPT:
                given[name] = [prompt]
        return self.function(**given)


def number(found: Any) -> Any:
    """The score in what a reward function gave; None where it says that it does not apply."""
    if inspect.isawaitable(found):

        async def wait() -> Any:
            return await found

        found = asyncio.run(wait())
    if isinstance(found, dict):
        for name in ("score", "reward", "total"):
            if name in found:
                found = found[name]
                break
        else:
            raise TypeError(
                "the dict that it gave has no key score: {}".format(", ".join(map(str, found))[:100])
            )
    while isinstance(found, (list, tuple)) and found:
        found = found[0]
    if hasattr(found, "item"):
        found = found.item()
    elif hasattr(found, "score"):
        found = found.score
    if found is None:
        return None
    if not isinstance(found, (int, float)):
        raise TypeError(f"it gave {found!r}, which is no number")
    if not math.isfinite(found):
        raise ValueError(f"it gave {found!r}")
    return float(found)


def watch(clock: list[Any], seconds: float, done: threading.Event) -> None:
    while True:
        time_now = REAL()
        if clock[1] and time_now - clock[1] > seconds:
            tell(job=clock[0], timeout=True)
            os._exit(87)
        if done.wait(0.05):
            return


REAL = spy.MONOTONIC


def judge(call: Any, job: dict[str, Any], trace: bool) -> Any:
    begun, seen = REAL(), CheckTrace() if trace else None
    try:
        if seen:
            sys.settrace(seen)
        try:
            answer = {"score": number(call(job))}
        finally:
            sys.settrace(None)
    except BaseException as error:  # noqa: BLE001 - a stranger's function may raise anything, SystemExit too
        last = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
        place = f"{os.path.basename(last[-1].filename)}:{last[-1].lineno}" if last else ""
        answer = {"error": f"{type(error).__name__}: {str(error)[:300]}", "place": place}
    if seen:
        answer["trace"] = seen.told()
    return dict(answer, seconds=round(REAL() - begun, 5))


def main() -> None:
    request = json.loads(sys.stdin.read())
    loading = CheckTrace() if request.get("trace") else None
    sys.settrace(loading)
    try:
        if request["kind"] == "verifiers":
            import environment

            call = environment.RubricCaller(lambda: load(request["file"]), request.get("arguments") or {})
        else:
            module = load(request["file"])
            call = RewardCaller(getattr(module, request["function"]))
    except BaseException as error:  # noqa: BLE001 - so may their module
        own = [f for f in traceback.extract_tb(error.__traceback__) if "/.xray/" not in f.filename]
        last = (own or traceback.extract_tb(error.__traceback__))[-1]
        tell(
            fatal=f"{type(error).__name__}: {str(error)[:300]}",
            place=f"{os.path.basename(last.filename)}:{last.lineno}",
        )
        return
    finally:
        sys.settrace(None)
    if request["kind"] == "verifiers" and request.get("list"):
        for row in call.rows(request["list"]):
            tell(row=row)
        return
    clock, done = [None, 0.0], threading.Event()
    real_join = threading.Thread(target=watch, args=(clock, request["seconds"], done), daemon=True)
    real_join.start()
    rows = request["rows"]
    for index, (row, text) in enumerate(request["jobs"]):
        clock[:] = [index, REAL()]
        spy.note(job=index)
        answer = judge(call, dict(rows[row], text=text), request.get("trace"))
        if loading:
            answer["trace"]["raised"] += loading.raised  # pyright: ignore
        tell(job=index, **answer)
        clock[1] = 0.0
    done.set()
    OUT.flush()
    os._exit(0)


main()
