"""Matches of Kuhn poker: one hand between two agents, or several against an opponent with a habit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.games.kuhn import (
    CARDS,
    ENDS,
    OPTIONS,
    Knowledge,
    Strategy,
    best_response,
    equilibrium,
    information_sets,
    payoff,
)
from turnwise.envs.games.state import Hands, PokerMatch, styled
from turnwise.envs.worlds.sessions import Play, PlayOutcome, SpokenMessage
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError


class PokerPlay(Play[PokerMatch]):
    """The cards are the task's, so that a group's episodes share them; each sees its own card only."""

    competitive = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.deals: list[tuple[int, int]] = [(first, second) for first, second in self.options["deals"]]
        self.habit: Strategy = dict(zip(information_sets(), self.options.get("habit", ()), strict=False))
        self._answers: dict[int, Strategy] = {}

    # --- who holds and wins what -----------------------------------------------------------------

    def place(self, seat: int, hand: int) -> int:
        """Say whether a seat is first (0) or second (1) in a hand; they take turns."""
        return (seat + hand + self.options["seat"]) % 2

    def seat(self, position: PokerMatch) -> int:
        return self.place(len(position.history) % 2, len(position.hands) - 1)

    def knowledge(self, position: PokerMatch) -> Knowledge:
        """The mover's information set in this hand."""
        card = self.deals[len(position.hands) - 1][len(position.history) % 2]
        return Knowledge(card, position.history)

    def chips(self, hands: Hands) -> int:
        """Return the chips that the agent has won in finished hands."""
        total = 0
        for number, history in enumerate(hands):
            if history in ENDS:
                won = payoff(self.deals[number], history)
                total += won if self.place(0, number) == 0 else -won
        return total

    # --- play ------------------------------------------------------------------------------------

    def begin(self) -> PokerMatch:
        return self._until_agent(PokerMatch(((),)))

    def move(self, position: PokerMatch, said: SpokenMessage) -> PlayOutcome[PokerMatch]:
        offered = OPTIONS[position.history]
        named = [word for word in said.words if word in ("check", "bet", "call", "fold")]
        # "I call the bet" and "I bet, since it will fold" name what cannot be done, too, but not first.
        if not named or named[0] not in offered or len(set(named) & set(offered)) > 1:
            raise ToolError(f"say {' or '.join(offered)} .")
        after = self._until_agent(self._put(position, named[0]))
        held = {"held": str(self.knowledge(position))}  # for whoever counts moves (probe.py); nobody is told
        if after.history not in ENDS:
            return PlayOutcome(after, self._news(after, self.seat(after)), details=held)
        mover = self.seat(position)
        chips = self.chips(after.hands)
        score, end = float(chips), EndReason.SOLVED if chips > 0 else EndReason.FAILED
        if not self.two_sided:
            aim = self.options.get("aim", 1)
            score = min(1.0, max(0.0, chips / aim))
            end = EndReason.SOLVED if chips >= aim else EndReason.FAILED
        farewell = self._news(after, 1 - mover)
        return PlayOutcome(after, self._news(after, mover), end, (score, -float(chips)), farewell, held)

    def moves(self, position: PokerMatch) -> int:
        return sum(map(len, position.hands))

    def forfeit(self, position: PokerMatch) -> PlayOutcome[PokerMatch]:
        """As dear as the worst that the rest of the match could bring."""
        lost = 2.0 * (len(self.deals) - len(position.hands) + 1)
        chips = self.chips(position.hands) + (lost if self.seat(position) else -lost)
        end = EndReason.SOLVED if self.seat(position) else EndReason.FAILED
        return PlayOutcome(position, "you forfeit .", end, (chips, -chips), "other forfeits .")

    def _put(self, position: PokerMatch, move: str) -> PokerMatch:
        hands = (*position.hands[:-1], (*position.history, move))
        done = hands[-1] in ENDS and len(hands) < len(self.deals)
        return PokerMatch((*hands, ())) if done else PokerMatch(hands)

    def _until_agent(self, position: PokerMatch) -> PokerMatch:
        """Let the scripted opponent move until it is the agent's turn."""
        while not self.two_sided and position.history not in ENDS and self.seat(position) == 1:
            active = self.habit[self.knowledge(position)]
            position = self._put(position, OPTIONS[position.history][int(active)])
        return position

    # --- words -----------------------------------------------------------------------------------

    def system(self, seat: int) -> str:
        if not self.full:
            return "kuhn : check , bet , call or fold ."
        many = len(self.deals)
        match = f"You play {many} hands, taking turns at being first, against a player who never changes its habits. "
        return (
            "Kuhn poker: a jack, a queen and a king, one card each; both have paid one chip. The first player checks "
            "or bets one more chip; after a bet the other calls or folds. The higher card wins what was paid. "
            f"{match if many > 1 else ''}Each turn, write one word: check, bet, call or fold."
        )

    def opening(self, position: PokerMatch) -> str:
        return f"{self.task.prompt}\n{styled(self._news(position, self.seat(position)), self.full)}"

    def _news(self, position: PokerMatch, seat: int) -> str:
        """Tell a seat what it has not heard yet: everything since its own last move."""
        news: list[str] = []
        for own, text in self._events(position, seat):
            news = [] if own else [*news, text]
        return "\n".join(news)

    def _events(self, position: PokerMatch, seat: int) -> list[tuple[bool, str]]:
        """All that a seat sees of the match: (whether it is its own move, what is seen)."""
        events: list[tuple[bool, str]] = []
        for number, history in enumerate(position.hands):
            place = self.place(seat, number)
            card = self._card(self.deals[number][place])
            heading = f"hand {number + 1} of {len(self.deals)} . " if len(self.deals) > 1 else ""
            events.append((False, f"{heading}you have {card} ."))
            for turn, move in enumerate(history):
                own = turn % 2 == place
                events.append((own, move if own else f"{self._other} says {move} ."))
            if history in ENDS:
                events.append((False, self._result(number, history, place)))
            elif len(history) % 2 == place:
                events.append((False, f"say {' or '.join(OPTIONS[history])} ."))
        return events

    def _result(self, number: int, history: tuple[str, ...], place: int) -> str:
        won = payoff(self.deals[number], history) * (1 if place == 0 else -1)
        shown = (
            ""
            if history[-1] == "fold"
            else f"{self._other} has {self._card(self.deals[number][1 - place])} . "
        )
        chips = f" chip{'s' * (abs(won) > 1)}" if self.full else ""
        return f"{shown}you {'win' if won > 0 else 'lose'} {abs(won)}{chips} ."

    @property
    def _other(self) -> str:
        return "the other" if self.full else "other"

    def _card(self, card: int) -> str:
        return f"a {CARDS[card]}" if self.full else CARDS[card]

    # --- players ---------------------------------------------------------------------------------

    def gold(self, position: PokerMatch) -> str:
        """Against a habit: the best response, without a look at the cards. Two agents: the agent bets, the other
        gives way, which is the one line that wins a chip with every card."""
        offered = OPTIONS[position.history]
        if self.two_sided:
            return offered[1 - self.seat(position)]
        held = self.knowledge(position)
        return offered[int(self.response(held.seat)[held])]

    def rival(self, position: PokerMatch, rng: Random) -> str:
        """An equilibrium strategy: nobody wins from it in the long run."""
        return OPTIONS[position.history][rng.random() < equilibrium()[self.knowledge(position)]]

    def response(self, place: int) -> Strategy:
        """The best response to the opponent's habit, as first (0) or second (1) player."""
        if place not in self._answers:
            self._answers[place] = best_response(place, self.habit)[0]
        return self._answers[place]

    def demonstrate(self, position: PokerMatch, rng: Random) -> str:
        """Bets and calls with a king, checks and folds with a jack, does either with a queen; errs at times."""
        card = self.knowledge(position).card
        active = rng.random() < (0.25, 0.5, 0.75)[card]
        return OPTIONS[position.history][active]

    def admissible(self, position: PokerMatch) -> Sequence[str]:
        return OPTIONS.get(position.history, ())

    def known(self, position: PokerMatch) -> Hashable:
        """All that the mover has seen, its own cards among it; not the other's."""
        if position.history in ENDS:
            return (self.task.prompt, "over", tuple(self._events(position, 0)))
        return (self.task.prompt, len(self.deals), tuple(self._events(position, self.seat(position))))


def aim_of(task: Task) -> int:
    """Chips that the best response to the opponent's habit wins with the task's cards."""
    play = PokerPlay(task)
    position = play.begin()
    while True:
        told = play.move(position, SpokenMessage((play.gold(position),)))
        if told.end is not None:
            return play.chips(told.position.hands)
        position = told.position
