"""Memory that a learner takes, by arithmetic alone: docs/what-fits.md and ``turnwise plan`` are made of it.

Bytes are those of tensors: weights, moments, gradients, and what autograd keeps of a decoder of the Llama kind (RMS norms, attention over
grouped heads, a gated feed-forward layer), counted tensor by tensor. Attention is flash attention, so that nothing is square in a row's
length. What kernels, allocators and libraries take beside tensors is not in it; ``benchmarks/plan.py`` compares it with learners at work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LARGE = 1 << 27
"""Logits (positions × vocabulary) above which they are computed twice instead of kept."""
WHOLE_GRADIENTS = 1 << 28
"""Trained numbers up to which gradients are added up once a step, and whole until then: bit for bit what one process makes of
the same shares. Of larger models they are added up after each pass, and a learner only holds its part."""
EIGHT_BITS_FROM = 4096
"""Numbers of a matrix from which on its moments are kept in eight bits where that is asked for."""
READ_ALIKE: Mapping[str, tuple[str, ...]] = {
    "first norm": ("q_proj", "k_proj", "v_proj"),
    "second norm": ("gate_proj", "up_proj"),
}
"""Matrices that read the same tensor."""


class ModelShape(NamedTuple):
    """A model of the Llama kind.

    Attributes:
        layers: of the decoder.
        width: of the stream between them.
        inner: of the feed-forward layer.
        heads: of queries.
        kv_heads: of keys and of values.
        vocabulary: rows of the output head.
        tied: whether embedding and head are one matrix.
        head_width: numbers of a head.
        bias: numbers of a layer's biases.
        biases: how many vectors these are.
        normed_heads: whether queries and keys have norms of their own.
    """

    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool
    head_width: int
    bias: int = 0
    biases: int = 0
    normed_heads: bool = False

    @property
    def queries(self) -> int:
        """Numbers of a token's queries, and of its attention's answer."""
        return self.heads * self.head_width

    @property
    def keys(self) -> int:
        """Numbers of a token's keys."""
        return self.kv_heads * self.head_width

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of a layer's matrices, by name."""
        return {
            "q_proj": (self.width, self.queries),
            "k_proj": (self.width, self.keys),
            "v_proj": (self.width, self.keys),
            "o_proj": (self.queries, self.width),
            "gate_proj": (self.width, self.inner),
            "up_proj": (self.width, self.inner),
            "down_proj": (self.inner, self.width),
        }

    @property
    def layer(self) -> int:
        """Weights of a layer."""
        norms = 2 * self.width + (2 * self.head_width if self.normed_heads else 0)
        return sum(a * b for a, b in self.matrices.values()) + norms + self.bias

    @property
    def root(self) -> int:
        """Weights of the embedding, of the last norm, and of the head where it has its own."""
        return self.vocabulary * self.width * (1 if self.tied else 2) + self.width

    @property
    def weights(self) -> int:
        return self.layers * self.layer + self.root

    @property
    def tensors(self) -> int:
        """Count the tensors that hold the weights."""
        each = len(self.matrices) + 2 + self.biases + (2 if self.normed_heads else 0)
        return self.layers * each + (2 if self.tied else 3)

    @property
    def vectors(self) -> int:
        """Weights that are in no matrix."""
        return self.layers * (self.layer - sum(a * b for a, b in self.matrices.values())) + self.width


class LearnerSetting(NamedTuple):
    """Settings of a learner on which its memory depends.

    Attributes:
        half: matrix products are in bfloat16.
        rank: of adapters; 0 trains all weights.
        targets: matrices that have adapters; None: all.
        half_base: weights that are not trained are kept in bfloat16.
        checkpointing: layers are computed again in the backward pass.
        eight_bits: moments of matrices are.
        cards: that divide weights, gradients and moments; activations are not divided.
    """

    half: bool
    rank: int = 0
    targets: frozenset[str] | None = None
    half_base: bool = False
    checkpointing: bool = False
    eight_bits: bool = False
    cards: int = 1

    def adapted(self, shape: ModelShape) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of a layer's matrices that have adapters."""
        chosen = shape.matrices if self.rank else {}
        return {name: ends for name, ends in chosen.items() if self.targets is None or name in self.targets}

    def adapters(self, shape: ModelShape) -> int:
        """Weights of all adapters."""
        return shape.layers * self.rank * sum(a + b for a, b in self.adapted(shape).values())

    def trained(self, shape: ModelShape) -> int:
        """Weights that are trained, heads aside."""
        return self.adapters(shape) if self.rank else shape.weights


class MicroBatch(NamedTuple):
    """The largest micro-batch of a learner.

    Attributes:
        tokens: that a pass computes: those of rows with their padding, or the nodes of a tree.
        sampled: tokens of which logits are computed.
        longest: tokens of the longest row.
        attended: of a tree, the keys that its segments see, one segment after the other; 0 reads rows.
        masked: of a tree, the numbers of its segments' masks.
    """

    tokens: int
    sampled: int
    longest: int
    attended: int = 0
    masked: int = 0


class LearnerBytes(NamedTuple):
    """Bytes of a learner on its card while it learns, part by part.

    Attributes:
        weights: of the model, and of its adapters.
        moments: of what is trained.
        gradients: of what is trained.
        copies: of weights: autocast's in bfloat16 and, where weights are in parts, what is gathered.
        activations: that wait for the backward pass.
        passing: what is largest beside them for a moment: logits and what is made of them, or the slopes of a layer.
    """

    weights: float
    moments: float
    gradients: float
    copies: float
    activations: float
    passing: float

    @property
    def all(self) -> float:
        return sum(self)

    @property
    def held(self) -> float:
        """What is there between steps, too."""
        return self.weights + self.moments


def learner_bytes(shape: ModelShape, setting: LearnerSetting, batch: MicroBatch) -> LearnerBytes:
    """Return what a learner takes at most while it makes steps of several micro-batches."""
    layer = shape.layers * _layer_activation(shape, setting, batch)
    ends = _end_activation(shape, setting, batch)
    logits = logits_bytes(shape.vocabulary, batch.sampled)
    own, slopes = layer / shape.layers, _slopes(shape, setting, batch)
    if setting.checkpointing:
        stream = (2 if setting.half_base and setting.rank else 4) * shape.width * batch.tokens
        layer, slopes = shape.layers * stream, slopes + own - stream  # a layer's input is kept already
    ends_alike = 4 * shape.vocabulary * shape.width if shape.tied and not setting.rank else 0
    cards, trained = setting.cards, setting.trained(shape)
    whole = 1 if trained <= WHOLE_GRADIENTS else cards
    return LearnerBytes(
        weights=_weight_bytes(shape, setting) / cards,
        moments=moment_bytes(shape, setting) / cards,
        gradients=4 * trained / whole,
        copies=_copies(shape, setting),
        activations=layer + ends,
        # A tied matrix's gradient as a head waits for that as an embedding, and then for the sum of the two.
        passing=max(logits, slopes + ends_alike, 3 * ends_alike - layer - ends),
    )


def loaded_bytes(shape: ModelShape, setting: LearnerSetting) -> float:
    """Return what a card takes at the start, where each learner has the model whole before it keeps its part."""
    return _weight_bytes(shape, setting)


def _weight_bytes(shape: ModelShape, setting: LearnerSetting) -> float:
    of_base = 2 if setting.rank and setting.half_base else 4
    return of_base * shape.weights + 4 * setting.adapters(shape)


def moment_bytes(shape: ModelShape, setting: LearnerSetting) -> float:
    """Return the bytes of AdamW's two moments and of its counts of steps, all cards together."""
    if setting.rank:
        tensors, vectors = 2 * len(setting.adapted(shape)) * shape.layers, 0
        large = setting.adapters(shape)
    else:
        tensors, vectors = shape.tensors, shape.vectors
        large = shape.weights - vectors
    if not setting.eight_bits:
        return 8 * (large + vectors) + 4 * tensors
    return (2 + 8 / 256) * large + 8 * vectors  # a scale in float32 for every 256 numbers of each moment


def _copies(shape: ModelShape, setting: LearnerSetting) -> float:
    """Autocast's copies of what a pass multiplies by, and the weights that are gathered for it."""
    one = shape.layer + shape.root
    if setting.cards > 1:
        of_base = 2 if setting.rank and setting.half_base else 4
        return one * (of_base + (2 if setting.half and of_base == 4 else 0))
    if not setting.half:
        return 0
    return 2 * (setting.adapters(shape) + (0 if setting.rank and setting.half_base else shape.weights))


def logits_bytes(vocabulary: int, sampled: int) -> float:
    """Return the bytes of logits, their logarithms, exponentials and slopes at a time: five times float32."""
    return 5 * 4 * vocabulary * min(sampled, max(1, LARGE // vocabulary))


def token_activation(shape: ModelShape, setting: LearnerSetting) -> float:
    """Return the bytes that autograd keeps of a token in one layer, attention aside."""
    width, number = shape.width, 2 if setting.half else 4
    norms = 2 * (4 * width + 4) + (0 if setting.rank else 8 * width)  # the stream, 1/rms, and what is scaled
    read = setting.adapted(shape) if setting.rank else shape.matrices
    inputs = sum(
        _reading(shape, setting, [name for name in names if name in read]) for names in READ_ALIKE.values()
    )
    if setting.rank and setting.half:  # peft casts to float32 and autocast back, a copy for each adapter
        inputs += 2 * sum(read[name][0] for name in ("o_proj", "down_proj") if name in read)
    gated = 3 * shape.inner + (
        shape.inner if "down_proj" in read and not (setting.rank and setting.half) else 0
    )
    return norms + inputs + number * (gated + setting.rank * len(read))


def _reading(shape: ModelShape, setting: LearnerSetting, names: list[str]) -> float:
    """Bytes of what these matrices read: one tensor in float32, or a copy for each in bfloat16."""
    if not names:
        return 0
    return 2 * shape.width * len(names) if setting.half else 4 * shape.width


def _layer_activation(shape: ModelShape, setting: LearnerSetting, batch: MicroBatch) -> float:
    number = 2 if setting.half else 4
    found = batch.tokens * (token_activation(shape, setting) + 4 * shape.heads)
    if shape.normed_heads:
        each = 4 + (0 if setting.rank else number)
        found += batch.tokens * (each * (shape.queries + shape.keys) + 4 * (shape.heads + shape.kv_heads))
    if not batch.attended:
        return found + batch.tokens * number * (2 * shape.queries + 2 * shape.keys)
    read = not setting.rank or "o_proj" in setting.adapted(shape)
    # queries, each segment's answer and all answers in line; keys and values of each segment, a head for each of queries
    own = batch.tokens * (2 + read) * shape.queries + 2 * batch.attended * shape.queries
    return found + number * (own + batch.masked)


def _end_activation(shape: ModelShape, setting: LearnerSetting, batch: MicroBatch) -> float:
    """Token numbers, rotary positions, the last norm, and the states from which tokens were sampled."""
    places = batch.tokens if batch.attended else batch.longest
    norm = 4 * shape.width + 4 + (0 if setting.rank else 4 * shape.width)
    states = 0 if setting.rank else (2 if setting.half else 4) * shape.width
    return batch.tokens * (8 + norm) + batch.sampled * states + 8 * shape.head_width * places


def _slopes(shape: ModelShape, setting: LearnerSetting, batch: MicroBatch) -> float:
    """Slopes of a feed-forward layer beside what it kept: those of its product's two sides, and of the stream."""
    return batch.tokens * ((2 if setting.half else 4) * 2 * shape.inner + 4 * shape.width)
