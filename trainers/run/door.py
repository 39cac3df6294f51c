"""The door of a run: a recipe is taken apart here, into the values that the rooms behind it take.

Whoever plays, judges, learns or places something is given the values that this takes, and not the recipe: :func:`opened` makes
all of them at once. A phase of a run is a recipe of its own, and is opened again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from turnwise.agents.rollout import Limits
from turnwise.agents.tokens.template import ToolsFormat
from turnwise.trainers.hack_meter.meter import MeterRule
from turnwise.trainers.learn.options import ImitationOptions, LoraOptions, OptimizerOptions
from turnwise.trainers.recipe.part import Part, TeacherPart
from turnwise.trainers.recipe.phases import phases_of
from turnwise.trainers.recipe.schema import (
    EngineOptions,
    HackMeterOptions,
    Lora,
    Optimizer,
    Recipe,
    Rollout,
    Scratch,
    WarmStart,
    plain,
)
from turnwise.trainers.signal.choose import ChosenSignal

BEFORE = "before"
AFTER_WARM_START = "warm start"


class PlayOptions(NamedTuple):
    """Options by which any episode of a run is played.

    Attributes:
        seed: the run's; all chance is derived from it.
        limits: deadlines, and a budget of tokens.
        env_options: what environments are made with.
        concurrency: the most episodes at a time.
        max_failed: the share of episodes that may fail.
    """

    seed: int
    limits: Limits
    env_options: Mapping[str, Any]
    concurrency: int
    max_failed: float


class JudgeOptions(NamedTuple):
    """Options by which the policy is evaluated.

    Attributes:
        play: how its episodes are played.
        dev: tasks of each evaluation between updates.
        test: tasks of the evaluations before and after.
        opponents: by agent, the policy that plays it.
        before: what the first evaluation is called.
    """

    play: PlayOptions
    dev: int
    test: int
    opponents: Mapping[str, str]
    before: str


class WarmOptions(NamedTuple):
    """Options by which a warm start imitates.

    Attributes:
        play: how demonstrations are played.
        imitation: the learner's options.
        checkpoint_every: steps between two checkpoints.
    """

    play: PlayOptions
    imitation: ImitationOptions
    checkpoint_every: int


class TalkOptions(NamedTuple):
    """Options by which one talks with the policy.

    Attributes:
        tools: how tools are shown to it.
        instruction: what stands below the first message of an episode.
        template: options of the chat template.
        context: its context manager, as :func:`turnwise.agents.contexts.core.make_context` is told.
        max_tokens: of one turn.
        temperature: at which its tokens are sampled.
        program: that plays the episodes; None: the policy does.
    """

    tools: ToolsFormat
    instruction: str
    max_tokens: int
    temperature: float
    template: Mapping[str, Any]
    context: Mapping[str, Any]
    program: Mapping[str, Any] | None


class LearnOptions(NamedTuple):
    """Options of what is trained, and by what it learns.

    Attributes:
        seed: of first weights.
        lora: adapters; None: all weights are trained.
        gradient_checkpointing: layers are computed again in the backward pass.
        optimizer: its numbers.
        needs: signals that the parts ask for.
        measured: these, and those that the log asks for.
        signals: what measures them.
        critic: what a learned value is fitted to.
        teacher: says how likely it finds the tokens.
    """

    seed: int
    lora: LoraOptions | None
    gradient_checkpointing: bool
    optimizer: OptimizerOptions
    needs: frozenset[str]
    measured: frozenset[str]
    signals: Sequence[ChosenSignal]
    critic: str
    teacher: TeacherPart | None


class Roles(NamedTuple):
    """The roles of a run as its recipe has them; where they are placed is the command's.

    Attributes:
        device: of learners.
        learners: that take every step together.
        divided: each of them holds a part of the weights.
        engine: samples.
        context: the most tokens that a prompt with its answer has; 0: as many as the model reads.
        publish: how weights get to engines elsewhere.
        staleness: updates that are played ahead.
        env_workers: processes that hold environments.
        worker_hosts: hosts that do.
        worker_hosts_file: has more of them.
        token_file: has their token.
    """

    device: str
    learners: int
    divided: bool
    engine: EngineOptions
    context: int
    publish: Literal["auto", "nccl", "ipc"]
    staleness: int
    env_workers: int
    worker_hosts: Sequence[str]
    worker_hosts_file: str
    token_file: str


class SessionOptions(NamedTuple):
    """Options of what lives as long as a run, or a phase of it; ``sinks`` get its figures."""

    play: PlayOptions
    talk: TalkOptions
    learn: LearnOptions
    roles: Roles
    sinks: Sequence[Part]


class ScratchOptions(NamedTuple):
    """A small model that is made from nothing, and the demonstrations and chats whose text its tokeniser is trained on."""

    play: PlayOptions
    suites: Mapping[str, float]
    demonstrator: str
    chats: str
    env_workers: int
    model: Scratch


class PreflightOptions(NamedTuple):
    """Options that a preflight looks at.

    Attributes:
        play: how its episodes are played.
        talk: how the policy will be talked with.
        roles: where environments are.
        suites: those of the run.
        demonstrator: the warm start's; empty: there is none.
        rewards: the recipe's.
        credit: the recipe's.
        context_key: by which key the context can be raised.
    """

    play: PlayOptions
    talk: TalkOptions
    roles: Roles
    suites: Mapping[str, float]
    demonstrator: str
    rewards: Sequence[Part]
    credit: Part
    context_key: str


class DiskOptions(NamedTuple):
    """Options on which the disk space of checkpoints depends.

    Attributes:
        scratch: the model that is made; None: one is loaded.
        adapters: only adapters are trained.
        anew: each checkpoint may compare with a policy of its own.
        keep: how many of the newest are kept.
    """

    scratch: Scratch | None
    adapters: bool
    anew: bool
    keep: int


class PlantOptions(NamedTuple):
    """Options by which planted episodes are played.

    Attributes:
        play: how any episode is played.
        rule: of the hack meter.
    """

    play: PlayOptions
    rule: MeterRule


class KeepOptions(NamedTuple):
    """Options of what is kept on disk.

    Attributes:
        every: a checkpoint is written after so many updates.
        checkpoints: how many of the newest are kept.
        updates: of how many of the newest the episodes are kept.
    """

    every: int
    checkpoints: int
    updates: int | Literal["all"]


class RunOptions(NamedTuple):
    """A recipe, taken apart; None stands for what it does without."""

    session: SessionOptions
    judge: JudgeOptions
    warm: WarmOptions | None
    scratch: ScratchOptions | None
    preflight: PreflightOptions
    disk: DiskOptions
    keep: KeepOptions
    plant: PlantOptions | None


def opened(recipe: Recipe) -> RunOptions:
    """Take a recipe, or the recipe of a phase, apart; of one with phases, what is learned by is the first one's."""
    sampling, scale, rollout, evaluate = recipe.sampling, recipe.scale, recipe.rollout, recipe.evaluate
    warm, model, engine = recipe.warm_start, recipe.model, recipe.engine
    play = PlayOptions(
        recipe.seed, limits_of(rollout), rollout.env_options, rollout.concurrency, rollout.max_failed
    )
    program = None if recipe.agent is None else plain(recipe.agent)
    talk = TalkOptions(
        sampling.tools,
        sampling.instruction,
        sampling.max_tokens,
        sampling.temperature,
        sampling.template,
        {} if sampling.context is None else {"name": sampling.context.name, **sampling.context.options},
        program,
    )
    roles = Roles(
        recipe.device, scale.learners, scale.weights == "sharded", engine, engine.context_length, scale.publish, scale.staleness,
        rollout.env_workers, scale.worker_hosts, scale.worker_hosts_file, scale.token_file,
    )  # fmt: skip
    now = phases_of(recipe)[0].recipe  # a recipe with phases learns by theirs
    learn = LearnOptions(
        recipe.seed, _adapters(model.lora), model.gradient_checkpointing, descent(now.optimizer), now.needs,
        now.measured, now.sources, now.credit.component("credit").critic, now.teacher,
    )  # fmt: skip
    scratch, begins = model.scratch, warm or WarmStart()
    key = "model.scratch.context" if scratch else "engine.context_length"
    anew = bool(recipe.phases) or "optimizer.resets" in recipe.schedule
    return RunOptions(
        SessionOptions(play, talk, learn, roles, recipe.sinks),
        JudgeOptions(
            play, evaluate.dev, evaluate.test, evaluate.opponents, AFTER_WARM_START if warm else BEFORE
        ),
        WarmOptions(play, imitation(warm), warm.checkpoint_every) if warm else None,
        ScratchOptions(play, recipe.suites, begins.demonstrator, begins.chats, rollout.env_workers, scratch)
        if scratch
        else None,
        PreflightOptions(
            play,
            talk,
            roles,
            recipe.suites,
            warm.demonstrator if warm else "",
            recipe.reward,
            recipe.credit,
            key,
        ),
        DiskOptions(scratch, model.lora is not None, anew, recipe.checkpoint.keep),
        KeepOptions(recipe.checkpoint.every, recipe.checkpoint.keep, recipe.log.keep),
        PlantOptions(play, meter_rule(recipe.hack_meter)) if recipe.hack_meter else None,
    )


def meter_rule(options: HackMeterOptions) -> MeterRule:
    """Return the rule of a run's hack meter."""
    return MeterRule(**options.model_dump(exclude={"on_alarm"}), stops=options.on_alarm == "stop")


def limits_of(options: Rollout) -> Limits:
    """Return the deadlines and the token budget of every episode."""
    return Limits(
        reset_s=options.reset_s,
        generate_s=options.generate_s,
        step_s=options.step_s,
        episode_tokens=options.episode_tokens or float("inf"),
    )


def descent(options: Optimizer) -> OptimizerOptions:
    """Return the learner's optimizer options."""
    return OptimizerOptions(**options.model_dump(exclude={"resets"}))


def imitation(options: WarmStart) -> ImitationOptions:
    """Return the learner's options of a warm start."""
    return ImitationOptions(**options.model_dump(exclude={"checkpoint_every"}))


def _adapters(options: Lora | None) -> LoraOptions | None:
    return None if options is None else LoraOptions(options.rank, options.alpha, options.targets)
