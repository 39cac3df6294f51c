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
from turnwise.errors import RecipeError
from turnwise.registry import get_component
from turnwise.tasks.core import Task, derive_rng
from turnwise.trainers.core import RowMask
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.prefix import prefix
from turnwise.trainers.kit.token_credit import on_tokens
from turnwise.trainers.lab.exact import paths
from turnwise.trainers.lab.first_step import Composition, MeasuredLoss
from turnwise.trainers.lab.help_bias import (
    LearnedHelp,
    best_actions,
    demonstrated,
    help_bias,
    helps,
    joined,
    prefixed,
)
from turnwise.trainers.lab.processes import PUZZLE, lopsided
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner

register_processes()

EXACT = 1e-6
SIZE = 2
KEPT = {(one.part, one.options): one for one in helps()}
WHOLE = "correction: {name: tis, level: trajectory, cap: 1e9}"


def loss(name: str, **options: Any) -> MeasuredLoss:
    entry = get_component("loss", name)
    built = entry.build(options)
    return MeasuredLoss(name, lambda: built, whole=entry.whole, needs=entry.needs_with(options))


def parts(credit: str) -> Composition:
    built: dict[str, Any] = {
        kind: get_component(kind, name).build({})
        for kind, name in (
            ("credit", credit), ("filter", "informative"), ("reduce", "fixed_length"), ("correction", "none")
        )
    }  # fmt: skip
    return Composition(**built, shapes=(), losses=[loss("clip")])


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
            ("teacher + distill", "beta: 0, filter: any"),
            ("teacher + distill", "beta: 0.5, filter: any"),
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


def test_a_teacher_says_nothing_of_groups_that_the_filter_drops() -> None:
    for beta in ("0", "0.5"):
        found = help_bias(parts("return_to_go"), KEPT["teacher + distill", f"beta: {beta}"].step, SIZE)
        assert all(bias.declared > 1 for bias in found.values())


def test_what_a_source_shows_and_what_joins_is_learned_by_its_own_losses_and_weights() -> None:
    rule, none = parts("rloo"), get_component("correction", "none").build({})
    p = paths(PUZZLE, lopsided(PUZZLE))
    without = demonstrated(rule, p, SIZE, theirs=LearnedHelp(none, [loss("nll")], 0.0)).mean_SA
    one, half, sure = (
        demonstrated(rule, p, SIZE, theirs=LearnedHelp(none, losses, weight)).mean_SA - without
        for losses, weight in ((None, 1.0), ([loss("nll")], 0.5), ([loss("one_token", miss=0.0)], 1.0))
    )
    assert torch.allclose(half, one / 2)
    p_SA = p.logits_SA.detach().softmax(-1)
    for state, action in {(s, a) for (s, _), a in best_actions(PUZZLE).items() if one[s].any()}:
        assert sure[state, action] / one[state, action] == pytest.approx(p_SA[state, action].item())
    entropy = rule._replace(losses=[loss("clip"), loss("entropy")._replace(weight=0.1)])
    for theirs in (LearnedHelp(none), LearnedHelp(none, [loss("clip")])):
        told = joined(entropy, p, SIZE, theirs=theirs).mean_SA
        assert not torch.allclose(told, joined(rule, p, SIZE, theirs=theirs).mean_SA)
    assert not torch.allclose(
        joined(entropy, p, SIZE, theirs=LearnedHelp(none)).mean_SA,
        joined(entropy, p, SIZE, theirs=LearnedHelp(none, [loss("clip")])).mean_SA,
    )
    with pytest.raises(RecipeError, match="groups of two policies"):
        joined(rule._replace(losses=[loss("dpo")]), p, SIZE, theirs=LearnedHelp(none))


@pytest.mark.slow
def test_prefixes_and_hints_pass_the_recipes_losses() -> None:
    for key in (("guide/prefix", "where: all"), ("guide/hint", WHOLE)):
        plain = help_bias(parts("return_to_go"), KEPT[key].step, SIZE)
        other = help_bias(parts("return_to_go")._replace(losses=[loss("disco")]), KEPT[key].step, SIZE)
        assert all(abs(plain[name].degrees - other[name].degrees) > 0.1 for name in ("stopping", "chance"))


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
            context=None,
            measure=None,
            conversation=lambda kept: None,
            start=lambda messages, tools, kept: (9,),
            extend=lambda messages, new, last, tools, kept: SimpleNamespace(ids=(9,), fresh=False),
            reply_ids=lambda message: [int(message.content)],
        )


@pytest.mark.slow
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
        credit = rule.credit(batch.turns)
        weight_RT = rule.reduce(RowMask(batch.rows.mask_RT, batch.rows.turn_RT, batch.rows.trajectory_R))
        kept_B = rule.filter(batch.turns, credit)
        advantage_RT = on_tokens(credit, batch.turns) * weight_RT * size * kept_B[:, None]
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
