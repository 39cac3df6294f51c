"""Growing hints: groups that nobody solved begin again with a quarter, a half, three quarters of a solution in the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_unsolved
from turnwise.trainers.guide.rows import actions_of, solutions, told_by_seed, unsolved

LEAD = "Hint: "


@component("guide", "ghpo", paper="2507.10628")
async def ghpo(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    shares: tuple[float, ...] = (0.25, 0.5, 0.75),
    demonstrator: str = "gold",
    start: int = 0,
) -> list[Group]:
    """Plays unsolved groups again, told a share of the solution, and more of it while nobody solves them; learned as told.

    GHPO (2025): where nobody solved the plain task, the prompt is the task, a lead-in and the first 25 % of the reference solution, by
    characters; a fresh group is sampled, and if all are wrong again 50 %, then 75 %, and the last group is kept. The prompt
    with the hint is the one that is learned under. The solution is the demonstrator's actions, a line each; ``demonstrator`` is a script,
    or any policy's spec. No hint before update ``start``. Groups whose task the demonstrator does not solve stay as they were played.

    It changes the objective: hard tasks are trained under other prompts than they are evaluated under.

    Worked by hand, the book's reference of 400 characters:

    >>> [len(part("x" * 400, share)) for share in (0.25, 0.5, 0.75)]
    [100, 200, 300]
    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo(turn_batch([[1.5]] + [[0.5]] * 7)), 4)[:2]  # one of eight is right, and all are well-formed
    [[2.4749], [-0.3536]]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(ghpo, "shop/quick", groups=1, size=2)
    >>> {turn.reply.source for episode in guided[0] for turn in episode.trajectory.turns}
    {'guide/ghpo'}

    Raises:
        RecipeError: a share is no part of a whole, or they do not grow.
    """
    check_shares("ghpo", shares)
    latest = unsolved(groups) if player.update >= start else {}
    texts = {
        n: "\n".join(actions_of(one)) for n, one in (await solutions(player, latest, demonstrator)).items()
    }
    found: dict[int, Group] = {}
    for share in shares:
        left = {n: groups[n] for n in texts if n not in found or is_unsolved(found[n])}
        asked = player.requests(left)
        told = {request.seed: LEAD + part(texts[n], share) for n, every in asked.items() for request in every}
        found |= await player.play(asked, told_by_seed(player, "guide/ghpo", told, keeps=True))
    return [[*found.get(number, group)] for number, group in enumerate(groups)]


def part(text: str, share: float) -> str:
    """The first ``share`` of a text's characters, rounded."""
    return text[: round(share * len(text))]


def check_shares(guide: str, shares: Sequence[float]) -> None:
    """Refuse shares that are no parts of a whole, or do not grow.

    Raises:
        RecipeError: they are not.
    """
    if not shares or list(shares) != sorted({*shares}) or not all(0 < share <= 1 for share in shares):
        raise RecipeError(
            f"guide {guide!r}: shares={list(shares)} are no growing parts of a whole.",
            "Give some such as [0.25, 0.5, 0.75].",
        )
