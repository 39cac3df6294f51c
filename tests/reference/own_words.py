"""The policy's own probabilities: of the right answer after its reasoning, of its own answer, of what comes after a thought."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from losses import Played, last, none_below_zero
from measured import (
    Part,
    TokensAt,
    context,
    logits,
    measured,
    near,
    near_tokens,
    of_turns,
    row,
    scene,
    shop,
    tokens_of,
)
from plain import Refused, deviation, mean, reference, refuses, z
from ragged import Ragged, Rows
from rows_helped import Watched

from turnwise.agents.core import PREVIOUS, ROOT, Episode
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.registry import get_component
from turnwise.trainers.check.small_policy import signal_setup, small_model
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.toy import untrained_policy
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups

# --- after thoughts, in a shop ------------------------------------------------------------------------------------

SAID = (
    "<think>hm</think>go",
    "go",
    "<think>so it never",
    "<think>a</think><think>bc</think> go",
    "so</think>go",
)

LAST = {(0, 0): SAID[0], (0, 1): SAID[4], (0, 2): SAID[3], (1, 0): SAID[1], (1, 1): SAID[2]}
"""What the last turn says, by group and episode; one has no turn."""


def _with_turns(one: Episode, turns: Sequence[Any]) -> Episode:
    trajectory = dataclasses.replace(one.trajectory, turns=tuple(turns))
    return dataclasses.replace(one, trajectories={"agent": trajectory})


@functools.cache
def thinking() -> tuple[TrainingBatch, list[Group], SignalContext]:
    """Two groups of three episodes of a few turns that think or do not; one has no turn."""
    _, played, see, _ = shop()
    groups: list[Group] = []
    (first, *_) = played[0]
    other_task = plan_groups("shop/quick", 3, 1, 7)[2][0].task
    assert other_task.id != first.task.id
    for g in range(2):
        task = first.task if g == 0 else other_task
        group: list[Episode] = []
        for i in range(3):
            turns = first.trajectory.turns[: 1 + i if (g, i) in LAST else 0]
            said = [*(SAID[(i + k) % len(SAID)] for k in range(len(turns) - 1)), LAST.get((g, i), "")]
            made = [
                dataclasses.replace(
                    turn,
                    reply=turn.reply._replace(
                        action_ids=see.renderer.reply_ids(Message("assistant", text)), logprobs=()
                    ),
                )
                for turn, text in zip(turns, said, strict=False)
            ]
            group.append(dataclasses.replace(_with_turns(first, made), task=task))
        groups.append(group)
    return collate(groups), groups, see


def thoughts_of(see: SignalContext, ids: Sequence[int]) -> int:
    """Tokens up to the last closing tag, or all of them where a thought is opened and never closed."""
    text = see.tokenizer.decode([*ids])
    if "</think>" in text:
        return next(
            n
            for n in range(len(ids) + 1)
            if see.tokenizer.decode([*ids[:n]]).count("</think>") == text.count("</think>")
        )
    if not text.startswith("<think>"):
        return 0
    return next(n for n in range(len(ids) + 1) if see.tokenizer.decode([*ids[:n]]) == text)


@functools.cache
def found_likely(model: Any, room: int, *, bare: bool = False) -> dict[int, list[float]]:
    """By episode: log-probabilities of its right answer's tokens, after its reasoning or after its task alone."""
    _, groups, see = thinking()
    found: dict[int, list[float]] = {}
    b = -1
    for group in groups:
        shown = run_episodes([Request(group[0].task, group[0].seed)], scripted("gold"))[0]
        act = shown.trajectory.turns[-1].action
        answer = see.renderer.reply_ids(act)
        for one in group:
            b += 1
            turns = one.trajectory.turns
            if not turns:
                continue
            text = [*turns[0].reply.prompt_ids]
            if not bare:
                text = [x for turn in turns[:-1] for x in (*turn.reply.prompt_ids, *turn.reply.action_ids)]
                ids = turns[-1].reply.action_ids
                text += [*turns[-1].reply.prompt_ids, *ids[: thoughts_of(see, ids)]]
            before = text[-max(1, room - len(answer)) :]
            whole = [*before, *answer][:room]
            known = logits(model, whole)
            found[b] = [known[t - 1, whole[t]].item() for t in range(len(before), len(whole))]
    return found


def is_of_answers(
    signal: Part, name: str, model: Any, value: Callable[..., float], *, bare: bool = True, log: bool = False
) -> None:
    """``log``: what is compared are logarithms, of numbers that may be very small."""

    def scaled(x: float) -> float:
        assert not log or x >= 0
        return math.log(x) if log and x > 0 else x

    batch, groups, see = thinking()
    for room in (see.context, 90, 4):
        found = measured(signal, dataclasses.replace(see, context=room), batch, groups)
        told = found_likely(model, room)
        plain = found_likely(model, room, bare=True) if bare else {b: [] for b in told}
        of = {b: value(told, plain, b) for b in told}
        wanted = [[scaled(of.get(b, 0.0))] * int(n) for b, n in enumerate(batch.turns.length_B.tolist())]
        told_ = [[scaled(x) for x in one] for one in of_turns(found.turn[name], batch)]
        near(told_, wanted, f"{name} in {room}", 1e-5)
    empty = measured(signal, see, collate([[groups[1][2]]]), [[groups[1][2]]])
    assert empty.turn[name].shape == (1, 0)


def other_model(seed: int) -> Any:
    """The shop's model with other weights."""
    model = copy.deepcopy(thinking()[2].learner.model)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for weight in model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    return model


# --- in random tokens ---------------------------------------------------------------------------------------------


class Thinks:
    """A tokenizer for which every third token ends a thought."""

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join("</think>" if token % 3 == 0 else f" w{token}" for token in tokens)


def split(ids: Sequence[int]) -> int:
    """Tokens up to the last one that ends a thought."""
    return max((n for n, token in enumerate(ids, 1) if token % 3 == 0), default=0)


def said_at(batch: TrainingBatch) -> dict[tuple[int, int], list[tuple[int, int]]]:
    return tokens_of(batch)


@reference("signal", "thoughts")
def thoughts(signal: Part) -> None:
    batch, groups = scene()
    found = measured(signal, context("thoughts", tokenizer=Thinks()), batch, groups)
    wanted: TokensAt = {}
    for places in said_at(batch).values():
        ids = [int(batch.rows.token_RT[at]) for at in places]
        wanted |= {at: float(n < split(ids)) for n, at in enumerate(places)}
    assert 0 < sum(wanted.values()) < len(wanted)
    near_tokens(found.token["token_thought"], wanted, "thought", 0)


@reference("signal", "thought_logp")
def thought_logp(signal: Part) -> None:
    batch, groups = scene()
    found = measured(signal, context("thought_logp", tokenizer=Thinks()), batch, groups)
    wanted = [[[0.0, 0.0] for _ in range(int(n))] for n in batch.turns.length_B.tolist()]
    for (b, k), places in said_at(batch).items():
        ids = [int(batch.rows.token_RT[at]) for at in places]
        told = [float(batch.rows.behaviour_logp_RT[at]) for at in places[: split(ids)]]
        wanted[b][k] = [sum(told), float(len(told))]
    for n, name in enumerate(("thought_logp", "thought_tokens")):
        near(of_turns(found.turn[name], batch), [[one[n] for one in row] for row in wanted], name)
    assert any(not one[1] for row in wanted for one in row)
    untold = [
        [
            _with_turns(
                one,
                [
                    dataclasses.replace(turn, reply=turn.reply._replace(logprobs=()))
                    for turn in one.trajectory.turns
                ],
            )
            for one in group
        ]
        for group in groups
    ]
    see = context("thought_logp", tokenizer=Thinks())
    assert "unknown" in refuses(lambda: measured(signal, see, collate(untold), untold), RunError)


@reference("signal", "self_certainty")
def self_certainty(signal: Part) -> None:
    batch, groups = scene()
    see = context("self_certainty", tokenizer=Thinks())
    found = measured(signal, see, batch, groups)
    wanted = [[0.0] * int(n) for n in batch.turns.length_B.tolist()]
    for (b, k), places in said_at(batch).items():
        ids = [int(batch.rows.token_RT[at]) for at in places]
        far: list[float] = []
        for r, t in places[: split(ids)]:
            p = logits(see.learner.model, row(batch, r))[t - 1].exp().tolist()
            far.append(sum(x * math.log(x * len(p)) for x in p) / len(p))
        wanted[b][k] = mean(far) if far else 0.0
    near(of_turns(found.turn["self_certainty"], batch), wanted, "certainty")
    assert sum(x == 0 for one in wanted for x in one) > 1


def averaged(own: Any, policy: Any, decay: float) -> None:
    with torch.no_grad():
        for mine, theirs in zip(own.parameters(), policy.parameters(), strict=True):
            mine.copy_(decay * mine + (1 - decay) * theirs)


def followed(
    make: Part, name: str, decay: float, every: int, wanted: Callable[[Any], Rows], within: float
) -> None:
    """Five updates, each by another object that goes on from the last one's state, beside a copy averaged by hand."""
    batch, groups = scene()
    entry, see = get_component("signal", name), context(name, tokenizer=Thinks())
    setup = dataclasses.replace(signal_setup(entry), copy_policy=lambda: small_model(2), tokenizer=Thinks())
    if not 0 <= decay <= 1 or every < 1:
        refuses(lambda: make(setup))
        return
    phi, state = small_model(2), None
    for update in range(1, 6 if every < 9 else 12):
        signal = make(setup)
        if state is not None:
            signal.restore(state)
        found = measured(signal, see, batch, groups)
        near(of_turns(found.turn[name], batch), wanted(phi), f"{name}, update {update}", within)
        if update % every == 0:
            averaged(phi, see.learner.model, decay)
        kept = signal.state()
        state = PartState(json.loads(json.dumps({**kept.numbers})), kept.tensors)


@reference(
    "signal", "care", decay=[0.5, 0.0, 1.0, 1.5, -0.1], every=[1, 2, 0], also=[{"decay": 0.5, "every": 2}]
)
def care(make: Part, decay: float = 0.995, every: int = 10) -> None:
    batch, _ = scene()

    def of(model: Any) -> Rows:
        found: Rows = []
        for b, n in enumerate(batch.turns.length_B.tolist()):
            places = said_at(batch)[b, int(n) - 1]
            ids = [int(batch.rows.token_RT[at]) for at in places]
            known = {r: logits(model, row(batch, r)) for r, _ in places}
            own = [known[r][t - 1, int(batch.rows.token_RT[r, t])].item() for r, t in places[split(ids) :]]
            found.append([min(math.exp(mean(own)), 0.95) if own else 0.0] * int(n))
        return found

    followed(make, "care", decay, every, of, 3e-6)
    assert 0.0 in [x for one in of(small_model(2)) for x in one], "one never came out of its thoughts"
    if 0 <= decay <= 1 and every > 0:
        whole, see = scene()[1][0][0], context("care", tokenizer=Thinks())
        groups = [[_with_turns(whole, []), whole]]
        setup = dataclasses.replace(
            signal_setup(get_component("signal", "care")), copy_policy=lambda: small_model(2)
        )
        found = measured(make(setup), see, collate(groups), groups)
        near(
            of_turns(found.turn["care"], collate(groups)),
            [[], of(small_model(2))[0]],
            "beside one without turns",
        )


@reference("signal", "rlp", decay=[0.5, 1.5])
def rlp_signal(make: Part, decay: float = 0.999) -> None:
    batch, _ = scene()
    policy = context("rlp").learner.model

    def of(model: Any) -> Rows:
        found: Rows = []
        for b, n in enumerate(batch.turns.length_B.tolist()):
            found.append([])
            for k in range(int(n)):
                places = said_at(batch)[b, k]
                ids, (r, first) = [int(batch.rows.token_RT[at]) for at in places], places[0]
                after = said_at(batch).get((b, k + 1), [(-1, 0)])[0]
                x = 0.0
                if split(ids) and after[0] == r and (b, k) != (0, 0):  # whose next turn begins a row
                    text = row(batch, r)[: after[1]]
                    answer = text[first + len(ids) :]
                    bare = [*text[:first], *text[first + split(ids) :]]
                    told, plain = (logits(m, t) for m, t in ((policy, text), (model, bare)))
                    with_, without = (
                        [known[len(t) - len(answer) + n - 1, token].item() for n, token in enumerate(answer)]
                        for known, t in ((told, text), (plain, bare))
                    )
                    x = mean(with_) - mean(without)
                found[-1].append(x)
        return found

    followed(make, "rlp", decay, 1, of, 2e-5)
    assert sum(x != 0 for one in of(small_model(2)) for x in one) > 1
    if not 0 <= decay <= 1:
        return
    see = context("rlp", tokenizer=Thinks())
    setup = dataclasses.replace(
        signal_setup(get_component("signal", "rlp")), copy_policy=lambda: small_model(2), tokenizer=Thinks()
    )
    played = [[[one]] for one in (thinks_at_once(), begins_anew(thinks_at_once(), 2))]
    whole, cut = (
        of_turns(measured(make(setup), see, collate(groups), groups).turn["rlp"], collate(groups))[0]
        for groups in played
    )
    near([cut], [[whole[0], 0.0, 0.0]], "whose third turn begins a row")
    assert whole[1] != 0


def thinks_at_once() -> Episode:
    """Three turns in one row, each of which begins with a thought."""
    one = scene()[1][0][0]
    turns = [
        dataclasses.replace(
            turn,
            reply=turn.reply._replace(
                prompt_ids=turn.reply.prompt_ids[-2:],
                action_ids=(3, *turn.reply.action_ids[1:]),
                parent=PREVIOUS,
            ),
        )
        for turn in one.trajectory.turns
    ]
    return _with_turns(one, turns)


def begins_anew(one: Episode, k: int) -> Episode:
    """The episode, whose k-th turn was told all that came before once more."""
    turns = [*one.trajectory.turns]
    before = [x for turn in turns[:k] for x in (*turn.reply.prompt_ids, *turn.reply.action_ids)]
    reply = turns[k].reply
    again = reply._replace(prompt_ids=(*before, *reply.prompt_ids), parent=ROOT)
    turns[k] = dataclasses.replace(turns[k], reply=again)
    return _with_turns(one, turns)


@reference(
    "signal", "spread_floor", share=[0.9, 0.0, 1.0, 1.5, -0.1], decay=[0.5, 0.0, 1.0, 1.1, -0.1], averages_from=[2, 12],
    filters_from=[1, 3], also=[{"averages_from": 1, "filters_from": 1, "share": 1.0, "decay": 0.3}],
)  # fmt: skip
def spread_floor(
    make: Part, share: float = 0.5, decay: float = 0.99, averages_from: int = 6, filters_from: int = 11
) -> None:
    if not (0 <= share <= 1 and 0 <= decay <= 1):
        refuses(lambda: make(None))
        return
    batch, groups = scene()
    see, state, average = context("spread_floor"), None, None
    for update in range(1, 14):
        signal = make(None)
        if state is not None:
            signal.restore(state)
        rewards = batch.turns.reward_BK * math.cos(update)
        turns = dataclasses.replace(batch.turns, reward_BK=rewards)
        found = measured(signal, see, batch._replace(turns=turns), groups)
        returns = turns.return_B.tolist()
        spread = mean([deviation(returns[:3]), deviation(returns[3:])])
        if update >= averages_from:
            average = spread if average is None else decay * average + (1 - decay) * spread
        floor = share * average if average is not None and update >= filters_from else 0.0
        wanted = [[floor] * int(n) for n in batch.turns.length_B.tolist()]
        near(of_turns(found.turn["spread_floor"], batch), wanted, f"update {update}", 1e-9)
        state = PartState(json.loads(json.dumps({**signal.state().numbers})), {})
    nothing = make(None)
    assert measured(nothing, see, collate([]), []).turn["spread_floor"].shape == (0, 0)
    assert nothing.state().numbers["mean"] in (None, 0.0)


# --- what is made of them -----------------------------------------------------------------------------------------


@reference("filter", "rlpr")
def rlpr_filter(r: Ragged, A: Any) -> list[float]:
    return [
        float(deviation([r.returns[j] for j in r.peers(i)]) >= r.turns["spread_floor"][i][0])
        for i in range(len(r))
    ]


@reference("credit", "rlp", weight=[0.5], outcome=[0.7])
def rlp_credit(r: Ragged, weight: float = 1.0, outcome: float = 0.0) -> list[Rows]:
    def of(i: int, k: int, n: int) -> float:
        here = [
            r.turns["rlp"][j][m]
            for j in r.peers(i)
            for m, state in enumerate(r.states[j])
            if state == r.states[i][k]
        ]
        G = len(here)
        gain = (r.turns["rlp"][i][k] - mean(here)) * G / (G - 1) if G > 1 else 0.0
        peers = [r.returns[j] for j in r.peers(i) if j != i]
        alone = r.returns[i] - mean(peers) if peers else 0.0
        return weight * gain * r.tokens["token_thought"][i][k][n] + outcome * alone

    return [
        [[of(i, k, n) for n in range(len(turn))] for k, turn in enumerate(said)]
        for i, said in enumerate(r.ids)
    ]


@reference(
    "credit", "drm", confidence=["value"], length=["entropy"], relevance=["entropy"], coherence=["progress"], weights=[(0.0, 0.5, 1.0), (1.0, 0.0, 0.0)], alike=[True],
    also=[{"alike": True, "weights": (0.7, 0.2, 0.4)}],
)  # fmt: skip
def drm(
    r: Ragged,
    confidence: str = "logp",
    length: str = "tokens",
    relevance: str = "rlbff",
    coherence: str = "principle",
    weights: tuple[float, float, float] = (0.3, 0.4, 0.3),
    alike: bool = False,
) -> Rows:
    sure = [sum(said) / max(1, sum(n)) for said, n in zip(r.turns[confidence], r.turns[length], strict=True)]
    three = [sure, *([mean(row) for row in r.turns[name]] for name in (relevance, coherence))]

    def among(x: list[float], i: int) -> list[float]:
        return [x[j] for j in r.peers(i)]

    if alike:
        three = [[z(x[i], among(x, i)) for i in range(len(r))] for x in three]
    mixed = [sum(w * x[i] for w, x in zip(weights, three, strict=True)) for i in range(len(r))]
    return [
        [z(r.returns[i], among(r.returns, i)) + z(mixed[i], among(mixed, i))] * len(rewards)
        for i, rewards in enumerate(r.rewards)
    ]


@reference(
    "reward", "own_probability", signal=["standing"], weight=[0.5, -2.0], format=[1.0, 0.0], outcome=[0.5], answered=[True],
    also=[{"answered": True, "format": 0.3, "outcome": 0.7}],
)  # fmt: skip
def own_probability(
    group: list[Played],
    signal: str = "rlpr",
    weight: float = 0.9,
    format: float = 0.1,
    outcome: float = 0.0,
    answered: bool = False,
) -> list[list[float]]:
    def of(e: Played) -> float:
        if not e.signal or (answered and not e.answered):
            return 0.0
        formed = e.answered and not any(e.bad)
        q = e.signal[-1] * (2 if signal == "standing" else 1)
        return weight * q + format * formed + outcome * sum(e.paid["outcome"])

    return [last(e, of(e)) for e in group]


@reference("reward", "care", bonus=[0.9, 0.0, -0.1])
def care_reward(group: list[Played], bonus: float = 0.5) -> list[list[float]]:
    none_below_zero(bonus)
    acc = [sum(e.paid["outcome"]) for e in group]
    may = [e for e, a in zip(group, acc, strict=True) if e.signal and a > 0.1 and a >= mean(acc)]
    bound = mean([e.signal[-1] for e in may]) - 0.01 if may else 0.0

    def of(e: Played, a: float) -> list[float]:
        paid = e.total()
        if e in may and e.signal[-1] >= bound:
            paid[-1] += bonus * a
        return paid

    return [of(e, a) for e, a in zip(group, acc, strict=True)]


# --- teachers that are understood -----------------------------------------------------------------------------------

OTHERS = ("mix:gold=4,random=1", "mix:gold=2,random=1")


@reference(
    "guide", "ampo", teachers=[("gold", *OTHERS), ("null",), ()], rows=[1, 3, 0],
    also=[{"teachers": (*OTHERS, "gold", "null"), "rows": 4}, {"teachers": (*OTHERS, "gold"), "rows": 1}, {"teachers": ("gold",) * 5, "rows": 5}, {"teachers": ("gold",) * 3}],
)  # fmt: skip
def ampo(guide: Part, teachers: Sequence[str] = ("gold",), rows: int = 2) -> None:
    """Teachers' episodes in a shop, as they were played, by what the untrained model finds of gold's last act after them."""
    policy = untrained_policy()
    player = Watched(RolloutRunner(policy, as_is), policy, {}, 0, 0)
    player.played, player.lost, player.alone = [], None, None

    async def run() -> tuple[list[Group], list[Group]]:
        given = [*await chain(RolloutRunner(policy, as_is), plan_groups("shop/quick", 3, 3))]
        given[1] = [*given[1][:2], dataclasses.replace(given[1][2], end=EndReason.SOLVED)]
        return given, await guide(player, given)

    if not teachers or rows < 1:
        refuses(lambda: asyncio.run(run()))
        return
    plain, found = asyncio.run(run())
    assert [*found[1]] == [*plain[1]]
    model, renderer = thinking()[2].learner.model, policy.renderer
    seen = set[float]()
    for n in (0, 2):
        act = player.played[0][n][0].trajectory.turns[-1].action
        answer, shown = renderer.reply_ids(act), list[tuple[float, int, Episode]]()
        for t in range(len(teachers)):
            (one,) = player.played[1 + t][n]
            if not one.success:
                continue
            *before, end = one.trajectory.turns
            text = [x for turn in before for x in (*turn.reply.prompt_ids, *turn.reply.action_ids)]
            text += end.reply.prompt_ids
            known = logits(model, [*text, *answer])
            p = [math.exp(known[len(text) + i - 1, token].item()) for i, token in enumerate(answer)]
            formed = not any(turn.bad_action for turn in one.trajectory.turns)
            shown.append((0.9 * mean(p) + 0.1 * formed, t, one))
        shown.sort(key=lambda x: (-x[0], x[1]))
        seen |= {x[0] for x in shown}
        taken = min(rows, len(shown), 3)
        assert [*found[n][taken:]] == [*plain[n][taken:]]
        for (_, _, one), row_ in zip(shown, found[n][:taken], strict=False):
            assert row_ == one
            assert {turn.reply.source for turn in row_.trajectory.turns} == {"guide/ampo"}
    assert len(player.played) == 1 + len(teachers)
    if {*OTHERS} < {*teachers}:
        assert len(seen) > 2
    names = getattr(guide, "func", guide).__globals__
    thinks_first(names["comprehended"], plain[0][0])
    paid = names["paid_fully"]
    for given, total in (([0.25, 0.5], 1.0), ([0.5, 1.5], 2.0), ([0.0], 1.0)):
        assert math.isclose(paid(episode(given)).trajectory.total_reward, total)
    assert paid(episode([0.25, 0.5])).trajectory.turns[1].rewards == {"outcome": 0.75}


def thinks_first(comprehended: Any, one: Episode) -> None:
    """Of an episode that thinks in its last turn, the thoughts are read before gold's act; each group has its own gold."""
    model, policy = thinking()[2].learner.model, untrained_policy()
    *before, end = one.trajectory.turns
    said, acts = policy.renderer.reply_ids(Message("assistant", "<think>hm</think>no")), ("go", "to and fro")
    thought = said[: thoughts_of(thinking()[2], said)]
    thinks = dataclasses.replace(end, reply=end.reply._replace(action_ids=said, logprobs=()))
    answers = {n: policy.renderer.reply_ids(Message("assistant", act)) for n, act in enumerate(acts)}
    right = {
        n: _with_turns(one, [dataclasses.replace(end, reply=end.reply._replace(action_ids=ids, logprobs=()))])
        for n, ids in answers.items()
    }
    found = asyncio.run(comprehended(policy, {0: [_with_turns(one, [*before, thinks])], 1: [one]}, right))
    read = [x for turn in before for x in (*turn.reply.prompt_ids, *turn.reply.action_ids)]
    formed = not any(turn.bad_action for turn in one.trajectory.turns) and not (one.end and one.end.truncated)
    for n, own in ((0, thought), (1, [])):
        text = [*read, *end.reply.prompt_ids, *own]
        known = logits(model, [*text, *answers[n]])
        p = [math.exp(known[len(text) + i - 1, token].item()) for i, token in enumerate(answers[n])]
        near([found[n]], [[0.9 * mean(p) + 0.1 * formed]], f"thoughts of {n}", 1e-5)
    engine: Any = policy.engine
    narrow: Any = SimpleNamespace(
        renderer=policy.renderer, engine=SimpleNamespace(context_length=40, score=engine.score)
    )
    narrow.score_tokens = functools.partial(ModelPolicy.score_tokens, narrow)
    cut = asyncio.run(comprehended(narrow, {1: [one]}, right))
    shown = [*read, *end.reply.prompt_ids][-(40 - len(answers[1])) :]
    known = logits(model, [*shown, *answers[1]])
    p = [math.exp(known[len(shown) + i - 1, token].item()) for i, token in enumerate(answers[1])]
    near([cut[1]], [[0.9 * mean(p) + 0.1 * formed]], "what does not fit is cut at its beginning", 1e-5)


@reference(
    "reward", "cgpo", score=["standing"], passes=["standing"], threshold=[0.2, 2.5], most=[0.7, 0.0, -1.0],
    also=[{"passes": "standing", "threshold": 1.0, "most": 2.0}],
)  # fmt: skip
def cgpo(
    group: list[Played], score: str = "par", passes: str = "rlbff", threshold: float = 0.5, most: float = 5.0
) -> list[list[float]]:
    if most <= 0:
        raise Refused

    def of(e: Played) -> float:
        if not e.signal:
            return 0.0
        s, ok = (e.signal[-1] * (2 if name == "standing" else 1) for name in (score, passes))
        room = 1 - sum(2 * x for x in e.signal) / most
        return room * s if ok >= threshold and room > 0 else 0.0

    return [last(e, of(e)) for e in group]
