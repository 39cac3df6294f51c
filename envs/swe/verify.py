"""Judge some of the built tasks as episodes are judged: ``python -m turnwise.envs.swe.verify --tasks 40``.

Tasks are validated in a warm interpreter (:mod:`turnwise.envs.swe.draw`), repairs are judged in fresh ones: here both meet.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.packages import tasks_file
from turnwise.envs.swe.reward import grade
from turnwise.envs.swe.tasks import load_instances
from turnwise.errors import VerifierError
from turnwise.tasks.core import derive_rng
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend, isolated_backend


class JudgedRepair(NamedTuple):
    """Verdicts on the true repair, and on the bug with another change beside it; ``why`` where one is wrong."""

    task: str
    repaired: bool
    unrepaired: bool
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.repaired and not self.unrepaired


def judge(backend: Backend, instance: Instance) -> JudgedRepair:
    """Judge the true repair, and the bug where only a comment was added."""
    name = f"{instance.package} {instance.where}"
    path, broken = instance.edit.path, instance.broken()
    try:
        good = grade(backend, instance, instance.fixed())
        bad = grade(backend, instance, {**broken, path: broken[path] + b"\n# changed\n"})
    except VerifierError as error:
        return JudgedRepair(name, False, False, str(error))
    why = good.why if not good.resolved else bad.why if bad.resolved else ""
    return JudgedRepair(name, good.resolved, bad.resolved, why)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m turnwise.envs.swe.verify", description=judge.__doc__)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--file", type=Path, default=tasks_file())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--backend", choices=("bubblewrap", "docker"))
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    asked = parser.parse_args(arguments)
    backend = get_backend(asked.backend) if asked.backend else isolated_backend()
    known = load_instances(asked.file)
    chosen = derive_rng("swe verify", asked.seed).sample(known, min(asked.tasks, len(known)))
    with ThreadPoolExecutor(asked.workers) as pool:
        judged = list(pool.map(lambda one: judge(backend, one), chosen))
    for one in judged:
        if not one.ok:
            print(f"– {one.task}: {one.why}", file=sys.stderr)
    counts = {
        "of": len(known),
        "judged": len(judged),
        "repair_passes": sum(one.repaired for one in judged),
        "bug_passes": sum(one.unrepaired for one in judged),
    }
    print(json.dumps(counts) if asked.json else " ".join(f"{name} {count}" for name, count in counts.items()))
    return 0 if all(one.ok for one in judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())
