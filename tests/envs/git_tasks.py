"""Tasks out of a third party's MCP server (mcp-server-git): commit one of two changes on a branch."""

import os
import subprocess
import sys

from turnwise.envs.mcp.env import McpEnv
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolCall
from turnwise.tools.mcp_client import StdioServer

WORDS = [
    "amber",
    "basil",
    "cedar",
    "dune",
    "ember",
    "fern",
    "grove",
    "heron",
    "iris",
    "kelp",
    "lotus",
    "maple",
]
WHEN = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
        for what, value in (("DATE", "1893456000 +0000"), ("NAME", "A"), ("EMAIL", "a@example.org"))}  # fmt: skip


def git(folder, *arguments):
    command = ["git", "-c", "init.defaultBranch=main", "-C", str(folder), *arguments]
    return subprocess.run(
        command, env={**os.environ, **WHEN}, stdout=-1, stderr=-1, text=True, check=False
    ).stdout.strip()


class GitTasks(McpEnv):
    server = StdioServer((sys.executable, "-m", "mcp_server_git"), env=WHEN)
    offered = ("git_status", "git_add", "git_create_branch", "git_checkout", "git_commit", "git_log")
    keeps_memory = False

    @classmethod
    def generate(cls, rng, split):
        def draw(rng):
            file, other, branch, message = rng.sample(WORDS, 4)
            prompt = (
                f"In /work, commit only {file}.txt, with the message {message!r}, on a new branch {branch!r}."
            )
            return Task("test/Git-v0", prompt, {"files": [file, other], "branch": branch, "message": message}) if in_split(split, file, branch) else None  # fmt: skip

        return first_drawn(draw, rng, split, "git")  # fmt: skip

    @classmethod
    def prepare(cls, task, folder):
        git(folder, "init")
        git(folder, "commit", "--allow-empty", "-m", "start")
        for name in task.options["files"]:
            (folder / f"{name}.txt").write_text(name)

    def judge(self, task, folder, answer):
        branch, wanted = task.options["branch"], [f"{task.options['files'][0]}.txt"]
        files = git(folder, "ls-tree", "-r", "--name-only", branch).split()
        said = git(folder, "log", "--format=%s", "main.." + branch).splitlines()
        return float(
            files == wanted
            and said == [task.options["message"]]
            and git(folder, "log", "--format=%s", "main") == "start"
        )

    def plan(self, task):
        here, o = {"repo_path": "/work"}, task.options
        yield_ = [("git_create_branch", {"branch_name": o["branch"]}), ("git_checkout", {"branch_name": o["branch"]}),
                  ("git_add", {"files": [f"{o['files'][0]}.txt"]}), ("git_commit", {"message": o["message"]})]  # fmt: skip
        return [*(ToolCall(name, {**here, **more}) for name, more in yield_), ToolCall("finish")]
