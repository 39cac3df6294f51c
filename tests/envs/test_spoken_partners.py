"""A language model as the partner of a conversation: the play's own rules and score, and no score for what fails."""
# pyright: reportAttributeAccessIssue=false, reportTypedDictNotRequiredAccess=false
# pyright: reportOptionalMemberAccess=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from itertools import pairwise

import pytest

from turnwise.agents.core import Outcome
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.registry import make
from turnwise.envs.worlds.speaking.server import in_turn, serve
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, derive_rng

ENV = "turnwise/Dialogue-v0"


def task_of(scene, **knobs):
    return make(ENV).generate(
        derive_rng("partner", scene), Split.TRAIN, scene=scene, partner="model", turn_limit=14, **knobs
    )


def lines_of(task):
    """What the scripted gold of the other side says, in turn."""
    (episode,) = run_episodes(
        [Request(task, 0)],
        {"agent": scripted("gold"), "partner": scripted("gold")},
        env_options={"partner": "agent"},
    )
    assert episode.trajectories["agent"].score == 1.0
    return [str(turn.reply.message) for turn in episode.trajectories["partner"].turns]


def play(env, task, say=None):
    first, _ = env.reset(seed=0, options={"task": task})
    seen, step = [str(first)], None
    while env.now.end is None:
        step = env.step(say(env) if say else env.gold(env.state))
        seen.append(str(step.observation))
    return step, seen


@pytest.mark.parametrize("scene", ["bargain", "persuade", "comfort", "social"])
def test_a_model_plays_the_partner_and_its_record_gives_the_same_bytes(scene, tmp_path):
    record, task = str(tmp_path / "answers.jsonl"), task_of(scene)
    with serve(in_turn(lines_of(task))) as server:
        env = make(ENV, partner=f"openai:m@{server.url}", record=record)
        step, seen = play(env, task)
        assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)
        assert env.agents == ("agent",)
        asked = server.requests[0]["messages"]
        assert asked[0]["content"].startswith(env.state.play.system(1))
        assert asked[1]["role"] == "user"
    assert play(make(ENV, partner=f"recorded:{record}"), task)[1] == seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", ["", "As an AI language model I cannot do that.", "\u2588\u2588 %%% ### $$$ @@@ !!! ^^^", 503]
)
def test_what_fails_is_no_score(answer, tmp_path):
    with serve(lambda asked: answer) as server:
        options = {"partner": f"openai:m@{server.url}", "record": str(tmp_path / "r.jsonl")}
        (episode,) = run_episodes([Request(task_of("comfort"), 0)], scripted("gold"), env_options=options)
    assert episode.outcome is Outcome.INFRA_ERROR


def test_a_form_that_is_missed_is_asked_for_again(tmp_path):
    def answers(asked):
        again = asked["messages"][-1]["role"] == "system"
        return "feel +20: I failed my exam." if again else "I failed my exam."

    with serve(answers) as server:
        env = make(ENV, partner=f"openai:m@{server.url}", record=str(tmp_path / "r.jsonl"))
        env.reset(seed=0, options={"task": task_of("comfort")})
        step = env.step("What happened?")
    assert step.observation[-1].content == "I failed my exam"
    assert step.info["details"]["repairs"] == ["malformed"]
    assert env.state.position.emotion == 50


@pytest.mark.parametrize("scene", ["bargain", "persuade", "comfort", "social"])
def test_who_reads_its_card_aloud_says_something_neutral_and_the_episode_goes_on(scene, tmp_path):
    def aloud(asked):
        return str(asked["messages"][0]["content"]).split("\n\n")[1][:900]

    with serve(aloud) as server:
        env = make(ENV, partner=f"openai:m@{server.url}", record=str(tmp_path / "r.jsonl"))
        env.reset(seed=0, options={"task": task_of(scene)})
        step = env.step(env.gold(env.state))
    assert step.info["details"]["repairs"][-1] == "replaced"
    assert "would rather not say" in step.observation[-1].content
    assert step.info["end"] is None


@pytest.mark.parametrize(
    ("changes", "paid", "end"),
    [
        ((20, -5, 34), 0.79, EndReason.TURN_LIMIT),
        ((60, 30), 1.0, EndReason.SOLVED),
        ((-35,), 0.0, EndReason.FAILED),
    ],
)
def test_rlver_pays_the_emotion_that_a_model_told_at_the_end(changes, paid, end, tmp_path):
    """The numbers of the formula book, row 165; shaping pays the changes / 100, which sum to the outcome less .30."""
    task = make(ENV).generate(
        derive_rng("rlver"), Split.TRAIN, scene="comfort", partner="model", paid="emotion", swing=100,
        turn_limit=len(changes) if end is EndReason.TURN_LIMIT else 8,
    )  # fmt: skip
    with serve(in_turn([f"feel {change:+d}: Hm, well." for change in changes])) as server:
        env = make(ENV, partner=f"openai:m@{server.url}", record=str(tmp_path / "r.jsonl"), shaping=1.0)
        env.reset(seed=0, options={"task": task})
        steps = [env.step("What happened?") for _ in changes]
    outcome = [step.info["rewards"].get("outcome", 0.0) for step in steps]
    moved = [30, *(min(100, sum(changes[:n], 30)) for n in range(1, len(changes))), 100 * paid]
    assert steps[-1].info["end"] is end
    assert outcome == pytest.approx([*[0.0] * (len(changes) - 1), paid])
    assert [step.reward for step in steps] == pytest.approx([(b - a) / 100 for a, b in pairwise(moved)])


def test_a_word_that_is_printed_bold_is_read(tmp_path):
    with serve(lambda asked: "**open** I have my doubts.") as server:
        env = make(ENV, partner=f"openai:m@{server.url}", record=str(tmp_path / "r.jsonl"))
        env.reset(seed=0, options={"task": task_of("persuade")})
        step = env.step("What worries you?")
    assert step.observation[-1].content == "I have my doubts"


def test_natural_suites_are_offered_only_with_a_model(monkeypatch):
    monkeypatch.delenv("TURNWISE_SPEAKER", raising=False)
    from turnwise.envs.builtin import _there

    assert not _there("speaker")
    monkeypatch.setenv("TURNWISE_SPEAKER", "vllm:m")
    assert _there("speaker")
    monkeypatch.delenv("TURNWISE_SPEAKER")
    with pytest.raises(EnvError, match="must play the partner"):
        make(ENV).reset(seed=0, options={"task": task_of("comfort")})
