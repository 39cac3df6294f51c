"""Forms of what each verb prints with ``--json``: the reference of the command line, and what tests hold verbs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Form(NamedTuple):
    """The keys of the object that a verb prints, or of each object of its list, and what it is."""

    about: str
    keys: tuple[str, ...]
    several: bool = False

    def __str__(self) -> str:
        what = "a list of objects" if self.several else "an object"
        keys = f" with {', '.join(f'`{key}`' for key in self.keys)}" if self.keys else ""
        return f"{what}{keys}: {self.about}."


FORMS: Mapping[str, Form] = {
    "list": Form("what there is of the kind, with more keys by kind", ("name",), several=True),
    "survey": Form("each suite with gold, baselines and splits", ("ok", "suites")),
    "fairness": Form("each suite with its ladder of agents", ("ok", "suites")),
    "play": Form(
        "the episode, turn by turn",
        ("env", "task", "seed", "policy", "outcome", "end", "error", "score", "turns"),
    ),
    "new-env": Form("what was written", ("name", "env", "suite", "files")),
    "check": Form(
        "each requirement with whether it holds and what was seen", ("env", "ok", "requirements", "unseen")
    ),
    "new-part": Form("what was written", ("name", "component", "files")),
    "eval": Form(
        "the figures with their intervals, and whether too many episodes failed; of several pairs, `evaluations` holds one such object each, and `not_judged` the others",
        ("suite", "policy", "success", "success_interval", "interrupted", "too_many_failed"),
    ),
    "panel": Form("how many tasks were written to which file", ("panel", "tasks", "out")),
    "replay": Form("whether every byte was the same, and the first differences", ("ok",)),
    "repair": Form("what was cut out of which file", ("dry_run", "files")),
    "chats": Form(
        "how many chats were written where, and how many episodes were left out",
        ("out", "written", "unwanted", "programs"),
    ),
    "compare": Form("each measure with its differences, intervals and tests", ("written",)),
    "audit": Form(
        "each measure with its figures, tables and curves, and what could not be measured",
        ("subject", "of", "findings", "not_measured", "written"),
    ),
    "mismatch": Form(
        "the fault, where it begins, and the explanations that were tried",
        ("fault", "confidence", "said", "begins", "figures", "data", "explanations", "notes"),
    ),
    "plan": Form(
        "what a recipe takes on its fullest card, in bytes, part by part while it learns and while it plays, and changes that take less",
        (
            "recipe",
            "where",
            "fits",
            "total",
            "memory",
            "loading",
            "parts",
            "dearest",
            "weights",
            "trained",
            "seconds",
            "changes",
            "notes",
        ),
    ),
    "train": Form(
        "where the run is, what came of it, and its evaluations on the test split before and after",
        ("run", "best_update", "learned", "interrupted", "seconds", "evaluations"),
    ),
    "explain": Form(
        "the objective in words and as a formula, and the recipe's bias if it is known",
        ("recipe", "text", "bias"),
    ),
    "report": Form("where the page was written", ("report",)),
    "top": Form(
        "what the run does now, by its last events",
        ("run", "age", "ended", "start", "state", "learning", "published", "evaluated", "updates"),
    ),
    "relearn": Form(
        "after which updates the run's checkpoints came out the same, bit for bit, and how many advantages did",
        ("run", "updates", "equal", "advantages", "sha256", "seconds"),
    ),
    "view": Form("that the server was closed", ("closed",)),
    "gateway": Form(
        "the figures of what was played, as `eval` prints them, or with `--episodes 0` how many episodes there were",
        (),
    ),
    "serve": Form("the figures of the episodes that were played, as `eval` prints them", ()),
    "serve-engine": Form("the exit code of the engine's server", ("ended",)),
    "serve-workers": Form("how many processes were started for runs", ("served",)),
    "serve-openenv": Form("the suite that was served", ("served",)),
    "tasks": Form("how many tasks were written, and where", ("suite", "tasks", "out")),
    "credit-quality": Form("each credit rule beside true advantages", ()),
    "bench": Form("each figure with its unit and spread, and the machine", ("name", "machine", "figures")),
    "doctor": Form("each thing that was looked at, by group", ("ok", "findings")),
    "swe": Form("what was made of each package", ()),
    "worlds": Form("the world that was made or removed, or a list of all", ()),
}
