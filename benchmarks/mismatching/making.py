"""A small model that nobody used while detectors were built: it has read the pages of `docs/`, as replies of conversations."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from torch import Tensor

from turnwise.agents.models.loading import load_causal, load_tokenizer
from turnwise.agents.models.small import build_small_model

STEPS, BATCH, LENGTH, RATE = 240, 12, 128, 2e-3
_WORDS = 40


def made(folder: Path, pages: Path) -> Path:
    """Train the model, unless it is there; the same pages give the same model."""
    if (folder / "config.json").is_file():
        return folder
    texts = [path.read_text("utf-8") for path in sorted(pages.rglob("*.md"))][:60]
    build_small_model(folder, texts, layers=3, width=128, heads=4, vocab_size=1024, context=1024, seed=5)
    tokenizer, model = load_tokenizer(folder), load_causal(str(folder), torch.float32).train()
    rng, words = random.Random("pages"), " ".join(texts).split()

    def row() -> list[int]:
        at, cut = rng.randrange(len(words) - 3 * _WORDS), rng.randint(4, _WORDS)
        talk = [
            {"role": "user", "content": " ".join(words[at : at + 12])},
            {"role": "assistant", "content": " ".join(words[at + 12 : at + 12 + cut])},
        ]
        ids: list[int] = tokenizer(
            tokenizer.apply_chat_template(talk, tokenize=False), add_special_tokens=False
        )["input_ids"]
        return (ids * 8)[:LENGTH]

    torch.manual_seed(5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        ids_RT: Tensor = torch.tensor([row() for _ in range(BATCH)])
        optimizer.zero_grad()
        model(input_ids=ids_RT, labels=ids_RT).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    return folder


__all__ = ["made"]
