"""VeriFree: the right answer after the policy's own reasoning, cut by thoughts or by a tag; as a signal, as what is shown, as a loss."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from math import exp
from types import SimpleNamespace
from typing import Any, NamedTuple

from losses import METRICS, Batch
from measured import Part, logits, measured, near, of_turns, shop
from own_words import is_of_answers, other_model, thinking, thoughts_of
from plain import mean, reference, refuses
from ratios import together

from turnwise.agents.core import Episode, Outcome, Reply
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.registry import get_component
from turnwise.trainers.check.small_policy import signal_setup
from turnwise.trainers.core import Group
from turnwise.trainers.guide.toy import toy_model
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.source.toy import example_context

# --- the loss -----------------------------------------------------------------------------------------------------


def likely(batch: Batch, at: tuple[int, int]) -> float:
    """The product of the probabilities of a turn's tokens."""
    return math.prod(exp(u.logp) for u in together(batch, batch.tokens[at], "turn"))


@reference("loss", "verifree")
def verifree_loss(now: Batch, then: Batch) -> float:
    return sum(-t.weight * t.advantage * likely(then, at) * t.logp for at, t in now.tokens.items())


def answered(batch: Batch) -> dict[str, float]:
    counted = [likely(batch, at) for at, t in batch.tokens.items() if t.advantage]
    return {"answer_likelihood": mean(counted) if counted else 0.0}


METRICS["verifree"] = answered

# --- the signal and the source ------------------------------------------------------------------------------------

SAID = (
    "<think>click[ ?</think>click[red bowl]",
    "<think>hm</think>click[ click[x",
    "so click[",
    "click",
    "<think>so</think>go",
)


class Scene(NamedTuple):
    groups: list[Group]
    see: SignalContext
    acts: list[str]
    """Gold's last act, by group."""


@functools.cache
def scene() -> Scene:
    """Two groups of a shop whose last turns say these things; of one episode nothing was done, one was cut, one is malformed."""
    _, played, see, _ = shop()
    first = played[0][0]
    groups: list[Group] = []
    for g in range(2):
        group: list[Episode] = []
        for i, text in enumerate(SAID):
            turns = list(first.trajectory.turns[: (1 + (i + g) % 2, 0)[(g, i) == (1, 3)]])
            if turns:
                ids = see.renderer.reply_ids(Message("assistant", text))
                reply = turns[-1].reply._replace(action_ids=ids, logprobs=(-1.0,) * len(ids))
                details = {"malformed": True} if (g, i) == (0, 1) else {}
                turns[-1] = dataclasses.replace(
                    turns[-1], reply=reply, bad_action=(g, i) == (1, 0), details=details
                )
            if (g, i) == (1, 2):  # sampled under a hint, and learned without it
                told = turns[-1].reply
                turns[-1] = dataclasses.replace(
                    turns[-1],
                    reply=told._replace(scored_ids=told.prompt_ids, prompt_ids=(9, *told.prompt_ids)),
                )
            one = dataclasses.replace(first.trajectory, turns=tuple(turns))
            end = EndReason.TURN_LIMIT if (g, i) == (1, 1) else EndReason.FAILED
            group.append(dataclasses.replace(first, trajectories={"agent": one}, end=end))
        groups.append(group)
    gold = run_episodes([Request(first.task, first.seed)], scripted("gold"))[0]
    return Scene(groups, see, [gold.trajectory.turns[-1].action.content] * 2)


def cut(see: SignalContext, said: Sequence[int], act: str, tag: str) -> tuple[int, tuple[int, ...]] | None:
    """How many of the tokens are kept, and those of the right answer after them."""
    if not tag:
        return thoughts_of(see, said), see.renderer.reply_ids(Message("assistant", act))
    decode, text = see.tokenizer.decode, see.tokenizer.decode([*said])
    if tag not in text:
        return None
    end = text.rindex(tag) + len(tag)
    n = next(n for n in range(len(said) + 1) if len(decode([*said[:n]])) >= end)
    rest = act[act.rindex(tag) + len(tag) :]
    if len(decode([*said[:n]])) > end:
        n -= 1
        rest = text[len(decode([*said[:n]])) : end] + rest
    return n, see.renderer.reply_ids(Message("assistant", rest))


def learned_under(reply: Reply) -> Sequence[int]:
    return reply.prompt_ids if reply.scored_ids is None else reply.scored_ids


def tags_of(act: str) -> list[str]:
    """A tag of gold's act that ends with a token or within one, and one that everybody says."""
    return [act[: act.index("[") + 1], act[:1]]


def product(told: Any, _: Any, b: int) -> float:
    return math.prod(map(math.exp, told[b]))


def are_products(signal: Callable[[str], Part], name: str, model: Any, tags: Sequence[str]) -> None:
    """By the tag, on the scene: how likely this model finds the whole right answer, or 0 where nothing is cut."""
    groups, see, acts = scene()
    found = 0
    for a_tag in tags:
        told = measured(signal(a_tag), see, batch := collate(groups), groups)
        wanted: list[list[float]] = []
        for group, act in zip(groups, acts, strict=True):
            for one in group:
                turns = one.trajectory.turns
                value = 0.0
                if turns and (known := cut(see, turns[-1].reply.action_ids, act, a_tag)):
                    before = [x for t in turns[:-1] for x in (*t.reply.prompt_ids, *t.reply.action_ids)]
                    before += [*learned_under(turns[-1].reply), *turns[-1].reply.action_ids[: known[0]]]
                    whole = [*before, *known[1]]
                    logp = logits(model, whole)
                    value = math.prod(exp(logp[t - 1, whole[t]]) for t in range(len(before), len(whole)))
                    found += 1
                wanted.append([math.log(value) if value else 0.0] * len(turns))
        logs = [[math.log(x) if x else 0.0 for x in one] for one in of_turns(told.turn[name], batch)]
        near(logs, wanted, f"{name} {a_tag!r}", 1e-4)
    assert found


@reference("signal", "verifree", tag=["click["])
def verifree_signal(signal: Part, tag: str = "") -> None:
    groups, see, acts = scene()
    if not tag:
        is_of_answers(signal, "verifree", see.learner.model, product, bare=False, log=True)
    tags = tags_of(acts[0]) if tag else [""]
    are_products(lambda a_tag: functools.partial(signal, tag=a_tag), "verifree", see.learner.model, tags)
    if tag:
        refuses(lambda: signal(see, collate(groups), groups, tag="~~"), RunError)


@reference("signal", "listener", path=["another model"], tag=["click["])
def listener(make: Part, path: str = "", tag: str = "") -> None:
    groups, see, acts = scene()
    given = {"path": str(toy_model())} if path else {}
    setup = dataclasses.replace(
        signal_setup(get_component("signal", "listener")), copy_policy=lambda: other_model(1),
        load=lambda name: other_model(len(name)), tokenizer=see.tokenizer, micro_tokens=300,
    )  # fmt: skip
    model = other_model(len(given["path"])) if path else other_model(1)
    if tag:
        are_products(lambda a_tag: make(setup, tag=a_tag, **given), "listener", model, tags_of(acts[0]))
        refuses(lambda: measured(make(setup, tag="~~", **given), see, collate(groups), groups), RunError)
        return
    signal = make(setup, **given)
    is_of_answers(signal, "listener", model, product, bare=False, log=True)
    assert not any(weight.requires_grad for weight in signal.model.parameters())
    if path:
        strange = SimpleNamespace(get_vocab=lambda: {**see.tokenizer.get_vocab(), "one more": 10_000})
        refuses(lambda: make(dataclasses.replace(setup, tokenizer=strange), **given))


@reference("signal", "rlpr", tag=["click["])
def rlpr_signal(signal: Part, tag: str = "") -> None:
    def gain(told: Sequence[float], plain: Sequence[float]) -> float:
        return max(0.0, mean([*map(math.exp, told)]) - mean([*map(math.exp, plain)]))

    if not tag:
        is_of_answers(
            signal, "rlpr", thinking()[2].learner.model, lambda told, plain, b: gain(told[b], plain[b])
        )
        return
    groups, see, acts = scene()

    def logs(before: Sequence[int], answer: Sequence[int]) -> list[float]:
        known = logits(see.learner.model, [*before, *answer])
        return [known[len(before) + t - 1, token].item() for t, token in enumerate(answer)]

    for a_tag in tags_of(acts[0]):
        told = measured(functools.partial(signal, tag=a_tag), see, batch := collate(groups), groups)
        wanted: list[list[float]] = []
        for group, act in zip(groups, acts, strict=True):
            for one in group:
                turns, value = one.trajectory.turns, 0.0
                if turns and (known := cut(see, turns[-1].reply.action_ids, act, a_tag)):
                    ids, (kept, answer) = turns[-1].reply.action_ids, known
                    before = [x for t in turns[:-1] for x in (*t.reply.prompt_ids, *t.reply.action_ids)]
                    before += [*learned_under(turns[-1].reply), *ids[:kept]]
                    text = see.tokenizer.decode([*ids])
                    inside = text.rindex(a_tag) + len(a_tag) - len(see.tokenizer.decode([*ids[:kept]]))
                    said = a_tag[: max(0, len(a_tag) - inside)]
                    spoken = see.renderer.reply_ids(Message("assistant", said))[:-1] if said else ()
                    alone = [*learned_under(turns[0].reply), *spoken]
                    value = gain(logs(before, answer), logs(alone, answer))
                wanted.append([value] * len(turns))
        near(of_turns(told.turn["rlpr"], batch), wanted, f"rlpr {a_tag!r}", 1e-5)
        assert any(x for one in wanted for x in one)
    refuses(lambda: signal(see, collate(groups), groups, tag="~~"), RunError)


@reference("source", "verifree", tag=["click["])
def verifree_source(source: Part, tag: str = "") -> None:
    groups, see, acts = scene()
    failed = [dataclasses.replace(groups[0][0], outcome=Outcome.INFRA_ERROR)]
    long = next(one for one in groups[0] if len(one.trajectory.turns) == 2)
    begun = dataclasses.replace(long.trajectory.turns[0], reply=Reply(Message("assistant", "of a script")))
    mixed = dataclasses.replace(long.trajectory, turns=(begun, long.trajectory.turns[1]))
    lacking = [dataclasses.replace(long, trajectories={"agent": mixed})]
    held = dataclasses.replace(
        example_context("shop/quick"), renderer=see.renderer, played=[*groups, failed, lacking]
    )
    kinds = set[str]()
    for a_tag in tags_of(acts[0]) if tag else [""]:
        drawn = asyncio.run(functools.partial(source, tag=a_tag)(held, 3))
        assert not drawn.joined
        every = [(one, act) for group, act in zip(groups, acts, strict=True) for one in group]
        every = [(one, act) for one, act in every if one.trajectory.turns]
        assert len(drawn.shown) == len(every)
        for shown, (one, act) in zip(drawn.shown, every, strict=True):
            *before, last = one.trajectory.turns
            *kept, now = shown.trajectory.turns
            assert shown.task == one.task
            assert kept == [dataclasses.replace(turn, weight=0.0) for turn in before]
            known = cut(see, last.reply.action_ids, act, a_tag)
            lost = one.end is EndReason.TURN_LIMIT or last.bad_action or last.details.get("malformed")
            if known is None:
                assert now == dataclasses.replace(last, weight=0.0)
                kinds.add("no tag")
                continue
            assert now.weight == (0.0 if lost else 1.0)
            kinds.add("lost" if lost else "shown")
            prompt, said = learned_under(last.reply), last.reply.action_ids
            assert now.reply.scored_ids is None
            assert now.reply.prompt_ids == (*prompt, *said[: known[0]])
            assert (now.reply.action_ids, now.reply.logprobs) == (known[1], ())
            assert now.reply.parent == last.reply.parent
    assert kinds >= {"lost", "shown"}
    if tag:
        refuses(lambda: asyncio.run(source(held, 0, tag="~~")), RunError)
