"""Memory that training takes by arithmetic: which model fits with rows of which length, on how many cards.

``python -m turnwise.trainers.bench.fits > docs/what-fits.md``. Nothing here is measured; the formulas are those of
:mod:`turnwise.trainers.learn.memory`, under bfloat16's autocast, and one measured model checks them (``tests/trainers/test_fits.py``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from turnwise.trainers.learn.memory import (
    LearnerBytes,
    LearnerSetting,
    MicroBatch,
    ModelShape,
    learner_bytes,
    loaded_bytes,
)
from turnwise.trainers.run.cards import GB, ROOM

CARD = 80e9
LENGTHS = (8_192, 16_384, 32_768, 65_536, 131_072)
MOST_CARDS = 64


def _qwen(
    layers: int, width: int, inner: int, heads: int, kv_heads: int, vocabulary: int, tied: bool
) -> ModelShape:
    """Return the shape of a Qwen2.5, whose queries, keys and values have biases."""
    own = width // heads
    return ModelShape(
        layers,
        width,
        inner,
        heads,
        kv_heads,
        vocabulary,
        tied,
        own,
        bias=width + 2 * kv_heads * own,
        biases=3,
    )


SHAPES: Mapping[str, ModelShape] = {  # as published: Qwen2.5
    "0.5 B": _qwen(24, 896, 4864, 14, 2, 151_936, True),
    "1.5 B": _qwen(28, 1536, 8960, 12, 2, 151_936, True),
    "3 B": _qwen(36, 2048, 11_008, 16, 2, 151_936, True),
    "7 B": _qwen(28, 3584, 18_944, 28, 4, 152_064, False),
    "14 B": _qwen(48, 5120, 13_824, 40, 8, 152_064, False),
    "32 B": _qwen(64, 5120, 27_648, 40, 8, 152_064, False),
}


def setting_of(cards: int = 1, rank: int = 0, checkpointing: bool = True) -> LearnerSetting:
    """Return how a learner on CUDA is set."""
    return LearnerSetting(
        half=True, rank=rank, half_base=bool(rank), checkpointing=checkpointing, cards=cards
    )


def memory(
    shape: ModelShape, tokens: int, *, cards: int = 1, rank: int = 0, checkpointing: bool = True
) -> LearnerBytes:
    """Return what a learner takes on each of ``cards``, its weights in parts where there are several.

    Args:
        shape: of the model.
        tokens: of the only row of a micro-batch, all of them sampled.
        cards: that divide weights, gradients and moments; activations are not divided.
        rank: of adapters on all matrices; 0 trains all weights.
        checkpointing: whether layers are computed again in the backward pass.
    """
    return learner_bytes(shape, setting_of(cards, rank, checkpointing), MicroBatch(tokens, tokens, tokens))


def loaded(shape: ModelShape, rank: int = 0) -> float:
    """Return the bytes that a card takes at the start, where each learner has the model whole before it keeps its part."""
    return loaded_bytes(shape, setting_of(rank=rank))


def cards_for(shape: ModelShape, tokens: int, *, rank: int = 0) -> int:
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
            "is [on a page of its own](gpu.md#measured), and [how far the formula is from it](#beside-what-was-measured) below. `turnwise plan RECIPE`\n"
            "[reckons a recipe of yours](how-to/plan.md) by the same formulas."
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


def _cell(shape: ModelShape, tokens: int, rank: int) -> str:
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
        lines.append(f"| {name} | {found:.2f} | {(said.all - said.held) / tokens / 1e6:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
