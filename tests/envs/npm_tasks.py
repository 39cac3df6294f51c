"""Tasks out of a third party's MCP server from npm (server-filesystem): file notes away and say what they held."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from turnwise.envs.mcp.env import McpEnv
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolCall
from turnwise.tools.mcp_client import StdioServer

PACKAGE = "@modelcontextprotocol/server-filesystem"
HOME = Path(os.environ.get("TURNWISE_NPM", "~/.cache/turnwise/npm")).expanduser()
SERVER = HOME / "node_modules" / PACKAGE / "dist" / "index.js"
THINGS = ["rope", "lamp", "salt", "twine", "chalk", "flour", "nails", "paint"]


def install() -> bool:
    """Whether the server is there, fetched by npm where it was not: into a folder of its own that is moved when it is whole."""
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with HOME.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if SERVER.exists():
            return True
        with tempfile.TemporaryDirectory(dir=HOME.parent) as folder:
            made = f"{folder}/npm"
            command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", made, PACKAGE]
            try:
                subprocess.run(command, check=True, timeout=120, capture_output=True)
            except (OSError, subprocess.SubprocessError):
                return False
            shutil.rmtree(HOME, ignore_errors=True)
            Path(made).rename(HOME)
    return SERVER.exists()


class FilingTasks(McpEnv):
    server = StdioServer(("node", str(SERVER), "{folder}"))
    offered = ("list_directory", "read_text_file", "write_file", "create_directory", "move_file")
    keeps_memory = False

    @classmethod
    def generate(cls, rng, split):
        def draw(rng):
            wanted, other, kept = rng.sample(THINGS, 3)
            count = rng.randint(2, 99)
            prompt = f"In /work, move {wanted}.txt into a new folder {wanted}, and write the number in it into /work/total.txt."
            options = {"wanted": wanted, "others": [other, kept], "count": count}
            return (
                Task("test/Filing-v0", prompt, options)
                if in_split(split, wanted, other, kept, count)
                else None
            )

        return first_drawn(draw, rng, split, "filing")

    @classmethod
    def prepare(cls, task, folder):
        for place, name in enumerate([task.options["wanted"], *task.options["others"]]):
            (folder / f"{name}.txt").write_text(f"{task.options['count'] + 100 * place} pieces")

    def judge(self, task, folder, answer):
        wanted, others = task.options["wanted"], task.options["others"]
        files = {str(p.relative_to(folder)): p.read_text().strip() for p in folder.rglob("*") if p.is_file()}
        right = {
            f"{name}.txt": f"{task.options['count'] + 100 * n} pieces" for n, name in enumerate(others, 1)
        }
        right |= {
            f"{wanted}/{wanted}.txt": f"{task.options['count']} pieces",
            "total.txt": str(task.options["count"]),
        }
        return float(files == right)

    def plan(self, task):
        wanted = task.options["wanted"]
        move = {"source": f"/work/{wanted}.txt", "destination": f"/work/{wanted}/{wanted}.txt"}
        return [
            ToolCall("read_text_file", {"path": f"/work/{wanted}.txt"}),
            ToolCall("create_directory", {"path": f"/work/{wanted}"}),
            ToolCall("move_file", move),
            ToolCall("write_file", {"path": "/work/total.txt", "content": str(task.options["count"])}),
            ToolCall("finish"),
        ]
