"""What a run works with: the model and its optimizer, the tokeniser, the engine, the policies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from turnwise.agents.core import Sampling
from turnwise.agents.policies.model import Habits, ModelPolicy
from turnwise.agents.renderer import Renderer
from turnwise.envs.registry import get_suite
from turnwise.trainers.checkpoint import save_model, written_aside
from turnwise.trainers.implicit import ImplicitReward
from turnwise.trainers.learner import Learner
from turnwise.trainers.model import ValueHead, base_of, choose_device, load_model
from turnwise.trainers.run import Run, summary_writer
from turnwise.trainers.schema import EngineOptions, Recipe, WarmStart
from turnwise.trainers.sync import TrainableEngine
from turnwise.trainers.warm_start import demonstrations, texts


class Studio:
    """Everything that lives as long as the run. The engine starts when it is first needed."""

    def __init__(self, recipe: Recipe, run: Run) -> None:
        from transformers import AutoTokenizer

        self.recipe, self.run = recipe, run
        self.device = choose_device(recipe.device)
        made = run.model if recipe.model.scratch else recipe.model.path
        self.source = str(run.start if run.start.exists() else made)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(self.source)
        self.habits = Habits(recipe.sampling.tools, recipe.sampling.max_tokens)
        self.renderer = Renderer(self.tokenizer, tools_format=self.habits.tools_format)
        self.learner = self._learner()
        self._engine: TrainableEngine | None = None
        self._writer: Any = None

    def begin_reinforcement(self) -> None:
        """Forget the warm start's moments; a reference or a reward model begins as the policy as it is now."""
        if not self.recipe.needs & {"reference", "implicit"} or self.recipe.warm_start is None:
            self.learner.reset_optimizer()
            return
        with written_aside(self.run.start) as folder:
            save_model(folder, self.learner.model, self.tokenizer, self.habits)
        self.source = str(self.run.start)
        del self.learner  # before the next one needs the memory
        self.learner = self._learner()

    @property
    def engine(self) -> TrainableEngine:
        assert self._engine is not None, "start_engine() comes first"
        return self._engine

    def start_engine(self) -> None:
        """Load the engine; the trainer's weights are pushed to it before it samples anything."""
        config = base_of(self.learner.model).config
        context = self.recipe.engine.context_length or config.max_position_embeddings
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # an engine on the same GPU asks for its share of what is free
        self._engine = make_engine(self.recipe.engine, self.source, self.device, context)
        sampling = self.recipe.sampling
        drawn = Sampling(sampling.temperature, 1.0, sampling.max_tokens)
        self.policy = ModelPolicy(self.engine, self.renderer, drawn)
        self.greedy = ModelPolicy(self.engine, self.renderer, drawn._replace(temperature=0.0))

    def write_scalars(self, update: int, metrics: Mapping[str, Any]) -> None:
        """Show an update's numbers in TensorBoard."""
        self._writer = self._writer or summary_writer(self.run.tensorboard, update - 1)
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(name, value, update)

    def close(self) -> None:
        """Free the engine."""
        if self._writer is not None:
            self._writer.close()
        if self._engine is not None:
            self._engine.close()

    def _learner(self) -> Learner:
        recipe, needs = self.recipe, self.recipe.needs
        model = load_model(
            self.source,
            self.device,
            recipe.model.lora,
            seed=recipe.seed,
            gradient_checkpointing=recipe.model.gradient_checkpointing,
        )
        value_head = progress_head = reference = None
        width = base_of(model).config.get_text_config().hidden_size
        if needs & {"value", "last_value", "token_value"}:
            value_head = ValueHead(width, seed=recipe.seed).to(self.device)
        if "progress" in needs:
            progress_head = ValueHead(width, seed=recipe.seed + 1).to(self.device)
        if "reference" in needs and recipe.model.lora is None:
            reference = load_model(self.source, self.device, frozen=True)
        learner = Learner(
            model,
            recipe.optimizer,
            value_head=value_head,
            progress_head=progress_head,
            reference=reference,
            temperature=recipe.sampling.temperature,
        )
        if needs & {"implicit", "token_implicit"}:
            learner.reward_model = self._reward_model(learner)
        return learner

    def _reward_model(self, learner: Learner) -> ImplicitReward:
        """A copy of the policy as it is now; a peft model's copy has adapters of its own."""
        recipe = self.recipe
        copy = load_model(self.source, self.device, recipe.model.lora, seed=recipe.seed)
        return ImplicitReward(
            copy,
            learner.reader,
            "outcomes" if "token_implicit" in recipe.needs else "pairs",
            learning_rate=recipe.optimizer.implicit_learning_rate,
            micro_tokens=recipe.optimizer.micro_tokens,
        )


@contextmanager
def open_studio(recipe: Recipe, run: Run, say: Callable[[str], None]) -> Iterator[Studio]:
    """Make the small model if there is to be one, load everything, close it in the end."""
    choose_device(recipe.device)  # fails before anything is made
    if recipe.model.scratch is not None and not run.model.exists():
        say(f"a model from scratch: {recipe.model.scratch.layers} layers of {recipe.model.scratch.width}")
        with written_aside(run.model) as folder:
            make_small_model(recipe, folder)
    studio = Studio(recipe, run)
    try:
        yield studio
    finally:
        studio.close()


def make_engine(options: EngineOptions, model: str, device: torch.device, context: int) -> TrainableEngine:
    """The engine that the recipe names, on ``model``."""
    common = {"device": device.type, "context_length": context, "max_sequences": options.max_sequences}
    if options.kind == "torch":
        from turnwise.agents.policies.torch import TorchEngine

        return TorchEngine(model, **{**common, **options.options})
    from turnwise.agents.policies.vllm import VllmEngine

    return VllmEngine(model, **{**common, **options.options})


def make_small_model(recipe: Recipe, folder: Path) -> None:
    """A model from nothing, its tokeniser trained on what the demonstrator and the suite say."""
    from turnwise.agents.policies.small import build_small_model

    scratch = recipe.model.scratch
    assert scratch is not None
    shown = recipe.warm_start or WarmStart()
    suite = get_suite(recipe.suite)
    heard = _run_alone(
        demonstrations(suite, shown, recipe.seed, scratch.text_episodes, 0, recipe.rollout.env_options)
    )
    build_small_model(
        folder,
        texts(heard),
        **scratch.model_dump(exclude={"text_episodes"}),
        seed=recipe.seed,
    )


def _run_alone(coroutine: Any) -> Any:
    """Run a coroutine to its end from code that may itself be running in an event loop."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
