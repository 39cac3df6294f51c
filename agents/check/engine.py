"""Requirements of engines, on a small random model that is made for the purpose."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.engines.registry import changes_in_flight, check_installed, open_engine
from turnwise.errors import MissingDependencyError
from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require, says_what_it_is

VOCAB, CONTEXT = 320, 64
CLOSE = 1e-3  # nats, between the log-probabilities of sampling and of scoring
SAMPLING = Sampling(max_tokens=8)


@functools.cache
def _model() -> str:
    from turnwise.agents.models.small import build_small_model

    folder = Path(tempfile.mkdtemp(prefix="turnwise-check-"))
    texts = ["a small model for a small test " * 4]
    size: dict[str, Any] = {"vocab_size": VOCAB, "layers": 2, "width": 64, "heads": 2, "context": CONTEXT}
    return str(build_small_model(folder, texts, **size, seed=1))


@contextmanager
def _opened(entry: Component) -> Iterator[Any]:
    try:
        check_installed(entry.name)
    except MissingDependencyError as error:
        raise NotTested(error.cause) from None
    options = {"device": "cpu", "context_length": CONTEXT, "max_sequences": 4}
    engine = open_engine(entry.name, _model(), **options)
    try:
        yield engine
    finally:
        engine.close()


def _sample(
    engine: Any, *seeds: int, sampling: Sampling = SAMPLING, stop: tuple[int, ...] = ()
) -> list[Completion]:
    async def run() -> list[Completion]:
        asked = [engine.generate([5 + seed, 6, 7], sampling, stop_ids=stop, seed=seed) for seed in seeds]
        return list(await asyncio.gather(*asked))

    return asyncio.run(run())


def samples_tokens(entry: Component) -> None:
    """Token ids of the model, at most as many as asked, each with its log-probability and the weights' version."""
    with _opened(entry) as engine:
        for found in _sample(engine, *range(6)):
            require(0 < len(found.token_ids) <= SAMPLING.max_tokens, f"{len(found.token_ids)} tokens came.")
            require(len(found.logprobs) == len(found.token_ids), "Not every token has a log-probability.")
            require(all(0 <= token < VOCAB for token in found.token_ids), "A token is not of the model.")
            require(all(logp <= 1e-6 for logp in found.logprobs), "A log-probability is above 0.")
            require(found.versions[-1].version == engine.version, "The version is not that of the weights.")


def seeds_decide(entry: Component) -> None:
    """The same seed gives the same tokens, whatever else is sampled beside it; another one gives others."""
    with _opened(entry) as engine:
        together = [found.token_ids for found in _sample(engine, *range(6))]
        alone = [_sample(engine, seed)[0].token_ids for seed in range(6)]
        require(together == alone, "What else is in flight changes what is sampled.")
        require(len(set(together)) > 1, "Every seed gives the same tokens.")


def stops(entry: Component) -> None:
    """A stop id ends the answer and is its last token; nothing else of the kind is in it."""
    with _opened(entry) as engine:
        free = _sample(engine, 0)[0]
        stop = free.token_ids[2]
        found = _sample(engine, 0, stop=(stop,))[0]
        require(found.stopped and not free.stopped, "`stopped` does not say whether a stop id ended it.")
        require(found.token_ids[-1] == stop, "The stop id is not the last token.")
        require(found.token_ids.count(stop) == 1, "It went on after a stop id.")


def scores_agree(entry: Component) -> str:
    """Log-probabilities that it reports of sampled tokens are those that it scores them with (a run can train on it)."""
    with _opened(entry) as engine:
        if not hasattr(engine, "score") or not hasattr(engine, "load_weights"):
            raise NotTested("It has no score() and load_weights(): it plays, and cannot sample for a run.")
        found = _sample(engine, 1)[0]
        scored = engine.score([[6, 6, 7, *found.token_ids]])[0][-len(found.token_ids) :]
        gap = max(abs(a - b) for a, b in zip(scored, found.logprobs, strict=True))
        require(gap < CLOSE, f"They differ by {gap:.2g} nats.")
        return f"to {gap:.1g} nats"


def weights_change_under_way(entry: Component) -> None:
    """Weights are replaced while an answer is sampled: it goes on, and each part names the version that sampled it."""
    from safetensors.torch import load_file

    weights = load_file(Path(_model(), "model.safetensors"))
    weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
    asked = Sampling(max_tokens=40)

    async def change(engine: Any) -> Completion:
        under_way = asyncio.create_task(engine.generate([6, 6, 7], asked, stop_ids=(), seed=1))
        await engine.generate([8], Sampling(max_tokens=5), stop_ids=(), seed=2)
        load = functools.partial(engine.load_weights, weights.items(), engine.version + 1, kv="recompute")
        await asyncio.to_thread(load)
        return await under_way

    with _opened(entry) as engine:
        if not hasattr(engine, "load_weights"):
            raise NotTested("It has no load_weights(): it plays, and cannot sample for a run.")
        if not changes_in_flight(engine):
            raise NotTested("Its load_weights takes no kv: it samples for runs whose scale.staleness is 0.")
        before, alone = engine.version, _sample(engine, 1, sampling=asked)[0]
        found = asyncio.run(change(engine))
        named = [span.version for span in found.versions]
        require(named == [before, before + 1], f"It names the versions {named}.")
        require(found.token_ids == alone.token_ids, "The same weights sampled something else.")


REQUIREMENTS: dict[str, Requirements] = {
    "engine": {
        "says what it is": says_what_it_is,
        "samples tokens": samples_tokens,
        "the seed decides": seeds_decide,
        "a stop id stops": stops,
        "scores agree with sampling": scores_agree,
        "weights change under way": weights_change_under_way,
    }
}
