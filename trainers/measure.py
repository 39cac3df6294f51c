"""Everything that a run measures of a batch because its parts ask for it.

What forks and judges measure is in the turns already; the rest is read off the learner's weights, off models
that are trained beside the policy, off the sampled tokens, and off gold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.registry import env_class
from turnwise.trainers.answers import answer_ids, information, matched, solutions
from turnwise.trainers.collate import Batch
from turnwise.trainers.core import Group
from turnwise.trainers.groups import group_mean, group_std
from turnwise.trainers.model import base_of
from turnwise.trainers.planning import planning_tokens
from turnwise.trainers.readings import last_values, progress, token_entropies, token_values
from turnwise.trainers.signals import SAMPLED, sampled_signals

if TYPE_CHECKING:
    from turnwise.trainers.setup import Studio

Past = dict[str, list[float]]
"""By task: visits so far, and mean and standard deviation of the returns over them."""
MEASURED = SAMPLED | frozenset(
    [
        "value",
        "last_value",
        "progress",
        "valid",
        "information",
        "matched",
        "implicit",
        "past_visits",
        "past_mean",
        "past_std",
        "reference",
        "token_value",
        "token_entropy",
        "token_implicit",
        "token_planning",
    ]
)
"""Signals that the trainer can measure."""
REMEMBERED = frozenset({"past_visits", "past_mean", "past_std"})


def measure(
    studio: Studio, batch: Batch, groups: Sequence[Group], past: Past
) -> tuple[Batch, dict[str, float]]:
    """The batch with the signals that the recipe's parts need, and metrics of what was learned for them.

    ``past`` is read, then brought up to date.
    """
    needs, learner, rows = studio.recipe.needs, studio.learner, batch.rows
    turn: dict[str, Tensor] = dict(batch.turns.signals)
    token: dict[str, Tensor] = {}
    metrics: dict[str, float] = {}
    if needs & SAMPLED:
        turn |= sampled_signals(batch)
    if "valid" in needs:
        turn["valid"] = validity(groups, batch.turns.mask_BK)
    if "value" in needs:
        turn["value"] = learner.values(batch)
    if "last_value" in needs:
        turn["last_value"] = _values_beyond(studio, batch, groups)
    if "progress" in needs:
        turn["progress"] = progress(learner, batch)
    if "token_value" in needs:
        token["token_value"] = token_values(learner, rows)
    if "token_entropy" in needs:
        token["token_entropy"] = token_entropies(learner, rows)
    if "token_planning" in needs:
        token["token_planning"] = planning_tokens(rows, studio.tokenizer)
    if needs & {"information", "matched"}:
        turn |= _from_gold(studio, batch, groups)
    if needs & {"implicit", "token_implicit"}:
        _implicit(studio, batch, groups, turn, token, metrics)
    if needs & REMEMBERED:
        turn |= _remember(batch, groups, past)
    view = batch.turns.tokens and dataclasses.replace(batch.turns.tokens, signals=token)
    return batch._replace(turns=dataclasses.replace(batch.turns, signals=turn, tokens=view)), metrics


def validity(groups: Sequence[Group], mask_BK: Tensor) -> Tensor:
    """1 where the environment accepted the action."""
    valid_BK = torch.zeros(mask_BK.shape)
    for b, episode in enumerate(episode for group in groups for episode in group):
        for k, turn in enumerate(episode.trajectory.turns):
            valid_BK[b, k] = float(not turn.bad_action)
    return valid_BK


def _values_beyond(studio: Studio, batch: Batch, groups: Sequence[Group]) -> Tensor:
    """V of the state in which a limit cut each trajectory, 0 where none did, (B,)."""
    episodes = [episode for group in groups for episode in group]
    cut = [b for b, truncated in enumerate(batch.turns.truncated_B.tolist()) if truncated]
    value_B = torch.zeros(len(episodes))
    if cut:
        value_B[cut] = last_values(studio.learner, [_whole_text(studio, batch, b, episodes[b]) for b in cut])
    return value_B


def _whole_text(studio: Studio, batch: Batch, b: int, episode: Episode) -> list[int]:
    """The tokens of a trajectory with what it was told last, as the policy would have read it; its end if too long."""
    trajectory, rows = episode.trajectory, batch.rows
    row = int(rows.state_row_BK[b, len(trajectory.turns) - 1])
    tokens = rows.token_RT[row, : int(rows.length_R[row])].tolist()
    if trajectory.final:
        said = [m for turn in trajectory.turns for m in (*turn.observation, turn.action)]
        tools = env_class(episode.task.env).tools
        more = studio.renderer.extend([*said, *trajectory.final], len(trajectory.final), tokens[-1], tools)
        tokens = [*more.ids] if more.fresh else [*tokens, *more.ids]
    return tokens[-context_of(studio) :]


def context_of(studio: Studio) -> int:
    """How many tokens the model can read."""
    config = base_of(studio.learner.model).config.get_text_config()
    return studio.recipe.engine.context_length or int(config.max_position_embeddings)


def _from_gold(studio: Studio, batch: Batch, groups: Sequence[Group]) -> dict[str, Tensor]:
    needs = studio.recipe.needs
    plans = solutions(groups, studio.recipe.rollout.env_options)
    found: dict[str, Tensor] = {}
    if "information" in needs:
        answers = [answer_ids(g[0], plan, studio.renderer) for g, plan in zip(groups, plans, strict=True)]
        found["information"] = information(studio.learner, batch, groups, answers, context_of(studio))
    if "matched" in needs:
        found["matched"] = torch.tensor(matched(groups, plans))[:, None] * batch.turns.mask_BK
    return found


def _implicit(
    studio: Studio,
    batch: Batch,
    groups: Sequence[Group],
    turn: dict[str, Tensor],
    token: dict[str, Tensor],
    metrics: dict[str, float],
) -> None:
    """The reward model's step on this batch, and its rewards: learned before (PRIME) or after (iStar) they are read."""
    model, rows = studio.learner.reward_model, batch.rows
    assert model is not None
    success_B = torch.tensor([episode.success for group in groups for episode in group])
    if model.kind == "outcomes":
        reference_RT = studio.learner.score(rows, reference=True)
        metrics["implicit_loss"] = model.learn(batch, reference_RT, success_B)
        token["token_implicit"] = model.rewards(rows, reference_RT)
        return
    reward_RT = model.rewards(rows, rows.behaviour_logp_RT)
    (B, K), of_turn = batch.turns.mask_BK.shape, rows.trajectory_R[:, None] * batch.turns.mask_BK.shape[1]
    turn_N = (of_turn + rows.turn_RT)[rows.mask_RT]
    turn["implicit"] = torch.zeros(B * K).index_add_(0, turn_N, reward_RT[rows.mask_RT]).view(B, K)
    metrics["implicit_loss"] = model.learn(batch, rows.behaviour_logp_RT, success_B)


def _remember(batch: Batch, groups: Sequence[Group], past: Past) -> dict[str, Tensor]:
    """What is known of each trajectory's task, before this visit is added to it (DCPO, eq. 8–9)."""
    ids = [group[0].task.id for group in groups]
    known = [past.get(name, [0.0, 0.0, 0.0]) for name in ids]
    group_B, return_B = batch.turns.group_B, batch.turns.return_B
    mean_B, std_B = group_mean(return_B, group_B), group_std(return_B, group_B)
    for g, name in enumerate(ids):
        first = int((group_B == g).nonzero()[0])
        n, mean, std = past.get(name, [0.0, 0.0, 0.0])
        new, spread = mean_B[first].item(), std_B[first].item()
        square = (n * std**2 + spread**2 + n / (n + 1) * (mean - new) ** 2) / (n + 1)
        past[name] = [n + 1, (n * mean + new) / (n + 1), square**0.5]
    told_GX = torch.tensor(known)
    return {f"past_{name}": told_GX[group_B, i] for i, name in enumerate(("visits", "mean", "std"))}
