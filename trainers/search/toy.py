"""A policy that tells tokens and log-probabilities without a model, and searches tried on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from turnwise.agents.core import Episode, History, Policy, Reply
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, rollout
from turnwise.agents.rollout_tasks import EpisodeSearch
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.registry import Component
from turnwise.tasks.core import Split, derive_rng
from turnwise.trainers.search.core import NodeScorer, Path, SearchNode, SeenTurn
from turnwise.trainers.search.run import Search, make_search
from turnwise.trainers.search.scorers import make_scorer

SUITE, SPEC = "shop/quick", "mix:gold=1,random=1"


class ToyPolicy:
    """A scripted policy whose replies have tokens, one for each word and two more, and log-probabilities by chance; as a judge it grades by chance."""

    version = 0

    def __init__(self, spec: str = SPEC) -> None:
        self._policy: Policy = make_policy(spec)
        self.name = f"toy:{spec}"

    async def act(self, history: History) -> Reply:
        if history.task.env == "judge":
            return Reply(
                Message("assistant", _grades(history.task.prompt)), action_ids=(1, 2, 3), logprobs=(-0.1,) * 3
            )
        reply = await self._policy.act(history)
        said = f"{reply.message.content} {[call.arguments for call in reply.message.tool_calls]}"
        rng = derive_rng("toy", history.seed, len(history.turns))
        tokens = len(said.split()) + 2
        ids = tuple(rng.randrange(100) for _ in range(tokens))
        return reply._replace(action_ids=ids, logprobs=tuple(-rng.random() for _ in ids))

    def close(self) -> None:
        self._policy.close()


def _grades(question: str) -> str:
    """Grades by chance, from the question alone, in both of the forms that judges are asked for."""
    rng = derive_rng("grade", question)
    return "\n".join([f"SCORE: {rng.random():.3f}", *(f"SCORE {n}: {rng.random():.3f}" for n in range(1, 9))])


class ToyScorer:
    """Numbers by chance, from what was said alone; it looks at nothing else."""

    name, whole, forks, oracle = "toy", False, False, False

    async def score(self, searcher: object, nodes: Sequence[SearchNode]) -> list[float]:
        return [derive_rng("score", str(node.messages())).random() for node in nodes]

    def close(self) -> None:
        """Nothing is held."""


def node(path: Path, logprobs: Sequence[float], over: bool = False) -> SearchNode:
    """A node after one turn with such log-probabilities."""
    turn = SeenTurn(Messages(), Message("assistant", "!"), tuple(logprobs))
    return SearchNode(path, (turn,) * len(path), Messages(), over)


def toy_searches(
    spec: str | Component,
    *,
    budget: float,
    scorer: str | NodeScorer = "",
    policy: Policy | None = None,
    suite: str = SUITE,
    episodes: int = 1,
    seed: int = 0,
    play: Callable[..., Any] = rollout,
) -> list[Episode]:
    """Search episodes of a small shop with the toy policy, one after the other."""
    search: EpisodeSearch
    if isinstance(spec, str):
        search = make_search(spec, budget=budget, scorer=scorer)
    else:
        search = Search(spec, {}, budget, make_scorer(scorer) if isinstance(scorer, str) else scorer)
    player = policy or ToyPolicy()
    search.check(get_suite(suite), player)
    tasks = suite_tasks(get_suite(suite), Split.TRAIN, episodes)
    requests = [Request(task, seed + n) for n, task in enumerate(tasks)]
    try:
        return asyncio.run(search.rollout(requests, player, concurrency=1, play=play))
    finally:
        search.close()


def toy_search(spec: str, *, budget: float, scorer: str | NodeScorer = "", seed: int = 0) -> Episode:
    """One of them."""
    return toy_searches(spec, budget=budget, scorer=scorer, seed=seed)[0]
