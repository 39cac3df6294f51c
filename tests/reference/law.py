"""Compares a part with its formula on random batches; one function for each kind."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from losses import Played
from minibatches import loss_law, minibatch, token_rows
from plain import REFERENCES, Law, Refused, agree, refuses
from ragged import Ragged, padded, ragged
from torch import Tensor

from turnwise.agents.core import Turn
from turnwise.envs.core import EndReason
from turnwise.errors import RecipeError
from turnwise.registry import Component, get_component
from turnwise.trainers.core import SEAMS, PartState, ScheduleMoment, TokenCredit
from turnwise.trainers.kit.bracket import standings
from turnwise.trainers.kit.reward_edits import replace_turns, with_signals
from turnwise.trainers.kit.toy_batches import episode, row_mask, with_calls, with_tokens, with_words
from turnwise.trainers.sampler.refill import refill_weights

KINDS = (*SEAMS, "schedule")
BATCHES = (
    *range(11),
    60,
    81,
)  # the last two have ends of trajectories whose numbers could be taken for states
SHARED = {("sampler", "refill"): refill_weights, ("judge", "bracket"): standings}
"""What several parts share and has a formula of its own, by a name that no part has."""


def part_of(kind: str, name: str) -> Component:
    """The part, or what is shared under this name."""
    shared = SHARED.get((kind, name))
    if shared is None:
        return get_component(kind, name)
    return Component(kind, name, shared, shared.__module__, shared.__code__.co_filename)


def options_of(kind: str, name: str) -> dict[str, Any]:
    return part_of(kind, name).options


def variants(kind: str, name: str) -> Iterator[dict[str, Any]]:
    """The defaults, each option's other values alone, all first ones together, and what else is tried."""
    yield {}
    given = REFERENCES[kind, name].options
    for option, values in given.items():
        for value in values:
            yield {option: value}
    if len(given) > 1:
        yield {option: values[0] for option, values in given.items()}
    yield from (dict(one) for one in REFERENCES[kind, name].also)


def check(
    kind: str, name: str, options: Mapping[str, Any], instead: Callable[..., Any] | None = None
) -> None:
    """Raise AssertionError where the part, or what is given instead of it, gives something else than its formula."""
    known = REFERENCES[kind, name]
    part = functools.partial(instead, **options) if instead else part_of(kind, name).build(options)
    law = known.law or LAWS[kind]
    made = part() if kind == "loss" and isinstance(part.func, type) else part
    law(name, made, functools.partial(known.formula, **options))


# --- rules, filters and shapes ------------------------------------------------------------------------------------


def numbers(found: Tensor | TokenCredit, r: Ragged) -> list[float]:
    """Of every turn, or of every sampled token, trajectory by trajectory."""
    batch = r.batch()
    if isinstance(found, Tensor):
        assert not found[~batch.mask_BK].any()
        return found[batch.mask_BK].tolist()
    view, given = batch.tokens, found.advantage_RT
    assert view is not None
    assert not given[~view.mask_RT].any()
    return given[view.mask_RT].tolist()


def flat(x: Any) -> list[float]:
    return [b for a in x for b in flat(a)] if isinstance(x, list) else [x]


def compare(found: Tensor | TokenCredit, expected: Any, r: Ragged, said: str) -> None:
    given, wanted = numbers(found, r), flat(expected)
    assert len(given) == len(wanted), f"{said}: turns or tokens"
    for place, (a, b) in enumerate(zip(given, wanted, strict=True)):
        agree(a, b, f"{said}, place {place}")


def credit_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    for seed in BATCHES:
        r = ragged(seed)
        try:
            expected = formula(r)
        except Refused:
            refuses(lambda r=r: part(r.batch()))
            continue
        compare(part(r.batch()), expected, r, f"batch {seed}")


def units(r: Ragged, seed: int, *, tokens: bool) -> list[list[list[float]]]:
    """Advantages of both signs, some of them 0 or equal, a whole group of nothing now and then."""
    rng = random.Random(f"units {seed} {tokens}")
    quiet = rng.choice([None, 0, 1]) if seed < 5 else None
    if seed in (12, 13):  # a success and a failure
        return [
            [[1.0 - 2 * (i % 2)] * (len(turn) if tokens else 1) for turn in row]
            for i, row in enumerate(r.ids)
        ]
    size = [rng.choice([0.02, 1.0]) for _ in r.rewards]
    return [
        [
            [
                0.0 if r.group[i] == quiet else 0.5 if rng.random() < 0.1 else rng.choice([0.0, size[i] * rng.gauss(0, 1)] if rng.random() < 0.3 else [rng.gauss(0, 1)])
                for _ in (turn if tokens else [0])
            ]
            for turn in row
        ]
        for i, row in enumerate(r.ids)
    ]  # fmt: skip


def as_credit(r: Ragged, A: list[list[list[float]]], *, tokens: bool) -> Tensor | TokenCredit:
    if not tokens:
        return padded([[x for (x,) in row] for row in A])
    named = dataclasses.replace(r, tokens={"A": A}).batch().tokens
    assert named is not None
    return TokenCredit(named.signals["A"] * named.mask_RT)


def shape_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    takes = REFERENCES["shape", name].tokens
    for seed in BATCHES:
        r = ragged(seed)
        A = units(r, seed, tokens=False)
        spread = [
            [turn * len(said) for turn, said in zip(row, ids, strict=True)]
            for row, ids in zip(A, r.ids, strict=True)
        ]
        given = spread if takes == "tokens" else A
        try:
            expected = formula(r, given)
        except Refused:
            refuses(lambda r=r, A=A: part(as_credit(r, A, tokens=False), r.batch()))
            continue
        compare(part(as_credit(r, A, tokens=False), r.batch()), expected, r, f"turns, batch {seed}")
        B = units(r, seed, tokens=True)
        if takes == "turns":
            try:
                part(as_credit(r, B, tokens=True), r.batch())
            except RecipeError:
                continue
            raise AssertionError("It takes advantages that differ within a turn.")
        compare(part(as_credit(r, B, tokens=True), r.batch()), formula(r, B), r, f"tokens, batch {seed}")


def filter_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    for seed in (*BATCHES, 14):
        r = ragged(seed)
        for tokens in (False, True):
            A = units(r, seed, tokens=tokens)
            credit = as_credit(r, A, tokens=tokens)
            found, expected = part(r.batch(), credit).tolist(), formula(r, A)
            for i, (a, b) in enumerate(zip(found, expected, strict=True)):
                assert math.isclose(a, b, rel_tol=1e-6), f"batch {seed}, trajectory {i}: {a} is not {b}"


def law_of_the_empty(kind: str, name: str, instead: Callable[..., Any] | None = None) -> None:
    """A trajectory that ended before its first turn changes nothing into NaN, and a batch of such trajectories neither."""
    part = instead or get_component(kind, name).build({})
    for empty in ((0, 3), range(100)):
        r = ragged(1)
        for rows in (r.rewards, r.states, r.ids, r.memory, *r.turns.values(), *r.tokens.values()):
            rows[:] = [[] if i in empty else row for i, row in enumerate(rows)]  # pyright: ignore
        batch, credit = r.batch(), as_credit(r, units(r, 1, tokens=False), tokens=False)
        found = (
            part(batch, credit)
            if kind == "filter"
            else part(credit, batch)
            if kind == "shape"
            else part(batch)
        )
        assert (found.advantage_RT if isinstance(found, TokenCredit) else found).isfinite().all()


# --- corrections and denominators -----------------------------------------------------------------------------------


def _options(part: Any) -> Mapping[str, Any]:
    return part.keywords


def correction_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    for seed in BATCHES:
        given, batch = minibatch(seed)
        rows = token_rows(given, batch)
        found = part(rows)
        assert not found[~rows.mask_RT].any()
        for at in batch.tokens:
            agree(found[at].item(), formula(batch, at), f"batch {seed}, token {at}")


def reduce_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    for seed in BATCHES:
        rng = random.Random(f"reduce {seed}")
        owner = [0, 1, 1, 3, 4]
        turns = [sorted(rng.choice([-1, 0, 1, 2]) for _ in range(rng.randint(1, 6))) for _ in owner]
        if seed == 0:  # a single token
            owner, turns = [2], [[-1, 1]]
        tokens = {(r, t): (owner[r], k) for r, row in enumerate(turns) for t, k in enumerate(row) if k >= 0}
        found, expected = part(row_mask(turns, owner)), formula(tokens) if tokens else {}
        for r in range(found.shape[0]):
            for t in range(found.shape[1]):
                assert math.isclose(found[r, t].item(), expected.get((r, t), 0.0), rel_tol=1e-6), (seed, r, t)


# --- rewards ----------------------------------------------------------------------------------------------------------

ENDS = [EndReason.SOLVED, EndReason.FAILED, EndReason.FAILED, EndReason.TURN_LIMIT, EndReason.TOKEN_LIMIT]


NEAR = [(0.5, 0.6, 0.4), (0.9, 0.95), (0.1, 0.0), (0.1, 0.12), (0.88, 0.9), (0.5, 0.2), (0.55, 0.2)]
SCORES = {k: NEAR[k % len(NEAR)] for k in range(28)}
"""By group: scores of failures, at or near what parts ask for. Some of these
episodes ended before their first turn, and in every other group none is solved."""


SAME, TWICE = ("principle", "rlpr", "care", "par", "rlbff"), ("standing", "reference_kl")
"""Signals of a turn: a number, and twice that number."""


def plays(seed: int) -> tuple[list[Any], list[Played]]:
    """Episodes with several reward components, some of which lack one, and the same in plain lists."""
    rng = random.Random(f"rewards {seed}")
    episodes: list[Any] = []
    plain: list[Played] = []
    for _ in range(6 if seed in SCORES else rng.randint(1, 6)):
        n = rng.choice([0, 1, 2] if seed in SCORES else [1, 2, 3, 4])
        end = rng.choice(ENDS[1:] if seed in SCORES and seed % 2 else ENDS)
        solved = end is EndReason.SOLVED and n > 0
        scores = SCORES.get(seed, (0.0, 0.0, 0.3))
        paid = {"outcome": ([0.0] * (n - 1) + [1.0 if solved else rng.choice(scores)])[:n]}
        for name in ("progress", "cost", "entity"):
            if rng.random() < 0.7:
                paid[name] = [round(rng.uniform(-0.3, 1), 3) for _ in range(n)]
        q = [rng.uniform(0, 1) for _ in range(n)]
        last = {"entities": rng.choice([0.0, 0.25, 0.75]), "named": rng.choice([0.0, 0.5, 1.0])}
        said: dict[str, Any] = {} if end.truncated else {**last, "malformed": rng.random() < 0.2}
        details: list[dict[str, Any]] = [*({} for _ in range(n - 1)), said][:n]
        made = episode(
            paid["outcome"], parts={k: v for k, v in paid.items() if k != "outcome"}, details=details, end=end
        )
        told = with_signals(made, [dict.fromkeys(SAME, x) | dict.fromkeys(TWICE, 2 * x) for x in q])
        lacking = (
            {"progress": rng.randrange(n), "cost": rng.randrange(n)} if n > 1 and rng.random() < 0.4 else {}
        )
        for name, k in lacking.items():
            if name in paid:
                paid[name][k] = 0.0
        episodes.append(
            replace_turns(
                told, lambda turns, gone=lacking: [_without(t, gone, k) for k, t in enumerate(turns)]
            )
        )
        plain.append(Played(paid, q, details, solved))
    return _spoken(episodes, plain, seed), plain


def _spoken(episodes: list[Any], plain: list[Played], seed: int) -> list[Any]:
    """The episodes with messages: tokens, calls, a confidence now and then, acts that nobody could read."""
    rng, found = random.Random(f"words {seed}"), list[Any]()
    for one, e in zip(episodes, plain, strict=True):
        n = len(e.signal)
        e.tokens = [rng.choice([0, 0, 5, 30, 70]) for _ in range(n)]
        e.calls = [
            [(rng.choice(["look", "ask"]), rng.randrange(3)) for _ in range(rng.randrange(3))]
            for _ in range(n)
        ]
        e.confidence = [
            rng.choice(["", "", "0.25", "1", "0", "1.5", "0.8", "0.2 0.7", "1 0..5"]) for _ in range(n)
        ]
        e.bad, e.seed = [rng.random() < 0.15 for _ in range(n)], rng.getrandbits(20)
        said = ["".join(f"<confidence>{q}</confidence>" for q in turn.split()) for turn in e.confidence]
        calls = [[(name, _arguments(x, rng)) for name, x in turn] for turn in e.calls]
        heard = with_calls(with_words(with_tokens(one, e.tokens), said), calls)
        found.append(
            dataclasses.replace(replace_turns(heard, lambda turns, e=e: _bad(turns, e)), seed=e.seed)
        )
    return found


def _arguments(x: int, rng: random.Random) -> dict[str, int]:
    """The same two in one order or the other."""
    return {"at": x, "by": 1} if rng.random() < 0.5 else {"by": 1, "at": x}


def _bad(turns: Sequence[Turn], e: Played) -> list[Turn]:
    return [dataclasses.replace(turn, bad_action=bad) for turn, bad in zip(turns, e.bad, strict=True)]


def _without(turn: Turn, gone: Mapping[str, int], k: int) -> Turn:
    """The turn without the reward components that it lacks."""
    rewards = {name: x for name, x in turn.rewards.items() if gone.get(name) != k}
    return dataclasses.replace(turn, rewards=rewards, reward=float(sum(rewards.values())))


def reward_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    for seed in range(40):
        episodes, plain = plays(seed)
        try:
            wanted = formula(plain)
        except Refused:
            refuses(lambda episodes=episodes: part(episodes))
            break
        changed = part(episodes)
        if "component" in _options(part):
            named = {part_name for e in changed for turn in e.trajectory.turns for part_name in turn.rewards}
            assert _options(part)["component"] in named
        found = [[turn.reward for turn in e.trajectory.turns] for e in changed]
        for i, (given, expected) in enumerate(zip(found, wanted, strict=True)):
            for k, (a, b) in enumerate(zip(given, expected, strict=True)):
                agree(a, b, f"group {seed}, episode {i}, turn {k}")


# --- schedules --------------------------------------------------------------------------------------------------------


def moments() -> Iterator[ScheduleMoment]:
    """Runs of several lengths, before and after their ends; with metrics and without."""
    for updates in (1, 2, 6, 12):
        for update in range(updates + 4):
            rng = random.Random(f"moment {updates} {update}")
            first, last = rng.uniform(-1, 2), rng.uniform(0.1, 2)
            every = {"kl_reference": rng.choice([0.02, 0.1, 0.105, 0.5]), "seconds": rng.uniform(0.28, 0.4)}
            yield ScheduleMoment(update, updates, first, last, every)
            yield ScheduleMoment(update, updates, first, last, {"other": 1.0})


def runs_of_moments() -> Iterator[list[ScheduleMoment]]:
    """The moments of whole runs, in order, for schedules that remember: some metrics come now and then."""
    for number in range(8):
        rng = random.Random(f"run {number}")
        known: dict[str, float] = {}
        run = [ScheduleMoment(0, 24, 1.0, 1.0)]
        for update in range(1, 24):
            fresh = {"seconds": rng.choice([0.1, 0.2, 0.3])} if rng.random() < 0.7 else {}
            if update % (1 + number % 3) == 0:
                fresh["dev_success"] = rng.choice([0.4, 0.41, 0.42])
            if number % 2 == 0:
                fresh["kl_reference"] = rng.choice([0.0, 0.05, 0.1, 0.1, 0.11, 0.05])
            known |= fresh
            run.append(ScheduleMoment(update, 24, 1.0, 1.0, {**known}, frozenset(fresh)))
        yield run


def remembering_law(make: Callable[..., Any], formula: Callable[..., Any]) -> None:
    """Moment after moment, each by another object that goes on from the last one's state."""
    for run in runs_of_moments():
        state, last = PartState(), run[0].first
        for n, now in enumerate(run, start=1):
            try:
                expected = formula(run[:n])
            except Refused:
                refuses(lambda now=now: make()(now))
                break
            schedule = make()
            if n > 1:
                schedule.restore(PartState(json.loads(json.dumps({**state.numbers}))))
            found = schedule(now._replace(last=last))
            agree(found, expected, str(now))
            state, last = schedule.state(), found


def schedule_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    if inspect.isclass(getattr(part, "func", part)):
        remembering_law(part, formula)
        return
    for now in moments():
        try:
            expected = formula(now)
        except Refused:
            refuses(lambda now=now: part(now))
            continue
        agree(part(now), expected, str(now))


# --- what is no formula -----------------------------------------------------------------------------------------------


def requirement_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    """The reference is given the part, which options are fixed for, and asserts what it must do."""
    formula(part)


LAWS: dict[str, Law] = dict.fromkeys(KINDS, requirement_law) | {
    "schedule": schedule_law,
    "credit": credit_law,
    "shape": shape_law,
    "filter": filter_law,
    "loss": loss_law,
    "correction": correction_law,
    "reduce": reduce_law,
    "reward": reward_law,
}
