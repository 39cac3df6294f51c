"""Keys reach nothing that is written: every file of evaluations and runs is searched for them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import forked
import pytest
import zstandard
from chat_server import refused, said, serve

from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.policies.served.policy import OpenAIPolicy
from turnwise.errors import InfraError, TurnwiseError
from turnwise.secrets import HIDDEN, public_environment, redact, redact_options, resolve, resolve_options
from turnwise.terminal import Guarded, hand_over
from turnwise.trainers.recipe.load import load_recipe

HERE = Path(__file__).parent
CANARY = "canary7f3a9c"  # no known form, so that only names and places give it away
SHAPED = f"sk-proj-{CANARY}0123456789abcdef"
FROM_ENVIRONMENT = "plainword-of-the-environment"
RECIPE = (HERE.parent / "letters.py").read_text().partition('RECIPE = """\\\n')[2].partition('"""')[0]
OPTIONS = f"""
rollout:
  groups: 3
  group_size: 4
  concurrency: 16
  env_options:
    api_key: {CANARY}
    server: http://me:{CANARY}@127.0.0.1:9/v1?token={CANARY}
    headers:
      Authorization: Bearer {CANARY}
      X-Other: {SHAPED}
"""


def each_once(these: list[Any], those: list[Any]) -> list[Any]:
    """All pairs, of which `make test` has each of these and each of those once."""
    together = list(zip(these, those, strict=True))
    return [
        pytest.param(this, that, marks=() if (this, that) in together else pytest.mark.full)
        for this in these
        for that in those
    ]


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    metadata = folder / "site" / "keyed-1.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: keyed\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[turnwise.plugins]\nkeyed = keyed:register_keyed\n")
    path = [str(metadata.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    given = {
        "PYTHONPATH": os.pathsep.join(path),
        "TMPDIR": str(folder / "tmp"),
        "OPENAI_API_KEY": FROM_ENVIRONMENT,
    }
    (folder / "tmp").mkdir(exist_ok=True)
    return forked.turnwise(*arguments, cwd=folder, env={**os.environ, **given, **environment}, timeout=200)


def search(folder: Path, *texts: str) -> list[str]:
    """Where a key stands, in files (those that are compressed, too) and in what was said."""
    found: list[str] = []
    for key in (CANARY, FROM_ENVIRONMENT):
        found += [f"{key} in what was said: {text[-600:]}" for text in texts if key in text]
        for path in folder.rglob("*"):
            if path.is_file() and path.name not in ("recipe-given.yaml",):
                data = path.read_bytes()
                if path.suffix == ".zst":
                    data = (
                        zstandard.ZstdDecompressor()
                        .stream_reader(io.BytesIO(data), read_across_frames=True)
                        .read()
                    )
                if key.encode() in data:
                    found.append(f"{key} in {path}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("status", "flags"), each_once([200, 401, 500], [[], ["--json"], ["--debug"]]))
def test_a_policy_servers_password_and_key(tmp_path, status, flags):
    def careless(asked):
        if status == 200:
            return said("search[red]")
        return refused(status, f"You sent {FROM_ENVIRONMENT} and {SHAPED}", **{"Retry-After": "0"})

    with serve(careless) as server:
        spec = f"openai:m@http://me:{CANARY}@{server.url.removeprefix('http://')}"
        done = run(
            tmp_path, "eval", "shop/easy", "--policy", spec, "--episodes", "2", "--out", "found", *flags
        )
        assert (server.headers[0]["Authorization"]).startswith(("Bearer", "Basic"))
    assert (tmp_path / "found").exists(), done.stderr
    assert search(tmp_path, done.stdout, done.stderr) == []
    assert HIDDEN in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["infra", "bug"])
def test_options_of_environments_in_errors_and_logs(tmp_path, fails):
    code = (
        "from turnwise import evaluate; from turnwise.agents.policies.scripted import scripted\n"
        f"options = dict(api_key='{CANARY}', server='http://me:{CANARY}@h/x', headers={{'Authorization': 'Bearer {CANARY}'}})\n"
        "from turnwise.terminal import guard; guard()\n"
        "found = evaluate('test/keyed', scripted('gold'), episodes=3, env_options=options, log='log/episodes.jsonl.zst')\n"
        "print(found.to_json())\n"
    )
    env = {"KEYED_FAILS": fails} if fails else {}
    run(tmp_path, "list")  # installs the plugin
    path = [str(tmp_path / "site"), str(HERE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), **env},
    )  # fmt: skip
    (record, *_) = LogReader(tmp_path / "log" / "episodes.jsonl.zst")
    assert record.env.options["api_key"] == HIDDEN, done.stderr
    assert record.episode.error
    assert search(tmp_path, done.stdout, done.stderr) == []  # though errors quote the key by itself


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fails", "flags"), each_once(["", "infra", "bug"], [[], ["--json"], ["--env-workers", "1"]])
)
def test_keys_on_the_command_line(tmp_path, fails, flags):
    options = [f"api_key={CANARY}", f"server=http://me:{CANARY}@127.0.0.1:9/x"]
    asked = ["eval", "test/keyed", "--policy", "scripted:gold", "--episodes", "2", "--out", "found", *flags]
    for option in options:
        asked += ["--env-option", option]
    done = run(tmp_path, *asked, KEYED_FAILS=fails, KEYED_EXPECTS=CANARY)
    assert (tmp_path / "found" / "asked.json").exists(), done.stderr
    assert search(tmp_path, done.stdout, done.stderr) == []
    assert ("Cannot connect" in done.stdout + done.stderr) == bool(fails)


@pytest.mark.slow
def test_a_training_run(tmp_path):
    pytest.importorskip("torch")
    head = RECIPE.replace("test/letters", "test/keyed").replace("updates: 5", "updates: 2")
    head = "\n".join(line for line in head.splitlines() if not line.startswith("rollout"))
    (tmp_path / "recipe-given.yaml").write_text(f"{head}{OPTIONS}")
    done = run(tmp_path, "train", "recipe-given.yaml", "--out", "run", KEYED_EXPECTS=CANARY)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").exists()
    again = run(tmp_path, "train", "recipe-given.yaml", "--out", "run", "--resume", KEYED_EXPECTS=CANARY)
    told = run(tmp_path, "report", "run")
    explained = run(tmp_path, "explain", "recipe-given.yaml")
    assert again.returncode == told.returncode == explained.returncode == 0
    texts = [text for one in (done, again, told, explained) for text in (one.stdout, one.stderr)]
    assert search(tmp_path, *texts) == []
    assert HIDDEN in (tmp_path / "run" / "recipe.yaml").read_text()


@pytest.mark.slow
def test_references_stay_references_and_reach_the_environment(tmp_path):
    pytest.importorskip("torch")
    head = RECIPE.replace("test/letters", "test/keyed").replace("updates: 5", "updates: 2")
    head = "\n".join(line for line in head.splitlines() if not line.startswith("rollout"))
    (tmp_path / "recipe-given.yaml").write_text(f"{head}{OPTIONS.replace(CANARY, '${KEYED_WORD}')}")
    given = {"KEYED_WORD": CANARY, "KEYED_EXPECTS": CANARY}
    done = run(tmp_path, "train", "recipe-given.yaml", "--out", "run", **given)
    assert done.returncode == 0, done.stderr
    assert "api_key: ${KEYED_WORD}" in (tmp_path / "run" / "recipe.yaml").read_text()
    assert search(tmp_path, done.stdout, done.stderr) == []
    replayed = run(tmp_path, "replay", "run", "--trust-log", **given)
    assert replayed.returncode == 0, replayed.stderr
    without = run(tmp_path, "train", "recipe-given.yaml", "--out", "other")
    assert without.returncode == 1
    assert "KEYED_WORD is not set" in without.stderr


@pytest.mark.slow
def test_an_unexpected_error_and_its_traceback(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import turnwise.registry as r\n"
        f"def bad(): raise ZeroDivisionError('http://me:{CANARY}@host {SHAPED}')\nr.KINDS = property(bad)\n"
    )
    done = run(tmp_path, "play", f"http://me:{CANARY}@host", "--debug")
    (tmp_path / "sitecustomize.py").unlink()
    assert done.returncode == 1
    assert search(tmp_path, done.stdout, done.stderr) == []


# --- the pieces ----------------------------------------------------------------------------------

KEYS = [
    "https://me:pass-word@host/x",
    "http://:pass-word@host",
    "https://0123456789abcdef0123@host/x",
    "http://h/?api_key=pass-word&x=1",
    "http://h/x?a=b&token=pass-word",
    "Authorization: Bearer pass-word",
    '{"Authorization": "Basic cGFzcy13b3Jk"}',
    "sk-proj-0123456789abcdefghij",
    "hf_0123456789abcdefghij",
    "ghp_0123456789abcdefghij",
    "github_pat_0123456789abcdefghij",
    "xoxb-0123456789-abcdef",
    "AKIA0123456789ABCDEF",
    "AIza0123456789abcdefghijklmnopqrstuv",
    "glpat-0123456789abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop",
]
HARMLESS = [
    "git@github.com:a/b.git",
    "ssh://git@github.com/a/b",
    "http://host:8000/v1/chat?topk=3",
    "the bearer of this letter",
    "http://:${TOKEN}@host and http://me:${PASS}@host",
    "risk-averse, ask-me, disk-0",
    "a@b.c wrote to d@e.f",
    "max_tokens=256, token_mean, state_key 0123456789abcdef",
    "Basic arithmetic",
]


@pytest.mark.parametrize("text", KEYS)
def test_keys_are_hidden(text):
    assert HIDDEN in redact(f"Said {text}, and more.")
    for part in ("pass-word", "0123456789", "cGFzcy13b3Jk", "abcdefghijklmnop"):
        assert part not in redact(f"Said {text}, and more.")
    assert redact(redact(text)) == redact(text)
    assert text not in str(TurnwiseError(text, text))


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text):
    assert redact(text) == text
    assert redact_options({"said": text}) == {"said": text}


def test_options_are_hidden_by_their_names():
    names = [
        "api_key",
        "apikey",
        "OPENAI_API_KEY",
        "token",
        "auth_token",
        "password",
        "client-secret",
        "Cookie",
    ]
    assert redact_options(dict.fromkeys(names, "x")) == dict.fromkeys(names, HIDDEN)
    plain = {
        "max_tokens": 5,
        "state_key": "x",
        "stop_token": "x",
        "token_ids": [1],
        "monkey": "x",
    }
    assert redact_options(plain) == plain
    nested = {"servers": [{"env": {"GITHUB_TOKEN": "x", "LANG": "C"}}], "password": "${PASS}"}
    assert redact_options(nested) == {
        "servers": [{"env": {"GITHUB_TOKEN": HIDDEN, "LANG": "C"}}],
        "password": "${PASS}",
    }


def test_what_secret_environment_variables_hold_is_hidden(monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "an odd word of mine")
    assert redact("He said: an odd word of mine.") == f"He said: {HIDDEN}."
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "short")
    assert redact("a short word") == "a short word"


def test_what_an_option_has_shown_is_hidden_and_no_page_can_hide_words():
    resolve_options({"service": {"api_key": "word-of-an-option"}, "server": "http://me:word-of-a-place@h"})
    assert redact("word-of-an-option, word-of-a-place") == f"{HIDDEN}, {HIDDEN}"
    redact("http://me:environment@h says: api_key=environment")
    assert redact("the environment") == "the environment"


def test_references_are_looked_up(monkeypatch):
    monkeypatch.setenv("MY_WORD", "abc")
    assert resolve("http://me:${MY_WORD}@host/${lower}") == "http://me:abc@host/${lower}"
    assert resolve_options({"a": ["${MY_WORD}", 1], "b": {"c": "${MY_WORD}"}}) == {
        "a": ["abc", 1],
        "b": {"c": "abc"},
    }
    monkeypatch.delenv("MY_WORD")
    with pytest.raises(TurnwiseError, match="MY_WORD is not set"):
        resolve("${MY_WORD}")


def test_places_where_keys_are_hidden(tmp_path, monkeypatch):
    stream = Guarded(io.StringIO())
    stream.write(f"key {SHAPED}\n")
    assert stream.raw.getvalue() == f"key {HIDDEN}\n"  # pyright: ignore
    assert CANARY not in repr(InfraError(SHAPED, SHAPED).args)
    policy = OpenAIPolicy("m", f"http://me:{CANARY}@host/v1")
    policy.close()
    assert policy.name == f"openai:m@http://{HIDDEN}@host/v1"
    with EpisodeLog(
        tmp_path / "e.jsonl", policy=f"openai:m@http://me:{CANARY}@h", env_options={"token": "x"}
    ) as log:
        assert CANARY not in log.policy
    judge = {
        "judge": {"name": "critic", "policy": f"openai:m@http://me:{CANARY}@h"},
        "credit": "grpo",
        "shape": ["tp_grpo"],
    }
    assert CANARY not in load_recipe("shop-quick", judge).to_yaml()
    monkeypatch.setattr("sys.stderr", Guarded(io.StringIO()))
    hand_over("the token: sk-0123456789abcdefghij \x1b")
    assert sys.stderr.raw.getvalue() == "the token: sk-0123456789abcdefghij ␛\n"  # pyright: ignore
    assert json.loads(json.dumps(redact_options({"a": [1, None, True]}))) == {"a": [1, None, True]}


def test_foreign_programs_get_no_keys(monkeypatch):
    from turnwise.secrets import public_environment

    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("SORT_ORDER", "up")
    given = public_environment()
    assert "OPENAI_API_KEY" not in given
    assert given["SORT_ORDER"] == "up"
    assert "PATH" in given


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("sk_live_4eC39HqLyjWDarjtT1zdp7dc", HIDDEN),
        ("npm_abcdefghijklmnopqrstuvwxyz0123456789", HIDDEN),
        ("ASIAIOSFODNN7EXAMPLE", HIDDEN),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- after", f"{HIDDEN} after"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", HIDDEN),
        ('{"api_key": "plain word", "n": 1}', f'{{"api_key": "{HIDDEN}", "n": 1}}'),
        (r"{\"api_key\": \"plain\"}", rf"{{\"api_key\": \"{HIDDEN}\"}}"),
        ("{'password': 'hunter2 x'}", f"{{'password': '{HIDDEN}'}}"),
        ("OPENAI_API_KEY=plainword0 next", f"OPENAI_API_KEY={HIDDEN} next"),
        ("x-api-key: plainword", f"x-api-key: {HIDDEN}"),
        ("token=abc123def456", f"token={HIDDEN}"),
        ("run --token plain-word-1 more", f"run --token {HIDDEN} more"),
        ("--api-key=Abcdefgh1", f"--api-key={HIDDEN}"),
        ("http://h/#access_token=abc&x=1", f"http://h/#access_token={HIDDEN}&x=1"),
        *((text, text) for text in (
            "api_key: ${MY_KEY}", "a token: the first of 3", "eos_token: <|im_end|>", "3 tokens: 5 were", "Leave --token none out",
            "give it --token-file run.token", "engine.options.token_file", "it's a key: value pair", "Authorization: Bearer ${KEY}",
        )),
    ],
)  # fmt: skip
def test_keys_of_every_form_are_hidden_in_text_and_words_are_not(said, shown):
    assert redact(said) == shown
    assert redact(shown) == shown


def test_options_whose_names_say_that_they_are_secret_are_hidden():
    secret = dict.fromkeys(
        ("auth", "pwd", "pass", "key", "tokens", "dsn", "GH_PAT", "MYSQL_PWD", "PGPASSWORD", "apikey"),
        "x y z",
    )
    public = {
        "state_key": "a",
        "max_tokens": "5",
        "keys": "b",
        "path": "c",
        "eos_token": "d",
        "author": "e",
        "passed": "f",
    }
    assert redact_options(secret | public) == dict.fromkeys(secret, HIDDEN) | public


def test_programs_of_others_get_no_variable_that_holds_or_uses_a_secret(monkeypatch):
    secret = (
        "PGPASSWORD",
        "MYSQL_PWD",
        "GH_PAT",
        "AUTH",
        "SSH_AUTH_SOCK",
        "HF_TOKEN",
        "SENTRY_DSN",
        "XAUTHORITY_KEY",
    )
    for name in secret:
        monkeypatch.setenv(name, "plain-word")
    monkeypatch.setenv("DB_URL", "postgres://u:pw@h/d")
    public = {
        "MAX_TOKENS": "4096",
        "GOOD_URL": "http://h/x",
        "PWD": str(HERE),
        "KEYBOARD": "de",
        "COMPASS": "north",
    }
    for name, value in public.items():
        monkeypatch.setenv(name, value)
    given = public_environment()
    assert not {*secret, "DB_URL"} & given.keys()
    assert public.items() <= given.items()
    assert (
        redact(f"in {HERE}: plain-word") == f"in {HERE}: {HIDDEN}"
    )  # of the shell's own PWD nothing is hidden


@pytest.mark.parametrize(
    "unit",
    [
        "-----BEGIN PRIVATE KEY-----",
        "--",
        "--a-",
        "api_key=",
        "a_",
        "token: ",
        'password="',
        "token=a1",
        "http://a:",
    ],
)
def test_hiding_keys_takes_time_that_grows_as_the_text_does(unit):
    spent = []
    for size in (20_000, 40_000, 80_000):
        began = time.process_time()
        redact(unit * (size // len(unit)))
        spent.append(time.process_time() - began)
    assert spent[2] < 8 * spent[0] + 0.1  # quadratic were 16
