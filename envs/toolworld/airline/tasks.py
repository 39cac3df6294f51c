"""Stories of the airline's customers: requests and refusals of all changes, and what is put together from
them."""

from __future__ import annotations

from turnwise.data_file import text_file
from turnwise.envs.toolworld.airline import language, questions
from turnwise.envs.toolworld.airline.actions import ACTS
from turnwise.envs.toolworld.airline.conditions import CONDITIONS
from turnwise.envs.toolworld.airline.operations import CANCEL, MOVE, OPERATIONS, SECTIONS, UPGRADE
from turnwise.envs.toolworld.airline.parts import enter
from turnwise.envs.toolworld.airline.several import EXTRAS, SEVERAL, ahead
from turnwise.envs.toolworld.airline.state import TODAY, build
from turnwise.envs.toolworld.alternatives import best, best_and_rest, every
from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.operations import handed_over, reasons, refusals, requests, rules_of
from turnwise.envs.toolworld.story import Stage

_FOR_PEOPLE = {
    "group_booking": (
        "I want to book seats for our choir, 25 people.", "Our class of 18 needs seats.", "We are a club of 31 people and want to fly together.", "Seats for 12 colleagues, please.",
    ),
    "medical": (
        "I travel with an oxygen device. What do I have to do?", "I need a stretcher on board.", "After my operation I need a nurse on the flight.", "I fly with a machine that breathes for me.",
    ),
    "unaccompanied_child": (
        "My daughter, who is seven, will fly alone. Please arrange it.", "My son is eight and travels by himself.", "Our boy of six flies to his grandmother without us.",
        "A child of nine will be on the plane alone.",
    ),
    "legal": (
        "I will sue you. Whom do I send the papers to?", "My lawyer needs an address of yours.", "We shall meet in court.", "This is about a lawsuit against you.",
    ),
}  # fmt: skip


LATE = [one for one in OPERATIONS if "flown" in one.may and one not in (CANCEL, MOVE)]
"""Changes that are wanted after the flight was flown, beside another flight or the money back."""


def _transfer(draft: StoryDraft) -> Stage | None:
    routes = sorted({f"{f.origin} to {f.destination}" for f in draft.db.rows("flights")})
    trip = draft.free(routes, lambda name: name)
    return handed_over(draft, _FOR_PEOPLE, f"a flight from {trip}") if trip else None


DOMAIN = Domain(
    name="airline",
    policy=text_file("turnwise.envs.toolworld.airline", "policy.md").format(
        today=TODAY, reasons=reasons(OPERATIONS, SECTIONS)
    ),
    build=build,
    acts=ACTS,
    requests={
        **requests(OPERATIONS),
        "best": lambda draft: best(draft, ahead(draft), (*EXTRAS, CANCEL, UPGRADE)),
        "best_and_rest": lambda draft: best_and_rest(draft, ahead(draft), CANCEL, EXTRAS),
        "every": lambda draft: every(draft, ahead(draft), (*EXTRAS, CANCEL), "each of {}"),
        **{
            made.__name__: made
            for made in (
                questions.status, questions.departure, questions.seats, questions.fare, questions.credit, *CONDITIONS, *SEVERAL,
            )
        },
    },
    traps={**refusals(OPERATIONS, SECTIONS, {"flown": LATE}), "transfer": _transfer},
    enter=enter,
    slots=language.SLOTS,
    identity=language.IDENTITY,
    senses=language.SENSES,
    patterns=language.PATTERNS,
    tells_cost=True,
    rules=rules_of(OPERATIONS),
)  # fmt: skip
