"""What models, worlds and files say reaches the terminal as text: every verb, on a terminal, with escapes everywhere."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import forked
import pytest
from rich.progress import Progress as RichProgress

from turnwise.cli.app import VERBS
from turnwise.console import SafeConsole
from turnwise.terminal import Guarded, json_line, visible

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-c", "from turnwise.cli import main; main()"]
SCREEN = {"TERM": "xterm-256color", "COLUMNS": "300", "LC_ALL": "C.UTF-8"}
RECIPE = (HERE.parent / "letters.py").read_text().partition('RECIPE = """\\\n')[2].partition('"""')[0]
LOG = "episodes.jsonl.zst"
GOLD = ["--policy", "scripted:gold"]
# Each verb, and whether something foreign must be seen in what it says.
LINES: list[tuple[list[str], bool]] = [
    (["list", "envs"], True),
    (["list", "suites"], True),
    (["list", "nothing\x1b[2J"], True),
    (["check", "test/Hostile-v0", "--tasks", "2"], True),
    (["check", "test/Host\x1b[2Jile-v0", "--debug"], True),
    (["survey", "test/hostile", "--gold", "3", "--baselines", "3", "--tasks", "5"], True),
    (["fairness", "test/hostile", "--tasks", "2"], True),
    (["play", "test/hostile", *GOLD], True),
    (["play", "test/hostile"], True),
    (["new-env", "bad\x1b[2Jname"], True),
    (["new-part", "credit", "bad\x1b[2Jname"], True),
    (["audit", "log", "damaged"], False),
    (["audit", "env", "test/hostile", "--tasks", "2"], False),
    (["audit", "judge", "no\x1b[2Jjudge"], True),
    (["compare", "no\x1b[2Jrun", "other"], True),
    (["eval", "test/hostile", *GOLD, "--episodes", "4", "--out", "evaluated"], True),
    (["eval", "test/hostile", *GOLD, "--episodes", "2", "--env-workers", "1"], False),
    (["eval", "test/hostile", *GOLD, "--episodes", "2", "--search", "votes:n=2", "--budget", "99"], True),
    (["eval", "test/hostile", *GOLD, "--search", "no\x1b[2Jsearch", "--budget", "9"], True),
    (["replay", "evaluated"], True),
    (["replay", "damaged"], False),
    (["repair", "damaged"], False),
    (["repair", "no\x1b[2Jlog"], True),
    (["chats", "no\x1b[2Jlog", "--out", "chats.jsonl"], True),
    (["train", "recipe.yaml", "--out", "run"], True),
    (["explain", "recipe.yaml"], False),
    (["explain", "wrong.yaml"], True),
    (["report", "run"], False),
    (["top", "watched", "--once"], True),
    (["top", "garbled", "--once"], False),
    (["relearn", "no\x1b[2Jrun"], True),
    (["view", "no\x1b[2Jfolder"], True),
    (["credit-quality", "--episodes-log", "nothing\x1b[2J"], True),
    (["bench", "env", "test/Hostile-v0"], True),
    (["gateway", "--suite", "test/hostile", "--policy", "no\x1b[2Jpolicy:x"], True),
    (["serve", "no\x1b[2Jsuite"], True),
    (["serve-engine", "no\x1b[2Jmodel"], True),
    (["serve-openenv", "no\x1b[2Jsuite"], True),
    (["tasks", "no\x1b[2Jsuite", "--out", "tasks.jsonl"], True),
    (["panel", "mine", "no\x1b[2Jsuite", "--out", "mine.json"], True),
    (["serve-workers", "--token-file", "no\x1b[2Jfile"], True),
    (["mismatch", "no\x1b[2Jlog", "--model", "smollm2"], True),
    (["plan", "no\x1b[2Jrecipe", "--on", "H100"], True),
    (["worlds", "add", "no\x1b[2Jsuch"], True),
    (["doctor"], False),
    (["swe", "add", "no\x1b[2Jsuch.yaml"], True),
]
SLOW = {"train", "report"}
FULL = {"bench"}  # half a minute of measuring
CASES = [
    pytest.param(
        *line,
        id=ascii(" ".join(line[0]))[1:40],
        marks=[pytest.mark.slow] * (line[0][0] in SLOW) + [pytest.mark.full] * (line[0][0] in FULL),
    )
    for line in LINES
]
OURS = re.compile(
    r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[1A|\x1b\[2K|\r"
)  # colours, and a bar redrawing itself
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066\ufeff\u00ad\U000e0041]")


def with_plugin(folder: Path) -> dict[str, str]:
    """The environment variables of a machine on which the hostile plugin is installed."""
    metadata = folder / "site" / "hostile-1.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[turnwise.plugins]\nhostile = hostile:register_hostile\n")
    path = [str(folder / "site"), str(HERE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def on_a_terminal(folder: Path, *arguments: str, **environment: str) -> str:
    """What the command writes to a terminal, where somebody types ``:actions`` and ``:quit``."""
    master, slave = pty.openpty()
    env = with_plugin(folder) | SCREEN | environment
    process = forked.Forked(
        forked.TURNWISE, arguments, (slave, slave, slave), cwd=folder, env=env, new_session=True
    )
    os.close(slave)
    os.write(master, b":actions\nact[x]\n:quit\n")
    said = b""
    try:
        while part := os.read(master, 65536):
            said += part
    except OSError:  # the other end is closed
        pass
    process.wait(60)
    os.close(master)
    return said.decode()


def prepare(folder: Path, arguments: list[str]) -> None:
    recipe = RECIPE.replace("test/letters", "test/hostile").replace("updates: 5", "updates: 2")
    (folder / "recipe.yaml").write_text(recipe)
    (folder / "wrong.yaml").write_text(recipe + '"no\\e[2Jsuch": 1\n')
    (folder / "damaged").mkdir(exist_ok=True)
    (folder / "damaged" / LOG).write_bytes(b'{"format": "\x1b[2J"}\n')
    hostile = {"red\x1b[2J [bold]x[/] :smiley:\x1b]0;": 1}
    state = {"kind": "state", "failures": hostile, "doing": "\x1b[8m", "playing": {"\x1b[2J": [1, 2]}}
    for name, event in (("watched", state), ("garbled", {**state, "playing": {"\x1b[2J": "x"}})):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "events.jsonl").write_text(json.dumps(event) + "\n")
    if arguments[:2] == ["replay", "evaluated"]:
        on_a_terminal(folder, "eval", "test/hostile", *GOLD, "--episodes", "2", "--out", "evaluated")
    if arguments[0] == "report":
        on_a_terminal(folder, "train", "recipe.yaml", "--out", "run")


def check_clean(said: str, foreign: bool) -> None:
    assert "\x1b[38;5;213" not in said  # its colour, which is none of ours
    assert "\x1b]" not in said
    assert "\x1b[8m" not in said
    left = FORBIDDEN.search(OURS.sub("", said))
    assert left is None, ascii(OURS.sub("", said)[max(0, left.start() - 80) : left.end() + 20])
    assert not foreign or "␛" in said or "\\x1b" in said
    assert "😃" not in said


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "foreign"), CASES)
def test_no_verb_lets_foreign_text_act_on_the_terminal(tmp_path, arguments, foreign):
    if arguments[0] in ("train", "report"):
        pytest.importorskip("torch")
    prepare(tmp_path, arguments)
    check_clean(on_a_terminal(tmp_path, *arguments), foreign)


def test_every_verb_is_tried():
    assert {line[0] for line, _ in LINES} == set(VERBS)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["eval", "eval --env-workers 1", "play"])
def test_errors_of_environments(tmp_path, verb):
    name, *flags = verb.split()
    said = on_a_terminal(tmp_path, name, "test/hostile", *GOLD, *flags, HOSTILE_FAILS="step")
    check_clean(said, True)


@pytest.mark.slow
def test_json_stays_json(tmp_path):
    done = subprocess.run(
        [*COMMAND, "list", "suites", "--json"],
        cwd=tmp_path,
        env=with_plugin(tmp_path),
        capture_output=True,
        check=True,
    )
    line = done.stdout.decode()
    assert not FORBIDDEN.search(line.rstrip("\n"))
    (suite,) = (row for row in json.loads(line) if row["name"] == "test/hostile")
    assert "\x1b]0;TITLE\x07" in suite["about"]
    assert suite["about"].endswith("\ud800")


# --- the pieces ----------------------------------------------------------------------------------

SHOWN_SIGNS = (
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"  # format characters that are drawn
)


def test_nothing_that_unicode_calls_control_or_format_is_left():
    every = map(chr, range(0x110000))
    unsafe = "".join(c for c in every if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    left = set(visible(unsafe)) & set(unsafe)
    assert {c for c in left if not re.match(f"[{SHOWN_SIGNS}]", c)} == {"\n", "\t"}
    assert visible("größer, 日本語, é, ⚠️, العربية\n\tx\r\n") == "größer, 日本語, é, ⚠️, العربية\n\tx\n"


@pytest.mark.parametrize(
    ("writes", "seen"),
    [
        (["\r10 %", "\r20 %", "\n", "next\n"], "\r10 %\r20 %\nnext\n"),
        (["an error\rall is well\n"], "an error␍all is well\n"),
        (["an error", "\rall is well\n"], "an error␍all is well\n"),
        (["\r10 %", "an error", "\rall is well\n"], "\r10 %an error␍all is well\n"),
        (["a\n", "\rb\rc\n"], "a\n\rb␍c\n"),
        (["\x1b", "[2J"], "␛[2J"),
        (["one\r\n", "two\n"], "one\ntwo\n"),
    ],
)
def test_a_carriage_return_overwrites_bars_only(writes, seen):
    stream = Guarded(io.StringIO())
    for text in writes:
        assert stream.write(text) == len(text)
    assert stream.raw.getvalue() == seen


def test_lines_are_printed_above_a_bar():
    screen = io.StringIO()
    stream = Guarded(screen)
    with RichProgress(console=SafeConsole(file=screen), redirect_stdout=False) as bar:
        stream.above = lambda lines: bar.console.print(lines)
        for text in ("half ", "a line\nand \x1b[2J", "\n", "the rest"):
            stream.write(text)
        stream.settle()
    assert "half a line\n" in screen.getvalue()
    assert "and ␛[2J\n" in screen.getvalue()
    assert "the rest" in screen.getvalue()


def test_a_console_obeys_no_markup_and_no_escape():
    screen = io.StringIO()
    console = SafeConsole(file=screen, force_terminal=True, color_system="standard", width=80)
    console.print("[red]a[/red] :smiley: \x1b[31m", style="bold")
    assert screen.getvalue() == "\x1b[1m[red]a[/red] :smiley: ␛[31m\x1b[0m\n"


def test_json_lines_are_the_same_value():
    value = {"a\x9b": ["\x1b", "\x7f", "\u202e", "\U000e0041", "\ud800", "größer"]}
    assert json.loads(json_line(value)) == value
    assert json_line("größer\x9b") == '"größer\\u009b"'
