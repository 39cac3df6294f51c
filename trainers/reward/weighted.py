"""Several objectives in one: reward components weighed by name, as they are or normalised apart."""

import statistics

from turnwise.agents.core import Turn
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, components_of, part_total, replace_turns, with_part

TINY = 1e-12


@component("reward", "weighted", reads=("rewards",))
def weighted(group: Group, *, weights: dict[str, float] | None = None, apart: bool = False) -> Group:
    """Every reward component is multiplied by its weight; those that ``weights`` does not name weigh 0, all weigh 1 without it.

    R = Σ_k w_k·s_k, the sum of several objectives that a rule then normalises as one (multi-objective GRPO; RESTL's equal mean of
    aspects is a weight of 1/n each). Ours: with ``apart`` each component's episode sum is first given the mean 0 and the standard deviation 1
    (with n − 1) in its group, on the last turn, so that no objective drowns another; one that is the same throughout gives 0.

    Worked by hand: four episodes, three objectives, weights 0.5, 0.3 and 0.2, whose group-normalised sums are 0, 0, 1.2247 and −1.2247.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> seen = [[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 1]]
    >>> group = [episode([a], parts={"safe": [b], "short": [c]}) for a, b, c in seen]
    >>> [one.trajectory.total_reward for one in weighted(group, weights={"outcome": 0.5, "safe": 0.3, "short": 0.2})]
    [0.5, 0.5, 0.8, 0.2]
    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo(turn_batch([[0.5], [0.5], [0.8], [0.2]])), 4)
    [[0.0], [0.0], [1.2247], [-1.2247]]
    >>> aspects = episode([1], parts={"sense": [0.8], "brief": [0.6], "symbols": [0.9]})
    >>> round(weighted([aspects], weights=dict.fromkeys(["outcome", "sense", "brief", "symbols"], 0.25))[0].trajectory.total_reward, 6)
    0.825
    >>> [round(one.trajectory.total_reward, 4) for one in weighted(group, weights={"safe": 2.0}, apart=True)]
    [-1.7321, 1.7321, 1.7321, -1.7321]
    """
    sides = [side.turns for one in group for side in one.trajectories.values()]
    names = sorted({name for turns in sides for turn in turns for name in components_of(turn)})
    given = {name: (1.0 if weights is None else weights.get(name, 0.0)) for name in names}
    scales = {name: _scale([part_total(turns, name) for turns in sides]) for name in names}

    def pay(turns: Turns) -> list[Turn]:
        paid = list(turns)
        for name, weight in given.items():
            if not apart:
                paid = [_times(turn, name, weight) for turn in paid]
            elif paid:
                mean, deviation = scales[name]
                z = (part_total(turns, name) - mean) / deviation if deviation > TINY else 0.0
                paid = [with_part(turn, name, 0.0) for turn in paid]
                paid[-1] = with_part(paid[-1], name, weight * z)
        return paid

    return [replace_turns(one, pay) for one in group]


def _scale(x: list[float]) -> tuple[float, float]:
    return statistics.mean(x), statistics.stdev(x) if len(x) > 1 else 0.0


def _times(turn: Turn, name: str, weight: float) -> Turn:
    value = components_of(turn).get(name)
    return turn if value is None else with_part(turn, name, weight * value)
