"""The model that is trained: loaded or made, with adapters or without, and what is read off it."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from turnwise.agents.models.loading import load_causal, load_config, load_tokenizer, longest_sequence
from turnwise.errors import MissingDependencyError, RecipeError, RunError
from turnwise.trainers.core import Nucleus
from turnwise.trainers.learn.memory import LARGE
from turnwise.trainers.learn.options import LoraOptions

DECODES = "turnwise_decodes"
"""The method of a model with divided weights that stands for its decoder."""


class TokenStats(NamedTuple):
    """At each wanted position: log-probability of the token, and entropy of the distribution, in nats; perhaps of its nucleus."""

    logp_N: Tensor
    entropy_N: Tensor
    nucleus_N: Tensor | None = None


def choose_device(name: str) -> torch.device:
    """``auto`` is the GPU where there is one.

    Raises:
        MissingDependencyError: CUDA is asked for and not there.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise MissingDependencyError(
            "The recipe asks for a GPU, and none is visible.",
            "Set device: auto, or repair CUDA (`turnwise doctor`).",
        )
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def head_rows(model: nn.Module) -> int:
    """For how many tokens a model's head has a row."""
    return int(base_of(model).get_output_embeddings().weight.shape[0])


def same_tokens(tokenizer: Any, path: str, who: str) -> None:
    """Refuse a model whose tokens are not those of a tokeniser: the policy's.

    Raises:
        RecipeError: some have other numbers there, or none.
    """
    own, theirs = tokenizer.get_vocab(), load_tokenizer(path).get_vocab()
    other = sorted(token for token, number in own.items() if theirs.get(token) != number)
    if other:
        raise RecipeError(
            f"{who} {path} has another vocabulary than the policy: {len(other)} of {len(own)} tokens have other numbers "
            f"there or none, such as {other[0]!r}.",
            "Choose a model with the policy's tokeniser.",
        )


@contextlib.contextmanager
def deterministic(device: torch.device, wanted: bool = True) -> Iterator[None]:
    """Within it the same tensors give the same bits: on a GPU some of PyTorch's kernels add up in whichever order they finish.

    Attention is never cuDNN's, since vLLM turns that off for the whole process that imports it, and `turnwise relearn` imports no vLLM. For all threads of this process.

    Raises:
        RunError: something is computed that PyTorch has no such kernel for.
    """
    if device.type != "cuda" or not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what PyTorch takes on Hopper unasked
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    filled: Any = torch.utils.deterministic
    filling: bool = filled.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)  # were it to warn only, attention would add up in any order
    # Filling memory that was not set is slow, and finds faults; it makes no sum the same.
    filled.fill_uninitialized_memory = False
    try:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
            yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        raise RunError(
            f"Learning cannot be repeated bit for bit: {str(error).partition('. ')[0]}.",
            "Set optimizer.deterministic: false, and do without `turnwise relearn`.",
        ) from error
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        filled.fill_uninitialized_memory = filling


def load_model(
    path: str | Path,
    device: torch.device,
    lora: LoraOptions | None = None,
    *,
    seed: int = 0,
    frozen: bool = False,
    gradient_checkpointing: bool = False,
) -> nn.Module:
    """Load a causal language model for training: float32 weights, no dropout, precision as the recipe says.

    Args:
        path: a Hugging Face id or a folder.
        device: where it shall be.
        lora: train adapters, whose first weights are drawn from ``seed``.
        seed: see ``lora``.
        frozen: nothing is trained. What is not trained is kept in bfloat16 on CUDA.
        gradient_checkpointing: compute each layer again in the backward pass instead of keeping it.

    Raises:
        RecipeError: this architecture knows no gradient checkpointing.
        RunError: there is no model that can be loaded.
    """
    half = (frozen or lora is not None) and device.type == "cuda"
    model = load_causal(path, torch.bfloat16 if half else torch.float32)
    _take_dropout_out(model)
    if frozen:
        model.requires_grad_(False)
    if gradient_checkpointing:
        if not model.supports_gradient_checkpointing:
            raise RecipeError(
                f"{type(model).__name__} knows no gradient checkpointing.",
                "Set model.gradient_checkpointing: false, and optimizer.micro_tokens lower.",
            )
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if lora is not None:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=lora.rank, lora_alpha=lora.alpha, target_modules=lora.targets, task_type="CAUSAL_LM"
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = get_peft_model(model, config, autocast_adapter_dtype=True)
    # Transformers recomputes layers in training mode only; nothing else depends on the mode here.
    return model.to(device).train(gradient_checkpointing)


def load_context(path: str | Path) -> int:
    """The longest sequence that a model was made for, in tokens.

    Raises:
        RunError: its config cannot be read, or does not say.
    """
    longest = longest_sequence(load_config(path))
    if longest is None:
        raise RunError(
            f"The config of {path} does not say for how long a sequence the model was made.",
            "Set engine.context_length.",
        )
    return longest


def _take_dropout_out(model: nn.Module) -> None:
    """Whichever mode the model is in, it is the policy that the engine samples from."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = 0.0  # pyright: ignore[reportArgumentType]


def base_of(model: Any) -> Any:
    """The Hugging Face model inside a peft model, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def decode(model: nn.Module, **given: Any) -> Tensor:
    """Run a model's decoder. Return its last hidden states, (R, T, D)."""
    base = base_of(model)
    own = base.__dict__.get(DECODES)  # of divided weights: layers are gathered by the root alone
    return own(**given) if own is not None else decoded_by(base, **given)


def decoded_by(base: Any, **given: Any) -> Tensor:
    """Run the decoder of a model without adapters around it."""
    return base.get_decoder()(**given, use_cache=False).last_hidden_state


def hidden_states(model: nn.Module, token_RT: Tensor) -> Tensor:
    """Last hidden states (R, T, D). Rows are right-padded, so causal attention needs no padding mask."""
    return decode(model, input_ids=token_RT)


def nothing_read(model: nn.Module, device: torch.device) -> Tensor:
    """Run a pass over nothing, decoder and head, in step with learners that have rows left. Return 0, with a gradient of 0."""
    hidden_11D = decode(model, input_ids=torch.zeros(1, 1, dtype=torch.long, device=device))
    return own_logits(model, hidden_11D[0]).sum() * 0


def vocabulary_logp(model: nn.Module, hidden_ND: Tensor, temperature: float) -> Tensor:
    """Log-probability of every token that may follow these hidden states, (N, V)."""
    return (own_logits(model, hidden_ND) / temperature).log_softmax(-1)


def own_logits(model: nn.Module, hidden_ND: Tensor) -> Tensor:
    """The logits that the model itself makes of these hidden states, (N, V), in float32 or better.

    They come from its own forward pass, in which the decoder's answer is given: architectures scale, cap and shift logits in
    ways and under names of their own, and a copy of that would be another model sooner or later.

    Raises:
        RunError: its forward pass makes logits of something else than its decoder's last hidden states.
    """
    base = base_of(model)
    head = base.get_output_embeddings()
    if not len(hidden_ND):
        return _wide(head(hidden_ND))
    unread_N = torch.zeros(1, len(hidden_ND), dtype=torch.long, device=hidden_ND.device)
    widened = head.register_forward_hook(lambda _module, _given, said: _wide(said))
    try:
        with _answering(base, hidden_ND[None]) as asked:
            logits_NV = base(input_ids=unread_N, use_cache=False).logits[0]
    finally:
        widened.remove()
    if not asked:
        raise RunError(
            f"{type(base).__name__} makes its logits of something else than its decoder's hidden states, and cannot be trained.",
            "Use a model of another architecture.",
        )
    return _wide(logits_NV)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


@contextlib.contextmanager
def _answering(base: Any, hidden_RTD: Tensor) -> Iterator[list[None]]:
    """Within it the model's decoder answers with these hidden states; what is yielded is filled when it is asked."""
    asked: list[None] = []

    def answer(*_: object, **__: object) -> Any:
        asked.append(None)
        return _answer_type()(last_hidden_state=hidden_RTD)

    decoder = base.get_decoder()
    before = decoder.__dict__.get("forward")
    decoder.forward = answer
    try:
        yield asked
    finally:
        if before is None:
            del decoder.forward
        else:
            decoder.forward = before


def nucleus_entropy(logp_NV: Tensor, nucleus: Nucleus) -> Tensor:
    """Entropy of the nucleus of each distribution, renormalised, in nats, (N,); 0 where it is empty or a single token.

    >>> p = torch.tensor([[0.4, 0.25, 0.2, 0.1, 0.05], [0.9, 0.1, 0, 0, 0]]).clamp(min=1e-12).log()
    >>> [[round(x, 4) for x in nucleus_entropy(p, Nucleus(0.8, crossing)).tolist()] for crossing in (False, True)]
    [[0.6663, 0.0], [1.0551, 0.0]]
    >>> [round(float(nucleus_entropy(torch.full((1, 4), 0.25).log(), Nucleus(0.8, crossing))), 4) for crossing in (False, True)]
    [1.0986, 1.3863]
    """
    falling_NV, order_NV = logp_NV.detach().sort(dim=-1, descending=True, stable=True)
    mass_NV = falling_NV.exp().cumsum(-1)
    before_NV = mass_NV - falling_NV.exp() if nucleus.crossing else mass_NV
    # Rounding may put a sum that is the mass itself on either side of it.
    inside_NV = torch.zeros_like(logp_NV, dtype=torch.bool).scatter(
        -1, order_NV, before_NV < nucleus.mass - 1e-6
    )
    kept_NV = logp_NV.masked_fill(~inside_NV, -torch.inf)
    some_N = inside_NV.any(-1)
    norm_N = torch.where(some_N[:, None], kept_NV, logp_NV).logsumexp(-1)
    own_NV = (logp_NV - norm_N[:, None]).masked_fill(~inside_NV, 0.0)
    return (own_NV.exp() * own_NV.neg() * inside_NV).sum(-1) + 0.0


def vocabulary_size(model: nn.Module) -> int:
    """The number of tokens that a model chooses from."""
    return base_of(model).get_output_embeddings().weight.shape[0]


def token_stats(
    model: nn.Module,
    hidden_ND: Tensor,
    token_N: Tensor,
    temperature: float,
    nucleus: Nucleus | None = None,
) -> TokenStats:
    """Log-probability and entropy of the tokens that follow these hidden states; with ``nucleus`` also the entropy of that."""

    def stats(hidden_MD: Tensor, token_M: Tensor) -> tuple[Tensor, ...]:
        logp_MV = vocabulary_logp(model, hidden_MD, temperature)
        found = logp_MV.gather(-1, token_M[:, None])[:, 0], -(logp_MV.exp() * logp_MV).sum(-1)
        return found if nucleus is None else (*found, nucleus_entropy(logp_MV, nucleus))

    vocabulary = vocabulary_size(model)
    if len(token_N) * vocabulary <= LARGE:
        return TokenStats(*stats(hidden_ND, token_N))
    chunk = max(1, LARGE // vocabulary)
    from torch.utils.checkpoint import checkpoint

    parts = [
        checkpoint(stats, h, t, use_reentrant=False)
        for h, t in zip(hidden_ND.split(chunk), token_N.split(chunk), strict=True)
    ]
    return TokenStats(*(torch.cat(part) for part in zip(*parts, strict=True)))  # pyright: ignore


@functools.cache
def _answer_type() -> type[Any]:
    """Return the class of decoders' answers; whatever those of some kinds tell beside hidden states, such as router logits, is None."""
    from transformers.modeling_outputs import BaseModelOutputWithPast

    class DecoderOutput(BaseModelOutputWithPast):
        def __getattr__(self, name: str) -> None:
            if name.startswith("__"):
                raise AttributeError(name)

    return DecoderOutput


class ValueHead(nn.Module):
    """V(s) of the state before a turn, read off the hidden state of the last prompt token.

    The hidden state is detached: learning to predict returns does not disturb the policy.
    """

    def __init__(self, width: int, *, seed: int = 0) -> None:
        super().__init__()
        last = nn.Linear(width, 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layers = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), last)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """V of each state, (N,), in float32."""
        return self.layers(hidden_ND.detach().float())[:, 0]


class ChanceHead(nn.Module):
    """The chance of success from the state before a turn: a value head between 0 and 1."""

    def __init__(self, width: int, *, seed: int = 0) -> None:
        super().__init__()
        self.chance = ValueHead(width, seed=seed).layers

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """The logit of the chance, (N,), in float32."""
        return self.chance(hidden_ND.detach().float())[:, 0]

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """The chance, (N,), in float32."""
        return self.logits(hidden_ND).sigmoid()
