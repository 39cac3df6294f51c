"""The session of a run: its model, optimizer, tokeniser, engine and policies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from turnwise.agents.core import Policy, Sampling
from turnwise.agents.engines.registry import OTHER_ENGINE, check_names, open_engine
from turnwise.agents.gateway.agent_program import launcher_of, program_of
from turnwise.agents.gateway.launching import Launcher
from turnwise.agents.models.loading import load_tokenizer
from turnwise.agents.models.vocabulary import keep_ends
from turnwise.agents.policies.command import ProgramPolicy
from turnwise.agents.policies.model import ChatFormat, ModelPolicy, make_renderer
from turnwise.agents.workers.pool import WorkerPool
from turnwise.errors import MissingDependencyError, RunError
from turnwise.trainers.core import Group, Sink
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.mesh import Mesh
from turnwise.trainers.learn.model import base_of, choose_device, load_model
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.shards import divide
from turnwise.trainers.learn.sync import check_learner
from turnwise.trainers.learn.team import Alone, Team
from turnwise.trainers.learn.trainable_engine import Sleeps, TrainableEngine, check_trainable
from turnwise.trainers.learn.whole import published_names
from turnwise.trainers.recipe.schema import EngineOptions
from turnwise.trainers.run.checkpoint import save_model
from turnwise.trainers.run.circumstances import run_clock
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.disk import written_aside
from turnwise.trainers.run.door import SessionOptions, TalkOptions
from turnwise.trainers.run.placement import Placement, placed_engine, publishing
from turnwise.trainers.run.update import Teaching
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.signal.core import SignalContext, SignalSetup
from turnwise.trainers.signal.measure import Signals
from turnwise.trainers.source.core import SourceContext
from turnwise.trainers.teacher.core import TeacherSetup


class TrainingSession:
    """Everything that lives as long as the run. The engine starts when it is first needed.

    Args:
        options: of the run's present phase.
        run: its files.
        source: the model.
        placement: where engines and environments run; this machine unless given.
        started: the update after which the policy was saved that the run compares with; -1: with ``source``.

    Raises:
        RunError: that policy is not there.
    """

    def __init__(
        self,
        options: SessionOptions,
        run: RunDirectory,
        source: str,
        placement: Placement | None = None,
        started: int = -1,
    ) -> None:
        self.options, self.run, self.started = options, run, started
        self._team: Team = Alone()
        self._mesh: Mesh | None = None
        self._placement, self._placed = placement or Placement(), contextlib.ExitStack()
        self.device = choose_device(options.roles.device)
        self._origin = source
        self.source = source if started < 0 else _started(run, started)
        self.tokenizer: Any = load_tokenizer(self.source)
        self.chat_format = chat_format_of(options.talk, run_clock(run.path))
        self.renderer = make_renderer(self.tokenizer, self.source, self.chat_format)
        self._make_learner(self._load())
        check_learner(self.learner.model)
        check_names(options.roles.engine.kind, lambda: published_names(self.learner.model), self.source)
        self._engine: TrainableEngine | None = None
        self._sinks: list[Sink] | None = None
        self._launcher: Launcher | None = None

    def join(self, team: Team, mesh: Mesh | None = None) -> None:
        """Learn with others from now on, and with a mesh hold a part of the weights only; the optimizer then begins anew."""
        self._team, self._mesh = team, mesh
        self.learner.team = team
        if mesh is not None:
            model = self.learner.model
            del self.learner, self.signals, self.teaching
            self._make_learner(divide(model, mesh))

    def leave(self) -> bool:
        """Learn alone again. Return true where that took the policy back to ``source``, whole, since it was held in parts."""
        parted = self._mesh is not None
        self._team, self._mesh = Alone(), None
        if parted:
            del self.learner, self.signals, self.teaching
            self._make_learner(self._load())
        self.learner.team = self._team
        return parted

    def begin(self, options: SessionOptions, update: int) -> None:
        """Begin reinforcement, or a phase of it: all that learns or remembers begins anew, with the policy as it now is.

        Args:
            options: of the phase.
            update: how many updates were made before.
        """
        self.options = options
        copies = any("copy of the policy" in chosen.entry.reads for chosen in options.learn.signals)
        kept: nn.Module | None = self.learner.model
        if update or copies or "reference" in options.learn.needs:
            self._save_start(update)
            kept = None
        del self.learner, self.signals, self.teaching  # before the next ones need the memory
        self._make_learner(self._load() if kept is None else kept)

    def renew(self, update: int) -> None:
        """Forget the optimizer's moments and take the policy as it now is for the reference; all else goes on."""
        learner = self.learner
        if "reference" in self.options.learn.needs:
            self._save_start(update)
            if learner.reference is None:
                learner.model = self._load()
            else:
                learner.reference = self._load_frozen()
        learner.reset_optimizer_state()

    def resume_from(self, options: SessionOptions, started: int) -> None:
        """Become the session of a checkpoint that was written in another phase, or before a reset."""
        if (options, started) == (self.options, self.started):
            return
        self.options, self.started = options, started
        self.source = self._origin if started < 0 else _started(self.run, started)
        del self.learner, self.signals, self.teaching
        self._make_learner(self._load())

    def _save_start(self, update: int) -> None:
        """Save the policy, to compare with from now on."""
        folder = self.run.started(update)
        if (
            self._mesh is None or self._mesh.leads
        ):  # else the first learner has done so, before it told this one
            with written_aside(folder) as aside:
                save_model(aside, self.learner.model, self.tokenizer, self.chat_format)
        self.source, self.started = str(folder), update

    @property
    def engine(self) -> TrainableEngine:
        assert self._engine is not None, "start_engine() comes first"
        return self._engine

    def start_engine(self) -> None:
        """Load the engine; the trainer's weights are pushed to it before it samples anything."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # an engine on the same GPU asks for its share of what is free
        roles, talk = self.options.roles, self.options.talk
        place = placed_engine(self._placement, roles, self.source, self.context, self.run.path)
        options = publishing(self._placed.enter_context(place), roles)
        engine = make_engine(options, self.source, self.device, self.context)
        self._engine = check_trainable(engine, options.kind, in_flight=bool(roles.staleness))
        belongs_to = getattr(engine, "belongs_to", None)  # engines that several runs can reach
        if belongs_to is not None:
            belongs_to(str(self.run.path.absolute()))
        drawn = Sampling(talk.temperature, 1.0, talk.max_tokens)
        self.policy = ModelPolicy(self.engine, self.renderer, drawn)
        self.greedy = ModelPolicy(self.engine, self.renderer, drawn._replace(temperature=0.0))

    def rest_engine(self) -> None:
        """Leave the engine's memory to the learner until the next weights come, where it can do so."""
        if isinstance(self.engine, Sleeps):
            self.engine.sleep()

    def player(self, policy: ModelPolicy) -> Policy:
        """Return the policy that plays episodes: the policy itself, or the recipe's program, which talks to it."""
        told = self.options.talk.program
        if told is None:
            return policy
        program = program_of(told, "agent")
        self._launcher = self._launcher or launcher_of(program)
        return ProgramPolicy(policy, program, launcher=self._launcher)

    def take(self, options: SessionOptions) -> None:
        """Go on with the numbers that the next update has."""
        self.learner.options, temperature = options.learn.optimizer, options.talk.temperature
        for reader in (self.learner.reader, self.reader):
            reader.temperature = temperature
        if self._engine is not None:
            self.policy.sampling = self.policy.sampling._replace(temperature=temperature)

    def source_context(
        self, mixture: Mixture, workers: WorkerPool | None, played: Sequence[Group]
    ) -> SourceContext:
        """Return what sources draw from, where these groups were played."""
        play = self.options.play
        return SourceContext(
            mixture, play.seed, self.renderer, play.env_options, workers or 0, play.limits, played
        )

    def signal_context(self) -> SignalContext:
        """Return what signals are read from."""
        return SignalContext(
            needs=self.options.learn.measured,
            learner=self.learner,
            tokenizer=self.tokenizer,
            renderer=self.renderer,
            context=self.context,
            env_options=self.options.play.env_options,
        )

    @property
    def context(self) -> int:
        """Number of tokens that the model can read."""
        config = base_of(self.learner.model).config.get_text_config()
        return self.options.roles.context or int(config.max_position_embeddings)

    def write_scalars(self, update: int, metrics: Mapping[str, Any]) -> None:
        """Hand an update's figures to the recipe's sinks."""
        if self._sinks is None:
            self._sinks = [part.build("sink")(self.run.path, update - 1) for part in self.options.sinks]
        for sink in self._sinks:
            sink.write(update, metrics)

    def close(self) -> None:
        """Free the engine."""
        for sink in self._sinks or ():
            sink.close()
        if self._launcher is not None:
            self._launcher.close()
        if self._engine is not None:
            self._engine.close()
        self._placed.close()

    def _load(self) -> nn.Module:
        """The model that is trained, as it is in ``source``."""
        learn = self.options.learn
        loaded = load_model(
            self.source,
            self.device,
            learn.lora,
            seed=learn.seed,
            gradient_checkpointing=learn.gradient_checkpointing,
        )
        keep_ends(base_of(loaded), self.renderer.stop_ids)
        return self._divided(loaded)

    def _load_frozen(self) -> nn.Module:
        return self._divided(load_model(self.source, self.device, frozen=True))

    def _divided(self, model: nn.Module, *, alike: bool = False) -> nn.Module:
        """The model, or this learner's part of it."""
        return model if self._mesh is None else divide(model, self._mesh, alike=alike)

    def _make_learner(self, model: nn.Module) -> None:
        learn, temperature = self.options.learn, self.options.talk.temperature
        options = learn.optimizer

        def copy_policy() -> nn.Module:
            return load_model(self.source, self.device, learn.lora, seed=learn.seed)

        def divided_copy() -> nn.Module:  # which every learner trains on all rows
            return self._divided(copy_policy(), alike=True)

        self.reader = Reader(self.device, temperature, options.precision, options.share)
        setup = SignalSetup(
            needs=learn.measured,
            width=base_of(model).config.get_text_config().hidden_size,
            device=self.device,
            seed=learn.seed,
            reader=self.reader,
            micro_tokens=options.micro_tokens,
            copy_policy=divided_copy,
            load=lambda path: self._divided(load_model(path, self.device, frozen=True), alike=True),
            tokenizer=self.tokenizer,
            critic=learn.critic,
        )
        self.signals = Signals(learn.signals, setup)
        self.teaching = self._make_teaching(copy_policy)
        reference = None
        if "reference" in learn.needs and learn.lora is None:
            reference = self._load_frozen()
        self.learner = Learner(
            model, options, heads=self.signals.heads, reference=reference, temperature=temperature
        )
        self.learner.team = self._team

    def _make_teaching(self, copy_policy: Callable[[], nn.Module]) -> Teaching | None:
        part = self.options.learn.teacher
        if part is None:
            return None
        setup = TeacherSetup(
            lambda path: load_model(path, self.device, frozen=True), copy_policy, self.tokenizer
        )
        return Teaching(part.build("teacher")(setup), part.top)


def _started(run: RunDirectory, update: int) -> str:
    """The policy that a run compares with since this update."""
    folder = run.started(update)
    if not folder.is_dir():
        raise RunError(
            f"{folder} is missing: the policy with which {run.path} compares since update {update}.",
            "Put it back from a copy, or start another run.",
        )
    return str(folder)


def chat_format_of(talk: TalkOptions, clock: str) -> ChatFormat:
    """Return how the model is prompted, in a run of this clock."""
    return ChatFormat(talk.tools, talk.max_tokens, talk.instruction, talk.template, clock, talk.context)


@contextmanager
def open_session(
    options: SessionOptions,
    run: RunDirectory,
    source: str,
    placement: Placement | None = None,
    started: int = -1,
) -> Iterator[TrainingSession]:
    """Load everything, the model from ``source``; close it in the end. See :class:`TrainingSession`."""
    session = TrainingSession(options, run, source, placement, started)
    try:
        yield session
    finally:
        session.close()


def make_engine(options: EngineOptions, model: str, device: torch.device, context: int) -> TrainableEngine:
    """The engine that the recipe names, on ``model``."""
    common = {"device": device.type, "context_length": context, "max_sequences": options.max_sequences}
    try:
        return open_engine(options.kind, model, **{**common, **options.options})
    except MissingDependencyError as error:
        raise MissingDependencyError(
            error.cause, f"`turnwise doctor` says how to get it, {OTHER_ENGINE}"
        ) from error
