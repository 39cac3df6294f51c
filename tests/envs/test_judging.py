"""Judging recorded episodes: what is asked can be answered, and only by who reads; any log will do."""

from itertools import combinations, islice
from random import Random

import pytest

import turnwise
from turnwise.envs import baselines
from turnwise.envs.baselines import interval
from turnwise.envs.judging.env import JudgingEnv
from turnwise.envs.judging.knobs import JudgingKnobs
from turnwise.envs.judging.recorded import EpisodeBook, book_of, read_log, recorded_episode
from turnwise.envs.judging.rivals import RIVALS
from turnwise.envs.judging.tasks import DRAWS, ENV
from turnwise.envs.judging.verdicts import cut
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.errors import EnvError, TurnwiseError
from turnwise.tasks.core import Split
from turnwise.trainers.lab.labelled import labelled

ASKS = sorted(DRAWS)
BINARY = ("verdict", "pair", "step", "score", "strength")


def answered(task, said, **options):
    env = make(ENV, **options)
    env.reset(seed=0, options={"task": task})
    return env.step(said)


def share(ask, script, n=240):
    """How many of n training tasks a script solves."""
    env = JudgingEnv()
    solved = 0
    for task in suite_tasks(get_suite(f"judging:{ask}:"), Split.TRAIN, n):
        told, _ = env.reset(seed=0, options={"task": task})
        step = env.step(script()(baselines.moment(env, told, "rival")))
        solved += step.info["end"] == "solved"
    return solved


@pytest.mark.parametrize("ask", ASKS)
def test_gold_is_right_in_every_split_and_no_task_is_in_two(ask):
    seen = {}
    for split in Split:
        for task in suite_tasks(get_suite(f"judging:{ask}:"), split, 8):
            step = answered(task, f"answer: {task.gold}")
            assert (step.reward, step.info["end"]) == (1.0, "solved")
            assert seen.setdefault(task.id, split) is split


def test_a_split_has_the_episodes_of_its_own_tasks():
    of = [{one.task for one in book_of(ENV, "", split).episodes} for split in Split]
    assert not any(a & b for a, b in combinations(of, 2))
    assert set.union(*of) == {one.task for one in read_log("")}


@pytest.mark.parametrize("ask", BINARY)
def test_judges_that_understand_nothing_are_near_chance(ask):
    """Always yes or A, the first, the longest, and who counts words: no better than the coin that balanced the tasks."""
    always = {"pair": "A", "score": "1", "strength": "3"}.get(ask, "yes")
    for script in (lambda: lambda now: f"answer: {always}", RIVALS.keyword, RIVALS.scan):
        low, high = interval(share(ask, script), 240)
        assert low <= 0.52, (ask, script)
        assert high >= 0.48 or ask == "strength", (ask, script)  # ± 3 has two wrong sides of every strength


def test_the_lengths_of_an_attempt_tell_nothing_of_it():
    tasks = list(suite_tasks(get_suite("judging:verdict:"), Split.TRAIN, 400))
    yes, no = ([task.prompt.count(" > ") for task in tasks if task.gold == said] for said in ("yes", "no"))
    assert abs(sum(yes) / len(yes) - sum(no) / len(no)) < 0.6
    assert 0.42 < len(yes) / len(tasks) < 0.58


@pytest.mark.parametrize("ask", ["verdict", "pair", "rank", "first", "order"])
def test_how_an_attempt_ended_is_not_shown(ask):
    ends = {one.last for one in read_log("") if one.solved}
    assert {"done ."} < ends
    for task in suite_tasks(get_suite(f"judging:{ask}:"), Split.TRAIN, 40):
        assert not ends & set(task.prompt.split("\n"))


def test_what_is_wrong_or_no_answer_is_paid_as_the_papers_pay():
    task = next(t for t in suite_tasks(get_suite("judging/pair"), Split.TRAIN, 20) if t.gold == "A")
    said = ["so the first. answer: A", "answer: B", "I cannot say", "answer: A or B"]
    assert [answered(task, one, worst=-1.0).reward for one in said] == [1.0, -1.0, -1.0, -1.0]  # RM-R1
    assert [answered(task, one).reward for one in said] == [1.0, 0.0, 0.0, 0.0]  # Critique-Coder
    (act,) = islice(suite_tasks(get_suite("judging/inverse"), Split.TRAIN, 1), 1)
    said = [f"answer: {act.gold}", "answer: dance", act.gold]
    assert [answered(act, one, marked=1.0).reward for one in said] == [2.0, 1.0, 1.0]  # UI-Shift
    strong = next(t for t in suite_tasks(get_suite("judging:strength:"), Split.TRAIN, 20) if t.gold == "3")
    assert [answered(strong, f"answer: {n}", marked=1.0).reward for n in (3, 1, -2)] == [
        2.0,
        1.5,
        1.0,
    ]  # Think-RM
    (some,) = islice(suite_tasks(get_suite("judging/rank"), Split.TRAIN, 1), 1)
    assert answered(some, "none of them").reward == -1.0  # no way out of a bad order


def test_a_solution_is_cut_to_its_first_sentence_and_is_none(log):
    """Master-RM: what begins a solution, a thought or the first act, is labelled no; a solution of one act is not asked of."""
    shown = {}
    for one in read_log(""):
        if one.solved and len(one.turns) > 1:
            shown[f"{one.turns[0].seen}\n1 > {one.turns[0].begun}"] = one
    tasks = list(suite_tasks(get_suite("judging:cut:"), Split.TRAIN, 40))
    assert {task.gold for task in tasks} == {"no"}
    assert all(
        task.prompt.removesuffix("\n\nDoes the last act solve the task ? yes or no") in shown
        for task in tasks
    )
    turn = {"observation": [{"role": "user", "content": "2 + 2 ?"}], "rewards": {"outcome": 1.0}}
    for said, begun in (("So, what is it? Add.\n4", "So, what is it"), ("4.", "4")):
        act = {"role": "assistant", "content": said}
        line = {"task": {"env": "e"}, "task_id": "t", "outcome": "ok", "end": "solved"}
        one = recorded_episode({**line, "agents": {"a": {"turns": [{**turn, "action": act}], "final": []}}})
        assert one.turns[0].begun == begun
        found = cut(Random(0), EpisodeBook((one,), {"t": [one]}), JudgingKnobs(ask="cut"))
        assert (found is None) == (said == "4.")
        assert found is None or (
            found.text.startswith("2 + 2 ?\n1 > So, what is it\n") and found.truth is False
        )


def test_a_chain_is_right_where_every_verdict_is_and_its_length_is_within_bounds():
    """ThinkPRM keeps the chains all of whose verdicts are those of the labels, in the form that was asked for."""
    tasks = list(suite_tasks(get_suite("judging:chain:"), Split.TRAIN, 60))
    assert 15 < sum(task.gold.endswith("yes") for task in tasks) < 45
    for task in tasks:
        *each, whole = task.gold.split()
        assert len(each) == task.prompt.count(" > ")
        assert whole == ("no" if "no" in each else "yes")
    task = next(one for one in tasks if one.gold.startswith("yes") and len(one.gold.split()) == 4)
    chain = f"First this, and no more.\nanswer: {task.gold}"
    assert answered(task, chain).reward == 1.0
    assert answered(task, f"answer: {', '.join(task.gold.split())}.").reward == 1.0
    for k, word in enumerate(said := task.gold.split()):
        other = [*said[:k], {"yes": "no", "no": "yes"}[word], *said[k + 1 :]]
        step = answered(task, f"answer: {' '.join(other)}")
        assert (step.reward, step.info["details"]["malformed"]) == (0.0, False)
    for unread in (" ".join(said[1:]), f"{task.gold} no", " and ".join(said)):
        assert answered(task, f"answer: {unread}").info["details"]["malformed"]
    length = len(chain.split())
    for bounds, reward in (
        ({"least": length, "most": length}, 1.0),
        ({"least": length + 1}, 0.0),
        ({"most": length - 1}, 0.0),
    ):
        step = answered(task, chain, **bounds)
        assert (step.reward, step.info["details"]["malformed"]) == (reward, reward == 0.0)


def test_demonstrations_are_the_chains_whose_verdicts_are_all_right(log, tmp_path):
    told, chains = tmp_path / "told.jsonl.zst", tmp_path / "chains"
    labelled(log, told)
    suite = f"judging:chain:{told}"
    played = turnwise.rollout(
        suite, "scripted:demonstrator", episodes=24, k=4, log=chains / "episodes.jsonl.zst"
    )
    right = [one.trajectory.turns[0].action.content == f"answer: {one.task.gold}" for one in played]
    assert [one.success for one in played] == right
    assert 0 < sum(right) < len(right)


def test_an_answer_is_read_in_the_end_of_a_text_of_any_length():
    (task,) = suite_tasks(get_suite("judging/verdict"), Split.TRAIN, 1)
    wrong = {"yes": "no", "no": "yes"}[task.gold]
    assert answered(task, f"answer: {wrong}\n{'well, ' * 300_000}\nanswer: {task.gold}").reward == 1.0


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    turnwise.rollout(
        "household/easy", "mix:gold=0.7,demonstrator=0.3", episodes=48, k=4, log=folder / "episodes.jsonl.zst"
    )
    return folder


def test_questions_are_made_of_any_log_and_of_labels_that_a_judge_wrote(log, tmp_path):
    for ask in ("verdict", "inverse", "next"):
        (task,) = suite_tasks(get_suite(f"judging:{ask}:{log}"), Split.TRAIN, 1)
        assert answered(task, task.gold).reward == 1.0
    with pytest.raises(EnvError, match="labelled LOG OUT"):
        list(suite_tasks(get_suite(f"judging:first:{log}"), Split.TRAIN, 1))
    out = tmp_path / "told.jsonl.zst"
    assert labelled(log, out) == 48
    told = turnwise.load_episodes(out)
    for one, episode in zip(read_log(str(out)), told, strict=True):
        assert [turn.wrong for turn in one.turns] == [
            t.signals["wrong"] == 1 for t in episode.trajectory.turns
        ]
    (task,) = suite_tasks(get_suite(f"judging:step:{out}"), Split.TRAIN, 1)
    assert answered(task, task.gold).reward == 1.0
    with pytest.raises(TurnwiseError, match="exists"):
        labelled(log, out)


@pytest.mark.parametrize(
    ("text", "said"), [("{}\n", "no episode"), ('{"agents": 3}\n', "no episode"), (None, "no episode log")]
)
def test_what_is_no_log_is_refused_with_the_line(tmp_path, text, said):
    path = tmp_path / "some.jsonl"
    if text:
        path.write_text(text)
    with pytest.raises(EnvError, match=said):
        list(suite_tasks(get_suite(f"judging:pair:{path}"), Split.TRAIN, 1))


def test_a_log_without_what_is_asked_for_says_what_it_lacks(tmp_path):
    turnwise.rollout("search/quick", "scripted:gold", episodes=20, log=tmp_path / "episodes.jsonl.zst")
    with pytest.raises(EnvError, match="paid differently"):
        list(suite_tasks(get_suite(f"judging:pair:{tmp_path}"), Split.TRAIN, 1))
