"""A model's own probability of the right answer, in place of a verifier: RLPR, VeriFree, a listener."""

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import (
    Turns,
    has_answer,
    is_formed,
    paid_instead,
    paid_on_last,
    part_total,
    replace_turns,
    signal_of,
)


@component("reward", "own_probability", asks=("signal",), reads=("rewards",))
def own_probability(
    group: Group,
    *,
    signal: str = "rlpr",
    weight: float = 0.9,
    format: float = 0.1,
    outcome: float = 0.0,
    answered: bool = False,
) -> Group:
    """The last turn earns ``weight``·q + ``format``·f + ``outcome``·a, and nothing else is paid; q is what the signal says of that turn.

    f is 1 where the environment could read every act and no limit cut the episode, a is what the environment paid as outcome. With
    ``answered`` an episode without a readable last act earns 0. The papers' rewards are

    - RLPR: signal `rlpr`, the defaults: .9·r̂ + .1·f;
    - VeriFree: signal `verifree`, ``weight: 1, format: 0, answered: true``: π(y | reasoning), 0 without an answer;
    - listener: signal `listener`, ``weight: 0.5, format: 1, outcome: 0.5``;
    - R3: signal `r3`, ``weight: 1, format: 0``.

    Worked by hand: RLPR with r̂ = .2 and a right format, .28; a listener of .8 and a solved task, 1.9.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> def paid(q, **options):
    ...     played = with_signals(episode([0, 1], end=EndReason.SOLVED), [{"q": 7.0}, {"q": q}])
    ...     return round(own_probability([played], signal="q", **options)[0].trajectory.total_reward, 6)
    >>> paid(0.2), paid(0.8, weight=0.5, format=1.0, outcome=0.5), paid(0.5, weight=1.0, format=0.0, answered=True)
    (0.28, 1.9, 0.5)

    Raises:
        RecipeError: a turn has no such signal.
    """

    def pay(episode: Episode, turns: Turns) -> Turns:
        if not turns or (answered and not has_answer(episode, turns)):
            return paid_instead(turns, 0.0)
        paid = paid_instead(turns, outcome * part_total(turns, "outcome"))
        paid = paid_on_last(paid, "format", format * is_formed(episode, turns))
        return paid_on_last(paid, signal, weight * signal_of(turns[-1], signal))

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
