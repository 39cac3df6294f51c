#!/usr/bin/env python3
"""Write all generated pages anew: ``make pages``, or ``python scripts/generated.py NAME …`` for those whose command has NAME in it.

Each page has a test that compares it with what its command writes, and that names the command.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    "-m turnwise.scaffold.pages",
    "-m turnwise.trainers.recipe.docs",
    "-m turnwise.trainers.recipe.coming_from",
    "-m turnwise.api_page",
    "-m turnwise.trainers.lab.papers > docs/papers.md",
    "-m turnwise.trainers.lab.bias > docs/credit-bias.md",
    "-m turnwise.trainers.lab.contexts > docs/context-bias.md",
    "-m turnwise.envs.check.horizon > docs/horizon.md",
    "-m turnwise.trainers.bench.fits > docs/what-fits.md",
    "-m turnwise.trainers.lab.staleness > docs/staleness.md",
    "tests/contract/mistakes.py",
    "tests/trainers/recipe_mistakes.py",
    "benchmarks/objectives.py --page",
    "benchmarks/recipe_bias.py --page",
    "scripts/import_graph.py",
    "scripts/docs_figures.py",
)


def write(command: str) -> bool:
    """Run one command; a page that it prints is replaced only if it comes to its end."""
    arguments, _, target = command.partition(" > ")
    done = subprocess.run([sys.executable, *arguments.split()], cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if done.returncode == 0 and target:
        (ROOT / target).write_bytes(done.stdout)
    print(f"python {command}{'' if done.returncode == 0 else f': exit status {done.returncode}'}", flush=True)
    return done.returncode == 0


def main() -> None:
    """Write the pages that the command line names, or all."""
    names = sys.argv[1:]
    chosen = [command for command in COMMANDS if not names or any(name in command for name in names)]
    if not chosen:
        sys.exit(f"No page's command has {' or '.join(names)} in it. The commands: {'; '.join(COMMANDS)}")
    written = [write(command) for command in chosen]
    sys.exit(not all(written))


if __name__ == "__main__":
    main()
