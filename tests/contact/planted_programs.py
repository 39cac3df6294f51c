"""Faults of programs behind the gateway: how they begin, ask, act and end."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import NamedTuple

import planted_http
import yaml
from blame import Fault
from raw_server import Raw, RawServer, as_json

HEAD = """
import json, os, signal, sys, time, urllib.error, urllib.request
def post(url, body):
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)
def act(name, **arguments):
    return post(os.environ["SESSION_URL"] + "/act", {"name": name, "arguments": arguments})["text"]
def ask(said="What now?", **more):
    messages = [{"role": "user", "content": said}]
    return post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"model": "policy", "messages": messages, **more})
prompt = sys.stdin.read()
"""
NO_KEY = as_json({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, 401)
ACTED = "ask(prompt); act('look', place='ledger'); "


class Program(NamedTuple):
    """A program, and the model that it talks to."""

    code: str = ""  # after the head; nothing of it where there is a command
    command: tuple[str, ...] = ()
    model: Raw | None = None  # what its provider says; None: a script that knows the solution
    timeout: float = 60
    mode: int = stat.S_IRWXU
    bare: bool = False  # without the head


def policy(fault: Fault, folder: Path, wire: RawServer) -> tuple[str, str]:
    """The policy that runs the program, and the model that it talks to."""
    program: Program = fault.how
    file = folder / "agent.py"
    file.write_text((f"#!{sys.executable}\n" if program.bare else HEAD) + program.code + "\n")
    file.chmod(program.mode)
    command = [part.replace("{file}", str(file)) for part in program.command] or [
        sys.executable,
        "-S",
        str(file),
    ]
    (folder / "agent.yaml").write_text(yaml.safe_dump({"command": command, "timeout": program.timeout}))
    answer = program.model
    model = f"openai:m@{wire.at(lambda *_: answer)}" if answer is not None else "scripted:gold"
    return f"command:{folder / 'agent.yaml'}", model


FAULTS = [
    Fault("acts and exits with 1", "agent", Program(ACTED + "sys.exit(1)")),
    Fault("acts and exits with 0", "agent", Program(ACTED + "sys.exit(0)")),
    Fault("acts and exits with 126", "agent", Program(ACTED + "sys.exit(126)")),
    Fault("acts and exits with 127", "agent", Program(ACTED + "sys.exit(127)")),
    Fault("acts and is killed by itself", "agent", Program(ACTED + "os.kill(os.getpid(), signal.SIGKILL)")),
    Fault("acts and aborts", "agent", Program(ACTED + "os.abort()")),
    Fault("acts and raises", "agent", Program(ACTED + "raise ValueError('no drawer')")),
    Fault("acts wrongly", "agent", Program("ask(prompt); act('hand_over', tag=1)")),
    Fault("asks and then exits with 5", "agent", Program("ask(prompt); sys.exit(5)")),
    Fault("acts and hangs", "agent", Program(ACTED + "time.sleep(60)", timeout=2)),
    Fault("acts and writes without end", "agent", Program(ACTED + "[sys.stdout.write('x' * 1000000) for _ in range(40)]")),
    Fault("acts, asks nonsense and ends", "agent", Program(ACTED + "post(os.environ['OPENAI_BASE_URL'] + '/chat/completions', {'messages': 5})")),
    Fault("calls a tool that there is not, and ends", "agent", Program("ask(prompt); act('open')")),
    Fault("is not there", "server", Program(command=("no-such-program-of-ours",)), "no-such-program"),
    Fault("may not be executed", "server", Program("pass", ("{file}",), mode=stat.S_IRUSR, bare=True), r"may not be executed(.|\n)*chmod \+x"),
    Fault("is a folder", "server", Program(command=("/usr",)), "'/usr' is a folder"),
    Fault("has an interpreter that is not there", "server", Program(command=("/nowhere/python", "{file}")), "/nowhere/python"),
    Fault("lacks a library", "unbegun", Program("import no_such_library_of_ours"), "no_such_library|exit|code 1"),
    Fault("has a mistake of syntax", "unbegun", Program("def"), "syntax|exit|code 1"),
    Fault("is killed before it asks", "unbegun", Program("os.kill(os.getpid(), signal.SIGKILL)"), "signal|kill|exit|-9|137"),
    Fault("gives up when its provider fails", "server", Program(ACTED, model=NO_KEY), "api key"),
    Fault("hides that its provider fails", "server", Program("""
try:
    ask(prompt)
except urllib.error.HTTPError:
    sys.exit(0)
""", model=NO_KEY), "api key"),
    Fault("gets a reply that was cut, and ends", "neither", Program("ask(prompt)", model=planted_http.words("I look into the", "length")), planted_http.CUT),
    Fault("gets a refusal, and ends", "neither", Program("ask(prompt)", model=planted_http.words("", "content_filter")), "refus|filter"),
]  # fmt: skip
