"""A run directory as a trainer would leave it, played for real by scripted policies of rising skill."""

from __future__ import annotations

import asyncio
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from turnwise.agents.core import Episode, History, Reply
from turnwise.agents.evaluation.evaluate import evaluate_async
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.rollout import Request, rollout
from turnwise.envs.baselines import SCRIPTS, moment
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split, derive_rng
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.credit.return_to_go import return_to_go
from turnwise.trainers.sampler.mixture import Mixture

SUITE = "shop/quick"
RECIPE = """\
suite: shop/quick
policy: {name: small, layers: 4, width: 192}
credit: return_to_go
loss: clip
correction: truncated_importance
reduce: token_mean
tasks_per_update: 6
episodes_per_task: 6
learning_rate: 3.0e-4
seed: 0
"""
OBJECTIVE = """\
Maximise the expected return of an episode, turn by turn.
A_ik = G_ik − mean over peers j ≠ i of G_jk,   G_ik = r_ik + G_i,k+1
L = − Σ_tokens min(ρ A, clip(ρ, 0.8, 1.28) A) / number of tokens,   ρ = π / π_old
"""


@dataclass
class Shopper:
    """Plays the gold action with probability ``skill``, else anything possible."""

    skill: float
    name: str = "shopper"
    version: int = 0

    async def act(self, history: History) -> Reply:
        rng = derive_rng("shopper", history.task.id, history.seed, len(history.turns))
        script = "gold" if rng.random() < self.skill else "random"
        if rng.random() < 0.03:
            return Reply(Message("assistant", "buy it, please"), (1, 2), (3, 4), (-0.1, -0.2))
        said = SCRIPTS[script](moment(history.env, history.observation, self.name))
        message = Message("assistant", said) if isinstance(said, str) else said
        return Reply(message, (1, 2), tuple(range(len(message.content) // 4)), (-0.5,))

    def close(self) -> None:
        pass


def credit_of(groups: list[list[Episode]]) -> list[list[list[float]]]:
    """Real advantages, per group, episode and turn."""
    flat = [episode for group in groups for episode in group]
    turns = [episode.trajectory.turns for episode in flat]
    longest = max(map(len, turns))
    reward = torch.tensor([[t.reward for t in ts] + [0.0] * (longest - len(ts)) for ts in turns])
    mask = torch.arange(longest) < torch.tensor([[len(ts)] for ts in turns])
    number = torch.tensor([i for i, group in enumerate(groups) for _ in group])
    truncated = torch.zeros(len(flat), dtype=torch.bool)
    batch = TurnBatch(reward, mask, number, truncated, torch.zeros_like(mask, dtype=torch.long))
    rows = iter(return_to_go(batch).tolist())
    return [[next(rows)[: len(e.trajectory.turns)] for e in group] for group in groups]


async def play_run(
    path: Path, *, updates: int, tasks: int = 6, siblings: int = 6, held_out: int = 200
) -> None:
    """Fill ``path`` with a run whose policy improves from update to update."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "recipe.yaml").write_text(RECIPE)
    (path / "objective.txt").write_text(OBJECTIVE)
    suite = get_suite(SUITE)
    options = {"shaping": 0.5}
    metrics = (path / "metrics.jsonl").open("w")
    evaluations = (path / "evaluations.jsonl").open("w")

    async def evaluate(name: str, skill: float) -> None:
        for mode, bonus in (("sampled", 0.0), ("greedy", 0.02)):
            result = await evaluate_async(suite, Shopper(skill + bonus), episodes=held_out)
            row = {"name": name, "mode": mode, **result.to_json(results=True)}
            evaluations.write(json.dumps(row) + "\n")

    for update in range(12):
        loss = 2.2 * math.exp(-update / 4) + 0.3
        metrics.write(
            json.dumps({"update": update, "phase": "warm_start", "loss": loss, "seconds": 1.5}) + "\n"
        )
    await evaluate("warm start", 0.4)
    with EpisodeLog(path / "episodes.jsonl.zst", policy="shopper", env_options=options) as log:
        for update in range(updates):
            started, skill = time.monotonic(), 0.4 + 0.45 * update / max(1, updates - 1)
            drawn = list(suite_tasks(suite, Split.TRAIN, tasks, start=tasks * update))
            requests = [Request(task, 1000 * update + i) for task in drawn for i in range(siblings)]
            played = await rollout(requests, Shopper(skill), env_options=options)
            groups = [played[i : i + siblings] for i in range(0, len(played), siblings)]
            for number, (group, advantages) in enumerate(zip(groups, credit_of(groups), strict=True)):
                for episode, advantage in zip(group, advantages, strict=True):
                    log.append(episode, update=update, group=number, advantages={"agent": advantage})
            log.flush()
            seconds = time.monotonic() - started
            noise = derive_rng("noise", update).gauss(0, 1)
            row = {
                "update": update,
                "phase": "rl",
                "reward": sum(e.trajectory.total_reward for e in played) / len(played),
                "success": sum(e.success for e in played) / len(played),
                "turns": sum(len(e.trajectory.turns) for e in played) / len(played),
                "entropy": -skill * math.log(skill) - (1 - skill) * math.log(1 - skill),
                "kl": 0.002 * update + 0.004 * abs(noise),
                "clip_high": min(1.0, 0.05 + 0.01 * abs(noise)),
                "tokens_per_second": sum(len(t.reply.action_ids) for e in played for t in e.trajectory.turns)
                / seconds,
                "seconds": seconds,
                "engine_gap": 0.01 + 0.002 * noise,
            }
            if update % 5 == 0 or update == updates - 1:
                dev = await evaluate_async(suite, Shopper(skill), split="dev", episodes=held_out // 2)
                row |= {"dev_success": dev.success, "dev_success_interval": list(dev.success_interval)}
            metrics.write(json.dumps(row) + "\n")
    await evaluate("after RL", 0.85)
    metrics.close()
    evaluations.close()


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "quickstart"
    asyncio.run(play_run(path, updates=6, tasks=2, siblings=4, held_out=40))
    return path


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer model whose tokeniser knows the shop's words; context 512."""
    from turnwise.agents.models.small import build_small_model
    from turnwise.trainers.learn.warm_start import demonstrations, texts

    shown = asyncio.run(demonstrations(Mixture({SUITE: 1}, 0), "gold", 0, 40, 0))
    folder = tmp_path_factory.mktemp("small")
    return build_small_model(
        folder, texts(shown), vocab_size=400, layers=2, width=64, heads=2, context=512, seed=1
    )


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The recipe of ``tests/letters.py``, whose environment pays even a random model, as a mapping."""
    import yaml

    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from letters import RECIPE, register_letters

    register_letters()
    return yaml.safe_load(RECIPE)
