"""The value head of a trained checkpoint as a scorer: the expected return of a state, read off its text."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnwise.envs.sources import load_module
from turnwise.errors import TurnwiseError
from turnwise.extras import needing
from turnwise.plain_yaml import read_yaml
from turnwise.trainers.search.core import Searcher, SearchNode

if TYPE_CHECKING:
    from turnwise.trainers.learn.model import ChanceHead, ValueHead

TOGETHER = 4096
"""Tokens of one forward pass, in which what states begin with alike is read once."""


class ValueScorer:
    """V of each state, by the head that a run with a learned value left in its checkpoint.

    Of an episode that is over it is V of the state before its last turn, since the head was fitted to states before turns;
    where an episode has only one, V of its beginning. Nothing is sampled, so that it takes nothing of the budget.

    Args:
        target: a checkpoint (``runs/NAME/best`` or ``…/checkpoints/step-000040``).

    Raises:
        TurnwiseError: it is none, holds no value head, or its run was paid for progress.
    """

    whole, forks, oracle = False, False, False

    def __init__(self, target: str) -> None:
        with needing("a value head (value:CHECKPOINT)"):
            import torch
            import transformers  # noqa: F401  # pyright: ignore[reportUnusedImport]

        from turnwise.agents.models.loading import load_tokenizer
        from turnwise.agents.policies.model import make_renderer, read_chat_format
        from turnwise.trainers.learn.model import load_model
        from turnwise.trainers.learn.passes import Reader

        folder = Path(target)
        if not (folder / "trainer.safetensors").is_file() or not (folder / "model").is_dir():
            raise TurnwiseError(
                f"{target} is no checkpoint of a run.",
                "Name one: runs/NAME/best, or a folder of runs/NAME/checkpoints.",
            )
        _refuse_paid_progress(folder)
        self.name, self.source = f"value:{target}", _digest(folder / "trainer.safetensors")
        model, cpu = folder / "model", torch.device("cpu")
        self._model = load_model(model, cpu, None, frozen=True)
        self._reader = Reader(cpu, 1.0, "float32")
        self._renderer = make_renderer(load_tokenizer(str(model)), model, read_chat_format(model))
        self._head = _head_of(folder)
        self._alone = threading.Lock()
        self._longest = int(self._model.config.max_position_embeddings)  # pyright: ignore[reportAttributeAccessIssue, reportArgumentType]

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        texts = [self._text(node) for node in nodes]
        return await asyncio.to_thread(self._values, texts) if texts else []  # other episodes go on meanwhile

    def _text(self, node: SearchNode) -> list[int]:
        """The tokens that the policy would read in the state; of the state before the last turn where the episode is over."""
        messages = node.messages()
        if node.over and node.turns:
            messages = messages[: len(messages) - len(node.observation) - 1]
        return [*self._renderer.start(messages, node.tools)][-self._longest :]

    def _values(self, texts: Sequence[Sequence[int]]) -> list[float]:
        import torch

        from turnwise.trainers.learn.collate import plain_rows

        rows = plain_rows(texts, [len(text) for text in texts])
        value_R = torch.zeros(len(texts))
        with self._alone, torch.no_grad():
            for index_M in self._reader.cut(self._model, rows, TOGETHER):
                hidden_RTD = self._reader.states(self._model, rows.select(index_M)).hidden_RTD
                last_RD = hidden_RTD[torch.arange(len(index_M)), rows.length_R[index_M] - 1]
                value_R[index_M] = self._head(last_RD)
        return value_R.tolist()

    def close(self) -> None:
        """The model is given up with the object."""


def _refuse_paid_progress(folder: Path) -> None:
    """A value says what is still to come: of returns that were partly paid on the way to the outcome it is the less, the nearer to the goal.

    Raises:
        TurnwiseError: the run of this checkpoint was paid so.
    """
    recipe = folder.resolve().parents[1] / "recipe.yaml"
    said = read_yaml(recipe.read_text("utf-8")) if recipe.is_file() else {}
    for each in said.get("imports") or []:  # the run may be paid by a part of its author's own
        load_module(each)
    shaping = bool(((said.get("rollout") or {}).get("env_options") or {}).get("shaping"))
    asked = said.get("reward") or ["as_is"]
    by = _paying_early(asked if isinstance(asked, list) else [asked], shaping)
    if by:
        raise TurnwiseError(
            f"The value of {folder} leaves out the progress that its run had paid by then ({by} in {recipe}), "
            "so that it is lower where an attempt is nearer to its goal.",
            "Train the value in a run that pays for the outcome alone, or choose another scorer.",
        )


def _paying_early(rewards: Sequence[Any], shaping: bool) -> str:
    """Name what pays a turn before the last, of episodes that the environment pays on their last; empty where nothing does.

    Where the environment pays for progress, and where signals are paid, each turn has some of it; a reward that cannot pay such episodes is
    not known to be paid early.
    """
    from turnwise.envs.core import EndReason
    from turnwise.registry import get_component
    from turnwise.trainers.kit.payer import RewardInRow
    from turnwise.trainers.kit.reward_edits import with_signals
    from turnwise.trainers.kit.toy_batches import episode

    named = [{"name": one} if isinstance(one, str) else dict(one) for one in rewards]
    options = [{key: value for key, value in one.items() if key != "name"} for one in named]
    entries = [get_component("reward", one["name"]) for one in named]
    needs = frozenset[str]().union(
        *(entry.needs_with(given) for entry, given in zip(entries, options, strict=True))
    )
    progress = {"progress": [0.25, 0.5, 0.75]} if shaping else {}
    ends = [EndReason.SOLVED, EndReason.SOLVED, EndReason.FAILED, EndReason.TURN_LIMIT]
    group = [
        with_signals(
            episode([0, 0, float(end is EndReason.SOLVED)], parts=progress, end=end),
            [dict.fromkeys(needs, 0.25 * k) for k in (1, 2, 3)],
        )
        for end in ends
    ]
    by, groups = "rollout.env_options.shaping" if shaping else "", [group, group]
    for entry, given in zip(entries, options, strict=True):
        try:
            groups = RewardInRow(entry.name, entry.build(given), entry.whole).pay(groups)
        except (TurnwiseError, RuntimeError, KeyError):  # it needs more than these episodes have
            continue
        paid = any(turn.reward for some in groups for one in some for turn in one.trajectory.turns[:-1])
        by = (by or f"reward {entry.name!r}") if paid else ""
    return by


def _head_of(folder: Path) -> ValueHead | ChanceHead:
    from safetensors.torch import load_file

    from turnwise.trainers.learn.model import ChanceHead, ValueHead

    tensors = load_file(folder / "trainer.safetensors")
    kinds: Sequence[tuple[str, type[ValueHead | ChanceHead]]] = (
        ("layers", ValueHead),
        ("chance", ChanceHead),
    )
    heads = [
        (name.removesuffix(f"{layers}.3.weight"), layers, kind)
        for name, tensor in tensors.items()
        for layers, kind in kinds
        if name.startswith("parameter/") and name.endswith(f"/{layers}.3.weight") and tensor.shape[0] == 1
    ]
    if len(heads) != 1:
        raise TurnwiseError(
            f"{folder} holds {len(heads) or 'no'} value heads, and one is wanted.",
            "Train with a part that asks for a value alone, such as `credit: gae`.",
        )
    ((at, layers, kind),) = heads
    own = {name.removeprefix(at): x for name, x in tensors.items() if name.startswith(at)}
    head = kind(own[f"{layers}.0.weight"].shape[0])
    head.load_state_dict(own)
    return head.eval()


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
