"""A partition while weights are on their way: what an engine has afterwards, and what it samples.

``python benchmarks/transfer_cuts.py [--cuts N]``: two torch servers, each in a network namespace of its own and without the trainer's
shared memory, at the end of a cable of 40 Mbit a second. New weights are published again and again; each time the cable to one of the
two is pulled when part of them has passed, and plugged in again once the engine is missed. Every answer is compared with that of an
engine in process with the weights that were published: while one is cut off, after it is back, all at once. Needs root, ``ip`` and ``tc``. Prints JSON
like ``turnwise bench``; the code is 1 where an answer is another one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from engine_kills import CONTEXT, Cable, Round, Server, judged, make_round, sample, serving, wait_for

from turnwise.agents.remote.engine import RemoteFleet
from turnwise.agents.remote.options import RemoteOptions
from turnwise.machine import describe

PUBLISH_S = 6.0
"""What an engine may take to have the weights; whole, they take two seconds over the cable."""


class _Cut(NamedTuple):
    """What one cut showed: the part of the weights that had passed, and seconds from the cut until the engine was back."""

    passed: float
    back_s: float
    found: Counter[str]


def cut_transfers(model: Path, cuts: int, cables: Sequence[Cable]) -> dict[str, Any]:
    """Publish weights so often, each time cutting one engine off in the middle of them."""
    from turnwise.agents.engines.torch import TorchEngine

    token = ["--token-file", str(cables[0].token_file)]
    servers = [Server(model, "torch", *token, cable=cable) for cable in cables]
    wait_for(lambda: all(server.answers for server in servers))
    options = RemoteOptions(
        token=cables[0].token, publish_host=cables[0].gate, silence_s=5.0, patience_s=600, publish_s=PUBLISH_S
    )
    fleet = RemoteFleet([server.url for server in servers], context_length=CONTEXT, options=options)
    here = TorchEngine(str(model), context_length=CONTEXT, max_sequences=16)
    done: list[_Cut] = []
    try:
        fleet.load_weights(_changed(here, 1), 1)  # by whole transfers, once
        for version in range(2, cuts + 2):
            done.append(_cut(fleet, here, cables[version % 2], servers[version % 2], version))
        failures = sum((Counter(row.failures) for row in fleet.health()), Counter[str]())
    finally:
        fleet.close()
        here.close()
        for cable, server in zip(cables, servers, strict=True):
            cable.plug()
            server.end(signal.SIGTERM)
    found = sum((cut.found for cut in done), Counter[str]())
    return {
        "cuts": len(done),
        "engines": len(servers),
        "passed_least": round(min(cut.passed for cut in done), 2),
        "passed_most": round(max(cut.passed for cut in done), 2),
        "answers": found["answers"],
        "identical": found["identical"],
        "failures": dict(failures),
        "seconds_until_back_mean": round(sum(cut.back_s for cut in done) / len(done), 2),
    }


def _cut(fleet: RemoteFleet, here: Any, cable: Cable, victim: Server, version: int) -> _Cut:
    """Publish one version, and cut one engine off meanwhile."""
    weights = _changed(here, version)
    size = sum(tensor.numel() * tensor.element_size() for _, tensor in weights)
    before = cable.sent
    publishing = threading.Thread(target=fleet.load_weights, args=(weights, version))
    publishing.start()
    share = 0.2 + 0.6 * (version % 5) / 4
    wait_for(lambda: cable.sent - before > share * size, 60)
    cable.pull()
    began, passed = time.monotonic(), (cable.sent - before) / size
    publishing.join()
    assert passed < 1, "it was not cut in the middle"
    assert not next(row for row in fleet.health() if row.name == victim.name).serving
    here.load_weights(weights, version)
    given: Round = make_round(here, answers=12, tokens=60)
    found = judged(given, sample(fleet, given.prompts, given.sampling))  # by the one that is left
    cable.plug()
    wait_for(lambda: serving(fleet) == 2)
    back = time.monotonic() - began
    found += judged(given, sample(fleet, given.prompts, given.sampling))
    return _Cut(passed, back, found)


def _changed(engine: Any, version: int) -> list[tuple[str, Any]]:
    """Weights that differ from those of every other version."""
    import torch

    chance = torch.Generator().manual_seed(version)
    return [
        (name, tensor + 0.02 * torch.randn(tensor.shape, generator=chance))
        for name, tensor in engine.model.state_dict().items()
        if name != "lm_head.weight"  # tied
    ]


def large_model(folder: Path) -> Path:
    """A checkpoint of ten megabytes; of few tokens, since in a large vocabulary draws are at rounding more often."""
    import torch
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=320, hidden_size=128, intermediate_size=3072, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=64, max_position_embeddings=CONTEXT, initializer_range=0.2, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).eval().save_pretrained(folder)
    return folder


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="turnwise-cuts-") as folder, contextlib.ExitStack() as stack:
        model = large_model(Path(folder))
        cables = [
            stack.enter_context(contextlib.closing(Cable(number, Path(folder), apart=True)))
            for number in range(2)
        ]
        found = cut_transfers(model, asked.cuts, cables)
    print(json.dumps({"name": "engine kills transfer", "machine": describe(), "figures": found}, indent=2))
    return 0 if found["identical"] == found["answers"] > 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
