"""Scripts mixed by chance, turn by turn: policies of any skill, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.agents.core import History, Reply
from turnwise.agents.policies.options import PolicyOptions
from turnwise.agents.policies.scripted import ScriptedPolicy, scripted
from turnwise.errors import TurnwiseError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng


class Share(NamedTuple):
    """A script, and how often it acts."""

    policy: ScriptedPolicy
    weight: float


@dataclass
class MixturePolicy:
    """Before each turn one of its scripts is drawn; chance comes from the episode's seed and turn alone."""

    name: str
    shares: Sequence[Share]
    version: int = 0

    async def act(self, history: History) -> Reply:
        rng = derive_rng("mixture", self.name, history.task.id, history.seed, len(history.turns))
        weights = [share.weight for share in self.shares]
        return await rng.choices(self.shares, weights)[0].policy.act(history)

    def close(self) -> None:
        """Nothing is held."""


def mixture(target: str) -> MixturePolicy:
    """The policy that ``gold=0.7,random=0.3`` describes; weights need not sum to 1.

    >>> [(share.policy.name, share.weight) for share in mixture("gold=3,random=1").shares]
    [('scripted:gold', 3.0), ('scripted:random', 1.0)]

    Raises:
        NotFoundError: there is no such script.
        TurnwiseError: a weight is missing or negative, or all are 0.
    """
    shares: list[Share] = []
    for part in target.split(","):
        name, _, weight = part.partition("=")
        try:
            shares.append(Share(scripted(name.strip()), float(weight)))
        except ValueError:
            raise TurnwiseError(f"{part!r} has no weight.", "Write mix:gold=0.7,random=0.3.") from None
    if min(share.weight for share in shares) < 0 or not any(share.weight for share in shares):
        raise TurnwiseError(f"The weights of {target!r} are not shares.", "Give positive numbers.")
    return MixturePolicy(f"mix:{target}", shares)


@component("policy", "mix", form="mix:NAME=W,NAME=W", costless=True)
def mixture_policy(target: str, options: PolicyOptions) -> MixturePolicy:
    """Scripts drawn anew before each turn, by weight."""
    return mixture(target)
