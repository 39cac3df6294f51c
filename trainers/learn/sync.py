"""Bring the trainer's weights into the engine, and prove that the engine runs them.

The proof is a canary (docs/architecture.md#runs): after every push, engine and trainer both compute the
log-probabilities of a few fixed token sequences. Where they disagree by more than rounding explains,
the run stops. An engine can go wrong here without a word: vLLM on a CPU keeps a packed copy of a tied
output head, and a push without ``lm_head.weight`` leaves the old head in use.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.agents.core import Kv
from turnwise.errors import EngineError, RunError, TurnwiseError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.learn.attention import hidden_states_of, refuse_trees, why_not, with_trees
from turnwise.trainers.learn.mesh import MeshSeat
from turnwise.trainers.learn.model import base_of, hidden_states, token_stats
from turnwise.trainers.learn.trainable_engine import TrainableEngine
from turnwise.trainers.learn.tree import tree_of
from turnwise.trainers.learn.weights import weights_of

CANARY_SEQUENCES = 2
CANARY_TOKENS = 24
FLOAT32 = 1e-3
"""Largest difference of a log-probability, in nats, that an engine in float32 is allowed: 2e-6 were seen."""
SAME = 1e-4
"""The same for the learner, which computes with the model's own weights."""
TREE = 5e-3
"""The same for a tree beside its rows: 1e-5 were seen; 0.05 where a model reads trees wrongly."""
OTHERS = 0.15
"""The same for an engine in a type in which the trainer cannot compute (float8)."""
HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
MEAN, LARGEST = 3.0, 5.0
"""Gaps allowed between the engine's log-probabilities and the trainer's, on average over tokens and at most, as multiples of what rounding in
the engine's type does to the trainer's own. That is measured anew each time, for it depends on the model: one that was trained is sure of
itself, its logits are large, and the largest of its differences was 0.06 to 0.5 nats in bfloat16 where a random model has 0.03. With the
same weights the ratios were at most 1.4 and 2.4 (docs/lab-notes/README.md), with weights of ten updates ago at least 5.3 on average."""
ATTEMPTS = 4
"""Orders of the tokens, all of which have to speak against the engine. Rounding can lead a mixture of experts to another one, which no
rounding of the trainer's need show; with the same weights one order in ten did so. A wrong row of an embedding is wrong in all of them."""


class SyncReport(NamedTuple):
    """Seconds that a weight update took, and how well the engine agreed with the trainer after it."""

    version: int
    load_seconds: float
    canary_seconds: float
    max_logp_gap: float  # in nats
    mean_logp_gap: float

    @property
    def seconds(self) -> float:
        return self.load_seconds + self.canary_seconds


def check_learner(model: nn.Module) -> None:
    """Compare the log-probabilities that are learned from with those of the model's own forward pass.

    The canary compares engines with the latter, and would not notice a learner of another distribution.

    Raises:
        RunError: they differ, or tokens see what follows them.
    """
    sequences = canary_sequences(_text_config(model).vocab_size, 0)
    name = type(base_of(model)).__name__
    try:
        learned = learned_logprobs(model, sequences)
    except Exception as error:  # whatever its forward pass does otherwise than those that are known
        raise RunError(
            f"{name} cannot be trained: {type(error).__name__}: {' '.join(str(error).split())[:160]}",
            "Use a model of another architecture.",
        ) from error
    gap = (learned - trainer_logprobs(model, sequences)).abs().max().item()
    if not gap <= SAME:
        raise RunError(
            f"{name} cannot be trained: what is learned from differs from its own forward pass by {gap:.3g} nats.",
            "Use a model of another architecture, and report this one.",
        )
    _check_order(model, sequences)
    if not why_not(model):
        _try_tree(model, sequences)


def _check_order(model: nn.Module, sequences: Sequence[Sequence[int]]) -> None:
    """Refuse a model whose tokens see what follows them: the probability of an action would depend on what came of it."""
    trunk, other = sequences
    half = len(trunk) // 2
    logp_RT = learned_logprobs(model, [trunk, [*trunk[:half], *other[half:]]])[:, : half - 1]
    gap = (logp_RT[0] - logp_RT[1]).abs().max().item()
    if not gap <= SAME:
        raise RunError(
            f"{type(base_of(model)).__name__} cannot be trained: what follows a token changes its log-probability by {gap:.3g} nats.",
            "Use a causal model; of an encoder, one whose config says is_decoder.",
        )


def _try_tree(model: nn.Module, sequences: Sequence[Sequence[int]]) -> None:
    """Read a tree of rows that begin alike, and have models of this class read rows only where it gives something else.

    What a config says is not all: layers may keep the tree from their attention, and positions may begin elsewhere than at 0.
    """
    trunk, other = sequences
    half = len(trunk) // 2
    rows = [[*trunk], [*trunk[:half], *other[half:]], [*trunk[:half], *other[: len(trunk) - half]]]
    try:
        gap = (learned_logprobs(model, rows, as_tree=True) - learned_logprobs(model, rows)).abs().max().item()
    except TurnwiseError as error:
        refuse_trees(model, error.cause.rstrip("."))
        return
    except Exception as error:  # noqa: BLE001  rows are read all the same
        refuse_trees(
            model, f"a tree of it fails: {type(error).__name__}: {' '.join(str(error).split())[:160]}"
        )
        return
    if not gap <= TREE:
        refuse_trees(model, f"a tree gives log-probabilities {gap:.3g} nats from those of its rows")


@torch.no_grad()
def learned_logprobs(
    model: nn.Module, sequences: Sequence[Sequence[int]], *, as_tree: bool = False
) -> Tensor:
    """The same as :func:`trainer_logprobs`, computed as the learner does."""
    id_RT = torch.tensor(sequences, device=weights_of(model).device)
    training = model.training
    model.eval()
    try:
        with _computing_in(model, torch.float32):
            hidden_RTD = (_tree_states if as_tree else hidden_states)(model, id_RT)[:, :-1]
            found = token_stats(model, hidden_RTD.flatten(0, 1), id_RT[:, 1:].flatten(), 1.0)
    finally:
        model.train(training)
    return found.logp_N.view(len(id_RT), -1).cpu()


def _tree_states(model: nn.Module, id_RT: Tensor) -> Tensor:
    tree = tree_of(id_RT, torch.full((len(id_RT),), id_RT.shape[1]))
    with with_trees(model):
        return hidden_states_of(model, tree, id_RT.device)[tree.node_RT.to(id_RT.device)]


def push_weights(
    model: nn.Module,
    engine: TrainableEngine,
    version: int,
    *,
    tolerance: float | None = None,
    kv: Kv | None = None,
) -> SyncReport:
    """Copy the weights of ``model`` into ``engine`` and check that it uses them.

    Args:
        model: a Hugging Face causal model, or a peft model, whose adapters are merged on the way, or go alone to an engine
            that can add them (:class:`~turnwise.trainers.learn.trainable_engine.TakesAdapters`).
        engine: takes them over and forgets what it computed with the old ones.
        version: the number that completions carry from now on.
        tolerance: largest accepted difference of a log-probability; what rounding in the engine's type explains if None.
        kv: what becomes of requests in flight; None: there must not be any.

    Raises:
        EngineError: the canary failed: the engine runs other weights than the trainer.
    """
    began = time.perf_counter()
    weights_of(model).publish(engine, version, kv=kv)
    loaded = time.perf_counter()
    gap = check_canary(model, engine, version, tolerance=tolerance)
    return SyncReport(version, loaded - began, time.perf_counter() - loaded, *gap)


def check_canary(
    model: nn.Module, engine: TrainableEngine, version: int, *, tolerance: float | None = None
) -> tuple[float, float]:
    """Largest and mean difference of the canary's log-probabilities, in nats.

    The sequences are random tokens, others for each version, so that over a run all embeddings are
    looked at. What stays below the tolerance (a single embedding off by little) is not seen, and
    neither is an update so small that old and new weights agree to within it; it then adds up until
    it is.

    Raises:
        EngineError: they are beyond ``tolerance``, or what rounding in the engine's type explains, or not numbers.
    """
    told = ""
    for attempt in range(ATTEMPTS):
        sequences = canary_sequences(_text_config(model).vocab_size, version, attempt)
        theirs = torch.tensor(engine.score(sequences))
        ours = trainer_logprobs(model, sequences)
        gap = (theirs - ours).abs()
        largest, mean = gap.max().item(), gap.mean().item()
        allowed = (
            _Allowed(tolerance, tolerance)
            if tolerance is not None
            else _explained(model, sequences, ours, engine.dtype)
        )
        if largest <= allowed.largest and mean <= allowed.mean:
            return largest, mean
        told = told or (
            f"by up to {largest:.3g} and by {mean:.3g} on average (accepted for {engine.dtype}: {allowed.largest:.3g} and "
            f"{allowed.mean:.3g})"
        )
    raise EngineError(
        f"After weights version {version} the engine's log-probabilities differ from the trainer's {told}, in "
        f"{ATTEMPTS} orders of the tokens: it runs other weights.",
        "Nothing was trained on them. Check that every tensor is handed over (with tied embeddings "
        "lm_head.weight too) and that both load the same architecture.",
    )


class _Allowed(NamedTuple):
    """Differences of log-probabilities that are no sign of other weights, in nats."""

    largest: float
    mean: float


def _explained(model: nn.Module, sequences: Sequence[Sequence[int]], ours: Tensor, dtype: str) -> _Allowed:
    """Return the gaps that the engine's precision explains."""
    if dtype == "float32":
        return _Allowed(FLOAT32, FLOAT32)
    if dtype not in HALVES:
        return _Allowed(OTHERS, OTHERS)
    rounding = (trainer_logprobs(model, sequences, computed_in=HALVES[dtype]) - ours).abs()
    rounding = rounding[rounding.isfinite()]  # float16 may overflow where the engine's kernels do not
    if not len(rounding):
        return _Allowed(OTHERS, OTHERS)
    largest, mean = LARGEST * rounding.max().item(), MEAN * rounding.mean().item()
    return _Allowed(max(largest, FLOAT32), max(mean, FLOAT32))


def canary_sequences(vocab_size: int, version: int, attempt: int = 0) -> list[list[int]]:
    """Token sequences that depend on nothing but the vocabulary's size and the version, in one of many orders."""
    rng = derive_rng("canary", vocab_size, version)
    tokens = [rng.randrange(vocab_size) for _ in range(CANARY_SEQUENCES * CANARY_TOKENS)]
    for _ in range(attempt):
        rng.shuffle(tokens)
    return [tokens[i : i + CANARY_TOKENS] for i in range(0, len(tokens), CANARY_TOKENS)]


@torch.no_grad()
def trainer_logprobs(
    model: nn.Module, sequences: Sequence[Sequence[int]], *, computed_in: torch.dtype = torch.float32
) -> Tensor:
    """log p(token | all before it), (sequences, length - 1), on the CPU.

    Nothing else may read the model meanwhile: each module's weights are in ``computed_in`` while it computes.

    Args:
        model: the trainer's, at whatever precision it keeps its weights.
        sequences: all of one length.
        computed_in: the type of everything that it computes.
    """
    weights_of(model).shared(ScoreCall([list(ids) for ids in sequences], computed_in))
    id_RT = torch.tensor(sequences, device=weights_of(model).device)
    training = model.training
    model.eval()
    try:
        with _computing_in(model, computed_in):
            logits_RTV = model(input_ids=id_RT, use_cache=False).logits[:, :-1]
    finally:
        model.train(training)
    logp_RTV = logits_RTV.float().log_softmax(-1)
    return logp_RTV.gather(-1, id_RT[:, 1:, None])[..., 0].cpu()


class ScoreCall(NamedTuple):
    """Compute the trainer's side of a canary, as the first learner does."""

    sequences: list[list[int]]
    computed_in: torch.dtype

    def carried_out(self, seat: MeshSeat) -> None:
        """Take part, and compare nothing."""
        trainer_logprobs(seat.learner.model, self.sequences, computed_in=self.computed_in)


@contextmanager
def _computing_in(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Every module that has weights of its own computes in this type: they are in it meanwhile, and so is what it is given."""
    kept: dict[tuple[nn.Module, str], nn.Parameter] = {}

    def cast(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        for name, weight in module.named_parameters(recurse=False):
            if weight.is_floating_point() and weight.dtype != dtype:
                kept[module, name] = weight
                _own(module)[name] = weight.to(dtype)
        return tuple(x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x for x in given)

    def put_back(module: nn.Module, _given: object, _found: object) -> None:
        for name in [name for owner, name in kept if owner is module]:
            _own(module)[name] = kept.pop((module, name))

    with ExitStack() as hooks:
        for module in (one for one in model.modules() if _own(one)):
            hooks.callback(module.register_forward_pre_hook(cast).remove)
            hooks.callback(module.register_forward_hook(put_back, always_call=True).remove)
        yield


def _own(module: nn.Module) -> dict[str, Any]:
    """A module's own parameters, by which it finds them: what is put there for a while is none to an optimizer."""
    return module._parameters  # pyright: ignore[reportPrivateUsage]


def _text_config(model: Any) -> Any:
    return base_of(model).config.get_text_config()
