"""Episodes that a program plays: turns, rewards, replays, training rows, and whatever programs do wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from gateway_kit import AnsweringEngine

import turnwise
from turnwise.agents.core import PREVIOUS, Outcome, Sampling, after
from turnwise.agents.core import ROOT as NEW
from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.evaluation.programs import ProgramFigures
from turnwise.agents.evaluation.summary import evaluation_table
from turnwise.agents.gateway.agent_program import AgentProgram
from turnwise.agents.policies import command
from turnwise.agents.policies.command import ProgramPolicy, read_program
from turnwise.agents.policies.model import ModelPolicy
from turnwise.envs.core import EndReason
from turnwise.errors import RunError, TurnwiseError
from turnwise.tools import owner
from turnwise.trainers.learn.collate import collate

ROOT = Path(__file__).parents[2]
EXAMPLE = read_program(str(ROOT / "examples" / "agent_program.yaml"))
SUITE = "shop/easy"

PRELUDE = """
import json, os, sys, time
from urllib.request import Request, urlopen
def post(url, body):
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    with urlopen(Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)
def chat(*messages, **more):
    return post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"messages": messages, **more})["choices"][0]["message"]
def act(text):
    return post(os.environ["SESSION_URL"] + "/act", {"text": text})
"""


def program(text: str = "", **options) -> AgentProgram:
    command = options.pop("command", (sys.executable, "-S", "-c", PRELUDE + text))
    return AgentProgram(command, workdir=str(ROOT), **options)


def played(model, given: AgentProgram, episodes: int = 1, **options):
    return turnwise.rollout(SUITE, ProgramPolicy(model, given), episodes=episodes, retries=0, **options)


@pytest.fixture
def model(renderer) -> ModelPolicy:
    engine = AnsweringEngine(renderer, lambda text: "search[red]" if "Results" not in text else "click[b1]")
    return ModelPolicy(engine, renderer, Sampling(1.0, 1.0, 40), name="small")


def test_the_example_plays_gold_and_replays_byte_for_byte(tmp_path):
    given = AgentProgram(
        (sys.executable, *EXAMPLE.command[1:]), workdir=str(ROOT), prompt="messages", plain_words=True
    )
    gold = turnwise.make_policy("scripted:gold")
    done = turnwise.evaluate(SUITE, ProgramPolicy(gold, given), episodes=4, log=tmp_path / "log.jsonl.zst")
    assert (done.success, done.turns > 1) == (1.0, True)
    report = turnwise.replay(tmp_path / "log.jsonl.zst")
    assert (report.ok, report.episodes) == (True, 4), report


def test_turns_have_the_tokens_of_replies_and_the_rewards_of_what_the_program_did(model):
    first = program("""
prompt = sys.stdin.read()
talk = [{"role": "user", "content": prompt}]
reply = chat(*talk)
seen = act(reply["content"])
helper = chat({"role": "user", "content": "you are a sub-agent: " + seen["text"]})
talk += [reply, {"role": "user", "content": seen["text"]}]
act(chat(*talk)["content"])
""")
    (episode,) = played(model, first)
    assert (episode.outcome, episode.end) == (Outcome.OK, EndReason.GAVE_UP)
    turns = episode.trajectory.turns
    assert [len(turn.acts) for turn in turns] == [1, 0, 1]
    assert [turn.reply.parent for turn in turns] == [PREVIOUS, NEW, after(0)]
    assert [turn.reply.action_ids for turn in turns] == [done.token_ids for done in model.engine.sampled]
    rows = collate([[episode]]).rows
    assert rows.token_RT[rows.mask_RT].numel() == sum(len(done.token_ids) for done in model.engine.sampled)
    episodes = played(model, first)
    assert turnwise.replay(episodes.records).ok


def test_an_action_before_any_reply_counts_and_is_not_learned(model):
    (episode,) = played(
        model,
        program('act("search[red]"); chat({"role": "user", "content": "x"}); act("click[back to search]")'),
    )
    assert [len(turn.acts) for turn in episode.trajectory.turns] == [1, 1]
    assert [bool(turn.reply.action_ids) for turn in episode.trajectory.turns] == [False, True]
    assert collate([[episode]]).rows.mask_RT.sum() == len(episode.trajectory.turns[1].reply.action_ids)
    assert turnwise.replay(played(model, program('act("search[red]"); act("search[blue]")')).records).ok


ASK = "chat({'role': 'user', 'content': 'x'})"


@pytest.mark.parametrize(
    ("text", "options", "outcome", "end"),
    [
        ("", {}, Outcome.OK, EndReason.GAVE_UP),
        (f"{ASK}; sys.exit(3)", {}, Outcome.OK, EndReason.GAVE_UP),
        (f"{ASK}; sys.exit(126)", {}, Outcome.OK, EndReason.GAVE_UP),
        ("act('search[red]'); sys.exit(127)", {}, Outcome.OK, EndReason.GAVE_UP),
        (f"{ASK}; os.execvp('no-such-program', ['x'])", {}, Outcome.OK, EndReason.GAVE_UP),
        ("time.sleep(60)", {"timeout": 0.5}, Outcome.LIMIT, EndReason.TIME_LIMIT),
        ("while True: sys.stdout.write('x' * 65536)", {}, Outcome.OK, EndReason.FAILED),
        (f"{ASK}; os.kill(os.getpid(), 9)", {}, Outcome.OK, EndReason.GAVE_UP),
        ("", {"command": ("sh", "-c", "exec ./no-such-program")}, Outcome.INFRA_ERROR, None),
        ("import no_such_module", {}, Outcome.INFRA_ERROR, None),
        (
            "for n in range(9): chat({'role': 'user', 'content': str(n)})",
            {"calls": 2},
            Outcome.LIMIT,
            EndReason.TURN_LIMIT,
        ),
    ],
    ids=[
        "does nothing",
        "asks and fails",
        "asks, 126",
        "acts, 127",
        "asks, becomes nothing",
        "hangs",
        "floods",
        "asks and dies",
        "is not found",
        "cannot begin",
        "talks too much",
    ],
)
def test_whatever_a_program_does_has_a_name(model, text, options, outcome, end):
    (episode,) = played(model, program(text, **options))
    assert (episode.outcome, episode.end, episode.score) == (outcome, end, 0.0)


def test_a_program_that_was_given_nothing_is_told_with_its_last_words_and_what_was_refused(model):
    (episode,) = played(model, program("chat({'role': 'user', 'content': 'x'}, temperature=0)"))
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "exit code 1, and 1 requests were refused, last: temperature=0 is refused" in episode.error
    assert episode.error.endswith("urllib.error.HTTPError: HTTP Error 400: Bad Request")
    assert (episode.metrics["exit_code"], episode.metrics["requests_refused"]) == (1, 1)
    with pytest.raises(TurnwiseError, match=r"None of the 3 (.|\n)*no_such_module"):
        turnwise.evaluate(SUITE, ProgramPolicy(model, program("import no_such_module")), episodes=3)


def test_exit_codes_and_refused_requests_are_counted_and_programs_that_do_nothing_are_no_zero(model):
    text = """
from urllib.error import HTTPError
chat({'role': 'user', 'content': 'x'})
try: chat({'role': 'user', 'content': 'x'}, stop=['x'])
except HTTPError: sys.exit(127)
"""
    done = turnwise.evaluate(SUITE, ProgramPolicy(model, program(text)), episodes=2)
    assert (done.success, done.programs) == (0.0, ProgramFigures(2, failed=2, refused=2, refusing=2))
    assert Evaluation.from_json(json.loads(json.dumps(done.to_json()))).programs == done.programs
    assert "exit code than 0: 2 of 2\nrequests that were refused: 2" in str(evaluation_table(done).caption)
    with pytest.raises(TurnwiseError, match="None of the 2 programs was given a reply or acted"):
        turnwise.evaluate(SUITE, ProgramPolicy(model, program("")), episodes=2)


def test_a_program_whose_context_is_full_ends_at_that_limit_by_that_name(model):
    model.engine.context_length = 100
    text = "talk = [{'role': 'user', 'content': 'hi'}]\nwhile True: talk += [chat(*talk), {'role': 'user', 'content': 'x' * 40}]"
    (episode,) = played(model, program(text))
    assert (episode.outcome, episode.end, episode.cause) == (
        Outcome.LIMIT,
        EndReason.TOKEN_LIMIT,
        "context_full",
    )


@pytest.mark.parametrize("text", ["", "import no_such_module"], ids=["without a word", "in failure"])
def test_programs_that_all_do_nothing_stop_an_evaluation_early(model, monkeypatch, text):
    monkeypatch.setattr(command, "IN_VAIN", 2)
    with pytest.raises(RunError, match=r"None of the first 2 programs was given a reply or acted"):
        played(model, program(text), 6, concurrency=1)
    one = f"if 'a' in sys.stdin.read(): {ASK}\n"
    assert len(played(model, program(one + text), 4, concurrency=1)) == 4


def test_a_program_is_ended_with_its_episode_and_sees_no_secret(model, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_API_KEY", "very-secret-value")
    seen = tmp_path / "seen"
    text = f"""
open({str(seen)!r}, "w").write(json.dumps(dict(os.environ)))
for n in range(100): act("search[red]")
open({str(seen)!r}, "w").write("still here")
"""
    (episode,) = played(model, program(text))
    assert episode.end is EndReason.TURN_LIMIT
    assert "very-secret-value" not in seen.read_text()
    assert set(json.loads(seen.read_text())) >= {"OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "MCP_SERVER_URL"}


ESCAPE = """
def go():
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        open(path + ".new", "w").write(str(os.getpid()))
        os.rename(path + ".new", path)
        while True: time.sleep(60)
go()
while not os.path.exists(path): time.sleep(0.01)
"""


@pytest.mark.slow
@pytest.mark.parametrize("left", ["", "time.sleep(60)"], ids=["program ends", "program hangs"])
def test_what_a_program_leaves_running_in_a_session_of_its_own_is_ended_with_it(model, tmp_path, left):
    (episode,) = played(model, program(f"path = {str(tmp_path / 'pid')!r}" + ESCAPE + left, timeout=2))
    assert episode.end is (EndReason.TIME_LIMIT if left else EndReason.GAVE_UP)
    assert not owner.born(int((tmp_path / "pid").read_text()))


def test_a_preloaded_program_is_a_fork_with_its_own_arguments_variables_and_exit(model, tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(
        PRELUDE
        + """
import threading
assert "decimal" in sys.modules and sys.argv[1:] == ["--fast"] and __name__ == "__main__"
sys.stdin.read() and print("search[red]")
threading.Thread(target=lambda: time.sleep(0.1) or print("and waited")).start()
"""
    )
    given = program(command=(sys.executable, str(script), "--fast"), preload=("decimal",), answer="stdout")
    episodes = played(model, given, 3)
    for episode in episodes:
        assert episode.trajectory.turns[0].acts[0].message.content == "search[red]\nand waited"
    script.write_text("raise SystemExit('no')")
    assert played(model, given)[0].error.endswith("was given no reply and did nothing (exit code 1): no")


def test_a_preloaded_program_that_fails_with_a_pool_of_threads_at_rest_ends_at_once(model, tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor()\npool.submit(print, 'worked').result()\nraise SystemExit('no reply came')\n"
    )
    given = program(command=(sys.executable, str(script)), preload=("json",), timeout=60)
    (episode,) = played(model, given)
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "(exit code 1): no reply came" in episode.error


def test_the_fork_server_s_own_troubles_are_told_and_it_is_started_again(model, tmp_path):
    script = tmp_path / "agent.py"
    script.write_text("pass")
    command = (sys.executable, str(script))
    (episode,) = played(model, program(command=command, preload=("no_such_module",)))
    assert (episode.outcome, "no_such_module" in episode.error) == (Outcome.INFRA_ERROR, True)
    policy = ProgramPolicy(model, program(command=command))
    assert turnwise.rollout(SUITE, policy, episodes=1)[0].outcome is Outcome.OK
    policy._launcher._server.process.kill()
    policy._launcher._server.process.wait()
    assert turnwise.rollout(SUITE, policy, episodes=1)[0].outcome is Outcome.OK


def test_what_it_prints_is_its_answer_where_that_is_asked_for(model):
    (episode,) = played(model, program("print('search[red]')", answer="stdout"))
    assert episode.trajectory.turns[0].acts[0].message.content == "search[red]"


def test_an_engine_that_fails_is_not_the_program_s_fault(model):
    def broken(text):
        raise RuntimeError("no more memory")

    model.engine.answer = broken
    (episode,) = played(model, program('chat({"role": "user", "content": "x"})'))
    assert (episode.outcome, "no more memory" in episode.error) == (Outcome.INFRA_ERROR, True)


def test_mistakes_are_told_before_anything_runs(tmp_path):
    for given, named in (
        ({"command": ["no-such-program-here"]}, "not found"),
        ({"command": []}, "no command"),
        ({"command": ["python3"], "workdir": "/no/such"}, "folder"),
        ({"command": ["python3"], "timeout": 0}, "more than 0"),
        ({"command": ["python3"], "tiemout": 3}, "tiemout"),
        ({"command": ["bash", "agent.sh"], "preload": ["json"]}, "preload is for scripts"),
    ):
        path = tmp_path / "agent.yaml"
        path.write_text(json.dumps(given))
        with pytest.raises(TurnwiseError, match=named):
            turnwise.make_policy(f"command:{path}", model="scripted:gold")
    with pytest.raises(TurnwiseError, match="--model"):
        turnwise.make_policy("command:python3 x.py")


ASKS_TWICE = """
talk = [{"role": "user", "content": sys.stdin.read()}]
talk += [chat(*talk), {"role": "user", "content": "go on"}]
chat(*talk)
"""


def test_a_program_s_tokens_are_bounded(model):
    (free,) = played(model, program(ASKS_TWICE))
    (bounded,) = played(model, program(ASKS_TWICE, tokens=1))
    assert (free.end, len(free.trajectory.turns)) == (EndReason.GAVE_UP, 2)
    assert (bounded.outcome, bounded.end) == (Outcome.LIMIT, EndReason.TOKEN_LIMIT)
    assert len(bounded.trajectory.turns) == 1


def test_a_program_s_requests_at_a_time_are_bounded(model, tmp_path):
    answered = tmp_path / "two were answered"
    text = f"""
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
def ask(n):
    try: chat({{"role": "user", "content": str(n)}})
    except HTTPError as error: return (error.code, error.headers["Retry-After"])
with ThreadPoolExecutor(4) as pool:
    asked = [pool.submit(ask, n) for n in range(4)]
    while sum(one.done() for one in asked) < 2: time.sleep(0.01)
    open({str(answered)!r}, "w").close()
refused = [*filter(None, (one.result() for one in asked))]
print(refused)
act(str(len(refused)))
"""
    engine = model.engine
    (free,) = played(model, program(text))
    answered.unlink()

    async def after_two_are_answered(*given, **more):
        while not answered.exists():
            await asyncio.sleep(0.01)
        return await sample(*given, **more)

    sample, engine.generate = engine.generate, after_two_are_answered
    (bounded,) = played(model, program(text, at_once=2))
    assert [len(one.trajectory.turns) for one in (free, bounded)] == [4, 2]
    said = [
        act.message.content for one in (free, bounded) for turn in one.trajectory.turns for act in turn.acts
    ]
    assert said == ["0", "2"]


def test_a_reply_that_takes_too_long_is_given_up_and_is_nobody_s_score(model):
    async def never(*given, **more):
        await asyncio.Event().wait()

    model.engine.generate = never
    (episode,) = played(model, program(ASKS_TWICE, reply_s=0.2))
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "a reply took more than 0.2 s" in episode.error


@pytest.mark.parametrize("name", ["tokens", "at_once", "reply_s", "calls", "timeout"])
def test_a_bound_of_nothing_is_refused(name):
    with pytest.raises(TurnwiseError, match=f"{name} is 0"):
        program(**{name: 0}).check()
