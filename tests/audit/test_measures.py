"""Measures against independent references over random data, and laws that hold of all of them."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from lazily import Lazily

import turnwise
from turnwise.agents.core import Episode, History, Reply
from turnwise.agents.evaluation.statistics import wilson
from turnwise.agents.log.records import Record
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split
from turnwise.trainers.audit.by_hand import answers as answered
from turnwise.trainers.audit.by_hand import episode, groups, logged, turn
from turnwise.trainers.audit.evaluations.known import known
from turnwise.trainers.audit.evaluations.pass_curves import pass_curves
from turnwise.trainers.audit.evaluations.support import support
from turnwise.trainers.audit.judged import judged
from turnwise.trainers.audit.logs.best_of import best_of_k
from turnwise.trainers.audit.logs.calibration import calibration
from turnwise.trainers.audit.logs.flaws import FLAWS, replayed
from turnwise.trainers.audit.logs.horizon import of_ways, samples, with_samples
from turnwise.trainers.audit.logs.horizon import table as horizon_table
from turnwise.trainers.audit.logs.order import path, spearman
from turnwise.trainers.audit.logs.rejection import rejection
from turnwise.trainers.audit.logs.signed_mass import signed_mass
from turnwise.trainers.audit.logs.similarity import similarity
from turnwise.trainers.audit.logs.spread import deviation, spread
from turnwise.trainers.audit.logs.starc import canonical, distance, starc
from turnwise.trainers.audit.logs.unseen import unseen
from turnwise.trainers.audit.logs.votes import voted
from turnwise.trainers.audit.reading import (
    EvaluatedSide,
    EvaluatedSides,
    LoggedGroup,
    LoggedGroups,
    read_log,
)
from turnwise.trainers.audit.registry import SUBJECTS, audit_all, audits_of, options_of
from turnwise.trainers.audit.training.power_law import capacity, fit_capacity, fit_power
from turnwise.trainers.check import groups as groups_check
from turnwise.trainers.lab.completed import completed

optimize, stats = Lazily("scipy.optimize"), Lazily("scipy.stats")
ROOT = Path(__file__).parents[2]
ALL = [(subject, name) for subject in SUBJECTS for name in audits_of(subject)]


def random_sides(rng: Random, tasks: int = 6, most: int = 6) -> EvaluatedSides:
    """Two evaluations with three runs or more of each task."""
    sides = [
        {f"t{i}": tuple(float(rng.random() < 0.4) for _ in range(rng.randint(3, most))) for i in range(tasks)}
        for _ in range(2)
    ]
    return EvaluatedSides("", (EvaluatedSide("a", sides[0]), EvaluatedSide("b", sides[1])))


def reached(runs: tuple[float, ...], k: int) -> float:
    """The share of subsets of k runs that hold a success."""
    return float(np.mean([any(chosen) for chosen in itertools.combinations(runs, k)]))


@pytest.mark.parametrize("seed", range(20))
def test_support_is_the_mean_over_all_choices_of_k_runs(seed: int) -> None:
    rng = Random(seed)
    sides, k = random_sides(rng), rng.randint(1, 3)
    found = support(sides, k=k)
    kept = gained = lost = 0.0
    for task in sides.start.results:
        p, q = (reached(side.results[task], k) for side in sides.sides)
        kept, gained, lost = kept + p * q, gained + (1 - p) * q, lost + p * (1 - q)
    shares = {
        "SRR": kept / (kept + lost),
        "NDR": gained / (kept + gained),
        "NSCR": (gained - lost) / (kept + gained + lost),
    }
    shares["SDS"] = 2 / (1 / shares["SRR"] + 1 / shares["NDR"]) if shares["SRR"] * shares["NDR"] else 0.0
    for figure in found.figures:
        name, _, side = figure.name.partition(" of ")
        if side:
            assert figure.value == pytest.approx(shares[name], abs=1e-12)
            assert figure.interval is not None
            assert figure.interval.low - 1e-9 <= shares[name] <= figure.interval.high + 1e-9
    assert sum(found.tables[0].rows[0][1:]) == pytest.approx(len(sides.start.results))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(10))
def test_curves_over_k_are_those_of_all_subsets_and_cross_where_they_do(seed: int) -> None:
    sides = random_sides(Random(seed))
    found = pass_curves(sides)
    ks = [*found.curves[0].x]
    means = [
        [np.mean([reached(runs, int(k)) for runs in side.results.values()]) for k in ks]
        for side in sides.sides
    ]
    for curve, values in zip(found.curves, means, strict=True):
        assert [*curve.y] == pytest.approx(values)
    ahead = [int(k) for k, a, b in zip(ks, *means, strict=True) if a > b + 1e-12]
    assert found.value("crossover of b") == (ahead[0] if ahead and means[0][0] <= means[1][0] else None)
    assert found.value("gap of b") == pytest.approx(means[0][-1] - means[1][0])


def test_what_is_known_is_balanced() -> None:
    sides = random_sides(Random(3), tasks=40)
    data = known(sides, share_known=0.5).data
    assert set(data["known"]) | set(data["unknown"]) == set(sides.start.results)
    halves = [len(set(data["balanced"]) & set(data[name])) for name in ("known", "unknown")]
    assert halves[0] == halves[1] == min(len(data["known"]), len(data["unknown"])) > 0


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_k_is_that_of_all_subsets_with_ties_shared(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(2, 7)
    scores, right = [rng.randint(0, 3) for _ in range(n)], [rng.randint(0, 1) for _ in range(n)]
    # Ties of the whole set are shared: the mean of y over all with the best score of the subset.
    mean = {s: np.mean([y for t, y in zip(scores, right, strict=True) if t == s]) for s in scores}
    for k in range(1, n + 1):
        wanted = np.mean(
            [mean[max(scores[i] for i in chosen)] for chosen in itertools.combinations(range(n), k)]
        )
        assert best_of_k(scores, right, k) == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(10))
def test_votes_between_two_answers_are_hypergeometric(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(2, 9)
    said = [rng.choice("AB") for _ in range(n)]
    right = said.count("A")
    for k in range(1, n + 1):
        total = 0.0
        for a in range(k + 1):
            ways = _comb(right, a) * _comb(n - right, k - a) / _comb(n, k)
            total += ways * (1.0 if 2 * a > k else 0.5 if 2 * a == k else 0.0)
        assert voted(said, [x == "A" for x in said], k) == pytest.approx(total)


def _comb(n: int, k: int) -> int:
    return len([*itertools.combinations(range(n), k)]) if 0 <= k <= n else 0


@pytest.mark.parametrize("seed", range(10))
def test_spread_and_order_are_those_of_libraries(seed: int) -> None:
    rng = Random(seed)
    word = "".join(rng.choice("01") for _ in range(rng.randint(2, 9)))
    assert deviation(groups({"a": word}).groups[0]) == pytest.approx(np.std([int(x) for x in word], ddof=1))
    values = [rng.randint(0, 5) / 5 for _ in range(8)]
    if len(set(values)) > 1:
        assert spearman(values) == pytest.approx(stats.spearmanr(values, range(8))[0])
    shown, deltas = 0.0, [rng.uniform(-1, 1) for _ in range(5)]
    for delta, value in zip(deltas, path(deltas)[1:], strict=True):
        shown = 1 - (1 - shown) * (1 - delta)  # what is left is multiplied
        assert value == pytest.approx(shown)


def test_a_verifier_finds_a_success_among_as_many_runs_as_it_may_try() -> None:
    words = {"a": "1000", "b": "0110", "c": "111"}
    found = spread(groups(words))
    for k, with_one, without in zip((1, 2, 3), found.curves[0].y, found.curves[1].y, strict=True):
        right = [np.mean([*map(max, itertools.combinations(map(int, w), k))]) for w in words.values()]
        assert with_one == pytest.approx(np.mean(right))
        assert without == pytest.approx((1 / 4 + 2 / 4 + 1) / 3)
    gain = found.curves[0].y[-1] - found.curves[1].y[-1]
    assert found.value("gain of a verifier at 3 runs") == pytest.approx(gain)


def test_unseen_mass_is_the_share_of_choices_without_a_success() -> None:
    words = {"a": "1000", "b": "0110", "c": "0000"}
    found = unseen(groups(words))
    wanted = np.mean([1 - reached(tuple(float(x) for x in word), 2) for word in words.values()])
    assert found.value("groups of 2 without a success") == pytest.approx(wanted)
    assert found.data["never"] == ["c"]


@pytest.mark.parametrize("seed", range(10))
def test_what_early_rejection_loses_is_within_its_bound_where_errors_are_normal(seed: int) -> None:
    """Each figure once more by numpy; and by the mean over many tasks the share that is lost is no more than the bound."""
    rng, expand = np.random.default_rng(seed), 1 + seed % 4
    tasks = {}
    for i in range(30 if seed else 300):
        final = rng.normal(size=int(rng.integers(2, 9))).round(1 if seed else 9)
        rows = [
            [*(x + rng.normal(size=3) / np.arange(1, 4)), x][: 4 if seed == 0 else int(rng.integers(2, 5))]
            for x in final
        ]
        tasks[f"t{i}"] = [[*row[:-1], x] for row, x in zip(rows, final, strict=True)]
    tasks["alike"] = [[0.1, 1.0], [0.3, 1.0]]
    log = logged(
        {
            t: [episode([turn(signals={"v": x}) for x in row], solved=True) for row in rows]
            for t, rows in tasks.items()
        }
    )
    found = rejection(log, score="v", expand=expand)
    told = [rows for rows in tasks.values() if np.ptp([row[-1] for row in rows])]
    for turns in (1, 2, 3):
        early = [np.array([row[:turns][-1] for row in rows]) for rows in told]
        final = [np.array([row[-1] for row in rows]) for rows in told]
        apart = [e - f for e, f in zip(early, final, strict=True)]
        noise = np.sqrt(sum(np.var(x) * len(x) for x in apart) / sum(len(x) - 1 for x in apart))
        lost, bound = [], []
        for e, f in zip(early, final, strict=True):
            kept = np.argsort(-e, kind="stable")[: max(1, len(e) // expand)]
            lost.append(not np.isin(f.max(), f[kept]))
            gap = f.max() - np.unique(f)[-2]
            bound.append(min(1, (len(f) - 1) * np.exp(-((gap / noise) ** 2) / 4)))
        centred = [np.concatenate([x - x.mean() for x in both]) for both in (early, final)]
        after = f"after {turns} turn{'s' * (turns > 1)}"
        assert found.value(f"σ {after}") == pytest.approx(noise)
        assert found.value(f"ρ {after}") == pytest.approx(np.corrcoef(*centred)[0, 1])
        assert found.value(f"best try lost {after}") == pytest.approx(np.mean(lost))
        assert found.value(f"bound {after}") == pytest.approx(np.mean(bound), abs=1e-4)
        if seed == 0:
            assert np.mean(lost) <= np.mean(bound)
    assert [*found.curves[0].x] == [1, 2, 3]


def test_early_rejection_says_what_it_lacks() -> None:
    many = [episode([turn(signals={"v": x}) for x in row], solved=True) for row in ([0.1, 0.4], [0.2, 0.9])]
    short = [episode([turn(signals={"v": x})], solved=True) for x in (0.0, 1.0)]
    alike = [episode([turn(signals={"v": 0.0}), turn(signals={"v": 1.0})], solved=True)] * 2
    for tries, options, why in (
        (many, {}, "reject nothing"),
        (many, {"score": "v", "expand": 0}, "reject nothing"),
        (many, {"score": "v", "wanted": 0.0}, "reject nothing"),
        (short, {"score": "v"}, "no try|No try"),
        (alike, {"score": "v"}, "one and the same"),
    ):
        with pytest.raises(TurnwiseError, match=why):
            rejection(logged({"a": tries}), **options)  # type: ignore[arg-type]
    said = rejection(logged({"a": many}), score="v", wanted=1.0, allowed=1.0).said
    assert "τ ≥ 2 of 2.0 turns" in said[0]
    assert "it is so from 1 on" in said[0]
    assert "from turn 1 on" in said[1]
    assert "never allows" in rejection(logged({"a": many}), score="v", allowed=1e-9).said[1]


@pytest.mark.parametrize("seed", range(10))
def test_calibration_is_that_of_libraries(seed: int) -> None:
    rng = Random(seed)
    told = [(rng.choice([0.0, 0.25, 0.3, 0.7, 0.95, 1.0]), rng.random() < 0.5) for _ in range(12)]
    told += [(0.5, True), (0.5, False)]
    runs = [episode([turn(f"<confidence>{q}</confidence>"), turn("bye")], solved=y) for q, y in told]
    silent = [episode([turn("<confidence>1.5</confidence>")], solved=True)]
    found = calibration(logged({"a": runs[:5], "b": [*runs[5:], *silent]}))
    q, y = np.array([x for x, _ in told]), np.array([float(won) for _, won in told])
    place = np.digitize(q, np.arange(1, 10) / 10)
    errors = [
        abs(y[place == b].mean() - q[place == b].mean()) * (place == b).mean() for b in np.unique(place)
    ]
    assert found.value("ECE") == pytest.approx(sum(errors))
    assert found.value("Brier score") == pytest.approx(np.mean((y - q) ** 2))
    above = stats.mannwhitneyu(q[y == 1], q[y == 0]).statistic / ((y == 1).sum() * (y == 0).sum())
    assert found.value("AUROC") == pytest.approx(above)
    assert found.value("told a confidence") == pytest.approx(14 / 15)
    assert sum(row[1] for row in found.tables[0].rows) == 14  # type: ignore[misc]


def test_where_all_are_right_nothing_is_ranked_and_where_none_told_a_confidence_that_is_said() -> None:
    sure = episode([turn("<confidence>0.8</confidence>")], solved=True)
    found = calibration(logged({"a": [sure]}))
    assert (found.value("AUROC"), found.value("ECE")) == (None, pytest.approx(0.2))
    with pytest.raises(TurnwiseError, match=r"no run told a confidence(?s:.*)--instruction"):
        calibration(groups({"a": "10"}))


def test_signed_mass_counts_tokens_by_update_and_without_advantages_only_groups_are_told() -> None:
    def record(update: int, word: tuple[tuple[float, int], ...], *, solved: bool) -> Record:
        turns = [turn(logprobs=(-1.0,) * n) for _, n in word]
        return Record(
            episode(turns, solved=solved), update=update, advantages={"agent": tuple(a for a, _ in word)}
        )

    first = LoggedGroup(
        "a", (record(1, ((1.0, 3), (-0.5, 2)), solved=True), record(1, ((-1.0, 5),), solved=False))
    )
    second = LoggedGroup("b", (record(2, ((0.25, 4),), solved=True), record(2, ((0.0, 6),), solved=True)))
    found = signed_mass(LoggedGroups("by hand", (first, second)))
    assert [*found.tables[0].rows] == [(1, 0.3, 0.6, pytest.approx(1 / 3)), (2, 0.1, 0.0, 1.0)]
    assert found.value("positive mass per token") == pytest.approx(4 / 20)
    assert found.value("negative mass per token") == pytest.approx(6 / 20)
    assert found.value("positive share of the mass") == pytest.approx(0.4)
    assert found.value("misalignment of a group") == pytest.approx((0.5 + 0.0) / 2)
    plain = signed_mass(groups({"a": "11000000", "b": "1111"}))
    assert plain.value("misalignment of a group") == pytest.approx(0.75)
    assert plain.value("positive mass per token") is None


@pytest.mark.parametrize("n", [1, 2, 3])
def test_similarity_is_the_mean_over_pairs_of_what_can_be_paired_off(n: int) -> None:
    rng = Random(n)
    words = ["".join(rng.choice("ab") for _ in range(rng.randint(1, 5))) for _ in range(6)]
    each = [[word[i : i + n] for i in range(len(word) - n + 1)] or [word] for word in words]

    def shared(one: list[str], two: list[str]) -> float:
        left = [*two]
        both = [left.remove(gram) for gram in one if gram in left]
        return len(both) / ((len(one) + len(two)) / 2)

    by_task = [each[:4], each[4:]]
    wanted = np.mean(
        [np.mean([shared(*pair) for pair in itertools.combinations(task, 2)]) for task in by_task]
    )
    runs = [episode([turn(act) for act in word], solved=True) for word in words]
    found = similarity(logged({"a": runs[:4], "b": runs[4:]}), n=n)
    assert found.value(f"overlap of {n}-grams of acts") == pytest.approx(wanted)
    with pytest.raises(TurnwiseError, match="n=0 acts"):
        similarity(logged({"a": runs[:4]}), n=0)


@pytest.mark.parametrize("seed", range(20))
def test_the_horizon_is_that_of_a_tree_which_is_written_out(seed: int) -> None:
    """Every way through a random tree of three turns with two actions, played once, against the recursion on the tree."""
    rng = Random(seed)
    pay = {way: round(rng.uniform(0, 1), 3) for n in (1, 2, 3) for way in itertools.product("ab", repeat=n)}

    def q(way: tuple[str, ...], backups: int) -> float:
        """Q_k of the last action of ``way``; with one backup the mean of all returns below."""
        below = [(*way, x) for x in "ab"] if len(way) < 3 else []
        if not below:
            return pay[way]
        later = [q(one, max(1, backups - 1)) for one in below]
        return pay[way] + (max(later) if backups > 1 else sum(later) / len(later))

    def greedy(backups: int) -> float:
        way: tuple[str, ...] = ()
        total = 0.0
        for _ in range(3):
            way = max(((*way, x) for x in "ab"), key=lambda one: q(one, backups))
            total += pay[way]
        return total

    best = max(sum(pay[way[: n + 1]] for n in range(3)) for way in itertools.product("ab", repeat=3))
    wanted = next(k for k in (1, 2, 3) if abs(greedy(k) - best) < 1e-9)
    ways = [
        episode(
            [turn(way[n], pay[way[: n + 1]], state="".join(way[:n])) for n in range(3)], solved=True
        ).trajectory
        for way in itertools.product("ab", repeat=3)
    ]
    assert of_ways(ways, 10) == wanted
    counted = with_samples(ways, 10, Random(seed))
    assert wanted <= counted <= 3, "three backups leave nothing to chance, each return being certain"


def test_the_samples_of_a_horizon_are_those_that_binomials_ask_for() -> None:
    """One action earns 1, the other 1.9 in k of n runs: how often m drawn returns of it are less than m in the mean."""
    for high, runs in ((1, 2), (1, 4), (2, 5)):
        acts = [("a", 1.0), *(("b", 1.9 if i < high else 0.0) for i in range(runs))]
        ways = [episode([turn(*act, state="s")], solved=True).trajectory for act in acts]
        states = horizon_table(ways)
        m = samples(states, "s", 1.0, 1, Random(0))
        right = {n: _less_than_one(n, high / runs) for n in (1, 2, 4, 8)}
        assert right[m] > 0.4
        assert all(right[n] < 0.6 for n in right if n < m)


def _less_than_one(m: int, p: float) -> float:
    return sum(_comb(m, c) * p**c * (1 - p) ** (m - c) for c in range(m + 1) if 1.9 * c < m)


@pytest.mark.parametrize("seed", range(10))
def test_shaping_and_scale_change_no_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, r = rng.dirichlet(np.ones(4), (4, 3)), rng.normal(size=(4, 3, 4))
    phi, other = rng.normal(size=4), rng.normal(size=(4, 3, 4))
    shaped = 3 * (r + 0.9 * phi[None, None, :] - phi[:, None, None])
    a, b, c = (canonical(x, p, 0.9) for x in (r, shaped, other))
    assert distance(a, b) == pytest.approx(0, abs=1e-9)
    assert distance(a, c) == pytest.approx(distance(b, c))
    assert distance(a, canonical(-r, p, 0.9)) == pytest.approx(2)
    assert a.mean(1) == pytest.approx(np.zeros(4), abs=1e-9)  # centred under the uniform policy


def test_on_a_log_shaping_keeps_the_distance_and_another_aim_does_not() -> None:
    rng = Random(0)
    potential = {state: rng.uniform(-1, 1) for state in ("s", "l", "r")}

    def run(way: str, shaped: bool, good: str) -> object:
        first, second = ("l", way[1]) if way[0] == "l" else ("r", way[1])
        outcome = float(way == good)
        extra = (potential[first] - potential["s"], -potential[first]) if shaped else (0.0, 0.0)
        wrong = (0.0, 0.0) if shaped else (0.0, 2.0 * (way == "rx"))
        turns = [
            turn(
                way[0], extra[0] + wrong[0], state="s", parts={"outcome": 0.0, "other": extra[0] + wrong[0]}
            ),
            turn(
                second,
                outcome + extra[1] + wrong[1],
                state=first,
                parts={"outcome": outcome, "other": extra[1] + wrong[1]},
            ),
        ]
        return episode(turns, solved=outcome > 0)

    ways = ("lx", "ly", "rx", "ry")
    kept = starc(logged({"a": [run(way, True, "ly") for way in ways]}))  # type: ignore[misc]
    bent = starc(logged({"a": [run(way, False, "ly") for way in ways]}))  # type: ignore[misc]
    assert kept.value("distance to outcome") == pytest.approx(0, abs=1e-6)
    assert (bent.value("distance to outcome") or 0) > 0.5


@pytest.mark.parametrize("seed", range(10))
def test_the_power_law_is_least_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, noise = np.sort(rng.uniform(1, 1000, 9)), rng.normal(0, 0.05, 9)
    points = [(float(a), float(b)) for a, b in zip(x, np.exp(-0.2 * np.log(x) - 0.1 + noise), strict=True)]
    fit = fit_power(points)
    slope, offset = np.polyfit(np.log(x), [np.log(loss) for _, loss in points], 1)
    assert (fit.slope, fit.offset) == pytest.approx((-slope, offset))
    assert fit.interval is not None
    assert fit.interval.low < fit.slope < fit.interval.high
    assert fit.loss(fit.needed(0.5) or 0) == pytest.approx(0.5)
    sizes = np.array([1e9, 3e9, 9e9, 30e9])
    slopes = capacity_noisy(sizes, rng)
    top, half = fit_capacity([*sizes], [*slopes])
    (wanted_top, wanted_half), _ = optimize.curve_fit(
        lambda n, K, N: K / (1 + N * 1e9 / n), sizes, slopes, p0=(0.1, 3.0)
    )
    assert (top, half / 1e9) == pytest.approx((wanted_top, wanted_half), rel=1e-4)


def capacity_noisy(sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.array([capacity(n, 0.12, 5e9) for n in sizes]) * rng.uniform(0.98, 1.02, sizes.size)


@pytest.mark.parametrize("name", audits_of("tasks"))
def test_an_audit_of_tasks_is_in_the_page_of_task_sets(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "how-to" / "task-sets.md").read_text("utf-8")


@pytest.mark.parametrize(("subject", "name"), [one for one in ALL if one[0] != "tasks"])
def test_an_audit_names_its_rows_and_is_in_the_page_with_its_options(subject: str, name: str) -> None:
    audit = audits_of(subject)[name]
    page = (ROOT / "docs" / "how-to" / "audit.md").read_text("utf-8")
    line = next(line for line in page.splitlines() if line.startswith(f"| `{subject}` | `{name}` |"))
    assert audit.summary.endswith(".")
    for row in audit.rows:
        assert re.search(rf"\b{row}\b", line)
    documented = inspect.getdoc(audit.find) or ""
    for option in options_of(audit):
        assert f"`{option}`" in line
        assert f"    {option}: " in documented


def test_what_is_missing_is_told_with_its_remedy_and_asked_for_by_name_it_is_an_error() -> None:
    played = answered([("a", 0.9, True), ("b", 0.2, False)])
    report = audit_all("log", played, ["by hand"])
    told = {refusal.name: f"{refusal.cause} {refusal.remedy}" for refusal in report.refused}
    assert "no signal 'principle'" in told["minima"]
    assert "--judge" in told["minima"]
    assert "best_of" in told  # no score is named
    with pytest.raises(TurnwiseError, match="no log-probabilities"):
        audit_all("log", played, ["x"], measures=["unseen", "best_of"], options={"score": "confidence"})
    with pytest.raises(TurnwiseError, match="Did you mean 'spread'"):
        audit_all("log", played, ["x"], measures=["spraed"])
    with pytest.raises(TurnwiseError, match="Did you mean 'score'"):
        audit_all("log", played, ["x"], options={"scor": "a"})
    with pytest.raises(TurnwiseError, match="which is not a whole number"):
        audit_all("log", played, ["x"], options={"k": "many"})


def test_a_score_of_confidence_and_a_signal_is_their_weighted_sum() -> None:
    right = episode([turn("a", signals={"judge": 0.2}, logprobs=(-0.1, -0.3))], solved=True)
    wrong = episode([turn("b", signals={"judge": 0.5}, logprobs=(-2.0, -2.0))], solved=False)
    played = logged({"t": [right, wrong]})
    for score, wanted in (
        ("judge", 0.0),
        ("confidence", 1.0),
        ("0.9*judge+0.1*confidence", 0.0),
        ("0.5*judge+0.5*confidence", 1.0),
    ):
        found = audit_all("log", played, ["x"], measures=["best_of"], options={"score": score}).findings[
            "best_of"
        ]
        assert found.value("reranked") == wanted, score


def test_a_success_counts_for_cot_pass_only_where_every_turn_was_called_right() -> None:
    """Two of ten runs are right by right steps: the book's .3778 of two; three more are right by a step that is not."""
    runs = [(True, 0.9), (True, 0.6), *[(True, 0.4)] * 3, *[(False, 0.9)] * 5]
    played = logged(
        {"t": [episode([turn(signals={"ok": 0.7}), turn(signals={"ok": q})], solved=y) for y, q in runs]}
    )

    def of(k: str, **options: str) -> dict[str, float | None]:
        asked = {"score": "ok", "k": k, **options}
        found = audit_all("log", played, ["x"], measures=["cot_pass"], options=asked).findings["cot_pass"]
        return {figure.name: figure.value for figure in found.figures}

    assert of("2") == pytest.approx(
        {"pass of 1": 0.5, "CoT-pass of 1": 0.2, "pass of 2": 1 - 10 / 45, "CoT-pass of 2": 1 - 28 / 45}
    )
    assert of("1", threshold="0.7")["CoT-pass of 1"] == pytest.approx(0.1)
    assert of("1", fold="last", threshold="0.6")["CoT-pass of 1"] == pytest.approx(0.2)
    assert of("1", score="-1*ok", threshold="-0.4", fold="last")["CoT-pass of 1"] == pytest.approx(0.3)


def test_a_judge_that_remembers_is_asked_about_a_log_too() -> None:
    played = logged({"a": [episode([turn(), turn()], solved=True)]})
    found = judged(played, "oni", f"python:{groups_check.__name__}:cannot_say")
    assert [[t.signals["oni"] for t in one.trajectory.turns] for one in found.groups[0].episodes] == [[0, 0]]


def test_evaluations_under_other_conditions_are_set_against_each_other_only_where_that_is_asked_for() -> None:
    sides = random_sides(Random(0))
    assert {"conditions", "known"} & set(audit_all("eval", sides, ["a", "b"]).findings) == set()
    assert set(audit_all("eval", sides, ["a", "b"], measures=["known"]).findings) == {"known"}


def test_one_success_among_failures_is_told_by_some_folds_and_not_by_others() -> None:
    def run(*scores: float, solved: bool) -> Episode:
        return episode([turn(signals={"principle": x}) for x in scores], solved=solved)

    played = logged(
        {
            "a": [run(0.9, 0.6, solved=True), run(0.7, 0.8, solved=False), run(0.95, 0.1, solved=False)],
            "b": [run(0.4, solved=True), run(0.4, solved=False)],  # a tie loses
            "c": [run(0.4, solved=True)],
        }
    )
    found = audits_of("log")["reward_math"].find(played)
    assert found.value("tasks with both") == 2
    accuracy = {
        name: found.value(f"accuracy by {name}") for name in ("min", "max", "last", "product", "mean odds")
    }
    assert accuracy == {"min": 0.0, "max": 0.0, "last": 0.0, "product": 0.0, "mean odds": 0.0}
    few = audits_of("log")["reward_math"].find(played, failures=1)
    assert few.value("accuracy by max") == 0.5
    for one, rank in ((found, 0.5), (few, 0.75)):
        assert [row[2] for row in one.tables[0].rows if row[0] == "max"] == [rank]
    with pytest.raises(TurnwiseError, match="nothing to compare"):
        audits_of("log")["reward_math"].find(played, failures=0)


def test_gold_finds_every_flaw_that_is_put_into_a_good_episode(tmp_path: Path) -> None:
    turnwise.rollout("household/easy", "scripted:gold", episodes=8, log=tmp_path / "episodes.jsonl.zst")
    played = read_log(tmp_path)
    found = audits_of("log")["flaws"].find(played)
    assert found.value("good episodes called flawed") == 0.0
    for name in FLAWS:
        assert (found.value(f"{name}: flaws") or 0) >= 2, name
        assert found.value(f"{name}: found") == 1.0
        assert next(row for row in found.tables[0].rows if row[0] == name)[3] == 1.0
    with pytest.raises(TurnwiseError, match="does not say which turns"):
        audits_of("log")["flaws"].find(played, judge="biprm")
    (one,) = played.groups[0].records
    again = replayed(one, [t.action for t in one.episode.trajectory.turns])
    assert [t.state_key for t in again.trajectory.turns] == [
        t.state_key for t in one.episode.trajectory.turns
    ]
    assert again.success


class Remembering:
    """Completes the texts that it has seen, and guesses at others."""

    name, version = "remembering", 0

    def __init__(self, *seen: str) -> None:
        self.seen, self.shown = seen, set[int]()

    async def act(self, history: History) -> Reply:
        begun = history.messages()[-1].content.rpartition("\n\n")[2]
        self.shown.add(len(begun.split()))
        known = next((text for text in self.seen if text.startswith(begun)), f"{begun} 7 * 3")
        return Reply(Message("assistant", known.removeprefix(begun)))

    def close(self) -> None: ...


def test_texts_that_were_seen_are_completed_and_drawn_ones_are_not() -> None:
    """RandomCalculation's test: of ten statements the four that a model saw; of drawn expressions none."""
    statements = [f"Item {n} has a red box and a blue box of {n} balls" for n in range(10)]
    model = Remembering(*statements[:4])
    found = asyncio.run(completed([*statements, "short"], model))
    assert found.mean == 0.4
    assert model.shown == {7}, "60 % of thirteen words, rounded down"
    assert found.interval == pytest.approx(wilson(4, 10))
    assert asyncio.run(completed(statements[:4], model, 0.8)).mean == 1.0
    drawn = [task.prompt for task in suite_tasks(get_suite("calc/easy"), Split.TEST, 20)]
    assert asyncio.run(completed(drawn, model)).mean == 0.0
    with pytest.raises(TurnwiseError, match="None of 1 texts"):
        asyncio.run(completed(["short"], model))
