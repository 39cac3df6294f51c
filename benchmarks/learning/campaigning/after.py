"""What a plan asks of a finished run: pass@k and entropy turn by turn on dev, how likely it finds demonstrations, and its verdicts on
its own attempts."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from campaigning.plan import START, After, Cell, Plan
from turnwise.agents.core import Episode
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError

ROWS = 32
"""Rows of tokens that are read at a time."""
ATTEMPTS = 4
"""At each task of which verdicts are asked."""


def after_file(run: Path) -> Path:
    """Where the answers of a run stand: beside its folder."""
    return run.with_name(f"{run.name}.after.json")


def ask(plan: Plan, cell: Cell, runs: Path) -> None:
    """Answer what the plan asks of the cell's finished run, unless it was answered before.

    Raises:
        TurnwiseError: a program plays the recipe's episodes, so that no model can be asked alone.
    """
    asked = plan.after.model_dump(mode="json")
    if cell.method == START or not plan.after.asks:
        return
    run = cell.folder(runs)
    file = after_file(run)
    if file.exists() and json.loads(file.read_text("utf-8"))["asked"] == asked:
        return
    found = asyncio.run(measured(run, plan.after))
    write_whole(file, json.dumps({"asked": asked, "found": found}, indent=1) + "\n")


def answers(run: Path) -> Mapping[str, Any]:
    """What was answered of a run; nothing where nothing was asked."""
    file = after_file(run)
    return json.loads(file.read_text("utf-8")) if file.exists() else {}


async def measured(run: Path, after: After) -> dict[str, Any]:
    """The answers, from the run's recipe and checkpoints alone."""
    from turnwise.trainers.recipe.load import load_recipe

    recipe = load_recipe(run / "recipe.yaml")
    if recipe.agent is not None:
        raise TurnwiseError(
            f"{run}: a program plays its episodes, and `after` asks the model alone.",
            "Leave `after` out of the plan.",
        )
    found: dict[str, Any] = {}
    best = run / "best" / "model"
    if after.pass_at:
        found |= await _played(recipe, best, after)
    models = {"before": run / "checkpoints" / "step-000000" / "model", "after": best}
    if after.demonstrations:
        found["nll"] = await _nll(recipe, models, after)
    if after.verdicts:
        found["verdicts"] = {name: await _verdicts(recipe, model, after) for name, model in models.items()}
    return found


def _policy(recipe: Any, model: Path) -> Any:
    """A model that samples as in training."""
    from turnwise.agents.policies.registry import make_policy

    sampling = recipe.sampling
    return make_policy(
        f"{recipe.engine.kind}:{model}",
        temperature=sampling.temperature, max_tokens=sampling.max_tokens, tools=sampling.tools,
        instruction=sampling.instruction, max_sequences=recipe.engine.max_sequences, seed=recipe.seed,
    )  # fmt: skip


async def _played(recipe: Any, model: Path, after: After) -> dict[str, Any]:
    """pass@k on dev, suites weighed as in training, and the entropy of what was sampled there, turn by turn."""
    from turnwise.agents.evaluation.evaluate import evaluate_async
    from turnwise.trainers.run.door import limits_of
    from turnwise.trainers.sampler.mixture import Mixture

    rollout, policy = recipe.rollout, _policy(recipe, model)
    mean, success, episodes = 0.0, 0.0, list[Episode]()
    try:
        for suite, share in Mixture(recipe.suites, recipe.seed).shares:
            one = await evaluate_async(
                suite,
                policy,
                split="dev",
                episodes=after.tasks * after.pass_at,
                k=after.pass_at,
                seed=recipe.seed,
                concurrency=rollout.concurrency,
                limits=limits_of(rollout),
                env_options=rollout.env_options,
                env_workers=rollout.env_workers,
                opponents=recipe.evaluate.opponents,
                on_episode=lambda _, episode: episodes.append(episode),
            )
            mean += share * (one.pass_at_k if one.pass_at_k is not None else math.nan)
            success += share * one.success
    finally:
        getattr(policy, "close", lambda: None)()
    by_turn = entropy_by_turn(model, recipe, [one for one in episodes if one.outcome.counts])
    return {
        "pass_at": {"k": after.pass_at, "tasks": after.tasks, "success": success, "pass_at_k": mean},
        "entropy_by_turn": by_turn,
    }


async def _verdicts(recipe: Any, model: Path, after: After) -> dict[str, float]:
    """Of a model's attempts at dev tasks, each is asked about once as the proposer `rise` asks: solved and unsolved ones that are alike,
    so that always saying the same is right in half. How many were asked, and the shares that were right and that had no answer."""
    from turnwise.agents.evaluation.evaluate import evaluate_async
    from turnwise.agents.rollout import Request, rollout
    from turnwise.trainers.proposer.core import ProposerContext
    from turnwise.trainers.proposer.rise import rise
    from turnwise.trainers.run.door import limits_of
    from turnwise.trainers.sampler.mixture import Mixture

    options, policy, attempts = recipe.rollout, _policy(recipe, model), list[Episode]()
    try:
        for suite, _ in Mixture(recipe.suites, recipe.seed).shares:
            await evaluate_async(
                suite, policy, split="dev", episodes=after.verdicts * ATTEMPTS, k=ATTEMPTS, seed=recipe.seed,
                concurrency=options.concurrency, limits=limits_of(options), env_options=options.env_options,
                env_workers=options.env_workers, opponents=recipe.evaluate.opponents,
                on_episode=lambda _, episode: attempts.append(episode),
            )  # fmt: skip
        attempts.sort(key=lambda one: (one.task.id, one.seed))  # they end in any order
        asked = rise(ProposerContext(recipe.seed, 0, [attempts]), share=1.0)
        requests = [Request(one.task, n) for n, one in enumerate(asked)]
        said = await rollout(requests, policy, concurrency=options.concurrency, limits=limits_of(options))
    finally:
        getattr(policy, "close", lambda: None)()
    malformed = sum(
        bool(turn.details.get("malformed", True)) for one in said for turn in one.trajectory.turns[-1:]
    )
    most = max(1, len(said))
    return {
        "asked": len(said),
        "right": sum(one.success for one in said) / most,
        "unanswered": malformed / most,
        "solved": sum(one.success for one in attempts) / max(1, len(attempts)),
    }


def entropy_by_turn(model: Path, recipe: Any, episodes: Sequence[Episode]) -> list[list[float]]:
    """Of each turn index, from 0, the mean entropy of the sampled tokens' distributions in nats, and their number."""
    said = [one for episode in episodes for one in episode.trajectories.values() if one.turns]
    total, count = dict[int, float](), dict[int, int]()
    for scored in _read(model, recipe.sampling.temperature, said):
        for turn, entropy in zip(scored.turns, scored.entropies, strict=True):
            total[turn] = total.get(turn, 0.0) + entropy
            count[turn] = count.get(turn, 0) + 1
    return [[round(total[k] / count[k], 5), count[k]] for k in sorted(count)]


async def _nll(recipe: Any, models: Mapping[str, Path], after: After) -> dict[str, float]:
    """−log p of a token of the demonstrations that a warm start shows first, in nats, of each of the models; no other
    distribution than the model's own, at temperature 1."""
    from turnwise.agents.models.loading import load_tokenizer
    from turnwise.agents.tokens.renderer import Renderer
    from turnwise.trainers.learn.warm_start import demonstrations
    from turnwise.trainers.run.door import limits_of
    from turnwise.trainers.sampler.mixture import Mixture

    sampling, rollout = recipe.sampling, recipe.rollout
    renderer = Renderer(
        load_tokenizer(models["after"]), tools_format=sampling.tools, instruction=sampling.instruction
    )
    shown = await demonstrations(
        Mixture(recipe.suites, recipe.seed), after.demonstrator, recipe.seed, after.demonstrations, 0,
        rollout.env_options, renderer, env_workers=rollout.env_workers, limits=limits_of(rollout),
    )  # fmt: skip
    found: dict[str, float] = {"episodes": after.demonstrations}
    for name, model in models.items():
        logp = [x for scored in _read(model, 1.0, shown) for x in scored.logps]
        found |= {name: round(-math.fsum(logp) / len(logp), 5), "tokens": len(logp)}
    return found


class Scored(NamedTuple):
    """Sampled tokens of some rows, one after the other: the turn of each, its log-probability, the entropy."""

    turns: Sequence[int]
    logps: Sequence[float]
    entropies: Sequence[float]


def _read(model: Path, temperature: float, trajectories: Sequence[Any]) -> Iterator[Scored]:
    """What a model says of the tokens of these trajectories."""
    import torch

    from turnwise.trainers.learn.collate import collate_rows
    from turnwise.trainers.learn.model import choose_device, load_model
    from turnwise.trainers.learn.passes import Reader

    device = choose_device("auto")
    loaded, reader = load_model(model, device, frozen=True), Reader(device, temperature, "float32")
    with torch.no_grad():
        for first in range(0, len(trajectories), ROWS):
            rows = collate_rows(trajectories[first : first + ROWS])
            scores = reader.scores(loaded, rows)
            chosen_RT = rows.mask_RT
            yield Scored(
                rows.turn_RT[chosen_RT].tolist(),
                scores.logp_RT.cpu()[chosen_RT].double().tolist(),
                scores.entropy_RT.cpu()[chosen_RT].double().tolist(),
            )
