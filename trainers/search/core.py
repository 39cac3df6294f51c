"""The vocabulary of searches: nodes that hide what the environment paid, scorers, and the searcher that plays and counts."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from turnwise.agents.core import Episode, Policy, Reply
from turnwise.agents.rollout import BranchPoint, Request
from turnwise.envs.core import ForkCost
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class
from turnwise.errors import TurnwiseError
from turnwise.tools.core import Tool
from turnwise.trainers.search.cost import Metered, SearchCost, SearchRights, tokens_of

Path: TypeAlias = tuple[int, ...]
"""A node's name: which way was taken at each turn from the beginning on. Plain play is all zeros."""


class SeenTurn(NamedTuple):
    """A turn as whoever chooses sees it: neither its reward nor what the environment says about it."""

    observation: Messages
    action: Message
    logprobs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class SearchNode:
    """A state that a try came to, with all that was said on the way.

    Attributes:
        path: its name.
        turns: of the agent that is evaluated.
        observation: what it observed last, before its next turn or at the end.
        over: the episode has ended; how, is not told.
        tools: that the agent has.
    """

    path: Path
    turns: tuple[SeenTurn, ...] = ()
    observation: Messages = field(default_factory=Messages)
    over: bool = False
    tools: Sequence[Tool] = ()

    def messages(self) -> list[Message]:
        """The conversation up to this state."""
        said = [m for turn in self.turns for m in (*turn.observation, turn.action)]
        return [*said, *self.observation]

    def logprob(self) -> float:
        """Sum of the log-probabilities of the sampled tokens.

        Raises:
            TurnwiseError: the policy tells none.
        """
        if any(not turn.logprobs for turn in self.turns):
            raise TurnwiseError(
                "The policy tells no log-probabilities, by which its tries shall be ranked.",
                "Evaluate a model that is sampled here (torch:PATH, vllm:PATH), or choose another scorer.",
            )
        return sum(sum(turn.logprobs) for turn in self.turns)


class NodeScorer(Protocol):
    """Says how good nodes are, the higher the better.

    Attributes:
        name: as it is asked for.
        whole: it compares whole episodes and says nothing of states on the way.
        forks: it plays on from the states of the world that is played.
        oracle: it looks at what the environment says of an episode, which no deployment has.
    """

    name: str
    whole: bool
    forks: bool
    oracle: bool

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        """A finite number for each node."""
        ...

    def close(self) -> None:
        """Give up what it holds, such as a model."""
        ...


class BudgetSpent(Exception):
    """Nothing is left of the budget; what the search kept is its result."""


class PlaysTask(Protocol):
    """Plays requests; :func:`turnwise.agents.rollout.rollout` with options of its own."""

    def __call__(
        self,
        requests: Sequence[Request],
        policy: Policy,
        on_branch_point: Callable[[int, BranchPoint], None] | None,
    ) -> Awaitable[list[Episode]]: ...


class _Kept(NamedTuple):
    """The searcher's own record of a node, shown to nobody."""

    point: BranchPoint | None
    episode: Episode | None = None


class Searcher:
    """Plays tries at one task, and counts them; one search and one scorer work with it.

    Whatever samples raises :class:`BudgetSpent` once nothing is left, after at most one turn too many. :meth:`offer` keeps
    the best try so far, so that a search may stop at any moment. Plain play comes first and is its first try: with the
    budget of one episode every search is plain play.

    Args:
        request: the episode that is asked for.
        policy: plays.
        play: plays requests.
        scorer: scores nodes; None for searches that need none.
        rights: what search and scorer declared.
        budget: tokens that both may sample.
        tools: of the agent.

    Attributes:
        first, root: the end of plain play, and where it began.
        kept: the try that is the result as things stand.
        cost: what was sampled.
    """

    def __init__(
        self,
        request: Request,
        policy: Policy,
        play: PlaysTask,
        scorer: NodeScorer | None,
        rights: SearchRights,
        budget: float,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.policy, self.scorer, self.cost = policy, scorer, SearchCost(budget)
        self._request, self._play, self._rights, self._tools = request, play, rights, tools
        self._held: dict[Path, _Kept] = {}
        self._nodes: dict[Path, SearchNode] = {}
        self._scores: dict[Path, float] = {}
        self._per_turn: list[int] = []
        self.root = self.first = self.kept = SearchNode(())

    @property
    def left(self) -> float:
        """Tokens that may still be sampled."""
        return self.cost.left

    # --- playing ---------------------------------------------------------------------------------

    async def run(self, search: Callable[[Searcher], Awaitable[None]]) -> Episode:
        """Play plainly, then search, and return the episode that was kept."""
        began = time.monotonic()
        episode = await self._begin()
        if self.first.over and self.first.turns:
            with contextlib.suppress(BudgetSpent):
                await search(self)
            episode = self._held[self.kept.path].episode or episode
        figures = {**self.cost.metrics(self._rights), "seconds": time.monotonic() - began}
        return replace(episode, metrics={**episode.metrics, **figures})

    async def _begin(self) -> Episode:
        episode = await self._try(self._request, math.inf, ())
        turns = episode.trajectory.turns
        self._per_turn = [tokens_of(turn.reply) for turn in turns]
        self.root = self._nodes.get((), SearchNode((), tools=self._tools))
        self.first = self.kept = self._nodes.get((0,) * len(turns), self.root)
        return episode

    async def again(self, number: int) -> SearchNode | None:
        """A further whole episode from the beginning; None if it failed for a reason that is not the policy's.

        Raises:
            BudgetSpent: nothing is left, also where the episode had to be cut.
        """
        path = (number,)
        return await self._go(
            self._request._replace(draw=path, key=(*self._request.key, *path)), path, math.inf
        )

    async def step(self, node: SearchNode, way: int) -> SearchNode | None:
        """The state after one more turn, the ``way``-th that is tried there; one that was played is not played again."""
        path = (*node.path, way)
        return self._nodes.get(path) or await self._fork(node, path, len(node.turns) + 1)

    async def play_on(self, node: SearchNode) -> SearchNode | None:
        """A new way from a state to the end of the episode."""
        way = 0
        while (*node.path, way) in self._nodes:
            way += 1
        return await self._fork(node, (*node.path, way), math.inf)

    async def expand(self, node: SearchNode, ways: int) -> list[SearchNode]:
        """The states after so many turns that are tried from one; those that failed are left out."""
        found = [await self.step(node, way) for way in range(ways)]
        return [child for child in found if child is not None]

    async def _fork(self, node: SearchNode, path: Path, last: float) -> SearchNode | None:
        if not self._rights.forks:
            raise TurnwiseError(
                "This search goes on from a state in the middle of an episode and does not declare it.",
                "Register it (or its scorer) with forks=True, so that its results are labelled.",
            )
        point = self._held[node.path].point
        if point is None:
            raise TurnwiseError(
                "A search goes on from a state that ended.", "Leave out nodes that are `over`."
            )
        self.cost.forks += 1
        if env_class(self._request.task.env).fork_cost is ForkCost.REPLAY:
            self.cost.replayed += len(point.turns)
        request = self._request._replace(start=point, draw=path, key=(*self._request.key, *path))
        return await self._go(request, path, last)

    async def _go(self, request: Request, path: Path, last: float) -> SearchNode | None:
        if self.left <= 0:
            raise BudgetSpent
        episode = await self._try(request, last, path)
        if not episode.outcome.counts or (len(episode.trajectory.turns) == request.played and self.left > 0):
            return None  # it failed, or the policy had no room for a turn
        known = self._nodes.get((*path, *(0,) * (len(episode.trajectory.turns) - request.played - 1)))
        if known is None or (last == math.inf and not known.over):
            raise BudgetSpent
        return known

    async def _try(self, request: Request, last: float, path: Path) -> Episode:
        """Play a request up to a turn, and note the states that it came to; the first of its new turns is called ``path``."""
        points: dict[int, BranchPoint] = {}

        def note(_: int, point: BranchPoint) -> None:
            if len(point.turns) == request.played:  # the first one, perhaps of another attempt
                points.clear()
            points[len(point.turns)] = point

        policy = Metered(self.policy, self.cost, last)
        (episode,) = await self._play([request], policy, note if self._rights.forks else None)
        turns = episode.trajectory.turns
        self.cost.steps += len(turns) - request.played
        if not episode.outcome.counts:
            return episode
        ended = not policy.stopped
        self.cost.episodes += ended
        seen = tuple(SeenTurn(t.observation, t.action, t.reply.logprobs) for t in turns)
        for depth in range(request.played, len(turns) + 1):
            over = ended and depth == len(turns)
            point = points.get(depth)
            if not over and point is None:
                continue
            name = self._name(path, request.played, depth)
            if name in self._nodes:
                continue
            told = (
                episode.trajectory.final if over else turns[depth].observation if depth < len(turns) else None
            )
            told = point.observation if told is None and point is not None else told or Messages()
            self._nodes[name] = SearchNode(name, seen[:depth], told, over, self._tools)
            self._held[name] = _Kept(None if over else point, episode if over else None)
            self.cost.nodes += 1
        return episode

    @staticmethod
    def _name(path: Path, played: int, depth: int) -> Path:
        """The name of a state that a try came to; ``path`` is that after its first turn, () of plain play."""
        if not path:
            return (0,) * depth
        return path[:-1] if depth == played else (*path, *(0,) * (depth - played - 1))

    # --- choosing --------------------------------------------------------------------------------

    def trail(self, node: SearchNode) -> list[SearchNode]:
        """The states on the way to a node, from the beginning to it."""
        return [self._nodes[node.path[:depth]] for depth in range(len(node.path) + 1)]

    async def score(self, nodes: Sequence[SearchNode]) -> list[float]:
        """The scorer's figures of nodes; those of states are asked for once."""
        assert self.scorer is not None, "a search that scores declares needs=('scorer',)"
        if self.scorer.whole:
            return await self.scorer.score(self, nodes)
        new = [node for node in nodes if node.path not in self._scores]
        if new:
            found = await self.scorer.score(self, new)
            self._scores.update({node.path: value for node, value in zip(new, found, strict=True)})
        return [self._scores[node.path] for node in nodes]

    async def offer(self, *nodes: SearchNode) -> None:
        """Keep the best-scored of these and of what is kept; states that are not over are passed by, and the first wins ties."""
        over = [self.kept, *(node for node in nodes if node.over)]
        if len(over) > 1:
            scores = await self.score(over)
            self.keep(over[scores.index(max(scores))])

    def keep(self, node: SearchNode) -> None:
        """Make a try the result."""
        if node.over:
            self.kept = node

    def must_finish(self, node: SearchNode, spend: float) -> bool:
        """Say whether, after so many more turns' tokens, too little would be left to play on from a state as plain play did."""
        turn = sum(self._per_turn) / max(1, len(self._per_turn))
        rest = sum(self._per_turn[len(node.turns) :]) or turn
        return self.left - spend * turn < rest

    def spend(self, reply: Reply) -> None:
        """Charge what a scorer had sampled."""
        self.cost.charge(reply, scorer=True)

    def check(self) -> None:
        """Raise :class:`BudgetSpent` if nothing is left, before a scorer samples."""
        if self.left <= 0:
            raise BudgetSpent

    def verdict(self, node: SearchNode) -> float:
        """1 if the environment says that an episode which is over was solved. Only for scorers that are labelled oracles.

        Raises:
            TurnwiseError: the scorer does not declare it.
        """
        if not self._rights.oracle:
            raise TurnwiseError(
                "A search asks how the environment judged an episode, which no deployment tells.",
                "Choose by what was said; or declare oracle = True on the scorer, and its results are labelled so.",
            )
        episode = self._held[node.path].episode
        return float(episode is not None and episode.success)


SearchFunction: TypeAlias = Callable[[Searcher], Awaitable[None]]
SearchOptions: TypeAlias = Mapping[str, Any]
