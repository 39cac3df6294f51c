"""From what is named on a command line to candidates: folders, checkpoints, JSON files, patterns."""

from __future__ import annotations

import difflib
import glob
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.evaluation.folder import EvaluationFolder
from turnwise.agents.evaluation.statistics import Estimate
from turnwise.errors import RunError, TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.registry import likely_component
from turnwise.tasks.core import Json
from turnwise.trainers.compare.candidates import (
    SCRIPTED,
    Candidate,
    CandidateEvaluation,
    Contender,
    Measure,
    Validation,
)
from turnwise.trainers.report.records import (
    EVALUATIONS,
    METRICS,
    RECIPE,
    EvaluationRow,
    read_evaluations,
    read_metrics,
)

Source: TypeAlias = str | Path | Evaluation
AFTER, DEV = "after RL", "dev"
_STEP = re.compile(r"step-(\d+)")
_FORMS = (
    "Give a run's folder, RUN@best, RUN@40, an evaluation's folder (`eval --out`) or its evaluation.json; "
    "'runs/a-*' in quotes is a group."
)


def read_contender(source: Source | Sequence[Source]) -> Contender:
    """One side of a comparison: a source, a pattern of paths, or several sources that stand as a group.

    Raises:
        TurnwiseError: nothing is there, it holds nothing to compare, or it is damaged.
    """
    if isinstance(source, Evaluation):
        return Contender(source.policy, (of_evaluation(source, source.policy),))
    if isinstance(source, (str, Path)):
        named = str(source)
        found = _expand(named)
        members = tuple(read_candidate(path) for path in found)
        return Contender(named if len(found) != 1 else found[0], members)
    sources = list(source)
    if not sources:
        raise TurnwiseError("A group of no runs cannot be compared.", "Name one run or more.")
    sides = [read_contender(one) for one in sources]
    members = tuple(member for side in sides for member in side.members)
    return Contender(" + ".join(side.label for side in sides), members)


def read_candidate(named: str) -> Candidate:
    """A run, a checkpoint or an evaluation by its path.

    Raises:
        TurnwiseError: there is none, or it is damaged.
    """
    path, at = _split(named)
    if path.is_file():
        return _of_file(path)
    if (path / "asked.json").exists() or (path / "evaluation.json").exists():
        return _of_folder(path)
    inside = path.resolve().parent if path.name == "model" else path.resolve()
    if (step := _STEP.fullmatch(inside.name)) and inside.parent.name == "checkpoints":
        return _of_checkpoint(inside.parent.parent, named, step[1])
    if not any((path / name).exists() for name in (METRICS, EVALUATIONS, RECIPE)):
        raise TurnwiseError(f"{path} holds neither a run nor an evaluation.", _FORMS)
    return _of_checkpoint(path, named, at) if at else _of_run(path, named)


def _expand(named: str) -> list[str]:
    """The paths that a pattern matches; a path that is there is no pattern."""
    path, at = _split(named, look=False)
    if path.exists():
        return [named]
    if not glob.has_magic(str(path)):
        raise _missing(path)
    found = [Path(match) for match in sorted(glob.glob(str(path)))]
    usable = [match for match in found if match.is_dir() or match.suffix == ".json"]
    if not usable:
        raise TurnwiseError(f"Nothing matches {str(path)!r}.", _FORMS)
    return [f"{match}@{at}" if at else str(match) for match in usable]


def _split(named: str, *, look: bool = True) -> tuple[Path, str]:
    """``RUN@40`` as the run and ``"40"``; a path that is there under its whole name has no ``@``."""
    whole = Path(named).expanduser()
    if whole.exists() or "@" not in whole.name:
        if look and not whole.exists():
            raise _missing(whole)
        return whole, ""
    run, _, at = named.rpartition("@")
    path = Path(run).expanduser()
    if look and not path.exists():
        raise _missing(path)
    return path, at


def _missing(path: Path) -> TurnwiseError:
    beside = [found.name for found in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, beside, n=1)
    remedy = f"Did you mean {path.parent / close[0]}?" if close else _FORMS
    return TurnwiseError(f"There is no {path}.", remedy)


def of_evaluation(
    evaluation: Evaluation,
    label: str,
    *,
    conditions: Mapping[str, Json] | None = None,
    mode: str = "sampled",
    source: str = "",
    notes: Iterable[str] = (),
) -> Candidate:
    """An evaluation as a candidate."""
    found = CandidateEvaluation(
        Measure(evaluation.suite, evaluation.split, mode),
        Estimate(evaluation.success, evaluation.success_interval, evaluation.episodes, evaluation.tasks),
        evaluation.mean_score,
        evaluation.turns,
        evaluation.results,
        conditions or {},
    )
    said = [*notes, *([f"{label} has no results per task"] if not evaluation.results else [])]
    if evaluation.bounded:
        low, high = evaluation.success_bound
        said.append(
            f"{label}: {evaluation.excluded} episodes failed, success is between {low:.3f} and {high:.3f}"
        )
    return Candidate(label, (found,), source=source, notes=tuple(said))


def _of_file(path: Path) -> Candidate:
    if path.name == "evaluation.json" and (path.parent / "asked.json").exists():
        return _of_folder(path.parent)
    data = _read_json(path)
    try:
        evaluation = Evaluation.from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TurnwiseError(f"{path} is no evaluation: {error!r}.", _FORMS) from None
    mode = SCRIPTED if _is_script(evaluation.policy) else "sampled"
    note = f"{path} does not say how it was played (temperature, limits): it is taken as sampled"
    return of_evaluation(evaluation, str(path), mode=mode, notes=[note] if mode != SCRIPTED else ())


def _of_folder(path: Path) -> Candidate:
    folder = EvaluationFolder(path)
    if not folder.summary.exists():
        raise RunError(
            f"The evaluation in {path} is not finished: it has no {folder.summary.name}.",
            "Go on with `turnwise eval … --out … --resume`, which keeps the episodes that were played.",
        )
    data = _read_json(folder.summary)
    try:
        evaluation = Evaluation.from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TurnwiseError(
            f"{folder.summary} is damaged: {error!r}.", "Evaluate again with --resume, or in another --out."
        ) from None
    asked = _read_json(folder.asked) if folder.asked.exists() else {}
    temperature = asked.get("temperature")
    mode = "greedy" if temperature == 0 else "sampled"
    conditions: dict[str, Json] = {
        "temperature": temperature,
        "max_tokens": asked.get("max_tokens")
        or None,  # 0: as the model was trained, which is not stated here
        "tools": asked.get("tools") or None,
        "episode_s": asked.get("episode_s"),
        "env_options": asked.get("env_options", {}),
    }
    if _is_script(str(asked.get("policy", evaluation.policy))):
        mode, conditions = SCRIPTED, {key: conditions[key] for key in ("episode_s", "env_options")}
    notes = []
    if data.get("interrupted"):
        notes.append(f"{path} was interrupted: {evaluation.episodes} episodes were played until then")
    source = str(asked.get("env_source") or "")
    return of_evaluation(evaluation, str(path), conditions=conditions, mode=mode, source=source, notes=notes)


def _is_script(policy: str) -> bool:
    """Say whether a policy's name is that of one that samples nothing."""
    kind = likely_component("policy", policy.partition(":")[0])
    return kind is not None and kind.costless


def _of_run(path: Path, label: str) -> Candidate:
    """A run by its verdict on test, before and after, and by its learning curve."""
    run = RunRecords(path)
    finals = run.at_stage(AFTER)
    notes = [*run.notes]
    if not finals:
        done = max((row.update for row in run.metrics if row.phase == "rl"), default=0)
        asked = run.recipe.get("updates", "?")
        notes.append(
            f"{label} is not finished: {done} of {asked} updates, no verdict on test "
            f"(go on with `turnwise train … --out {path} --resume`)"
        )
    return run.candidate(label, finals, notes)


def _of_checkpoint(path: Path, label: str, at: str) -> Candidate:
    """A run's checkpoint: its evaluations on test where the run made them, and its validation on dev."""
    run = RunRecords(path)
    update = run.best_update if at == "best" else int(at) if at.isdigit() else None
    if update is None:
        if at == "best":
            raise TurnwiseError(
                f"{path} has no best checkpoint yet.", "It is chosen at the first validation."
            )
        raise TurnwiseError(f"{label} names no checkpoint.", f"Write {path}@best or {path}@40.")
    rows: list[EvaluationRow] = []
    if update == 0:
        rows = [row for row in run.rows if row.name != AFTER]
    elif update == run.best_update:
        rows = [row for row in run.rows if row.name == AFTER]
    found = [run.evaluation(row) for row in rows]
    notes = [*run.notes]
    validated = next((v for v in run.curve if v.update == update), None)
    if validated is not None and validated.interval is not None:
        tasks = run.dev_tasks
        success = Estimate(validated.success, validated.interval, tasks, tasks)
        found.append(CandidateEvaluation(run.dev, success, math.nan, math.nan, {}, run.conditions("sampled")))
    model = path / "checkpoints" / f"step-{update:06d}" / "model"
    how = f"`turnwise eval {run.suite} --policy vllm:{model} --out EVALUATION` plays it on test"
    if not found:
        known = ", ".join(str(v.update) for v in run.curve) or "none"
        raise TurnwiseError(
            f"{path} was not evaluated after update {update} (validated after: {known}).",
            f"{how}; then compare that folder." if model.exists() else "Name an update that was validated.",
        )
    if not rows:
        notes.append(
            f"{label} was not played on test, only validated on dev, without results per task; {how}"
        )
    return run.candidate(label, found, notes, curve=())


class RunRecords:
    """Records that a run wrote, as far as comparing needs them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.recipe = _recipe(path / RECIPE)
        self.metrics = read_metrics(path, self.notes)
        self.rows = read_evaluations(path, self.notes)
        self.suite = _suite_name(self.recipe.get("suite")) or (self.rows[0].suite if self.rows else "?")
        self.dev = Measure(self.suite, DEV, "sampled")
        self.dev_tasks = int(_section(self.recipe, "evaluate").get("dev") or 100)
        self.curve = tuple(self._curve())
        best = (path / "best").resolve().name
        self.best_update = int(step[1]) if (step := _STEP.fullmatch(best)) else None

    def at_stage(self, name: str) -> list[CandidateEvaluation]:
        """The evaluations under this name, each with the first one of its kind, made before reinforcement."""
        return [self.evaluation(row, self._first_like(row)) for row in self.rows if row.name == name]

    def _first_like(self, row: EvaluationRow) -> EvaluationRow | None:
        like = (row.suite, row.split, row.mode)
        found = (r for r in self.rows if (r.suite, r.split, r.mode) == like and r.name != row.name)
        return next(found, None)

    def evaluation(self, row: EvaluationRow, before: EvaluationRow | None = None) -> CandidateEvaluation:
        return CandidateEvaluation(
            Measure(row.suite, row.split, row.mode),
            row.estimate,
            row.mean_score,
            row.turns,
            row.results,
            self.conditions(row.mode),
            self.evaluation(before) if before is not None else None,
        )

    def conditions(self, mode: str) -> dict[str, Json]:
        return run_conditions(self.recipe, mode)

    def candidate(
        self,
        label: str,
        found: Sequence[CandidateEvaluation],
        notes: Sequence[str],
        curve: Sequence[Validation] | None = None,
    ) -> Candidate:
        said = [f"{label} has no results per task on {e.measure}" for e in found if not e.results]
        seed = self.recipe.get("seed")
        return Candidate(
            label,
            tuple(found),
            seed=seed if isinstance(seed, int) else None,
            curve=self.curve if curve is None else tuple(curve),
            dev=self.dev,
            dev_conditions=self.conditions("sampled"),
            dev_tasks=self.dev_tasks,
            source=_env_source(self.path),
            notes=(*notes, *(said if curve is None else ())),
        )

    def _curve(self) -> Iterator[Validation]:
        rows = [row for row in self.metrics if row.phase == "rl"]
        costs = {
            unit: list(itertools.accumulate(row.values.get(unit, 0.0) for row in rows))
            for unit in ("steps", "tokens")
            if rows and all(unit in row.values for row in rows)
        }
        for place, row in enumerate(rows):
            if "dev_success" in row.values:
                steps, tokens = (costs[u][place] if u in costs else None for u in ("steps", "tokens"))
                interval = row.intervals.get("dev_success")
                yield Validation(row.update, steps, tokens, row.values["dev_success"], interval)


def run_conditions(recipe: Mapping[str, Json], mode: str) -> dict[str, Json]:
    """Return the conditions under which a run's evaluations are played, by its recipe."""
    sampling, rollout = _section(recipe, "sampling"), _section(recipe, "rollout")
    return {
        "temperature": 0.0 if mode == "greedy" else sampling.get("temperature"),
        "max_tokens": sampling.get("max_tokens"),
        "tools": sampling.get("tools"),
        "episode_tokens": rollout.get("episode_tokens"),
        "env_options": rollout.get("env_options", {}),
        "opponents": _section(recipe, "evaluate").get("opponents", {}),
    }


def _recipe(path: Path) -> dict[str, Json]:
    if not path.exists():
        return {}
    try:
        data = read_yaml(path.read_text("utf-8"))
    except (ValueError, yaml.YAMLError):
        data = None
    if not isinstance(data, dict):
        raise RunError(
            f"{path} is damaged: it holds no recipe, so that nobody can say how the run was played.",
            "Put it back from a copy.",
        )
    return data


def _section(recipe: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = recipe.get(name)
    return found if isinstance(found, dict) else {}


def _suite_name(said: Json) -> str:
    """Return the name of a recipe's ``suite``; several, which have weights, are joined by a plus sign."""
    return " + ".join(said) if isinstance(said, dict) else str(said or "")


def _env_source(run: Path) -> str:
    path = run / "started.json"
    if not path.exists():
        return ""
    starts: Any = _read_json(path, kind=list)
    last = starts[-1] if starts and isinstance(starts[-1], dict) else {}
    return str((last.get("environment") or {}).get("source") or "")


def _read_json(path: Path, kind: type = dict) -> Any:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TurnwiseError(f"{path} cannot be read: {error}.", "Put it back from a copy.") from None
    if not isinstance(data, kind):
        raise TurnwiseError(f"{path} holds no {kind.__name__}, but a {type(data).__name__}.", _FORMS)
    return data
