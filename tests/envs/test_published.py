"""Published lists out of the user's files: in their order, judged as published, and whole or not called so."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import turnwise
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.registry import get_suite, make, register, suite_task, suite_tasks
from turnwise.envs.search.answers import squad_judge
from turnwise.envs.small.maths import FORMS
from turnwise.errors import EnvError, TurnwiseError
from turnwise.tasks.core import Split, Suite, Task

GSM8K = {
    "question": "Tom has {n} apples and buys {n} more. How many has he?",
    "answer": "{n} + {n} = <<{n}+{n}=2>>\n#### 1,{n:03}",
}
MATH = {
    "problem": "What is half of {n}?", "level": "Level 1", "type": "Prealgebra",
    "solution": "It is $\\frac{{{n}}}{{2}}$, so $\\boxed{{\\frac{{{n}}}{{2}}}}$.",
}  # fmt: skip
AIME = {"ID": "2024-I-{n}", "Problem": "Find {n}.", "Answer": "{n}"}
HOTPOT = {
    "_id": "{n}", "question": "Who wrote book {n}?", "answer": "Ann {n}", "type": "bridge", "level": "hard",
    "supporting_facts": [["Book {n}", 0]], "context": [["Book {n}", ["Book {n} was written by Ann {n}."]], ["Other", ["No."]]],
}  # fmt: skip
NQ = {"id": "test_{n}", "question": "who wrote book {n}", "golden_answers": ["Ann {n}", "A. {n}"]}
BAMBOOGLE = {"Question": "Who wrote book {n}?", "Answer": "Ann {n}"}
MUSIQUE = {
    "id": "2hop__{n}", "question": "Who wrote book {n}?", "answer": "Ann {n}", "answer_aliases": ["A. {n}"], "answerable": True,
    "paragraphs": [{"idx": 0, "title": "Book {n}", "paragraph_text": "By Ann {n}.", "is_supporting": True}],
}  # fmt: skip


def filled(row: Any, n: int) -> Any:
    if isinstance(row, str):
        return row.format(n=n)
    if isinstance(row, dict):
        return {key: filled(value, n) for key, value in row.items()}
    return [filled(value, n) for value in row] if isinstance(row, list) else row


def written(path: Path, row: dict[str, Any], n: int) -> str:
    path.write_text("".join(json.dumps(filled(row, at)) + "\n" for at in range(n)))
    return str(path)


ROWS = {"gsm8k": GSM8K, "math": MATH, "aime": AIME, "searchqa": MUSIQUE}
CASES = [
    ("gsm8k", GSM8K),
    ("math", MATH),
    ("aime", AIME),
    ("searchqa", HOTPOT),
    ("searchqa", NQ),
    ("searchqa", BAMBOOGLE),
    ("searchqa", MUSIQUE),
]


@pytest.mark.parametrize(("form", "row"), CASES)
def test_the_whole_list_is_played_in_its_order_and_its_own_answers_are_right(
    form: str, row: dict[str, Any], tmp_path: Path
) -> None:
    suite = get_suite(f"{form}:{written(tmp_path / 'rows.jsonl', row, 6)}")
    assert (suite.size, suite.listed, suite.note) == (6, True, "")
    asked = [task.prompt for task in suite_tasks(suite, Split.TEST, 6)]
    key = next(name for name in row if name.lower() in ("question", "problem"))
    assert asked == [filled(row[key], n) for n in range(6)]
    assert [task.prompt for task in suite_tasks(suite, Split.TRAIN, 6)] == asked
    result = turnwise.evaluate(suite, "scripted:gold", episodes=200)
    assert (result.episodes, result.success, result.notes) == (6, 1.0, ())
    part = turnwise.evaluate(suite, "scripted:gold", episodes=4)
    assert part.notes == (f"4 of the 6 tasks of {suite.name} were played: this is no published score.",)


@pytest.mark.parametrize("form", ROWS)
def test_one_broken_row_of_500_is_named_and_the_rest_is_played(form: str, tmp_path: Path) -> None:
    path = Path(written(tmp_path / "rows.jsonl", ROWS[form], 500))
    lines = path.read_text().splitlines()
    del (row := json.loads(lines[16]))[next(name for name in row if name.lower() in ("question", "problem"))]
    path.write_text("\n".join([*lines[:16], json.dumps(row), *lines[17:]]) + "\n")
    suite = get_suite(f"{form}:{path}")
    assert suite.size == 499
    assert suite.note.startswith(
        f"499 of 500 rows of {path} can be played, so this is no published score: {path}:17 is not "
    )
    assert "KeyError" in suite.note
    assert suite_task(suite, Split.TEST, 16).prompt == suite_task(suite, Split.TEST, 16 + 499).prompt
    assert turnwise.evaluate(suite, "scripted:gold", episodes=2).notes[0] == suite.note


def test_a_part_of_a_download_and_another_version_are_told(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "rows.jsonl", GSM8K, 5))
    path.write_text(path.read_text()[:-30])
    assert f"{path}:5 is not a problem of gsm8k: ValueError: it is no JSON" in get_suite(f"gsm8k:{path}").note
    array = tmp_path / "rows.json"
    array.write_text(json.dumps([filled(HOTPOT, n) for n in range(3)])[:-5])
    with pytest.raises(EnvError, match="is one array, and not whole"):
        get_suite(f"searchqa:{array}")
    with pytest.raises(
        EnvError, match=r"rows.jsonl:1 is not a problem of math: KeyError: 'problem'.*\n.*gsm8k:"
    ):
        get_suite(f"math:{path}")
    with pytest.raises(TurnwiseError, match="cannot be read"):
        get_suite("aime:/nowhere.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(EnvError, match="has no rows"):
        get_suite(f"aime:{tmp_path / 'empty.jsonl'}")


def test_the_folder_of_math_is_a_file_a_problem(tmp_path: Path) -> None:
    for n, kind in enumerate(("algebra", "algebra", "geometry")):
        (tmp_path / kind).mkdir(exist_ok=True)
        (tmp_path / kind / f"{n}.json").write_text(json.dumps(filled(MATH, n)))
    (tmp_path / "geometry" / "7.json").write_text("{")
    suite = get_suite(f"math:{tmp_path}")
    assert (suite.size, suite.note.count("7.json is not")) == (3, 1)


@pytest.mark.parametrize(
    ("form", "said", "answer", "right"),
    [
        ("gsm8k", "So it is\n#### 1,004", "1004", True),
        ("gsm8k", "#### 1004.", "1004", False),  # as its own reader has it
        ("gsm8k", "The answer is 1004", "1004", False),
        ("gsm8k", "#### 3\nor\n#### 1004", "1004", False),
        ("math", "\\boxed{2} or rather \\boxed{\\dfrac{1}{2}}", "\\frac12", True),
        ("math", "\\boxed{x=5}", "5", True),
        ("math", "\\boxed{5\\text{ cm}}", "5", True),
        ("math", "\\boxed{ (3, \\left. 4 \\right) }", "(3,.4)", False),
        ("math", "\\boxed{3", "3", False),
        ("math", "3", "3", False),
        ("aime", "\\boxed{025}", "25", True),
        ("aime", "\\boxed{25.0}", "25", False),
        ("aime", "\\boxed{٢٥}", "25", False),
    ],
)
def test_answers_are_judged_as_published(form: str, said: str, answer: str, right: bool) -> None:
    found = FORMS[form].find(said)
    assert (found is not None and FORMS[form].equal(found, answer)) == right


def test_a_calculator_answers_and_words_are_the_answer(tmp_path: Path) -> None:
    suite = get_suite(f"gsm8k:{written(tmp_path / 'rows.jsonl', GSM8K, 3)}")
    env = make(suite.env)
    env.reset(options={"task": suite_task(suite, Split.TEST, 2)})
    assert env.step("calculate[1000 + 2]").observation[-1].content == "1002"
    assert not env.step("calculate[1 / 0]")[2]
    step = env.step("It is\n#### 1002")
    assert (step.reward, step.info["end"], step.info["details"]["calls"]) == (1.0, EndReason.SOLVED, 1)


@pytest.mark.parametrize(
    ("said", "golds", "em", "f1"),
    [
        ("The Mills.", ["mills"], 1.0, 1.0),
        ("3.5", ["35"], 1.0, 1.0),  # SQuAD's punctuation, which our own suites do not share
        ("yes, he did", ["yes"], 0.0, 0.0),
        ("Ann Lee of Rome", ["Bob", "Ann Lee"], 0.0, 2 / 3),
        ("unknown", ["Ann"], 0.0, 0.0),
        ("", ["Ann"], 0.0, 0.0),
    ],
)
def test_searches_are_judged_by_the_metrics_of_squad(
    said: str, golds: list[str], em: float, f1: float
) -> None:
    verdict = squad_judge(said, golds)
    assert (verdict.em, verdict.f1) == (em, pytest.approx(f1))


def test_a_corpus_is_searched_in_place_of_the_questions_own_passages(tmp_path: Path) -> None:
    corpus = tmp_path / "wiki.jsonl"
    corpus.write_text(
        "".join(
            json.dumps({"id": str(n), "contents": f'"Book {n}"\nBook {n} is by Ann {n}.'}) + "\n"
            for n in range(4)
        )
    )
    suite = get_suite(f"searchqa:{written(tmp_path / 'nq.jsonl', NQ, 3)}+{corpus}")
    env = make(suite.env, outcome="f1")
    env.reset(options={"task": suite_task(suite, Split.TEST, 1)})
    seen = env.step("<search> Book 1 </search>").observation[-1].content
    assert "<information>" in seen
    assert "Ann 1" in seen
    assert seen.count("Doc ") == 3
    step = env.step("<answer> Ann 1 Lee </answer>")
    assert step.reward == pytest.approx(0.8)
    assert step.info["details"]["em"] == 0.0


class Listed(AgentEnv[int]):
    """A published list with splits of its own."""

    @classmethod
    def generate(cls, rng: Random, split: Split, *, index: int = -1) -> Task:
        return Task("test/Listed-v0", f"{split} {index}")

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Any) -> Transition[int]:
        return Transition(1, "", {"outcome": 1.0}, EndReason.SOLVED)

    def gold(self, state: int) -> str:
        return "x"


def test_a_list_with_published_splits_is_as_long_as_each_of_them() -> None:
    register("test/Listed-v0", f"{__file__}:Listed", "a list")
    suite = Suite("listed", "test/Listed-v0", "", listed=True, splits={"train": 3, "dev": 0, "test": 2})
    assert [task.prompt for task in suite_tasks(suite, Split.TRAIN, 4)] == [
        "train 0",
        "train 1",
        "train 2",
        "train 0",
    ]
    assert turnwise.evaluate(suite, "scripted:gold", episodes=50).episodes == 2
    assert turnwise.evaluate(suite, "scripted:gold", episodes=50, split="train", k=2).episodes == 6
    with pytest.raises(EnvError, match=r"listed has no dev tasks.*\n.*train 3, test 2"):
        turnwise.evaluate(suite, "scripted:gold", split="dev")
