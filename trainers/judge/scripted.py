"""A judge that knows the outcome and errs at known rates: for tests, simulations, and a first try of whatever pays a judge."""

from collections.abc import Sequence

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import with_signals


@component("judge", "scripted", gives=("verdict",))
async def scripted(
    groups: Sequence[Group],
    *,
    false_accept: float = 0.0,
    false_reject: float = 0.0,
    likes: str = "",
    seed: int = 0,
) -> list[Group]:
    """The outcome as ``verdict``: 1 where the task was solved and 0 where it was not, but for errors at these rates.

    A failed episode is called solved with the chance ``false_accept``, and a solved one failed with the chance ``false_reject``, drawn
    from ``seed`` and all that was said in it, so that the same episode is judged alike whenever it is judged. Whoever says the words of
    ``likes`` (a gullible judge's) is always called solved. No model is asked.

    >>> import asyncio
    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [episode([0, 1], end=end) for end in (EndReason.SOLVED, EndReason.FAILED)]
    >>> [one.trajectory.turns[1].signals["verdict"] for one in asyncio.run(scripted([group]))[0]]
    [1.0, 0.0]
    >>> [one.trajectory.turns[0].signals["verdict"] for one in asyncio.run(scripted([group], false_accept=1.0, false_reject=1.0))[0]]
    [0.0, 1.0]

    Raises:
        RecipeError: a rate is not from 0 to 1.
    """
    for name, rate in (("false_accept", false_accept), ("false_reject", false_reject)):
        if not 0 <= rate <= 1:
            raise RecipeError(f"judge 'scripted': {name}={rate:g} is no rate.", "Give one from 0 to 1.")
    errs = {True: false_reject, False: false_accept}

    def verdict(episode: Episode) -> float:
        said = [str(turn.action) for turn in episode.trajectory.turns]
        if likes and any(likes in words for words in said):
            return 1.0
        rng = derive_rng("scripted judge", seed, episode.task.id, episode.seed, *said)
        return float(episode.success != (rng.random() < errs[episode.success]))

    return [
        [
            with_signals(one, [{"verdict": v}] * len(one.trajectory.turns))
            for one in group
            for v in [verdict(one)]
        ]
        for group in groups
    ]
