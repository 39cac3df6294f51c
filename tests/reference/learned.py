"""Signals that learn: heads on the policy's hidden states, and copies of the policy that tell success from failure."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from measured import (
    BETA,
    Part,
    TokensAt,
    Turns,
    context,
    logp_of,
    measured,
    near,
    near_tokens,
    of_turns,
    row,
    scene,
    shop,
    tokens_of,
)
from plain import reference, refuses
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.registry import get_component
from turnwise.trainers.check.small_policy import WIDTH, signal_setup, small_model
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.model import ValueHead
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, SignalContext


def hidden_of(model: Any, ids: Sequence[int]) -> Tensor:
    with torch.no_grad():
        return model.model(input_ids=torch.tensor([[*ids]])).last_hidden_state[0]


def lively(head: Any) -> None:
    """Weights that say something; a head begins at 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for weight in head.parameters():
            torch.nn.init.normal_(weight, std=0.3)


def begins_as(signal: Any, seed: int) -> None:
    """The head begins with the weights that this seed draws."""
    fresh = ValueHead(WIDTH, seed=seed).state_dict()
    assert all(torch.equal(x, fresh[name]) for name, x in signal.module.state_dict().items())


def all_gaps(signal: Any, see: SignalContext, batch: TrainingBatch, credit: Any) -> dict[str, list[float]]:
    """Every prediction − target of a batch that is read in one piece."""
    rows, found = batch.rows, dict[str, list[float]]()
    seen = PassPart(see.learner.reader, see.learner.model, rows, torch.arange(len(rows.token_RT)))
    for gap in signal.gaps(seen, batch, credit):
        found.setdefault(gap.metric, []).extend(gap.gap_N.tolist())
        found[f"{gap.metric} of {gap.unit}"] = [] if gap.owner_N is None else gap.owner_N.tolist()
    return found


@reference("signal", "progress")
def progress(make: Part) -> None:
    batch, groups = scene()
    signal, see = make(signal_setup(get_component("signal", "progress"))), context("progress")
    assert signal.sums_over_turns
    begins_as(make(dataclasses.replace(signal_setup(get_component("signal", "progress")), seed=5)), 6)
    lively(signal.module)
    places = tokens_of(batch)
    values: Turns = []
    for b, n in enumerate(batch.turns.length_B.tolist()):
        ends = [places[b, k][-1] for k in range(int(n))]
        values.append(
            [signal.module(hidden_of(see.learner.model, row(batch, r))[t][None]).item() for r, t in ends]
        )
    found = measured(signal, see, batch, groups)
    near(of_turns(found.turn["progress"], batch), values, "progress")
    gaps = all_gaps(signal, see, batch, torch.zeros(batch.turns.mask_BK.shape))
    share = [r / n for r, n in zip(batch.turns.return_B.tolist(), batch.turns.length_B.tolist(), strict=True)]
    near([gaps["progress_error"]], [[v - share[b] for b, of in enumerate(values) for v in of]], "gap")
    assert gaps["progress_error of trajectories"] == [b for b, of in enumerate(values) for _ in of]


@reference(
    "signal", "value", expectile=[0.9, 0.2, 0.0, 1.0], fit=["fork_value"], form=["verifier"],
    also=[{"fit": "fork_value", "form": "verifier"}],
)  # fmt: skip
def value(make: Part, expectile: float = 0.5, fit: str = "", form: str = "value") -> None:
    if expectile in (0, 1) or (form == "verifier" and expectile != 0.5):
        refuses(lambda: make(signal_setup(get_component("signal", "value"))))
        return
    if fit or form == "verifier":
        fitted(make, expectile, fit, form)
        return
    batch, groups = scene()
    entry, see = get_component("signal", "value"), context("value")
    places, K = tokens_of(batch), batch.turns.mask_BK.shape[1]
    lengths = [int(n) for n in batch.turns.length_B.tolist()]
    looks_at_the_end(make)
    for critic in ("advantages", "returns"):
        for needs in ({"value", "last_value", "token_value"}, {"value", "last_value"}, {"token_value"}):
            setup = dataclasses.replace(signal_setup(entry), needs=frozenset(needs), critic=critic)
            begins_as(make(dataclasses.replace(setup, seed=5)), 5)
            signal = make(setup)
            assert not signal.sums_over_turns
            lively(signal.module)

            def at(r: int, t: int, signal: Any = signal) -> float:
                return signal.module(hidden_of(see.learner.model, row(batch, r))[t][None]).item()

            state = [[at(*_before(batch, b, k)) for k in range(n)] for b, n in enumerate(lengths)]
            token = {(r, t): at(r, t - 1) for of in places.values() for r, t in of}
            found = measured(signal, dataclasses.replace(see, renderer=None), batch, groups)  # pyright: ignore
            assert {*found.turn, *found.token} == needs
            if "value" in needs:
                near(of_turns(found.turn["value"], batch), state, "value")
                last = [
                    at(
                        int(batch.rows.state_row_BK[b, n - 1]),
                        int(batch.rows.length_R[int(batch.rows.state_row_BK[b, n - 1])]) - 1,
                    )
                    if batch.turns.truncated_B[b]
                    else 0.0
                    for b, n in enumerate(lengths)
                ]
                near([found.turn["last_value"].tolist()], [last], "last value")
            if "token_value" in needs:
                near_tokens(found.token["token_value"], token, "token value")
            view = batch.turns.tokens
            assert view is not None
            told = dataclasses.replace(
                batch.turns,
                signals={"value": found.turn.get("value")},
                tokens=dataclasses.replace(view, signals={"token_value": found.token.get("token_value")}),
            )
            credit_BK = (
                torch.arange(len(lengths) * K, dtype=torch.float64).view(-1, K).sin() * batch.turns.mask_BK
            )
            gaps = all_gaps(signal, see, batch._replace(turns=told), credit_BK)
            rewards = [x[:n] for x, n in zip(batch.turns.reward_BK.tolist(), lengths, strict=True)]
            aim = [
                [
                    sum(rewards[b][k:]) if critic == "returns" else credit_BK[b, k].item() + state[b][k]
                    for k in range(n)
                ]
                for b, n in enumerate(lengths)
            ]
            if "token_value" in needs:
                expected = [
                    token[place]
                    - (sum(rewards[b][k:]) if critic == "returns" else credit_BK[b, k].item() + token[place])
                    for place, (b, k) in sorted((place, turn) for turn, of in places.items() for place in of)
                ]
            else:
                expected = [
                    v - g
                    for one, other in zip(state, aim, strict=True)
                    for v, g in zip(one, other, strict=True)
                ]
            leaning = [math.sqrt(2 * (1 - expectile if far > 0 else expectile)) * far for far in expected]
            near([gaps["value_error"]], [leaning], f"gap, {critic}")
            assert gaps[f"value_error of {'tokens' if 'token_value' in needs else 'turns'}"] == []


def fitted(make: Part, expectile: float, fit: str, form: str) -> None:
    """To what a strategy measured, or to returns; as a chance by its own cross-entropy, by torch's."""
    batch, groups = scene()
    entry, see = get_component("signal", "value"), context("value")
    of = {"each token": {"value", "token_value", fit}, "is to be fitted": {"value"}}
    for said, needs in of.items() if fit else [("each token", {"token_value"})]:
        setup = dataclasses.replace(signal_setup(entry), needs=frozenset(needs))
        assert said in refuses(lambda setup=setup: make(setup))
    lengths, K = [int(n) for n in batch.turns.length_B.tolist()], batch.turns.mask_BK.shape[1]
    told = [[0.7, 0.2, 0.9], [0.6, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.8], [0.5, 0.0], [0.51, 0.6]]
    told_BK = torch.zeros(len(lengths), K)
    for b, n in enumerate(lengths):
        told_BK[b, :n] = torch.tensor((told[b] + told[0])[:n])
    model = see.learner.model
    for high in (0.0, 0.6):  # in the second case nothing is above a half
        given_BK = (told_BK - high).clamp(min=0.0 if high == 0 else 0.01) * batch.turns.mask_BK
        turns = dataclasses.replace(
            batch.turns, signals={"fork_value": given_BK}, reward_BK=batch.turns.reward_BK.abs() / 4
        )
        setup = dataclasses.replace(
            signal_setup(entry), needs=frozenset({"value", *([fit] if fit else [])}), critic="returns"
        )
        signal = make(setup)
        lively(signal.module)
        state = [
            [
                signal.module(hidden_of(model, row(batch, r))[t][None]).item()
                for r, t in (_before(batch, b, k) for k in range(n))
            ]
            for b, n in enumerate(lengths)
        ]
        assert form == "value" or all(0 < x < 1 for of in state for x in of)
        found = measured(signal, dataclasses.replace(see, renderer=None), batch, groups)  # pyright: ignore
        near(of_turns(found.turn["value"], batch), state, "value")
        rewards = [x[:n] for x, n in zip(turns.reward_BK.tolist(), lengths, strict=True)]
        aims = [
            [given_BK[b, k].item() if fit else sum(rewards[b][k:]) for k in range(n)]
            for b, n in enumerate(lengths)
        ]
        gaps = all_gaps(signal, see, batch._replace(turns=turns), torch.zeros(batch.turns.mask_BK.shape))
        pairs = [list(zip(v, g, strict=True)) for v, g in zip(state, aims, strict=True)]
        if form == "value":
            wanted = [
                math.sqrt(2 * (1 - expectile if v > g else expectile)) * (v - g)
                for of in pairs
                for v, g in of
            ]
        else:
            shown = [[k for k in range(len(g)) if 0.0 not in g[:k]] for g in aims]
            sides = [g[k] > 0.5 for g, ks in zip(aims, shown, strict=True) for k in ks]
            each = {
                side: 0.5 * len(sides) / sides.count(side) if len({*sides}) == 2 else 1.0 for side in sides
            }
            wanted = [
                math.sqrt(each[g > 0.5] * divergence(g, v)) * (1 if v >= g else -1) if k in ks else 0.0
                for of, ks in zip(pairs, shown, strict=True)
                for k, (v, g) in enumerate(of)
            ]
        near([gaps["value_error"]], [wanted], f"gap of {form}", 1e-4)
        assert gaps["value_error of turns"] == []


def divergence(of: float, by: float) -> float:
    """KL of one coin from another; a target beyond 1 is one that never fails."""
    of = min(1.0, of)
    return sum(x * math.log(x / y) for x, y in ((of, by), (1 - of, 1 - by)) if x > 0)


@functools.cache
def long_ends() -> tuple[TrainingBatch, list[Group]]:
    """The shop's groups, cut by a limit at turns of their own, so that they have seen what nobody answered."""
    _, groups, _, _ = shop()
    ended = [
        dataclasses.replace(_seeing(one, 2 + i), end=EndReason.TURN_LIMIT if i else EndReason.FAILED)
        for group in groups
        for i, one in enumerate(group)
    ]
    return collate([ended]), [ended]


def _seeing(episode: Episode, turns: int) -> Episode:
    one = episode.trajectory
    cut = dataclasses.replace(one, turns=one.turns[:turns], final=one.turns[turns].observation)
    return dataclasses.replace(episode, trajectories={"agent": cut})


def looks_at_the_end(make: Part) -> None:
    """The value of where a limit cut is read after what was observed last."""
    _, _, see, _ = shop()
    batch, (group,) = long_ends()
    model = see.learner.model
    width = int(model.get_input_embeddings().weight.shape[1])  # pyright: ignore
    setup = dataclasses.replace(
        signal_setup(get_component("signal", "value")), needs=frozenset({"last_value"}), width=width
    )
    signal = make(setup)
    lively(signal.module)
    for room in (see.context, 50):
        found = measured(signal, dataclasses.replace(see, needs=setup.needs, context=room), batch, [group])
        expected: list[float] = []
        for one in group:
            text: list[int] = []
            said: list[Message] = []
            for turn in one.trajectory.turns:
                text += [*turn.reply.prompt_ids, *turn.reply.action_ids]
                said += [*turn.observation, turn.action]
            last = one.trajectory.turns[-1].reply.action_ids[-1]
            seen = see.renderer.extend([*said, *one.trajectory.final], len(one.trajectory.final), last, ())
            assert not seen.fresh
            whole = [*text, *seen.ids][-room:]
            cut = one.end is not None and one.end.truncated
            expected.append(signal.module(hidden_of(model, whole)[-1][None]).item() if cut else 0.0)
        near([found.turn["last_value"].tolist()], [expected], f"last value in {room}", 1e-4)


def _before(batch: TrainingBatch, b: int, k: int) -> tuple[int, int]:
    """The place of the last prompt token before a turn: the one before its first sampled token."""
    r, t = tokens_of(batch)[b, k][0]
    return r, t - 1


def implied(copy_: Any, against: TokensAt, batch: TrainingBatch) -> TokensAt:
    return {at: BETA * (x - against[at]) for at, x in logp_of(copy_, batch).items()}


def by_trajectory(of: Mapping[tuple[int, int], Any], batch: TrainingBatch) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in batch.turns.length_B]
    for (r, _), x in of.items():
        found[int(batch.rows.trajectory_R[r])].append(x)
    return found


def taught_twice(
    make: Part, name: str, batch: TrainingBatch | None = None
) -> tuple[list[Measured], SignalContext, TrainingBatch]:
    """A copy that differs from the policy (the seeds of two models), asked on the same batch twice."""
    made, groups = scene()
    batch = batch or made
    entry, see = get_component("signal", name), context(name)
    signal = make(dataclasses.replace(signal_setup(entry), copy_policy=lambda: small_model(2)))
    return [measured(signal, see, batch, groups) for _ in range(2)], see, batch


@reference("signal", "implicit_tokens", learning_rate=[1e-3])
def implicit_tokens(make: Part, learning_rate: float = 1e-6) -> None:
    """β·log φ/π_ref of tokens; before it is read, a step on −log σ(±Σ β·log φ/π_ref)."""
    found, see, batch = taught_twice(make, "implicit_tokens")
    phi = small_model(2)
    assert see.learner.reference is not None  # pyright: ignore
    against = logp_of(see.learner.reference, batch)  # pyright: ignore
    optimizer = torch.optim.AdamW(phi.parameters(), lr=learning_rate, weight_decay=0.0)

    def loss(known: Any) -> Tensor:
        terms: list[Tensor] = []
        sums = by_trajectory({at: BETA * (x - against[at]) for at, x in known.items()}, batch)
        for q, solved in zip(sums, batch.success_B.tolist(), strict=True):
            total = torch.stack(q).sum()
            terms.append(torch.log(1 + torch.exp(-total if solved else total)))
        return torch.stack(terms).mean()

    for one in found:
        was = _stepped(phi, optimizer, loss, batch)
        assert math.isclose(one.metrics["implicit_loss"], was, rel_tol=1e-4)
        near_tokens(one.token["token_implicit"], implied(phi, against, batch), "implied", 2e-4)


@reference("signal", "implicit_turns", learning_rate=[1e-3])
def implicit_turns(make: Part, learning_rate: float = 1e-6) -> None:
    """β·log φ/π_old of turns; after it is read, a step on −log σ(Q_s − Q_f) over pairs of a group, Q the mean over turns."""
    batch, _ = scene()
    compare_turns(make, learning_rate, batch)
    known_RT = batch.rows.known_RT.clone()
    known_RT[:, ::3] = False  # nobody said how likely these were; the policy's own chance stands for them
    told_RT = batch.rows.behaviour_logp_RT * known_RT
    compare_turns(
        make,
        learning_rate,
        batch._replace(rows=batch.rows._replace(known_RT=known_RT, behaviour_logp_RT=told_RT)),
    )


def compare_turns(make: Part, learning_rate: float, batch: TrainingBatch) -> None:
    found, see, _ = taught_twice(make, "implicit_turns", batch)
    phi = small_model(2)
    rows, own = batch.rows, logp_of(see.learner.model, batch)  # pyright: ignore
    against = {
        at: rows.behaviour_logp_RT[at].item() if rows.known_RT[at] else own[at]
        for of in tokens_of(batch).values()
        for at in of
    }
    optimizer = torch.optim.AdamW(phi.parameters(), lr=learning_rate, weight_decay=0.0)
    lengths, groups = batch.turns.length_B.tolist(), batch.turns.group_B.tolist()

    def loss(known: Any) -> Tensor:
        sums = by_trajectory({at: BETA * (x - against[at]) for at, x in known.items()}, batch)
        q = [torch.stack(of).sum() / n for of, n in zip(sums, lengths, strict=True)]
        pairs = [
            torch.log(1 + torch.exp(q[f] - q[s]))
            for s in range(len(q))
            for f in range(len(q))
            if groups[s] == groups[f] and batch.success_B[s] and not batch.success_B[f]
        ]
        return torch.stack(pairs).mean()

    for one in found:
        rewards = implied(phi, against, batch)
        turns = [
            [sum(rewards[at] for at in tokens_of(batch)[b, k]) for k in range(int(n))]
            for b, n in enumerate(lengths)
        ]
        near(of_turns(one.turn["implicit"], batch), turns, "implied", 2e-4)
        was = _stepped(phi, optimizer, loss, batch)
        assert math.isclose(one.metrics["implicit_loss"], was, rel_tol=1e-4)


def _stepped(model: Any, optimizer: Any, loss: Callable[[Any], Tensor], batch: TrainingBatch) -> float:
    known: Any = {}
    for r in range(len(batch.rows.token_RT)):
        ids = row(batch, r)
        logp = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        known |= {(r, t): logp[t - 1, ids[t]] for t in range(1, len(ids)) if batch.rows.mask_RT[r, t]}
    found = loss(known)
    found.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    optimizer.zero_grad()
    return found.item()


@reference(
    "signal", "heron", factors=[("turns", "outcome"), ()], margin=[2.0, -1.0], learning_rate=[1e-3],
)  # fmt: skip
def heron(
    make: Part,
    factors: tuple[str, ...] = ("solved", "outcome", "turns", "tokens"),
    margin: float = 0.5,
    learning_rate: float = 1e-6,
) -> None:
    """Scores of φ against the reference, normalised; after they are read, a step on −log σ(r_i − r_j) where i is better than j."""
    entry, see = get_component("signal", "heron"), context("heron")
    setup = dataclasses.replace(signal_setup(entry), copy_policy=lambda: small_model(2))
    if not factors or margin < 0:
        refuses(lambda: make(setup))
        return
    first, second = scene()[1]
    batch = collate(groups := [first, [*second, silent(first[0])]])
    lengths = [int(n) for n in batch.turns.length_B.tolist()]
    played = [b for b, n in enumerate(lengths) if n]
    signal, phi = make(setup), small_model(2)
    against = logp_of(see.learner.reference, batch)  # pyright: ignore
    optimizer = torch.optim.AdamW(phi.parameters(), lr=learning_rate, weight_decay=0.0)
    every = [one for group in groups for one in group]

    def value(b: int, name: str) -> float:
        turns = every[b].trajectory.turns
        counts = {"turns": -len(turns), "tokens": -sum(len(t.reply.action_ids) for t in turns)}
        return {"solved": every[b].success, "outcome": sum(t.reward for t in turns), **counts}[name]

    def better(a: int, b: int) -> bool:
        group = [c for c in played if batch.turns.group_B[c] == batch.turns.group_B[a]]
        for place, name in enumerate(factors):
            least = margin * statistics.pstdev([value(c, name) for c in group]) if place else 0.0
            if abs(value(a, name) - value(b, name)) > least:
                return value(a, name) > value(b, name)
        return False

    pairs = [
        (a, b)
        for a in played
        for b in played
        if batch.turns.group_B[a] == batch.turns.group_B[b] and better(a, b)
    ]

    def loss(known: Any) -> Tensor:
        sums = by_trajectory({at: BETA * (x - against[at]) for at, x in known.items()}, batch)
        r = {b: torch.stack(sums[b]).sum() / lengths[b] for b in played}
        return torch.stack([torch.log(1 + torch.exp(r[b] - r[a])) for a, b in pairs]).mean()

    for _ in range(2):
        found, implicit = measured(signal, see, batch, groups), implied(phi, against, batch)
        means = {b: sum(x) / lengths[b] for b, x in enumerate(by_trajectory(implicit, batch)) if lengths[b]}
        centre, spread = statistics.mean(means.values()), statistics.pstdev(means.values())
        wanted = [[(means[b] - centre) / spread] * n if n else [] for b, n in enumerate(lengths)]
        near(of_turns(found.turn["heron"], batch), wanted, "score", 2e-3)
        was = _stepped(phi, optimizer, loss, batch)
        assert math.isclose(found.metrics["heron_loss"], was, rel_tol=1e-4)
    if learning_rate == 1e-3:
        return
    fresh = make(dataclasses.replace(setup, copy_policy=lambda: copy.deepcopy(see.learner.reference)))
    assert not measured(fresh, see, batch, groups).turn["heron"].any(), (
        "it begins as the policy, and all are alike"
    )


def silent(one: Episode) -> Episode:
    """An episode that ended before its first turn."""
    return dataclasses.replace(one, trajectories={"agent": dataclasses.replace(one.trajectory, turns=())})
