"""A batched sampler in plain PyTorch, for machines without vLLM and for fast tests.

Any Hugging Face causal model with full attention. Requests join and leave between decode steps; a
prompt that extends what a slot already holds (the next turn of an episode) is not computed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.policies.pump import Pump
from turnwise.agents.policies.slots import SlotCache, Window, attention_mask
from turnwise.errors import EngineError, MissingDependencyError

PREFILL_TOKENS = 8192
"""Most prompt tokens, padding included, in one forward pass."""


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
        self.version = 0
        self.context_length = context_length
        self.shared = not isinstance(model, (str, os.PathLike))
        self.model: Any = model if self.shared else _load(model, device, dtype)
        self.dtype = str(self.model.dtype).removeprefix("torch.")
        _check(self.model.config.get_text_config(), context_length)
        self._slots = _Slots(self.model, context_length, max_sequences)
        self._pump = Pump(self._slots, threaded=self.model.device.type == "cuda")

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        """Sample one answer; a stop id that ends it is its last token.

        Raises:
            EngineError: the prompt leaves no room in the context, or the engine failed.
        """
        room = self.context_length - len(prompt_ids)
        if room < 1 or not prompt_ids:
            raise EngineError(
                f"A prompt of {len(prompt_ids)} tokens does not fit a context of {self.context_length}.",
                "Raise context_length, or keep less history.",
            )
        limit = min(sampling.max_tokens, room)
        prompt = np.asarray(prompt_ids, dtype=np.int64)
        request = _Request(prompt, sampling, limit, frozenset(stop_ids), seed, self.version)
        return await self._pump.submit(request)

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """log p(token | all before it) at temperature 1, for every token but the first of each sequence.

        Blocks, and only works while nothing is in flight.
        """
        with self._alone(), torch.no_grad(), _evaluating(self.model):
            return [_score(self.model, ids) for ids in sequences]

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Replace the weights in place and forget all cached prefixes; a shared model has them already.

        Raises:
            EngineError: requests are in flight, or the weights are not those of this model.
        """
        with self._alone():
            if not self.shared:
                named = dict(weights)
                missing, unknown = self.model.load_state_dict(named, strict=False)
                tied = set(getattr(self.model, "all_tied_weights_keys", None) or ())
                wrong = sorted({*missing} - tied) + sorted(unknown)
                if wrong:
                    raise EngineError(
                        f"These weights do not fit the engine's model: {', '.join(wrong[:4])}.",
                        "Hand over exactly the tensors of the checkpoint it was made from.",
                    )
            self._slots.forget()
            self.version = version

    def close(self) -> None:
        """Free the engine's memory."""
        self._pump.close()
        self._slots.forget()
        self.model = self._slots.model = None

    def _alone(self) -> Any:
        if self._pump.in_flight:
            raise EngineError(
                f"{self._pump.in_flight} requests are in flight.", "Await them before touching the weights."
            )
        return self._pump.lock


class _Request(NamedTuple):
    prompt: np.ndarray
    sampling: Sampling
    limit: int
    stop_ids: frozenset[int]
    seed: int
    version: int


class _Sequence:
    """A request that has a slot."""

    def __init__(self, key: int, request: _Request) -> None:
        self.key = key
        self.request = request
        self.new_ids: list[int] = []
        self.logprobs: list[float] = []
        self.random = np.random.Generator(np.random.Philox(key=request.seed % 2**64))

    def take(self, token: int, logprob: float) -> Completion | None:
        """Add a sampled token; the whole answer if it was the last."""
        self.new_ids.append(token)
        self.logprobs.append(logprob)
        stopped = token in self.request.stop_ids
        if not stopped and len(self.new_ids) < self.request.limit:
            return None
        return Completion(tuple(self.new_ids), tuple(self.logprobs), stopped, self.request.version)


class _Slots:
    """The running batch: which sequence sits in which slot, and what each slot's cache holds."""

    def __init__(self, model: Any, context_length: int, slots: int) -> None:
        self.model = model
        self.slots = slots
        self.context_length = context_length
        self.waiting: dict[int, _Request] = {}
        self.forget()

    def forget(self) -> None:
        """Empty every slot."""
        layers = 0 if self.model is None else self.model.config.get_text_config().num_hidden_layers
        self.cache = SlotCache(layers, self.slots)
        self.sequences: list[_Sequence | None] = [None] * self.slots
        self.token_SC = np.full((self.slots, self.context_length), -1, dtype=np.int64)
        self.length_S = np.zeros(self.slots, dtype=np.int64)  # columns that hold keys and values
        self.used_S = np.zeros(self.slots, dtype=np.int64)
        self.clock = 0

    def add(self, key: int, request: _Request) -> None:
        self.waiting[key] = request

    def abort(self, keys: Sequence[int]) -> None:
        gone = set(keys)
        self.waiting = {key: request for key, request in self.waiting.items() if key not in gone}
        self.sequences = [None if s is not None and s.key in gone else s for s in self.sequences]

    def step(self) -> list[tuple[int, Completion]]:
        """Decode one token for every running sequence and the prompts of those that join."""
        self.clock += 1
        joining = self._seat()
        self._compact(joining)
        joined = set(joining)
        running = [i for i, s in enumerate(self.sequences) if s is not None and s.key not in joined]
        fresh = [i for i, s in enumerate(self.sequences) if s is not None and s.key in joined]
        done: list[tuple[int, Completion]] = []
        with torch.no_grad(), _evaluating(self.model):
            if running:
                done += self._sample(running, self._decode(running))
            for batch in self._prefill_batches(fresh):
                done += self._sample(batch, self._prefill(batch))
        return done

    def _seat(self) -> list[int]:
        """Give waiting requests a slot: one whose content they extend, or the longest unused."""
        joining: list[int] = []
        idle = {i for i, s in enumerate(self.sequences) if s is None}
        while idle and self.waiting:
            key = next(iter(self.waiting))
            request = self.waiting.pop(key)
            shared_S = self._shared(request.prompt)
            extended = [i for i in idle if 0 < self.length_S[i] <= shared_S[i] + 1]
            slot = (
                max(extended, key=lambda i: shared_S[i])
                if extended
                else min(idle, key=lambda i: self.used_S[i])
            )
            donor = int(shared_S.argmax())
            if shared_S[donor] > shared_S[slot]:
                self.cache.copy(donor, slot, int(shared_S[donor]))
            columns = int(shared_S[donor])
            self.length_S[slot] = columns
            self.token_SC[slot, : len(request.prompt)] = request.prompt
            self.sequences[slot] = _Sequence(key, request)
            idle.remove(slot)
            joining.append(key)
        return joining

    def _shared(self, prompt: np.ndarray) -> np.ndarray:
        """How many leading tokens of ``prompt`` each slot holds; at most all but the last."""
        size = len(prompt) - 1
        same_SC = self.token_SC[:, :size] == prompt[:size]
        first_S = np.where(same_SC.all(-1), size, same_SC.argmin(-1)) if size else self.length_S * 0
        return np.minimum(first_S, self.length_S)

    def _compact(self, joining: list[int]) -> None:
        """Move the sequences to the front once half of the batch would be idle slots."""
        taken = [i for i, s in enumerate(self.sequences) if s is not None]
        if not taken or taken[-1] + 1 < 2 * len(taken):
            return
        holes = [i for i in range(len(taken)) if self.sequences[i] is None]
        for hole, slot in zip(holes, reversed(taken), strict=False):
            self.cache.swap(hole, slot, int(max(self.length_S[hole], self.length_S[slot])))
            for kept in (self.token_SC, self.length_S, self.used_S):
                kept[[hole, slot]] = kept[[slot, hole]]
            self.sequences[hole], self.sequences[slot] = self.sequences[slot], None

    def _decode(self, running: list[int]) -> Tensor:
        """Logits (len(running), V) after each running sequence's newest token."""
        batch = running[-1] + 1
        start_B = self.length_S[:batch]
        valid_BQ = np.zeros((batch, 1), dtype=bool)
        valid_BQ[running] = True
        id_BQ = np.zeros((batch, 1), dtype=np.int64)
        for i in running:
            sequence = self.sequences[i]
            assert sequence is not None
            id_BQ[i] = self.token_SC[i, start_B[i]] = sequence.new_ids[-1]
        position_BQ = np.where(valid_BQ, start_B[:, None], 0)
        logits_BV = self._forward(np.arange(batch), id_BQ, position_BQ, valid_BQ, dense=True)
        self.length_S[running] += 1
        return logits_BV if len(running) == batch else logits_BV[running]

    def _prefill_batches(self, fresh: list[int]) -> Iterator[list[int]]:
        """Groups of slots whose prompts are of like length, so that little is padding."""
        new = {i: self._prompt_length(i) - int(self.length_S[i]) for i in fresh}
        batch: list[int] = []
        for i in sorted(fresh, key=lambda i: new[i]):
            if batch and (new[i] > 2 * new[batch[0]] + 8 or new[i] * (len(batch) + 1) > PREFILL_TOKENS):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _prefill(self, batch: list[int]) -> Tensor:
        """Logits (len(batch), V) after the last token of each prompt; new tokens are padded on the left."""
        end_B = np.array([self._prompt_length(i) for i in batch])
        new_B = end_B - self.length_S[batch]
        width = int(new_B.max())
        position_BQ = end_B[:, None] - width + np.arange(width)
        valid_BQ = np.arange(width) >= (width - new_B)[:, None]
        id_BQ = self.token_SC[np.array(batch)[:, None], position_BQ.clip(0)]
        logits_BV = self._forward(np.array(batch), id_BQ, position_BQ, valid_BQ, dense=False)
        self.length_S[batch] = end_B
        return logits_BV

    def _prompt_length(self, slot: int) -> int:
        sequence = self.sequences[slot]
        assert sequence is not None
        return len(sequence.request.prompt)

    def _forward(
        self, slot_B: np.ndarray, id_BQ: np.ndarray, position_BQ: np.ndarray, valid_BQ: np.ndarray, *, dense: bool
    ) -> Tensor:
        device = self.model.device
        position = torch.from_numpy(position_BQ).to(device)
        length = int(position_BQ.max()) + 1
        column = torch.from_numpy(np.where(valid_BQ, position_BQ, -1)).to(device)
        self.cache.open(Window(torch.from_numpy(slot_B).to(device), column, length, dense))
        output = self.model(
            input_ids=torch.from_numpy(id_BQ).to(device),
            position_ids=position.clamp(min=0),
            attention_mask=attention_mask(position, length, self.model.dtype),
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float()

    def _sample(self, slots: list[int], logits_BV: Tensor) -> list[tuple[int, Completion]]:
        """Draw a token for each slot; return the sequences that this ends."""
        sequences = [s for s in (self.sequences[i] for i in slots) if s is not None]
        uniform = [s.random.random() for s in sequences]
        token_B, logp_B = draw(logits_BV, [s.request.sampling for s in sequences], uniform)
        done: list[tuple[int, Completion]] = []
        for slot, sequence, token, logp in zip(slots, sequences, token_B, logp_B, strict=True):
            self.used_S[slot] = self.clock
            answer = sequence.take(token, logp)
            if answer is not None:
                self.sequences[slot] = None
                done.append((sequence.key, answer))
        return done


def draw(
    logits_BV: Tensor, sampling: Sequence[Sampling], uniform: Sequence[float]
) -> tuple[list[int], list[float]]:
    """One token per row by inverting the distribution function at ``uniform``, and its log-probability.

    One number per token keeps the draw independent of the batch. Sums are in float64, so that a large
    vocabulary's tail is not lost to rounding.

    >>> logits = torch.tensor([[0.0, 0.0, 0.0, 0.0]])
    >>> draw(logits, [Sampling()], [0.6])[0]
    [2]
    """
    device = logits_BV.device
    temperature_B = torch.tensor([s.temperature or 1.0 for s in sampling], device=device)
    logits_BV = logits_BV / temperature_B[:, None]
    if any(s.top_p < 1 for s in sampling):
        logits_BV = _nucleus(logits_BV, torch.tensor([s.top_p for s in sampling], device=device))
    logp_BV = logits_BV.log_softmax(-1)
    cdf_BV = logp_BV.double().exp().cumsum(-1)
    threshold_B = torch.tensor(uniform, dtype=torch.float64, device=device) * cdf_BV[:, -1]
    token_B = torch.searchsorted(cdf_BV, threshold_B[:, None], right=True)[:, 0].clamp(max=cdf_BV.shape[1] - 1)
    greedy_B = torch.tensor([s.temperature == 0 for s in sampling], device=device)
    token_B = torch.where(greedy_B, logp_BV.argmax(-1), token_B)
    logp_B = logp_BV.gather(-1, token_B[:, None])[:, 0]
    return token_B.tolist(), logp_B.tolist()


def _nucleus(logits_BV: Tensor, top_p_B: Tensor) -> Tensor:
    """Keep the fewest tokens whose probability reaches ``top_p``."""
    sorted_BV, order_BV = logits_BV.sort(-1, descending=True)
    p_BV = sorted_BV.softmax(-1)
    before_BV = p_BV.cumsum(-1) - p_BV
    cut_BV = (before_BV >= top_p_B[:, None]) & (top_p_B < 1)[:, None]
    return logits_BV.masked_fill(torch.zeros_like(cut_BV).scatter(-1, order_BV, cut_BV), -torch.inf)


def _score(model: Any, ids: Sequence[int]) -> tuple[float, ...]:
    id_T = torch.tensor(ids, device=model.device)
    logp_TV = model(input_ids=id_T[None], use_cache=False).logits[0, :-1].float().log_softmax(-1)
    return tuple(logp_TV.gather(-1, id_T[1:, None])[:, 0].tolist())


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Dropout off while sampling from a model that is being trained."""
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()


def _load(model: str | os.PathLike[str], device: str, dtype: str) -> Any:
    from transformers import AutoModelForCausalLM

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise MissingDependencyError(
            "A GPU was asked for, but torch sees none.", "Use device=cpu, or check `turnwise doctor`."
        )
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" else "float32"
    return AutoModelForCausalLM.from_pretrained(model, dtype=getattr(torch, dtype)).to(device).eval()


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
