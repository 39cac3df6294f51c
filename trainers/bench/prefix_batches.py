"""Batches for ``turnwise bench prefix``: made up, played by a script, or the last update of a run."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.models.small import train_tokenizer
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.tokens.template import ToolsFormat
from turnwise.envs.messages import Message, Messages
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Task
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.warm_start import texts
from turnwise.trainers.strategy.runner import plan_groups

VOCABULARY = 1024
LONGEST = 65536


class MadeBatch(NamedTuple):
    """A batch, and the model that learns it."""

    batch: TrainingBatch
    model: nn.Module


class Workload(NamedTuple):
    """MadeBatch-up groups: the tokens of each turn's prompt and action, and after which turns the leaves double."""

    shape: tuple[tuple[int, int], ...]
    members: int = 1
    forks: tuple[int, ...] = ()


def of_shape(load: Workload) -> MadeBatch:
    """Return a made-up group, and a model for it."""
    return MadeBatch(collate([made_up(load)]), small_model())


def of_script(
    suite: str, groups: int, size: int, *, tools: ToolsFormat, vocabulary: int, script: str = "demonstrator"
) -> MadeBatch:
    """Return groups that a script plays, in the tokens of a vocabulary that is learned from them, and a model for it."""
    plan = plan_groups(suite, groups, size)
    requests = [request for group in plan for request in group]
    played = run_episodes(requests, scripted(script))
    said = texts([one for episode in played for one in episode.trajectories.values()])
    tokenizer = train_tokenizer(said, vocab_size=vocabulary, context=LONGEST)
    told = run_episodes(
        requests, DemonstrationPolicy(scripted(script), Renderer(tokenizer, tools_format=tools))
    )
    batch = collate([told[i : i + size] for i in range(0, len(told), size)])
    return MadeBatch(batch, small_model(len(tokenizer)))


def log_of(run: str | Path) -> Path:
    """Return the episode log of a run's folder, or the log that was named.

    Raises:
        TurnwiseError: there is none.
    """
    file = Path(run) / "episodes.jsonl.zst" if Path(run).is_dir() else Path(run)
    if not file.is_file():
        raise TurnwiseError(
            f"{run} is no run with an episode log.",
            "turnwise bench prefix runs/quickstart, after make quickstart",
        )
    return file


def of_log(file: Path) -> MadeBatch:
    """Return the last update of an episode log as the learner had it, and the run's best model, which lies beside.

    Raises:
        TurnwiseError: it has no update.
    """
    model = load_model(best_of(file), torch.device("cpu"))
    return MadeBatch(collate(last_groups(file)), model)


def best_of(file: Path) -> Path:
    """Return the folder of the best model of the run that an episode log lies in."""
    return file.parent / "best" / "model"


def last_groups(file: Path) -> list[list[Episode]]:
    """Return the groups of an episode log's last update.

    Raises:
        TurnwiseError: it has no update.
    """
    groups: dict[int, dict[int, list[Episode]]] = defaultdict(lambda: defaultdict(list))
    for record in LogReader(file):
        if record.update is not None and record.group is not None and record.episode.outcome.counts:
            groups[record.update][record.group].append(record.episode)
    if not groups:
        raise TurnwiseError(f"{file} has no episode of an update.", "Let the run make an update.")
    return [*groups[max(groups)].values()]


def small_model(vocabulary: int = VOCABULARY) -> nn.Module:
    """Return a model of 1.1 million random weights; more where the vocabulary is larger."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=352,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LONGEST,
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


WORKLOADS: Mapping[str, Callable[[], MadeBatch]] = {
    "group of 8 × (1,000 + 50)": lambda: of_shape(Workload(((1000, 50),), members=8)),
    "tree of 20 turns, 8 leaves": lambda: of_shape(
        Workload(((130, 20), *[(30, 20)] * 19), forks=(5, 10, 15))
    ),
    "retail, a group of 8": lambda: of_script("toolworld/retail", 1, 8, tools="auto", vocabulary=4096),
    "household, 6 groups of 8": lambda: of_script("household/medium", 6, 8, tools="none", vocabulary=768),
}
"""Little is shared in the last one: it says what a tree costs where it saves least."""
