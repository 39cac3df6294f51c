"""The answer in words, with where the fault begins and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from turnwise.trainers.mismatch.case import FLOAT32, MismatchCase
from turnwise.trainers.mismatch.core import FaultPlace, MismatchReport, RankedFault
from turnwise.trainers.mismatch.fitting import worth
from turnwise.trainers.mismatch.weighed import Weighed

TITLES = {
    "none": "No fault",
    "stale_weights": "Stale weights",
    "missing_adapter": "Missing adapter",
    "retokenized_history": "Re-tokenised history",
    "truncated_sampling": "Truncated sampling",
    "temperature": "Another temperature",
    "wrong_template": "Wrong chat template",
    "wrong_end_token": "Wrong end token",
    "quantized_engine": "Quantised engine",
}
REMEDIES = {
    "none": "",
    "stale_weights": "Compare the version that the engine reports after each push with the trainer's, and empty its prefix cache; a canary "
    "after each push would have seen it.",
    "missing_adapter": "Send the adapter, or merged weights, to the engine, and look after a push whether its answers change.",
    "retokenized_history": "Keep the ids that were sampled, and give the engine ids and not messages.",
    "truncated_sampling": "Sample without top-p, top-k and min-p, or compute the trainer's log-probabilities over the same tokens.",
    "temperature": "Divide the trainer's logits by the temperature, or sample at 1.",
    "wrong_template": "Render the prompt once, with the model's own template, and hand the same ids to the engine and the trainer.",
    "wrong_end_token": "Give the engine the model's end token as stop token, and train on it where it was sampled.",
    "quantized_engine": "Correct for it by truncated importance weights, or sample with the trainer's weights.",
}
_NEAR = 4.0
"""Another fault is named too where its evidence is so near, in nats."""
_SOFT = "No candidate explains the log; the form of the differences says so."


def reported(
    case: MismatchCase,
    chosen: Weighed | None,
    tried: Sequence[Weighed],
    notes: Sequence[str] = (),
) -> MismatchReport:
    """Put the answer together."""
    fault = chosen.explanation.fault if chosen else ("stale_weights" if case.felt else "none")
    begins = (
        None if fault == "none" else (chosen.explanation.begins if chosen else None) or _first(case, chosen)
    )
    rival = _rival(chosen, tried)
    ranked = sorted(tried, key=lambda one: (-one.explanation.evidence if not one.tokens else 0.0, one.left))
    return MismatchReport(
        fault,
        _confidence(case, chosen, rival),
        [*_said(case, chosen, fault, begins, rival)],
        begins,
        _figures(case, chosen),
        [
            RankedFault(
                one.explanation.fault,
                one.explanation.words,
                round(one.left, 4) if one.tokens else None,
                round(one.explanation.evidence, 2),
            )
            for one in ranked
        ],
        chosen.explanation.data if chosen else {},
        notes,
    )


def _figures(case: MismatchCase, chosen: Weighed | None) -> dict[str, float]:
    size_N = np.abs(case.gap_N[case.known_N])
    found = {
        "rows": float(len(case.rows)),
        "tokens": float(len(case.row_N)),
        "mean_gap": float(size_N.mean()),
        "largest_gap": float(size_N.max()),
        "rounding_gap": case.noise.mean * float(case.unit_N.mean()),
        "affected_rows": float(len(np.unique(case.row_N[case.affected_N]))),
        "affected_tokens": float(case.affected_N.sum()),
    }
    if chosen is not None and chosen.tokens:
        found["left"] = round(chosen.left, 5)
    return found


def _rival(chosen: Weighed | None, tried: Sequence[Weighed]) -> Weighed | None:
    """The explanation by another fault for which the choice of tokens speaks most, where the chosen one rests on that."""
    if chosen is None or chosen.tokens or chosen.explanation.evidence <= 0:
        return None
    others = [one for one in tried if not one.tokens and one.explanation.fault != chosen.explanation.fault]
    return max(others, key=lambda one: one.explanation.evidence, default=None)


def _confidence(case: MismatchCase, chosen: Weighed | None, rival: Weighed | None) -> float:
    if chosen is None:
        return 0.6 if case.felt else 0.95
    evidence = chosen.explanation.evidence
    if evidence > 0:
        against = math.exp(rival.explanation.evidence - evidence) if rival else 0.0
        return 1 / (1 + math.exp(-min(evidence, 7.0)) + against)
    return min(0.99, max(0.5, 1 - chosen.left / 2))


def _first(case: MismatchCase, chosen: Weighed | None) -> FaultPlace | None:
    """The first token that differs from the model by more than the explanation leaves; where nothing explains, by more than rounding."""
    size_N = np.where(case.known_N, np.abs(case.gap_N) / case.unit_N, 0.0)
    if chosen is not None and chosen.tokens:
        found = np.flatnonzero(size_N > 10 * chosen.rest + 3 * FLOAT32)
        affected = np.flatnonzero(case.affected_N)
        if len(found) and (not len(affected) or found[0] < affected[0]):
            return case.place(int(found[0]))
    found = np.flatnonzero(case.affected_N if case.affected_N.any() else case.known_N)
    return case.place(int(found[0])) if len(found) else None


def _said(
    case: MismatchCase,
    chosen: Weighed | None,
    fault: str,
    begins: FaultPlace | None,
    rival: Weighed | None,
) -> Iterator[str]:
    size_N = np.abs(case.gap_N[case.known_N])
    precision = str(case.models.engine_dtype or "half precision").removeprefix("torch.")
    sizes = (
        f"The log-probabilities differ by {size_N.mean():.2g} nats on average and {size_N.max():.2g} at most; rounding in "
        f"{precision} makes about {case.noise.mean * case.unit_N.mean():.1g}."
    )
    if fault == "none":
        yield f"{TITLES[fault]}: the log is what this model samples and reports, as far as {len(case.row_N)} tokens in {len(case.rows)} rows tell."
        yield sizes
        return
    words = chosen.explanation.words if chosen else _SOFT[0].lower() + _SOFT[1:].rstrip(".")
    yield f"{TITLES[fault]}: {words}."
    if begins is not None:
        yield f"It begins in {begins}" + _version(case, begins) + "."
    yield sizes
    if case.felt:
        rows = len(np.unique(case.row_N[case.affected_N]))
        yield f"{rows} of {len(case.rows)} rows are affected, with {case.affected_N.sum()} of {len(case.row_N)} sampled tokens."
    if chosen is not None and chosen.tokens:
        yield f"With this explanation {chosen.left:.1%} of the differences are left, on {chosen.tokens} tokens."
    elif chosen is not None and chosen.explanation.evidence < 500:
        yield f"The tokens are e^{chosen.explanation.evidence:.0f} times likelier so than under the model and the declared settings."
    if chosen is None and case.felt and not worth(case):
        yield (
            "Weights and prompts that nobody named are told apart by a fit, which takes too long on a CPU with a model of this size: ask "
            "again on a GPU, or name what may have run (--also)."
        )
    if chosen is not None and rival is not None:
        ahead = chosen.explanation.evidence - rival.explanation.evidence
        if ahead < _NEAR:
            other = rival.explanation
            yield f"Nearly as likely, by a factor of e^{ahead:.0f}: {TITLES[other.fault].lower()}, {other.words}."
    yield REMEDIES[fault]


def _version(case: MismatchCase, begins: FaultPlace) -> str:
    row = next((row for row in case.rows if row.number == begins.row), None)
    return (
        "" if row is None or row.version is None else f", of weights that the log calls version {row.version}"
    )
