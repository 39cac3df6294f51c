"""Tasks whose judge is broken, and says 0."""

from __future__ import annotations

import re

from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.task_sets.shared import defects
from turnwise.trainers.audit.xray.core import Evidence, ProbedSet, ProbedTask, quoted

_SWALLOWED = ("ImportError", "ModuleNotFoundError", "FileNotFoundError", "KeyError", "NameError", "AttributeError", "PermissionError", "OSError",
              "JSONDecodeError", "NotADirectoryError", "UnboundLocalError", "CalledProcessError", "ConnectionRefusedError", "RuntimeError", "IndexError", "TypeError",
              "OperationalError", "UnicodeDecodeError", "IsADirectoryError", "ValueError", "EnvironmentError")  # fmt: skip
_LOG = re.compile(
    r"[^\n]*(?:command not found|No such file or directory|ModuleNotFoundError|ImportError while|ERROR collecting|fixture '[^']*' not found|No module named|"
    r"cannot stat|can't open file|Permission denied|SyntaxError|cannot open|unbound variable|set-?up (?:has )?failed|failed to (?:start|set up|connect|load)|could not (?:start|set up|connect|load)|"
    r"INTERNALERROR|unrecognized arguments|Connection refused|not installed|missing (?:dependency|fixture|file))[^\n]*",
    re.IGNORECASE,
)

_OF_THE_AGENT = re.compile(r"(?:FileNotFoundError|\[Errno 2\])(?!.*['\"]/tests)")
"""A file that tests look for and the agent did not write is no broken set-up."""


@audit()
def broken_setup(probed: ProbedSet) -> AuditFinding:
    """Tasks whose set-up or judge breaks, though the answer is right: it raises, or something missing is counted as 0."""
    return defects(probed, _detect, unjudged=True)


def _detect(one: ProbedTask) -> Evidence | None:
    if one.setup:
        return Evidence(one.setup)
    gold = one.gold
    if gold is None:
        return _crash(one)
    verdicts = [seen.verdict for seen in one.judged if seen.attempt.agent == "gold"]
    if any(one.accepts(said) for said in verdicts):
        return _crash(one)
    raised = [said.error for said in verdicts if said.error]
    if raised:
        return Evidence(f"the judge breaks on the right answer: {quoted(raised[0])}")
    for said in verdicts:
        for name, text, file, line in (said.trace or {}).get("raised") or ():
            if name in _SWALLOWED and not (
                name in ("ValueError", "TypeError", "IndexError") and _parses(one, name)
            ):
                return Evidence(
                    f"{name}: {quoted(text, 100)} ({file}:{line}) is swallowed, and the right answer gets {said.said}"
                )
    lines = (match.group() for said in verdicts for match in _LOG.finditer(said.log))
    if found := next((line for line in lines if not _OF_THE_AGENT.search(line)), ""):
        return Evidence(f"the right answer gets {gold.verdict.said}, and the log says {quoted(found)!r}")
    if broken := max(said.tests.get("error", 0) for said in verdicts):
        return Evidence(
            f"the right answer gets {gold.verdict.said}, and {broken} tests or files of tests break before they run"
        )
    return None


def _parses(one: ProbedTask, name: str) -> bool:
    """Say if the same is raised where the judge says more than 0, so that it belongs to its work."""
    return any(
        row[0] == name
        for seen in one.judged
        if one.accepts(seen.verdict)
        for row in (seen.verdict.trace or {}).get("raised") or ()
    )


def _crash(one: ProbedTask) -> Evidence | None:
    """A judge that raises on an answer which any model may give."""
    for seen in one.of("empty", "no-op", "garbage"):
        if seen.verdict.error:
            severity = "look" if one.gold is not None else "defect"
            return Evidence(
                f"the judge raises on {seen.attempt.agent} {quoted(seen.attempt.text, 40)!r}: {quoted(seen.verdict.error)}",
                severity,
            )
    return None
