"""Negotiation over several issues with private values.

Each side knows what each option is worth to itself, and what it gets without a deal. The score of a deal is the
gain of the agent over that, relative to its gain at the Nash point (the deal with the greatest product of gains;
Nash 1950), at most 1: to get it all, both must get what they value most, not half of everything.

The scripted partner begins with what is best for itself. It gives way by one step for each offer that is better
for it than all before, down to its share of the Nash point, and no further; it leaves when its patience is over, or
after ``vain`` offers that were no better for it.
A liar says that another issue matters most to it, and calls each of its offers the last. Its offers are true.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Hashable, Sequence
from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.dialogue.actions import agrees, denied, has, is_question, leaves, sentences, spoken_text
from turnwise.envs.dialogue.state import BargainState, Package
from turnwise.envs.dialogue.vocabulary import AGREE, ASK, LEAVE, REFUSE, language_game, phrase
from turnwise.envs.worlds.sessions import Play, PlayOutcome, SpokenMessage
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

STEPS = 4
"""Steps in which the partner comes down to its share of the Nash point."""
_GAME = {"accept": AGREE, "refuse": REFUSE, "ask": ASK, "leave": LEAVE}
_MORE = (
    "A message that names options is an offer of them; what it does not name stays as in your last offer. A question, or a yes "
    "with a but, accepts nothing."
)
_VAIN = " The other hears every offer: number {} that gives it no more than all before ends the talk, without a deal."
_NO_BETTER = "that is no better for me ."
_LAST = ("this is my last offer .", "i cannot do better than this .", "take it or leave it .")
_OFFER = ("i offer {} .", "how about {} ?", "let us say {} .")
_INSTEAD = "what would you take instead ?"
_REFUSED = re.compile(
    r"\banything but\b|n't\b|\b(?:need|want|expect) more\b|\btoo (?:little|low|much|high)\b|\b(?:improve|better) (?:\w+ )?offer\b"
)
_INVITED = re.compile(
    r"\b(?:(?:make|give|hear|tell) (?:me )?(?:an|your) (?:first )?(?:offer|proposal)|you (?:start|begin|first)\b)"
)
_FIRM = re.compile(r"\b(?:can't|can not|cannot|won't|could not|couldn't) (?:\w+ ){1,2}than\b")
"""Phrases that sound like a denial of what comes next, and insist on it."""

_IDIOM = re.compile(
    r"\b(?:as long as|so long|in short|(?:in the )?(?:long|short|medium)[ -](?:run|term|notice|answer|story|shot|way)|tall order"
    r"|wide (?:range|choice)|(?:small|large) (?:\w+ )?(?:concession|step|favour|thing|request|price|gesture|part|extent))\b"
)
"""Idioms that have the word of an option in them and name none."""

_LEFT_OUT = re.compile(
    r"\b(?:than|instead of|in place of|except(?: for)?|anything but|apart from|besides|give up|giving up)(?: (?:the|a|an|your|my|on))*\s*$"
)
_DOES_NOT_DO = re.compile(
    r"s? (?:\w+ )?(?:(?:does|do|will|would|is|are|can) not|(?:doesn|don|won|wouldn|isn|aren|can)'t|cannot|is (?:out|impossible|too))\b"
)
_PROPOSES = re.compile(r"\b(?:how about|what about|what if|would|could|can|will|shall|let's|if i|offer)\b")
_OF_VALUES = re.compile(
    r"\b(?:why|which|how (?:\w+ )?important|important|matters?|prefer|care|a must|rather)\b"
)
"""Questions for what an option is worth to the other, which offer nothing."""

_MATTERS = ("{} matters most to me .", "above all i care about {} .", "for me it is all about {} .")


class BargainPlay(Play[BargainState]):
    """One negotiation."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.issues: list[tuple[str, list[str]]] = [(name, list(of)) for name, of in self.options["issues"]]
        self.worths: tuple[list[list[int]], list[list[int]]] = tuple(self.options["worths"])
        self.reserve: tuple[int, int] = tuple(self.options["reserve"])
        self.place = {word: (i, j) for i, (_, of) in enumerate(self.issues) for j, word in enumerate(of)}

    # --- values ----------------------------------------------------------------------------------

    @functools.cached_property
    def packages(self) -> list[Package]:
        return list(itertools.product(*(range(len(of)) for _, of in self.issues)))

    @functools.cached_property
    def _worth(self) -> tuple[dict[Package, int], dict[Package, int]]:
        first, second = (
            {p: sum(row[option] for row, option in zip(rows, p, strict=True)) for p in self.packages}
            for rows in self.worths
        )
        return first, second

    def worth(self, seat: int, package: Package) -> int:
        """The value of a deal to a side."""
        return self._worth[seat][package]

    def gain(self, seat: int, package: Package) -> int:
        """A side's gain from a deal: its value minus what the side gets without any deal."""
        return self.worth(seat, package) - self.reserve[seat]

    @functools.cached_property
    def nash(self) -> Package:
        """The deal with the greatest product of gains, of those that both gain by."""
        return max(
            (p for p in self.packages if self.gain(0, p) > 0 and self.gain(1, p) > 0),
            key=lambda p: (self.gain(0, p) * self.gain(1, p), self.gain(0, p)),
        )

    def score(self, seat: int, package: Package) -> float:
        """The gain relative to the gain at the Nash point, from 0 to 1."""
        return min(1.0, max(0.0, self.gain(seat, package) / self.gain(seat, self.nash)))

    def efficient(self, package: Package) -> bool:
        """Say whether the deal is on the Pareto frontier: no other is better for one and as good for the
        other."""
        own, other = self.worth(0, package), self.worth(1, package)
        return not any(
            self.worth(0, p) >= own
            and self.worth(1, p) >= other
            and (self.worth(0, p), self.worth(1, p)) != (own, other)
            for p in self.packages
        )

    # --- the scripted partner --------------------------------------------------------------------

    def demand(self, steps: int, seat: int = 1) -> int:
        """Return the least that a deal must be worth to the partner, or to another seat, after so many steps."""
        top = max(self.worth(seat, package) for package in self.packages)
        low = self.worth(seat, self.nash)
        return low + (top - low) * max(0, STEPS - steps) // STEPS

    def counter(self, steps: int, heard: Package | None) -> Package:
        """The partner's offer: nearest to the agent's among those that it would take, else best for itself."""
        demand = self.demand(steps)

        def appeal(package: Package) -> tuple[int, int]:
            same = sum(a == b for a, b in zip(package, heard or (), strict=False))
            return (same, self.worth(1, package))

        return max((p for p in self.packages if self.worth(1, p) >= demand), key=appeal)

    @functools.cached_property
    def said_to_matter(self) -> str:
        """The issue that the partner says matters most to it."""
        weights = [max(row) - min(row) for row in self.worths[1]]
        true = weights.index(max(weights))
        return self.issues[weights.index(min(weights)) if self.options["lies"] else true][0]

    # --- play ------------------------------------------------------------------------------------

    def begin(self) -> BargainState:
        return BargainState()

    def seat(self, position: BargainState) -> int:
        return position.seat

    def moves(self, position: BargainState) -> int:
        return position.turns

    def move(self, position: BargainState, said: SpokenMessage) -> PlayOutcome[BargainState]:
        seat = position.seat
        standing = position.offers[1 - seat]
        options = self._options(spoken_text(said))
        accepts = agrees(spoken_text(said))
        if options:
            package = self._package(options, position.offers[seat])
            accepted = accepts and package == standing
            return self._deal(position, package) if accepted else self._offered(position, package, said)
        if accepts:
            if standing is None:
                raise ToolError("there is no offer yet that could be accepted .")
            return self._deal(position, standing)
        asks = any(map(is_question, sentences(spoken_text(said))))
        if leaves(said) and not asks:
            return PlayOutcome(position, "no deal .", EndReason.GAVE_UP, farewell="other leaves . no deal .")
        invites = _INVITED.search(spoken_text(said)) is not None
        if asks or invites or has(said.words, ASK) or (self.two_sided and said.words):
            return self._talked(position, said)
        refuses = has(said.words, REFUSE) or _REFUSED.search(spoken_text(said))
        if refuses and standing is not None:
            return self._patient(position, _INSTEAD)
        raise ToolError("offer something , accept , ask what matters , or leave .")

    def _options(self, text: str) -> dict[int, int]:
        """The options that a message offers: what it denies, sets aside or asks about is none of them."""
        chosen: dict[int, int] = {}
        for sentence in sentences(_IDIOM.sub(" ", _FIRM.sub(" ", text))):
            if is_question(sentence) and _OF_VALUES.search(sentence) and not _PROPOSES.search(sentence):
                continue
            for found in self._option.finditer(sentence):
                before, after = sentence[: found.start()], sentence[found.end() :]
                if denied(sentence, found.start()) or _LEFT_OUT.search(before) or _DOES_NOT_DO.match(after):
                    continue
                issue, option = self.place[found[0]]
                if chosen.setdefault(issue, option) != option:
                    raise ToolError(f"one {self.issues[issue][0]} only .")
        return chosen

    @functools.cached_property
    def _option(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{'|'.join(self.place)})(?=s?\b)")

    def _package(self, options: dict[int, int], before: Package | None) -> Package:
        """A whole offer; what it does not name is as in the side's last one."""
        missing = [name for i, (name, _) in enumerate(self.issues) if i not in options]
        if missing and before is None:
            raise ToolError(f"an offer must name {' , '.join(missing)} too .")
        return tuple(options.get(i, before[i] if before else 0) for i in range(len(self.issues)))

    def _deal(self, position: BargainState, package: Package) -> PlayOutcome[BargainState]:
        scores = (self.score(0, package), self.score(1, package))
        after = position._replace(deal=package, turns=position.turns + 1)
        details = {
            "gain": [self.gain(0, package), self.gain(1, package)],
            "nash": [self.gain(0, self.nash), self.gain(1, self.nash)],
            "efficient": self.efficient(package),
        }
        text = f"deal : {self.named(package)} ."
        end = EndReason.SOLVED if scores[0] >= 1.0 else EndReason.FAILED
        return PlayOutcome(after, text, end, scores, text, details)

    def _offered(
        self, position: BargainState, package: Package, said: SpokenMessage
    ) -> PlayOutcome[BargainState]:
        seat = position.seat
        offers = (package, position.offers[1]) if seat == 0 else (position.offers[0], package)
        if self.two_sided:
            text = f"other offers {self.named(package)} ."
            more = any(word not in self.place and word != "offer" for word in said.words)
            return self._pass(
                position._replace(offers=offers), f"{text} other says : {said.text}" if more else text
            )
        worth = self.worth(1, package)
        better = worth > position.best_heard
        steps = min(STEPS, position.steps + better)
        after = position._replace(
            offers=offers,
            steps=steps,
            best_heard=max(worth, position.best_heard),
            vain=position.vain + (not better),
        )
        if worth >= self.demand(steps):
            return self._deal(after, package)
        most = self.options.get("vain", 0)
        if most and after.vain >= most:
            after = after._replace(turns=after.turns + 1)
            return PlayOutcome(after, f"{_NO_BETTER} goodbye .", EndReason.FAILED)
        return self._answer(after, self.counter(steps, package), _NO_BETTER if most and not better else "")

    def _talked(self, position: BargainState, said: SpokenMessage) -> PlayOutcome[BargainState]:
        if self.two_sided:
            return self._pass(position, f"other says : {said.text}")
        text = self._phrase(_MATTERS, position.turns).format(self.said_to_matter)
        return self._patient(position, text)

    def _answer(
        self, position: BargainState, counter: Package, before: str = ""
    ) -> PlayOutcome[BargainState]:
        text = self._phrase(_OFFER, position.turns).format(self.named(counter))
        if before:
            text = f"{before} {text}"
        if self.options["lies"]:
            text += f" {self._phrase(_LAST, position.turns)}"
        return self._patient(position._replace(offers=(position.offers[0], counter)), text)

    def _patient(self, position: BargainState, text: str) -> PlayOutcome[BargainState]:
        after = position._replace(turns=position.turns + 1, heard=(*position.heard, text))
        if after.turns >= self.options["patience"]:
            return PlayOutcome(after, "i have no more time . goodbye .", EndReason.FAILED)
        return PlayOutcome(after, text)

    def _pass(self, position: BargainState, text: str) -> PlayOutcome[BargainState]:
        heard = (*position.heard, text)
        return PlayOutcome(
            position._replace(turns=position.turns + 1, heard=heard, seat=1 - position.seat), text
        )

    # --- words -----------------------------------------------------------------------------------

    def named(self, package: Package) -> str:
        return " , ".join(of[option] for (_, of), option in zip(self.issues, package, strict=True))

    def _phrase(self, variants: Sequence[str], turn: int) -> str:
        return phrase(f"{self.task.id} {turn}", variants, self.options["paraphrase"])

    def system(self, seat: int) -> str:
        if not self.full:
            return "bargain : offer , accept , ask or leave ."
        return (
            "You negotiate. Each turn say something: offer one option of every issue, accept the other's last offer, "
            "ask what matters to the other, or leave. A deal is scored by what you gain over having no deal, "
            "relative to the fairest efficient deal. The other has values of its own, and may not tell the truth."
        ) + ("" if self.two_sided else language_game(_GAME, f"{_MORE}{self._told_of_vain}"))

    @property
    def _told_of_vain(self) -> str:
        most = self.options.get("vain", 0)
        return _VAIN.format(most) if most else ""

    def opening(self, position: BargainState) -> str:
        worths = self.worths[position.seat]
        lines = [
            f"{name} : {' , '.join(f'{word} {w}' for word, w in zip(of, row, strict=True))} ."
            for (name, of), row in zip(self.issues, worths, strict=True)
        ]
        opened = [position.heard[-1]] if position.heard else []
        return "\n".join((self.task.prompt, *lines, f"no deal : {self.reserve[position.seat]} .", *opened))

    # --- players ---------------------------------------------------------------------------------

    def gold(self, position: BargainState) -> str:
        """Makes offers that concede step by step and end at the Nash point."""
        if self.two_sided:
            standing = position.offers[1 - position.seat]
            fair = standing is not None and self.score(position.seat, standing) >= 1.0
            return "accept ." if fair else f"offer {self.named(self.nash)} ."
        left = STEPS - position.steps
        low = self.worth(1, self.nash)
        values = sorted({w for p in self.packages if position.best_heard < (w := self.worth(1, p)) <= low})
        if left <= 1 or len(values) < left:
            return f"offer {self.named(self.nash)} ."
        wanted = values[-left]
        offer = max((p for p in self.packages if self.worth(1, p) == wanted), key=lambda p: self.worth(0, p))
        return f"offer {self.named(offer)} ."

    def rival(self, position: BargainState, rng: Random) -> str:
        """Of two agents, one that begins with its best and comes down to its share of the Nash point, turn by turn."""
        if not self.two_sided:
            return self.gold(position)
        seat = position.seat
        standing, demand = position.offers[1 - seat], self.demand(position.turns // 2, seat)
        if standing is not None and self.worth(seat, standing) >= demand:
            return "accept ."
        taken = (p for p in self.packages if self.worth(seat, p) >= demand)
        return f"offer {self.named(max(taken, key=lambda p: self.worth(1 - seat, p)))} ."

    def demonstrate(self, position: BargainState, rng: Random) -> str:
        """Offers anything that is good for itself, asks, and takes what is not too bad."""
        standing = position.offers[1 - position.seat]
        if standing is not None and self.score(position.seat, standing) > rng.random():
            return "accept ."
        if rng.random() < 0.15:
            return "what matters to you ?"
        worth = sorted(self.packages, key=lambda p: self.worth(position.seat, p))
        return f"offer {self.named(rng.choice(worth[len(worth) // 2 :]))} ."

    def potential(self, position: BargainState) -> float:
        """Return how far the partner has conceded, from 0 to 1."""
        return position.steps / STEPS

    def admissible(self, position: BargainState) -> Sequence[str]:
        accept = ["accept ."] if position.offers[1 - position.seat] else []
        offers = [f"offer {self.named(package)} ." for package in self.packages]
        return [*accept, "what matters to you ?", *offers, "leave ."]

    def known(self, position: BargainState) -> Hashable:
        """Return what a side knows: its own values, its last offer and all it heard, but not the other's
        values."""
        return (
            self.opening(BargainState(seat=position.seat)),
            position.offers[position.seat],
            position.heard,
            position.deal,
        )
