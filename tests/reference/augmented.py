"""Guides that play all of a group under more text, or all but one of its turns without chance."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
from collections.abc import Sequence
from random import Random
from typing import Any

from drawn import fair
from helped import Part
from leaving import Forgetful, Thinker, pondering
from plain import agree, mean, reference, refuses
from reattempted import plain as without_help
from reattempted import riddles
from rows_helped import (
    SIZE,
    Knowing,
    Watched,
    learned_under,
    never,
    on_riddles,
    sampled_under,
    source_of,
)

from turnwise.agents.core import Completion, Episode, Outcome, Sampling, Trajectory
from turnwise.agents.policies.model import ModelPolicy
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.kit.reward_edits import paid_instead, replace_turns
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups


@reference("guide", "length_budget", budget=[0.3, 87.5, 2.2], unit=["turns"])
def length_budget(make: Part, budget: float = 256.0, unit: str = "tokens") -> None:
    for wrong in (0.0, -1.0):
        refuses(lambda wrong=wrong: make(budget=wrong))
    guide, whole = make(), {0.3: 1, 87.5: 88, 2.2: 2}.get(budget, 256)
    assert guide.instead
    guide.restore(guide.state())
    plain, found, engine, _ = rows = on_riddles(guide, Knowing(never, mark="Use at most "))
    said = f"{whole} {unit} in all."
    assert rows.hints == [[said] * SIZE] * 3
    for old, new in zip(plain, found, strict=True):
        assert not {one.seed for one in new} & {one.seed for one in old}
        for one in new:
            assert source_of(one) == "guide/length_budget"
            assert f"\n\nUse at most {said}<|" in learned_under(one, engine)
            assert learned_under(one, engine) == sampled_under(one, engine)


def rewarded(group: Group, rng: Random) -> Group:
    """Each episode earned something else, and one has no turns."""
    return [
        replace_turns(one, lambda turns: paid_instead(turns, rng.choice([0.0, 0.25, 1.0]))) for one in group
    ]


@reference(
    "guide", "reg_grpo", window=[2], share=[0.6, 0.01], noise=[1], demonstrator=["null"],
)  # fmt: skip
def reg_grpo(
    make: Part, window: int = 8, share: float = 0.25, noise: int = 2, demonstrator: str = "gold"
) -> None:
    for wrong in ({"window": 0}, {"noise": 0}, {"share": 0.0}, {"share": 1.1}):
        assert "window=" in refuses(lambda wrong=wrong: make(**wrong))
    make(window=1, noise=1, share=1.0)
    riddles()
    guide, past, kinds = make(), list[float](), list[str]()
    chosen = set[int]()
    for call in range(5):
        given = list[Group]()
        if call == 3:
            past = [0.3] * window
            guide.restore(PartState({"past": past}))

        async def helps(
            player: Any, groups: Sequence[Group], call: int = call, given: list[Group] = given
        ) -> Any:
            rng = Random(f"earned {call}")
            given += [rewarded(group, rng) for group in groups]
            given[0] = [
                given[0][0],
                dataclasses.replace(given[0][1], trajectories={"agent": Trajectory(())}),
                *given[0][2:],
            ]
            if call == 3:  # nothing counts, and nothing is remembered
                given[:] = [
                    [dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) for one in group]
                    for group in given
                ]
            if call == 2:  # as usual
                given[:] = [
                    [replace_turns(one, lambda turns: paid_instead(turns, 0.5)) for one in group[:1] * SIZE]
                    for group in given
                ]
            return await guide(player, given)

        _, found, engine, _ = rows = on_riddles(
            helps, Knowing(never, early=call % 2 * 2), words=5, seed=call, lost=call % SIZE
        )
        counted = [[one.trajectory.total_reward for one in group if one.outcome.counts] for group in given]
        earned = [mean(some) if some else None for some in counted]
        recent = past[-window:]
        for n, (old, new, got) in enumerate(zip(given, found, earned, strict=True)):
            usual = mean(recent) if recent else got
            kind = "" if got is None or usual is None or got == usual else "hard" if got < usual else "easy"
            kinds.append(kind)
            if kind == "" or (kind == "hard" and demonstrator == "null"):
                assert new == old
                continue
            steps = rows.plans[n][: max(1, round(share * 5))]
            hint = "Hint: " + "\n".join(steps)
            seen = {
                m: "Seen elsewhere:\n" + "\n".join(said(one)[-noise:])
                for m, one in enumerate(turned(given, n))
            }
            for one in new:
                assert source_of(one) == "guide/reg_grpo"
                prompt = sampled_under(one, engine)
                assert learned_under(one, engine) == prompt
                if kind == "hard":
                    assert f"\n\n{hint}<|" in prompt
                else:
                    told = prompt.partition("Seen elsewhere")[2].partition("<|")[0]
                    matching = [
                        m for m, text in seen.items() if f"Seen elsewhere{told}" == plain_text(engine, text)
                    ]
                    assert matching
                    chosen.add(matching[0])
            assert len({sampled_under(one, engine) for one in new}) == 1
        every = [got for got in earned if got is not None]
        past += [mean(every)] if every else []
        other = make()
        other.restore(PartState(json.loads(json.dumps({**guide.state().numbers}))))
        assert other.state().numbers == guide.state().numbers
        assert len(guide.past) == len(past[-window:])
        for found_mean, expected_mean in zip(guide.past, past[-window:], strict=True):
            agree(found_mean, expected_mean, "a mean of the past")
    assert {*kinds} == {"", "hard", "easy"}
    assert len(chosen) > 1, "it draws whom it shows"


def turned(groups: Sequence[Group], n: int) -> list[Episode]:
    """The episodes of other groups that have turns."""
    return [one for m, group in enumerate(groups) if m != n for one in group if one.trajectory.turns]


def said(one: Episode) -> list[str]:
    """All that it read, but for help."""
    return [without_help(message.content) for turn in one.trajectory.turns for message in turn.observation]


def plain_text(engine: Knowing, text: str) -> str:
    """As it is read back from tokens."""
    tokenizer = engine.plain.renderer.tokenizer
    return tokenizer.decode(tokenizer.encode(text, add_special_tokens=False))


class Coin(Thinker):
    """Says its seed, and where it takes the likeliest token that it does."""

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text = f"hm {seed if sampling.temperature else 'surely'}"
        ids = (*self.plain.renderer.tokenizer.encode(text, add_special_tokens=False), next(iter(stop_ids)))
        return Completion(ids, (-0.5,) * len(ids), stopped=True)


@reference("guide", "tempflow")
def tempflow(make: Part) -> None:
    pondering()
    parted = list[int]()
    for seed in range(12):
        most, size = ((6, 3), (6, 1), (1, 2), (6, 2))[seed % 4]
        groups = parting(make, most, size, seed, Watched)
        for group in groups:
            (k,) = {drawn_at(one) for one in group}
            parted += [k] if most == 6 else []
            acts = [[str(turn.action) for turn in one.trajectory.turns] for one in group]
            assert len({row[k] for row in acts}) == size, "each draws for itself"
            for one, row in zip(group, acts, strict=True):
                assert len(row) == most
                assert [text == "hm surely" for text in row] == [n != k for n in range(most)]
                assert [turn.weight for turn in one.trajectory.turns] == [float(n == k) for n in range(most)]
                begun = [turn.reply for turn in group[0].trajectory.turns[:k]]
                assert [turn.reply for turn in one.trajectory.turns[:k]] == begun
    for k in range(6):
        fair(parted.count(k), len(parted), 1 / 6)
    first, second = parting(make, 3, 2, 0, Forgetful)
    assert [one.outcome for one in first] == [Outcome.INFRA_ERROR] * 2
    assert {turn.weight for one in first for turn in one.trajectory.turns} == {0.0}
    assert all(one.outcome.counts for one in second)
    for group in parting(make, 3, 2, 0, Watched, room=1):
        assert [(one.outcome, len(one.trajectory.turns)) for one in group] == [(Outcome.LIMIT, 0)] * 2


@reference(
    "guide", "rest_rl", least=[0.0, 0.45, -0.1], best=[0.4], share=[0.2, 1.0, 0.0, 1.1], decay=[0.3, 0.0, 1.1],
    also=[{"decay": 1.0, "share": 1.0}],
)  # fmt: skip
def rest_rl(
    make: Part, least: float = 0.05, best: float = 0.9, share: float = 0.5, decay: float = 0.95
) -> None:
    """Groups that differ and of which one is good are gone on with from a state of that one, more of them the longer it is."""
    if least < 0 or not 0 < share <= 1 or not 0 < decay <= 1:
        assert "guide 'rest_rl'" in refuses(lambda: begun_again(make, 3, 0, 0))
        return
    asked, times = dict[tuple[int, int], list[int]](), 150
    for update in range(times):
        most = 6 if update else 1
        given, found, player = begun_again(make, most, 0, update, Asked)
        assert [[*map(id, group)] for group in found] == [[*map(id, group)] for group in given], "it stays"
        for point in player.wanted:
            place = next(
                (n, i) for n, group in enumerate(given) for i, one in enumerate(group) if one is point.episode
            )
            asked.setdefault(place, []).append(point.turn)
        assert update or not asked
    prompts = next(n for n in range(1, 7) if n >= share * 6 - 1e-9)
    total = sum(decay**i for i in range(6))
    for n, group in enumerate(given):
        earned = {i: one.trajectory.total_reward for i, one in enumerate(group) if one.outcome.counts}
        apart = mean([(x - mean([*earned.values()])) ** 2 for x in earned.values()]) ** 0.5 if earned else 0.0
        rows = [row for m, row in asked if m == n]
        if not earned or apart < least - 1e-6 or max(earned.values()) < best - 1e-6:
            assert not rows
            continue
        (row,) = rows
        assert row == max(earned, key=lambda i: (earned[i], -i))
        for k in range(1, 6):
            chance = prompts / (prompts + 1) * decay ** (k - 1) / total
            fair(asked[n, row].count(k), times - 1, chance)
        assert {*asked[n, row]} <= {1, 2, 3, 4, 5}
    if (least, best, share, decay) == (0.05, 0.9, 0.5, 0.95):
        plays_on(make)


def plays_on(make: Part) -> None:
    """What is reached is played on from by all of the group, and what was before is read."""
    again = 0
    for update in range(1, 3):
        given, found, _ = begun_again(make, 6, 0, update)
        for old, new in zip(given, found, strict=True):
            if [*new] == [*old]:
                continue
            again += 1
            (k,) = {[turn.weight for turn in one.trajectory.turns].index(1.0) for one in new}
            source = max(
                (one for one in old if one.outcome.counts), key=lambda one: one.trajectory.total_reward
            )
            before = [turn.reply for turn in source.trajectory.turns[:k]]
            for one in new:
                assert [turn.weight for turn in one.trajectory.turns] == [float(n >= k) for n in range(6)]
                assert [turn.reply for turn in one.trajectory.turns[:k]] == before
            assert len({str(one.trajectory.turns[k].action) for one in new}) == len(new) == 3
            assert not {one.seed for one in new} & {one.seed for one in old}
    assert again > 1


class Asked(Watched):
    """Keeps the moments that it is asked for, and comes to none of them again."""

    wanted: list[Any]

    async def moments(self, wanted: Any) -> Any:
        self.wanted = [*wanted]
        return [None for _ in wanted]


@functools.cache
def coin() -> ModelPolicy:
    engine = Coin("", 1, "")
    return ModelPolicy(engine, engine.plain.renderer, Sampling(max_tokens=200))  # pyright: ignore


@functools.cache
def earning(most: int, seed: int) -> list[Group]:
    """Groups that earned something: as much as is asked, one more a little less, all the same, or less than is asked; members are lost."""
    pondering()
    groups = asyncio.run(
        chain(RolloutRunner(coin(), as_is), plan_groups(f"pondering/{most}", len(EARNED), 3, seed))
    )
    paid = [
        [
            replace_turns(one, lambda turns, x=x: paid_instead(turns, x))
            for one, x in zip(group, earned, strict=True)
        ]
        for group, earned in zip(groups, EARNED, strict=True)
    ]
    paid[0][0] = dataclasses.replace(paid[0][0], outcome=Outcome.INFRA_ERROR)
    paid[1] = [dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) for one in paid[1]]
    return [*paid]


EARNED = (
    (1.0, 0.0, 0.9),
    (1.0, 0.0, 0.0),
    (0.9, 1.0, 1.0),
    (1.0, 1.0, 1.0),
    (0.89, 0.0, 0.5),
    (0.91, 0.9, 0.9),
    (0.3, 0.0, 0.0),
)
"""Of each member of each group."""


def begun_again(
    make: Part, most: int, seed: int, update: int, kind: type[Any] = Watched
) -> tuple[list[Group], list[Group], Any]:
    policy, given = coin(), earning(most, seed)
    player = kind(RolloutRunner(policy, as_is), policy, {}, seed, update)
    player.played, player.lost, player.alone, player.wanted = [], None, None, []
    return given, asyncio.run(make(player, given)), player


def parting(
    make: Part, most: int, size: int, seed: int, kind: type[Watched], room: int = 8192
) -> list[Group]:
    engine = Coin("", 1, "")
    engine.context_length = room
    policy = ModelPolicy(engine, engine.plain.renderer, Sampling(max_tokens=200))  # pyright: ignore
    runner = RolloutRunner(policy, as_is)
    player = kind(runner, policy, {}, seed, 0)
    player.played, player.lost, player.alone = [], None, None
    guide = make()
    assert guide.instead
    guide.restore(guide.state())

    async def run() -> list[Group]:
        given = await chain(runner, plan_groups(f"pondering/{most}", 2, size, seed))
        found = await guide(player, given)
        assert [[one.task.id for one in group] for group in found] == [
            [one.task.id for one in group] for group in given
        ]
        return found

    return asyncio.run(run())


def drawn_at(one: Episode) -> int:
    """The turn that is not marked."""
    (k,) = [n for n, turn in enumerate(one.trajectory.turns) if turn.reply.source != "guide/tempflow"]
    return k
