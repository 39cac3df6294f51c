"""Kuhn poker (Kuhn 1950): rules, exact values, best responses and exploitability.

Three cards, one each, one chip ante each. The first player checks or bets one chip; the other checks or bets, or
calls or folds. The game's value to the first player is −1/18 of a chip.

A strategy says how often to be active (bet, or call) at each of the six information sets of a seat. Everything here
is exact, by enumeration of the 6 deals and 5 ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

CARDS = ("jack", "queen", "king")
DEALS: tuple[tuple[int, int], ...] = tuple(itertools.permutations(range(len(CARDS)), 2))  # type: ignore[assignment]
OPTIONS: Mapping[tuple[str, ...], tuple[str, str]] = {
    (): ("check", "bet"),
    ("check",): ("check", "bet"),
    ("bet",): ("fold", "call"),
    ("check", "bet"): ("fold", "call"),
}
"""Moves open to the mover after each history of moves: the passive and the active one."""
ENDS: frozenset[tuple[str, ...]] = frozenset(
    (*history, move) for history, both in OPTIONS.items() for move in both if (*history, move) not in OPTIONS
)


class Knowledge(NamedTuple):
    """An information set: all that the mover knows."""

    card: int  # 0 is the lowest
    history: tuple[str, ...] = ()

    @property
    def seat(self) -> int:
        """Seat of the mover; 0 is the first player."""
        return len(self.history) % 2

    def __str__(self) -> str:
        return " ".join((CARDS[self.card], *self.history))

    @staticmethod
    def parse(text: str) -> Knowledge:
        """Read what ``str`` wrote.

        >>> Knowledge.parse("king check bet") == Knowledge(2, ("check", "bet"))
        True
        """
        card, *history = text.split()
        return Knowledge(CARDS.index(card), tuple(history))


Strategy: TypeAlias = Mapping[Knowledge, float]
"""The probability of the active move at each information set."""


def information_sets(seat: int | None = None) -> Iterator[Knowledge]:
    """All twelve, or one seat's six."""
    for history in OPTIONS:
        for card in range(len(CARDS)):
            if seat in (None, len(history) % 2):
                yield Knowledge(card, history)


def payoff(deal: tuple[int, int], history: tuple[str, ...]) -> int:
    """Chips that the first player wins at an end.

    >>> payoff((2, 0), ("bet", "call")), payoff((0, 2), ("bet", "fold")), payoff((0, 2), ("check", "check"))
    (2, 1, -1)
    """
    if history[-1] == "fold":
        return 1 if len(history) % 2 == 0 else -1
    stake = 2 if history[-1] == "call" else 1
    return stake if deal[0] > deal[1] else -stake


def hand_value(
    deal: tuple[int, int], first: Strategy, second: Strategy, history: tuple[str, ...] = ()
) -> float:
    """Chips that the first player wins on average with these cards."""
    if history in ENDS:
        return payoff(deal, history)
    seat = len(history) % 2
    active = (first, second)[seat][Knowledge(deal[seat], history)]
    passive_move, active_move = OPTIONS[history]
    value = 0.0
    for move, chance in ((passive_move, 1.0 - active), (active_move, active)):
        if chance:
            value += chance * hand_value(deal, first, second, (*history, move))
    return value


def value(first: Strategy, second: Strategy) -> float:
    """Chips that the first player wins on average.

    >>> round(value(equilibrium(0.2), equilibrium()), 12) == round(-1 / 18, 12)
    True
    """
    return sum(hand_value(deal, first, second) for deal in DEALS) / len(DEALS)


def best_response(seat: int, other: Strategy) -> tuple[dict[Knowledge, float], float]:
    """The best pure strategy of ``seat`` against ``other``, and the chips that it wins on average.

    Later information sets are decided first; what the other's moves tell of its card weighs the deals.
    """
    best: dict[Knowledge, float] = {}
    for held in sorted(information_sets(seat), key=lambda held: -len(held.history)):
        worth: list[float] = []
        for move in OPTIONS[held.history]:
            total = 0.0
            for deal in DEALS:
                if deal[seat] == held.card:
                    after = (*held.history, move)
                    total += _reach(deal, seat, other, held.history) * _gain(deal, seat, other, best, after)
            worth.append(total)
        best[held] = float(worth[1] > worth[0])
    won = value(best, other) if seat == 0 else -value(other, best)
    return best, won


def _reach(deal: tuple[int, int], seat: int, other: Strategy, history: tuple[str, ...]) -> float:
    """Return the probability of the other player's moves in ``history``."""
    chance = 1.0
    for turn, move in enumerate(history):
        if turn % 2 != seat:
            active = other[Knowledge(deal[turn % 2], history[:turn])]
            chance *= active if move == OPTIONS[history[:turn]][1] else 1.0 - active
    return chance


def _gain(
    deal: tuple[int, int], seat: int, other: Strategy, best: Strategy, history: tuple[str, ...]
) -> float:
    both = (best, other) if seat == 0 else (other, best)
    value = hand_value(deal, *both, history)
    return value if seat == 0 else -value


def exploitability(strategy: Strategy) -> float:
    """Chips a hand that a best response wins on average from this strategy, each in either seat half of the time.

    0 exactly for an equilibrium. The strategy must say what to do at all twelve information sets.

    >>> round(exploitability(equilibrium()), 12)
    0.0
    >>> round(exploitability(uniform()), 6)
    0.458333
    """
    return (best_response(0, strategy)[1] + best_response(1, strategy)[1]) / 2


def average(strategies: Sequence[Strategy]) -> dict[Knowledge, float]:
    """One strategy that wins what a strategy drawn anew for each hand from several wins.

    At an information set each weighs as likely as its own earlier moves are to lead there: what fictitious self-play
    averages (Heinrich, Lanctot and Silver 2015), and counterfactual regret minimisation (Zinkevich et al. 2007).

    >>> bold, meek = dict.fromkeys(information_sets(), 1.0), dict.fromkeys(information_sets(), 0.0)
    >>> mixed = average([bold, meek])  # the bold one never checks, so after a check it is the meek one
    >>> mixed[Knowledge(0)], mixed[Knowledge(0, ("check", "bet"))], mixed[Knowledge(0, ("bet",))]
    (0.5, 0.0, 0.5)

    Raises:
        ZeroDivisionError: there is no strategy, or none ever comes to one of the information sets.
    """
    mixed: dict[Knowledge, float] = {}
    for held in information_sets():
        weights = [_own_reach(strategy, held) for strategy in strategies]
        active = sum(w * strategy[held] for w, strategy in zip(weights, strategies, strict=True))
        mixed[held] = active / sum(weights)
    return mixed


def _own_reach(strategy: Strategy, held: Knowledge) -> float:
    """Return the probability of a strategy's own moves on the way to an information set."""
    chance = 1.0
    for turn in range(held.seat, len(held.history), 2):
        active = strategy[Knowledge(held.card, held.history[:turn])]
        chance *= active if held.history[turn] == OPTIONS[held.history[:turn]][1] else 1.0 - active
    return chance


def uniform() -> dict[Knowledge, float]:
    """Does either with probability one half."""
    return dict.fromkeys(information_sets(), 0.5)


def equilibrium(bluff: float = 1 / 3) -> dict[Knowledge, float]:
    """A member of Kuhn's family of equilibria: the first player bets its jack with probability ``bluff`` ≤ 1/3."""
    jack, queen, king = range(3)
    strategy = dict.fromkeys(information_sets(), 0.0)
    strategy |= {
        Knowledge(jack): bluff,
        Knowledge(king): 3 * bluff,
        Knowledge(queen, ("check", "bet")): bluff + 1 / 3,
        Knowledge(king, ("check", "bet")): 1.0,
        Knowledge(jack, ("check",)): 1 / 3,
        Knowledge(king, ("check",)): 1.0,
        Knowledge(queen, ("bet",)): 1 / 3,
        Knowledge(king, ("bet",)): 1.0,
    }
    return strategy
