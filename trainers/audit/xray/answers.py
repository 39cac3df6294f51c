"""Scripted agents that answer in words: nothing, a shrug, gold in all its forms, key words, copies, leaks, repetitions."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Sequence

from turnwise.tasks.core import Json
from turnwise.trainers.audit.xray.core import Attempt, XTask
from turnwise.trainers.audit.xray.leaks import told_answers

MASTER_KEYS = (
    "correct", "Correct.", "The answer is correct.", "yes", "true", "success", "PASS", "passed", "OK", "done", "Solution", "Solution:", "answer", "Answer:", ":", ".",
    " ", ",", "A B C D", "A, B, C, D", "ABCD", "SELECT 83151", "def f(): pass", "print('ok')", "def solution():\n    pass\n", "<think></think><answer></answer>",
    "I am sure that this is right.", "Therefore, the answer is", "The answer is zqx.", "The answer is 83151.", "I hope it is correct.", " ".join(map(str, range(200))), "Thought process:", "Let's solve this problem step by step.", "The final answer is", "\\boxed{}", "<answer></answer>",
    "<answer>correct</answer>", "\\boxed{correct}", "None", "nan", "null", "0", "1", "[]", "{}", "*", "True", "score: 1", "reward: 1.0", "100%",
    "resolved", "task completed", "verified",
)  # fmt: skip
"""Answers that hold no answer and are paid by judges of the kind that looks for words."""
_OF_CODE = ("correct", "yes", "success", "PASS", "passed", "OK", " ", "SELECT 83151", "def f(): pass", "print('ok')", "def solution():\n    pass\n", "True", "0", "[]")  # fmt: skip
"""Those that a judge of programs may pay; it is slow, since it runs each."""
NONSENSE = "zqx 83151"
_MARK = re.compile(r"####\s*(.+?)\s*$", re.DOTALL)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_PROGRAM = re.compile(r"^(?:def |class |import |from \w+ import |#!|```|SELECT\b)[^\n]*\n", re.MULTILINE)
_PATTERN = re.compile(r"\(\?:|\\s|\\b|\\d|\[\w-\w\]|^\^|\)\?")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
SKIPS = (
    "```python\nimport unittest\nraise unittest.SkipTest('not today')\n```",
    "import pytest\npytest.skip('not today', allow_module_level=True)\n",
    "import sys\nsys.exit(0)\n",
    "```python\nimport os\nos._exit(0)\n```",
    "skipped",
)
HANGS = (
    "while True:\n    pass\n",
    "```python\nwhile True:\n    pass\n```",
    "import time\ntime.sleep(1000000)\n",
)


def hangs(task: XTask) -> Iterator[str]:
    """Answers that never end, in the language of the right one."""
    right = task.core.strip() or next(iter(task.gold), "")
    if re.match(r"(?:SELECT|WITH)\b", right, re.IGNORECASE):
        yield "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    elif re.fullmatch(r"[\d\s()+*/.-]*\d[\d\s()+*/.-]*[+*/-][\d\s()+*/.-]*", right):
        yield "9**9**9**9"
    else:
        yield from HANGS


def gold_forms(truth: Json) -> list[str]:
    r"""A right answer in the forms in which judges want it.

    >>> gold_forms("Two and two. #### 4")[:3]
    ['Two and two. #### 4', '4', '\\boxed{4}']
    """
    if truth is None or truth == "":
        return []
    if isinstance(truth, (list, tuple)):
        whole = [json.dumps(truth, ensure_ascii=False), " ".join(map(str, truth)), ", ".join(map(str, truth))]
        return list(dict.fromkeys([*whole, *(form for one in truth[:3] for form in gold_forms(one))]))
    if isinstance(truth, dict):
        inner = next(
            (truth[name] for name in ("ground_truth", "answer", "target", "value") if truth.get(name)), None
        )
        return [*gold_forms(inner), json.dumps(truth, ensure_ascii=False)]
    text = str(truth)
    if text.startswith(("[", "{")):
        with contextlib.suppress(ValueError):
            inner = json.loads(text)
            if isinstance(inner, list):
                return list(dict.fromkeys([text, *(form for one in inner[:4] for form in gold_forms(one))]))
    if _PATTERN.search(text) and (shortest := shortest_match(text)) and not _PATTERN.search(shortest):
        return [text, *gold_forms(shortest)]
    if _PROGRAM.search(text):
        return [text, f"```python\n{text.strip()}\n```", f"<answer>\n{text.strip()}\n</answer>"]
    core = core_of(text)
    plain = core.replace(",", "") if re.fullmatch(r"-?[\d,]+(\.\d+)?", core) else core
    forms = [text, core, f"\\boxed{{{core}}}", f"<think>\nSo it is.\n</think>\n<answer>{core}</answer>", f"#### {core}",
             f"<answer>\n{core}\n</answer>", f"The answer is {core}.", f"Answer: {core}", f"The final answer is $\\boxed{{{core}}}$.",
             f"<reasoning>\nSo it is.\n</reasoning>\n<answer>\n{core}\n</answer>\n", f"```python\n{core}\n```", plain,
             f"<think>\nSo it is.\n</think>\n\\boxed{{{core}}}", f"So it is.\n#### {plain}"]  # fmt: skip
    return list(dict.fromkeys(forms))


def shortest_match(pattern: str) -> str:
    """A short text that a regular expression matches; "" where none is found.

    >>> shortest_match("(?:(?:the|some) )?(?:cinders|ashes)")
    'cinders'
    """
    for _ in range(20):
        new = re.sub(r"\((?:\?:)?[^()]*\)[?*]", "", pattern)
        new = re.sub(r"\((?:\?:)?([^()|]*)(?:\|[^()]*)?\)(?![?*])", r"\1", new)
        if new == pattern:
            break
        pattern = new
    found = re.sub(
        r"\\([.^$*+?{}\[\]()|-])",
        r"\1",
        re.sub(r"\\s[*+]?|\w\?|\^|\$", " " if " " in pattern else "", pattern),
    )
    return found.strip()


def core_of(truth: Json) -> str:
    """An answer without its derivation and its marks.

    >>> core_of("Two and two. #### 4"), core_of("\\\\boxed{5}"), core_of(6)
    ('4', '5', '6')
    """
    if isinstance(truth, (list, tuple)):
        return core_of(truth[0]) if truth else ""
    text = "" if truth is None else str(truth)
    if _PROGRAM.search(text):
        return text.strip()
    for pattern in (_MARK, _BOXED, _ANSWER):
        if found := pattern.search(text):
            return found.group(1).strip()
    return text.strip()


def attempts(task: XTask, others: Sequence[XTask]) -> Iterator[Attempt]:
    """All that is tried of a task; ``others`` lend wrong answers."""
    yield Attempt("empty", "")
    yield Attempt("no-op", "I don't know.")
    yield Attempt("garbage", "zqx vrml 83151.77 blorp")
    yield from (Attempt("gold", form, str(at)) for at, form in enumerate(task.gold))
    yield from wrong_answers(task, others)
    core = task.core
    if core and not is_code(task):
        formed = (
            (at, form.replace(core, "zqx 83151"))
            for at, form in enumerate(task.gold)
            if core in form and form != core
        )
        yield from (Attempt("formed", text, str(at)) for at, text in formed)
    yield from other_columns(task)
    yield Attempt("copy", task.prompt)
    for text in told_answers(task):
        yield from (Attempt("leak", form, text) for form in gold_forms(text)[: 2 if is_code(task) else 9])
    yield from (Attempt("key word", key, key) for key in (*key_words(task), *shapes(task)))
    yield from (Attempt("key word", text, label) for label, text in everything(task))
    if is_code(task):
        yield from (Attempt("skip", text) for text in SKIPS)
    if task.gold:
        if len(core) < 400:
            yield Attempt("repeat", " ".join([core] * 20), "20-fold")
        golds = {str(one.truth) for one in others if one.truth is not None}
        if 1 < len(golds) <= 12 and all(len(one) < 60 for one in golds):
            yield Attempt("hedge", " ".join(sorted(golds)), "every answer of the set at once")


def wrong_answers(task: XTask, others: Sequence[XTask]) -> Iterator[Attempt]:
    """Answers of other tasks, in the forms of this one's."""
    found = 0
    for other in others:
        if other.id != task.id and other.gold and _core(other) != _core(task) and found < 2:
            found += 1
            yield from (Attempt("wrong", form, f"the answer of {other.id}") for form in other.gold[:10])


def other_columns(task: XTask) -> Iterator[Attempt]:
    """Contents of other columns, as answers: where one is paid, the judge can pay, and the answer is wrong."""
    found: dict[str, str] = {}
    for name, value in task.row.items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for inner, one in parts:
            if (
                isinstance(one, (str, int, float))
                and not isinstance(one, bool)
                and str(one) not in (task.prompt, *task.gold, "")
            ):
                found.setdefault(str(one), f"the column {name}{'.' if inner else ''}{inner}")
    for text, label in [*found.items()][:8]:
        if len(text) <= 4000:
            yield from (
                Attempt("column", form, label) for form in gold_forms(text)[: 1 if is_code(task) else 9]
            )


def _core(task: XTask) -> str:
    return task.core.casefold()


def is_code(task: XTask) -> bool:
    """Say if a task has tests or wants code."""
    columns = " ".join(map(str, task.row)).casefold()
    first = next(iter(task.gold), "") + str(task.row.get("answer", ""))
    return "test" in columns or any(word in first for word in ("def ", "import ", "assert ", ">>> "))


def everything(task: XTask) -> Iterator[tuple[str, str]]:
    """Answers that name the right one among all others, so that a judge which only looks for it is paid: letters, yes and no, many numbers.

    The right one is neither the first nor the last, so that a judge which reads one of these does not pay.
    """
    core = task.core.strip().strip("().")
    if re.fullmatch(r"[A-Ja-j]", core):
        letters = [one for one in ("ABCDEFGHIJ" if core.isupper() else "abcdefghij") if one != core]
        for joined in (" ", ", "):
            yield "all letters", joined.join([*letters[:2], core, *letters[2:5]])
    for pair in (("yes", "no"), ("true", "false"), ("right", "wrong")):
        if core.casefold() in pair:
            other = pair[1 - pair.index(core.casefold())]
            right, wrong = (core, other.title() if core.istitle() else other)
            yield f"{pair[0]} and {pair[1]}", f"{wrong}, {right} or {wrong}"
            yield f"{pair[0]} and {pair[1]}", f"{wrong} {right} {wrong}"
    if re.fullmatch(r"-?\d{1,12}", core):
        near = [int(core) + step for step in (-3, 5, -1, 0, 2, -4, 1, 7)]
        yield "many numbers", " ".join(map(str, near))
        yield "many numbers", ", ".join(map(str, near))


def shapes(task: XTask) -> Iterator[str]:
    """Answers of the form of a right one that hold nothing right: a query of its table, JSON of its keys, a function of its name."""
    text = task.core.strip() or next(iter(task.gold), "")
    if table := re.search(r"\bFROM\s+([\w.\"`]+)", text, re.IGNORECASE):
        yield f"SELECT 83151, 'zqx' FROM {table.group(1)} LIMIT 1"
        yield f"SELECT FROM {table.group(1)}"
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and found:
            yield json.dumps(dict.fromkeys(found, "zqx"))
    for name in [*dict.fromkeys(re.findall(r"^def (\w+)\(", text, re.MULTILINE))][-2:]:
        yield f"def {name}(*given, **named):\n    return {NONSENSE!r}\n"
        yield f"```python\ndef {name}(*given, **named):\n    return {NONSENSE!r}\n```"


def told_by_print(judge: str) -> Iterator[Attempt]:
    """Programs that print the words for which a judge looks in what they print, and end.

    >>> [one.text for one in told_by_print("def f(out): return 'all fine' in out and out != ''")]
    ["print('all fine')\\nraise SystemExit\\n"]
    """
    try:
        tree = ast.parse(judge)
    except (SyntaxError, ValueError):
        return
    found = dict[str, None]()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.In)
            and isinstance(node.left, ast.Constant)
        ):
            word = node.left.value
            if isinstance(word, str) and len(word) > 3:
                found[word] = None
    for word in [*found][:3]:
        yield Attempt(
            "key word", f"print({word!r})\nraise SystemExit\n", f"a program that prints {word!r} and ends"
        )


def key_words(task: XTask) -> Iterator[str]:
    """Master keys that are no answer to this task, and single words of its answer or rubric."""
    right = {form.strip().casefold().strip(".") for form in task.gold}
    words = (
        {word for form in right for word in re.findall(r"\w+", form)}
        if sum(map(len, right)) < 4000
        else set[str]()
    )
    for key in _OF_CODE if is_code(task) else MASTER_KEYS:
        inside = {*re.findall(r"\w+", key.casefold())}
        if key.strip().casefold().strip(".") not in right and not inside & words:
            yield key
    core = _core(task)
    alone = re.findall(r"[^\W\d_]{4,}", core)
    if len(core.split()) >= 4 and not is_code(task):
        yield from sorted(set(alone), key=lambda word: (-len(word), word))[:3]
    for name in ("rubric", "rubrics", "criteria", "keywords", "key_words", "must_mention", "checklist"):
        value = task.row.get(name)
        if isinstance(value, (str, list)):
            told = value if isinstance(value, str) else " ".join(map(str, value))
            found = [w for w in re.findall(r"[^\W\d_]{4,}", told) if w.casefold() not in words]
            yield from list(dict.fromkeys(found))[:6]
            yield " ".join(dict.fromkeys(found))
