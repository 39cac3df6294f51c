"""Near misses: a failed episode that named gold entities is paid for it, relative to the group's best (E-GRPO)."""

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import Turns, part_total, replace_turns, told_number, with_part


@component("reward", "near_miss", paper="2510.24694", reads=("rewards",))
def near_miss(group: Group, *, alpha: float = 0.3, part: str = "entity", detail: str = "entities") -> Group:
    """A failure is paid α·γ/max_g γ on its last turn, where γ is its share of the question's gold entities.

    R = 1 if right; α·γ̂ if wrong; 0 if malformed, or if a limit came before the answer (Zhao et al. 2025, eq. 4
    and 5). The best γ of the group may be that of a success. γ is ``detail`` of ``info["details"]``, as
    turnwise/Search-v0 reports it at the answer, and the reward component ``part`` becomes what is paid here. Left out: the
    exclusion of over-long rollouts from the loss. Ours: γ counts what the agent writes, not only its thoughts.

    Worked by hand: four entities, 3 named in the success, then 1, 2 and 0: R = 1, 0.1, 0.2, 0.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> named = [{"entities": n / 4} for n in (3, 1, 2, 0)]
    >>> group = [episode([0, int(n == 0)], details=[{}, said]) for n, said in enumerate(named)]
    >>> [round(e.trajectory.total_reward, 6) for e in near_miss(group)]
    [1.0, 0.1, 0.2, 0.0]
    >>> group[1] = episode([0, 0], details=[{}, {"entities": 0.25, "malformed": True}])
    >>> [round(e.trajectory.total_reward, 6) for e in near_miss(group)]
    [1.0, 0.0, 0.2, 0.0]

    Raises:
        RecipeError: a near miss would cost.
    """
    not_below_zero("reward 'near_miss'", alpha=alpha)
    best = max((_share(episode.trajectory.turns, detail) for episode in group), default=0.0)

    def pay(episode: Episode, turns: Turns) -> Turns:
        share = _share(turns, detail)
        missed = episode.outcome.counts and part_total(turns, "outcome") < 1.0
        paid = alpha * share / best if share and missed and not turns[-1].details.get("malformed") else 0.0
        turns = [with_part(turn, part, 0.0) if part in turn.rewards else turn for turn in turns]
        return [*turns[:-1], with_part(turns[-1], part, paid)] if paid else turns

    return [replace_turns(episode, lambda turns, episode=episode: pay(episode, turns)) for episode in group]


def _share(turns: Turns, detail: str) -> float:
    """γ: what the last turn's details say, or 0."""
    return told_number(turns[-1], detail) if turns else 0.0
