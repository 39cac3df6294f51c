"""Wishes for the apps and for the account behind them."""

from __future__ import annotations

from turnwise.data_file import text_file
from turnwise.envs.toolworld.apps import errands
from turnwise.envs.toolworld.apps.account.language import LANGUAGE
from turnwise.envs.toolworld.apps.account.parts import enter, enter_as_child
from turnwise.envs.toolworld.apps.account.questions import QUESTIONS
from turnwise.envs.toolworld.apps.account.rules import SECTIONS
from turnwise.envs.toolworld.apps.account.several import SEVERAL
from turnwise.envs.toolworld.apps.account.state import TODAY
from turnwise.envs.toolworld.apps.actions import ACTS
from turnwise.envs.toolworld.apps.rules import OPERATIONS, rules
from turnwise.envs.toolworld.apps.state import build
from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.granting import refusals, refused, requests
from turnwise.envs.toolworld.operations import reasons
from turnwise.envs.toolworld.story import Stage, call

_FOR_PEOPLE = ("bereavement", "fraud", "legal", "safety")
FOR_ADULTS = [one for one in OPERATIONS if "minor" in one.may]
FOR_ORGANIZERS = [one for one in OPERATIONS if "organizer_only" in one.may]


def _transfer(draft: StoryDraft) -> Stage | None:
    reason = draft.rng.choice(_FOR_PEOPLE)
    return Stage(draft.say(f"for people: {reason}"), (call("transfer_to_human", reason=reason),))


def _minor(draft: StoryDraft) -> Stage | None:
    """A child who asks for what its parents must; that it is one must be seen, or it says so."""
    return refused(draft, draft.rng.choice(FOR_ADULTS), "minor") if enter_as_child(draft) else None


DOMAIN = Domain(
    name="apps",
    policy=text_file("turnwise.envs.toolworld.apps", "policy.md").format(today=TODAY, reasons=reasons(OPERATIONS, SECTIONS)),
    build=build,
    acts=ACTS,
    requests={**errands.ERRANDS, **requests(OPERATIONS), **QUESTIONS, **SEVERAL},
    traps={
        **refusals(OPERATIONS, SECTIONS, {"minor": FOR_ADULTS, "organizer_only": FOR_ORGANIZERS}),
        "minor": _minor, "transfer": _transfer, "send_limit": errands.too_much_money, "shared_file": errands.shared_file,
    },
    enter=enter,
    **LANGUAGE._asdict(),
    rules=rules,
    tells_cost=True,
)  # fmt: skip
