"""Refuse settings that would silently change nothing.

Parts are tried out on a small batch instead of being known by name: an option that changes neither a loss
nor its gradient there, a filter that keeps nothing and a credit rule that gives nothing are found for every
part there is and will be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from turnwise.envs.core import EndReason, RewardKind
from turnwise.envs.registry import env_class, get_suite
from turnwise.errors import RecipeError
from turnwise.kinds import PLAYED
from turnwise.tasks.core import derive_rng
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.kit.toy_batches import episode, token_batch, toy_turns, whole_batch, with_tokens
from turnwise.trainers.recipe.foreign import corrected_in_vain
from turnwise.trainers.recipe.levels import ignores_advantages, level_of_correction
from turnwise.trainers.recipe.part import LossPart, Part, payer_of
from turnwise.trainers.recipe.problems import RecipeProblem
from turnwise.trainers.recipe.schema import Optimizer, Recipe
from turnwise.trainers.recipe.unwritten import written_in_vain


def useless(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Settings that can have no effect."""
    yield from _losses(recipe)
    yield from _correction(recipe)
    yield from corrected_in_vain(recipe)
    yield from _weights(recipe)
    yield from _groups(recipe)
    yield from _outcome(recipe)
    yield from _lengths(recipe)
    yield from _schedule(recipe)
    learned = [chosen.entry.name for chosen in recipe.sources if chosen.entry.learns]
    for key in ("value_weight", "value_learning_rate"):
        given = getattr(recipe.optimizer, key) != Optimizer.model_fields[key].default
        if given and not learned:
            yield RecipeProblem(
                f"optimizer.{key} can have no effect: no part needs a signal that learns with a head.",
                "Remove it, or use credit: gae.",
            )
    measured = {chosen.entry.name for chosen in recipe.sources}
    for part in recipe.signals:
        if part.name not in measured:
            gives = ", ".join(map(repr, part.component("signal").gives))
            yield RecipeProblem(
                f"signal {part.name!r} can have no effect: no part needs {gives}.",
                "Remove it from signals, or name a part that asks for it.",
            )
    yield from written_in_vain(recipe)
    if recipe.rollout.refill and not drops_what_teaches_nothing(recipe.filter):
        yield RecipeProblem(
            f"rollout.refill plays until enough groups teach something, and filter {recipe.filter.name!r} trains on "
            "those that teach nothing, too.",
            "Set filter: informative (a rule with a learned baseline cannot), or remove refill.",
        )
    if learned and drops_what_teaches_nothing(recipe.filter):
        yield RecipeProblem(
            f"filter {recipe.filter.name!r} can drop nothing: with what signal {learned[0]!r} learns no advantage is 0.",
            "Set filter: any, or leave it out.",
        )


def _losses(recipe: Recipe) -> Iterator[RecipeProblem]:
    seen: set[str] = set()
    if recipe.optimizer.learning_rate == 0:  # the rates of heads are multiples of it
        yield RecipeProblem(
            "The recipe's 'optimizer.learning_rate' cannot be 0: a run begins with it, and would learn nothing.",
            "Set it above 0, such as 1e-6; only a schedule may bring it to 0.",
        )
    for part in recipe.source:
        if part.weight == 0 and f"source.{part.name}.weight" not in recipe.schedule:
            yield RecipeProblem(f"source {part.name!r} has weight 0.", "Remove it from the recipe.")
    for part in recipe.loss:
        if part.weight == 0 and f"loss.{part.name}.weight" not in recipe.schedule:
            yield RecipeProblem(f"loss {part.name!r} has weight 0.", "Remove it from the recipe.")
        if part.name in seen:
            yield RecipeProblem(f"loss {part.name!r} stands twice.", "Keep one of them.")
        seen.add(part.name)
        idle = idle_options(part) if recipe.steps == 1 else []
        if idle:
            yield RecipeProblem(
                f"loss {part.name!r}: {', '.join(idle)} can have no effect with one optimizer step per batch.",
                "Set optimizer.minibatches or optimizer.epochs above 1, or remove the option.",
            )


def _correction(recipe: Recipe) -> Iterator[RecipeProblem]:
    """A correction weighs advantages; it is named in vain where no loss looks at them."""
    if "correction" not in recipe.model_fields_set:
        return
    if level_of_correction(recipe.correction.build("correction")) is None:
        return
    if blind := blind_losses(recipe):
        names = " and ".join(repr(part.name) for part in blind)
        yield RecipeProblem(
            f"correction {recipe.correction.name!r} weighs advantages, and loss {names} does not look at them.",
            "Remove it, or set correction: none.",
        )


def _weights(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Weights of trajectories multiply advantages: they are given in vain where no loss looks at these."""
    losses = [*recipe.loss, *(loss for part in recipe.guide for loss in part.loss or ())]
    if not losses or not all(ignores_advantages(part.make, whole=part.whole) for part in losses):
        return
    names = " and ".join(repr(part.name) for part in losses)
    if recipe.rollout.refill:
        yield RecipeProblem(
            f"rollout.refill weighs groups, so that lucky rounds do not count for more, and loss {names} does not look at such weights.",
            "Raise rollout.groups instead, or choose a loss that follows advantages, such as clip.",
        )
    if weighs(recipe.filter):
        yield RecipeProblem(
            f"filter {recipe.filter.name!r} weighs trajectories, and loss {names} does not look at such weights.",
            "Choose a filter that keeps or drops, such as informative, or a loss that follows advantages, such as clip.",
        )


def blind_losses(recipe: Recipe) -> list[LossPart]:
    """The losses whose advantages the recipe's correction would weigh, where none of them looks at advantages; else none.

    >>> from turnwise.trainers.recipe.schema import Recipe
    >>> of = lambda *names: Recipe.model_validate({"suite": "calc/easy", "model": {}, "loss": list(names)})
    >>> [part.name for part in blind_losses(of("dpo"))], blind_losses(of("clip", "dpo"))
    (['dpo'], [])
    """
    helped = [part.loss or [] for part in recipe.guide if part.correction is None]
    weighed = [*recipe.loss, *(loss for losses in helped for loss in losses)]
    looks = any(not ignores_advantages(part.make, whole=part.whole) for part in weighed)
    return [] if looks else weighed


def _groups(recipe: Recipe) -> Iterator[RecipeProblem]:
    size, groups = recipe.rollout.group_size, recipe.rollout.groups
    above = "Set rollout.group_size above 1, or choose another."
    if drops_everything(recipe.filter):
        yield RecipeProblem(f"filter {recipe.filter.name!r} drops everything.", "Choose another.")
    if size == 1 and gives_nothing_alone(recipe.credit):
        yield RecipeProblem(f"credit {recipe.credit.name!r} gives nothing to a group of one.", above)
    for key, part in _met_alone(recipe):
        yield RecipeProblem(
            f"loss {part.name!r} compares the trajectories of a group, and {key} gives it one at a time: there is no loser.",
            "Set rollout.group_size above 1, or let the source join what is played (`join: true`) and put the loss into `loss`.",
        )
    if not groups and not recipe.source and not recipe.proposer and recipe.updates:
        yield RecipeProblem(
            "rollout.groups 0 plays nothing, and there is neither a source nor a proposer to learn from.",
            "Set rollout.groups above 0, or add `source: [{name: stored, path: …}]`, or `proposer: [azr_propose, azr_solve]`.",
        )
    for part in recipe.source:
        if not groups and not recipe.proposer and PLAYED in part.component("source").reads:
            yield RecipeProblem(
                f"source {part.name!r} looks at what was played, and rollout.groups 0 plays nothing.",
                "Set rollout.groups above 0, or choose another source (`turnwise list source`).",
            )
    if not groups and recipe.rollout.refill:
        yield RecipeProblem(
            "rollout.refill has nothing to refill: rollout.groups is 0.", "Remove one of them."
        )
    if 0 < groups < recipe.optimizer.minibatches:
        yield RecipeProblem(
            f"optimizer.minibatches {recipe.optimizer.minibatches} is more than the {groups} groups of an update, which "
            "stay whole.",
            f"Set it to at most {groups}, or raise rollout.groups.",
        )


def _outcome(recipe: Recipe) -> Iterator[RecipeProblem]:
    """A rule that looks at single payments, where the only one is the outcome."""
    alone = pays_the_outcome_alone(recipe.reward, others=_may_pay_others(recipe))
    if alone and is_blind_to_outcomes(recipe.credit):
        yield RecipeProblem(
            f"credit {recipe.credit.name!r} gives what solved a task and what failed it the same where only last turns are paid, "
            f"and reward {' + '.join(part.name for part in recipe.reward)!r} pays no others.",
            "Let turns be paid (reward: as_is where the environment does, or from_signal), or choose another credit rule.",
        )


def _schedule(recipe: Recipe) -> Iterator[RecipeProblem]:
    updates, warm = recipe.updates, recipe.warm_start
    if updates == 0 and warm is None:
        yield RecipeProblem("Nothing would be trained: no updates and no warm start.", "Set updates above 0.")
    if recipe.optimizer.resets and "optimizer.resets" not in recipe.schedule:
        yield RecipeProblem(
            f"optimizer.resets {recipe.optimizer.resets} can have no effect: a reset is made where the number changes.",
            "Set schedule: {optimizer.resets: {name: prorl}}, or remove it.",
        )
    if updates and recipe.evaluate.every > updates:
        yield RecipeProblem(
            f"evaluate.every {recipe.evaluate.every} leaves no checkpoints to choose from in {updates} updates.",
            f"Set evaluate.every to at most {updates}.",
        )
    if updates and recipe.optimizer.warmup >= updates * recipe.steps:
        yield RecipeProblem(
            f"optimizer.warmup {recipe.optimizer.warmup} never ends: there are {updates * recipe.steps} steps.",
            "Lower it.",
        )
    if warm is not None and warm.episodes < warm.batch_size:
        yield RecipeProblem(
            f"warm_start.episodes {warm.episodes} is less than one batch of {warm.batch_size}.",
            "Raise it, or lower warm_start.batch_size.",
        )


def idle_options(part: Part) -> list[str]:
    """Options of a loss that differ from their default and change nothing while π = π_old.

    >>> idle_options(Part.model_validate({"name": "clip", "high": 0.3, "low": 0.2}))
    ['high']
    >>> idle_options(Part.model_validate({"name": "kl", "estimator": "k2"}))
    []
    """
    entry = part.component("loss")
    changed = [name for name, value in part.options.items() if value != entry.options[name]]
    found = _on_policy(part, part.options) if changed else None
    idle: list[str] = []
    for name in changed:
        fewer = {key: value for key, value in part.options.items() if key != name}
        if found is not None and _equal(found, _on_policy(part, fewer)):
            idle.append(name)
    return idle


def _on_policy(part: Part, options: Mapping[str, Any]) -> tuple[Tensor, ...] | None:
    """The loss and its gradients on a batch without staleness; None where it cannot be tried alone, or remembers earlier updates."""
    rng = derive_rng("on policy")
    lengths, trajectory, group = (3, 5, 2, 4, 1, 6, 3, 2), (0, 1, 2, 2, 3, 4, 5, 6), (0, 0, 0, 0, 1, 1, 1, 1)

    def numbers(low: float, high: float) -> list[list[float]]:
        return [[rng.uniform(low, high) for _ in range(n)] for n in lengths]

    logp = numbers(-4, -0.01)
    near = [[x + rng.gauss(0, 0.3) for x in row] for row in logp]
    given: dict[str, Any] = {
        "old_logp": logp,
        "behaviour_logp": near,
        "reference_logp": numbers(-4, -0.01),
        "entropy": numbers(0.01, 3),
        "turn": [[t // 2 for t in range(n)] for n in lengths],
        "trajectory": trajectory,
    }
    advantage, loss = numbers(-3, 3), LossPart.model_validate({"name": part.name, **options}).make()
    if hasattr(loss, "restore"):
        return None
    if part.component("loss").whole:
        batch = whole_batch(
            logp, advantage, success=[1, 0, 0, 1, 0, 1, 1], group=[0, 0, 0, 1, 1, 1, 1], **given
        )
    else:
        batch = token_batch(logp, advantage, group=group, **given)
    try:
        value = loss(batch)[0]
        gradients = torch.autograd.grad(
            value.sum(), [batch.logp_RT, batch.entropy_RT], allow_unused=True, materialize_grads=True
        )
    except (RecipeError, RuntimeError, KeyError):  # it needs more than this batch has
        return None
    return value.detach(), *gradients


def _equal(a: tuple[Tensor, ...], b: tuple[Tensor, ...] | None) -> bool:
    return b is not None and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def drops_everything(part: Part) -> bool:
    """Say whether a filter keeps no trajectory, whatever the credit rule gives.

    >>> drops_everything(Part(name="informative")), drops_everything(Part(name="any"))
    (False, False)
    """
    rng = derive_rng("filter")
    by_chance = [[rng.uniform(-1, 1) for _ in range(n)] for n in (1, 2, 3, 4, 2, 3)]
    batches = [
        toy_turns(part.needs("filter"), drawn=rewards, positive=positive)
        for rewards in (by_chance, SOLVED_OR_NOT)
        for positive in (False, True)
    ]
    keep = part.build("filter")
    return not any(bool((keep(batch, batch.reward_BK) > 0).any()) for batch in batches)


def weighs(part: Part) -> bool:
    """Say whether a filter gives trajectories of unlike returns weights other than 0 and 1.

    >>> weighs(Part.model_validate({"name": "ranked", "keep": "power"})), weighs(Part(name="ranked"))
    (True, False)
    """
    batch = toy_turns(part.needs("filter"), drawn=[[0.1], [0.9], [0.4], [0.2]], group=[0, 0, 0, 0])
    return not {float(weight) for weight in part.build("filter")(batch, batch.reward_BK)} <= {0.0, 1.0}


def drops_what_teaches_nothing(part: Part) -> bool:
    """Say whether a filter drops groups that the credit rule gives nothing, and nothing else.

    >>> drops_what_teaches_nothing(Part(name="informative")), drops_what_teaches_nothing(Part(name="any"))
    (True, False)
    """
    batch = toy_turns(part.needs("filter"), drawn=[[0, 1], [0], [1], [1]], group=[0, 0, 1, 1])
    keep = part.build("filter")
    given = torch.tensor([[0.1, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    return [bool(weight > 0) for weight in keep(batch, given)] == [True, True, False, False]


def gives_nothing_alone(part: Part) -> bool:
    """Say whether a credit rule gives a trajectory without siblings an advantage of 0, whatever it earned.

    >>> gives_nothing_alone(Part(name="rloo")), gives_nothing_alone(Part(name="gae"))
    (True, False)
    """
    entry, batch = part.component("credit"), toy_turns(part.needs("credit"), group=range(6))
    try:
        advantage_BK = on_turns(entry.build(part.options)(batch), batch)
    except (RecipeError, RuntimeError):  # it needs more than this batch has
        return False
    return not bool(advantage_BK.abs().max() > 1e-9)


SOLVED_OR_NOT = (
    (0.2, 0.3, 0.5),
    (0.1, 0.1, -0.2),
    (0.4, 0.6),
    (0.3, 0.1, -0.4),
    (0.1, 0.2, 0.3, 0.4),
    (0.2, -0.2),
)
"""Rewards of the turns of episodes that succeed and fail by turns: three to a group, returns of 1 and 0."""
BLIND = 1e-3
"""Advantages this much smaller than the difference of returns are none."""


def _may_pay_others(recipe: Recipe) -> bool:
    """Say whether an environment pays, or with options may pay, more than the outcome; the preflight sees what it does."""
    declared = [getattr(env_class(get_suite(name).env), "reward_components", None) for name in recipe.suites]
    known = [one for one in declared if isinstance(one, Mapping)]
    kinds = {kind for one in known for kind in one.values()}
    return bool(recipe.rollout.env_options) or len(known) < len(declared) or kinds != {RewardKind.OUTCOME}


def pays_the_outcome_alone(parts: Sequence[Part], *, others: bool) -> bool:
    """Say whether rewards in a row leave only last turns something, whatever those before earned; ``others``: beside the outcome, too.

    >>> [pays_the_outcome_alone([Part(name=name)], others=True) for name in ("success", "verified", "as_is")]
    [False, True, False]
    >>> [pays_the_outcome_alone([Part(name=name)], others=False) for name in ("success", "verified", "as_is")]
    [True, True, False]
    """
    ends = [EndReason.SOLVED, EndReason.FAILED] * (len(SOLVED_OR_NOT) // 2)
    group = [
        episode(earned, end=end, parts={"other": earned} if others else {})
        for earned, end in zip(SOLVED_OR_NOT, ends, strict=True)
    ]
    try:
        paid = [[turn.reward for turn in one.trajectory.turns] for one in payer_of(parts)(group)]
    except RecipeError:  # it needs more than these episodes have
        return False
    return not any(any(row[:-1]) for row in paid) and len({row[-1] for row in paid}) > 1


_LONGER_THAN_ANY = 1 << 17
"""Tokens beyond the limits of replies that options name."""


def _lengths(recipe: Recipe) -> Iterator[RecipeProblem]:
    most = recipe.sampling.max_tokens
    for part in recipe.reward:
        if sees_no_length(part, most):
            yield RecipeProblem(
                f"reward {part.name!r} can have no effect: it pays by the length of replies, and all of up to {most} tokens are alike to it.",
                "Fit its options to sampling.max_tokens, or remove it.",
            )


def sees_no_length(part: Part, most: int) -> bool:
    """Say whether a reward pays by the length of replies, and pays all of at most so many tokens alike.

    >>> limited = Part(name="soft_overlong", limit=160, buffer=80)
    >>> sees_no_length(limited, 160), sees_no_length(limited, 80), sees_no_length(Part(name="success"), 80)
    (False, True, False)
    >>> sees_no_length(Part(name="soft_overlong", limit=100_000), 256)
    True
    """

    def paid(tokens: int, turns: int) -> list[float]:
        played = [with_tokens(episode([0.0] * turns + [x]), [tokens] * (turns + 1)) for x in (0.0, 1.0)]
        return [turn.reward for one in payer_of([part])(played) for turn in one.trajectory.turns]

    try:
        if paid(1, 1) == paid(_LONGER_THAN_ANY, 1):
            return False
        many = 256  # turns, for a reward that looks at all that an episode said
        return paid(1, many) == paid(most // 2, many) == paid(most, many)
    except RecipeError:  # it needs more than these episodes have
        return False


def is_blind_to_outcomes(part: Part) -> bool:
    """Say whether a credit rule gives success and failure (nearly) the same where last turns alone are paid, and not where all are.

    >>> [is_blind_to_outcomes(Part(name=name)) for name in ("pure", "rloo", "arena")]
    [True, False, False]
    """
    ends = [[0.0] * (len(row) - 1) + [round(sum(row), 6)] for row in SOLVED_OR_NOT]
    return 0 <= _moved(part, ends) < BLIND < _moved(part, SOLVED_OR_NOT)


def _moved(part: Part, rewards: Sequence[Sequence[float]]) -> float:
    """By how much these rewards move any advantage; below 0 where that cannot be tried."""
    needs, rule = part.needs("credit"), part.build("credit")
    paid, unpaid = (toy_turns(needs, drawn=drawn) for drawn in (rewards, [[0.0] * len(x) for x in rewards]))
    try:
        moved_BK = on_turns(rule(paid), paid) - on_turns(rule(unpaid), unpaid)
    except (RecipeError, RuntimeError):  # it needs more than this batch has
        return -1.0
    return float(moved_BK.abs().nan_to_num().max())


def _met_alone(recipe: Recipe) -> Iterator[tuple[str, LossPart]]:
    """Losses that learn nothing from a trajectory without others of its group, and what shows them such: a group of one, or a
    source, whose shown episodes are groups of their own."""
    given = [("rollout.group_size 1", part) for part in recipe.loss if recipe.rollout.group_size == 1]
    given += [(f"source {one.name!r}", part) for one in recipe.source for part in one.loss or ()]
    return ((key, part) for key, part in given if part.whole and learns_nothing_alone(part))


def learns_nothing_alone(part: LossPart) -> bool:
    """Say whether a loss of whole minibatches has no slope where each trajectory is a group by itself.

    >>> [learns_nothing_alone(LossPart(name=name)) for name in ("dpo", "cpl", "kto", "clip_cov")]
    [True, True, False, False]
    """
    rng = derive_rng("alone")
    logp = [[rng.uniform(-4, -0.1) for _ in range(3)] for _ in range(6)]
    near = [[x + rng.gauss(0, 0.3) for x in row] for row in logp]
    batch = whole_batch(
        logp, [[rng.uniform(-3, 3)] * 3 for _ in logp], success=[1, 0, 1, 0, 1, 0], group=range(6), old_logp=near,
        reference_logp=near, entropy=[[1.0, 2.0, 1.5]] * 6,
    )  # fmt: skip
    try:
        loss = part.make()(batch).loss
        slopes = torch.autograd.grad(
            loss, [batch.logp_RT, batch.entropy_RT], allow_unused=True, materialize_grads=True
        )
    except (RecipeError, RuntimeError, KeyError):  # it needs more than this batch has
        return False
    return not any(bool((slope.abs() > 1e-12).any()) for slope in slopes)
