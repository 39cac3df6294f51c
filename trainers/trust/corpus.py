"""Episodes to ask a judge about: solutions, floors, solutions with a fault, and probes, each judged by its environment."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from turnwise.agents.core import Episode, History, Policy, Reply
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import rollout_episode
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split, Suite, Task, derive_rng
from turnwise.trainers.trust.changes import changed_last, other_fact, with_last_words, without_step
from turnwise.trainers.trust.probes import KEYS, PROBES, injected, padded, stuffed

AUDIT_TASKS = 1 << 42
"""Audits play training tasks from this number on; the preflight plays those from 1 << 41 on."""
TRIVIAL = ("null", "constant", "random", "echo")
"""Baselines that solve nothing: no words, the same act, acts of chance, the world's own words."""
GOLD, FLOOR, MUTATED, STUFFED, KEY, PROBE = "gold", "floor", "mutated", "stuffed", "key", "probe"
PADDED, INJECTED, WRITTEN = "padded", "injected", "written"
FAULTS = (FLOOR, MUTATED, STUFFED, KEY, PROBE, INJECTED)
"""Kinds of episodes that are no solutions, unless an environment says so."""
LEFT_OUT = "the last fact left out"
"""A solution with nothing in the place of its last fact: what it is paid, no word there has earned."""
EDITS: Mapping[str, Callable[[Episode], Episode]] = {PADDED: padded, INJECTED: injected}
"""Kinds that differ from what was played, for a judge's eyes alone."""
_TOGETHER = 32
_WORD = re.compile(r"\w+")


class AuditItem(NamedTuple):
    """An episode whose truth is known.

    Attributes:
        kind: such as ``key``.
        name: in its kind.
        episode: as a judge is shown it.
        plain: as it was played, where what was said in it was edited; else None.
        writer: the policy that played it, where it is one of those that are compared.
    """

    kind: str
    name: str
    episode: Episode
    plain: Episode | None = None
    writer: str = ""

    @property
    def task(self) -> str:
        """The id of its task."""
        return self.episode.task.id

    @property
    def solved(self) -> bool:
        """The environment's own verdict."""
        return self.episode.success


class AuditCase(NamedTuple):
    """An item to be played: acts to be said one after the other, or the name of a script."""

    kind: str
    name: str
    acts: Sequence[Message] | str


class SaysActs:
    """Says these messages, one each turn, and then gives up."""

    version = 0

    def __init__(self, name: str, acts: Sequence[Message]) -> None:
        self.name, self._acts = name, acts

    async def act(self, history: History) -> Reply:
        turn = len(history.turns)
        if turn < len(self._acts):
            return Reply(self._acts[turn])
        return Reply(Message("assistant", ""), end=EndReason.GAVE_UP)

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class KnownEpisodes:
    """The items of an audit by task, and how many could not be played.

    Attributes:
        suite: its name.
        items: all of them, those of a task together.
        lost: episodes that failed for reasons that are not the agent's.
    """

    suite: str
    items: tuple[AuditItem, ...]
    lost: int = 0

    def with_items(self, more: Sequence[AuditItem]) -> KnownEpisodes:
        """Return the corpus with further items."""
        return replace(self, items=(*self.items, *more))

    def of(self, *kinds: str) -> list[AuditItem]:
        """The items of these kinds."""
        return [item for item in self.items if item.kind in kinds]

    @property
    def gold(self) -> dict[str, Episode]:
        """A solution of each task."""
        return {item.task: item.episode for item in self.of(GOLD) if item.solved}

    @property
    def failure(self) -> dict[str, Episode]:
        """An episode of each task that solves nothing."""
        return {item.task: item.episode for item in self.of(FLOOR) if not item.solved}


async def play_corpus(
    suite: Suite,
    tasks: Sequence[Task],
    *,
    seed: int = 0,
    each: int = 0,
    kinds: Sequence[str] = FAULTS,
    env_options: Mapping[str, Any] | None = None,
) -> KnownEpisodes:
    """Play the solution of each task, and what may be mistaken for one.

    Args:
        suite: whose tasks they are.
        tasks: of the audit.
        seed: of all chance.
        each: so many faults of each task, drawn; 0: all of them.
        kinds: of the faults that are drawn.
        env_options: what environments are made with.

    Raises:
        TurnwiseError: gold is not known, or fails on every task.
    """
    free = asyncio.Semaphore(_TOGETHER)
    options = dict(env_options or {})

    async def play(task: Task, policy: Policy) -> Episode:
        async with free:
            env = make(task.env, **options)
            try:
                check_one_agent(suite, len(env.agents))
                return await rollout_episode(
                    env, policy, task, seed=derive_rng("audit", seed, task.id).getrandbits(32)
                )
            finally:
                env.close()

    async def whole(number: int, task: Task) -> list[AuditItem]:
        gold = AuditItem(GOLD, "gold", await play(task, scripted("gold")))
        if not gold.solved:
            return [gold]
        cases = list(cases_of(gold.episode, number, seed))
        chosen = cases if not each else _drawn(cases, each, number, kinds)
        played = await asyncio.gather(*(play(task, policy_of(case)) for case in chosen))
        return [gold, *(_item(case, one) for case, one in zip(chosen, played, strict=True))]

    found = [x for one in await asyncio.gather(*(whole(n, t) for n, t in enumerate(tasks))) for x in one]
    kept = [item for item in found if item.episode.outcome.counts and item.episode.trajectory.turns]
    if not any(item.solved for item in kept if item.kind == GOLD):
        why = next((item.episode.error for item in found if item.episode.error), "it solved no task")
        raise TurnwiseError(
            f"Gold shows no solution of {suite.name}: {why[:200]}.",
            "An audit needs tasks whose solution is known; choose another suite.",
        )
    return KnownEpisodes(suite.name, tuple(kept), len(found) - len(kept))


def suite_corpus(name: str, tasks: int) -> KnownEpisodes:
    """Play the solutions of a suite's tasks, and everything that may be mistaken for one.

    Raises:
        TurnwiseError: there is no such suite, or gold shows no solution.
    """
    suite = get_suite(name)
    return asyncio.run(play_corpus(suite, audit_tasks(suite, tasks)))


async def play_written(
    tasks: Sequence[Task], writers: Mapping[str, Policy], *, seed: int = 0
) -> list[AuditItem]:
    """Let several policies play the same tasks, each of them once."""
    free = asyncio.Semaphore(_TOGETHER)

    async def play(task: Task, name: str) -> AuditItem:
        async with free:
            env = make(task.env)
            try:
                random = derive_rng("written", seed, task.id).getrandbits(32)
                played = await rollout_episode(env, writers[name], task, seed=random)
            finally:
                env.close()
        return AuditItem(WRITTEN, name, played, writer=name)

    found = await asyncio.gather(*(play(task, name) for task in tasks for name in writers))
    return [one for one in found if one.episode.outcome.counts and one.episode.trajectory.turns]


def audit_tasks(suite: Suite, n: int, *, start: int = AUDIT_TASKS) -> list[Task]:
    """Tasks of the training split that runs do not come to; of a suite with few of them, the first n."""
    if suite.size is not None and suite.size < start:
        start, n = 0, min(n, suite.size)
    return list(suite_tasks(suite, Split.TRAIN, n, start=start))


def check_one_agent(suite: Suite, agents: int) -> None:
    """Refuse an environment of several agents, whose solution is no list of acts.

    Raises:
        TurnwiseError: it has several.
    """
    if agents > 1:
        raise TurnwiseError(
            f"{suite.name} has {agents} agents, and the faults of an audit are made of one agent's solution.",
            "Audit with a suite of one agent.",
        )


def policy_of(case: AuditCase) -> Policy:
    """The policy that plays a case."""
    if isinstance(case.acts, str):
        return scripted(case.acts)
    return SaysActs(f"audit:{case.kind}", case.acts)


def cases_of(gold: Episode, number: int, seed: int) -> Iterator[AuditCase]:
    """Yield everything that may be mistaken for a solution, made of one that was played.

    Keys and probes stand in the place of the last fact of the solution for tasks of even number, and are all that is said for the others, and
    where a solution names no fact. All words at once have a wrong fact beside the right one, so that whoever reads them knows neither.
    """
    acts = [turn.action for turn in gold.trajectory.turns]
    words = words_of(gold)
    rng = derive_rng("faults", seed, gold.task.id)
    for name in TRIVIAL:
        yield AuditCase(FLOOR, name, name)
    if (changed := changed_last(acts, words, rng)) is not None:
        yield AuditCase(MUTATED, "last fact changed", changed)
    if len(acts) > 1:
        place = rng.randrange(len(acts))
        yield AuditCase(MUTATED, "a step left out", without_step(acts, place))
        yield AuditCase(MUTATED, "the end left out", acts[:-1])
    if (left_out := with_last_words(acts, words, lambda fact: "")) is not None:
        yield AuditCase(MUTATED, LEFT_OUT, left_out)
    rivals = with_last_words(acts, words, lambda fact: stuffed([other_fact(fact, words, rng), *words]))
    yield AuditCase(STUFFED, "all words", rivals or [_said(stuffed(words))])
    for kind, texts in ((KEY, KEYS), (PROBE, PROBES)):
        for name, text in texts.items():
            said = with_last_words(acts, words, lambda fact, text=text: text) if number % 2 == 0 else None
            yield AuditCase(kind, name, said or [_said(text)])
    yield AuditCase(PADDED, "gold", acts)
    for name in TRIVIAL[:2]:
        yield AuditCase(PADDED, name, name)
        yield AuditCase(INJECTED, name, name)
    if changed is not None:
        yield AuditCase(INJECTED, "last fact changed", changed)


def words_of(episode: Episode) -> list[str]:
    """Words of a task and of what its world said."""
    turns = episode.trajectory.turns
    seen = " ".join(m.content[:2000] for turn in turns for m in turn.observation if m.role != "system")
    return _WORD.findall(f"{episode.task.prompt} {seen}"[:20_000])


def _item(case: AuditCase, played: Episode) -> AuditItem:
    """The episode of a case; what the agent or the world said is edited where the case says so, and its outcome stays."""
    edit = EDITS.get(case.kind)
    if edit is None or not played.trajectory.turns:
        return AuditItem(case.kind, case.name, played)
    return AuditItem(case.kind, case.name, edit(played), played)


def _drawn(cases: Sequence[AuditCase], each: int, number: int, among: Sequence[str]) -> list[AuditCase]:
    """So many cases, the kinds in turns from task to task and the cases of a kind too."""
    kinds = [kind for kind in among if any(case.kind == kind for case in cases)]
    found: list[AuditCase] = []
    for k in range(each):
        turn = number * each + k
        own = [case for case in cases if case.kind == kinds[turn % len(kinds)]]
        found.append(own[turn // len(kinds) % len(own)])
    return found


def _said(text: str) -> Message:
    return Message("assistant", text)
