"""Proposers, and what pays their tasks: which attempts are asked about, in which words, with which answer."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from losses import Played
from plain import Refused, agree, reference, refuses

from turnwise.agents.core import Episode, Outcome
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Messages
from turnwise.tasks.core import Task
from turnwise.trainers.core import Group
from turnwise.trainers.kit.toy_batches import episode, with_words
from turnwise.trainers.proposer.core import PooledTask, ProposerContext
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import try_out

Part = Callable[..., Any]


def shop_groups(seed: int) -> list[Group]:
    """Groups of a small shop played by chance, of which some episodes count for nothing and some never began."""
    rng = random.Random(f"shop {seed}")
    groups, _ = try_out(chain, "mix:gold=1,random=1", "shop/quick", groups=4, size=rng.choice([3, 4]))
    found = [[_changed(one, rng) for one in group] for group in groups]
    judging = dataclasses.replace(found[-1].pop(), task=Task("turnwise/Judging-v0", "Is it so ? yes or no"))
    return [*found, [judging, judging]]


def _changed(one: Episode, rng: random.Random) -> Episode:
    if rng.random() < 0.2:
        return dataclasses.replace(one, outcome=Outcome.INFRA_ERROR)
    if rng.random() < 0.1:
        return dataclasses.replace(
            one, trajectories={"agent": dataclasses.replace(one.trajectory, turns=())}, end=one.end
        )
    return one


def seen(messages: Messages) -> str:
    return "\n".join(m.content for m in messages if m.role != "system").strip()


def told(one: Episode, until: int) -> str:
    """The attempt up to an act, turn by turn."""
    lines = [
        f"{seen(turn.observation)}\n{k} > {act(one, k)}".lstrip("\n")
        for k, turn in enumerate(one.trajectory.turns[:until], 1)
    ]
    return "\n".join(lines) + "\n\nDoes the last act solve the task ? yes or no"


def act(one: Episode, k: int) -> str:
    return one.trajectory.turns[k - 1].action.content.strip().splitlines()[-1].removesuffix(".").rstrip()


def looks(one: Episode, k: int) -> tuple[Any, ...]:
    """What could tell an attempt up to act k apart: its length, the act's verb, and its other words that the task has."""
    said = re.findall(r"\w+", act(one, k).lower())
    task = re.findall(r"\w+", seen(one.trajectory.turns[0].observation).split("\n")[0].lower())
    return k, said[0] if said else "", len({*said[1:]} & {*task})


@reference("proposer", "rise", share=[0.05, 0.5, 1.0], balanced=[False])
def rise(proposer: Part, share: float = 0.125, balanced: bool = True) -> None:
    for wrong in (0.0, -0.5, 1.5):
        assert "is no share" in refuses(lambda wrong=wrong: proposer(ProposerContext(0, 0), share=wrong))
    drawn: set[tuple[str, ...]] = set()
    for seed in range(8):
        groups = shop_groups(seed)
        mine = [
            one
            for group in groups
            for one in group
            if one.outcome.counts and one.trajectory.turns and one.task.env == "turnwise/Shop-v0"
        ]
        whole = {
            told(one, len(one.trajectory.turns)): one for one in mine
        }  # those that read the same are one
        answers = {text: "yes" if one.success else "no" for text, one in whole.items()}
        like = {text: looks(one, len(one.trajectory.turns)) for text, one in whole.items()}
        for one in whole.values() if balanced else ():
            for k in range(1, len(one.trajectory.turns)):
                if not one.success:  # at none of its acts was it solved
                    answers[told(one, k)], like[told(one, k)] = "no", looks(one, k)
        made = proposer(ProposerContext(seed, 3, groups))
        assert [(one.episodes, one.weight) for one in made] == [(0, 1.0)] * len(made)
        assert [one.task.env for one in made] == ["turnwise/Judging-v0"] * len(made)
        assert [answers[one.task.prompt] for one in made] == [one.task.gold for one in made]
        assert len({one.task.prompt for one in made}) == len(made)
        for one in made:
            options = one.task.options
            assert (options["ask"], options["truth"]) == ("verdict", one.task.gold == "yes")
            assert sorted(options["offers"]) == ["no", "yes"]
        full, over = divmod(share * len(whole), 1)
        most = max(1, int(full) + (over > 0.5 or (over == 0.5 and full % 2 == 1)))  # half to even
        sides = Counter((like[text], answer) for text, answer in answers.items())
        alike = sum(min(sides[look, "yes"], sides[look, "no"]) for look in {look for look, _ in sides})
        assert len(made) == (2 * min(alike, max(1, most // 2)) if balanced else most)
        if balanced:
            found = Counter((like[one.task.prompt], one.task.gold) for one in made)
            assert all(found[look, "yes"] == found[look, "no"] for look, _ in found)
        drawn |= {_ids(made), _ids(proposer(ProposerContext(seed, 4, groups)))}
    assert len(drawn) > 8 or share == 1.0
    alone = [[one for one in group if one.success] for group in shop_groups(0)]
    assert bool(proposer(ProposerContext(0, 0, alone))) is not balanced


def _ids(made: Sequence[Any]) -> tuple[str, ...]:
    return tuple(one.task.id for one in made)


@reference("reward", "rise", right=[2.0], wrong=[-0.25], unanswered=[-3.0])
def rise_pays(
    group: list[Played], right: float = 1.0, wrong: float = -0.5, unanswered: float = -1.0
) -> list[list[float]]:
    def level(e: Played) -> float:
        return unanswered if not e.answered else right if e.solved else wrong

    return [[0.0] * (len(e.signal) - 1) + [level(e)] if e.signal else [] for e in group]


def tagged_law(name: str, part: Part, formula: Part) -> None:
    """Episodes of one to three messages with tags of all kinds, most of them well-formed."""
    for seed in range(120):
        rng = random.Random(f"tagged {seed}")
        count, group, words = rng.randint(1, 3), list[Episode](), list[list[str]]()
        for _ in range(rng.randint(1, 4)):
            said = ["".join(_piece(rng) for _ in range(rng.choice([0, 1, 2, 4, 8]))) for _ in range(count)]
            end = rng.choice([EndReason.SOLVED, EndReason.FAILED, EndReason.TURN_LIMIT])
            made = episode([0.25] * count, parts={"cost": [-0.5] * count}, end=end)
            group.append(with_words(made, said))
            words.append(said)
        try:
            wanted = [formula("\n".join(said), one.success) for said, one in zip(words, group, strict=True)]
        except Refused:
            refuses(lambda group=group: part(group))
            return
        paid = part(group)
        assert [sum(t.reward for t in one.trajectory.turns[:-1]) for one in paid] == [0.0] * len(group)
        for one, expected in zip(paid, wanted, strict=True):
            agree(one.trajectory.turns[-1].reward, expected, f"group {seed}")


def _piece(rng: random.Random) -> str:
    tag = rng.choice(["think", "think", "think", "search", "search", "information", "answer", "thing"])
    broken = rng.random()
    if broken < 0.02:
        return f"<{tag}>"
    if broken < 0.04:
        return f"</{tag}>"
    return f"<{tag}>w</{tag}>" if broken > 0.07 else f"<{tag}><search>w</search></{tag}>"


@reference("reward", "ssrl", law=tagged_law, right=[0.5, -0.1], form=[0.3, 0.0, -1.0])
def ssrl_pays(text: str, solved: bool, right: float = 0.9, form: float = 0.1) -> float:
    if right < 0 or form < 0:
        raise Refused
    names = "think|search|information|answer"
    whole = re.fullmatch(rf"(?s)(?:(?!</?(?:{names})>).|<({names})>(?:(?!</?(?:{names})>).)*</\1>)*", text)
    thoughts, searches = text.count("<think>"), text.count("<search>")
    if whole is None or thoughts > 8:
        return right * solved
    ratio = 1.0 if thoughts == searches + 1 else min(thoughts, searches + 1) / max(thoughts, searches + 1)
    return right * solved + form * min(thoughts / 2, 1) * ratio


# --- Absolute Zero --------------------------------------------------------------------------------------------------

LINES = ("return x", "return x + x", "return [x]", "return None")


def proposals(seed: int) -> list[Group]:
    """Groups that were asked for triples, with what came of it, and a group of another world."""
    rng = random.Random(f"proposals {seed}")
    found: list[Group] = []
    for n, ask in enumerate(("deduction", "abduction", "deduction", "induction")):
        task = Task(
            "turnwise/Triples-v0", f"propose {n}", {"role": f"propose {ask}", "ask": ask, "number": n}
        )
        found.append([_proposal(task, rng) for _ in range(rng.randint(1, 4))])
    other = episode([1.0], end=EndReason.SOLVED, details=[{"triple": ["def f(x):\n    return 9", "1", 9]}])
    return [*found, [other]]


def _proposal(task: Task, rng: random.Random) -> Episode:
    kind = rng.choice(["accepted", "accepted", "accepted", "invalid", "malformed", "cut", "empty"])
    k = rng.randrange(len(LINES))
    triple = [f"def f(x):\n    {LINES[k]}", "1", [1, 2, [1], None][k]]
    if task.options["ask"] == "induction":
        triple = [
            triple[0],
            ["1", "'a'", "2"],
            [[1, "a", 2], [2, "aa", 4], [[1], ["a"], [2]], [None] * 3][k],
            "so",
        ]
    details: dict[str, Any] = {"accepted": {"triple": triple}, "malformed": {"malformed": True}}.get(kind, {})
    end = {"accepted": EndReason.SOLVED, "cut": EndReason.TOKEN_LIMIT}.get(kind, EndReason.FAILED)
    made = episode([] if kind == "empty" else [float(kind == "accepted")], details=[details], end=end)
    return dataclasses.replace(made, task=task)


def accepted(groups: Sequence[Group]) -> list[tuple[str, list[Any]]]:
    """By kind the triples that were accepted, each once, in the order in which they came."""
    found: list[tuple[str, list[Any]]] = []
    for group in groups[:4]:
        for one in group:
            if one.success:
                pair = (one.task.options["ask"], one.trajectory.turns[-1].details["triple"])
                found += [] if pair in found else [pair]
    return found


@reference("proposer", "azr_solve", fill=[3, 8, -1])
def azr_solve(proposer: Part, fill: int = 0) -> None:
    if fill < 0:
        refuses(lambda: proposer(ProposerContext(0, 0)))
        return
    drawn = set[tuple[str, ...]]()
    for seed in range(20):
        groups = proposals(seed)
        made = [one.task for one in proposer(ProposerContext(0, 0, groups))]
        wanted = accepted(groups)
        kept = [
            PooledTask(task, by, 0)
            for n in range(4)
            for by in ("azr_solve", "rise")
            for task in [
                Task("turnwise/Triples-v0", f"{by} {n}", {"ask": "deduction", "triple": ["", "0", n]})
            ]
        ]
        old = [PooledTask(task, "azr_solve", 0) for task in made]
        filled = [one.task for one in proposer(ProposerContext(seed, 0, groups, (*old, *kept)))]
        assert filled[: len(made)] == made
        added = [one.prompt for one in filled[len(made) :]]
        assert len({*added}) == len(added) == min(4, max(0, fill - len(made)))
        assert {*added} <= {one.task.prompt for one in kept if one.by == "azr_solve"}
        drawn.add(tuple(sorted(added)))
        assert len(proposer(ProposerContext(seed, 0, (), kept))) == min(4, fill)
        assert [(one.options["ask"], one.options["triple"]) for one in made] == wanted
        evaluated = {one.id for one in made[::2]}
        left = proposer(ProposerContext(0, 0, groups, held_out=lambda task, ids=evaluated: task.id in ids))
        assert [one.task for one in left] == made[1::2]
        for task, (ask, triple) in zip(made, wanted, strict=True):
            assert task.options["role"] == f"solve {ask}"
            if ask == "induction":
                shown = [f"f({x}) = {y!r}" for x, y in zip(triple[1], triple[2], strict=True)]
                assert [line for line in task.prompt.splitlines() if line.startswith("f(")] == shown[:2]
                assert task.prompt.startswith("so\n")
                assert triple[0] not in task.prompt
                assert task.gold == f"```python\n{triple[0]}\n```"
                continue
            hidden = "output" if ask == "deduction" else "input"
            value = repr(triple[2])
            assert f"```{hidden}\n" not in task.prompt.partition("Write")[0]
            assert f"```python\n{triple[0]}\n```" in task.prompt
            assert (f"```input\n{triple[1]}\n```" in task.prompt) is (ask == "deduction")
            assert task.gold == f"```{hidden}\n{value if ask == 'deduction' else triple[1]}\n```"
    assert len(drawn) > 2 or fill != 3


@reference(
    "proposer", "azr_propose", tasks=[1, 2, 4, 0], references=[1, 0], asks=[("abduction",), ("induction", "deduction"), ()], inputs=[2, 1],
)  # fmt: skip
def azr_propose(
    proposer: Part, tasks: int = 3, references: int = 3, asks: Sequence[str] = ("deduction", "abduction", "induction"), inputs: int = 10
) -> None:  # fmt: skip
    if tasks < 1 or references < 1 or inputs < 2 or not asks:
        refuses(lambda: proposer(ProposerContext(0, 0)))
        return
    prompts: set[str] = set()
    for seed in range(12):
        rng = random.Random(f"pool {seed}")
        of = [rng.choice(["deduction", "abduction", "induction"]) for _ in range(rng.choice([0, 1, 4, 9]))]
        pool = [
            PooledTask(
                Task("turnwise/Triples-v0", f"solve {k}", {"role": f"solve {ask}", "ask": ask, "triple": [f"def f(x):\n    return {k}", "0", k]}),
                rng.choice(["azr_solve", "azr_solve", "rise"]),
                0,
            )
            for k, ask in enumerate(of)
        ]  # fmt: skip
        made = [one.task for one in proposer(ProposerContext(seed, 3, (), pool))]
        kinds = [asks[(3 * tasks + n) % len(asks)] for n in range(tasks)]
        assert [one.options["role"] for one in made] == [f"propose {ask}" for ask in kinds]
        assert [one.options["number"] for one in made] == [3 * tasks + n for n in range(tasks)]
        for task, ask in zip(made, kinds, strict=True):
            shown = re.findall(r"```python\n(.*?)\n```", task.prompt, re.DOTALL)
            known = {
                one.task.options["triple"][0]
                for one in pool
                if one.by == "azr_solve"
                and (one.task.options["ask"] == ask or (ask == "induction" != one.task.options["ask"]))
                and one.task.options["ask"] != "induction"
            }
            if ask == "induction":
                assert len(shown) == 1
                assert {*shown} <= (known or {"def f(x):\n    return x"})
                assert f"Write {inputs} inputs" in task.prompt
                assert task.options["inputs"] == inputs
                assert task.gold.startswith("```input\n" + f"{task.options['given']}\n" * inputs + "```")
                continue
            assert len(shown) == len({*shown}) == (min(references, len(known)) or 1)
            assert {*shown} <= (known or {"def f(x):\n    return x"})
            assert task.prompt.count("```output\n") == len(shown)
        prompts |= {one.prompt for one in made}
    assert len(prompts) > (4 if tasks > 1 else 3)


def whole_law(name: str, part: Part, formula: Part) -> None:
    """Groups of proposals, and some of the tasks that were made of them, solved by chance."""
    for seed in range(60):
        rng, groups = random.Random(f"solved {seed}"), list[Group](proposals(seed))
        rates: list[tuple[str, list[Any], list[bool]]] = []
        for ask, triple in accepted(groups):
            if rng.random() < 0.8:
                right = [rng.random() < rng.choice([0.0, 0.5, 1.0]) for _ in range(rng.choice([1, 2, 4]))]
                rates.append((ask, triple, right))
                task = Task(
                    "turnwise/Triples-v0", str(triple), {"role": f"solve {ask}", "ask": ask, "triple": triple}
                )
                ends = [
                    EndReason.SOLVED if ok else rng.choice([EndReason.FAILED, EndReason.TURN_LIMIT])
                    for ok in right
                ]
                groups.append(
                    [
                        dataclasses.replace(episode([float(e is EndReason.SOLVED)], end=e), task=task)
                        for e in ends
                    ]
                )
        groups.append([])
        paid = part(groups)
        assert [len(group) for group in paid] == [len(group) for group in groups]
        for before, after in zip(groups, paid, strict=True):
            for old, new in zip(before, after, strict=True):
                agree(new.trajectory.total_reward, formula(old, rates), f"{seed}: {old.task.options}")


@reference("reward", "absolute_zero", law=whole_law)
def absolute_zero(one: Episode, rates: list[tuple[str, list[Any], list[bool]]]) -> float:
    if not one.trajectory.turns or one.task.env == "by_hand":
        return one.trajectory.total_reward
    told = one.trajectory.turns[-1].details
    cut = one.end in (EndReason.TURN_LIMIT, EndReason.TOKEN_LIMIT) or "malformed" in told
    if one.task.options["role"].startswith("solve"):
        return -1.0 if cut else 1.0 if one.success else -0.5
    if cut:
        return -1.0
    mine = [
        right
        for ask, triple, right in rates
        if (ask, triple) == (one.task.options["ask"], told.get("triple"))
    ]
    value = sum(mine[0]) / len(mine[0]) if mine else 0.0
    return 1 - value if 0 < value < 1 else -0.5
