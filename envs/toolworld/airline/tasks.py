"""Stories of the airline's customers: requests and refusals of all changes, and what is put together from
them."""

from __future__ import annotations

from functools import partial
from typing import get_args

from turnwise.data_file import data_file, text_file
from turnwise.envs.toolworld.airline import questions
from turnwise.envs.toolworld.airline.actions import ACTS, HandOver
from turnwise.envs.toolworld.airline.conditions import CONDITIONS
from turnwise.envs.toolworld.airline.operations import CANCEL, MOVE, OPERATIONS, SECTIONS, UPGRADE
from turnwise.envs.toolworld.airline.parts import enter
from turnwise.envs.toolworld.airline.several import EXTRAS, SEVERAL, ahead
from turnwise.envs.toolworld.airline.state import TODAY, build
from turnwise.envs.toolworld.alternatives import best, best_and_rest, every
from turnwise.envs.toolworld.domain import Domain, DomainLanguage, StoryDraft
from turnwise.envs.toolworld.granting import handed_over, refusals, requests
from turnwise.envs.toolworld.operations import reasons, rules_of
from turnwise.envs.toolworld.story import Stage

LATE = [one for one in OPERATIONS if "flown" in one.may and one not in (CANCEL, MOVE)]
"""Changes that are wanted after the flight was flown, beside another flight or the money back."""


def _transfer(draft: StoryDraft) -> Stage | None:
    routes = sorted({f"{f.origin} to {f.destination}" for f in draft.db.rows("flights")})
    trip = draft.free(routes, lambda name: name)
    return handed_over(draft, get_args(HandOver), f"a flight from {trip}") if trip else None


DOMAIN = Domain(
    name="airline",
    policy=text_file("turnwise.envs.toolworld.airline", "policy.md").format(
        today=TODAY, reasons=reasons(OPERATIONS, SECTIONS)
    ),
    build=build,
    acts=ACTS,
    requests={
        **requests(
            OPERATIONS, questions.status, questions.departure, questions.credit, *CONDITIONS, *SEVERAL,
        ),
        "seats": partial(questions.of_flight, price=False),
        "fare": partial(questions.of_flight, price=True),
        "best": lambda draft: best(draft, ahead(draft), (*EXTRAS, CANCEL, UPGRADE)),
        "best_and_rest": lambda draft: best_and_rest(draft, ahead(draft), CANCEL, EXTRAS),
        "every": lambda draft: every(draft, ahead(draft), (*EXTRAS, CANCEL), "each of {}"),
    },
    traps={**refusals(OPERATIONS, SECTIONS, {"flown": LATE}), "transfer": _transfer},
    enter=enter,
    tells_cost=True,
    rules=rules_of(OPERATIONS),
    **data_file("turnwise.envs.toolworld.airline", "language", DomainLanguage)._asdict(),
)  # fmt: skip
