"""Plays the requests of an evaluation by a search: made from a spec, checked against suite and policy, labelled by what it does."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from turnwise.agents.core import Episode, Policy, attends
from turnwise.agents.multi_agent import agents_of, policy_map
from turnwise.agents.rollout import BranchPoint, EpisodeGate, Limits, Request, check_numbers, rollout
from turnwise.agents.rollout_tasks import EpisodeSearch
from turnwise.agents.workers.pool import WorkerPool, workers_for
from turnwise.envs.core import ForkCost
from turnwise.envs.registry import env_class
from turnwise.errors import TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.registry import Component, get_component
from turnwise.tasks.core import Json, Suite
from turnwise.trainers.search.core import NodeScorer, Searcher, SearchFunction
from turnwise.trainers.search.cost import SearchRights
from turnwise.trainers.search.own_scorer import as_scorer
from turnwise.trainers.search.scorers import make_scorer, scorer_forms

WHOLE, FORKS, ORACLE = "chooses among whole episodes", "forks the test world", "oracle"
"""The labels: one of the first two, and the third where the environment's verdict is looked at."""


class Search:
    """A search that plays an evaluation (:func:`turnwise.evaluate`, ``search=``).

    Args:
        entry, options: the component and its options.
        budget: tokens that policy and scorer may sample for each episode.
        scorer: says how good tries are.

    Attributes:
        spec: as it was asked for.
        label: what it does that a deployment could not; part of the name in every table.
    """

    def __init__(
        self,
        entry: Component,
        options: Mapping[str, Json],
        budget: float,
        scorer: NodeScorer | None,
        spec: str = "",
    ) -> None:
        if not budget > 0:
            raise TurnwiseError(f"The budget of a search is {budget:g} tokens.", "Give more than 0.")
        if scorer is None and "scorer" in entry.needs:
            raise TurnwiseError(
                f"The search {entry.name!r} chooses by a scorer, and none is named.",
                f"Name one: {scorer_forms()}.",
            )
        if scorer is not None and scorer.whole and entry.forks:
            raise TurnwiseError(
                f"The search {entry.name!r} scores states on the way, and {scorer.name!r} compares whole episodes.",
                "Choose another scorer, such as value:CHECKPOINT or judge:POLICY; or the search best_of_n or votes.",
            )
        self.entry, self.budget, self.scorer, self.spec = entry, budget, scorer, spec or entry.name
        self._search: SearchFunction = entry.build(options)
        self.rights = SearchRights(
            entry.forks or bool(scorer and scorer.forks), bool(scorer and scorer.oracle)
        )
        self.label = ", ".join(
            [FORKS if self.rights.forks else WHOLE, *([ORACLE] if self.rights.oracle else [])]
        )

    def named(self, policy: str) -> str:
        """The name under which what it plays stands in logs, tables and pages.

        >>> make_search("best_of_n", budget=100, scorer="votes").named("scripted:gold")
        'best_of_n by votes (chooses among whole episodes) of scripted:gold'
        """
        by = f" by {self.scorer.name}" if self.scorer else ""
        return f"{self.spec}{by} ({self.label}) of {policy}"

    @property
    def asked(self) -> dict[str, Json]:
        """All of it that an episode depends on: a resume must ask the same."""
        source = getattr(self.scorer, "source", "")
        return {
            "spec": self.spec, "budget": self.budget, "scorer": self.scorer.name if self.scorer else "", "scorer_files": source,
        }  # fmt: skip

    def check(self, suite: Suite, policy: Policy) -> None:
        """Refuse what the suite's worlds or the policy cannot do.

        Raises:
            TurnwiseError: with the searches that could.
        """
        if not self.rights.forks:
            return
        why = ""
        if env_class(suite.env).fork_cost is ForkCost.NONE:
            why = f"nobody can go back in the worlds of {suite.name} (fork_cost = NONE)"
        elif len(agents_of(suite)) > 1:
            why = f"the episodes of {suite.name} have several agents"
        elif attends(policy):
            why = f"the policy {getattr(policy, 'name', '')} is a program, which cannot be taken back to an earlier turn"
        if why:
            raise TurnwiseError(
                f"The search {self.spec!r} forks the test world, and {why}.",
                "Choose one that needs whole episodes alone: best_of_n, votes or self_prm, with a scorer that does not fork.",
            )

    async def rollout(
        self,
        requests: Iterable[Request],
        policy: Policy,
        *,
        opponents: Mapping[str, Policy] | None = None,
        concurrency: int = 64,
        limits: Limits | None = None,
        retries: int = 1,
        env_options: Mapping[str, Any] | None = None,
        env_workers: int | WorkerPool = 0,
        on_episode: Callable[[int, Episode], None] | None = None,
        gate: EpisodeGate | None = None,
        play: Callable[..., Any] = rollout,
    ) -> list[Episode]:
        """Search one episode for each request, ``concurrency`` requests at a time; the tries at one follow each other."""
        check_numbers(concurrency, retries)
        with ExitStack() as stack:
            workers = env_workers
            if isinstance(env_workers, int):
                workers = stack.enter_context(workers_for(env_workers)) or 0
            options: dict[str, Any] = {
                "concurrency": 1, "limits": limits, "retries": retries, "env_options": env_options, "env_workers": workers,
            }  # fmt: skip
            tried = functools.partial(_tries, play, opponents or {}, options)
            places, found = asyncio.Semaphore(concurrency), dict[int, Episode]()

            async def one(index: int, request: Request) -> None:
                try:
                    if gate is not None and not await gate.may_begin():
                        return
                    tools = env_class(request.task.env).tools
                    named = request._replace(key=request.key or (index,))
                    searcher = Searcher(named, policy, tried, self.scorer, self.rights, self.budget, tools)
                    found[index] = episode = await searcher.run(self._search)
                    if on_episode is not None:
                        on_episode(index, episode)
                    if gate is not None:
                        await gate.ended(episode)
                finally:
                    places.release()

            try:
                async with asyncio.TaskGroup() as group:
                    for index, request in enumerate(requests):
                        await places.acquire()
                        group.create_task(one(index, request))
            except BaseExceptionGroup as several:
                raise several.exceptions[0] from None
        return [found[index] for index in sorted(found)]

    def close(self) -> None:
        """Give up what the scorer holds."""
        if self.scorer is not None:
            self.scorer.close()


async def _tries(
    play: Callable[..., Any],
    opponents: Mapping[str, Policy],
    options: Mapping[str, Any],
    requests: Sequence[Request],
    policy: Policy,
    on_branch_point: Callable[[int, BranchPoint], None] | None,
) -> list[Episode]:
    return await play(requests, policy_map(policy, opponents), on_branch_point=on_branch_point, **options)


def make_search(spec: str, *, budget: float, scorer: object = "") -> EpisodeSearch:
    """The search that a spec names, for :func:`turnwise.evaluate`. Close it where its scorer holds a model.

    >>> search = make_search("mcts:children=2,c=1.0", budget=2000, scorer="logp")
    >>> search.label
    'forks the test world'

    Args:
        spec: its name, and options after a colon: ``NAME:KEY=VALUE,KEY=VALUE`` (`turnwise list search`).
        budget: tokens that policy and scorer may sample for each episode; plain play's are part of them.
        scorer: by which it chooses: ``value:CHECKPOINT``, ``judge:POLICY``, ``listed:POLICY``, ``logp``, ``votes``, ``fork:N``,
            ``oracle`` or ``python:FILE.py:OBJECT``; or an object that scores (docs/how-to/test-time-search.md).

    Returns:
        The search.

    Raises:
        TurnwiseError: there is no such search, option or scorer, or they do not go together.
    """
    name, _, said = spec.partition(":")
    entry = get_component("search", name)
    options: dict[str, Json] = {}
    for part in filter(None, said.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise TurnwiseError(f"{part!r} in the search {spec!r} is no option.", f"Write {name}:KEY=VALUE.")
        options[key.strip()] = read_yaml(value)
    made = (make_scorer(scorer) if scorer else None) if isinstance(scorer, str) else as_scorer(scorer)
    return Search(entry, options, budget, made, spec)
