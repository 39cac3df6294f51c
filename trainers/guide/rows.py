"""Rows of groups that help replaces: whose solutions are shown, what text they give, and what stands in place of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from turnwise.agents.core import Episode, History, Policy, Reply
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.scripted import scripted
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_unsolved
from turnwise.trainers.guide.told import ToldPolicy
from turnwise.trainers.kit.asking import ask

INSTRUCTIONS = (
    "Think about what you know before you act.",
    "Act at once, and look at what comes back.",
    "Make a plan first, and keep to it.",
    "Check what you did before you end.",
)
"""Told to an agent before any task, where instructions compete."""


@dataclass
class MarkedPolicy:
    """A policy whose turns say who chose them."""

    name: str
    policy: Policy

    @property
    def version(self) -> int:
        return self.policy.version

    async def act(self, history: History) -> Reply:
        return (await self.policy.act(history))._replace(source=self.name)

    def close(self) -> None:
        """Whoever made the policy closes it."""


def expert(spec: str, player: GuidePlayer) -> Policy:
    """Whoever shows how it is done: a script by its name, or any policy by its spec; with the tokens of the trained policy."""
    return DemonstrationPolicy(make_policy(spec) if ":" in spec else scripted(spec), player.renderer)


async def solutions(player: GuidePlayer, groups: Mapping[int, Group], spec: str) -> dict[int, Episode]:
    """An expert's episode of each group's task, by number; tasks that it does not solve are left out."""
    shown = await player({number: group[:1] for number, group in groups.items()}, expert(spec, player))
    return {number: episode for number, (episode,) in shown.items() if episode.success}


def unsolved(groups: Sequence[Group]) -> dict[int, Group]:
    """The groups that nobody solved, by number."""
    return {number: group for number, group in enumerate(groups) if is_unsolved(group)}


def actions_of(episode: Episode) -> list[str]:
    """What an episode's policy said, turn by turn."""
    return [str(turn.action) for turn in episode.trajectory.turns]


async def told_once(
    player: GuidePlayer, groups: Mapping[int, Group], name: str, text: Mapping[int, str], *, keeps: bool
) -> dict[int, Episode]:
    """One episode of each group's task, whose policy is told the group's ``text``; see :class:`ToldPolicy` for ``keeps``."""
    asked = player.requests({number: groups[number][:1] for number in text})
    told = {requests[0].seed: text[number] for number, requests in asked.items()}
    played = await player.play(asked, told_by_seed(player, name, told, keeps=keeps))
    return {number: episode for number, (episode,) in played.items()}


def told_by_seed(player: GuidePlayer, name: str, told: Mapping[int, str], *, keeps: bool) -> ToldPolicy:
    """The trained policy, told something in the episodes of these seeds."""
    return ToldPolicy(name, player.model, lambda history: told[history.seed], keeps)


def with_rows(groups: Sequence[Group], rows: Mapping[int, tuple[int, Episode]]) -> list[Group]:
    """The groups, in some of which one member, by its place, is another episode.

    >>> with_rows([["a", "b"], ["c"]], {0: (1, "x")})
    [['a', 'x'], ['c']]
    """
    changed = [[*group] for group in groups]
    for number, (row, episode) in rows.items():
        changed[number][row] = episode
    return [*changed]


def leaks(hint: str, answers: Sequence[str]) -> bool:
    """Say whether a hint holds one of these answers, word for word; case and punctuation are left aside.

    >>> leaks("First find out what a mug costs.", ["search mug", "buy"]), leaks("You could: Search MUG!", ["search mug"])
    (False, True)
    """
    said = f" {_words(hint)} "
    return any(answer and f" {answer} " in said for answer in map(_words, answers))


def _words(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


async def written(policy: Policy, questions: Mapping[int, str], update: int) -> dict[int, str]:
    """A policy's answers to questions, by number of the group; its tokens are not counted as played."""
    answers = await ask(policy, [*questions.values()], update)
    return dict(zip(questions, map(str.strip, answers), strict=True))


def masked(episode: Episode, when: Callable[[int], bool]) -> Episode:
    """The episode in which turns of some numbers are read and not learned."""
    first = episode.trajectory
    turns = tuple(replace(turn, weight=0.0) if when(k) else turn for k, turn in enumerate(first.turns))
    return replace(episode, trajectories={**episode.trajectories, first.agent: replace(first, turns=turns)})
