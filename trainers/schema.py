"""What a recipe may say: every key with its type, its default and, below it, its meaning (docs/recipes.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import pydantic
import yaml
from pydantic import Field

from turnwise.trainers.registry import Component, get_component

Count = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Part(pydantic.BaseModel):
    """A component by name, with its options."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    name: str

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def component(self, seam: str) -> Component:
        return get_component(seam, self.name)

    def build(self, seam: str) -> Callable[..., Any]:
        """The function with its options fixed; raises RecipeError where they do not fit."""
        return self.component(seam).build(self.options)


class LossPart(Part):
    """A loss, and what it is multiplied by in the sum."""

    weight: float = 1.0


class Section(pydantic.BaseModel):
    """A part of the recipe that knows all its keys."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Scratch(Section):
    """A small model made from nothing, its tokeniser trained on the suite's own text."""

    layers: Count = 3
    """Transformer blocks."""
    width: Count = 128
    """Of the residual stream."""
    heads: Count = 4
    """Attention heads; `width / heads` must be 32, 64, 80, 96, 112, 128, 192 or 256."""
    vocab_size: Annotated[int, Field(ge=300)] = 512
    """Tokens: 256 bytes, the control tokens, the rest learned."""
    context: Count = 512
    """The longest sequence, in tokens."""
    init: Literal["random", "induction"] = "induction"
    """`induction` can copy from its context from the start."""
    text_episodes: Count = 200
    """Demonstrations whose text the tokeniser is trained on."""


class Lora(Section):
    """Low-rank adapters instead of all weights (Hu et al. 2021, 2106.09685)."""

    rank: Count = 16
    """Of each update matrix."""
    alpha: Count = 32
    """The update is scaled by `alpha / rank`."""
    targets: list[str] | Literal["all-linear"] = "all-linear"
    """Names of the layers that get adapters."""


class Model(Section):
    """Which model is trained. Exactly one of `path` and `scratch` is given."""

    path: str | None = None
    """A Hugging Face id, or a folder."""
    scratch: Scratch | None = None
    """A small model made from nothing."""
    lora: Lora | None = None
    """Train adapters; the model itself stays frozen."""
    gradient_checkpointing: bool = False
    """Keep each layer's input alone and compute the layer again in the backward pass: a third slower, and
    memory for one layer at a time. For models of billions of weights."""


class EngineOptions(Section):
    """Which engine samples, and its size."""

    kind: Literal["vllm", "torch"] = "vllm"
    """`torch` is the sampler for machines without vLLM and for tests."""
    max_sequences: Count = 128
    """Decoded at a time."""
    context_length: Annotated[int, Field(ge=0)] = 0
    """Longest prompt plus answer, in tokens; 0: the model's own."""
    options: dict[str, Any] = {}
    """Further options of the engine, such as `kv_cache_gib` or `tensor_parallel_size`."""


class SamplingOptions(Section):
    """How training episodes are sampled. Evaluation also plays greedily."""

    temperature: Rate = 1.0
    """Log-probabilities are of the distribution at this temperature. Without chance nothing can be learned."""
    max_tokens: Count = 256
    """Of one turn; `turnwise eval` keeps to it too, unless told otherwise."""
    tools: Literal[
        "auto", "template", "text", "none", "hermes", "llama", "mistral", "python", "qwen-xml", "tags"
    ] = "auto"
    """How tools are shown: by the template, as text (in a dialect), not at all; `auto`: by the template if it can."""


class WarmStart(Section):
    """Supervised learning on episodes that a scripted agent plays, before reinforcement."""

    demonstrator: str = "gold"
    """The script (`turnwise list policies`)."""
    episodes: Count = 4000
    """Each is seen once; rounded down to whole batches."""
    batch_size: Count = 16
    """Episodes of one step."""
    learning_rate: Rate = 1e-3
    """At its peak: it rises over 30 steps, then falls as a cosine to a tenth."""
    observation_weight: Share = 0.1
    """Of the environment's tokens in the loss, where the agent's weigh 1."""


class Rollout(Section):
    """The episodes that an update is made of."""

    groups: Count = 16
    """Tasks."""
    group_size: Count = 8
    """Episodes of each task: each other's baseline."""
    strategy: Part = Part(name="chain")
    """How they are played: apart, as trees, or with forks that measure (`turnwise list strategy`)."""
    concurrency: Count = 128
    """Episodes in flight."""
    episode_tokens: Count | None = None
    """Tokens that an episode may sample before it is cut."""
    generate_s: Rate = 300.0
    """Deadline of one answer of the engine, in seconds."""
    step_s: Rate = 60.0
    """Deadline of one step of a blocking environment, in seconds."""
    env_options: dict[str, Any] = {}
    """What environments are made with."""
    opponents: dict[str, str] = {}
    """Agents that are not trained, and who plays them (`turnwise list policies`). Every other agent of an
    environment is played by the model and trained on its own trajectory."""
    max_failed: Share = 0.25
    """Share of an update's episodes that may fail for infrastructure reasons before the run stops."""


class Optimizer(Section):
    """AdamW, with a linear warm-up and a constant rate after it."""

    learning_rate: Rate = 1e-6
    """Of the policy."""
    warmup: Annotated[int, Field(ge=0)] = 0
    """Optimizer steps until the full rate."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Decay of the moments."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Of matrices; norms and biases are not decayed."""
    max_grad_norm: Rate = 1.0
    """Longer gradients are shortened to this."""
    epochs: Count = 1
    """How often an update goes through its episodes."""
    minibatches: Count = 1
    """Optimizer steps per epoch."""
    micro_tokens: Count = 16384
    """Tokens of one forward pass; changes memory and speed, not the result."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of matrix products (weights stay float32); `auto`: bfloat16 on a GPU."""
    value_weight: Rate = 0.5
    """Of the squared errors of the value head and the progress head, where a credit rule needs them."""
    value_learning_rate: Rate = 1e-3
    """Of the value head, and of the progress head."""
    implicit_learning_rate: Rate = 1e-6
    """Of the reward model, a copy of the policy, where a credit rule needs implicit rewards."""


class Evaluate(Section):
    """When the policy is looked at, and on how much. The checkpoint is chosen on dev alone."""

    every: Count = 10
    """Updates between looks at dev; the last update is always looked at."""
    dev: Count = 100
    """Tasks of the dev split."""
    test: Count = 300
    """Tasks of the test split, played before and after, sampled and greedy."""
    opponents: dict[str, str] = {}
    """Who plays the other agents when the policy is looked at."""


class Checkpoint(Section):
    """When the run is saved, so that it can be resumed."""

    every: Count = 10
    """Updates between checkpoints."""
    keep: Count = 2
    """The newest so many are kept, and the best on dev."""


class Recipe(Section):
    """A training run."""

    about: str = ""
    """What it is for, in a sentence or two."""
    suite: str
    """Whose tasks are trained on (`turnwise list suites`)."""
    seed: int = 0
    """All chance is derived from it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto`: the GPU where there is one."""
    model: Model
    """Which model is trained."""
    engine: EngineOptions = EngineOptions()
    """Which engine samples."""
    sampling: SamplingOptions = SamplingOptions()
    """How it samples."""
    warm_start: WarmStart | None = None
    """Supervised learning first."""
    rollout: Rollout = Rollout()
    """The episodes of an update."""
    judge: Part = Part(name="none")
    """Who says what of the turns, for credit rules that ask for it (`turnwise list judge`)."""
    reward: Part = Part(name="as_is")
    """What replaces the environment's rewards (`turnwise list reward`)."""
    filter: Part = Part(name="informative")
    """Which groups are trained on (`turnwise list filter`)."""
    credit: Part = Part(name="return_to_go")
    """Rewards → an advantage for each turn (`turnwise list credit`)."""
    correction: Part = Part(name="tis")
    """For the gap between engine and trainer (`turnwise list correction`)."""
    loss: list[LossPart] = [LossPart(name="clip")]
    """Losses per token, summed, each with a `weight` of 1 unless given (`turnwise list loss`)."""
    reduce: Part = Part(name="token_mean")
    """Their denominator (`turnwise list reduce`)."""
    optimizer: Optimizer = Optimizer()
    """How the loss is descended."""
    updates: Annotated[int, Field(ge=0)] = 100
    """How many times: roll out, then learn."""
    evaluate: Evaluate = Evaluate()
    """When the policy is looked at."""
    checkpoint: Checkpoint = Checkpoint()
    """When the run is saved."""

    @property
    def needs(self) -> frozenset[str]:
        """The signals that the parts ask for."""
        parts = [(self.credit, "credit"), *((part, "loss") for part in self.loss)]
        needs = {need for part, seam in parts for need in part.component(seam).needs}
        return frozenset(needs | ({"reference"} if "token_implicit" in needs else set[str]()))

    @property
    def steps(self) -> int:
        """Optimizer steps of one update."""
        return self.optimizer.epochs * self.optimizer.minibatches

    def to_yaml(self) -> str:
        """Every key with its value; reading it gives this recipe."""
        return yaml.safe_dump(plain(self), sort_keys=False, allow_unicode=True)


def plain(value: Any) -> Any:
    """A recipe, or a value in it, as YAML has it; keys that are null by default and in fact are left out."""
    if isinstance(value, Part):
        weight = {"weight": value.weight} if isinstance(value, LossPart) and value.weight != 1 else {}
        return {"name": value.name, **weight, **value.options} if weight or value.options else value.name
    if isinstance(value, Section):
        keys = type(value).model_fields
        return {key: plain(getattr(value, key)) for key in keys if getattr(value, key) is not None}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
