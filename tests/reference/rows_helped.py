"""Guides that replace rows, on riddles: an engine that solves one where its prompt holds what it has to be told."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

from helped import Part, actions, obedient
from plain import reference, refuses
from reattempted import riddles

from turnwise.agents.core import Completion, Episode, Sampling
from turnwise.agents.policies.model import ModelPolicy
from turnwise.envs.core import EndReason
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups

Knows = Callable[[str, list[str]], bool]
"""(what stands in the prompt after "Hint: ", the solution) → the engine plays the solution."""
SIZE = 3


class Knowing:
    """Solves a riddle where it ``knows``, says ``early`` right words before it fails where it does not, and answers questions."""

    version, context_length = 0, 4096

    def __init__(self, knows: Knows, early: int = 0, answer: str = "think twice") -> None:
        self.knows, self.early, self.answer = knows, early, answer
        self.plain, self.questions = obedient(), list[str]()
        self.plans: dict[str, list[str]] = {}

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text = self.plain.renderer.tokenizer.decode(list(prompt_ids))
        if "Below are" in text and "Hint: " not in text:
            self.questions.append(text)
            said = self.answer
        else:
            plan = next(words for prompt, words in self.plans.items() if prompt in text)
            turn = text.count("<|assistant|>") - 1
            hint = text.partition("Hint: ")[2].partition("<|")[0].strip()
            knows = bool(hint) and self.knows(hint, plan)
            said = plan[turn] if turn < len(plan) and (knows or turn < self.early) else "?"
        ids = (*self.plain.renderer.tokenizer.encode(said, add_special_tokens=False), next(iter(stop_ids)))
        return Completion(ids, (-0.5,) * len(ids), stopped=True)

    def close(self) -> None:
        """Nothing is held."""


class Rows(NamedTuple):
    """Three groups before and after a guide; the second one was solved by its first member."""

    plain: list[Group]
    found: list[Group]
    engine: Knowing

    @property
    def plans(self) -> list[list[str]]:
        return [group[0].task.options["words"] for group in self.plain]


def on_riddles(guide: Part, engine: Knowing, *, words: int = 2, update: int = 0) -> Rows:
    riddles()
    policy = ModelPolicy(engine, engine.plain.renderer, Sampling(max_tokens=200))  # pyright: ignore
    runner = RolloutRunner(policy, as_is)

    async def run() -> tuple[list[Group], list[Group]]:
        plan = plan_groups(f"riddle/{words}", 3, SIZE)
        engine.plans = {one[0].task.prompt: one[0].task.options["words"] for one in plan}
        given = await chain(runner, plan)
        given[1] = [dataclasses.replace(given[1][0], end=EndReason.SOLVED), *given[1][1:]]
        return given, await guide(GuidePlayer(runner, policy, {}, 0, update), given)

    return Rows(*asyncio.run(run()), engine)


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
    plain, found, _ = rows = on_riddles(guide, Knowing(never))
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
    refuses(lambda: on_riddles(lambda p, g: guide(p, g, shares=(0.5, 0.25)), Knowing(never)))
    half: Knows = lambda hint, plan: len(hint) >= 0.4 * len("\n".join(plan))
    for knows in (half, never):
        for update in {start - 1, start} - {-1}:
            plain, found, engine = rows = on_riddles(guide, Knowing(knows), update=update)
            for n, (old, new) in enumerate(zip(plain, found, strict=True)):
                if n == 1 or demonstrator == "null" or update < start:
                    assert new == old
                    continue
                whole = "\n".join(rows.plans[n])
                tried = [whole[: round(share * len(whole))] for share in shares]
                used = next((one for one in tried if knows(one.strip(), rows.plans[n])), tried[-1])
                for one in new:
                    assert f"Hint: {used}<|" in sampled_under(one, engine)
                    assert learned_under(one, engine) == sampled_under(one, engine)
                    assert (one.success, source_of(one)) == (knows is half, "guide/ghpo")


@reference("guide", "scaf_grpo", start=[1], tiers=[("solution",)], demonstrator=["null"])
def scaf_grpo(
    guide: Part,
    start: int = 50,
    tiers: tuple[str, ...] = ("knowledge", "plan", "solution"),
    demonstrator: str = "gold",
) -> None:
    refuses(lambda: on_riddles(lambda p, g: guide(p, g, tiers=("plan", "plan")), Knowing(never)))
    for lines in (2, 4, 99):
        for update in (start - 1, start):
            plain, found, engine = rows = on_riddles(
                guide, Knowing(lambda hint, plan, lines=lines: len(hint.splitlines()) >= lines), update=update
            )
            for n, (old, new) in enumerate(zip(plain, found, strict=True)):
                plan = rows.plans[n]
                items = {"knowledge": sorted(set(plan)), "plan": plan, "solution": plan}
                levels = [
                    [x for tier in tiers[:t] for x in items[tier]]
                    + items[tiers[t]][: ceil(step * len(items[tiers[t]]) / 4)]
                    for t in range(len(tiers))
                    for step in (1, 2, 3, 4)
                ]
                used = next((level for level in levels if len(level) >= lines), None)
                if n == 1 or demonstrator == "null" or update < start or used is None:
                    assert new == old
                    continue
                assert [*new[1:]] == [*old[1:]]
                assert new[0].success
                assert f"Hint: {chr(10).join(used)}<|" in learned_under(new[0], engine)
                assert source_of(new[0]) == "guide/scaf_grpo"


@reference("guide", "nurl", demonstrator=["null"], unhinted=[0, 2, -1])
def nurl(make: Part, demonstrator: str = "gold", unhinted: int = 1) -> None:
    if unhinted < 0:
        refuses(make)
        return
    guide = make()
    for again in range(2):
        plain, found, engine = on_riddles(guide, Knowing(lambda hint, plan: hint == "think twice"))
        asked = 0 if again or demonstrator == "null" else 2 * 2
        assert len(engine.questions) == asked, "a path and a cue for each task, once"
        for n, (old, new) in enumerate(zip(plain, found, strict=True)):
            if n == 1 or demonstrator == "null":
                assert new == old
                continue
            told = SIZE - unhinted
            assert [one.success for one in new] == [i < told for i in range(SIZE)]
            for i, one in enumerate(new):
                assert ("Hint: think twice<|" in learned_under(one, engine)) == (i < told)
                assert source_of(one) == ("guide/nurl" if i < told else "")
            assert not {one.seed for one in new} & {one.seed for one in old}
    other = make()
    other.restore(PartState({**guide.state().numbers}))
    assert other.state() == guide.state()
    assert not on_riddles(other, Knowing(never)).engine.questions
    plain, found, _ = on_riddles(make(), Knowing(never, answer="You: BUY, search or product!"), words=1)
    assert found == plain, "a cue that gives the answer away is not used"


@reference("guide", "expo", demonstrator=["null"], verified=[False], told=["solution"])
def expo(guide: Part, demonstrator: str = "gold", verified: bool = True, told: str = "answer") -> None:
    for knows in (lambda hint, plan: True, never):
        plain, found, engine = rows = on_riddles(guide, Knowing(knows))
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


@reference("guide", "scope", judge=["critic"], threshold=[0.0], demonstrator=["null"])
def scope(guide: Part, judge: str = "gold", threshold: float = 0.6, demonstrator: str = "gold") -> None:
    if judge != "gold":
        refuses(lambda: on_riddles(guide, Knowing(never)))
        return
    for early in (0, 1):
        plain, found, _ = rows = on_riddles(guide, Knowing(never, early=early))
        for n, (old, new) in enumerate(zip(plain, found, strict=True)):
            if not (early and threshold) or demonstrator == "null":
                assert new == old
                continue
            row = 1 if n == 1 else 0
            for i, (before, after) in enumerate(zip(old, new, strict=True)):
                if i != row:
                    assert after == before
                    continue
                assert actions(after) == rows.plans[n]
                first, second = after.trajectory.turns
                assert first == before.trajectory.turns[0]
                assert (second.reply.source, second.reply.logprobs, second.weight) == ("guide/scope", (), 1.0)


@reference(
    "guide", "critique", form=["verdict", "answer", "written"], critic=["scripted:echo"], demonstrator=["null"],
    also=[{"form": "written", "critic": "scripted:echo"}, {"form": "answer", "demonstrator": "null"}],
)  # fmt: skip
def critique(guide: Part, form: str = "report", critic: str = "", demonstrator: str = "gold") -> None:
    engine = Knowing(lambda hint, plan: any(word in hint for word in (plan[0], "think twice", "Below are")))
    plain, found, _ = rows = on_riddles(guide, engine, words=1)
    assert len(engine.questions) == (3 * SIZE if form == "written" and not critic else 0)
    for n, (old, new) in enumerate(zip(plain, found, strict=True)):
        assert [*new[:-1]] == [*old[:-1]]
        last, (word,) = new[-1], rows.plans[n]
        assert source_of(last) == "guide/critique"
        said = sampled_under(last, engine)
        assert "An earlier attempt:\n?" in said
        solved_first = n == 1 and not last.success
        verdict = f"The earlier attempt was {'right' if solved_first else 'wrong'}."
        helps = {"report": True, "verdict": False, "answer": demonstrator == "gold", "written": True}[form]
        wanted = {
            "report": f"Hint: Hint: {word}" if n != 1 else "", "verdict": f"Hint: {verdict}",
            "answer": f"Hint: {verdict} The answer:\n{word}" if helps else f"Hint: {verdict}",
            "written": "Hint: Below are" if critic else "Hint: think twice",
        }[form]  # fmt: skip
        assert wanted in said or (n == 1 and form == "answer")
        assert last.success == helps
        plain_prompt = learned_under(last, engine)
        assert "Hint" not in plain_prompt
        assert "earlier attempt" not in plain_prompt
