"""Choices of a recipe that exist and do not go together."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Sequence

import torch

from turnwise.agents.models.small import HEAD_DIMS
from turnwise.agents.multi_agent import agents_of
from turnwise.agents.rollout import Request
from turnwise.agents.workers.hosted import parse_address
from turnwise.envs.core import EndReason, ForkCost
from turnwise.envs.registry import env_class, get_suite
from turnwise.errors import RecipeError
from turnwise.registry import Component, components
from turnwise.tasks.core import Task
from turnwise.trainers.guide.core import replaces_failures
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.token_credit import on_tokens
from turnwise.trainers.kit.toy_batches import episode, token_batch, toy_turns
from turnwise.trainers.learn.optimizer import eight_bits
from turnwise.trainers.recipe.ahead import misfits_of_playing_ahead
from turnwise.trainers.recipe.foreign import misfits_of_the_foreign
from turnwise.trainers.recipe.metered import misfits_of_the_meter
from turnwise.trainers.recipe.part import LossPart, needs_of, payer_of
from turnwise.trainers.recipe.problems import RecipeProblem, found_by
from turnwise.trainers.recipe.proposed import misfits_of_proposers
from turnwise.trainers.recipe.scheduled import misfitting_schedules
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.recipe.several import misfits_of_several
from turnwise.trainers.recipe.trusted import misfits_of_requirements
from turnwise.trainers.sampler.core import Sampler, SamplerSetup
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.signal.choose import measurable
from turnwise.trainers.strategy.runner import DryRunner, Strategy
from turnwise.trainers.teacher.core import GIVES


def misfits(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Problems with choices that exist but do not fit together."""
    yield from _misfitting_parts(recipe)
    samplers: list[Sampler] = []
    yield from found_by(lambda: samplers.append(make_sampler(recipe, Mixture(recipe.suites, recipe.seed))))
    for sampler in samplers:
        yield from _misfitting_sampler(recipe, sampler)
        yield from misfits_of_playing_ahead(recipe, sampler)
        yield from found_by(lambda s=sampler: _check_strategy(recipe, s.sizes))
    yield from _misfitting_model(recipe)
    yield from _misfitting_moments(recipe)
    yield from _misfitting_agent(recipe)
    yield from _misfitting_context(recipe)
    yield from _misfitting_hosts(recipe)
    yield from misfits_of_proposers(recipe)
    yield from misfits_of_several(recipe)
    yield from misfits_of_the_meter(recipe)
    yield from misfits_of_requirements(recipe)


def _misfitting_hosts(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Places of environments that exclude one another, or cannot be reached."""
    scale = recipe.scale
    if not (scale.worker_hosts or scale.worker_hosts_file):
        return
    for address in scale.worker_hosts:
        yield from found_by(lambda a=address: parse_address(a), "scale.worker_hosts")
    if recipe.rollout.env_workers:
        yield RecipeProblem(
            "scale.worker_hosts has environments on other hosts, and rollout.env_workers in processes of this machine.",
            "Leave one of them out.",
        )
    if not scale.token_file:
        yield RecipeProblem(
            "scale.worker_hosts names hosts, which run programs for whoever has their token, and no token is named.",
            "Set scale.token_file to the file that they were started with (`--token-file`).",
        )


def _misfitting_agent(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield a problem for each part that acts in the middle of an episode, which a program plays as a whole."""
    if recipe.agent is None:
        return
    if recipe.rollout.strategy.name != "chain":
        yield RecipeProblem(
            f"rollout.strategy {recipe.rollout.strategy.name!r} begins episodes in the middle of others, and a program "
            "(`agent`) plays whole ones.",
            "Set rollout.strategy: chain, or leave `agent` out.",
        )
    if recipe.guide:
        yield RecipeProblem(
            f"guide {recipe.guide[0].name!r} plays turns of an episode, and a program (`agent`) plays whole ones.",
            "Leave `guide` or `agent` out.",
        )
    if recipe.teacher and getattr(recipe.teacher.component("teacher").target, "writes_anew", False):
        yield RecipeProblem(
            f"teacher {recipe.teacher.name!r} reads conversations written anew, as the environment told them, and a program "
            "(`agent`) tells the policy what it likes.",
            "Use a teacher that keeps what was read, such as hindsight or model, or leave `teacher` or `agent` out.",
        )
    for name in recipe.suites:
        if len({*agents_of(get_suite(name))} - {*recipe.rollout.opponents}) > 1:
            yield RecipeProblem(
                f"The program of `agent` plays one agent, and in {name} several are trained.",
                "Name who plays the others (rollout.opponents), or leave `agent` out.",
            )


def _misfitting_context(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield a problem for each part that writes prompts by itself, where a context manager does."""
    context = recipe.sampling.context
    if context is None:
        return
    teacher = recipe.teacher
    writes_anew = teacher is not None and getattr(teacher.component("teacher").target, "writes_anew", False)
    others = {
        "agent": "a program (`agent`) tells the policy what it likes" if recipe.agent else "",
        "guide": "a guide writes prompts with help" if recipe.guide else "",
        "source": "a source writes prompts of whole conversations" if recipe.source else "",
        "teacher": "the teacher reads conversations written anew" if writes_anew else "",
    }
    for key, why in others.items():
        if why:
            yield RecipeProblem(
                f"sampling.context {context.name!r} chooses what the policy is shown, and {why}.",
                f"Leave `sampling.context` or `{key}` out.",
            )


def _givers_of(absent: frozenset[str] | set[str], seam: str, credit: str) -> list[str]:
    """The parts of a kind that give any of these signals, first the one of a paper's own: it bears the name of its credit."""
    found = [one.name for one in components(seam) if absent & {*one.gives}]
    return sorted(found, key=lambda name: name != credit)


def _misfitting_parts(recipe: Recipe) -> Iterator[RecipeProblem]:
    if not recipe.loss:
        yield RecipeProblem("The recipe has no loss.", "Name at least one (`turnwise list loss`).")
    strategy = recipe.rollout.strategy.component("strategy")
    judges = [part.component("judge") for part in recipe.judge]
    yield from found_by(lambda: _check_rewards(recipe))
    yield from found_by(lambda: _check_shapes(recipe))
    yield from found_by(lambda: _check_advantages(recipe))
    yield from misfits_of_the_foreign(recipe)
    yield from _misfitting_payments(recipe, strategy)
    yield from _misfitting_help(recipe, strategy)
    yield from _misfitting_forks(recipe, strategy)
    absent = recipe.needs - measurable()
    absent -= {name for part, seam in recipe.givers for name in part.component(seam).gives}
    if absent and recipe.teacher is None and absent <= {*GIVES}:
        yield RecipeProblem(
            f"Parts of this recipe need {', '.join(sorted(absent))}, and there is no teacher.",
            "Set teacher (`turnwise list teacher`), such as {name: model, path: …}.",
        )
        return
    named = ", ".join(repr(judge.name) for judge in judges)
    lacking = [
        (f"{seam} {given}", f"{key}: {others[0]}")
        for seam, given, key in (
            ("strategy", repr(strategy.name), "rollout.strategy"),
            ("judge", named, "judge"),
        )
        if (others := _givers_of(absent, seam, recipe.credit.name))
    ]
    if lacking:
        yield RecipeProblem(
            f"Parts of this recipe need {', '.join(sorted(absent))}, which {' and '.join(part for part, _ in lacking)} "
            f"{'does' if len(lacking) == 1 else 'do'} not give.",
            f"Set {' or '.join(key for _, key in lacking)}.",
        )
        return
    for other in components("guide"):
        if absent & {*other.gives}:
            yield RecipeProblem(
                f"Parts of this recipe need {', '.join(sorted(absent))}, which a guide gives that it does not name.",
                f"Add guide: [{other.name}].",
            )
            return
    for judge in judges:
        if judge.gives and not recipe.needs & {*judge.gives}:
            yield RecipeProblem(
                f"judge {judge.name!r} can have no effect: no part needs the signal {' or '.join(map(repr, judge.gives))}.",
                f"Use {_user_of(judge)}, or judge: none.",
            )
    yield from _judged_twice(judges)
    if absent:
        yield RecipeProblem(
            f"Parts of this recipe need {', '.join(sorted(absent))}, which this trainer does not measure.",
            f"It measures {', '.join(sorted(measurable()))}; choose other parts.",
        )


def _judged_twice(judges: Sequence[Component]) -> Iterator[RecipeProblem]:
    """Yield a problem for each signal that two judges write: the first one's is lost."""
    given: dict[str, str] = {}
    for judge in judges:
        for name in judge.gives:
            if name in given:
                yield RecipeProblem(
                    f"judge {judge.name!r} writes the signal {name!r}, and {given[name]!r} before it writes the same.",
                    "Name one of them.",
                )
            given[name] = judge.name


def _check_rewards(recipe: Recipe) -> None:
    """Let the rewards pay two small groups: one whose options make no sense refuses them here."""
    asked = sorted(needs_of(recipe.reward, "reward"))
    ends = [EndReason.SOLVED, EndReason.FAILED, EndReason.TURN_LIMIT]
    group = [with_signals(episode([0.0, 0.5], end=end), [dict.fromkeys(asked, 0.5)] * 2) for end in ends]
    payer_of(recipe.reward).pay([group, group[:1]])


def _check_shapes(recipe: Recipe) -> None:
    """Lay the shapes over the credit rule on a small batch: one that would refuse such advantages does so here."""
    parts = [(recipe.credit, "credit"), *((part, "shape") for part in recipe.shape)]
    batch = toy_turns(frozenset[str]().union(*(part.needs(seam) for part, seam in parts)))
    try:
        found = recipe.credit.build("credit")(batch)
    except (RecipeError, RuntimeError):  # it needs more than this batch has
        return
    for part in recipe.shape:
        found = part.build("shape")(found, batch)


TURNING = [[1, -1, 1], [0, 1, -1], [-1, 1, 0]] * 2
"""Rewards whose turns go against each other, so that a rule of single turns gives one trajectory both signs."""


def _check_advantages(recipe: Recipe) -> None:
    """Give the losses of tokens what credit and shapes give on a small batch: one that takes advantages of another form, and
    refuses these, does so here."""
    parts = [(recipe.credit, "credit"), *((part, "shape") for part in recipe.shape)]
    batch = toy_turns(frozenset[str]().union(*(part.needs(seam) for part, seam in parts)), drawn=TURNING)
    try:
        found = recipe.credit.build("credit")(batch)
        for part in recipe.shape:
            found = part.build("shape")(found, batch)
    except (RecipeError, RuntimeError):  # they need more than this batch has
        return
    given = [[float(x) for x in row] for row in on_tokens(found, batch).tolist()]
    ones = [[1.0] * len(row) for row in given]
    for part in (part for part in recipe.loss if not part.whole):
        try:
            _try_loss(part, ones)
        except (RecipeError, RuntimeError, KeyError):  # it needs more than this batch has
            continue
        _try_loss(part, given)


def _try_loss(part: LossPart, advantage: list[list[float]]) -> None:
    rows = token_batch([[-1.0] * len(row) for row in advantage], advantage)
    needs = [name for name in part.needs("loss") if name.startswith("token_")]
    part.make()(dataclasses.replace(rows, signals={name: torch.zeros_like(rows.logp_RT) for name in needs}))


def _misfitting_forks(recipe: Recipe, strategy: Component) -> Iterator[RecipeProblem]:
    """A strategy that begins episodes in the middle of others, where an environment cannot be gone back in."""
    for name in recipe.suites if strategy.shared_turns or strategy.gives else ():
        if env_class(get_suite(name).env).fork_cost is ForkCost.NONE:
            yield RecipeProblem(
                f"rollout.strategy {strategy.name!r} goes on from moments of an episode, and {name} declares that nobody can go back in it.",
                "Set rollout.strategy: chain.",
            )


def _misfitting_help(recipe: Recipe, strategy: Component) -> Iterator[RecipeProblem]:
    """Guides, sources, teachers and schedules that do not fit the rest."""
    if recipe.guide and (strategy.shared_turns or recipe.needs & {*strategy.gives}):
        yield RecipeProblem(
            f"guide {recipe.guide[0].name!r} plays whole episodes, without what rollout.strategy {strategy.name!r} measures "
            "by forks.",
            "Set rollout.strategy: chain, or leave the guide out.",
        )
    names = [part.name for part in recipe.source]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield RecipeProblem(f"source {name!r} is named twice.", "Name it once.")
    for part in recipe.source:
        asked = part.component("source").instruction
        if not recipe.sampling.instruction.startswith(asked):
            yield RecipeProblem(
                f"source {part.name!r} teaches what to do where the prompt says {asked!r}, and the policy reads no such words when it "
                "plays.",
                f'Set sampling: {{instruction: "{asked}…"}}.',
            )
    teacher, asks = recipe.teacher, recipe.needs & {*GIVES}
    if teacher is not None and not asks:
        yield RecipeProblem(
            f"teacher {teacher.name!r} can have no effect: no part needs the signal {' or '.join(map(repr, GIVES))}.",
            "Use a loss that does, such as distill, or remove the teacher.",
        )
    if teacher is not None and ("teacher_top" in asks) != bool(teacher.top):
        yield RecipeProblem(
            f"teacher.top is {teacher.top}, and {'a' if 'teacher_top' in asks else 'no'} loss asks for likelier tokens.",
            "Set teacher.top: 16." if not teacher.top else "Remove teacher.top.",
        )
    yield from misfitting_schedules(recipe)
    copies = [one.entry.name for one in recipe.sources if "copy of the policy" in one.entry.reads]
    copies += [teacher.name] if teacher is not None else []
    if recipe.model.lora and copies and "optimizer.resets" in recipe.schedule:
        yield RecipeProblem(
            f"A reset merges the adapters of model.lora into the model, and {copies[0]!r} learns with a copy of it or reads it.",
            "Train all weights, leave optimizer.resets out of the schedule, or use phases, which begin all of it anew.",
        )


def make_sampler(recipe: Recipe, mixture: Mixture, since: int = 0, before: int = 0) -> Sampler:
    """The sampler of a recipe, as it is before its first update: number ``since``, with ``before`` tasks in those before it."""
    rollout = recipe.rollout
    setup = SamplerSetup(
        mixture, recipe.seed, rollout.groups, rollout.group_size, recipe.most_groups, since, before
    )
    return rollout.sampler.build("sampler")(setup)


def _misfitting_sampler(recipe: Recipe, sampler: Sampler) -> Iterator[RecipeProblem]:
    rollout, refill = recipe.rollout, recipe.rollout.refill
    if refill and refill.most <= max(rollout.groups, refill.informative):
        yield RecipeProblem(
            f"rollout.refill.most {refill.most} leaves nothing to draw: an update has {rollout.groups} tasks at once "
            f"and asks for {refill.informative} informative groups.",
            "Raise it above both, or remove refill.",
        )
    if sampler.adds:
        yield from _misfitting_additions(recipe, sampler)
    if not refill and not sampler.by_success:
        return
    suites = [suite for suite, _ in sampler.setup.mixture.shares]
    several = [suite.name for suite in suites if len({*agents_of(suite)} - {*rollout.opponents}) > 1]
    if several:
        asks = "rollout.refill" if refill else f"rollout.sampler {rollout.sampler.name!r}"
        yield RecipeProblem(
            f"{asks} asks how one policy did on a task, and in {several[0]} several agents are trained.",
            "Name who plays the others (rollout.opponents), or leave it out.",
        )


def _misfitting_additions(recipe: Recipe, sampler: Sampler) -> Iterator[RecipeProblem]:
    """Yield a problem for each choice that cannot bear episodes that are added by how the first ones went."""
    rollout = recipe.rollout
    said = f"rollout.sampler {rollout.sampler.name!r} adds episodes by how the first ones went"
    strategy = rollout.strategy.component("strategy")
    if rollout.refill:
        yield RecipeProblem(
            f"{said}, and rollout.refill weighs groups whose episodes are as many whatever they show.",
            "Leave rollout.refill out, or choose another sampler.",
        )
    if strategy.shared_turns or strategy.gives:
        yield RecipeProblem(
            f"{said}, and rollout.strategy {strategy.name!r} compares the episodes that it plays at once.",
            "Set rollout.strategy: chain, or choose another sampler.",
        )
    for guide in recipe.guide:
        if not (sampler.by_success and replaces_failures(guide.component("guide").target)):
            yield RecipeProblem(
                f"{said}, and guide {guide.name!r} plays them again, so that a log does not show how they went.",
                "Leave the guide out, or choose another sampler.",
            )


def _misfitting_payments(recipe: Recipe, strategy: Component) -> Iterator[RecipeProblem]:
    """Signals that a reward cannot pay for: they are known only after it, or forks would not be paid the same."""
    late = {name for entry in components("signal") if "rewards" in entry.reads for name in entry.gives}
    for part in recipe.reward:
        paid = part.needs("reward")
        if paid & late:
            yield RecipeProblem(
                f"reward {part.name!r} pays for {min(paid & late)!r}, which is measured after the rewards, since it reads them.",
                "Pay for another signal.",
            )
        if strategy.gives and (paid or part.component("reward").whole):
            what = f"pays for {', '.join(sorted(paid))}, which" if paid else "looks at all groups, which"
            yield RecipeProblem(
                f"reward {part.name!r} {what} the forks of rollout.strategy {strategy.name!r} do not have: "
                "they would be paid otherwise than episodes.",
                "Set rollout.strategy: chain, or reward: as_is.",
            )


def _check_strategy(recipe: Recipe, sizes: Collection[int]) -> None:
    """Try the strategy on groups of these sizes whose episodes end at once: it refuses what it cannot split."""
    entry = recipe.rollout.strategy.component("strategy")
    strategy: Strategy = recipe.rollout.strategy.build("strategy")
    plan = [[Request(Task("dry", "?", {}), i) for i in range(size)] for size in sorted(sizes)]
    trial = strategy(DryRunner(payer_of(recipe.reward)), plan)
    with contextlib.suppress(StopIteration):  # it waits for nothing, so it ends in one step
        trial.__await__().send(None)
    if entry.only_measures and not recipe.needs & {*entry.gives}:
        raise RecipeError(
            f"rollout.strategy {entry.name!r} can have no effect: no part needs the signal {' or '.join(map(repr, entry.gives))}.",
            f"Use {_user_of(entry)}, or rollout.strategy: chain.",
        )


def _user_of(source: Component) -> str:
    """A credit rule that looks at what a strategy or a judge measures, or else the reward that pays it, as a recipe has it."""
    users = [c for c in components("credit") if c.needs_with({}) & {*source.gives}]
    if not users:
        return f"reward: {{name: from_signal, signal: {source.gives[0]}}}"
    return f"credit: {min(users, key=lambda c: (c.name != source.name, len(c.needs_with({})), c.name)).name}"


def _misfitting_moments(recipe: Recipe) -> Iterator[RecipeProblem]:
    if recipe.optimizer.moments == "float32":
        return
    yield from found_by(eight_bits)
    if recipe.scale.weights == "sharded":
        yield RecipeProblem(
            "optimizer.moments: int8 has scales of whole matrices' blocks, which scale.weights: sharded would cut.",
            "Keep one of the two: parts of weights divide moments in float32 too.",
        )


def _misfitting_model(recipe: Recipe) -> Iterator[RecipeProblem]:
    model, scratch = recipe.model, recipe.model.scratch
    if (model.path is None) == (scratch is None):
        yield RecipeProblem(
            "A model is either loaded or made.", "Give exactly one of model.path and model.scratch."
        )
    if scratch is None:
        return
    if scratch.width % scratch.heads or scratch.width // scratch.heads not in HEAD_DIMS:
        yield RecipeProblem(
            f"model.scratch: width {scratch.width} cannot be cut into {scratch.heads} heads.",
            f"Choose width = heads × one of {', '.join(map(str, HEAD_DIMS))}.",
        )
    if scratch.init == "induction" and (scratch.layers < 2 or scratch.heads < 4):
        yield RecipeProblem(
            "model.scratch: init: induction needs at least 2 layers and 4 heads.",
            "Give it them, or set init: random.",
        )
    context = recipe.engine.context_length or scratch.context
    if context > scratch.context:
        yield RecipeProblem(
            f"engine.context_length {context} is beyond the model's {scratch.context}.",
            "Raise model.scratch.context, or lower it.",
        )
    if recipe.sampling.max_tokens >= context:
        yield RecipeProblem(
            f"sampling.max_tokens {recipe.sampling.max_tokens} leaves no room in a context of {context}.",
            "Lower it, or raise model.scratch.context.",
        )
