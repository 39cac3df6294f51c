"""A list of tasks that earlier evaluations or an earlier run chose."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import mean, pstdev
from typing import Literal

from turnwise.agents.log.episode_log import LogReader
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import require_option


def spreads(histories: Sequence[Sequence[float]]) -> list[float]:
    """The deviation of each task's success over its visits (of the population)."""
    return [pstdev(history) for history in histories]


def alignments(histories: Sequence[Sequence[float]]) -> list[float]:
    """1 − Σ_k(v_k − m_k)²/Σ_k(1 − m_k)², m_k being the mean of all tasks at their k-th visit; 0 where all were always solved."""
    visits = range(max(map(len, histories), default=0))
    means = [mean(one[k] for one in histories if k < len(one)) for k in visits]
    found: list[float] = []
    for history in histories:
        pairs = [*zip(history, means, strict=False)]
        most = sum((1 - m) ** 2 for _, m in pairs)
        found.append(1 - sum((v - m) ** 2 for v, m in pairs) / most if most else 0.0)
    return found


def rates_of(path: str) -> Mapping[str, float]:
    """Success by task in the folder of an evaluation.

    Raises:
        RecipeError: there is none.
    """
    try:
        results = json.loads((Path(path) / "evaluation.json").read_text("utf-8"))["results"]
        return {task: mean(runs) for task, runs in results.items() if runs}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecipeError(
            f"sampler 'listed': {path} holds no evaluation with results ({type(error).__name__}).",
            "Make one: `turnwise eval SUITE --split train --policy … --k 16 --out FOLDER`.",
        ) from error


def histories_of(path: str) -> Mapping[str, list[float]]:
    """Success by task in each update of a run that played it, in order.

    Raises:
        RecipeError: its log has no such episode.
    """
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    log = Path(path) / "episodes.jsonl.zst"
    for record in LogReader(log) if log.is_file() else ():
        if record.update is not None and record.episode.outcome.counts:
            found[record.episode.task.id][record.update].append(float(record.episode.success))
    if not found:
        raise RecipeError(
            f"sampler 'listed': {path} holds no episode of an update.",
            "Name the folder of a run: `turnwise train RECIPE --out FOLDER`.",
        )
    return {task: [mean(visits[update]) for update in sorted(visits)] for task, visits in found.items()}


def ids_of(path: str) -> Collection[str]:
    """The tasks of a JSON list of ids.

    Raises:
        RecipeError: there is none.
    """
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RecipeError(
            f"sampler 'listed': {path} cannot be read ({type(error).__name__}).", "Name a file of JSON."
        ) from error
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise RecipeError(f"sampler 'listed': {path} is no list of ids.", 'Write ["ID", "ID", …].')
    return frozenset(found)


@component("sampler", "listed", paper="2504.20571")
class ListedTasks(Sampler):
    """Those of the first ``size`` training tasks that earlier evaluations or a run chose; few are repeated to fill an update.

    Guru (2025): of two evaluations on train, by a ``weak`` and a ``strong`` policy, a task is left out that the weak one solves in
    ``high`` of its runs or more, or the strong one in ``low`` or less; what an evaluation lacks counts as never solved. 1-shot RLVR
    (Wang et al. 2025): of these, the ``keep`` tasks whose success varied most over the updates of a ``run`` that played them, by its
    deviation (``score: std``) or by how it follows the mean of all (``lim``: 1 − Σ(v_k − m_k)²/Σ(1 − m_k)²). Each of the options weak,
    strong and run names a folder, or nothing. ``tasks`` names a JSON list of ids, such as the balanced one that ``turnwise audit eval``
    draws of what is known without tools and what is not (IKEA): others are left out. Repeats are groups of their own, with seeds of their own. A checkpoint has the list, so
    that a resumed run plays it whatever became of the folders: ours. Tasks that the run never played are not ranked.

    Worked by hand from the book: both scores of four histories, and five pairs of weak and strong success.

    >>> four = [[0, 0.25, 0.5, 0.75, 1], [0.5] * 5, [1, 1, 1, 0.875, 1], [0, 0, 0.125, 0.5, 0.875]]
    >>> [round(x, 4) for x in spreads(four)], [round(x, 4) for x in alignments(four)]
    ([0.3536, 0.0, 0.05, 0.341], [0.8037, 0.8475, 0.0658, 0.5114])
    >>> pairs = [(0, 0), (0, 0.5), (0.5, 0.9), (0.9, 1), (0, 0.1)]
    >>> [strong > 0.1 and weak < 0.9 for weak, strong in pairs]
    [False, True, True, False, False]
    """

    returns = True
    repeats = True
    over = "the tasks of its list, each as likely as any other"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        size: int = 256,
        weak: str = "",
        strong: str = "",
        low: float = 0.1,
        high: float = 0.9,
        run: str = "",
        keep: int = 1,
        score: Literal["std", "lim"] = "std",
        tasks: str = "",
    ) -> None:
        super().__init__(setup)
        require_option("listed", size > 0, f"size={size} holds no task", "Give 1 or more.")
        require_option("listed", keep > 0, f"keep={keep} keeps no task", "Give 1 or more.")
        require_option("listed", 0 <= low <= 1, f"low {low:g} is no success", "Give one from 0 to 1.")
        require_option("listed", 0 <= high <= 1, f"high {high:g} is no success", "Give one from 0 to 1.")
        left = [*range(size)]
        ids = {i: setup.request(i).task.id for i in left} if tasks or weak or strong or run else {}
        if tasks:
            named = ids_of(tasks)
            left = [i for i in left if ids[i] in named]
        if weak:
            rates = rates_of(weak)
            left = [i for i in left if rates.get(ids[i], 0.0) < high]
        if strong:
            rates = rates_of(strong)
            left = [i for i in left if rates.get(ids[i], 0.0) > low]
        if run:
            past = histories_of(run)
            left = [i for i in left if ids[i] in past]
            scored = (spreads if score == "std" else alignments)([past[ids[i]] for i in left])
            ranked = sorted(zip(scored, left, strict=True), key=lambda pair: -pair[0])
            left = [task for _, task in ranked[:keep]]
        require_option(
            "listed",
            bool(left),
            f"none of the first {size} training tasks is left",
            "Evaluate or play them (their ids must be those of these suites on train), or widen size, low and high.",
        )
        self.chosen = left
        self.restore(PartState())

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        rng = derive_rng("listed", self.setup.seed, update)
        times, rest = divmod(self.setup.most, len(self.tasks))
        drawn = [*self.tasks * times, *rng.sample(self.tasks, rest)]
        rng.shuffle(drawn)
        return [self.setup.request(i, visits=self.visits.get(i, 0)) for i in drawn[played : played + groups]]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for index in {group.request.index for group in groups}:
            self.visits[index] = self.visits.get(index, 0) + 1

    def figures(self) -> Mapping[str, float]:
        return {"tasks": float(len(self.tasks))}

    def state(self) -> PartState:
        return PartState({"tasks": self.tasks, "visits": {str(i): n for i, n in self.visits.items()}})

    def restore(self, state: PartState) -> None:
        self.tasks: list[int] = [*state.numbers.get("tasks", self.chosen)]
        self.visits: dict[int, int] = {int(i): int(n) for i, n in state.numbers.get("visits", {}).items()}
