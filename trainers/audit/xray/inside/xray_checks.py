"""Checks of a stranger's code that were reached, seen by tracing it."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false, reportMissingImports=false

from __future__ import annotations

import os
import sys
import types
from typing import Any

from sitecustomize import TOLD, note
from xray_hollow import hollow_lines

_LIBRARIES = tuple(
    {
        os.path.dirname(os.__file__),
        "/usr/lib",
        "/usr/local/lib",
        sys.prefix + "/lib",
        "<frozen",
        os.path.dirname(os.path.abspath(__file__)),
    }
)


def library(frame: types.FrameType) -> bool:
    """Say if code is of a library, and not a stranger's."""
    name = frame.f_code.co_filename
    return name.startswith(_LIBRARIES) or "site-packages" in name or "dist-packages" in name


class CheckTrace:
    """Checks of a stranger's code that were reached: assertions, comparisons and branches, and what was raised on the way."""

    def __init__(self) -> None:
        self.plans, self.code, self.hollow = {}, {}, {}
        self.reached, self.had = {"assert": 0, "compare": 0, "branch": 0, "call": 0}, 0
        self.raised, self.results, self.where = [], {}, set()

    def plan(self, code: types.CodeType) -> Any:
        import dis

        asserts, compares, branches, line = set(), set(), set(), code.co_firstlineno
        named = set()
        for step in dis.get_instructions(code):
            if step.starts_line is not None:
                line = step.starts_line
            if step.opname == "LOAD_ASSERTION_ERROR" or step.argval == "AssertionError":
                asserts.add(line)
            elif step.opname in ("COMPARE_OP", "CONTAINS_OP", "IS_OP"):
                compares.add(line)
            elif "JUMP" in step.opname and "IF" in step.opname:
                branches.add(line)
            elif step.argval == "__name__":
                named.add(line)
        for inner in code.co_consts:
            if hasattr(inner, "co_code"):
                self.plan(inner)
        name = code.co_filename
        if name not in self.hollow:
            self.hollow[name] = hollow_lines(name)
        empty = self.hollow[name]
        self.had += len(asserts - empty)
        self.plans[code] = (asserts - empty, compares - named - empty, branches - named - compares - empty)
        return self.plans[code]

    def __call__(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        name = code.co_name
        if name.startswith("add") and name in ("addSkip", "addSuccess", "addFailure", "addError"):
            self.results[name] = self.results.get(name, 0) + 1
        elif name in ("run", "report_start") and os.path.basename(code.co_filename) == "doctest.py":
            self._doctest(name, frame.f_locals)
        known = self.code.get(code)
        if known is None:
            only = TOLD.get("only")
            place = os.path.realpath(code.co_filename) if only else ""
            known = self.code[code] = place.startswith(tuple(only)) if only else not library(frame)
        if not known:
            if name.lower().startswith(("assert", "raises", "fail", "verify", "check", "__enter__")):
                caller = frame.f_back
                if caller is not None and self.code.get(caller.f_code) and name != "__enter__":
                    self.reached["call"] += 1
            return None
        self.where.add(code.co_filename)
        plan = self.plans.get(code) or self.plan(code)

        def lines(frame: types.FrameType, event: str, arg: Any) -> Any:
            if event == "line":
                if frame.f_lineno in plan[0]:
                    self.reached["assert"] += 1
                if frame.f_lineno in plan[1]:
                    self.reached["compare"] += 1
                if frame.f_lineno in plan[2]:
                    self.reached["branch"] += 1
            elif event == "exception" and len(self.raised) < 40:
                self.raised.append(
                    [arg[0].__name__, str(arg[1])[:200], os.path.basename(code.co_filename), frame.f_lineno]
                )
            return lines

        return lines

    def _doctest(self, name: str, here: dict[str, Any]) -> None:
        """Count examples that a text of doctest holds as skipped, and those that are run."""
        kind = "addSuccess" if name == "report_start" else "addSkip"
        count = 1 if name == "report_start" else len(getattr(here.get("test"), "examples", ()))
        if count:
            self.results[kind] = self.results.get(kind, 0) + count

    def told(self) -> dict[str, Any]:
        """All that was seen."""
        return {
            "had": self.had,
            "reached": self.reached,
            "raised": self.raised,
            "results": self.results,
            "files": sorted(self.where)[:20],
            "optimized": sys.flags.optimize,
        }


def trace_whole_process() -> None:
    """Trace from here to the end of the process, and note it."""
    import atexit
    import threading

    seen = CheckTrace()

    def end() -> None:
        sys.settrace(None)
        note(trace=seen.told())

    atexit.register(end)
    threading.settrace(seen)
    sys.settrace(seen)
