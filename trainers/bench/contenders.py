"""The training loops that ``turnwise bench train`` compares the learner with: a plain one, and TRL's.

They get the learner's micro-batches ready-made. What they must do with them is all that is timed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from turnwise.errors import MissingDependencyError
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, micro_batches
from turnwise.trainers.learn.model import base_of
from turnwise.trainers.learn.options import OptimizerOptions

Contender: TypeAlias = Callable[[], object]
"""Passes once over the batch, optimizer steps included."""


class Prepared:
    """A model and the batch cut as the learner cuts it.

    Args:
        model: on its device; is trained.
        options: of the optimizer.
        batch: is moved to the model's device once.
        advantage_BK: of its turns.
        steps: how many optimizer steps a pass takes.

    Attributes:
        steps: for each step its micro-batches.
        advantages: of the tokens of each micro-batch, (R, T).
    """

    def __init__(
        self,
        model: nn.Module,
        options: OptimizerOptions,
        batch: TrainingBatch,
        advantage_BK: Tensor,
        steps: int,
    ) -> None:
        self.model, self.options = model, options
        self.device = next(model.parameters()).device
        rows = batch.rows
        advantage_RT = advantage_BK[rows.trajectory_R[:, None], rows.turn_RT.clamp(min=0)] * rows.mask_RT
        self.steps: list[list[TokenRows]] = []
        self.advantages: list[list[Tensor]] = []
        for chosen_B in torch.arange(len(batch.turns.group_B)).tensor_split(steps):
            row_M = torch.isin(rows.trajectory_R, chosen_B).nonzero()[:, 0]
            parts = list(micro_batches(rows, options.micro_tokens, row_M))
            cut = [rows.select(index) for index in parts]
            self.steps.append([TokenRows(*(x.to(self.device) for x in part)) for part in cut])
            self.advantages.append(
                [
                    advantage_RT[i, : p.mask_RT.shape[1]].to(self.device)
                    for i, p in zip(parts, cut, strict=True)
                ]
            )


class Bare:
    """Forward, cross-entropy on the sampled tokens, backward; then clipping and AdamW.

    Args:
        prepared: what to train on.
        lean: compute logits only where a token was sampled.
    """

    def __init__(self, prepared: Prepared, *, lean: bool = False) -> None:
        self.prepared, self.lean = prepared, lean
        options = prepared.options
        self.optimizer = torch.optim.AdamW(
            prepared.model.parameters(),
            lr=options.learning_rate,
            betas=options.betas,
            weight_decay=options.weight_decay,
            fused=True,
        )

    def __call__(self) -> None:
        model, options = self.prepared.model, self.prepared.options
        nll = self._nll_lean if self.lean else self._nll
        cuda = self.prepared.device.type == "cuda"
        for parts in self.prepared.steps:
            total = sum(int(part.mask_RT.sum()) for part in parts)
            for part in parts:
                with torch.autocast("cuda", torch.bfloat16) if cuda else contextlib.nullcontext():
                    loss = nll(part) / total
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), options.max_grad_norm)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)

    def _nll(self, part: TokenRows) -> Tensor:
        logits_RTV = self.prepared.model(input_ids=part.token_RT, use_cache=False).logits[:, :-1]
        label_RT = part.token_RT.masked_fill(~part.mask_RT, -100)[:, 1:]
        return F.cross_entropy(logits_RTV.flatten(0, 1).float(), label_RT.flatten(), reduction="sum")

    def _nll_lean(self, part: TokenRows) -> Tensor:
        model = base_of(self.prepared.model)
        hidden_RTD = model.get_decoder()(input_ids=part.token_RT, use_cache=False).last_hidden_state
        logits_NV = model.get_output_embeddings()(hidden_RTD[:, :-1][part.mask_RT[:, 1:]])
        return F.cross_entropy(logits_NV.float(), part.token_RT[part.mask_RT], reduction="sum")


class Trl:
    """TRL's GRPOTrainer, fed with the micro-batches in place of its own rollouts.

    ``training_step`` (forward, clipped loss, metrics, backward) runs unchanged on the dictionaries that
    TRL's rollouts end in: the first prompt padded on the left, all that follows as the completion padded
    on the right, what the environment said masked by ``tool_mask``, advantages per token. Then clipping, AdamW
    and zeroing as in ``Trainer``. Everything else of its loop (data loader, callbacks, logging) is left
    out, and so is its padding of every micro-batch to the longest row of the whole batch; gradient
    checkpointing, on by default in TRL, is off.
    """

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        self.prepared = prepared
        parts = prepared.steps[0]
        self.trainer = _grpo_trainer(prepared, folder, len(parts))
        self.optimizer = self.trainer.create_optimizer()
        total = torch.stack([part.mask_RT.sum() for part in parts]).sum()
        pairs = zip(parts, prepared.advantages[0], strict=True)
        self.inputs = [_trl_inputs(part, advantage_RT, total) for part, advantage_RT in pairs]

    def __call__(self) -> None:
        self.backward()
        trainer = self.trainer
        trainer.accelerator.clip_grad_norm_(trainer.model.parameters(), trainer.args.max_grad_norm)
        self.optimizer.step()
        trainer.model.zero_grad()

    def backward(self) -> float:
        """Gradients of the whole batch; returns the loss."""
        trainer = self.trainer
        trainer._metrics["train"].clear()  # as its log() does
        return sum(trainer.training_step(trainer.model, part, None).item() for part in self.inputs)


def _grpo_trainer(prepared: Prepared, folder: Path, parts: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL's doubts about vLLM, which it is not asked to use
        try:
            from datasets import Dataset  # pyright: ignore
            from transformers import AutoTokenizer
            from trl.trainer.grpo_config import GRPOConfig  # pyright: ignore
            from trl.trainer.grpo_trainer import GRPOTrainer  # pyright: ignore
        except ImportError as error:
            raise MissingDependencyError(f"TRL cannot be imported: {error}.", "pip install trl") from error

    class Fed(GRPOTrainer):
        def _prepare_inputs(self, generation_batch: dict[str, Any]) -> dict[str, Any]:
            return generation_batch

    options, cuda = prepared.options, prepared.device.type == "cuda"
    config = GRPOConfig(
        output_dir=os.path.join(tempfile.gettempdir(), "turnwise-bench-trl"),  # nothing is written
        learning_rate=options.learning_rate,
        adam_beta1=options.betas[0],
        adam_beta2=options.betas[1],
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        per_device_train_batch_size=2,
        num_generations=2,
        gradient_accumulation_steps=parts,
        steps_per_generation=parts,
        loss_type="dapo",
        beta=0.0,
        bf16=cuda,
        use_cpu=not cuda,
        gradient_checkpointing=False,
        report_to="none",
    )
    model: Any = prepared.model
    trainer = Fed(
        model=model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["x"] * 2}),
        processing_class=AutoTokenizer.from_pretrained(folder, padding_side="left"),
    )
    trainer.current_gradient_accumulation_steps = parts
    return trainer


def _trl_inputs(part: TokenRows, advantage_RT: Tensor, total: Tensor) -> dict[str, Tensor]:
    """The rows as TRL's rollouts hand them on. Every row starts with a prompt and samples something."""
    n, longest = part.token_RT.shape
    device = part.token_RT.device
    position_T = torch.arange(longest, device=device)
    first_R = part.mask_RT.int().argmax(-1)  # where the completion begins
    inside_RT = position_T < part.length_R[:, None]
    prompt_P = torch.arange(int(first_R.max()), device=device)
    from_RP = prompt_P - (len(prompt_P) - first_R)[:, None]
    completion_C = torch.arange(int((part.length_R - first_R).max()), device=device)
    to_RC = (completion_C + first_R[:, None]).clamp(max=longest - 1)
    there_RC = (completion_C + first_R[:, None]) < part.length_R[:, None]
    rows = torch.arange(n, device=device)[:, None]
    return {
        "prompt_ids": part.token_RT[rows, from_RP.clamp(min=0)] * (from_RP >= 0),
        "prompt_mask": (from_RP >= 0).long(),
        "completion_ids": part.token_RT[rows, to_RC] * there_RC,
        "completion_mask": there_RC.long(),
        "tool_mask": (part.mask_RT & inside_RT)[rows, to_RC].long(),
        "advantages": advantage_RT[rows, to_RC] * there_RC,
        "num_items_in_batch": total,
    }
