"""Guides that replace rows, on riddles: an engine that solves one where its prompt holds what it has to be told."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import ceil, exp
from random import Random
from typing import Any, NamedTuple

from helped import Part, actions, obedient
from plain import reference, refuses
from reattempted import riddles

from turnwise import registry
from turnwise.agents.core import Completion, Episode, Outcome, Sampling
from turnwise.agents.policies.model import ModelPolicy
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.registry import component
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups

Knows = Callable[[str, list[str]], bool]
"""(what stands in the prompt after "Hint: ", the solution) → the engine plays the solution."""
SIZE = 3


class Knowing:
    """Solves a riddle where it ``knows``, says ``early`` right words before it fails where it does not, and answers questions.

    Of each riddle it keeps the hints that it was told, in order.
    """

    version, context_length = 0, 4096

    def __init__(
        self, knows: Knows, early: int = 0, answer: str = "think twice", mark: str = "Hint: "
    ) -> None:
        self.knows, self.early, self.answer, self.mark = knows, early, answer, mark
        self.plain, self.questions = obedient(), list[str]()
        self.plans: dict[str, list[str]] = {}
        self.hints: dict[str, list[str]] = {}

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text = self.plain.renderer.tokenizer.decode(list(prompt_ids))
        if "Below are" in text and self.mark not in text:
            self.questions.append(text)
            said = self.answer
        else:
            prompt = max(self.plans, key=text.rfind)
            plan = self.plans[prompt]
            turn = text.count("<|assistant|>") - 1
            hint = text.partition(self.mark)[2].partition("<|")[0]
            if self.mark in text and turn == 0:
                self.hints.setdefault(prompt, []).append(hint)
            knows = bool(hint.strip()) and self.knows(hint.strip(), plan)
            said = plan[turn] if turn < len(plan) and (knows or turn < self.early) else "?"
        ids = (*self.plain.renderer.tokenizer.encode(said, add_special_tokens=False), next(iter(stop_ids)))
        return Completion(ids, (-0.5,) * len(ids), stopped=True)

    def close(self) -> None:
        """Nothing is held."""


class Rows(NamedTuple):
    """Three groups before and after a guide; the second one was solved by its first member. And all that it played, in order."""

    plain: list[Group]
    found: list[Group]
    engine: Knowing
    played: list[dict[int, list[Episode]]]

    @property
    def plans(self) -> list[list[str]]:
        return [group[0].task.options["words"] for group in self.plain]

    @property
    def hints(self) -> list[list[str]]:
        """What was told in each group, in order."""
        return [self.engine.hints.get(group[0].task.prompt, []) for group in self.plain]


class Watched(GuidePlayer):
    """Keeps what a guide plays; of that, one episode of each group that is ``lost`` fails, or the lone one of the group ``alone``."""

    played: list[dict[int, list[Episode]]]
    lost: int | None
    alone: int | None

    async def play(self, requests: Any, policy: Any) -> dict[int, list[Episode]]:
        found = await super().play(requests, policy)
        if self.lost is not None and requests and min(map(len, requests.values())) > 1:
            found = {n: without(every, (self.lost + n) % SIZE) for n, every in found.items()}
        if self.alone in found:
            found = {**found, self.alone: without(found[self.alone], 0)}
        self.played.append(found)
        return found


def without(group: Sequence[Episode], lost: int | None) -> list[Episode]:
    """One member could not be played."""
    return [
        dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) if i == lost else one
        for i, one in enumerate(group)
    ]


def on_riddles(
    guide: Part,
    engine: Knowing,
    *,
    words: int | str = 2,
    update: int = 0,
    seed: int = 0,
    size: int = SIZE,
    lost: int | None = None,
    alone: int | None = None,
) -> Rows:
    """``lost`` is the member of the last group that failed to be played; of those that are played with help another one does.

    ``alone`` is the group whose lone episode with help fails to be played.
    """
    riddles()
    policy = ModelPolicy(engine, engine.plain.renderer, Sampling(max_tokens=200))  # pyright: ignore
    runner = RolloutRunner(policy, as_is)
    player = Watched(runner, policy, {}, seed, update)
    player.played, player.lost, player.alone = [], lost, alone

    async def run() -> tuple[list[Group], list[Group]]:
        plan = plan_groups(f"riddle/{words}", 3, size, seed)
        engine.plans = {one[0].task.prompt: one[0].task.options["words"] for one in plan}
        given = await chain(runner, plan)
        given[1] = [dataclasses.replace(given[1][0], end=EndReason.SOLVED), *given[1][1:]]
        given[2] = without(given[2], lost)
        return given, await guide(player, given)

    return Rows(*asyncio.run(run()), engine, player.played)


def source_of(episode: Episode) -> str:
    (source,) = {turn.reply.source for turn in episode.trajectory.turns}
    return source


def learned_under(episode: Episode, engine: Knowing) -> str:
    """The first prompt under which it is learned."""
    reply = episode.trajectory.turns[0].reply
    return engine.plain.renderer.tokenizer.decode(list(reply.scored_ids or reply.prompt_ids))


def sampled_under(episode: Episode, engine: Knowing) -> str:
    return engine.plain.renderer.tokenizer.decode(list(episode.trajectory.turns[0].reply.prompt_ids))


def never(hint: str, plan: list[str]) -> bool:
    return False


@reference("guide", "acnchor", demonstrator=["null"], where=["unsolved"])
def acnchor(guide: Part, demonstrator: str = "gold", where: str = "all") -> None:
    plain, found, *_ = rows = on_riddles(guide, Knowing(never))
    for n, (old, new) in enumerate(zip(plain, found, strict=True)):
        if demonstrator == "null" or (n == 1 and where == "unsolved"):
            assert new == old
            continue
        assert [*new[:-1]] == [*old[:-1]]
        gold = new[-1]
        assert actions(gold) == rows.plans[n]
        assert gold.success
        assert all(
            (t.reply.source, t.weight, t.reply.logprobs) == ("guide/acnchor", 1.0, ())
            for t in gold.trajectory.turns
        )


@reference("guide", "ghpo", shares=[(0.5, 1.0)], demonstrator=["null"], start=[2])
def ghpo(
    guide: Part, shares: tuple[float, ...] = (0.25, 0.5, 0.75), demonstrator: str = "gold", start: int = 0
) -> None:
    for wrong in ((), (0.5, 0.25), (0.5, 0.5), (0.0, 0.5), (0.5, 1.25)):
        refuses(lambda wrong=wrong: on_riddles(lambda p, g: guide(p, g, shares=wrong), Knowing(never)))
    for least in (0.2, 0.4, 2.0):
        knows: Knows = lambda hint, plan, least=least: len(hint) >= least * len("\n".join(plan))
        for update in {start - 1, start} - {-1}:
            plain, found, engine, _ = rows = on_riddles(guide, Knowing(knows), words=5, update=update)
            for n, (old, new) in enumerate(zip(plain, found, strict=True)):
                if n == 1 or demonstrator == "null" or update < start:
                    assert new == old
                    assert rows.hints[n] == []
                    continue
                whole = "\n".join(rows.plans[n])
                parts = [whole[: round(share * len(whole))] for share in shares]
                enough = next((i for i, one in enumerate(parts) if knows(one.strip(), rows.plans[n])), None)
                told = parts if enough is None else parts[: enough + 1]
                assert rows.hints[n] == [one for one in told for _ in range(SIZE)]
                for one in new:
                    assert f"Hint: {told[-1]}<|" in sampled_under(one, engine)
                    assert learned_under(one, engine) == sampled_under(one, engine)
                    assert (one.success, source_of(one)) == (enough is not None, "guide/ghpo")


@reference("guide", "scaf_grpo", start=[1], tiers=[("solution",)], demonstrator=["null"])
def scaf_grpo(
    guide: Part,
    start: int = 50,
    tiers: tuple[str, ...] = ("knowledge", "plan", "solution"),
    demonstrator: str = "gold",
) -> None:
    """Told one level after the other until it knows: lines enough, each tier a quarter further in each step."""
    for wrong in ((), ("plan", "plan")):
        refuses(lambda wrong=wrong: on_riddles(lambda p, g: guide(p, g, tiers=wrong), Knowing(never)))
    for lines in (2, 4, 99):
        knows: Knows = lambda hint, plan, lines=lines: len(hint.splitlines()) >= lines
        for update in (start - 1, start):
            plain, found, engine, _ = rows = on_riddles(guide, Knowing(knows), words=5, update=update)
            for n, (old, new) in enumerate(zip(plain, found, strict=True)):
                if n == 1 or demonstrator == "null" or update < start:
                    assert new == old
                    assert rows.hints[n] == []
                    continue
                plan = rows.plans[n]
                items = {"knowledge": sorted(set(plan)), "plan": plan, "solution": plan}
                levels = [
                    [x for tier in tiers[:t] for x in items[tier]]
                    + items[tiers[t]][: ceil(step * len(items[tiers[t]]) / 4)]
                    for t in range(len(tiers))
                    for step in (1, 2, 3, 4)
                ]
                enough = next((i for i, level in enumerate(levels) if len(level) >= lines), None)
                told = levels if enough is None else levels[: enough + 1]
                assert rows.hints[n] == ["\n".join(level) for level in told]
                if enough is None:
                    assert new == old
                    continue
                assert [*new[1:]] == [*old[1:]]
                assert new[0].success
                assert f"Hint: {chr(10).join(told[-1])}<|" in learned_under(new[0], engine)
                assert source_of(new[0]) == "guide/scaf_grpo"


@reference("guide", "nurl", demonstrator=["null"], unhinted=[0, 2, SIZE, SIZE + 1, -1])
def nurl(make: Part, demonstrator: str = "gold", unhinted: int = 1) -> None:
    if unhinted < 0:
        refuses(make)
        return
    guide, told = make(), max(0, SIZE - unhinted)
    for again in range(2):
        plain, found, engine, _ = rows = on_riddles(guide, Knowing(lambda hint, plan: hint == "think twice"))
        helped = [] if demonstrator == "null" else [0, 2]
        wrote = [] if again else helped
        assert len(engine.questions) == 2 * len(wrote), "a path and a cue for each task, once"
        for question, (step, n) in zip(engine.questions, product("pc", wrote), strict=True):
            solution = "\n".join(rows.plans[n])
            assert f"Task:\n{plain[n][0].task.prompt}\n\n" in question
            shown = f"Solution:\n{solution}" if step == "p" else "Explanation:\nthink twice"
            assert shown in question
            assert (solution in question) == (step == "p"), "the cue is written from the path alone"
        for n, (old, new) in enumerate(zip(plain, found, strict=True)):
            if n not in helped:
                assert new == old
                continue
            assert [one.success for one in new] == [i < told for i in range(SIZE)]
            for i, one in enumerate(new):
                assert ("Hint: think twice<|" in learned_under(one, engine)) == (i < told)
                assert source_of(one) == ("guide/nurl" if i < told else "")
            assert not {one.seed for one in new} & {one.seed for one in old}
    other = make()
    other.restore(PartState({**guide.state().numbers}))
    assert other.state() == guide.state()
    rows = on_riddles(other, Knowing(never))
    assert not rows.engine.questions
    assert rows.hints == [["think twice"] * (told if n in helped else 0) for n in range(3)]
    plain, found, *_ = on_riddles(make(), Knowing(never, answer="You: BUY, search or product!"), words=1)
    assert found == plain, "a cue that gives the answer away is not used"
    told = max(0, 1 - unhinted)
    rows = on_riddles(make(), Knowing(lambda hint, plan: True), size=1)
    assert rows.hints == [["think twice"] * (told if n in helped else 0) for n in range(3)]


@reference("guide", "expo", demonstrator=["null"], verified=[False], told=["solution"])
def expo(guide: Part, demonstrator: str = "gold", verified: bool = True, told: str = "answer") -> None:
    for knows in (lambda hint, plan: True, never):
        plain, found, engine, _ = rows = on_riddles(guide, Knowing(knows))
        for n, (old, new) in enumerate(zip(plain, found, strict=True)):
            if n == 1 or demonstrator == "null" or (verified and knows is never):
                assert new == old
                continue
            assert [*new[1:]] == [*old[1:]]
            plan = rows.plans[n]
            answer = "\n".join(plan) if told == "solution" else plan[-1]
            assert f"ending with: {answer}<|" in sampled_under(new[0], engine)
            assert "ending with" not in learned_under(new[0], engine)
            assert (source_of(new[0]), new[0].success) == ("guide/expo", knows is not never)


@reference(
    "guide", "scope", judge=["critic", "graded"], threshold=[0.0, 0.5], demonstrator=["null"],
    also=[{"judge": "graded", "threshold": 0.65}, {"judge": "graded", "demonstrator": "null"}],
)  # fmt: skip
def scope(guide: Part, judge: str = "gold", threshold: float = 0.6, demonstrator: str = "gold") -> None:
    if judge == "critic":
        assert "principle" in refuses(lambda: on_riddles(guide, Knowing(never)))
        return
    seen = set[Mended | None]()
    for salt in range(6):
        lost = salt % SIZE
        for early in (4,) if judge == "graded" else (0, 1):
            words = 5 if judge == "graded" else 2
            with graded(salt):
                plain, found, *_ = rows = on_riddles(
                    guide, Knowing(never, early=early), words=words, lost=lost
                )
            for n, (old, new) in enumerate(zip(plain, found, strict=True)):
                of = functools.partial(grade, salt) if judge == "graded" else by_gold
                mended = first_of_longest(old, of, threshold) if demonstrator != "null" else None
                seen.add(mended)
                for i, (before, after) in enumerate(zip(old, new, strict=True)):
                    if mended is None or i != mended.row:
                        assert after == before
                        continue
                    assert actions(after) == rows.plans[n]
                    assert after.success
                    for k, turn in enumerate(after.trajectory.turns):
                        said = (turn.reply.source, turn.reply.logprobs, turn.weight)
                        if k < mended.turn:
                            assert turn == before.trajectory.turns[k]
                        else:
                            assert said == ("guide/scope", (), 1.0)
        if judge == "gold":
            break
    assert (seen == {None}) == (demonstrator == "null" or threshold == 0)
    if judge == "graded" and demonstrator != "null":
        assert len({one.turn for one in seen if one}) > 2
        assert {one.row for one in seen if one} == {*range(SIZE)}


class Mended(NamedTuple):
    """The row of a group that is mended, from one of its turns on."""

    row: int
    turn: int


Grade = Callable[[Episode, int], float]


def first_of_longest(group: Group, of: Grade, threshold: float) -> Mended | None:
    best: Mended | None = None
    for i, one in enumerate(group):
        bad = [k for k in range(len(one.trajectory.turns)) if of(one, k) < threshold]
        failed = one.outcome.counts and not one.success
        if failed and bad and bad[0] > (best.turn if best else 0):
            best = Mended(i, bad[0])
    return best


def by_gold(episode: Episode, turn: int) -> float:
    """The word was right, or ended it."""
    return float(str(episode.trajectory.turns[turn].action) == episode.task.options["words"][turn])


def grade(salt: int, episode: Episode, turn: int) -> float:
    return Random(f"{salt} {episode.seed} {turn}").choice([0.4, 0.6, 0.65, 0.9, 0.9])


@contextmanager
def graded(salt: int) -> Iterator[None]:
    """A judge of this name, of more marks than gold's, for as long as it lasts."""

    @component("judge", "graded", gives=("principle",))
    async def by_chance(groups: Sequence[Group]) -> list[Group]:
        assert all(one.outcome.counts for group in groups for one in group)
        return [
            [
                with_signals(
                    one, [{"principle": grade(salt, one, k)} for k in range(len(one.trajectory.turns))]
                )
                for one in group
            ]
            for group in groups
        ]

    try:
        yield
    finally:
        registry._components.pop(("judge", "graded"))  # pyright: ignore[reportPrivateUsage]


@reference(
    "guide", "critique", form=["verdict", "answer", "written"], critic=["scripted:echo"], demonstrator=["null"],
    also=[{"form": "written", "critic": "scripted:echo"}, {"form": "answer", "demonstrator": "null"}],
)  # fmt: skip
def critique(guide: Part, form: str = "report", critic: str = "", demonstrator: str = "gold") -> None:
    """Some of what is told helps, by chance; of those that were played with it, the first that is right or the best paid stands last."""
    rng, kinds = Random(0), set[str]()
    for seed in range(5):
        engine = Knowing(lambda hint, plan, seed=seed: rng.random() < (0.8, 0.2)[seed % 2])
        rows = on_riddles(guide, engine, words="paid", seed=seed, lost=seed if seed < SIZE else None)
        assert len(rows.played) == (2 if form == "answer" else 1)
        _asked_for_critiques(rows, form=form if not critic else "")
        for n, (old, new) in enumerate(zip(rows.plain, rows.found, strict=True)):
            if not all(one.outcome.counts for one in old):
                assert new == old
                assert rows.hints[n] == []
                continue
            told = {"right": "The earlier attempt was right.", "wrong": "The earlier attempt was wrong."}
            of_each = [told["right" if one.success else "wrong"] for one in old]
            if form == "answer" and demonstrator == "gold":
                of_each = [f"{verdict} The answer:\n{rows.plans[n][0]}" for verdict in of_each]
            if form == "report":
                (word,) = rows.plans[n]
                of_each = [
                    verdict if one.success else f"Hint: {word}"
                    for one, verdict in zip(old, of_each, strict=True)
                ]
            if form == "written":
                of_each = [] if critic else ["think twice"] * SIZE
            if of_each:
                assert sorted(rows.hints[n]) == sorted(of_each)
            else:
                assert all(hint.startswith("Below are a task") for hint in rows.hints[n])
            assert [*new[:-1]] == [*old[:-1]]
            tried = [one for one in rows.played[-1][n] if one.outcome.counts]
            assert 0 < len(tried) <= len(rows.played[-1][n]) == SIZE
            right = [one for one in tried if one.success]
            most = max(one.trajectory.total_reward for one in tried)
            assert new[-1] == (
                right[0] if right else next(one for one in tried if one.trajectory.total_reward == most)
            )
            paid = [one.trajectory.total_reward for one in right]
            kinds |= {"a later one is paid more" if max(paid) > paid[0] else "right"} if right else {"wrong"}
            assert source_of(new[-1]) == "guide/critique"
            assert "An earlier attempt:\n?\n\nHint: " in sampled_under(new[-1], engine)
            plain_prompt = learned_under(new[-1], engine)
            assert "Hint" not in plain_prompt
            assert "earlier attempt" not in plain_prompt
    assert kinds == {"a later one is paid more", "right", "wrong"}


def _asked_for_critiques(rows: Rows, form: str) -> None:
    """The policy is asked about each attempt of the groups that were played as a whole."""
    whole = [group for group in rows.plain if all(one.outcome.counts for one in group)]
    attempts = [one for group in whole for one in group] if form == "written" else []
    parts = [
        (
            f"an attempt at it, which {'was right' if one.success else 'was wrong'}. ",
            f"[told] {one.task.prompt}\n[turn 1] ?",
        )
        for one in attempts
    ]
    asked = [
        [n for n, part in enumerate(parts) if all(text in question for text in part)]
        for question in rows.engine.questions
    ]
    assert all(asked)
    assert {n for some in asked for n in some} == {*range(len(parts))}, "the same question is asked once"
    assert len(asked) <= len(parts)


def strewn(group: Group, rng: Random) -> Group:
    """Some solved it, some were helped, some could not be played, and each began with words of its own."""

    def one(episode: Episode) -> Episode:
        turns = tuple(
            dataclasses.replace(
                turn,
                reply=turn.reply._replace(
                    message=Message("assistant", f"{rng.random()}"),
                    source=rng.choice(["", "", "", "guide/hint"]),
                ),
            )
            for turn in episode.trajectory.turns
        )
        return dataclasses.replace(
            episode,
            trajectories={"agent": dataclasses.replace(episode.trajectory, turns=turns)},
            end=rng.choice([EndReason.SOLVED, EndReason.SOLVED, EndReason.FAILED]),
            outcome=rng.choice([Outcome.OK, Outcome.OK, Outcome.INFRA_ERROR]),
        )

    return [one(episode) for episode in group]


def strewn_first(guide: Part, rng: Random, given: list[Group]) -> Part:
    """The guide on groups that were strewn, which are put into ``given``."""

    async def helped(player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
        given.extend(strewn(group, rng) for group in groups)
        return await guide(player, given)

    return helped


@reference("guide", "icpo", gate=[0.25], bonus=[0.5], horizon=[2], pool=[1, 3])
def icpo(make: Part, gate: float = 1.0, bonus: float = 1.0, horizon: int = 400, pool: int = 64) -> None:
    for wrong in ({"pool": 0}, {"horizon": 0}):
        refuses(lambda wrong=wrong: make(**wrong))
    make(horizon=1)
    guide, rng = make(), Random(0)
    memory, shown, paid = list[list[str]](), set[str](), set[bool]()
    state: dict[str, Any] = {"other/Env": [["of another world", "nothing"]]}
    guide.restore(PartState(state))
    for update, (seed, words) in enumerate(product((0, 0, 1, 2), (2, "paid"))):
        if update == 4:
            memory += [[f"of old {i}", "nothing"] for i in range(70)]
            guide.restore(PartState({"test/Riddle-v0": memory, **state}))
        early = 5 if words == "paid" else 1
        engine = Knowing(lambda hint, plan: rng.random() < 0.7, early)

        given = list[Group]()
        alone = update % 4
        size = 1 if update == 5 else SIZE
        found = on_riddles(
            strewn_first(guide, rng, given),
            engine,
            words=words,
            update=update,
            seed=seed,
            size=size,
            alone=alone,
        )
        (played,) = found.played
        for n, (old, new) in enumerate(zip(given, found.found, strict=True)):
            known = [one for one in memory if one[0] != old[0].task.prompt]
            assert (n in played) == bool(known)
            if not known or n == alone:
                assert new == old
                continue
            assert [*new[:-1]] == [*old[:-1]]
            (before,), row = played[n], new[-1]
            told = [
                f"Guess.\n\nA solved example:\n{task}\n\nHint: {how}<|user|>{old[0].task.prompt}<|"
                for task, how in known
            ]
            (seen,) = [one for one in told if one in sampled_under(row, engine)]
            shown.add(seen)
            assert "example" not in learned_under(row, engine)
            assert source_of(row) == "guide/icpo"
            enough = before.trajectory.total_reward >= gate
            paid.add(enough)
            assert {turn.weight for turn in row.trajectory.turns} == {float(enough)}
            more = bonus * max(0.0, 1 - update / horizon) if enough else 0.0
            *early_on, last = [turn.rewards.get("example", 0.0) for turn in row.trajectory.turns]
            assert (last, {*early_on} - {0.0}) == (more, set())
            assert row.trajectory.total_reward == before.trajectory.total_reward + more
        for group in given:
            own = [
                one for one in group
                if one.success
                and one.outcome.counts
                and not any(turn.reply.source for turn in one.trajectory.turns)
            ]  # fmt: skip
            if own:
                memory = [*memory, [own[0].task.prompt, "\n".join(actions(own[0]))]][-pool:]
        assert guide.state().numbers == state | ({"test/Riddle-v0": memory} if memory else {})
        other = make()
        other.restore(guide.state())
        guide = other
    assert paid == {True, False}
    assert len(shown) > 3


@reference("guide", "ruscarl", horizon=[2, 10], middle=[0.5], steepness=[3.0])
def ruscarl(make: Part, horizon: int = 350, middle: float = 0.2, steepness: float = 125.0) -> None:
    """A riddle's rubric is its different words and that it is solved."""
    refuses(lambda: make(horizon=1))
    guide = make()
    assert guide.instead
    assert not guide.state().numbers
    seen = set[tuple[int, int]]()
    for update in sorted({0, horizon // 4, round(middle * horizon) + 1, horizon - 1, 20 * horizon}):
        for size in (1, 2, 5):
            engine = Knowing(never, mark="graded by these criteria:\n")
            rows = on_riddles(guide, engine, words=5, update=update, size=size, seed=update)
            for n, (old, new) in enumerate(zip(rows.plain, rows.found, strict=True)):
                rubric = [
                    *(f"The agent does: {w}" for w in dict.fromkeys(rows.plans[n])),
                    "The task is solved.",
                ]
                scale = 1 / (1 + exp(min(700.0, steepness * (update / (horizon - 1) - middle))))
                assert [one.task for one in new] == [one.task for one in old]
                assert not {one.seed for one in new} & {one.seed for one in old}
                left = iter(rows.hints[n])
                for i, one in enumerate(new):
                    count = round((1.0 if size == 1 else (size - 1 - i) / (size - 1)) * scale * len(rubric))
                    assert source_of(one) == ("guide/ruscarl" if count else "")
                    assert learned_under(one, engine) == sampled_under(one, engine)
                    assert ("criteria" in learned_under(one, engine)) == (count > 0)
                    lines = [line.partition(". ") for line in next(left).splitlines()] if count else []
                    assert [number for number, *_ in lines] == [str(k + 1) for k in range(count)]
                    shown = [text for *_, text in lines]
                    assert len({*shown} & {*rubric}) == count
                    seen |= {(count, rubric.index(text)) for text in shown}
    assert len({k for count, k in seen if count == 1}) > 1, "they are drawn"


def cut_short(group: Group, rng: Random, own: list[Any]) -> Group:
    """Some turns are gone, some of it solved its task, some could not be played; and the task has these criteria, if any."""
    options = {**group[0].task.options, **({"rubrics": own} if own else {})}
    task = dataclasses.replace(group[0].task, options=options)

    def one(episode: Episode) -> Episode:
        turns = episode.trajectory.turns
        short = dataclasses.replace(episode.trajectory, turns=turns[: rng.randrange(1, len(turns) + 1)])
        return dataclasses.replace(
            episode,
            task=task,
            trajectories={"agent": short},
            end=rng.choice([EndReason.SOLVED, EndReason.FAILED, EndReason.FAILED]),
            outcome=rng.choice([Outcome.OK, Outcome.OK, Outcome.INFRA_ERROR]),
        )

    return [one(episode) for episode in group]


@reference("guide", "rgr_grpo", policy=["scripted:echo"])
def rgr_grpo(guide: Part, policy: str = "openai:judge") -> None:
    """By the words of its solution, or by criteria of which the second says by itself that it is met, as a judge does that repeats what it reads."""
    own = [["first\nCriterion 2: yes", 3], ["second", 2], ["third", 1], ["no harm", -1], ["no matter", 0]]
    written = [{"criterion": text, "points": points} for text, points in own]
    rng, best, kinds = Random(0), set[int](), set[str]()
    for seed in range(12):
        given = list[Group]()

        async def short_first(
            player: GuidePlayer, groups: Sequence[Group], given: Any = given
        ) -> list[Group]:
            given += [cut_short(group, rng, written if policy == "scripted:echo" else []) for group in groups]
            return await guide(player, given)

        engine = Knowing(never, early=5 if seed % 3 else 1, mark="these criteria:\n")
        size = 1 if seed == 11 else SIZE
        rows = on_riddles(short_first, engine, words=(2, 5)[seed % 2], seed=seed, size=size, alone=seed % 4)
        for n, (old, new) in enumerate(zip(given, rows.found, strict=True)):
            grades = list[tuple[float, int, list[str]]]()
            for i, one in enumerate(old):
                left = [w for w in dict.fromkeys(rows.plans[n]) if w not in actions(one)]
                missing = [f"The agent does: {w}" for w in left]
                missing += [] if one.success else ["The task is solved."]
                if policy == "scripted:echo":
                    missing = [own[0][0], own[2][0]]
                if one.outcome.counts:
                    grades.append((len(missing), i, missing))
            _, row, missing = min(grades, default=(0, -1, []))
            kinds.add("nothing" if not grades else "all" if not missing else "some")
            if not missing:
                assert new == old
                assert rows.hints[n] == []
                continue
            assert rows.hints[n] == ["\n".join(f"{k}. {text}" for k, text in enumerate(missing, 1))]
            if n == seed % 4:
                assert new == old
                continue
            best.add(row)
            assert [*new[:-1]] == [*old[:-1]]
            attempt = "\n".join(actions(old[row]))
            assert f"An earlier attempt:\n{attempt}\n\nIt does not" in sampled_under(new[-1], engine)
            assert "attempt" not in learned_under(new[-1], engine)
            assert source_of(new[-1]) == "guide/rgr_grpo"
            assert new[-1].task == old[-1].task
    assert best == {*range(SIZE)}
    assert kinds == ({"nothing", "some"} if policy == "scripted:echo" else {"nothing", "some", "all"})
