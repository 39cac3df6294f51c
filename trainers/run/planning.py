"""Plans of a run's memory by arithmetic: what a recipe takes on a card, part by part, before anything is loaded or spent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from turnwise.agents.engines.memory import EngineLoad
from turnwise.agents.engines.registry import engine_bytes
from turnwise.errors import TurnwiseError
from turnwise.trainers.learn.memory import (
    LearnerSetting,
    MicroBatch,
    ModelShape,
    learner_bytes,
    loaded_bytes,
)
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import SAVES
from turnwise.trainers.recipe.load import RecipeLike, load_recipe
from turnwise.trainers.recipe.phases import phases_of
from turnwise.trainers.run.cards import GB, MEASURED_WEIGHTS, ROOM, Card
from turnwise.trainers.run.door import LearnOptions, Roles, SessionOptions, opened
from turnwise.trainers.run.shapes import KnownModel, named_model, scratch_model
from turnwise.trainers.signal.core import SignalSetup

CHECKPOINTED = 1.2
"""Times as long as an update takes with gradient checkpointing, as measured (docs/gpu.md)."""
_COPY = "copy of the policy"


class PlanQuestion(NamedTuple):
    """What a plan is asked.

    Attributes:
        number: of cards.
        card: of which kind; None: this machine.
        row: tokens of the longest row; 0: as many as the context has.
        shared: tokens that the rows of a group begin with alike.
    """

    number: int = 1
    card: Card | None = None
    row: int = 0
    shared: int = 0


class PlanPart(NamedTuple):
    """A part of what a card holds while it learns, and while it only plays; how it is reckoned, in words."""

    name: str
    learning: float
    playing: float
    how: str = ""


class Plan(NamedTuple):
    """What a recipe takes on its fullest card, in bytes.

    Attributes:
        parts: of it.
        loading: bytes of the model at the start, whole.
        memory: of the card or machine.
        where: it is, in words.
        batch: the largest micro-batch.
        weights: of the model.
        trained: of these, or of their adapters.
        learners: that learn together.
        seconds: of the learner for an update, an estimate; None where nothing like it was measured.
        notes: what else holds.
    """

    parts: tuple[PlanPart, ...]
    loading: float
    memory: float
    where: str
    batch: MicroBatch
    weights: int
    trained: int
    learners: int
    seconds: float | None
    notes: tuple[str, ...]

    @property
    def total(self) -> float:
        """The most that is held at a time."""
        learning = sum(part.learning for part in self.parts)
        playing = sum(part.playing for part in self.parts)
        return max(learning, playing, self.loading)

    @property
    def fits(self) -> bool:
        return self.total <= ROOM * self.memory

    @property
    def dearest(self) -> PlanPart:
        return max(self.parts, key=lambda part: max(part.learning, part.playing))


class PlanChange(NamedTuple):
    """A change of a recipe, and what it would take then."""

    change: Mapping[str, Any]
    total: float
    fits: bool

    @property
    def text(self) -> str:
        """The change as ``--set`` takes it.

        >>> PlanChange({"model.lora": {"rank": 32}, "scale.learners": 2}, 0, True).text
        '--set model.lora.rank=32 scale.learners=2'
        """
        flat = {
            key if not isinstance(value, dict) else f"{key}.{name}": one
            for key, value in self.change.items()
            for name, one in (value.items() if isinstance(value, dict) else [("", value)])
        }
        return "--set " + " ".join(
            f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in flat.items()
        )


def plan_recipe(source: RecipeLike, changes: Mapping[str, Any], question: PlanQuestion) -> Plan:
    """Plan a recipe; of one with phases the phase that takes most.

    Raises:
        RecipeError: see :func:`load_recipe`.
        TurnwiseError: its model's config cannot be read, or is of a kind that no plan can be made of.
    """
    recipe = load_recipe(source, changes)
    options = recipe.model
    model = scratch_model(options.scratch) if options.scratch else named_model(str(options.path))
    plans = [
        _planned(opened(one).session, (one.most_groups, one.rollout.group_size), model, question)
        for one in (phase.recipe for phase in phases_of(recipe))
    ]
    return max(plans, key=lambda plan: plan.total)


def helping(source: RecipeLike, changes: Mapping[str, Any], question: PlanQuestion) -> list[PlanChange]:
    """Return changes that each take less, the least first, and last those that fit only together.

    A change that the recipe cannot have is left out.
    """
    now = plan_recipe(source, changes, question)
    found = sorted(_tried(source, changes, question, now), key=lambda one: one.total)
    together, plan = dict[str, Any](), now
    while not plan.fits and not any(one.fits for one in found):
        best = min(
            (one for one in _tried(source, {**changes, **together}, question, plan)),
            key=lambda one: one.total,
            default=None,
        )
        if best is None:
            break
        together |= best.change
        plan = plan_recipe(source, {**changes, **together}, question)
    if len(together) and (not found or plan.total < found[0].total):
        found.append(PlanChange(together, plan.total, plan.fits))
    return found


def _tried(
    source: RecipeLike, changes: Mapping[str, Any], question: PlanQuestion, now: Plan
) -> Iterator[PlanChange]:
    for change in _offers(opened(load_recipe(source, changes)).session, question, now):
        with contextlib.suppress(TurnwiseError):  # the recipe cannot have it
            plan = plan_recipe(source, {**changes, **change}, question)
            if plan.total < 0.99 * now.total:
                yield PlanChange(change, plan.total, plan.fits)


def _offers(told: SessionOptions, question: PlanQuestion, now: Plan) -> Iterator[dict[str, Any]]:
    learn = told.learn
    if not learn.gradient_checkpointing:
        yield {"model.gradient_checkpointing": True}
    if learn.lora is None:
        yield {"model.lora": {"rank": 32}}
    if learn.optimizer.moments == "float32":
        yield {"optimizer.moments": "int8"}
    half = max(now.batch.longest, learn.optimizer.micro_tokens // 2)
    if half < min(learn.optimizer.micro_tokens, now.batch.tokens):
        yield {"optimizer.micro_tokens": half}
    if question.number > 2 and now.learners == 1:  # one of the cards is the engine's
        yield {"scale.learners": question.number - 1, "scale.weights": "sharded"}
    if any(part.name == "engine's keys and values" and part.learning for part in now.parts) and question.card:
        yield {"engine.options.sleep": "kv"}
        if "kv_cache_gib" not in told.roles.engine.options:
            yield {"engine.options.gpu_memory_utilization": 0.3}


def _planned(
    told: SessionOptions, groups: tuple[int, int], model: KnownModel, question: PlanQuestion
) -> Plan:
    """Plan a phase, whose updates have at most so many groups of so many rows."""
    learn, roles = told.learn, told.roles
    if question.card and roles.learners > question.number:
        raise TurnwiseError(
            f"The recipe has {roles.learners} learners (scale.learners), and --on names {question.number} cards.",
            "Name as many, or set scale.learners lower.",
        )
    cuda = _on_cuda(roles, question)
    setting = setting_of(learn, cuda=cuda, cards=roles.learners if roles.divided else 1)
    context = roles.context or model.context
    row = min(question.row or context, context)
    members = groups[1]
    rows = groups[0] * members
    batch = micro_batch(learn.optimizer, row, min(question.shared, row - 1), members, rows)
    memory, where = _memory(question, cuda=cuda)
    engine, notes = _engine_parts(roles, model, cuda=cuda, context=context, card=memory if cuda else 0)
    found = learner_bytes(model.shape, setting, batch)
    of_trained = f"of {setting.trained(model.shape):,} trained numbers"
    parts = [
        PlanPart("weights", found.weights, found.weights, f"of {model.shape.weights:,}"),
        PlanPart("moments", found.moments, found.moments, of_trained),
        PlanPart("gradients", found.gradients, 0.0, of_trained),
        PlanPart("copies of weights", found.copies, 0.0, "gathered, or in bfloat16 for a pass"),
        PlanPart("activations", found.activations, 0.0, _batch_text(batch)),
        PlanPart("logits or slopes of a layer", found.passing, 0.0, "for a moment"),
        *_beside(learn, model.shape, setting),
        *engine,
    ]
    seconds, said = _time(model.shape, learn, question, roles.learners, rows, row)
    return Plan(
        tuple(part for part in parts if part.learning or part.playing), loaded_bytes(model.shape, setting), memory, where,
        batch, model.shape.weights, setting.trained(model.shape), roles.learners, seconds, (*notes, said),
    )  # fmt: skip


def setting_of(learn: LearnOptions, *, cuda: bool, cards: int = 1) -> LearnerSetting:
    """Return the settings on which a learner's memory depends."""
    options, lora = learn.optimizer, learn.lora
    return LearnerSetting(
        half=options.precision == "bfloat16" or (options.precision == "auto" and cuda),
        rank=lora.rank if lora else 0,
        targets=None if lora is None or isinstance(lora.targets, str) else frozenset(lora.targets),
        half_base=cuda,
        checkpointing=learn.gradient_checkpointing,
        eight_bits=options.moments == "int8",
        cards=cards,
    )


def micro_batch(options: OptimizerOptions, row: int, shared: int, members: int, rows: int) -> MicroBatch:
    """Return the largest micro-batch of groups of so many rows, each as long, of which all but the shared tokens may be sampled.

    A tree holds whole groups, as far as they fit; a row that is too long by itself is alone.
    """
    own = row - shared
    nodes = shared + members * own
    if options.share in ("tree", "flex") or (options.share == "auto" and nodes <= SAVES * members * row):
        groups = max(1, min(options.micro_tokens // nodes, rows // members or 1))
        held = min(members, max(1, (options.micro_tokens - shared) // own))
        count = groups * held
        return MicroBatch(
            groups * (shared + held * own), count * own, row, count * row, groups * (held - 1) * own * row
        )
    count = max(1, min(options.micro_tokens // row, rows or options.micro_tokens))
    return MicroBatch(count * row, count * own, row)


def _batch_text(batch: MicroBatch) -> str:
    kind = "nodes of a tree" if batch.attended else "tokens"
    return f"of {batch.tokens:,} {kind}, the longest row has {batch.longest:,}"


def _on_cuda(roles: Roles, question: PlanQuestion) -> bool:
    if question.card is not None:
        return True
    return roles.device == "cuda" or (roles.device == "auto" and torch.cuda.is_available())


def _memory(question: PlanQuestion, *, cuda: bool) -> tuple[float, str]:
    if question.card is not None:
        return question.card.memory * GB, f"each of {question.number} {question.card.name}"
    if cuda and torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        return float(card.total_memory), f"this machine's {card.name}"
    import psutil

    return float(psutil.virtual_memory().total), "this machine"


def _engine_parts(
    roles: Roles, model: KnownModel, *, cuda: bool, context: int, card: float
) -> tuple[list[PlanPart], list[str]]:
    if roles.divided and roles.learners > 1:
        return [], ["The engine is in another process, on a card of its own (`--on local:engines=1`)."]
    shape, engine = model.shape, roles.engine
    load = EngineLoad(shape.weights, 2 * shape.layers * shape.keys, context, engine.max_sequences, cuda, card)
    found = engine_bytes(engine.kind, load, engine.options)
    if found is None:
        return [], [f"The engine {engine.kind} does not say what it takes: it is not counted."]
    weights = 0.0 if found.rests_whole else found.weights
    return [
        PlanPart("engine's weights", weights, found.weights),
        PlanPart("engine's keys and values", 0.0 if found.rests else found.kv, found.kv, found.how),
    ], []


def _beside(learn: LearnOptions, shape: ModelShape, setting: LearnerSetting) -> Iterator[PlanPart]:
    """Yield what is held beside the policy: heads, a reference, copies of the policy, other models."""
    frozen = (2 if setting.half_base else 4) * shape.weights / setting.cards
    if heads := sum(_head_numbers(chosen, shape.width) for chosen in learn.signals):
        yield PlanPart("heads", 16.0 * heads, 12.0 * heads, f"{heads:,} numbers with moments and gradients")
    if "reference" in learn.needs and not setting.rank:
        yield PlanPart("reference", frozen, frozen, "the frozen policy")
    one = setting._replace(checkpointing=False, eight_bits=False)
    batch = MicroBatch(0, 0, 0)
    for entry, options in learn.signals:
        if _COPY not in entry.reads or options.get("path"):
            continue
        told = learner_bytes(shape, one, batch)
        size = told.held + told.gradients if entry.learns else told.weights
        yield PlanPart(f"copy for {entry.name}", size, size)
    paths = [str(options["path"]) for _, options in learn.signals if options.get("path")]
    paths += (
        [str(learn.teacher.options["path"])] if learn.teacher and learn.teacher.options.get("path") else []
    )
    for path in paths:
        size = (2.0 if setting.half_base else 4.0) * named_model(path).shape.weights
        yield PlanPart(f"model {path}", size, size, "frozen, whole on each card")


def _head_numbers(chosen: Any, width: int) -> int:
    """Count the weights of a signal's head, by making it without memory."""
    if not chosen.entry.learns or "forward pass" not in chosen.entry.reads:
        return 0
    nothing: Any = None
    setup = SignalSetup(frozenset(), width, torch.device("meta"), 0, nothing, 0, nothing, nothing, nothing)
    module = getattr(chosen.entry.build(chosen.options)(setup), "module", None)
    return sum(one.numel() for one in module.parameters()) if module is not None else 0


def _time(
    shape: ModelShape, learn: LearnOptions, question: PlanQuestion, learners: int, rows: int, row: int
) -> tuple[float | None, str]:
    """Estimate the learner's seconds for an update, where something like it was measured; what it rests on, in words."""
    card, low, high = question.card, *MEASURED_WEIGHTS
    if (
        card is None
        or not card.used
        or learn.lora is not None
        or not low <= shape.weights <= high
        or learners > 1
        or not rows
    ):
        return None, (
            "Time: nothing like it was measured, so no number is given; measured are an H100 alone and all weights of a model of 0.5 billion."
        )
    seconds = (
        rows * row * flops_of_token(shape, row) / (card.used * card.tflops * 1e12) * learn.optimizer.epochs
    )
    seconds *= CHECKPOINTED if learn.gradient_checkpointing else 1
    return seconds, (
        f"Time: the learner takes about {seconds:,.0f} s for an update of {rows:,} rows of {row:,} tokens. It is an estimate: operations, at the "
        f"{card.used:.0%} of nominal that 0.5 billion weights were measured to use on one {card.name}; sampling is not in it."
    )


def flops_of_token(shape: ModelShape, row: int) -> float:
    """Operations of a token in a pass and its backward pass: products of layers and head, attention as if causality saved nothing."""
    layer = sum(a * b for a, b in shape.matrices.values())
    return (
        6.0 * (shape.layers * layer + shape.width * shape.vocabulary)
        + 12.0 * shape.layers * shape.queries * row
    )
