"""Episodes that are left early and asked for an answer: the guides that cut them, and the rules that weigh what is answered."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from drawn import fair
from helped import FORGETS, Part, obedient
from plain import mean, over_turns, reference, refuses
from ragged import Ragged, Rows
from rows_helped import Watched

from turnwise.agents.core import PREVIOUS, ROOT, Completion, Episode, Outcome, Sampling
from turnwise.agents.policies.model import ModelPolicy
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register, register_suite
from turnwise.tasks.core import Json, Split, Suite, Task
from turnwise.trainers.core import Group
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups

# --- rules ------------------------------------------------------------------------------------------------------


@reference("credit", "s_grpo", success=[0.4])
def s_grpo(r: Ragged, success: float = 1.0) -> Rows:
    """The lengths of right answers in order: the place of the first of one's own length says how often it is halved."""

    def paid(i: int) -> float:
        right = sorted(len(r.rewards[j]) for j in r.peers(i) if r.returns[j] >= success - 1e-6)
        return 0.5 ** right.index(len(r.rewards[i])) if r.returns[i] >= success - 1e-6 else 0.0

    return over_turns(r, lambda i: paid(i) - mean([paid(j) for j in r.peers(i)]))


@reference("credit", "brpo", budgets=["uniform", "base"])
def brpo(r: Ragged, budgets: str = "linear") -> Rows:
    """Budget by budget, in sums that begin anew each time."""
    trunk, at = ([int(row[0]) for row in r.turns[name]] for name in ("exit_trunk", "exit_at"))

    def of(i: int, k: int) -> float:
        peers = r.peers(i)
        S = 1 + max(at[j] for j in peers)
        chance = {
            "uniform": [1 / S] * S,
            "linear": [(t + 1) / (S * (S + 1) / 2) for t in range(S)],
            "base": [float(t == S - 1) for t in range(S)],
        }[budgets]

        def V(name: int, t: int) -> float:
            found = [r.returns[j] for j in peers if (trunk[j], at[j]) == (name, t)]
            return mean(found) if found else 0.0

        s, own = int(r.turns["exit_segment"][i][k]), trunk[i]
        if s < 0:
            return r.returns[i] - V(own, at[i])
        if at[i] != S - 1:
            return 0.0
        s = min(s, S - 1)
        left = sum(chance[s:])
        R = {name: sum(chance[t] * V(name, t) for t in range(s, S)) for name in {trunk[j] for j in peers}}
        v2 = mean([*R.values()])
        v1 = sum(2**t * V(own, t) for t in range(s)) / (2**s - 1) * left if s else 0.0
        return R[own] - (s * v1 + (S - s) * v2) / S

    return [[of(i, k) for k in range(len(row))] for i, row in enumerate(r.rewards)]


# --- guides -----------------------------------------------------------------------------------------------------


class Passed(NamedTuple):
    """How many turns there were."""

    turns: int = 0


class Pondering(AgentEnv[Passed]):
    """Ends when somebody answers, solved if it is right, or after so many turns as the task says."""

    system = "Think."
    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task("test/Pondering-v0", f"Think {rng.random()}", {"most": knobs["most"]})

    def initial(self, task: Task) -> tuple[Passed, str]:
        return Passed(), task.prompt

    def transition(self, state: Passed, action: Message) -> Transition[Passed]:
        after = Passed(state.turns + 1)
        if action.content.startswith("answer"):
            return Transition(after, "heard", {"outcome": 1.0}, EndReason.SOLVED)
        ended = EndReason.FAILED if after.turns == self.task.options["most"] else None
        return Transition(after, f"{after.turns} so far", {"outcome": 0.0}, ended)

    def gold(self, state: Passed) -> str:
        return "answer"


@functools.cache
def pondering() -> None:
    register("test/Pondering-v0", f"{__name__}:Pondering", "Thinking.")
    for most in (1, 3, 6):
        register_suite(Suite(f"pondering/{most}", "test/Pondering-v0", "Thinking.", {"most": most}))


class Thinker:
    """Says a number of its own in each turn; answers where it was told ``told`` the ``after``-th time."""

    version, context_length = 0, 8192

    def __init__(self, told: str, after: int, template: str) -> None:
        self.told, self.after, self.plain = told, after, obedient(template)
        self.read: dict[tuple[int, ...], str] = {}

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text: Any = self.plain.renderer.tokenizer.decode(list(prompt_ids))
        said = "answer" if text.count(self.told) >= self.after else "hm"
        ids = (
            *self.plain.renderer.tokenizer.encode(f"{said} {seed}", add_special_tokens=False),
            next(iter(stop_ids)),
        )
        self.read[ids] = text
        return Completion(ids, (-0.5,) * len(ids), stopped=True)

    def close(self) -> None:
        """Nothing is held."""


class Forgetful(Watched):
    """Does not come to the first of the moments that it is asked for again."""

    async def moments(self, wanted: Any) -> Any:
        return [None, *(await super().moments(wanted))[1:]]


class Left(NamedTuple):
    """Groups after a guide, and the engine that played them."""

    groups: list[Group]
    engine: Thinker


def left(
    make: Part,
    most: int,
    size: int,
    told: str,
    *,
    after: int = 1,
    template: str = "",
    seed: int = 0,
    forgets: bool = False,
    room: int = 8192,
) -> Left:
    """Two groups, and nothing of what was played before is in them."""
    pondering()
    engine = Thinker(told, after, template)
    engine.context_length = room
    policy = ModelPolicy(engine, engine.plain.renderer, Sampling(max_tokens=200))  # pyright: ignore
    runner = RolloutRunner(policy, as_is)
    player = (Forgetful if forgets else Watched)(runner, policy, {}, seed, 0)
    player.played, player.lost, player.alone = [], None, None
    guide = make()
    assert guide.instead
    guide.restore(guide.state())

    async def run() -> tuple[list[Group], list[Group]]:
        given = await chain(runner, plan_groups(f"pondering/{most}", 2, size, seed))
        return given, await guide(player, given)

    given, found = asyncio.run(run())
    assert [[one.task.id for one in group] for group in found] == [
        [one.task.id for one in group] for group in given
    ]
    before = {one.seed for group in given for one in group}
    assert not {one.seed for group in found for one in group} & before
    return Left(found, engine)


def is_exit(
    one: Episode, whole: Episode, k: int, engine: Thinker, mark: str, turns: int, most: int, template: str
) -> None:
    """It is the whole episode for k turns; from there on it is told to answer, and learns under that."""
    shown, own = one.trajectory.turns[:k], one.trajectory.turns[k:]
    assert [turn.reply for turn in shown] == [turn.reply for turn in whole.trajectory.turns[:k]]
    assert len(own) == min(turns, engine.after, most - k)
    assert one.success == (len(own) == engine.after)
    if not one.success:
        assert one.outcome == (Outcome.OK if k + len(own) == most else Outcome.LIMIT)
    for n, turn in enumerate(own):
        assert (turn.reply.source, turn.reply.scored_ids, turn.weight) == (mark, None, 1.0)
        assert turn.reply.parent == (ROOT if k + n and template else PREVIOUS)
        read = engine.read[turn.reply.action_ids]
        assert read.endswith(f"\n\n{engine.told}<|assistant|>")
        assert read.count(engine.told) == (1 if template else n + 1)
        assert engine.plain.renderer.tokenizer.decode(list(turn.reply.prompt_ids)).count(engine.told) == 1


def refuses_to_say_nothing(make: Part) -> None:
    for wrong in ({"turns": 0}, {"told": " "}):
        assert "guide '" in refuses(lambda wrong=wrong: make(**wrong))


HURRY = "Time is up. Stop here and give your answer now."


@reference("guide", "s_grpo", told=["Well?"], turns=[2, 9])
def leaves(make: Part, told: str = HURRY, turns: int = 1) -> None:
    refuses_to_say_nothing(make)
    before = list[int]()
    for seed in range(2):
        for most, size, after, template in ((6, 5, 2, ""), (6, 3, 1, FORGETS), (1, 3, 1, ""), (3, 1, 1, "")):
            found = left(make, most, size, told, after=after, template=template, seed=seed)
            for group in found.groups:
                whole, exits = group[-1], group[:-1]
                assert len(whole.trajectory.turns) == most
                assert not any(turn.reply.source for turn in whole.trajectory.turns)
                at = [_own_from(one) for one in exits]
                assert at == sorted(at)
                before += at if most == 6 else []
                for one, k in zip(exits, at, strict=True):
                    is_exit(one, whole, k, found.engine, "guide/s_grpo", turns, most, template)
    for k in range(6):
        fair(before.count(k), len(before), 1 / 6)
    (first, *others), _ = left(make, 6, 4, told, forgets=True).groups
    assert first.outcome == Outcome.INFRA_ERROR
    assert all(one.outcome.counts for one in others)
    for group in left(make, 3, 3, told, room=1).groups:
        assert [(one.outcome, len(one.trajectory.turns)) for one in group] == [(Outcome.LIMIT, 0)] * 3


def _own_from(one: Episode) -> int:
    """The turn from which it was told to answer."""
    return [bool(turn.reply.source) for turn in one.trajectory.turns].index(True)


@reference(
    "guide", "anytime", budgets=[(), (0,), (1, 2, 4), (7,)], answers=[2], told=["Well?"], turns=[2],
    also=[{"budgets": (1, 3), "answers": 2}, {"budgets": (0, 5, 6), "answers": 3}],
)  # fmt: skip
def anytime(
    make: Part, budgets: Sequence[int] = (2,), answers: int = 1, told: str = HURRY, turns: int = 1
) -> None:
    refuses_to_say_nothing(make)
    for wrong in ({"answers": 0}, {"budgets": (2, 1)}, {"budgets": (1, 1)}, {"budgets": (-1, 2)}):
        refuses(lambda wrong=wrong: make(**wrong))
    rows = 1 + len(budgets) * answers
    if rows > 1:
        assert f"multiple of {rows}." in refuses(lambda: left(make, 3, rows + 1, told))
    for most in (3, 6):
        found = left(make, most, 2 * rows, told)
        for group in found.groups:
            assert len(group) == 2 * rows
            for number in (0, 1):
                whole, *asked = group[number * rows : (number + 1) * rows]
                assert len(whole.trajectory.turns) == most
                is_placed(whole, number, len(budgets), [sum(b <= k for b in budgets) for k in range(most)])
                assert {turn.weight for turn in whole.trajectory.turns} == {1.0}
                for n, one in enumerate(asked):
                    s = n // answers
                    k = budgets[s]
                    segments = [sum(b <= t for b in budgets) for t in range(min(k, most))]
                    if k >= most:
                        is_placed(one, number, s, segments)
                        assert [turn.reply for turn in one.trajectory.turns] == [
                            turn.reply for turn in whole.trajectory.turns
                        ]
                        assert {turn.weight for turn in one.trajectory.turns} == {0.0}
                        continue
                    own = len(one.trajectory.turns) - k
                    is_placed(one, number, s, [*segments, *[-1] * own])
                    is_exit(one, whole, k, found.engine, "guide/anytime", turns, most, "")
                    assert [turn.weight for turn in one.trajectory.turns] == [0.0] * k + [1.0] * own
                    assert all(one is not other and one.seed != other.seed for other in asked[:n])
    if budgets and budgets[0] < 3:
        (_, lost, *_), _ = left(make, 3, 2 * rows, told, forgets=True).groups
        assert lost.outcome == Outcome.INFRA_ERROR


def is_placed(one: Episode, trunk: int, at: int, segments: Sequence[int]) -> None:
    assert [turn.signals for turn in one.trajectory.turns] == [
        {"exit_trunk": trunk, "exit_at": at, "exit_segment": s} for s in segments
    ]
