"""Meta-reasoning tags: what each turn says that it does, and whether it then did it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.messages import Message
from turnwise.envs.worlds.meta_reasoning import TAGS, tag_of
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.spoken import spoken
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext

_THOUGHT = re.compile(rf"<({'|'.join(TAGS)})>.*?</\1>", re.IGNORECASE | re.DOTALL)


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    paid_NK = turns_of(p) * (p.action_NK == 0)
    return {"tag": turns_of(p) * (1 + p.state_NK % 3), "tag_reward": paid_NK}


@component(
    "signal",
    "tag",
    paper="2507.22844",
    gives=("tag", "tag_reward"),
    reads=("outcomes",),
    stand_in=_stand_in,
)
def tag(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """Each turn's first tag, 1 ``planning``, 2 ``explore``, 3 ``reflection``, 4 ``monitor`` (0: none), and what RLVMR pays for it.

    ``tag_reward`` is 1 for a plan if the episode succeeded, for exploring if the command is none of the earlier valid
    ones, for reflection if the command before was refused and this one differs from it; else 0. A turn whose command is refused counts as
    without a tag. A command is the message without its tagged thought, and its tool calls, but for case and white space; what stands in
    a call's arguments is no tag. Zhang et al. 2025: paid on the turn that made the plan,
    in any environment whose instruction asks for the tags; household's own `meta_reasoning` pays by stricter rules, and at the end.

    >>> said = ["<planning>a</planning>x", "<explore>b</explore>x", "<explore>c</explore>y"]
    >>> of_turns([Message("assistant", text) for text in said], [False] * 3, solved=True)
    ([1, 2, 2], [1.0, 0.0, 1.0])
    >>> said = ["x", "<reflection>b</reflection>y"]
    >>> of_turns([Message("assistant", text) for text in said], [True, False], solved=False)
    ([0, 3], [0.0, 1.0])
    """
    shape = batch.turns.mask_BK.shape
    tag_BK, paid_BK = torch.zeros(shape), torch.zeros(shape)
    for b, episode in enumerate(episode for group in groups for episode in group):
        found, paid = _of_episode(episode)
        tag_BK[b, : len(found)] = torch.tensor(found, dtype=tag_BK.dtype)
        paid_BK[b, : len(paid)] = torch.tensor(paid)
    return Measured({"tag": tag_BK, "tag_reward": paid_BK})


def _of_episode(episode: Episode) -> tuple[list[int], list[float]]:
    turns = episode.trajectory.turns
    return of_turns(
        [turn.action for turn in turns], [turn.bad_action for turn in turns], solved=episode.success
    )


def of_turns(
    actions: Sequence[Message], refused: Sequence[bool], *, solved: bool
) -> tuple[list[int], list[float]]:
    """The tags of an episode's turns, and what is paid for them."""
    tried = set[str]()
    before: str | None = None  # the command before, if it was refused
    tags, paid = list[int](), list[float]()
    for action, bad in zip(actions, refused, strict=True):
        command = spoken(dataclasses.replace(action, content=_THOUGHT.sub("", action.content)))
        said = "" if bad else tag_of(action.content)
        tags.append(TAGS.index(said) + 1 if said else 0)
        earns = {
            "planning": solved,
            "explore": command not in tried,
            "reflection": before is not None and command != before,
        }
        paid.append(float(earns.get(said, False)))
        if not bad:
            tried.add(command)
        before = command if bad else None
    return tags, paid
