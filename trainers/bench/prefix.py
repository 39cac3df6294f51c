"""``turnwise bench prefix``: learning rows as a tree beside learning them row by row, through the learner's own update.

Both learn the same batch from the same weights, in turns, in this process: processor seconds, so that other work counts little.
Batches are made up (a group with a long prompt, a rollout tree) or, by ``turnwise bench prefix LOG``, the groups of the last
update of a run's episode log, learned by the model that lies beside it. Gradients are compared as they are before the step.
"""

from __future__ import annotations

import copy
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.agents.log.episode_log import LogReader
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.messages import Message, Messages
from turnwise.registry import get_component
from turnwise.tasks.core import Task
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.objective import LossTerm, Objective
from turnwise.trainers.learn.options import OptimizerOptions, Share
from turnwise.trainers.learn.tree import count_nodes

VOCABULARY = 1024
ROUNDS = 3


class Workload(NamedTuple):
    """Made-up groups: the tokens of each turn's prompt and action, and after which turns the leaves double."""

    shape: tuple[tuple[int, int], ...]
    members: int = 1
    forks: tuple[int, ...] = ()


WORKLOADS: Mapping[str, Workload] = {
    "group of 8 × (1,000 + 50)": Workload(((1000, 50),), members=8),
    "tree of 20 turns, 8 leaves": Workload(((130, 20), *[(30, 20)] * 19), forks=(5, 10, 15)),
}


def bench_prefix(log: str = "") -> dict[str, BenchmarkFigure]:
    """Measure each workload, or the last update of a log."""
    batches: dict[str, tuple[TrainingBatch, nn.Module]] = {}
    if log:
        file = Path(log)
        file = file / "episodes.jsonl.zst" if file.is_dir() else file
        update, batch = last_update(file)
        found = load_model(file.parent / "best" / "model", torch.device("cpu"))
        batches[f"update {update} of {file.parent.name}"] = batch, found
    else:
        for name, load in WORKLOADS.items():
            batches[name] = collate([made_up(load)]), small_model()
    figures: dict[str, BenchmarkFigure] = {}
    for name, (batch, model) in batches.items():
        for figure, value in compared(batch, model).items():
            figures[f"{name}: {figure}"] = value
    return figures


def compared(batch: TrainingBatch, model: nn.Module) -> dict[str, BenchmarkFigure]:
    """Return how many times faster the tree is, which share that is of the tokens that it saves, and how far gradients differ."""
    rows = batch.rows
    tokens, nodes = int(rows.length_R.sum()), count_nodes(rows.token_RT, rows.length_R)
    ways: tuple[Share, Share] = ("rows", "tree")
    learners = {share: Unmoved(copy.deepcopy(model), OptimizerOptions(share=share)) for share in ways}
    advantage_BK = advantages_of(batch)
    seconds: dict[str, list[float]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        for share in ways if number % 2 else ways[::-1]:
            before = time.process_time()
            learners[share].update(batch, advantage_BK, objective_of())
            if number:  # the first round loads kernels
                seconds[share].append(time.process_time() - before)
    ratios = [row / tree for row, tree in zip(seconds["rows"], seconds["tree"], strict=True)]
    pairs = list(zip(learners["rows"].gradients, learners["tree"].gradients, strict=True))
    largest = max(float(one.abs().max()) for one, _ in pairs)
    gap = max(float((one - other).abs().max()) for one, other in pairs)
    times = statistics.median(ratios)
    return {
        "times_rows": BenchmarkFigure(round(times, 2), "×", round(max(ratios) - min(ratios), 2)),
        "share_of_token_ratio": BenchmarkFigure(round(times / (tokens / nodes), 2), "of 1", 0.0),
        "tokens_saved": BenchmarkFigure(round(1 - nodes / tokens, 3), "of 1", 0.0),
        "max_gradient_gap": BenchmarkFigure(gap / largest, "of the largest", 0.0),
    }


class Unmoved(Learner):
    """Keeps each step's gradients instead of following them, so that all rounds learn from the same weights."""

    gradients: list[Tensor]

    def _descend(self, learning_rate: float) -> float:
        parameters = [parameter for held in self.weights for parameter in held.trainable()]
        self.gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        self.optimizer.zero_grad(set_to_none=True)
        return 0.0


def objective_of() -> Objective:
    """Return a clipped loss with entropy, by the mean over tokens."""
    terms = [LossTerm(name, get_component("loss", name).build({}), 1.0) for name in ("clip", "entropy")]
    return Objective(
        terms, get_component("reduce", "token_mean").build({}), get_component("correction", "none").build({})
    )


def advantages_of(batch: TrainingBatch) -> Tensor:
    """Return an advantage of either sign for each turn."""
    noise_BK = torch.randn(batch.turns.mask_BK.shape, generator=torch.Generator().manual_seed(0))
    return noise_BK * batch.turns.mask_BK


def small_model() -> nn.Module:
    """Return a model of 1.1 million random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=16384,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config)


def made_up(load: Workload) -> list[Episode]:
    """Return a group of random tokens whose members share what the workload says."""
    chance = random.Random(0)
    first = [_reply(chance, prompt, action) for prompt, action in load.shape]
    leaves = [first]
    for _ in range(load.members - 1):
        leaves.append([first[0]._replace(**_action(chance, load.shape[0][1])), *first[1:]])
    for turn in load.forks:
        for leaf in [*leaves]:
            own = [_reply(chance, prompt, action) for prompt, action in load.shape[turn:]]
            leaves.append([*leaf[:turn], own[0]._replace(prompt_ids=leaf[turn].prompt_ids), *own[1:]])
    return [_episode(leaf) for leaf in leaves]


def _reply(chance: random.Random, prompt: int, action: int) -> Reply:
    prompt_ids = tuple(chance.randrange(VOCABULARY) for _ in range(prompt))
    return Reply(Message("assistant", "!"), prompt_ids)._replace(**_action(chance, action))


def _action(chance: random.Random, length: int) -> dict[str, tuple[int, ...] | tuple[float, ...]]:
    ids = tuple(chance.randrange(VOCABULARY) for _ in range(length))
    return {"action_ids": ids, "logprobs": (-7.0,) * length}


def _episode(replies: list[Reply]) -> Episode:
    turns = tuple(Turn(Messages(), reply, 0.0, {}, str(k)) for k, reply in enumerate(replies))
    return Episode(Task("bench/Prefix-v0", "!"), 0, {"agent": Trajectory(turns)}, Outcome.OK)


def last_update(file: Path) -> tuple[int, TrainingBatch]:
    """Return the last update of an episode log, and its groups as the learner had them."""
    groups: dict[int, dict[int, list[Episode]]] = defaultdict(lambda: defaultdict(list))
    for record in LogReader(file):
        if record.update is not None and record.group is not None and record.episode.outcome.counts:
            groups[record.update][record.group].append(record.episode)
    update = max(groups)
    return update, collate([*groups[update].values()])
