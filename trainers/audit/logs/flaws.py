"""Named flaws put into good episodes by playing them again: does a judge find the turn?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from turnwise.agents.core import Episode, Reply, Turn
from turnwise.agents.evaluation.statistics import proportion
from turnwise.agents.log.records import Record
from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message, Messages
from turnwise.envs.trust import LoggedEnv, make_logged
from turnwise.errors import TurnwiseError
from turnwise.registry import get_component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, AuditTable, Cell, audit, count, share
from turnwise.trainers.audit.reading import LoggedGroups
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import judged_now, made_judge

Acts = Sequence[Message]


class Flawed(NamedTuple):
    """Acts with a flaw, and the place of the first turn that is flawed, from 0."""

    acts: Acts
    place: int


def redundant(acts: Acts, rng: Random, others: Acts) -> Flawed | None:
    """An act is made twice."""
    k = rng.randrange(len(acts))
    return Flawed([*acts[: k + 1], acts[k], *acts[k + 1 :]], k + 1)


def incomplete(acts: Acts, rng: Random, others: Acts) -> Flawed | None:
    """An act is left out; what came after it is made in its place."""
    if len(acts) < 2:
        return None
    k = rng.randrange(len(acts) - 1)
    return Flawed([*acts[:k], *acts[k + 1 :]], k)


def disordered(acts: Acts, rng: Random, others: Acts) -> Flawed | None:
    """Two acts change places."""
    if len(acts) < 2:
        return None
    k = rng.randrange(len(acts) - 1)
    return Flawed([*acts[:k], acts[k + 1], acts[k], *acts[k + 2 :]], k)


def counterfactual(acts: Acts, rng: Random, others: Acts) -> Flawed | None:
    """An act of another task is made in place of its own."""
    k = rng.randrange(len(acts))
    strange = [act for act in others if act.content != acts[k].content]
    return Flawed([*acts[:k], rng.choice(strange), *acts[k + 1 :]], k) if strange else None


FLAWS: Mapping[str, Callable[[Acts, Random, Acts], Flawed | None]] = {
    "redundancy": redundant,
    "incompleteness": incomplete,
    "disorder": disordered,
    "counterfactual": counterfactual,
}


@audit(8, paper="2505.23474", named=True)
def flaws(played: LoggedGroups, *, judge: str = "gold", policy: str = "", most: int = 100) -> AuditFinding:
    """Share of injected flaws whose turn a judge calls the first wrong one, by kind of flaw (after Socratic-PRMBench).

    Solved episodes are played again with one flaw: an act made twice (redundancy), one left out (incompleteness), two that change places
    (disorder), one of another task (counterfactual). Kept are those after whose flaw gold's way to the goal is no shorter than before, and after whose
    earlier turns it is: a detour that helps is no flaw. The judge (any that gives ``wrong``) labels them and the good episodes; the score is
    ½·F1 of wrong turns + ½·F1 of right ones, up to the flaw. The benchmark's twenty flaws of prose have no counterpart in acts.

    The book's number: F1 of .6 and .9 make .75.

    >>> score(0.6, 0.9), f1(2, 4, 2)
    (0.75, 0.6666666666666666)

    Args:
        judge: that is asked which turns are wrong.
        policy: whom it asks, where it asks one.
        most: episodes that are played again, of each kind.
    """
    solved = [
        record for group in played.groups for record in group.records
        if record.episode.success and record.episode.trajectory.turns
    ][:most]  # fmt: skip
    if not solved:
        raise TurnwiseError(f"{played.label} has no solved episode.", "Log gold: `--policy scripted:gold`.")
    made = {name: _made(name, solved) for name in FLAWS}
    whole = [record.episode for record in solved]
    figures: list[AuditFigure] = []
    rows: list[Sequence[Cell]] = []
    fine = _first(judge, policy, whole)
    figures.append(
        share("good episodes called flawed", proportion([k is not None for k in fine], _tasks(whole)))
    )
    for name, some in made.items():
        figures.append(count(f"{name}: flaws", len(some)))
        if not some:
            continue
        episodes = [episode for episode, _ in some]
        said = _first(judge, policy, episodes)
        hits = [k == place for k, (_, place) in zip(said, some, strict=True)]
        found = proportion(hits, _tasks(episodes))
        figures.append(share(f"{name}: found", found))
        rows.append((name, len(some), found.mean, _score(said, [place for _, place in some])))
    table = AuditTable("flaws", ("flaw", "episodes", "turn found", "½ F1 wrong + ½ F1 right"), rows)
    return AuditFinding(figures, [table])


def score(wrong: float, right: float) -> float:
    return 0.5 * wrong + 0.5 * right


def f1(hits: int, said: int, true: int) -> float:
    """The harmonic mean of precision and recall; 0 where there is nothing."""
    return 2 * hits / (said + true) if said + true else 0.0


def _score(said: Sequence[int | None], places: Sequence[int]) -> float:
    """The score of the turns up to the flaw: those before it are right, it is wrong."""
    called = [place if k is None else min(k, place) for k, place in zip(said, places, strict=True)]
    caught = sum(k == place for k, place in zip(said, places, strict=True))
    early = sum(k is not None and k < place for k, place in zip(said, places, strict=True))
    wrong = f1(caught, caught + early, len(places))
    right_hits = sum(called)
    right_said = sum(
        k if k is not None and k <= place else place + 1 for k, place in zip(said, places, strict=True)
    )
    return score(wrong, f1(right_hits, right_said, sum(places)))


def _tasks(episodes: Sequence[Episode]) -> list[str]:
    return [episode.task.id for episode in episodes]


def _first(judge: str, policy: str, episodes: Sequence[Episode]) -> list[int | None]:
    """The place of the first turn that the judge calls wrong; None: it calls none so."""
    entry = get_component("judge", judge)
    if "wrong" not in entry.gives:
        raise TurnwiseError(f"The judge {judge} does not say which turns are wrong.", "Name gold or critic.")
    groups: list[Group] = [[episode] for episode in episodes]
    told = judged_now(made_judge(entry, {"policy": policy} if policy else {}), groups)
    return [
        next((k for k, turn in enumerate(one.trajectory.turns) if turn.signals["wrong"] >= 0.5), None)
        for (one,) in told
    ]


def _made(name: str, solved: Sequence[Record]) -> list[tuple[Episode, int]]:
    """Episodes with this flaw, and its place; those in which it is one by gold."""
    found: list[tuple[Episode, int]] = []
    acts_of = [[turn.action for turn in record.episode.trajectory.turns] for record in solved]
    for i, (record, acts) in enumerate(zip(solved, acts_of, strict=True)):
        rng = derive_rng("flaws", name, record.episode.task.id, record.episode.seed)
        if flawed := FLAWS[name](acts, rng, acts_of[(i + 1) % len(acts_of)]):
            found.append((replayed(record, flawed.acts), flawed.place))
    truth = _first("gold", "", [episode for episode, _ in found])
    return [one for one, first in zip(found, truth, strict=True) if first == one[1]]


def replayed(record: Record, acts: Acts) -> Episode:
    """The episode of a record with these acts in place of its own, until it ends.

    Raises:
        EnvError: the log asks for more of an environment than a log may.
    """
    episode = record.episode
    env: AgentEnv[Any] = make_logged(LoggedEnv(episode.task, record.env.options, record.env.file))
    try:
        seen, info = env.reset(seed=episode.seed, options={"task": episode.task})
        turns: list[Turn] = []
        for act in acts:
            key = info["state_key"]
            step = env.step(act)
            told: dict[str, Any] = dict(step.info)
            reply = Reply(act)
            turns.append(
                Turn(seen, reply, step.reward, told["rewards"], key, told["bad_action"], told["details"])
            )
            info = told
            seen = step.observation
            if step.terminated or step.truncated:
                break
        first = dataclasses.replace(episode.trajectory, turns=tuple(turns), final=Messages(seen))
        return dataclasses.replace(episode, trajectories={first.agent: first}, end=env.now.end)
    finally:
        env.close()
