"""V: the expected return of the state before each turn, or of the text before each token, learned in the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.registry import env_class
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group, TokenCredit
from turnwise.trainers.kit.groups import returns_to_go
from turnwise.trainers.kit.token_credit import on_tokens, on_turns, over_tokens
from turnwise.trainers.learn.collate import TrainingBatch, plain_rows
from turnwise.trainers.learn.heads import Gap
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import ChanceHead, ValueHead
from turnwise.trainers.learn.passes import PassPart, before_tokens, states
from turnwise.trainers.signal.core import Measured, Reading, Signal, SignalContext, SignalSetup


def _exact(p: ExactProcess) -> dict[str, Tensor]:
    return {"value": p.value_NK, "last_value": p.last_value_N, "token_value": p.value_NK}


@component(
    "signal",
    "value",
    gives=("value", "last_value", "token_value"),
    hears=("fit",),
    reads=("forward pass",),
    learns=True,
    exact=_exact,
)
class ValueSignal(Signal):
    """V(s) by a head on the policy's hidden states: of states, of the state where a limit cut, of each token.

    Fitted to A + V of the credit rule's own advantages (a λ-return), or to the return to go where the rule says so
    (``critic="returns"``); with ``token_value`` token by token, else turn by turn. With ``expectile`` τ an error counts
    2·|τ − 1[G < V]| times its square: above ½, V leans to the best of what was seen, as for data of others (IQL, HIQL).

    ``fit`` names what a strategy measured before each turn, and V is fitted to that: `fork_value`, the means of fresh
    rollouts (`vine`), or `tree_value`, those of a tree. A search then reads it off the checkpoint
    (`--scorer value:CHECKPOINT`). ``form: verifier`` is the verifier of PAV (Setlur et al. 2024): V is a chance, fitted by
    cross-entropy, on each trajectory's states up to the first whose target is 0 (its first pit), those above ½ and the
    others with half of the weight each; theirs are 20 rollouts of each state, `{name: vine, forks: 20}`. Ours: one pit of
    each trajectory that is played.

    >>> ValueSignal.objective["value"]
    'mean_k 2|τ − 1[G_k < V(s_k)]|·(V(s_k) − G_k)²'
    >>> [round(x, 6) for x in (leaning(torch.tensor([-1.0, 1.0]), 0.9) ** 2).tolist()], leaning(torch.tensor([-2.0, 3.0]), 0.5).tolist()
    ([1.8, 0.2], [-2.0, 3.0])
    >>> verified(torch.tensor([[0.75, 0.5, 0.0, 0.25]]), torch.ones(1, 4, dtype=torch.bool)).tolist()  # 1 above ½, 2 not, 1 beyond the pit
    [[1.5, 0.75, 0.75, 0.0]]

    Raises:
        RecipeError: ``expectile`` is not between 0 and 1, or nothing gives what V is fitted to turn by turn.
    """

    objective: ClassVar = {
        "value": "mean_k 2|τ − 1[G_k < V(s_k)]|·(V(s_k) − G_k)²",
        "token_value": "mean_t 2|τ − 1[G_t < V(s_t)]|·(V(s_t) − G_t)²",
    }
    symbols: ClassVar = {
        "value": (
            "V, G, τ",
            "a learned value of the state before turn k, what it is fitted to, and the option expectile (½: the square alone)",
        ),
        "token_value": (
            "V, G, τ",
            "a learned value of the text before token t, what it is fitted to, and the option expectile (½: the square alone)",
        ),
    }

    def __init__(
        self,
        setup: SignalSetup,
        *,
        expectile: float = 0.5,
        fit: str = "",
        form: Literal["value", "verifier"] = "value",
    ) -> None:
        if not 0 < expectile < 1:
            raise RecipeError(
                f"signal 'value': expectile {expectile:g} leans on one side alone.",
                "Give one between 0 and 1.",
            )
        if form == "verifier" and expectile != 0.5:
            raise RecipeError(
                f"signal 'value': a verifier is fitted by cross-entropy, and expectile is {expectile:g}.",
                "Leave expectile out, or form.",
            )
        if (fit or form == "verifier") and "token_value" in setup.needs:
            raise RecipeError(
                "signal 'value' is asked for the value of each token, and fit and form are of turns.",
                "Choose a credit rule of turns, such as pav or gae.",
            )
        if fit and fit not in setup.needs:
            raise RecipeError(
                f"signal 'value' is to be fitted to {fit!r}, which nothing in this recipe gives.",
                "Set rollout.strategy: vine, which gives fork_value.",
            )
        kind = ChanceHead if form == "verifier" else ValueHead
        self._head: ValueHead | ChanceHead = kind(setup.width, seed=setup.seed).to(setup.device)
        self.module = self._head
        self._needs, self._critic, self._expectile, self._fit = setup.needs, setup.critic, expectile, fit

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
        mask_BK, rows = batch.turns.mask_BK, batch.rows
        value_BK, value_RT = torch.zeros(mask_BK.shape), torch.zeros(rows.mask_RT.shape)

        def read(seen: PassPart) -> None:
            if "value" in self._needs:
                where_BK, hidden_ND = states(seen.rows, seen.index_N, mask_BK, seen.hidden_RTD)
                value_BK[where_BK] = self._head(hidden_ND).cpu()
            if "token_value" in self._needs:
                found_N = self._head(before_tokens(seen.rows, seen.hidden_RTD)).cpu()
                inside_RT = seen.rows.mask_RT
                value_RT[seen.index_N, : inside_RT.shape[1]] = torch.zeros(inside_RT.shape).masked_scatter(
                    inside_RT, found_N
                )

        def done() -> Measured:
            turn = {"value": value_BK} if "value" in self._needs else {}
            if "last_value" in self._needs:
                turn["last_value"] = self._beyond(see, batch, groups)
            return Measured(turn, {"token_value": value_RT} if "token_value" in self._needs else {})

        return Reading(read, done)

    def gaps(self, seen: PassPart, batch: TrainingBatch, credit: Tensor | TokenCredit) -> Iterator[Gap]:
        rows, turns, device = seen.rows, batch.turns, seen.hidden_RTD.device
        if "token_value" in self._needs:
            aim_RT = self._token_aim(batch, credit)[seen.index_N, : rows.mask_RT.shape[1]]
            found_N = self._head(before_tokens(rows, seen.hidden_RTD))
            gap_N = found_N - aim_RT[rows.mask_RT].float().to(device)
            yield Gap("value_error", leaning(gap_N, self._expectile), "tokens")
        elif "value" in self._needs:
            where_BK, hidden_ND = states(rows, seen.index_N, turns.mask_BK, seen.hidden_RTD)
            aim_BK = self._turn_aim(batch, credit)
            aim_N = aim_BK[where_BK].float().to(device)
            if isinstance(self._head, ChanceHead):
                weight_N = verified(aim_BK, turns.mask_BK)[where_BK].to(device)
                gap_N = apart(self._head.logits(hidden_ND), aim_N) * weight_N.sqrt()
            else:
                gap_N = leaning(self._head(hidden_ND) - aim_N, self._expectile)
            yield Gap("value_error", gap_N, "turns")

    def _turn_aim(self, batch: TrainingBatch, credit: Tensor | TokenCredit) -> Tensor:
        turns = batch.turns
        if self._fit:
            return turns.signals[self._fit]
        if self._critic == "returns":
            return returns_to_go(turns)
        return on_turns(credit, turns) + turns.signals["value"]

    def _token_aim(self, batch: TrainingBatch, credit: Tensor | TokenCredit) -> Tensor:
        if self._critic == "returns":
            return over_tokens(returns_to_go(batch.turns), batch.turns)
        assert batch.turns.tokens is not None
        return on_tokens(credit, batch.turns) + batch.turns.tokens.signals["token_value"]

    def _beyond(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Tensor:
        """V of the state in which a limit truncated each trajectory, 0 where none did, (B,)."""
        episodes = [episode for group in groups for episode in group]
        cut = [b for b, truncated in enumerate(batch.turns.truncated_B.tolist()) if truncated]
        value_B = torch.zeros(len(episodes))
        if cut:
            texts = [_whole_text(see, batch, b, episodes[b]) for b in cut]
            value_B[cut] = self.last_values(see.learner, texts)
        return value_B

    def last_values(self, learner: Learner, texts: Sequence[Sequence[int]]) -> Tensor:
        """V of the state that each text leads to, read at its last token, (N,), on the CPU."""
        value_N = torch.zeros(len(texts))

        def read(seen: PassPart) -> None:
            last_M = (seen.rows.length_R - 1).to(seen.hidden_RTD.device)
            at_ND = seen.hidden_RTD[torch.arange(len(last_M), device=last_M.device), last_M]
            value_N[seen.index_N] = self._head(at_ND).cpu()

        learner.read(plain_rows(texts, [len(text) for text in texts]), [read])
        return value_N


def leaning(gap_N: Tensor, expectile: float) -> Tensor:
    """Prediction − target, so scaled that its square is an expectile's error; as it is where the expectile is ½."""
    return gap_N * (2 * (expectile - (gap_N > 0).to(gap_N.dtype)).abs()).sqrt()


def apart(logit_N: Tensor, aim_N: Tensor) -> Tensor:
    """The root of KL(aim ‖ σ(logit)), with the sign of their difference: squared it is the cross-entropy, less what no prediction changes.

    >>> gap = apart(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 0.25]))
    >>> [round(x, 4) for x in (gap**2).tolist()], [round(x, 4) for x in gap.tolist()]
    ([0.6931, 0.1308], [-0.8326, 0.3617])
    """
    aim_N, logit_N = aim_N.double().clamp(0, 1), logit_N.double()
    cross_N = F.binary_cross_entropy_with_logits(logit_N, aim_N, reduction="none")
    least_N = -(torch.xlogy(aim_N, aim_N) + torch.xlogy(1 - aim_N, 1 - aim_N))
    size_N = ((cross_N - least_N).clamp(min=0) + 1e-12).sqrt()  # the root has no slope at 0
    return (size_N * torch.where(logit_N.sigmoid() < aim_N, -1.0, 1.0)).float()


def verified(aim_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """The weights of a verifier's states: 0 beyond the first pit; those above ½ and the others have half of the weight each, (B, K)."""
    pit_BK = (aim_BK <= 0) & mask_BK
    known_BK = mask_BK & (pit_BK.long().cumsum(1) - pit_BK.long() == 0)
    high_BK, low_BK = known_BK & (aim_BK > 0.5), known_BK & (aim_BK <= 0.5)
    if not high_BK.any() or not low_BK.any():
        return known_BK.float()
    total = known_BK.sum()
    return total / (2 * high_BK.sum()) * high_BK + total / (2 * low_BK.sum()) * low_BK


def _whole_text(see: SignalContext, batch: TrainingBatch, b: int, episode: Episode) -> list[int]:
    """The tokens of a trajectory with what it observed last, as the policy would have read it; its end if too long."""
    trajectory, rows = episode.trajectory, batch.rows
    row = int(rows.state_row_BK[b, len(trajectory.turns) - 1])
    tokens = rows.token_RT[row, : int(rows.length_R[row])].tolist()
    if trajectory.final:
        said = [m for turn in trajectory.turns for m in (*turn.observation, turn.action)]
        tools = env_class(episode.task.env).tools
        more = see.renderer.extend([*said, *trajectory.final], len(trajectory.final), tokens[-1], tools)
        tokens = [*more.ids] if more.fresh else [*tokens, *more.ids]
    return tokens[-see.context :]
