"""Memory that training takes by arithmetic: which model fits with rows of which length, on how many cards.

``python -m turnwise.trainers.bench.fits > docs/what-fits.md``. Nothing here is measured. Bytes of an activation are those of the tensors that
autograd keeps in a layer of the Llama kind (two norms, four projections, three of the feed-forward layer) under bfloat16's autocast; one
measured model checks them (``tests/trainers/test_fits.py``). Attention is flash attention, so that nothing is square in a row's length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

GB = 1e9
CARD = 80e9
ROOM = 0.9
"""The share of a card that is planned for; the rest is kernels, fragments, and what nobody counted."""
LENGTHS = (8_192, 16_384, 32_768, 65_536, 131_072)
MOST_CARDS = 64
LOGITS = 2**27
"""Numbers of logits that are computed at a time (``LARGE`` of trainers/learn/model.py)."""


class LlamaShape(NamedTuple):
    """A model of the Llama kind."""

    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool

    @property
    def layer(self) -> int:
        """Weights of a layer."""
        keys = self.width // self.heads * self.kv_heads
        return 2 * self.width**2 + 2 * self.width * keys + 3 * self.width * self.inner

    @property
    def root(self) -> int:
        """Weights of the embedding, and of the head where it has its own."""
        return self.vocabulary * self.width * (1 if self.tied else 2)

    @property
    def weights(self) -> int:
        return self.layers * self.layer + self.root


SHAPES: Mapping[str, LlamaShape] = {  # as published: Qwen2.5
    "0.5 B": LlamaShape(24, 896, 4864, 14, 2, 151_936, True),
    "1.5 B": LlamaShape(28, 1536, 8960, 12, 2, 151_936, True),
    "3 B": LlamaShape(36, 2048, 11_008, 16, 2, 151_936, True),
    "7 B": LlamaShape(28, 3584, 18_944, 28, 4, 152_064, False),
    "14 B": LlamaShape(48, 5120, 13_824, 40, 8, 152_064, False),
    "32 B": LlamaShape(64, 5120, 27_648, 40, 8, 152_064, False),
}


class CardMemory(NamedTuple):
    """Bytes on each card.

    Attributes:
        held: weights, moments and the adapters, between steps too.
        step: gradients, copies of weights in bfloat16 and, where weights are in parts, what is gathered.
        activations: of one micro-batch.
    """

    held: float
    step: float
    activations: float

    @property
    def all(self) -> float:
        return sum(self)


def memory(
    shape: LlamaShape, tokens: int, *, cards: int = 1, rank: int = 0, checkpointing: bool = True
) -> CardMemory:
    """Return what a learner takes on each of ``cards``, its weights in parts where there are several.

    Args:
        shape: of the model.
        tokens: of a micro-batch, or of its only row.
        cards: that divide weights, gradients and moments; activations are not divided.
        rank: of adapters on all matrices; 0 trains all weights.
        checkpointing: whether layers are computed again in the backward pass.
    """
    gathered = (shape.layer + shape.root) if cards > 1 else 0
    own = shape.weights / cards
    if rank:
        adapters = _adapters(shape, rank)
        held, step = 2 * own + 12 * adapters / cards, 6 * adapters / cards + 2 * gathered
    else:
        # float32 weights and two moments; then gradients, and autocast's copies of what is whole at a time
        held, step = 12 * own, 4 * own + (6 * gathered if cards > 1 else 2 * own)
    return CardMemory(
        held, step, tokens * activation(shape, rank=rank, checkpointing=checkpointing) + _logits(shape)
    )


def activation(shape: LlamaShape, *, rank: int = 0, checkpointing: bool = True) -> float:
    """Return the bytes of a token's activations: layers' inputs and one layer's own, or all layers' own."""
    stream = 2 if rank else 4  # bytes of a number between layers
    layer = (4 * stream + 20) * shape.width + 8 * shape.inner
    return shape.layers * stream * shape.width + layer if checkpointing else shape.layers * layer


def _logits(shape: LlamaShape) -> float:
    """Logits, their logarithms, exponentials and gradients, in float32, of as many tokens as are computed at a time."""
    return 4 * 4 * (LOGITS // shape.vocabulary) * shape.vocabulary


def loaded(shape: LlamaShape, rank: int = 0) -> float:
    """Return the bytes that a card takes at the start, where each learner has the model whole before it keeps its part."""
    return shape.weights * (2 if rank else 4)


def _adapters(shape: LlamaShape, rank: int) -> int:
    keys = shape.width // shape.heads * shape.kv_heads
    ends = 4 * shape.width + 2 * (shape.width + keys) + 3 * (shape.width + shape.inner)
    return shape.layers * rank * ends


def cards_for(shape: LlamaShape, tokens: int, *, rank: int = 0) -> int:
    """Return the fewest cards (a power of two) on which it fits with checkpointing; 0 where none are enough.

    >>> [cards_for(SHAPES[name], 8192) for name in SHAPES]
    [1, 1, 1, 4, 8, 0]
    """
    if loaded(shape, rank) > ROOM * CARD:
        return 0
    for power in range(int(math.log2(MOST_CARDS)) + 1):
        if memory(shape, tokens, cards=2**power, rank=rank).all <= ROOM * CARD:
            return 2**power
    return 0


def page() -> str:
    """Return docs/what-fits.md."""
    parts = [
        "# What fits where",
        (
            "This page is written by `python -m turnwise.trainers.bench.fits`. **It is arithmetic, not a measurement**: bytes of weights,\n"
            "moments, gradients and of the tensors that a backward pass keeps, for models of Qwen2.5's shapes, with\n"
            "`model.gradient_checkpointing: true`, one row of so many tokens at a time, on cards of 80 GB of which a tenth stays free. The engine is\n"
            "elsewhere. On several cards weights are in parts ([how](gpu.md#weights-in-parts)). What was measured\n"
            "is [on a page of its own](gpu.md#measured), and [how far the formula is from it](#beside-what-was-measured) below."
        ),
        "## All weights trained",
        _table(0),
        "## Adapters of rank 32",
        _table(32),
        (
            "A dash with *on each of 64* is a row whose activations alone fill a card: parts of weights do not divide a row, and sequence parallelism\n"
            "is for later. A dash with *to load* is a model that is whole on each card once, before each learner keeps its part.\n"
            "A longer *episode* is no problem where a context manager begins new rows: memory is that of the longest row\n"
            "(`tests/trainers/test_tree.py` learns one of 64k tokens in rows of 512 in the memory of one micro-batch)."
        ),
        "## Beside what was measured",
        _beside(),
    ]
    return "\n\n".join(parts) + "\n"


def _table(rank: int) -> str:
    lines = [
        "| model | " + " | ".join(f"{length // 1024}k" for length in LENGTHS) + " |",
        "|---" * (len(LENGTHS) + 1) + "|",
    ]
    for name, shape in SHAPES.items():
        lines.append(f"| {name} | " + " | ".join(_cell(shape, length, rank) for length in LENGTHS) + " |")
    return "\n".join(lines)


def _cell(shape: LlamaShape, tokens: int, rank: int) -> str:
    cards = cards_for(shape, tokens, rank=rank)
    if not cards and loaded(shape, rank) > ROOM * CARD:
        return f"– ({loaded(shape, rank) / GB:.0f} GB to load)"
    if not cards:
        alone = memory(shape, tokens, cards=MOST_CARDS, rank=rank).all
        return f"– ({alone / GB:.0f} GB on each of {MOST_CARDS})"
    each = memory(shape, tokens, cards=cards, rank=rank).all
    return f"{cards} × {each / GB:.0f} GB"


MEASURED = {"without checkpointing": (False, 1.903), "with checkpointing": (True, 0.412)}
"""MB a token above what is held, 0.5 B, a micro-batch of 16,384 tokens on one H100 (benchmarks/gpu.json)."""


def _beside() -> str:
    shape, tokens = SHAPES["0.5 B"], 16_384
    lines = [
        "| 0.5 B, one H100, 16,384 tokens, MB a token above weights and moments | measured | by the formula |",
        "|---|---|---|",
    ]
    for name, (checkpointing, found) in MEASURED.items():
        said = memory(shape, tokens, checkpointing=checkpointing)
        lines.append(f"| {name} | {found:.2f} | {(said.step + said.activations) / tokens / 1e6:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
