"""GenPRM: labels by relative progress with every fork played once more, critiques whose programs run, and what both agree on."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import re
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

from judged import _counted, _likely, _verdict_of, chance, judged_groups  # pyright: ignore
from law import LAWS
from plain import mean, reference, refuses
from played import SUITE, Part, able, actions, play
from ragged import Ragged

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.rollout import fork, run_episodes
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import transcript
from turnwise.trainers.kit.toy_batches import turn_batch
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.runner import DryRunner, RolloutRunner, plan_groups

# --- labels ---------------------------------------------------------------------------------------------------------


def labels_by_hand(shares: Sequence[float], least: float) -> list[int]:
    """P_t = MC_t / MC_{t−1}, 1 from ε on; once MC was 0, all later labels are 0."""
    found: list[int] = []
    dead = False
    for before, after in pairwise(shares):
        dead = dead or before == 0
        found.append(0 if dead else int(after / before >= least))
    return found


@reference("strategy", "relative_progress", forks=[1, 3], least=[0.5, 1.5, 0.0, -1.0], also=[{"forks": 0}])
def relative_progress(strategy: Part, forks: int = 8, least: float = 0.8) -> None:
    assert labels_by_hand([0.75, 0.5, 0.5, 0.1], 0.8) == [0, 1, 0]
    if forks < 1 or least <= 0:
        refuses(lambda: play(strategy, able(), 1, 1))
        return
    found, _ = play(strategy, able(), 3, 2)
    plan = plan_groups(SUITE, 3, 2)
    alone = [asyncio.run(RolloutRunner(able(), as_is)(requests, branch_points=True)) for requests in plan]
    seen = set[tuple[float, float]]()
    for group, trunks in zip(found, alone, strict=True):
        for one, trunk in zip(group, trunks, strict=True):
            assert actions(one) == actions(trunk.episode)
            T = len(one.trajectory.turns)
            points = [trunks[0].branch_points[0], *trunk.branch_points[1:T]]
            shares = [
                mean([one.success for one in run_episodes([fork(point, i) for i in range(forks)], able())])
                for point in points
            ]
            wanted = labels_by_hand([*shares, float(trunk.episode.success)], least)
            assert [turn.signals for turn in one.trajectory.turns] == [{"wrong": 1.0 - x} for x in wanted]
            seen |= {(x, float(trunk.episode.success)) for x in wanted}
    assert forks == 1 or {x for x, _ in seen} == {0, 1}
    known = frozenset(request.seed for group in plan for request in group)
    lost, _ = play(strategy, dataclasses.replace(able(), knows=known), 1, 2)  # pyright: ignore
    assert [(one.outcome, one.error) for one in lost[0]] == [
        (Outcome.INFRA_ERROR, "no fork of turn 0 came through")
    ] * 2
    unplayed = asyncio.run(strategy(DryRunner(as_is), plan))
    assert not any(one.trajectory.turns for group in unplayed for one in group)
    gone, _ = play(strategy, dataclasses.replace(able(), knows=frozenset({1})), 1, 1)  # pyright: ignore
    assert "It is gone" in gone[0][0].error


# --- critiques ------------------------------------------------------------------------------------------------------

PROGRAMS = {
    "```python\nprint(6 * 7)\n```": ("42",),
    "```python\nx = 5\n```\nThen:\n```python\nprint(x + 1)\n```": ("6",),
    "```python\n1 / 0\n```": ("ZeroDivisionError",),
    "```python\nx = 1\n```": ("(nothing)",),
    "No program is needed. `print(1)`": (),
}


def critique_of(question: str, before: int) -> str:
    rng = chance(question, before)
    return f"Critique {rng.randrange(1000)}.\n{rng.choice([*PROGRAMS])}\nPrinted: 7\nIs turn 1 right? yes\nANSWER: yes"


def is_verdict(question: str) -> bool:
    return "one word, Yes or No" in question or "`ANSWER: no`" in question


def prefix_of(one: Episode, k: int) -> str:
    """What was told and said up to a turn, and nothing of what came of it."""
    turns = one.trajectory.turns[: k + 1]
    cut = dataclasses.replace(one.trajectory, turns=turns, final=())
    return transcript(dataclasses.replace(one, trajectories={one.trajectory.agent: cut}))


def short_groups() -> list[Group]:
    """Two turns of three episodes, one that failed to be played, and one that never began."""
    one, two = judged_groups()

    def cut(episode: Episode) -> Episode:
        first = episode.trajectory
        kept_ = dataclasses.replace(first, turns=first.turns[:2])
        return dataclasses.replace(episode, trajectories={first.agent: kept_})

    return [[cut(episode) for episode in group] for group in (one[:3], two[2:])]


@reference(
    "judge", "genprm", policy=["another"], critiques=[1, 4, 0], code=[False], form=["chance"],
    also=[{"critiques": 2, "form": "chance"}],
)  # fmt: skip
def genprm(
    judge: Part, policy: str = "", critiques: int = 8, code: bool = True, form: str = "generative"
) -> None:
    """The mean of P(yes) after each critique; a critique's programs were run, and what they print is shown."""
    from chat_server import said, serve  # pyright: ignore[reportMissingImports]

    groups = short_groups()
    if critiques < 1:
        refuses(lambda: asyncio.run(judge(groups)))
        return
    first: list[str] = []
    last: list[str] = []

    def reply(request: dict[str, Any]) -> Any:
        question = str(request["messages"][-1]["content"])
        if not is_verdict(question):
            first.append(question)
            return said(critique_of(question, first.count(question) - 1))
        last.append(question)
        return said(_verdict_of(question)) if form == "generative" else _likely(question)

    with serve(reply) as server:
        found = asyncio.run(judge(groups, policy=f"openai:m@{server.url}"))
    seen, printed = set[float](), set[str]()
    prefixes = set[str]()
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not one.outcome.counts or not one.trajectory.turns:
                assert other is one
                continue
            for k, turn in enumerate(other.trajectory.turns):
                shown = f"\n\n{prefix_of(one, k)}\n\n"
                prefixes.add(shown)
                (question,) = {q for q in first if shown in q}
                assert f"turn {k + 1}" in question.rsplit("\n\n", 1)[-1].lower()
                assert ("```python" in question) == code
                said_of = [critique_of(question, n) for n in range(critiques)]
                asked = [q for q in last if shown in q]
                expected: list[float] = []
                for text in said_of:
                    quoted = "> " + "\n> ".join(text.splitlines())
                    mine = {q for q in asked if quoted in q}
                    assert len(mine) == 1
                    (verdict,) = mine
                    assert ("one word, Yes or No" in verdict) == (form == "chance")
                    after_it = verdict.split(quoted)[1]
                    if code:
                        (wanted,) = [out for program, out in PROGRAMS.items() if program in text]
                        assert ("printed" in after_it) == bool(wanted)
                        assert all(re.search(rf"^> .*{re.escape(x)}", after_it, re.MULTILINE) for x in wanted)
                        printed |= {*wanted}
                    else:
                        assert "printed" not in after_it
                    assert f"turn {k + 1}" in after_it.lower()
                    expected.append(_counted(verdict, form))
                assert turn.signals.keys() == {"principle"}
                assert math.isclose(turn.signals["principle"], mean(expected), rel_tol=1e-9, abs_tol=1e-12)
                seen.add(turn.signals["principle"])
    assert len(first) == len(last) == len(prefixes) * critiques, "a text is judged once"
    assert len(seen) > 1
    assert not code or critiques < 8 or len(printed) == 4


# --- what is kept ---------------------------------------------------------------------------------------------------


def agree(wrong: Sequence[float], score: Sequence[float]) -> float:
    """Every turn's label is the critique's verdict; a score of a half is no yes."""
    return float(all((w <= 0.5) == (s > 0.5) for w, s in zip(wrong, score, strict=True)))


def all_agree(name: str, part: Part, formula: Part) -> None:
    LAWS["filter"](name, part, formula)
    every = [
        (wrong, score)
        for T in (1, 2, 3)
        for wrong in product([0.0, 0.5, 0.6, 1.0] if T < 3 else [0.0, 1.0], repeat=T)
        for score in product([0.0, 0.5, 0.6, 1.0] if T < 3 else [0.3, 0.7], repeat=T)
    ]
    signals = {"wrong": [wrong for wrong, _ in every], "principle": [score for _, score in every]}
    batch = turn_batch([[0.0] * len(wrong) for wrong, _ in every], signals=signals)
    expected = [agree(*one) for one in every]
    assert part(batch, batch.reward_BK).tolist() == expected
    assert {*expected} == {0.0, 1.0}


@reference("filter", "genprm", law=all_agree)
def kept(r: Ragged, A: Any) -> list[float]:
    return [agree(r.turns["wrong"][i], r.turns["principle"][i]) for i in range(len(r))]
