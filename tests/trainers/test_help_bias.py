"""What help does to the expected first step: what is declared holds on small processes, and guides play as is listed there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from process_worlds import CHANCES_SA, ProcessEnv, Tabular, register_processes, steps

from turnwise.agents.rollout import Request
from turnwise.envs.core import EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register
from turnwise.registry import get_component
from turnwise.tasks.core import Task, derive_rng
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.prefix import prefix
from turnwise.trainers.lab.exact import paths
from turnwise.trainers.lab.help_bias import best_actions, help_bias, helps, prefixed
from turnwise.trainers.lab.processes import PUZZLE
from turnwise.trainers.lab.recipe_bias import Composition
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner

register_processes()

EXACT = 1e-6
SIZE = 2
KEPT = {(one.part, one.options): one for one in helps()}
WHOLE = "correction: {name: tis, level: trajectory, cap: 1e9}"


def parts(credit: str) -> Composition:
    built = {
        kind: get_component(kind, name).build({})
        for kind, name in (("filter", "informative"), ("reduce", "fixed_length"))
    }
    return Composition(get_component("credit", credit).build({}), built["filter"], (), built["reduce"])


@pytest.mark.parametrize("credit", ["return_to_go", "rloo"])
@pytest.mark.parametrize(
    "key",
    [
        *(
            ("guide/prefix", "where: all"),
            ("guide/prefix", "where: all, share: 0.3"),
            ("source/demonstrations", "weight: 1"),
        ),
        *(
            ("source/stored", f"join, {WHOLE}"),
            ("teacher + distill", "beta: 0"),
            ("teacher + distill", "beta: 0.5"),
        ),
    ],
    ids=" ".join,
)
def test_what_is_declared_holds_on_every_process(key: tuple[str, str], credit: str) -> None:
    found = help_bias(parts(credit), KEPT[key].step, SIZE)
    assert {name: bias.declared for name, bias in found.items() if bias.declared > EXACT} == {}
    if key[1].startswith("join"):
        assert all(bias.degrees < EXACT for bias in found.values())
    else:
        assert all(bias.degrees > 1 for bias in found.values()), "it is another objective"


@pytest.mark.parametrize("key", [("guide/prefix", "where: unsolved"), ("guide/hint", WHOLE)], ids=" ".join)
def test_what_is_chosen_by_outcome_is_as_declared_where_the_outcome_is_all(key: tuple[str, str]) -> None:
    found = help_bias(parts("return_to_go"), KEPT[key].step, SIZE)
    assert found["puzzle"].declared < EXACT
    assert max(bias.declared for bias in found.values()) > 10


@pytest.mark.parametrize("options", ["join, correction: none", "join, correction: tis"])
def test_stored_groups_without_their_whole_ratio_are_off(options: str) -> None:
    assert (
        max(
            bias.degrees
            for bias in help_bias(parts("rloo"), KEPT["source/stored", options].step, SIZE).values()
        )
        > 3
    )


# --- the guide itself, on the same process ------------------------------------------------------------------------

ENV = "turnwise-test/Solvable-v0"


class Solvable(ProcessEnv):
    """The process, solved by a reward of 1 at its end; gold takes the best action."""

    def transition(self, state: tuple[int, int], action: Message) -> Transition[tuple[int, int]]:
        found = super().transition(state, action)
        solved = found.end is EndReason.FAILED and found.rewards["outcome"] >= 1
        return found._replace(end=EndReason.SOLVED) if solved else found

    def gold(self, state: tuple[int, int]) -> Message:
        return Message("assistant", str(best_actions(PUZZLE)[state]))


register(ENV, f"{__name__}:Solvable", about="a decision process with a solution, for tests")


class Player(GuidePlayer):
    """Plays a policy of one token a turn, which is no model."""

    @property
    def renderer(self) -> Any:
        return SimpleNamespace(
            start=lambda messages, tools: (9,),
            extend=lambda messages, new, last, tools: SimpleNamespace(ids=(9,), fresh=False),
            reply_ids=lambda message: [int(message.content)],
        )


@pytest.mark.parametrize("where", ["unsolved", "all"])
def test_the_guides_own_groups_have_the_step_that_is_listed(
    where: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mean over many groups that it left, against the sum over all groups, within what chance allows."""
    logits_SA = torch.tensor(
        [[-2.0, 2.0], [0.0, 0.0], [-2.0, 2.0], [-1.5, 1.5]], dtype=torch.float64
    )  # mostly unsolved
    monkeypatch.setitem(CHANCES_SA, "puzzle", logits_SA.softmax(-1).tolist())
    task, groups, size = Task(ENV, "?", {"process": "puzzle", "turn_limit": 9}), 400, 2
    rule, p = parts("return_to_go"), paths(PUZZLE, logits_SA)
    policy = Tabular(PUZZLE)
    runner = RolloutRunner(policy, as_is)
    player = Player(runner, policy, {}, 0, 0)

    async def run() -> Any:
        plan = [
            [Request(task, derive_rng("help", g, i).getrandbits(60)) for i in range(size)]
            for g in range(groups)
        ]
        return await prefix(player, await chain(runner, plan), where=where)

    p_SA = p.logits_SA.detach().softmax(-1)
    updates: list[Any] = []
    for group in asyncio.run(run()):
        batch = collate([group])
        advantage_RT = rule(batch.turns).advantage_RT
        update_SA = torch.zeros_like(p_SA)
        for b, episode in enumerate(group):
            place = {int(k): t for t, k in enumerate(batch.rows.turn_RT[b].tolist()) if k >= 0}
            for k, (s, a) in enumerate(steps(episode)):
                if k in place:  # the demonstrator's turns have no token to learn
                    update_SA[s] += advantage_RT[b, place[k]].item() * (torch.eye(2)[a] - p_SA[s]) / size
        updates.append(update_SA)
    stacked = torch.stack(updates)
    error_SA = stacked.std(0) / groups**0.5
    exact_SA = prefixed(rule, p, size, where=where).mean_SA
    plain_SA = prefixed(rule, p, size, where=where, share=0.0).mean_SA
    assert ((stacked.mean(0) - exact_SA).abs() <= 4.5 * error_SA + 1e-12).all()
    assert not ((stacked.mean(0) - plain_SA).abs() <= 4.5 * error_SA + 1e-12).all(), "help is seen"
