"""Requirements for searches: a budget, plain play as the first try, determinism, replay, and no look at the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from turnwise.agents.core import Episode
from turnwise.agents.log.episodes import Episodes
from turnwise.agents.log.records import Record, env_version
from turnwise.agents.replay import replay
from turnwise.agents.rollout import Request, rollout
from turnwise.envs.core import EndReason
from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require
from turnwise.trainers.check.options import EVERY_PART
from turnwise.trainers.search.core import NodeScorer
from turnwise.trainers.search.cost import tokens_of
from turnwise.trainers.search.toy import ToyScorer, toy_searches

EPISODES, SEED = 4, 5
BUDGETS = (20, 90, 400)


def _played(
    entry: Component, budget: float, *, scorer: NodeScorer | None = None, play: Any = rollout
) -> list[Episode]:
    given = scorer or ToyScorer()
    return toy_searches(entry, budget=budget, scorer=given, episodes=EPISODES, seed=SEED, play=play)


def _said(episodes: Sequence[Episode]) -> list[list[str]]:
    return [[str(turn.action) for turn in e.trajectory.turns] for e in episodes]


def _plain() -> list[Episode]:
    return toy_searches("best_of_n:n=1", budget=math.inf, scorer="votes", episodes=EPISODES, seed=SEED)


def keeps_the_budget(entry: Component) -> str:
    """Policy and scorer sample no more than the budget and one turn; a larger budget is made use of."""
    used: list[float] = []
    for budget in BUDGETS:
        for episode in _played(entry, budget):
            told = episode.metrics
            spent = told["search_tokens"] + told["search_scorer_tokens"]
            require(spent < budget + 40, f"With a budget of {budget} it took {spent:.0f} tokens.")
            used.append(spent)
    plain = [sum(tokens_of(turn.reply) for turn in e.trajectory.turns) for e in _plain()]
    require(max(used) > max(plain), "It never takes more than plain play.")
    return f"{max(used):.0f} tokens of {BUDGETS[-1]}"


def is_plain_play_with_one_episodes_budget(entry: Component) -> None:
    """With the tokens of plain play as the budget the episode is plain play's, turn by turn."""
    for n, plain in enumerate(_plain()):
        budget = sum(tokens_of(turn.reply) for turn in plain.trajectory.turns)
        found = toy_searches(entry, budget=budget, scorer=ToyScorer(), episodes=EPISODES, seed=SEED)[n]
        require(found.trajectory == plain.trajectory, f"With a budget of {budget} it is not plain play.")
        require(found.end is plain.end, f"It ends as {found.end} and plain play as {plain.end}.")


def is_deterministic(entry: Component) -> None:
    """The same seed gives the same episodes and the same figures."""
    first, again = _played(entry, BUDGETS[-1]), _played(entry, BUDGETS[-1])
    require(_said(first) == _said(again), "The same seed gives other episodes.")
    told = [
        [{k: v for k, v in e.metrics.items() if k != "seconds"} for e in found] for found in (first, again)
    ]
    require(told[0] == told[1], "The same seed takes something else.")


def replays(entry: Component) -> str:
    """The episode that it chooses replays byte for byte, under the task and the seed that were asked for."""
    episodes = _played(entry, BUDGETS[-1])
    require([e.seed for e in episodes] == [SEED + n for n in range(EPISODES)], "An episode has another seed.")
    records = Episodes(Record(e, "toy", env_version(e.task.env, {})) for e in episodes)
    report = replay(records.records)
    require(report.ok, str(report))
    return f"{report.turns} turns"


def sees_no_verdict(entry: Component) -> None:
    """It chooses the same where the environment pays and judges otherwise, and says the same."""
    require(
        _said(_played(entry, BUDGETS[-1])) == _said(_played(entry, BUDGETS[-1], play=_judged_otherwise)),
        "It chooses by rewards or by how episodes ended, and is not labelled an oracle.",
    )


async def _judged_otherwise(requests: Sequence[Request], policy: Any, **options: Any) -> list[Episode]:
    """Plays, and turns all that the environment says of what was played upside down."""
    return [_upside_down(episode) for episode in await rollout(requests, policy, **options)]


def _upside_down(episode: Episode) -> Episode:
    trajectories = {
        name: replace(
            one,
            turns=tuple(
                replace(t, reward=1 - t.reward, rewards={"outcome": 1 - t.reward}) for t in one.turns
            ),
        )
        for name, one in episode.trajectories.items()
    }
    ends = {EndReason.SOLVED: EndReason.FAILED, EndReason.FAILED: EndReason.SOLVED}
    end = ends.get(episode.end, episode.end) if episode.end else None
    return replace(episode, trajectories=trajectories, end=end)


def forks_as_it_declares(entry: Component) -> str:
    """It goes back to states of the world if and only if it declares ``forks``."""
    forked = sum(e.metrics["search_forked"] for e in _played(entry, BUDGETS[-1]))
    if entry.forks and not forked:
        raise NotTested("It declares forks, and had no use for one here.")
    require(entry.forks or not forked, "It forks and does not declare it.")
    return f"{forked:.0f} forks"


REQUIREMENTS: dict[str, Requirements] = {
    "search": {
        **EVERY_PART,
        "keeps the budget": keeps_the_budget,
        "is plain play with the budget of one episode": is_plain_play_with_one_episodes_budget,
        "is deterministic": is_deterministic,
        "replays": replays,
        "sees no verdict": sees_no_verdict,
        "forks as it declares": forks_as_it_declares,
    }
}
"""Requirements of searches, with a policy that has tokens and log-probabilities and a scorer that knows nothing."""
