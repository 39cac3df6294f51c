"""The difference where nothing that was tried explains the log: the weights, or what the engine read."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, detects
from turnwise.trainers.mismatch.fitting import after_a_system_prompt, fitted, of_prompts, of_weights, worth


@detects(cost=6, numbers=True)
def unknown(case: MismatchCase) -> Iterator[Explanation]:
    """Fit a few weights, and the tokens that prompts have in common, to half of the rows, and set them against the others."""
    if not case.felt or not worth(case):
        return
    if (found := fitted(case, of_weights(case))) is not None:
        yield Explanation(
            "stale_weights",
            "weights that nobody named: gains and biases that were fitted to half of the rows explain the others",
            found.expected_N,
            data={"fitted": "weights"},
        )
    systems = after_a_system_prompt(case)
    for ids in ({}, systems) if systems else ({},):
        where = "system prompt" if ids else "prompt"
        if (found := fitted(case, of_prompts(case, ids))) is not None:
            yield Explanation(
                "wrong_template",
                f"the engine read another {where} than those that were tried: one that was fitted to half of the rows explains the others",
                found.expected_N,
                data={"fitted": where},
            )
