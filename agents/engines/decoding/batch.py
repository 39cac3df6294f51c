"""The running batch of the torch engine: sequences take slots, decode together and leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from turnwise.agents.core import Completion, Kv, Sampling, VersionSpan
from turnwise.agents.engines.decoding.draw import draw
from turnwise.agents.engines.decoding.slots import SlotCache, SlotWindow, attention_mask

PREFILL_TOKENS = 8192
"""Most prompt tokens, padding included, in one forward pass."""


class GenerationRequest(NamedTuple):
    prompt: np.ndarray
    sampling: Sampling
    limit: int
    stop_ids: frozenset[int]
    seed: int
    drawn: int = 0  # tokens that the random stream has given already
    heard: Callable[[int, float, int], None] | None = (
        None  # told each token, its log-probability, the version
    )


class _Sequence:
    """A request that has a slot. ``read`` says whether the slot holds all its tokens but the newest."""

    def __init__(self, key: int, request: GenerationRequest) -> None:
        self.key = key
        self.request = request
        self.new_ids: list[int] = []
        self.logprobs: list[float] = []
        self.versions: list[VersionSpan] = []
        self.read = False
        self.random = np.random.Generator(np.random.Philox(key=request.seed % 2**64))
        self.random.random(request.drawn)

    @property
    def length(self) -> int:
        """Tokens of the prompt and of the answer so far."""
        return len(self.request.prompt) + len(self.new_ids)

    def take(self, token: int, logprob: float, version: int) -> Completion | None:
        """Add a token that these weights sampled; the whole answer if it was the last."""
        if not self.versions or self.versions[-1].version != version:
            self.versions.append(VersionSpan(len(self.new_ids), version))
        self.new_ids.append(token)
        self.logprobs.append(logprob)
        if self.request.heard is not None:
            self.request.heard(token, logprob, version)
        stopped = token in self.request.stop_ids
        if not stopped and len(self.new_ids) < self.request.limit:
            return None
        return Completion(tuple(self.new_ids), tuple(self.logprobs), stopped, tuple(self.versions))


class GenerationBatch:
    """The running batch: which sequence sits in which slot, and what each slot's cache holds.

    ``version`` is that of the model's weights.
    """

    version = 0

    def __init__(self, model: Any, context_length: int, slots: int) -> None:
        self.model = model
        self.slots = slots
        self.context_length = context_length
        self.waiting: dict[int, GenerationRequest] = {}
        self.reset_prefix_cache()

    def reset_prefix_cache(self) -> None:
        """Empty every slot."""
        layers = 0 if self.model is None else self.model.config.get_text_config().num_hidden_layers
        self.cache = SlotCache(layers, self.slots)
        self.sequences: list[_Sequence | None] = [None] * self.slots
        self.token_SC = np.full((self.slots, self.context_length), -1, dtype=np.int64)
        self.length_S = np.zeros(self.slots, dtype=np.int64)  # columns that hold keys and values
        self.used_S = np.zeros(self.slots, dtype=np.int64)
        self.old_S = np.zeros(self.slots, dtype=bool)  # computed by weights that were replaced since
        self.clock = 0

    def reweighted(self, version: int, kv: Kv | None) -> None:
        """Go on with the weights that the model has now. Only ``kv`` None empties the slots of running requests too."""
        self.version = version
        if kv is None:
            self.reset_prefix_cache()
            return
        for slot, sequence in enumerate(self.sequences):
            if sequence is None or kv == "recompute":
                self.length_S[slot] = 0
            else:
                self.old_S[slot] = True
            if sequence is not None and kv == "recompute" and sequence.new_ids:
                known = np.array(sequence.new_ids, dtype=np.int64)
                self.token_SC[slot, len(sequence.request.prompt) : sequence.length] = known
                sequence.read = False

    def add(self, key: int, request: GenerationRequest) -> None:
        self.waiting[key] = request

    def abort(self, keys: Sequence[int]) -> None:
        gone = set(keys)
        self.waiting = {key: request for key, request in self.waiting.items() if key not in gone}
        self.sequences = [None if s is not None and s.key in gone else s for s in self.sequences]

    def step(self) -> list[tuple[int, Completion]]:
        """Decode one token for every running sequence and the prompts of those that join."""
        self.clock += 1
        self._seat()
        self._compact()
        running = [i for i, s in enumerate(self.sequences) if s is not None and s.read]
        unread = [i for i, s in enumerate(self.sequences) if s is not None and not s.read]
        done: list[tuple[int, Completion]] = []
        with torch.no_grad(), evaluating(self.model):
            if running:
                done += self._sample(running, self._decode(running))
            for batch in self._prefill_batches(unread):
                done += self._sample(batch, self._prefill(batch))
        return done

    def _seat(self) -> None:
        """Give waiting requests a slot: one whose content they extend, or the longest unused."""
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
            self.length_S[slot], self.old_S[slot] = columns, False
            self.token_SC[slot, : len(request.prompt)] = request.prompt
            self.sequences[slot] = _Sequence(key, request)
            idle.remove(slot)

    def _shared(self, prompt: np.ndarray) -> np.ndarray:
        """Count the leading tokens of ``prompt`` that each slot holds of the present weights; at most all but the last."""
        size = len(prompt) - 1
        same_SC = self.token_SC[:, :size] == prompt[:size]
        first_S = np.where(same_SC.all(-1), size, same_SC.argmin(-1)) if size else self.length_S * 0
        return np.where(self.old_S, 0, np.minimum(first_S, self.length_S))

    def _compact(self) -> None:
        """Move the sequences to the front once half of the batch would be idle slots."""
        taken = [i for i, s in enumerate(self.sequences) if s is not None]
        if not taken or taken[-1] + 1 < 2 * len(taken):
            return
        holes = [i for i in range(len(taken)) if self.sequences[i] is None]
        for hole, slot in zip(holes, reversed(taken), strict=False):
            self.cache.swap(hole, slot, int(max(self.length_S[hole], self.length_S[slot])))
            for kept in (self.token_SC, self.length_S, self.used_S, self.old_S):
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

    def _prefill_batches(self, unread: list[int]) -> Iterator[list[int]]:
        """Groups of slots whose unread tokens are of like number, so that little is padding."""
        new = {i: self._length(i) - int(self.length_S[i]) for i in unread}
        batch: list[int] = []
        for i in sorted(unread, key=lambda i: new[i]):
            if batch and (new[i] > 2 * new[batch[0]] + 8 or new[i] * (len(batch) + 1) > PREFILL_TOKENS):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _prefill(self, batch: list[int]) -> Tensor:
        """Logits (len(batch), V) after the last token of each sequence; unread tokens are padded on the left."""
        end_B = np.array([self._length(i) for i in batch])
        new_B = end_B - self.length_S[batch]
        width = int(new_B.max())
        position_BQ = end_B[:, None] - width + np.arange(width)
        valid_BQ = np.arange(width) >= (width - new_B)[:, None]
        id_BQ = self.token_SC[np.array(batch)[:, None], position_BQ.clip(0)]
        logits_BV = self._forward(np.array(batch), id_BQ, position_BQ, valid_BQ, dense=False)
        self.length_S[batch] = end_B
        for i in batch:
            sequence = self.sequences[i]
            assert sequence is not None
            sequence.read = True
        return logits_BV

    def _length(self, slot: int) -> int:
        sequence = self.sequences[slot]
        assert sequence is not None
        return sequence.length

    def _forward(
        self,
        slot_B: np.ndarray,
        id_BQ: np.ndarray,
        position_BQ: np.ndarray,
        valid_BQ: np.ndarray,
        *,
        dense: bool,
    ) -> Tensor:
        device = self.model.device
        position = torch.from_numpy(position_BQ).to(device)
        length = int(position_BQ.max()) + 1
        column = torch.from_numpy(np.where(valid_BQ, position_BQ, -1)).to(device)
        self.cache.open(SlotWindow(torch.from_numpy(slot_B).to(device), column, length, dense))
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
            answer = sequence.take(token, logp, self.version)
            if answer is not None:
                self.sequences[slot] = None
                done.append((sequence.key, answer))
        return done


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Dropout off while sampling from a model that is being trained."""
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()
