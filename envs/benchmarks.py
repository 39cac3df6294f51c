"""Published benchmarks that play here: by which form, what each needs, and where it comes from.

Data are the user's files or the package of the benchmark; nothing is loaded from a hub.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Benchmark(NamedTuple):
    """A benchmark as it is named here.

    Attributes:
        name: the suite, as `turnwise eval` takes it.
        tasks: how many it has, as published.
        judged: by whose program.
        requires: beside Turnwise.
        source: a command or a place, from which its data come.
    """

    name: str
    about: str
    tasks: str
    judged: str
    requires: str
    source: str


_SANDBOX = "a sandbox (turnwise doctor)"
_ROWS = "tests of the row, in the row's image"

BENCHMARKS: Mapping[str, tuple[Benchmark, ...]] = {
    "humaneval": (
        Benchmark("humaneval:PATH", "HumanEval.", "164", "its own tests", _SANDBOX, "HumanEval.jsonl of github.com/openai/human-eval"),
    ),
    "mbpp": (
        Benchmark("mbpp:PATH", "MBPP, whole or sanitized.", "974 or 427", "its own tests", _SANDBOX, "mbpp.jsonl of github.com/google-research/google-research/tree/master/mbpp"),
    ),
    "evalplus": (
        Benchmark("evalplus:PATH", "HumanEval+ and MBPP+.", "164 and 378", "its own inputs, against its solutions", _SANDBOX, "the JSONL releases of github.com/evalplus"),
    ),
    "livecodebench": (
        Benchmark("livecodebench:PATH", "LiveCodeBench, code generation.", "400 to 1,055, by release", "its own tests", _SANDBOX, "a release's JSONL of huggingface.co/datasets/livecodebench/code_generation_lite"),
    ),
    "gsm8k": (
        Benchmark("gsm8k:FILE", "GSM8K, with an exact calculator.", "1,319 (test), 7,473 (train)", "the number after ####", "nothing", "test.jsonl of github.com/openai/grade-school-math"),
    ),
    "math": (
        Benchmark("math:PATH", "MATH, with an exact calculator.", "5,000 (test), 500 (MATH-500)", "its comparison of texts", "nothing", "the folder of github.com/hendrycks/math, or a list as JSONL"),
    ),
    "aime": (
        Benchmark("aime:FILE", "AIME of a year, with an exact calculator.", "30 a year", "the whole number", "nothing", "a JSONL with problem and answer"),
    ),
    "searchqa": (
        Benchmark("searchqa:FILE[+CORPUS]", "NQ, over a corpus or a server.", "3,610 (test)", "exact match, F1 (SQuAD's)", "a corpus as JSONL, or Search-R1's server", "nq/test.jsonl of huggingface.co/datasets/RUC-NLPIR/FlashRAG_datasets"),
        Benchmark("searchqa:FILE[+CORPUS]", "HotpotQA, over its own paragraphs or a corpus.", "7,405 (dev)", "exact match, F1 (SQuAD's)", "nothing", "hotpot_dev_distractor_v1.json of hotpotqa.github.io"),
        Benchmark("searchqa:FILE[+CORPUS]", "2WikiMultihopQA, likewise.", "12,576 (dev)", "exact match, F1 (SQuAD's)", "nothing", "dev.json of github.com/Alab-NII/2wikimultihop"),
        Benchmark("searchqa:FILE[+CORPUS]", "MuSiQue, likewise.", "2,417 (dev)", "exact match, F1 (SQuAD's)", "nothing", "musique_ans_v1.0_dev.jsonl of github.com/StonyBrookNLP/musique"),
        Benchmark("searchqa:FILE+CORPUS", "Bamboogle, over a corpus or a server.", "125", "exact match, F1 (SQuAD's)", "a corpus as JSONL, or Search-R1's server", "bamboogle/test.jsonl of huggingface.co/datasets/RUC-NLPIR/FlashRAG_datasets"),
    ),
    "swebench": (
        Benchmark("swebench:PATH", "Rows of SWE-bench's kind: Lite, Verified, Gym, SWE-smith.", "300, 500, …", _ROWS, "Docker, and an image for each row", "the rows as JSONL, of huggingface.co/datasets/SWE-bench"),
    ),
    "harbor": (
        Benchmark("harbor:PATH", "Folders of tasks of Harbor and Terminal-Bench.", "89 in Terminal-Bench 2", "the task's own verifier", "Docker, and what each task's image needs", "the task folders of github.com/laude-institute (terminal-bench)"),
    ),
    "reasoning-gym": (
        Benchmark("reasoning-gym:DATASET", "Generated questions of reasoning.", "106 data sets without end", "its data sets", "313 MB", "turnwise worlds add reasoning-gym"),
    ),
    "textarena": (
        Benchmark("textarena:GAME", "Games for one player.", "22 games without end", "the games", "163 MB", "turnwise worlds add textarena"),
    ),
    "textworld-express": (
        Benchmark("textworld-express:GAME", "TextWorldExpress, in published folds.", "8 games without end", "the games", "Java", "turnwise worlds add textworld-express"),
    ),
    "bfcl": (
        Benchmark("bfcl:CATEGORY", "Function calls of one turn and of several (BFCL v4).", "2,501 rows of one turn with answers, 1,140 without, 800 of several", "its own checkers", "40 MB", "turnwise worlds add bfcl"),
    ),
    "scienceworld": (
        Benchmark("scienceworld:TASK", "A school laboratory.", "30 types, 7,207 variations", "its own score", "Java, 29 MB", "turnwise worlds add scienceworld"),
    ),
    "tau2": (
        Benchmark("tau2:DOMAIN", "τ²-bench: an agent and a user on the phone.", "airline 50, retail 114, telecom 114", "its own evaluator", "927 MB, and a policy for the user", "turnwise worlds add tau2"),
    ),
    "verifiers": (
        Benchmark("verifiers:TASKSET", "Tasksets of verifiers v1, for one agent.", "the taskset's", "the taskset", "490 MB", "turnwise worlds add verifiers"),
    ),
    "openenv": (
        Benchmark("openenv:URL", "Any server of OpenEnv's protocol.", "the server's seeds", "the server", "the server", "turnwise worlds add openenv"),
    ),
}  # fmt: skip
"""By the form of the suite's name."""
