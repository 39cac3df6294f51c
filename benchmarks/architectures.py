"""Is the learner the model that it trains, for every architecture of the installed transformers that can be built tiny?

``python benchmarks/architectures.py > benchmarks/architectures.json`` makes each (:mod:`turnwise.trainers.bench.architectures`), with what
scales its logits set to other than 1, and prints JSON: gaps of log-probabilities in nats of learner, engine and checkpoint from the
model's own forward pass, why one was refused, and why one could not be made. About five CPU minutes.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

from turnwise.machine import describe, installed
from turnwise.trainers.bench.architectures import ArchitectureGaps, architectures, examine


def kind(one: ArchitectureGaps) -> str:
    """What came of an architecture, in a word or two."""
    if one.not_made:
        return "not made"
    return "refused by name" if one.refused else "holds" if one.holds else "differs"


def main() -> None:
    """Examine those that are named, or all, and print what was found."""
    found: list[ArchitectureGaps] = []
    began = time.process_time()
    for name in sys.argv[1:] or architectures():
        found.append(examine(name))
        print(kind(found[-1]), found[-1], file=sys.stderr, flush=True)
    rows: list[dict[str, Any]] = [
        {"kind": kind(one)}
        | {key: value for key, value in one._asdict().items() if value not in ("", None, {})}
        for one in found
    ]
    machine = describe() | {"transformers": installed("transformers")}
    counts = dict(sorted(Counter(map(kind, found)).items()))
    print(
        json.dumps(
            {
                "machine": machine,
                "cpu_seconds": round(time.process_time() - began),
                "counts": counts,
                "architectures": rows,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
