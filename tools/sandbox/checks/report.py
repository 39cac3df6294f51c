"""``python -m turnwise.tools.sandbox.checks.report``: run the suite on every backend, write the table into docs/sandboxes.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from turnwise.tools.sandbox.checks import CHECKS, CheckOutcome, laboratory, run_check
from turnwise.tools.sandbox.registry import backend_names, get_backend

BEGIN, END = "<!-- generated: conformance -->", "<!-- end -->"


def run_all(names: Sequence[str]) -> dict[str, dict[str, CheckOutcome]]:
    """The outcome of each check by backend."""
    found: dict[str, dict[str, CheckOutcome]] = {}
    for name in names:
        with laboratory(get_backend(name, unsafe=True)) as lab:
            found[name] = {check: run_check(lab, CHECKS[check]) for check in CHECKS}
    return found


def table(found: Mapping[str, Mapping[str, CheckOutcome]]) -> str:
    """The outcomes as Markdown: a row per check, in the order of the suite."""
    head = f"| check | what holds | attack rows | {' | '.join(found)} |"
    lines = [head, f"|---|---|---|{'---|' * len(found)}"]
    for name, check in CHECKS.items():
        marks = [{"pass": "pass", "declared": "—", "FAIL": "**FAIL**"}[found[b][name].result] for b in found]
        rows = ", ".join(map(str, check.rows))
        lines.append(f"| `{name}` | {check.claim} | {rows} | {' | '.join(marks)} |")
    counts = [f"{backend}: {_counted(outcomes)}" for backend, outcomes in found.items()]
    return "\n".join([*lines, "", f"{len(CHECKS)} checks. {'; '.join(counts)}."])


def write_into(text: str, generated: str) -> str:
    """The page with its generated part replaced."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{generated}\n{END}{after}"


def _counted(outcomes: Mapping[str, CheckOutcome]) -> str:
    results = [outcome.result for outcome in outcomes.values()]
    kinds = [(kind, results.count(kind)) for kind in ("pass", "declared", "FAIL")]
    return ", ".join(f"{count} {kind}" for kind, count in kinds if count)


def main() -> int:
    """Run and write; 1 where anything failed."""
    found = run_all(backend_names())
    page = Path(__file__).resolve().parents[3] / "docs" / "sandboxes.md"
    page.write_text(write_into(page.read_text("utf-8"), table(found)), "utf-8")
    failed = [o for outcomes in found.values() for o in outcomes.values() if o.result == "FAIL"]
    for outcome in failed:
        print(outcome.check.name, outcome.detail, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
