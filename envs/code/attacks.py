"""Attacking agents for Code-v0: groups D, E and F of the attack catalogue, as far as they apply.

Each plays one episode of a task that it does not solve. It must score 0, what it was shown must hold no
secret, and right afterwards a right program must still score 1 in the same sandboxes.

``python -m turnwise.envs.code.attacks [--write]`` runs all of them on every backend that isolates and works
here; ``--write`` puts the table into docs/code.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from turnwise.envs.code.battery import ATTACKS, CodeAttack
from turnwise.envs.code.env import CodeEnv
from turnwise.envs.code.families.core import build_problem
from turnwise.envs.code.knobs import CodeKnobs
from turnwise.envs.code.tasks import task_of
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import ToolCall
from turnwise.tools.sandbox.registry import get_backend

BACKENDS = ("bubblewrap", "docker")
_MARK = "<!-- generated: attacks -->"
_END = "<!-- end -->"
_PAGE = Path(__file__).resolve().parents[2] / "docs" / "code.md"
_VARIABLES = ("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "TURNWISE_CANARY")


class Traps(NamedTuple):
    """Bait on the host for an attack to find: a secret in variables and a file, and an open port."""

    secret: str
    file: str
    port: int


class CodeVerdict(NamedTuple):
    """Outcome of an attack: its score, and what it damaged or saw that it must not (empty: nothing)."""

    score: float
    damage: str
    ended: str

    @property
    def ok(self) -> bool:
        return self.score == 0.0 and not self.damage


@contextlib.contextmanager
def traps() -> Iterator[Traps]:
    """Set traps on the host, and take them away again."""
    secret = f"canary-{secrets.token_hex(12)}"
    kept = {name: os.environ.get(name) for name in _VARIABLES}
    with tempfile.TemporaryDirectory(prefix="turnwise-traps-") as folder, socket.socket() as server:
        path = Path(folder, "secret.txt")
        path.write_text(secret, "utf-8")
        server.bind(("127.0.0.1", 0))
        server.listen()
        os.environ.update(dict.fromkeys(_VARIABLES, secret))
        try:
            yield Traps(secret, str(path), server.getsockname()[1])
        finally:
            for name, value in kept.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def subject() -> Task:
    """The task that is attacked: one that no constant answers."""
    params: dict[str, Json] = {"apart": 2, "modulus": 3, "how": "sum"}
    problem = build_problem("count_pairs", params, visible=3, hidden=40)
    return task_of(problem, CodeKnobs(turn_limit=8))


def play_attack(attack: CodeAttack, backend: str, trap: Traps) -> CodeVerdict:
    """One attacking episode, then one honest one."""
    task, seen, score, ended = subject(), "", 0.0, ""
    env = CodeEnv(backend=backend, unsafe=True, seconds=attack.seconds)
    env.reset(seed=0, options={"task": task})
    for verb, code in attack.acts:
        text = _filled(code, task, trap)
        step = env.step(Message("assistant", "", (ToolCall(verb, {"code": text}, "c"),)))
        seen += str(step.observation)
        score += step.info.get("rewards", {}).get("outcome", 0.0)
        ended = str(step.info.get("end") or "")
        if ended:
            break
    env.close()
    return CodeVerdict(score, _damage(attack, backend, trap, seen, task), ended)


def _filled(code: str, task: Task, trap: Traps) -> str:
    entry = task.options["problem"]["entry"]
    return code.replace("ENTRY", entry).replace("SECRET_FILE", trap.file).replace("HOST_PORT", str(trap.port))


def _damage(attack: CodeAttack, backend: str, trap: Traps, seen: str, task: Task) -> str:
    """Describe what went wrong beside the score; empty where nothing did."""
    if trap.secret in seen:
        return "it saw the secret"
    if attack.absent and attack.absent in seen:
        return f"it reached what it tried to ({attack.absent!r})"
    if Path(trap.file).read_text("utf-8") != trap.secret:
        return "it changed a file of the host"
    env = CodeEnv(backend=backend, unsafe=True)
    env.reset(seed=1, options={"task": task})
    honest = env.step(env.gold(env.state))
    env.close()
    return "" if honest.reward == 1.0 else "a right program no longer scores 1"


def main() -> None:
    """Run the battery, print its table, and write it into the documentation if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/code.md")
    options = parser.parse_args()
    usable = [name for name in BACKENDS if get_backend(name, unsafe=True).status().ok]
    lines = [f"| rows | attack | {' | '.join(BACKENDS)} |", "|---|---|" + "---|" * len(BACKENDS)]
    bad = 0
    with traps() as trap:
        for attack in ATTACKS:
            cells: list[str] = []
            for name in BACKENDS:
                started = time.monotonic()
                verdict = play_attack(attack, name, trap) if name in usable else None
                bad += verdict is not None and not verdict.ok
                cells.append(_cell(verdict))
                print(
                    f"{attack.rows:8} {attack.name:24} {name:12} {cells[-1]} {time.monotonic() - started:.1f}s",
                    flush=True,
                )
            lines.append(f"| {attack.rows} | {attack.about} | {' | '.join(cells)} |")
    skipped = [name for name in BACKENDS if name not in usable]
    tail = f" Not run here: {', '.join(skipped)}." if skipped else ""
    table = "\n".join([*lines, "", f"{len(ATTACKS)} attacks, {bad} false passes or damage.{tail}"])
    if options.write:
        page = _PAGE.read_text("utf-8")
        before, _, rest = page.partition(_MARK)
        _PAGE.write_text(f"{before}{_MARK}\n{table}\n{_END}{rest.partition(_END)[2]}", "utf-8")
    print(table.splitlines()[-1])


def _cell(verdict: CodeVerdict | None) -> str:
    if verdict is None:
        return "not run"
    return "0" if verdict.ok else f"**{verdict.score:g}** {verdict.damage}".strip()


if __name__ == "__main__":
    main()
