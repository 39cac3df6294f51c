"""Judges: on episodes of a small shop, with answers drawn by chance and said by a server."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from plain import mean, reference, refuses
from played import SUITE, Part, Toned, script
from returning import fair_or_never

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.registry import make as make_env
from turnwise.trainers.core import Group
from turnwise.trainers.kit.toy_batches import episode, with_words
from turnwise.trainers.strategy.runner import plan_groups


def judged_groups() -> list[Group]:
    """Three groups of four, one of whose episodes failed to be played and one never began."""
    groups = [run_episodes(plan, script()) for plan in plan_groups(SUITE, 2, 4)]
    empty = dataclasses.replace(groups[0][0].trajectory, turns=())
    groups[0][1] = dataclasses.replace(groups[0][1], outcome=Outcome.INFRA_ERROR)
    groups[1][3] = dataclasses.replace(groups[1][3], trajectories={"agent": empty})
    return [*groups]


def told(groups: Sequence[Group], name: str) -> list[list[list[float | None]]]:
    return [[[turn.signals.get(name) for turn in one.trajectory.turns] for one in group] for group in groups]


@reference("judge", "none")
def none(judge: Part) -> None:
    groups = judged_groups()
    found = asyncio.run(judge(groups))
    assert found is not groups
    assert all(a is b for a, b in zip(found, groups, strict=True))


def by_place(keys: Sequence[Any], met: Callable[[int, int], tuple[float, float]]) -> list[float]:
    """Places of a seeded single elimination, from the best: who fell late, then mean points, then the seed."""
    n = len(keys)
    if n < 2:
        return [0.5] * n
    points: dict[int, list[float]] = {i: [] for i in range(n)}

    def duel(i: int, j: int) -> int:
        a, b = met(i, j)
        points[i].append(a)
        points[j].append(b)
        return j if b > a else i

    for j in range(1, n):
        duel(0, j)
    seeds = sorted(range(n), key=lambda i: (-mean(points[i]), i))
    size = 1
    while size < n:
        size *= 2

    def slots(count: int) -> list[int]:
        """The best seed meets the worst first, and the second best is in the other half."""
        return [0] if count == 1 else [x for s in slots(count // 2) for x in (s, count - 1 - s)]

    field: list[int | None] = [seeds[s] if s < n else None for s in slots(size)]
    fell: dict[int, int] = {}
    number = 0
    while len(field) > 1:
        number += 1
        after: list[int | None] = []
        for a, b in zip(field[::2], field[1::2], strict=True):
            if a is None or b is None:
                after.append(a if b is None else b)
                continue
            best = duel(a, b)
            fell[b if best == a else a] = number
            after.append(best)
        field = after
    (champion,) = {*range(n)} - {*fell}
    fell[champion] = number + 1
    order = sorted(range(n), key=lambda i: (-fell[i], -mean(points[i]), seeds.index(i)))
    return [1 - order.index(i) / (n - 1) for i in range(n)]


@reference("judge", "bracket")
def bracket(standings: Any) -> None:
    for seed in range(60):
        rng = Random(f"bracket {seed}")
        n = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13])
        score = {
            (i, j): (float(rng.randrange(4)), float(rng.randrange(4))) for i in range(n) for j in range(n)
        }

        async def compare(i: int, j: int, score: Any = score) -> tuple[float, float]:
            return score[i, j]

        found = asyncio.run(standings(n, compare))
        assert found == by_place(range(n), lambda i, j, score=score: score[i, j]), (seed, n)


def steps_left(episode: Episode, turns: int) -> int:
    """Steps that gold takes from where the episode was after so many turns; 60 where it does not arrive."""
    env = make_env(episode.task.env)
    env.reset(seed=episode.seed, options={"task": episode.task})
    for turn in episode.trajectory.turns[:turns]:
        env.step(turn.action)
    gold = 0
    while env.now.end is None and gold < 60:
        env.step(env.gold(env.state))
        gold += 1
    solved = env.now.end is EndReason.SOLVED
    env.close()
    return gold if solved and gold < 60 else 60


def unfinished() -> Group:
    """Gold's play cut after no, one, two and three turns, and failures, one of which was paid something."""
    (whole, *_), *_ = [run_episodes(plan, scripted("gold")) for plan in plan_groups(SUITE, 1, 1, 5)]
    turns = whole.trajectory.turns

    def played(n: int, **changes: Any) -> Episode:
        one = dataclasses.replace(whole.trajectory, turns=turns[:n])
        return dataclasses.replace(whole, trajectories={"agent": one}, **changes)

    failed = run_episodes(plan_groups(SUITE, 1, 8, 5)[0], Toned(mixture("random=1.0")))
    (lost, other, *_) = [one for one in failed if not one.success]
    *before, last = lost.trajectory.turns
    paid = (*before, dataclasses.replace(last, reward=0.5, rewards={"outcome": 0.5}))
    partly = dataclasses.replace(
        lost, trajectories={"agent": dataclasses.replace(lost.trajectory, turns=paid)}
    )
    return [played(1), partly, played(0), played(3), other, played(2), whole]


@reference("judge", "gold")
def gold(judge: Part) -> None:
    groups: list[Group] = [run_episodes(plan, script()) for plan in plan_groups(SUITE, 4, 4)]
    first, *others = groups[3][0].trajectory.turns
    strange = (first, *(dataclasses.replace(turn, state_key="elsewhere") for turn in others))
    moved = {"agent": dataclasses.replace(groups[3][0].trajectory, turns=strange)}
    groups[3] = [dataclasses.replace(groups[3][0], trajectories=moved), *groups[3][1:]]
    groups.append(unfinished())
    found = asyncio.run(judge(groups))
    seen = set[tuple[float, float]]()
    for number, (before, after) in enumerate(zip(groups, found, strict=True)):
        left_at_end: list[float] = []
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            left = [steps_left(one, k) for k in range(len(one.trajectory.turns) + 1)]
            lost = number == 3 and i == 0
            for k, turn in enumerate(other.trajectory.turns):
                wrong = float(turn.bad_action or left[k + 1] >= left[k])
                good = min(1.0, max(0.0, 0.5 + (left[k] - left[k + 1]) / 2))
                expected = (0.0, 0.5) if lost and k > 0 else (wrong, good)
                assert (turn.signals["wrong"], turn.signals["principle"]) == expected
                seen.add(expected)
            left_at_end.append(left[1] if lost else left[-1] if one.trajectory.turns else 60)
        strength = [
            one.trajectory.total_reward - x / 6000 for one, x in zip(before, left_at_end, strict=True)
        ]
        places = by_place(strength, lambda i, j, strength=strength: (strength[i], strength[j]))
        assert told(after and [after], "standing")[0] == [
            [place] * len(one.trajectory.turns) for place, one in zip(places, before, strict=True)
        ]
    assert {(1.0, 0.0), (1.0, 0.5), (0.0, 1.0)} <= seen


def asked(
    judge: Part, groups: Sequence[Group], answer: Callable[[str, int], str], **options: Any
) -> tuple[list[Group], list[str]]:
    """What a judge makes of a policy's answers to (question, how often it was asked before), and the questions."""
    from chat_server import said, serve

    questions: list[str] = []

    def reply(request: dict[str, Any]) -> Any:
        question = str(request["messages"][-1]["content"])
        before = questions.count(question)
        questions.append(question)
        return said(answer(question, before))

    with serve(reply) as server:
        found = asyncio.run(judge(groups, policy=f"openai:m@{server.url}", **options))
    return found, questions


def chance(question: str, *names: int) -> Random:
    return Random(f"{question} {names}")


def turns_in(question: str) -> int:
    return len(re.findall(r"^\[turn \d+\]", question, re.MULTILINE))


def mistakes(question: str, before: int) -> set[int] | None:
    """The turns that the answer calls wrong; None: it cannot be read. Where it is odd, it names turns that are not there."""
    rng = chance(question, before)
    if rng.random() < 0.2:
        return None
    return {k for k in range(1, turns_in(question) + 1) if rng.random() < 0.7}


def as_line(wrong: set[int] | None) -> str:
    if wrong is None:
        return "Turn 1 is WRONG, I believe."
    lead = ("WRONG: 1\nSecond thoughts.\n**Wrong:** ", "WRONG: ")[len(wrong) % 2]
    return f"Let me see.\n{lead}{', '.join(map(str, sorted(wrong))) or 'none'}"


@reference(
    "judge",
    "critic",
    policy=["another"],
    critiques=[1, 3],
    vote=["majority", "mean"],
    also=[{"critiques": 5, "vote": "majority"}, {"critiques": 8, "vote": "majority"}],
)
def critic(judge: Part, policy: str = "", critiques: int = 4, vote: str = "intersection") -> None:
    groups = judged_groups()
    found, questions = asked(judge, groups, lambda question, n: as_line(mistakes(question, n)))
    counting = [one for group in groups for one in group if one.outcome.counts and one.trajectory.turns]
    assert len(questions) == critiques * len(counting)
    assert {questions.count(question) for question in questions} == {critiques}
    ordered = iter(dict.fromkeys(questions))
    by_text = {_shown(question): question for question in ordered}
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not one.outcome.counts or not one.trajectory.turns:
                assert other is one
                continue
            question = by_text[_saying(one)]
            assert ("succeeded" if one.success else "failed") in question
            readable = [x for x in (mistakes(question, n) for n in range(critiques)) if x is not None]
            for k, turn in enumerate(other.trajectory.turns, 1):
                share = sum(k in x for x in readable) / len(readable) if readable else 0.0
                expected = share if vote == "mean" else share == 1 if vote == "intersection" else share > 0.5
                assert turn.signals == {"wrong": float(expected)}


def _shown(question: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^\[turn \d+\] (.*)", question, re.MULTILINE))


def _saying(episode: Episode) -> tuple[str, ...]:
    return tuple(turn.action.content for turn in episode.trajectory.turns)


@reference("judge", "principles", policy=["another"])
def principles(judge: Part, policy: str = "") -> None:
    def points(question: str) -> dict[int, tuple[int, int]]:
        rng = chance(question)
        return {
            k: rng.choice([(0, 0), (1, 1), (0, 1), (2, 3), (4, 3), (1, 0)])
            for k in range(turns_in(question) + 3)
            if rng.random() < 0.8
        }

    def answer(question: str, before: int) -> str:
        return "First this.\n" + "\n".join(
            f"{'**' * (k % 2)}Turn {k}: {s} / {m}" for k, (s, m) in points(question).items()
        )

    groups = judged_groups()
    found, questions = asked(judge, groups, answer)
    by_text = {_shown(question): question for question in questions}
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not one.outcome.counts or not one.trajectory.turns:
                assert other is one
                continue
            given = points(by_text[_saying(one)])
            for k, turn in enumerate(other.trajectory.turns, 1):
                s, m = given.get(k, (0, 0))
                assert turn.signals == {"principle": s / m if m > 0 and s <= m else 0.0}


@reference("judge", "tournament", policy=["another"])
def tournament(judge: Part, policy: str = "") -> None:
    for salt in range(5):
        is_tournament(judge, salt)


def is_tournament(judge: Part, salt: int) -> None:
    """An attempt has other points as the first of a pair than as the second, so that both orders count."""

    def sides(question: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        one, two = question.split("=== Attempt A")[1].split("=== Attempt B")
        return _shown(one), _shown(two)

    def strength(shown: tuple[str, ...], side: str) -> float:
        return Random(f"strength {salt} {shown} {side}").randrange(0, 12) / 2

    def points(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[float, float]:
        return (5.0, 5.0) if len(a) == len(b) == 4 else (strength(a, "first") + 4, strength(b, "second"))

    def answer(question: str, before: int) -> str:
        a, b = sides(question)
        x, y = points(a, b)
        return (
            "None of both." if (x, y) == (5.0, 5.0) else f"POINTS: 1 1\nOr rather\n*Points: {x:g} and {y:g}"
        )

    groups = judged_groups()
    found, _ = asked(judge, groups, answer)
    for before, after in zip(groups, found, strict=True):
        taking = [i for i, one in enumerate(before) if one.outcome.counts and one.trajectory.turns]
        shown = [_saying(before[i]) for i in taking]

        def met(i: int, j: int, shown: Any = shown) -> tuple[float, float]:
            (a, b), (d, c) = points(shown[i], shown[j]), points(shown[j], shown[i])
            return a + c, b + d

        places = dict(zip(taking, by_place(shown, met), strict=True))
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            if i not in places:
                assert other is one
                continue
            assert all(turn.signals == {"standing": places[i]} for turn in other.trajectory.turns)


def graded_by(group: Group, rubric: Sequence[tuple[str, float]] | None) -> Group:
    """The group, of a task with these criteria; of three that count, the first does not end it and the second repeats itself."""
    (task, *_) = [one.task for one in group]
    options = {**task.options}
    if rubric is not None:
        options["rubrics"] = [{"criterion": text, "points": points} for text, points in rubric]
    return [dataclasses.replace(one, task=dataclasses.replace(task, options=options)) for one in group]


def acts(episode: Episode) -> list[str]:
    return [str(turn.action) for turn in episode.trajectory.turns]


@reference("judge", "rubric", policy=["another"])
def rubric(judge: Part, policy: str = "") -> None:
    """Criteria of two tasks, of which one has no points to be won; the third task has none, and its solution is the rubric."""

    def says(question: str, before: int) -> str:
        rng = chance(question)
        said = [(k, rng.choice(["yes", "no", "NO", "Yes."])) for k in range(6) if rng.random() < 0.8]
        return "I read it.\n" + "\n".join(
            f"{'**' * (k % 2)}Criterion {k}{'**' * (k % 2)}: {word}" for k, word in said
        )

    written = [
        [("first", 5), ("second", 3), ("third", -4), ("fourth", 7)],
        [("never", -1), ("nothing", 0)],
        None,
    ]
    gold = next(run_episodes(plan, scripted("gold")) for plan in plan_groups(SUITE, 1, 1, 5))[0]
    groups = [graded_by(group, own) for group, own in zip(judged_groups(), written, strict=False)]
    groups.append([*unfinished(), dataclasses.replace(gold, end=EndReason.FAILED)])
    found, questions = asked(judge, groups, says)
    assert len(questions) == 3 + 3
    by_text = {_shown(question): question for question in questions}
    seen = set[float]()
    for group, other, own in zip(groups, found, written, strict=True):
        for before, after in zip(group, other, strict=True):
            if not before.outcome.counts or not before.trajectory.turns:
                assert after is before
                continue
            if own is None:
                solution = {*acts(gold)}
                points = len(solution & {*acts(before)}) + before.success
                grade = points / (len(solution) + 1)
            else:
                question = by_text[_saying(before)]
                assert "\n".join(f"{k}. {text}" for k, (text, _) in enumerate(own, 1)) in question
                said = dict(re.findall(r"Criterion (\d)\W*: (\w+)", says(question, 0)))
                got = [p for k, (_, p) in enumerate(own, 1) if said.get(str(k), "no").lower() == "yes"]
                most = sum(p for _, p in own if p > 0)
                grade = sum(got) / most if most else 0.0
            seen.add(grade)
            assert told([[after]], "rubric") == [[[grade] * len(after.trajectory.turns)]]
    assert len(seen) > 5


@reference(
    "judge",
    "rlbff",
    policy=["another"],
    principles=[("It asks before it buys.", "It is short.", "It is right."), ("It is short.",)],
    combine=["min"],
    of=["turns"],
    form=["odds", "chance"],
    also=[
        {"principles": ("It asks.", "It ends."), "combine": "min", "of": "turns", "form": "chance"},
        {"principles": ("It asks.", "It ends."), "of": "turns"},
        {"principles": ()},
    ],
)
def rlbff(
    judge: Part, policy: str = "", principles: Sequence[str] = ("It does what the task asks for.",),
    combine: str = "mean", of: str = "episode", form: str = "generative",
) -> None:  # fmt: skip
    """Each principle of each attempt or turn, by a server that lists likely words, or answers in words."""
    from chat_server import said, serve

    groups = judged_groups()
    if not principles:
        refuses(lambda: asyncio.run(judge(groups)))
        return
    questions: list[str] = []
    good: list[bool] = []  # an assertion within the server would only make it be asked again

    def reply(request: dict[str, Any]) -> Any:
        question = str(request["messages"][-1]["content"])
        questions.append(question)
        ends = ("`ANSWER: yes` or `ANSWER: no`.", "one word, Yes or No.")[form != "generative"]
        good.append(request.get("logprobs", False) is (form != "generative") and ends in question)
        return said(_verdict_of(question)) if form == "generative" else _likely(question)

    with serve(reply) as server:
        found = asyncio.run(judge(groups, policy=f"openai:m@{server.url}"))
    assert all(good)
    seen = set[float]()
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not one.outcome.counts or not one.trajectory.turns:
                assert other is one
                continue
            for k, turn in enumerate(other.trajectory.turns, 1):
                what = f"turn {k}" if of == "turns" else "the attempt"
                asked_of = [
                    next(q for q in questions if _shown(q) == _saying(one) and f"Does {what} satisfy this principle: {text}" in q)
                    for text in principles
                ]  # fmt: skip
                each = [_counted(question, form) for question in asked_of]
                expected = mean(each) if combine == "mean" else min(each)
                assert math.isclose(turn.signals["rlbff"], expected, rel_tol=1e-9, abs_tol=1e-12)
                seen.add(expected)
    assert len(seen) > 1
    counting = [one for group in groups for one in group if one.outcome.counts and one.trajectory.turns]
    pieces = sum(len(one.trajectory.turns) for one in counting) if of == "turns" else len(counting)
    assert len(questions) == pieces * len(principles)


def _verdict_of(question: str) -> str:
    return chance(question).choice(
        ["I think.\nANSWER: no\nANSWER: yes", "**Answer:** No, not so.", "Answer: yes or no?", "yes"]
    )


def _listed(question: str) -> dict[str, float]:
    rng = chance(question)
    words = {"Yes": rng.uniform(-3, 0), " yes": rng.uniform(-5, -3), "No": rng.uniform(-3, 0), "Well": -6.5}
    gone = rng.choice(["", "", "No", "Yes"])
    return {"So": -0.5, "Well": -1.0} if rng.random() < 0.2 else {w: x for w, x in words.items() if w != gone}


def _likely(question: str) -> Any:
    from aiohttp import web

    top = [{"token": word, "logprob": x} for word, x in _listed(question).items()]
    place = {"token": "Yes", "logprob": 0.0, "top_logprobs": top}
    message = {"role": "assistant", "content": "Yes"}
    return web.json_response({"choices": [{"message": message, "logprobs": {"content": [place]}}]})


def _counted(question: str, form: str) -> float:
    if form == "generative":
        return float(
            _verdict_of(question).endswith("ANSWER: yes") or _verdict_of(question) == "Answer: yes or no?"
        )
    listed = _listed(question)
    p = dict.fromkeys(("yes", "no"), 0.0)
    for word, x in listed.items():
        if word.strip().lower() in p:
            p[word.strip().lower()] += math.exp(x)
    if p == {"yes": 0.0, "no": 0.0}:
        return 0.0
    least = math.exp(min(listed.values()))
    yes, no = max(p["yes"], least), max(p["no"], least)
    return yes / (yes + no) if form == "chance" else math.log(yes / no)


@reference(
    "judge",
    "scripted",
    false_accept=[1.0, 0.3],
    false_reject=[1.0],
    likes=["please"],
    seed=[5],
    also=[{"false_accept": 0.5, "false_reject": 0.1, "likes": "please"}],
)
def scripted_judge(
    judge: Part, false_accept: float = 0.0, false_reject: float = 0.0, likes: str = "", seed: int = 0
) -> None:
    for option, wrong in (
        ("false_accept", -0.1),
        ("false_accept", 1.1),
        ("false_reject", -0.1),
        ("false_reject", 1.1),
    ):
        assert f"{wrong:g}" in refuses(
            lambda option=option, wrong=wrong: asyncio.run(judge([], **{option: wrong}))
        )
    ends = {EndReason.SOLVED: false_reject, EndReason.FAILED: false_accept}
    wrong = dict.fromkeys(ends, 0)
    made = {
        end: [
            with_words(episode([0, 0], end=end), [f"word {n}", "please" if n % 4 == 0 else "go"])
            for n in range(400)
        ]
        for end in ends
    }
    found = dict(zip(ends, asyncio.run(judge([*made.values()])), strict=True))
    again = asyncio.run(judge([made[EndReason.FAILED][::-1]]))[0][::-1]
    for end, group in found.items():
        for n, one in enumerate(group):
            first, last = (turn.signals["verdict"] for turn in one.trajectory.turns)
            assert first == last
            assert first in (0.0, 1.0)
            assert [turn.action for turn in one.trajectory.turns] == [
                turn.action for turn in made[end][n].trajectory.turns
            ]
            if likes and n % 4 == 0:
                assert first == 1.0
            else:
                wrong[end] += first != (end is EndReason.SOLVED)
    trials = 300 if likes else 400
    for end, chance in ends.items():
        fair_or_never(wrong[end], trials, chance)
    assert again == found[EndReason.FAILED], "judged alike whenever it is judged"
    if 0 < false_accept < 1:
        other = asyncio.run(judge([made[EndReason.FAILED]], seed=seed + 1))[0]
        assert other != found[EndReason.FAILED]
        (moved,) = asyncio.run(
            judge([[dataclasses.replace(one, seed=one.seed + 1) for one in made[EndReason.FAILED]]])
        )
        assert [one.trajectory for one in moved] != [one.trajectory for one in found[EndReason.FAILED]]
