"""Signals: on what a small model played, from forward passes over one row at a time, turn by turn."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from plain import deviation, mean, reference, refuses
from torch import Tensor

from turnwise.agents.core import PREVIOUS, Episode, Trajectory
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.registry import get_component
from turnwise.tools.core import ToolCall
from turnwise.trainers.check.small_policy import (
    played_batch,
    signal_context,
    signal_setup,
)
from turnwise.trainers.core import Group
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.toy_rows import training_batch
from turnwise.trainers.signal.core import Measured, Reading, Signal, SignalContext

BETA = 0.05
Part = Callable[..., Any]
Turns = list[list[float]]
TokensAt = dict[tuple[int, int], float]
"""Of tokens by row and place."""


@functools.cache
def scene() -> tuple[TrainingBatch, list[Group]]:
    return played_batch()


def tokens_of(batch: TrainingBatch) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Trajectory and turn → rows and places of its tokens, in order."""
    rows, found = batch.rows, dict[tuple[int, int], list[tuple[int, int]]]()
    for r in range(len(rows.token_RT)):
        for t in range(int(rows.length_R[r])):
            if rows.mask_RT[r, t]:
                found.setdefault((int(rows.trajectory_R[r]), int(rows.turn_RT[r, t])), []).append((r, t))
    return found


def logits(model: Any, ids: Sequence[int]) -> Tensor:
    """Log-probabilities of the next token after each one, (T, V), in float64."""
    with torch.no_grad():
        return model(input_ids=torch.tensor([[*ids]])).logits[0].double().log_softmax(-1)


def row(batch: TrainingBatch, r: int) -> list[int]:
    return batch.rows.token_RT[r, : int(batch.rows.length_R[r])].tolist()


def logp_of(model: Any, batch: TrainingBatch) -> TokensAt:
    found: TokensAt = {}
    for r in range(len(batch.rows.token_RT)):
        ids = row(batch, r)
        known = logits(model, ids)
        found |= {(r, t): known[t - 1, ids[t]].item() for t in range(1, len(ids)) if batch.rows.mask_RT[r, t]}
    return found


def measured(signal: Part, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """What a signal measures, its forward pass read in micro-batches."""
    found = signal.measure(see, batch, groups) if isinstance(signal, Signal) else signal(see, batch, groups)
    if isinstance(found, Reading):
        see.learner.read(batch.rows, [found.read])
        return found.done()
    return found


def of_turns(found: Tensor, batch: TrainingBatch) -> Turns:
    """A signal of turns as lists, after it was seen that it is 0 where there is no turn."""
    mask_BK = batch.turns.mask_BK
    assert tuple(found.shape) == tuple(mask_BK.shape)
    assert not found[~mask_BK].any()
    return [x[m].tolist() for x, m in zip(found, mask_BK, strict=True)]


def near(
    found: Sequence[Sequence[float]], expected: Sequence[Sequence[float]], said: str, within: float = 2e-5
) -> None:
    assert [len(x) for x in found] == [len(x) for x in expected], said
    for b, (one, other) in enumerate(zip(found, expected, strict=True)):
        for k, (x, y) in enumerate(zip(one, other, strict=True)):
            assert math.isclose(x, y, rel_tol=within, abs_tol=within), f"{said} {b}, {k}: {x} is not {y}"


def near_tokens(
    found: Tensor, expected: Mapping[tuple[int, int], float], said: str, within: float = 2e-5
) -> None:
    for r in range(found.shape[0]):
        for t in range(found.shape[1]):
            x, y = found[r, t].item(), expected.get((r, t), 0.0)
            assert math.isclose(x, y, rel_tol=within, abs_tol=within), f"{said} {r}, {t}: {x} is not {y}"


def context(name: str, **changes: Any) -> SignalContext:
    return dataclasses.replace(signal_context(get_component("signal", name)), **changes)


# --- without weights --------------------------------------------------------------------------------------------


@reference("signal", "entropy")
def entropy(signal: Part) -> None:
    batch, groups = scene()
    see = context("entropy")
    found = measured(signal, see, batch, groups)
    expected: TokensAt = {}
    for r in range(len(batch.rows.token_RT)):
        known = logits(see.learner.model, row(batch, r))
        for t in range(1, len(known)):
            if batch.rows.mask_RT[r, t]:
                expected[r, t] = -sum(math.exp(x) * x for x in known[t - 1].tolist())
    near_tokens(found.token["token_entropy"], expected, "token")
    places = tokens_of(batch)
    turns = [
        [mean([expected[at] for at in places[b, k]]) for k in range(int(n))]
        for b, n in enumerate(batch.turns.length_B.tolist())
    ]
    near(of_turns(found.turn["entropy"], batch), turns, "turn")


@reference("signal", "mean_logp")
def mean_logp(signal: Part) -> None:
    batch, groups = scene()
    see = context("mean_logp")
    found = measured(signal, see, batch, groups)
    expected: TokensAt = {}
    for r in range(len(batch.rows.token_RT)):
        known = logits(see.learner.model, row(batch, r))
        for t in range(1, len(known)):
            if batch.rows.mask_RT[r, t]:
                expected[r, t] = mean([float(x) for x in known[t - 1].tolist()])
    near_tokens(found.token["token_mean_logp"], expected, "mean")


@reference("signal", "foreign")
def foreign(signal: Part) -> None:
    _, groups = scene()
    marked = [
        [_by(f"guide/{i}", one, None) if i % 2 else one for i, one in enumerate(group)] for group in groups
    ]
    batch = collate(marked)
    found = measured(signal, context("foreign"), batch, marked)
    said = [
        [float(bool(turn.reply.source)) for turn in one.trajectory.turns] for group in marked for one in group
    ]
    near(of_turns(found.turn["foreign"], batch), said, "foreign", 0)
    assert 0 < sum(x for one in said for x in one) < sum(map(len, said))


@reference("signal", "sampled")
def sampled(signal: Part) -> None:
    batch, groups = scene()
    found = measured(signal, context("sampled"), batch, groups)
    said = [[turn.reply.logprobs for turn in one.trajectory.turns] for group in groups for one in group]
    near(of_turns(found.turn["logp"], batch), [[sum(x) for x in one] for one in said], "logp")
    near(of_turns(found.turn["tokens"], batch), [[float(len(x)) for x in one] for one in said], "tokens", 0)
    one, other = groups[0][0], groups[0][2]
    for first, second, said_of in (
        (_by("source/a", one, ()), _by("source/b", other, ()), "those of source/a, source/b are unknown"),
        (_by("source/a", one, ()), _by("source/b", other, None), "those of source/a are unknown"),
        (_by("source/a", one, None), _by("source/b", other, ()), "those of source/b are unknown"),
        (_by("", one, ()), other, "those of some episodes are unknown"),
    ):
        chosen = [[first, second]]
        why = refuses(
            lambda chosen=chosen: measured(signal, context("sampled"), collate(chosen), chosen), RunError
        )
        assert said_of in why, why


def _by(source: str, episode: Episode, logprobs: tuple[float, ...] | None) -> Episode:
    """The episode whose last turn another one chose, with these log-probabilities; its own where None."""
    *turns, last = episode.trajectory.turns
    reply = last.reply._replace(source=source, logprobs=last.reply.logprobs if logprobs is None else logprobs)
    of = (*turns, dataclasses.replace(last, reply=reply))
    return dataclasses.replace(
        episode, trajectories={"agent": dataclasses.replace(episode.trajectory, turns=of)}
    )


@reference("signal", "validity")
def validity(signal: Part) -> None:
    batch, groups = scene()
    refused = [[_refusing(one, i) for i, one in enumerate(group)] for group in groups]
    found = measured(signal, context("validity"), batch, refused)
    said = [
        [float(not turn.bad_action) for turn in one.trajectory.turns] for group in refused for one in group
    ]
    near(of_turns(found.turn["valid"], batch), said, "valid", 0)
    assert 0 < sum(x for one in said for x in one) < sum(map(len, said))


def _refusing(episode: Episode, i: int) -> Episode:
    turns = tuple(
        dataclasses.replace(turn, bad_action=(i + k) % 2 == 0)
        for k, turn in enumerate(episode.trajectory.turns)
    )
    return dataclasses.replace(
        episode, trajectories={"agent": dataclasses.replace(episode.trajectory, turns=turns)}
    )


class Thens:
    """A tokenizer for which every seventh token is a strategic word."""

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(" then" if token % 7 == 0 else f" w{token}" for token in tokens)


@reference("signal", "planning")
def planning(signal: Part) -> None:
    """Every seventh token is ``then``; in texts by hand thoughts and phrases are touched."""
    batch, groups = scene()
    found = measured(signal, context("planning", tokenizer=Thens()), batch, groups)
    places = [at for of in tokens_of(batch).values() for at in of]
    strategic = {at: float(batch.rows.token_RT[at].item() % 7 == 0) for at in places}
    assert any(strategic.values())
    near_tokens(found.token["token_planning"], strategic, "strategic", 0)
    for marked, by_hand in _texts(getattr(signal, "func", signal).__globals__["touched"]):
        assert marked == by_hand


def _texts(touched: Callable[[list[str]], list[float]]) -> list[tuple[list[float], list[float]]]:
    by_hand = {
        ("<think>", "a ", "b", "</think>", "go"): [1, 1, 1, 1, 0],
        ("go ", "<think>", "it never", " ends"): [0, 1, 1, 1],
        ("I ", "will", " look", ". ", "go", "."): [1, 1, 1, 0, 0, 0],
        ("WAIT", ",", "x", " check", "ed", " ", "check"): [1, 1, 0, 0, 0, 0, 1],
        ("the", "n", "ce then", "!"): [0, 0, 1, 0],
        (): [],
    }
    return [(touched([*pieces]), [float(x) for x in marks]) for pieces, marks in by_hand.items()]


@reference("signal", "memory")
def memory(make: Part) -> None:
    """What a task's earlier groups returned, from the list of their figures."""
    batch, groups = scene()
    signal, see = make(signal_setup(get_component("signal", "memory"))), context("memory")
    tasks = [dataclasses.replace(groups[0][0].task, prompt=name) for name in ("a", "b", "c")]
    past: dict[str, list[tuple[float, float]]] = {}
    for update, chosen in enumerate([(0, 1), (1, 2), (0, 1), (1, 0)]):
        shown = [
            [dataclasses.replace(one, task=tasks[n]) for one in group]
            for n, group in zip(chosen, groups, strict=True)
        ]
        factor = 1.0 + update
        turns = dataclasses.replace(batch.turns, reward_BK=batch.turns.reward_BK * factor)
        found = measured(signal, see, batch._replace(turns=turns), shown)
        told = [
            [float(x) for x in found.turn[name].tolist()] for name in ("past_visits", "past_mean", "past_std")
        ]
        b = 0
        for n, group in zip(chosen, shown, strict=True):
            known = past.get(tasks[n].id, [])
            want = (float(len(known)), *_pooled(known))
            for _ in group:
                near([[x[b] for x in told]], [want], f"update {update}")
                b += 1
        start = 0
        for n, group in zip(chosen, shown, strict=True):
            returns = turns.return_B[start : start + len(group)].tolist()
            past.setdefault(tasks[n].id, []).append((mean(returns), deviation(returns)))
            start += len(group)
        other = make(signal_setup(get_component("signal", "memory")))
        other.restore(signal.state())
        signal = other


def _pooled(known: list[tuple[float, float]]) -> tuple[float, float]:
    """Mean of the visits' means, and the deviation of equally large visits taken together."""
    if not known:
        return 0.0, 0.0
    middle = mean([m for m, _ in known])
    return middle, math.sqrt(mean([s**2 + (m - middle) ** 2 for m, s in known]))


# --- what the policy's states and whole distributions say -----------------------------------------------------------


def hidden(model: Any, ids: Sequence[int]) -> Tensor:
    with torch.no_grad():
        return (
            model(input_ids=torch.tensor([[*ids]]), output_hidden_states=True).hidden_states[-1][0].double()
        )


def directions(points: list[Tensor], most: int) -> float:
    """exp of the entropy of the shares of the singular values, which are roots of eigenvalues of the scatter."""
    if len(points) > most:
        points = [points[i * len(points) // most] for i in range(most)]
    if len(points) < 2:
        return 0.0
    middle = sum(points[1:], points[0]) / len(points)
    scatter = sum(torch.outer(p - middle, p - middle) for p in points)
    assert isinstance(scatter, Tensor)
    sizes = [math.sqrt(max(0.0, x)) for x in torch.linalg.eigvalsh(scatter).tolist()]
    shares = [x / sum(sizes) for x in sizes if x > 1e-6 * sum(sizes)]
    return math.exp(-sum(x * math.log(x) for x in shares))


def growth(points: list[Tensor], ends: Sequence[int], most: int) -> tuple[float, float, float]:
    """How many directions; how many more than before, on average; and how fast that becomes more."""
    known = [directions(points[:end], most) for end in ends]
    gained = [known[j] - sum(known[:j]) / j for j in range(1, len(known))]
    faster = [b - a for a, b in itertools.pairwise(gained)]
    return known[-1], sum(gained) / max(1, len(gained)), sum(faster) / max(1, len(faster))


@reference(
    "signal",
    "effective_rank",
    stride=[3, 1, 0, -2],
    most=[5, 3, 2],
    alpha=[0.9],
    also=[{"stride": 2, "most": 4}],
)
def effective_rank(make: Part, stride: int | None = None, most: int = 256, alpha: float = 0.3) -> None:
    """Three updates: the first has nothing to compare with, and the third is made by another one that goes on."""
    setup = signal_setup(get_component("signal", "effective_rank"))
    assert inspect.signature(make).parameters["most"].default == most, "no row is as long"
    if (stride is not None and stride < 1) or most < 3:
        refuses(lambda: make(setup))
        return
    first_group, second_group = scene()[1]
    silent = _cut(second_group[0], 1)
    silent = dataclasses.replace(
        silent, trajectories={"agent": dataclasses.replace(silent.trajectory, turns=())}
    )
    groups = [first_group, [*second_group, silent]]
    batch = collate(groups)
    signal, see = make(setup), context("effective_rank")
    usual: list[float] = []
    for update in range(3):
        other = make(setup)
        other.restore(signal.state())
        signal = other
        places, figures = tokens_of(batch), []
        states = [hidden(see.learner.model, row(batch, r)) for r in range(len(batch.rows.token_RT))]
        for b, n in enumerate(batch.turns.length_B.tolist()):
            turns = [places.get((b, k), []) for k in range(int(n))]
            said = [at for turn in turns for at in turn]
            points = [states[r][t - 1] for r, t in said]
            ends = [*itertools.accumulate(len(turn) for turn in turns)]
            if stride is not None:
                ends = [*range(stride, len(said), stride), len(said)]
            figures.append(growth(points, ends, most) if said else (0.0, 0.0, 0.0))
        found = measured(signal, see, batch, groups)
        drives: list[float] = []
        for one in figures:
            off = [min(5.0, max(-5.0, (x - m) / abs(m))) for x, m in zip(one, usual, strict=False)] or [
                0.0
            ] * 3
            share = 1 / (1 + math.exp(-2 * off[2]))
            drives.append(share * math.tanh(off[0]) + (1 - share) * math.tanh(off[1]))
        told = [[x] * int(n) for x, n in zip(drives, batch.turns.length_B.tolist(), strict=True)]
        near(of_turns(found.turn["rank_drive"], batch), told, f"update {update}", 2e-3)
        middle = [mean([one[i] for one in figures]) for i in range(3)]
        near([[found.metrics["effective_rank"]]], [[middle[0]]], "metric", 1e-4)
        usual = [alpha * x + (1 - alpha) * m for x, m in zip(middle, usual, strict=True)] if usual else middle
        with torch.no_grad():
            for parameter in see.learner.model.parameters():
                parameter.add_(0.1 * torch.sin(torch.arange(parameter.numel())).view(parameter.shape))


@reference("signal", "disagreement", turns=[2, 0], most=[2, 1, 0])
def disagreement(signal: Part, turns: int = 1, most: int = 32) -> None:
    """Token by token of the vocabulary, how much less likely than the others' mean one finds what; who is silent finds all alike."""
    assert inspect.signature(signal).parameters["most"].default == most, "no turn is as long"
    first_group, second_group = scene()[1]
    groups = [first_group, second_group[:2]]
    batch = collate(groups)
    see = context("disagreement")
    if turns < 1 or most < 1:
        refuses(lambda: measured(signal, see, batch, groups))
        return
    found = measured(signal, see, batch, groups)
    places, expected, first = tokens_of(batch), dict[tuple[int, int], float](), 0
    known = [logits(see.learner.model, row(batch, r)) for r in range(len(batch.rows.token_RT))]
    for group in groups:
        members = range(first, first + len(group))
        first += len(group)
        at: dict[tuple[int, int], float] = {}
        for k in range(turns):
            for j in range(min(most, max(len(places.get((b, k), [])) for b in members))):
                logs: list[list[float]] = []
                for b in members:
                    said = places.get((b, k), [])
                    if j < len(said):
                        r, t = said[j]
                        logs.append(known[r][t - 1].tolist())
                    else:
                        logs.append([])
                size = max(map(len, logs))
                logs = [one or [-math.log(size)] * size for one in logs]
                total = 0.0
                for v in range(size):
                    middle = mean([one[v] for one in logs])
                    total += mean([math.exp(middle - one[v]) - (middle - one[v]) - 1 for one in logs])
                at[k, j] = total
        low, high = min(at.values()), max(at.values())
        for b in members:
            for (k, j), x in at.items():
                said = places.get((b, k), [])
                if j < len(said):
                    expected[said[j]] = (x - low) / (high - low) if high > low else 0.0
    near_tokens(found.token["token_disagreement"], expected, "token", 1e-4)
    assert most == 1 or sum(expected.values()) > 0


# --- gold ---------------------------------------------------------------------------------------------------------


class Shop(NamedTuple):
    """Two groups that an untrained model played in a small shop, and gold's actions for each."""

    batch: TrainingBatch
    groups: list[Group]
    see: SignalContext
    plans: list[list[str]]


@functools.cache
def shop() -> Shop:
    from turnwise.trainers.check.teacher import scene as played

    batch, groups, see = played()
    shown = run_episodes([Request(group[0].task, 5) for group in groups], scripted("gold"))
    plans = [[str(turn.action) for turn in one.trajectory.turns] for one in shown]
    return Shop(batch, groups, see, plans)


@reference("signal", "matched")
def matched(signal: Part) -> None:
    _, groups, see, plans = shop()
    groups = [[group[0], *(_cut(one, 3 + i) for i, one in enumerate(group[1:]))] for group in groups]
    batch = collate(groups)
    for more in ("", plans[0][0].upper(), f"{plans[0][1]} and {plans[0][-1]}"):
        spoken = [[_saying(one, more if i else "") for i, one in enumerate(group)] for group in groups]
        found = measured(signal, see, batch, spoken)
        expected: Turns = []
        for group, plan in zip(spoken, plans, strict=True):
            named = {word for line in plan for word in _bracketed(line.lower())}
            for one in group:
                text = " ".join(str(turn.action) for turn in one.trajectory.turns).lower()
                share = sum(word in text for word in named) / len(named)
                expected.append([share] * len(one.trajectory.turns))
        near(of_turns(found.turn["matched"], batch), expected, "matched")
    beside = getattr(signal, "func", signal).__globals__
    for action, entities in (
        ("click[x]", set[str]()),
        ("click[ab] or [ Cd ]", {"ab", "cd"}),
        ("go", {"go"}),
        ("", set[str]()),
    ):
        assert beside["entities"](Message("assistant", action)) == entities
    called = Message(
        "assistant", "[none]", tool_calls=(ToolCall("buy", {"item": "Mug", "number": 12, "size": "L"}),)
    )
    assert beside["entities"](called) == {"mug", "12"}
    named = [[_saying(groups[0][0], "qq")]]
    assert beside["shares"](named, [[Message("assistant", "qq")]]) == [1.0]
    assert beside["shares"](groups, [[Message("assistant", "x")] for _ in groups]) == [0.0] * sum(
        map(len, groups)
    )


def _cut(episode: Episode, turns: int) -> Episode:
    one = episode.trajectory
    assert len(one.turns) > turns
    return dataclasses.replace(
        episode, trajectories={"agent": dataclasses.replace(one, turns=one.turns[:turns])}
    )


def _bracketed(line: str) -> set[str]:
    """What stands in brackets, else the whole line; single letters are no entity."""
    inside = line[line.index("[") + 1 : line.index("]")] if "[" in line else line
    return {inside.strip()} if len(inside.strip()) > 1 else set()


def _saying(episode: Episode, more: str) -> Episode:
    first, *others = episode.trajectory.turns
    message = dataclasses.replace(first.reply.message, content=f"{first.reply.message.content} {more}")
    turns = (dataclasses.replace(first, reply=first.reply._replace(message=message)), *others)
    return dataclasses.replace(
        episode, trajectories={"agent": dataclasses.replace(episode.trajectory, turns=turns)}
    )


@reference("signal", "answer")
def answer(signal: Part) -> None:
    """Equal numbers for equal last words of one group, and for nothing else."""
    _, groups, see, _ = shop()
    call = ToolCall("buy", {"item": "Mug", "number": 1})
    same = [
        ("Buy [Mug]", ()), ("  buy\n [mug] ", ()), ("buy [cup]", ()), ("", (call,)), ("", (call,)),
        ("", (ToolCall("buy", {"number": 1, "item": "mug"}, id="other"),)), ("", (ToolCall("buy", {"item": "cup", "number": 1}),)),
        ("", (ToolCall("sell", {"item": "Mug", "number": 1}),)), ("", ()), ("buy[mug]", ()),
    ]  # fmt: skip
    kinds = [0, 0, 1, 2, 2, 2, 3, 4, 5, 6]
    for shift in (0, 3):
        ended = [
            [_ending(groups[0][0], *same[(i + shift) % len(same)]) for i in range(size)]
            for size in (len(same), 4)
        ]
        silent = _cut(ended[0][0], 1)
        silent = dataclasses.replace(
            silent, trajectories={"agent": dataclasses.replace(silent.trajectory, turns=())}
        )
        ended[0] += [silent, silent]
        found = measured(signal, see, collate(ended), ended).turn["answer"].tolist()
        expected: list[tuple[int, int | str]] = []
        for g, size in ((0, len(same)), (1, 4)):
            expected += [(g, kinds[(i + shift) % len(same)]) for i in range(size)]
            expected += [(g, "silent 1"), (g, "silent 2")] if g == 0 else []
        assert len(found) == len(expected)
        for i, a in enumerate(expected):
            for j, b in enumerate(expected):
                assert (found[i] == found[j]) == (a == b), f"{a} and {b}"


def _ending(episode: Episode, text: str, calls: tuple[ToolCall, ...]) -> Episode:
    *others, last = episode.trajectory.turns
    message = dataclasses.replace(last.reply.message, content=text, tool_calls=calls)
    turns = (*others, dataclasses.replace(last, reply=last.reply._replace(message=message)))
    return dataclasses.replace(
        episode, trajectories={"agent": dataclasses.replace(episode.trajectory, turns=turns)}
    )


@reference("signal", "information")
def information(signal: Part) -> None:
    """s_k: the mean log-probability of gold's tokens after the text before turn k; a turn gives s_{k+1} − s_k."""
    _, groups, see, _ = shop()
    groups = [[group[0], *(_cut(one, 3 + i) for i, one in enumerate(group[1:]))] for group in groups]
    batch = collate(groups)
    shown = run_episodes([Request(group[0].task, 5) for group in groups], scripted("gold"))
    for room in (see.context, 120, 40):
        found = measured(signal, dataclasses.replace(see, context=room), batch, groups)
        expected: Turns = []
        for group, plan in zip(groups, shown, strict=True):
            answer = [x for turn in plan.trajectory.turns for x in see.renderer.reply_ids(turn.action)]
            for one in group:
                text: list[int] = []
                scores: list[float] = []
                for turn in one.trajectory.turns:
                    assert turn.reply.parent == PREVIOUS
                    text += turn.reply.prompt_ids
                    before = text[-max(1, room - len(answer)) :]
                    whole = [*before, *answer][:room]
                    known = logits(see.learner.model, whole)
                    places = range(max(1, len(whole) - len(answer)), len(whole))
                    scores.append(mean([known[t - 1, whole[t]].item() for t in places]))
                    text += turn.reply.action_ids
                expected.append([*(b - a for a, b in itertools.pairwise(scores)), 0.0])
        near(of_turns(found.turn["information"], batch), expected, f"information in {room}", 1e-4)


@reference("signal", "tag")
def tag(signal: Part) -> None:
    said = ["<Planning>a</planning>go", "<explore>b</explore>go", "<explore>x</explore>take", "<explore>y</explore>go", "stuck",
            "<reflection>c</reflection>stuck", "<reflection>d</reflection>put", "<monitor>m</monitor>put", "<reflection>e</reflection>look",
            *["<explore>z</explore>go"] * 4, "Go"]  # fmt: skip
    bad = [False, False, True, False, True, *[False] * 9]
    expected_tags = [1.0, 2.0, 0.0, 2.0, 0.0, 3.0, 3.0, 4.0, 3.0, 2.0, 2.0, 2.0, 2.0, 0.0]
    given = {
        9: {"at": "1", "by": "2"},
        10: {"by": "2", "at": "1"},
        **{11 + i: {"at": f"<explore>{i}</explore>"} for i in range(3)},
    }
    paid = [*[0.0] * 8, 1.0, 0.0, 1.0, 1.0, 0.0]  # an order of fields is nothing new, a tag among them is
    calls = [(ToolCall("ask", given[k]),) if k in given else () for k in range(len(said))]
    for solved in (True, False):
        one = episode([0.0] * len(said), end=EndReason.SOLVED if solved else EndReason.FAILED)
        turns = tuple(
            dataclasses.replace(turn, bad_action=no, reply=turn.reply._replace(message=Message("assistant", text, call)))
            for turn, no, text, call in zip(one.trajectory.turns, bad, said, calls, strict=True)
        )  # fmt: skip
        told = dataclasses.replace(
            one, trajectories={"agent": dataclasses.replace(one.trajectory, turns=turns)}
        )
        rows = training_batch([[[-1.0]] * len(said)])
        found = signal(context("tag"), rows, [[told]])
        assert found.turn["tag"].tolist() == [expected_tags]
        assert found.turn["tag_reward"].tolist() == [[float(solved), *paid]]


def _begun(trajectory: Trajectory) -> Trajectory:
    """Its first turn, after a prompt of a single token."""
    turn = trajectory.turns[0]
    cut = turn.reply._replace(prompt_ids=turn.reply.prompt_ids[:1])
    return dataclasses.replace(trajectory, turns=(dataclasses.replace(turn, reply=cut),))


@reference("signal", "prompt_confidence", lowest=[0.7, 0.01, 1e-12, 0.0, 1.5])
def prompt_confidence(signal: Part, lowest: float = 0.2) -> None:
    batch, groups = scene()
    see, share = context("prompt_confidence"), lowest
    if not 0 < share <= 1:
        refuses(lambda: signal(see, batch, groups))
        return
    short, *others = groups[1]
    begun = [dataclasses.replace(short, trajectories={"agent": _begun(short.trajectory)}), *others]
    among = signal(see, collate([begun]), [begun]).turn["prompt_confidence"]
    assert [x.item() != 0 for x in among] == [False, True, True], "nothing foretells a single token"
    found = signal(see, batch, groups).turn["prompt_confidence"]
    places = tokens_of(batch)
    for b in range(len(found)):
        r, first = places[b, 0][0]
        ids = row(batch, r)[:first]
        known = logits(see.learner.model, ids)
        said = sorted(known[t - 1, ids[t]].item() for t in range(1, first))
        kept = said[: max(1, math.ceil(share * len(said) - 1e-9))]
        assert math.isclose(found[b].item(), math.exp(mean(kept)), rel_tol=2e-5)
