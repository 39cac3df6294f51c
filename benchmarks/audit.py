"""What reinforcement kept, gained and lost in finished runs: audit.json, and the table of docs/how-to/audit.md.

    turnwise train search-quick --out runs/search
    python benchmarks/audit.py search-quick=runs/search …    # a name for the table, and a run; those measured before stay
    python benchmarks/audit.py                               # writes the table anew

A run's test split is played once before and once after reinforcement, so that luck alone moves tasks too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from turnwise.machine import describe

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "audit.json"
PAGE = ROOT / "docs" / "how-to" / "audit.md"
_TABLE = re.compile(r"^\| recipe \| kept \|(?:.*\n)(?:\|.*\n)*", re.MULTILINE)
HEAD = (
    "| recipe | kept | gained | lost | never | kept of what the start solved | new among what is solved now | "
    "power of cost with which the loss falls | best trivial script less start |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


def audited(subject: str, run: Path) -> dict[str, Any]:
    """Findings of ``turnwise audit``, measure by measure, figures under the first words of their names."""
    command = [sys.executable, "-m", "turnwise", "audit", subject, str(run), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return {
        **found["findings"],
        "not_measured": {one["name"]: one["cause"] for one in found["not_measured"]},
    }


def measured(run: Path) -> dict[str, Any]:
    """One run's row."""
    recipe = yaml.safe_load((run / "recipe.yaml").read_text())
    start = json.loads((run / "started.json").read_text())[-1]
    told, learned = audited("eval", run), audited("run", run)
    support = told["support"]
    _, *counts = support["tables"][0]["rows"][0]
    figures = {name.partition(" of ")[0]: one for name, one in support["figures"].items()}
    law = learned.get("power_law", {"figures": {}})["figures"]
    trivial = {name: one for name, one in learned["constants"]["figures"].items() if "less start" in name}
    best = max(trivial, key=lambda name: trivial[name]["value"])
    return {
        "suite": recipe["suite"],
        "seed": recipe["seed"],
        "commit": start["commit"],
        "measured": date.today().isoformat(),
        "tasks": dict(zip(("kept", "gained", "lost", "never"), counts, strict=True)),
        "kept": figures["SRR"],
        "new": figures["NDR"],
        "slope": next((one for name, one in law.items() if name.startswith("slope")), None),
        "no_slope": learned["not_measured"].get("power_law"),
        "trivial": {"script": best.partition(" ")[0], **trivial[best]},
    }


def row(name: str, found: Mapping[str, Any]) -> str:
    """One line of the table."""
    tasks = " | ".join(f"{found['tasks'][key]:.0f}" for key in ("kept", "gained", "lost", "never"))
    slope = number(found["slope"]) if found["slope"] else "too few validations"
    return (
        f"| {name} | {tasks} | {share(found['kept'])} | {share(found['new'])} | {slope} | "
        f"{found['trivial']['script']} {number(found['trivial'])} |\n"
    )


def share(figure: Mapping[str, Any]) -> str:
    """A share in per cent with its interval."""
    low, high = figure["interval"]
    return f"{figure['value']:.1%} ({100 * low:.1f} … {100 * high:.1f})".replace("%", " %")


def number(figure: Mapping[str, Any]) -> str:
    """A number with its interval."""
    low, high = figure["interval"]
    return f"{figure['value']:.2f} ({low:.2f} … {high:.2f})".replace("-", "−")


def main() -> None:
    """Measure the runs that the command line names, and write the table."""
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"runs": {}}
    for said in sys.argv[1:]:
        name, _, path = said.partition("=")
        result["runs"][name] = measured(Path(path))
        result["machine"] = describe()
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    table = HEAD + "".join(row(name, found) for name, found in sorted(result["runs"].items()))
    PAGE.write_text(_TABLE.sub(lambda _: table, PAGE.read_text(), count=1))


if __name__ == "__main__":
    main()
