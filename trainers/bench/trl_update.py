"""TRL's GRPOTrainer on whole updates: its loop, its loss and its optimizer, with episodes by its ``rollout_func``.

The rollout function plays all episodes of a turn in one batch, by ``generate`` of transformers with the model that is trained,
prompts padded on the left, and hands back what TRL asks for: ids of the prompt, ids and log-probabilities of all that follows,
and a mask of what the environment said. Each turn computes its whole history anew, as TRL's own loop over tools does. Whatever
does not depend on TRL (environments, the chat template, reading actions) is Turnwise's on both sides.

TRL's other way, vLLM in its process (``use_vllm``, ``vllm_mode="colocate"``), starts on a CPU and fails when it is given the
first weights: TRL 1.16 hands them to ``load_weights`` of a model whose parameters vLLM 0.32 has packed for the processor.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from turnwise.agents.core import Completion, Episode, Sampling, VersionSpan
from turnwise.agents.engines.loop import EngineLoop
from turnwise.agents.models.loading import load_tokenizer
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.errors import MissingDependencyError
from turnwise.tasks.core import Task
from turnwise.trainers.bench.laps import Played, UpdateLap, UpdateWorkload
from turnwise.trainers.learn.collate import TokenRows, collate_rows
from turnwise.trainers.learn.model import choose_device, load_model
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.run.learning import learning_setup

if TYPE_CHECKING:
    from torch import Tensor


class _Prompt(NamedTuple):
    ids: tuple[int, ...]
    sampling: Sampling
    stop_ids: tuple[int, ...]


class _Said(NamedTuple):
    """Tokens drawn after a prompt, the one that ends them included, and perhaps more after that."""

    ids: Sequence[int]
    logps: Sequence[float]


class TurnsAtOnce:
    """Samples whatever waits in one call of ``generate`` (an :class:`~turnwise.agents.core.Engine`).

    All that waits must have the same sampling and stop ids.
    """

    def __init__(self, generate: Callable[[Sequence[_Prompt]], list[_Said]], context_length: int) -> None:
        self.context_length, self.version = context_length, 0
        self._generate = generate
        self._waiting: dict[int, _Prompt] = {}
        self._loop: EngineLoop[_Prompt, Completion] = EngineLoop(self, threaded=False)

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        """Sample one answer; ``seed`` is not used, since chance is that of the whole batch."""
        room = min(sampling.max_tokens, self.context_length - len(prompt_ids))
        prompt = _Prompt(tuple(prompt_ids), sampling._replace(max_tokens=room), tuple(stop_ids))
        return await self._loop.submit(prompt)

    def add(self, key: int, request: _Prompt) -> None:
        self._waiting[key] = request

    def abort(self, keys: Sequence[int]) -> None:
        for key in keys:
            self._waiting.pop(key, None)

    def step(self) -> list[tuple[int, Completion]]:
        """One call for all that wait."""
        asked, self._waiting = self._waiting, {}
        answers = zip(asked.items(), self._generate(list(asked.values())), strict=True)
        return [(key, _completion(prompt, said)) for (key, prompt), said in answers]

    def close(self) -> None:
        """Nothing is held."""


def by_transformers(model: Any) -> Callable[[Sequence[_Prompt]], list[_Said]]:
    """``generate`` of transformers, prompts padded on the left."""

    @torch.no_grad()
    def generate(prompts: Sequence[_Prompt]) -> list[_Said]:
        ids_RT, mask_RT = (x_RT.to(model.device) for x_RT in _padded_left([one.ids for one in prompts]))
        sampling = prompts[0].sampling
        cuda = model.device.type == "cuda"
        with torch.autocast("cuda", torch.bfloat16) if cuda else contextlib.nullcontext():
            done = model.generate(
                input_ids=ids_RT,
                attention_mask=mask_RT,
                do_sample=True,
                top_k=0,
                temperature=sampling.temperature,
                max_new_tokens=max(one.sampling.max_tokens for one in prompts),
                eos_token_id=list(prompts[0].stop_ids) or None,
                pad_token_id=0,
                return_dict_in_generate=True,
                output_logits=True,
            )
        said_RT = done.sequences[:, ids_RT.shape[1] :]
        logits_RTV = torch.stack(done.logits, 1).float() / sampling.temperature
        logp_RT = logits_RTV.log_softmax(-1).gather(-1, said_RT[..., None])[..., 0]
        return [_Said(*row) for row in zip(said_RT.tolist(), logp_RT.tolist(), strict=True)]

    return generate


def _padded_left(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    ids_RT = torch.zeros(len(rows), longest, dtype=torch.long)
    mask_RT = torch.zeros_like(ids_RT)
    for number, row in enumerate(rows):
        ids_RT[number, longest - len(row) :] = torch.tensor(row)
        mask_RT[number, longest - len(row) :] = 1
    return ids_RT, mask_RT


def _completion(asked: _Prompt, said: _Said) -> Completion:
    ends = [place for place, token in enumerate(said.ids) if token in asked.stop_ids]
    count = min(ends[0] + 1 if ends else len(said.ids), asked.sampling.max_tokens)
    ids, logps = tuple(said.ids[:count]), tuple(said.logps[:count])
    return Completion(ids, logps, ids[-1] in asked.stop_ids, (VersionSpan(0, 0),))


class Rollouts:
    """TRL's ``rollout_func``: is given the number of each episode's group, and plays its task."""

    def __init__(self, tasks: Sequence[Task], renderer: Renderer, sampling: Sampling) -> None:
        self.tasks, self.renderer, self.sampling = tasks, renderer, sampling
        self.seconds: list[float] = []  # of each call
        self.counts: list[tuple[int, int, int, int]] = []  # episodes, turns, sampled tokens, all tokens

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        start = time.perf_counter()
        model = trainer.accelerator.unwrap_model(trainer.model)
        engine = TurnsAtOnce(by_transformers(model), model.config.max_position_embeddings)
        policy = ModelPolicy(engine, self.renderer, self.sampling)
        first = len(self.seconds) * len(prompts)
        requests = [Request(self.tasks[int(prompt)], first + i) for i, prompt in enumerate(prompts)]
        training = model.training
        model.eval()
        episodes = run_episodes(requests, policy, concurrency=len(requests), retries=0)
        model.train(training)
        told = self._told(episodes)
        self.seconds.append(time.perf_counter() - start)
        return told

    def _told(self, episodes: Sequence[Episode]) -> dict[str, Any]:
        rows = collate_rows([episode.trajectory for episode in episodes])
        turns = sum(len(episode.trajectory.turns) for episode in episodes)
        count = len(episodes), turns, int(rows.mask_RT.sum()), int(rows.length_R.sum())
        self.counts.append(count)
        return told_to_trl(rows, episodes)


def told_to_trl(rows: TokenRows, episodes: Sequence[Episode]) -> dict[str, Any]:
    """Return rows, one of each episode, in the form that TRL asks its rollout function for."""
    told: dict[str, list[Any]] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": []}
    for row in range(len(rows.length_R)):
        first, end = int(rows.mask_RT[row].int().argmax()), int(rows.length_R[row])
        ids = rows.token_RT[row, :end].tolist()
        told["prompt_ids"].append(ids[:first])
        told["completion_ids"].append(ids[first:])
        told["logprobs"].append(rows.behaviour_logp_RT[row, first:end].tolist())
        told["env_mask"].append(rows.mask_RT[row, first:end].int().tolist())
    return {**told, "scored": [episode.score for episode in episodes]}


def trl_updates(
    name: str,
    model: Path,
    out: Path,
    tasks: Sequence[Task],
    load: UpdateWorkload,
    *,
    rollouts: Callable[[Sequence[Task], Renderer, Sampling], Rollouts] = Rollouts,
    learning_rate: float | None = None,
) -> Played:
    """Train a recipe's model by TRL, in this process.

    Args:
        name: of the recipe, for its sampling and its optimizer.
        model: where the policy is.
        out: TRL's folder.
        tasks: of the groups of all updates, in order.
        load: how many groups, episodes and threads there are, and how many updates do not count.
        rollouts: makes what plays.
        learning_rate: the recipe's if None.

    Raises:
        MissingDependencyError: TRL cannot be imported.
    """
    torch.set_num_threads(load.threads)
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    changes = {} if learning_rate is None else {"optimizer.learning_rate": learning_rate}
    setup = learning_setup(name, changes)
    tokenizer = load_tokenizer(model)
    drawn = Sampling(setup.temperature, 1.0, setup.max_tokens)
    play = rollouts(tasks, Renderer(tokenizer, tools_format=setup.tools), drawn)
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():  # its last line is a dictionary
        warnings.simplefilter("ignore")
        trainer, ends = _trainer(model, tokenizer, setup.optimizer, out, play, load)
        trainer.train()
    steps = trainer.state.global_step // len(play.counts)
    laps = [
        UpdateLap(end - start, played_s, end - start - played_s, 0.0, *count, steps)
        for (start, end), played_s, count in zip(
            pairwise(ends), play.seconds[1:], play.counts[1:], strict=True
        )
    ]  # from the end of one update to the end of the next, so that all that TRL does between them is in
    return Played(laps[max(0, load.skipped - 1) :], tasks, torch.get_num_threads())


def _trainer(
    model: Path,
    tokenizer: Any,
    options: OptimizerOptions,
    out: Path,
    play: Rollouts,
    load: UpdateWorkload,
) -> tuple[Any, list[float]]:
    """TRL's trainer, and the times at which its updates will have ended."""
    try:
        from datasets import Dataset  # pyright: ignore
        from transformers import TrainerCallback
        from trl.trainer.grpo_trainer import GRPOTrainer  # pyright: ignore
    except ImportError as error:
        raise MissingDependencyError(f"TRL cannot be imported: {error}.", "pip install trl") from error
    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step % options.minibatches == 0:
                ends.append(time.perf_counter())

    tokenizer.padding_side = "left"
    numbers = range(load.groups * (load.skipped + load.updates))
    policy: Any = load_model(model, choose_device("auto"))
    trainer = GRPOTrainer(
        model=policy,
        reward_funcs=_scores,
        args=_config(options, out, load),
        train_dataset=Dataset.from_dict({"prompt": [str(number) for number in numbers]}),
        processing_class=tokenizer,
        rollout_func=play,
        callbacks=[Clock()],
    )
    return trainer, ends


def _scores(completions: object, scored: list[float | None], **_: object) -> list[float | None]:
    return scored


def _config(options: OptimizerOptions, out: Path, load: UpdateWorkload) -> Any:
    from trl.trainer.grpo_config import GRPOConfig  # pyright: ignore

    batch = load.groups * load.group_size
    minibatch, cuda = batch // options.minibatches, torch.cuda.is_available()
    micro = next(rows for rows in range(min(load.trl_rows, minibatch), 0, -1) if minibatch % rows == 0)
    return GRPOConfig(
        output_dir=str(out),
        learning_rate=options.learning_rate,
        adam_beta1=options.betas[0],
        adam_beta2=options.betas[1],
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        lr_scheduler_type="constant",
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=minibatch // micro,
        generation_batch_size=batch,
        num_generations=load.group_size,
        max_steps=(load.skipped + load.updates) * options.minibatches,
        loss_type="dapo",
        beta=0.0,
        shuffle_dataset=False,
        gradient_checkpointing=False,
        use_cpu=not cuda,
        bf16=cuda,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
