"""Our suites as task folders of Harbor, which agents in containers play.

The world runs in a container of its own (`environment/docker-compose.yaml`, service `world`), where the agent sees neither the code nor
the solution; in the agent's container is one command, `play`. The verifier asks the world for the score; the oracle is gold, recorded.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from turnwise import __version__
from turnwise.durable import write_whole
from turnwise.envs.core import ForkCost
from turnwise.envs.messages import Message
from turnwise.envs.offered.rows import OfferedRow, task_rows
from turnwise.envs.offered.session import OfferedEpisode
from turnwise.envs.registry import env_class, get_suite
from turnwise.errors import EnvError, TurnwiseError
from turnwise.tasks.core import Json, Split, digest

_PACKED = Path(__file__).parent / "packed"
_TOML = """\
schema_version = "1.1"

[task]
name = "turnwise/{name}"
description = "Task {index} of Turnwise's suite {suite} ({split})."

[metadata]
suite = "{suite}"
split = "{split}"
index = {index}
hash = "{hash}"
turnwise = "{version}"

[verifier]
timeout_sec = 120.0

[agent]
timeout_sec = 1800.0

[environment]
build_timeout_sec = 900.0
cpus = 1
memory_mb = 2048
storage_mb = 4096
"""
_COMPOSE = """\
services:
  main:
    depends_on:
      world:
        condition: service_healthy
  world:
    build:
      context: ${{CONTEXT_DIR}}/world
    expose:
      - "8000"
    healthcheck:
      test: ["CMD", "python3", "/health.py"]
      interval: 2s
      timeout: 10s
      retries: 60
"""
_MAIN = """\
FROM python:3.11-slim
COPY play /usr/local/bin/play
RUN chmod 755 /usr/local/bin/play
WORKDIR /app
"""
_WORLD = """\
FROM python:3.11-slim
# Where turnwise {version} is in no index of yours, put its wheel beside this file.
COPY . /wheels
RUN pip install --no-cache-dir --find-links /wheels turnwise=={version} && mv /wheels/health.py /health.py
CMD {command}
"""
_HEALTH = """\
import urllib.request

headers = {{"Authorization": "Bearer {token}"}}
urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:8000/health", headers=headers), timeout=5)
"""
_TEST = """\
#!/bin/bash
# The score is the world's; asking for it ends the episode.
mkdir -p /logs/verifier
python3 /tests/play.py score > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""
_HOW = """
## How to act

The world lies outside of this container, and the command `play` acts in it. Each turn is one call of it; there is one try, and nothing can be
taken back.

- `play say 'WORDS'` says words{words}
- `play` alone says again what was heard last.
{tools}"""


def write_harbor_folders(
    suite: str, folder: Path, n: int, *, split: Split = Split.TRAIN, start: int = 0
) -> None:
    """Write tasks ``start … start + n − 1`` of a suite, each as a folder in ``folder``.

    Raises:
        NotFoundError: there is no such suite.
        EnvError: several agents play in it, or its world is no Python alone (a sandbox, a browser, a server).
        TurnwiseError: the folder holds something else.
    """
    if folder.exists() and not (
        folder.is_dir() and all((one / "task.toml").is_file() for one in folder.iterdir())
    ):
        raise TurnwiseError(f"{folder} holds something else than task folders.", "Name a new folder.")
    if env_class(get_suite(suite).env).fork_cost is not ForkCost.FREE:
        raise EnvError(
            f"The world of {suite} is more than Python: it needs a sandbox, a browser or a program of others.",
            "Such suites are no Harbor folders; play them here, or by OpenEnv (turnwise serve-openenv).",
        )
    for row in task_rows(suite, n, split=split, start=start):
        name = f"{suite.replace('/', '-').replace(':', '-')}-{split}-{row.index}".lower()
        for path, text in _files(row, name, _solution(row)).items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name / path, text)


def _files(row: OfferedRow, name: str, solution: Sequence[Json]) -> dict[str, str]:
    token = digest("harbor", row.task)
    told = {**row.to_json(), "name": name, "version": __version__, "token": token}
    serve = ["turnwise", "serve-openenv", row.suite, "--split", row.split, "--only", str(row.index)]
    command = json.dumps([*serve, "--host", "0.0.0.0", "--port", "8000", "--token", token])
    play = (_PACKED / "play.py").read_text("utf-8").replace("@TOKEN@", token)
    files = {
        "task.toml": _TOML.format(**told),
        "instruction.md": _instruction(row),
        "environment/Dockerfile": _MAIN,
        "environment/play": play,
        "environment/docker-compose.yaml": _COMPOSE.format(),
        "environment/world/Dockerfile": _WORLD.format(version=__version__, command=command),
        "environment/world/health.py": _HEALTH.format(token=token),
        "tests/test.sh": _TEST,
        "tests/play.py": play,
    }
    if solution:
        lines = [f"play do {shlex.quote(json.dumps(act, ensure_ascii=False))} || exit 1" for act in solution]
        files["solution/solve.sh"] = "#!/bin/bash\n" + "\n".join(lines) + "\n"
    return files


def _instruction(row: OfferedRow) -> str:
    opening = "\n\n".join(message["content"] for message in row.prompt)
    tools = [tool["function"] for tool in row.tools]
    listed = "".join(
        f"- `play call {tool['name']} '{{…}}'`: {tool['description']} Arguments: `{json.dumps(tool['parameters'], ensure_ascii=False)}`\n"
        for tool in tools
    )
    return (
        opening
        + "\n"
        + _HOW.format(tools=listed, words="." if tools else ": that is how an action is written here.")
    )


def _solution(row: OfferedRow) -> list[Json]:
    """Return the actions of gold, where one is known."""
    episode = OfferedEpisode(row.suite, row.index, Split(row.split))
    env = episode.env
    try:
        acts: list[Json] = []
        if not env.knows_gold(env.task):
            return acts
        while not episode.end:
            gold = env.gold(env.state)
            message = gold if isinstance(gold, Message) else Message("assistant", gold)
            acts.append({
                "text": message.content,
                "calls": [{"name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls],
            })  # fmt: skip
            episode.play(message)
        return acts
    finally:
        episode.close()
