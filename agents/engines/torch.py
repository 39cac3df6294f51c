"""A batched sampler in plain PyTorch, for machines without vLLM and for fast tests.

Any Hugging Face causal model with full attention. Requests join and leave between decode steps; a
prompt that extends what a slot already holds (the next turn of an episode) is not computed again.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from turnwise.agents.core import Completion, Kv, Sampling
from turnwise.agents.engines.loop import EngineLoop
from turnwise.agents.engines.memory import EngineBytes, EngineLoad, bytes_of_number, most_kv
from turnwise.agents.models.loading import load_causal, take_over
from turnwise.errors import EngineError, MissingDependencyError
from turnwise.registry import component

if TYPE_CHECKING:
    from torch import Tensor


@component(
    "engine", "torch", about="Plain PyTorch, for machines without vLLM.", requires=("torch", "transformers")
)
class TorchEngine:
    """Samples with PyTorch (an :class:`~turnwise.agents.core.Engine`).

    ``logprobs`` are of the distribution that was sampled from (after temperature and top-p); for greedy
    requests they are those at temperature 1. Each request draws from its own random stream, one uniform
    number per token, so equal seeds give equal tokens whatever else is in the batch, up to what kernels
    round differently for other batch shapes.

    Args:
        model: a Hugging Face id, a checkpoint folder, or a loaded model. A loaded model is shared, not
            copied: whoever trains it calls :meth:`load_weights` after each change.
        device: ``cuda``, ``cpu``, or ``auto``. Ignored for a loaded model, which stays where it is.
        dtype: ``auto`` is bfloat16 on CUDA and float32 on the CPU. Ignored for a loaded model.
        context_length: longest prompt plus answer, in tokens.
        max_sequences: how many requests are decoded at a time; the others wait.
    """

    def __init__(
        self,
        model: Any,
        *,
        device: str = "auto",
        dtype: str = "auto",
        context_length: int = 2048,
        max_sequences: int = 64,
    ) -> None:
        from turnwise.agents.engines.decoding.batch import GenerationBatch

        self.version = 0
        self.context_length = context_length
        self.shared = not isinstance(model, (str, os.PathLike))
        self.model: Any = model if self.shared else _load(model, device, dtype)
        self.dtype = str(self.model.dtype).removeprefix("torch.")
        _check(self.model.config.get_text_config(), context_length)
        self._batch = GenerationBatch(self.model, context_length, max_sequences)
        self._loop = EngineLoop(self._batch, threaded=self.model.device.type == "cuda")

    @staticmethod
    def memory(load: EngineLoad, options: Mapping[str, Any]) -> EngineBytes:
        """Return what it takes at most: slots grow with what is in them."""
        number = bytes_of_number(options, cuda=load.cuda)
        how = f"at most, of {load.sequences} sequences of {load.context:,} tokens"
        return EngineBytes(number * load.weights, most_kv(load, number), how)

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        """Sample one answer; a stop id that ends it is its last token.

        Raises:
            EngineError: the prompt leaves no room in the context, or the engine failed.
        """
        return await self.stream(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)

    async def stream(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        *,
        stop_ids: Sequence[int],
        seed: int,
        drawn: int = 0,
        heard: Callable[[int, float, int], None] | None = None,
    ) -> Completion:
        """As :meth:`generate`; ``heard`` is told each token as it is sampled, its log-probability and the weights' version.

        With ``drawn`` the request's random stream is entered after so many tokens: what was sampled of an answer and
        is now the prompt's end is then followed by what would have followed it.
        """
        from turnwise.agents.engines.decoding.batch import GenerationRequest

        room = self.context_length - len(prompt_ids)
        if room < 1 or not prompt_ids:
            raise EngineError(
                f"A prompt of {len(prompt_ids)} tokens does not fit a context of {self.context_length}.",
                "Raise context_length, or keep less history.",
            )
        self._check_known(prompt_ids)
        limit = min(sampling.max_tokens, room)
        prompt = np.asarray(prompt_ids, dtype=np.int64)
        request = GenerationRequest(prompt, sampling, limit, frozenset(stop_ids), seed, drawn, heard)
        return await self._loop.submit(request)

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """log p(token | all before it) at temperature 1, for every token but the first of each sequence.

        Blocks; from any thread. Requests in flight wait meanwhile.
        """
        import torch

        from turnwise.agents.engines.decoding.batch import evaluating

        for ids in sequences:
            self._check_known(ids)
        found: list[tuple[float, ...]] = [()] * len(sequences)
        with self._loop.between_steps(), torch.no_grad(), evaluating(self.model):
            for batch in _batches([len(ids) for ids in sequences]):
                scored = _score(self.model, [sequences[n] for n in batch])
                for n, told in zip(batch, scored, strict=True):
                    found[n] = told
        return found

    @property
    def vocabulary(self) -> int:
        """The number of tokens that the model has."""
        return int(self.model.get_input_embeddings().num_embeddings)

    def _check_known(self, ids: Sequence[int]) -> None:
        """Refuse tokens that the model does not have, before they reach the batch and fail all that is in it.

        Raises:
            EngineError: there is one.
        """
        size = self.vocabulary
        if ids and not (min(ids) >= 0 and max(ids) < size):
            wrong = next(token for token in ids if not 0 <= token < size)
            raise EngineError(
                f"The prompt has the token {reprlib.repr(wrong)}, and the model has those from 0 to {size - 1}.",
                "Use the model's own tokeniser.",
            )

    def load_weights(
        self, weights: Iterable[tuple[str, Tensor]], version: int, *, kv: Kv | None = None
    ) -> None:
        """Replace the weights in place and forget all cached prefixes; a shared model has them already.

        Blocks; with ``kv`` from any thread. Requests in flight then wait between two tokens and go on with the new weights.

        Raises:
            EngineError: requests are in flight and ``kv`` does not say what becomes of them, a shared model would change
                under them, or the weights are not those of this model.
        """
        if self.shared and kv is not None:
            raise EngineError(
                "A shared model changes whenever it is trained, also in the middle of a token.",
                "Give the engine the model's folder, or load without kv when nothing is in flight.",
            )
        with self._loop.alone() if kv is None else self._loop.between_steps():
            if not self.shared and (wrong := take_over(self.model, dict(weights))):
                raise EngineError(
                    f"These weights do not fit the engine's model: {', '.join(wrong[:4])}.",
                    "Hand over exactly the tensors of the checkpoint it was made from.",
                )
            self._batch.reweighted(version, kv)
            self.version = version

    def tensors(self) -> Iterable[tuple[str, Tensor]]:
        """The weights that it computes with, by name."""
        yield from self.model.state_dict().items()

    def pause(self) -> None:
        """Sample nothing after the token in hand until :meth:`resume`; requests wait."""
        self._loop.pause()

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        self._loop.resume()

    def close(self) -> None:
        """Free the engine's memory."""
        self._loop.close()
        self._batch.reset_prefix_cache()
        self.model = self._batch.model = None


SCORED = 2048
"""Tokens that are scored at a time, padding among them; a longer sequence is alone."""


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """The places of sequences of these lengths, the longest first, in batches of at most :data:`SCORED` tokens.

    >>> _batches([1000, 3, 1500, 1000]), _batches([])
    ([[2], [0, 3], [1]], [])
    """
    found: list[list[int]] = []
    for n in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if not found or (len(found[-1]) + 1) * lengths[found[-1][0]] > SCORED:
            found.append([])
        found[-1].append(n)
    return found


def _score(model: Any, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
    """The scores of some sequences, the longest of them first; what pads the others comes after them and is never read."""
    import torch

    id_NT = torch.zeros(len(sequences), len(sequences[0]), dtype=torch.long, device=model.device)
    for n, ids in enumerate(sequences):
        id_NT[n, : len(ids)] = torch.tensor(ids, device=model.device)
    length_N = torch.tensor([len(ids) for ids in sequences], device=model.device)
    inside_NT = torch.arange(id_NT.shape[1], device=model.device) < length_N[:, None]
    logit_NTV = (
        model(input_ids=id_NT, attention_mask=inside_NT.long(), use_cache=False).logits[:, :-1].float()
    )
    logp_NT = logit_NTV.gather(-1, id_NT[:, 1:, None])[..., 0] - logit_NTV.logsumexp(-1)
    return [tuple(told[: len(ids) - 1]) for told, ids in zip(logp_NT.tolist(), sequences, strict=True)]


def _load(model: str | os.PathLike[str], device: str, dtype: str) -> Any:
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise MissingDependencyError(
            "A GPU was asked for, but torch sees none.", "Use device=cpu, or check `turnwise doctor`."
        )
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" else "float32"
    return load_causal(str(model), getattr(torch, dtype)).to(device).eval()


def _check(config: Any, context_length: int) -> None:
    """Refuse what the slot cache would compute wrongly."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds - {"full_attention", "sliding_attention"}:
        raise EngineError(
            f"The torch engine knows no {', '.join(sorted(kinds - {'full_attention'}))} layers.",
            "Use a model with full attention, or the vLLM engine.",
        )
    limits = {"max_position_embeddings": getattr(config, "max_position_embeddings", None)}
    if kinds != {"full_attention"} or not getattr(config, "layer_types", None):
        limits["sliding_window"] = getattr(config, "sliding_window", None)
    for name, limit in limits.items():
        if limit is not None and limit < context_length:
            raise EngineError(
                f"context_length {context_length} is beyond the model's {name} of {limit}.",
                f"Set context_length to at most {limit}, or use the vLLM engine.",
            )
