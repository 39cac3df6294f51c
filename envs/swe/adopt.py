"""Make instances of SWE-smith, SWE-bench or SWE-Gym playable: ``python -m turnwise.envs.swe.adopt FILE``.

Possible where the instance is about a package of ``packages.yaml`` and its patch fits the pinned release: that has the
repair (SWE-bench), or is what the bug was put into (SWE-smith). Each is run as our own tasks are before it is kept.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from turnwise.envs.swe.baseline import baseline_of
from turnwise.envs.swe.diffs import DiffError, apply_diff, read_diff
from turnwise.envs.swe.importers import Foreign, read_instances
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.mutate import Edit
from turnwise.envs.swe.packages import Package, packages, repository, tasks_file
from turnwise.envs.swe.prove import prove
from turnwise.envs.swe.source import SourceText
from turnwise.envs.swe.suite import run_suite, start
from turnwise.errors import TurnwiseError
from turnwise.texts import as_bytes, kept
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend, isolated_backend


class NotPlayableError(TurnwiseError):
    """An instance that cannot be played here; says why."""

    def __init__(self, why: str) -> None:
        super().__init__(f"It cannot be played here: {why}.", "Play it in its own image instead.")
        self.why = why


def adopt(backend: Backend, foreign: Foreign, package: Package) -> Instance:
    """An instance of others as one of ours, run once with the bug.

    Tests that do not pass here with the repair are left out of ``pass_to_pass``; of ``fail_to_pass`` none may be missing.

    Raises:
        NotPlayableError: its patch does not fit, or its tests do not do here what they should.
        TurnwiseError: the package's suite does not run.
    """
    edit = _edit(foreign, package)
    base = baseline_of(backend, package)
    wanted = frozenset(foreign.fail_to_pass)
    if not wanted or wanted - base.passing:
        raise NotPlayableError(
            f"{len(wanted - base.passing)} tests of fail_to_pass do not pass with the repair"
        )
    files = dict(repository(package))
    files[edit.path] = as_bytes(edit.apply(kept(files[edit.path])))
    with start(backend, package, files) as sandbox:
        run = run_suite(sandbox, package, seconds=min(10 + 5 * base.seconds, 110), hash_seed=1)
    if not run.complete or run.tampered:
        raise NotPlayableError("the suite does not come to its end with the bug")
    if wanted & run.passing():
        raise NotPlayableError(f"{len(wanted & run.passing())} tests of fail_to_pass pass with the bug")
    others = frozenset(foreign.pass_to_pass) & base.passing & run.passing()
    made = Instance(
        package=package.name,
        version=package.version,
        edits=(edit,),
        operator="adopted",
        where=_where(package, edit),
        issue=foreign.issue,
        fail_to_pass=tuple(sorted(wanted)),
        pass_to_pass=tuple(sorted(others)),
        hidden=tuple(sorted({name.partition("::")[0] for name in wanted})),
        seconds=round(base.seconds, 1),
        twins=(),
        probes=(),
        origin=None if package.is_own else package,
    )
    lines = {name: run.tests[name].line if name in run.tests else 0 for name in wanted}
    proven = prove(backend, base.image, made, lines)
    if proven is None:
        raise NotPlayableError("none of its failing tests can be altered so that it must fail")
    return proven


def package_of(foreign: Foreign) -> Package:
    """The package that an instance is about, by the name of its repository.

    Raises:
        NotPlayableError: we have none.
    """
    name = foreign.repo.rpartition("/")[2].lower()
    name = re.sub(r"^.*?__|\.[0-9a-f]{7,}$", "", name)  # SWE-smith: owner__name.commit
    for known in packages().values():
        if name in (known.name, f"python-{known.name}", known.name.rstrip("0123456789")):
            return known
    raise NotPlayableError(f"{foreign.repo} is not in packages.yaml")


def _edit(foreign: Foreign, package: Package) -> Edit:
    """From the repaired text to the broken one."""
    texts = {path: kept(data) for path, data in repository(package).items()}
    try:
        changed = apply_diff(read_diff(foreign.patch), texts, reverse=not foreign.reverse)
        if foreign.test_patch:  # the release must have these tests
            apply_diff(read_diff(foreign.test_patch), texts, reverse=True)
    except DiffError as error:
        raise NotPlayableError(str(error)) from None
    paths = [path for path in changed if package.is_source(path)]
    if len(paths) != 1:
        raise NotPlayableError(f"its patch is about {len(paths)} files of the package")
    (path,) = paths
    old, new = texts[path], changed[path]
    first = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    rest = min(len(old), len(new)) - first
    same = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return Edit(path, first, old[first : len(old) - same], new[first : len(new) - same])


def _where(package: Package, edit: Edit) -> str:
    """The function that a change is in: of the innermost one around its beginning."""
    source = SourceText(kept(repository(package)[edit.path]))
    line = source.line_at(edit.start)
    around = [
        node
        for node in source.nodes
        if getattr(node, "lineno", line + 1) <= line <= (getattr(node, "end_lineno", 0) or 0)
    ]
    return source.name_of(around[-1]) if around else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        "python -m turnwise.envs.swe.adopt", description="Make instances of others playable."
    )
    parser.add_argument("file", type=Path, help="JSONL as SWE-bench, SWE-Gym or SWE-smith publish it")
    parser.add_argument("--out", type=Path, default=tasks_file("adopted"))
    parser.add_argument("--backend", choices=("bubblewrap", "docker"))
    asked = parser.parse_args(arguments)
    backend = get_backend(asked.backend) if asked.backend else isolated_backend()
    kept, reasons = 0, dict[str, int]()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with asked.out.open("w", encoding="utf-8") as out:
        for foreign in read_instances(asked.file):
            try:
                made = adopt(backend, foreign, package_of(foreign))
            except TurnwiseError as error:
                why = error.why if isinstance(error, NotPlayableError) else str(error)
                print(f"– {foreign.instance_id}: {why}", file=sys.stderr)
                reasons[why] = reasons.get(why, 0) + 1
                continue
            out.write(json.dumps(made.to_json()) + "\n")
            kept += 1
    print(f"{kept} of {kept + sum(reasons.values())} instances can be played: {asked.out}")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
