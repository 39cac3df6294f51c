"""Stories of the operator's customers: requests and refusals of all changes, repairs, and what is put
together from them."""

from __future__ import annotations

from functools import partial

from turnwise.data_file import data_file, text_file
from turnwise.envs.toolworld.domain import Domain, DomainLanguage, StoryDraft, fitting
from turnwise.envs.toolworld.granting import handed_over, refusals, requests
from turnwise.envs.toolworld.operations import reasons, rules_of
from turnwise.envs.toolworld.story import Stage
from turnwise.envs.toolworld.telecom import conditions, troubles
from turnwise.envs.toolworld.telecom.actions import ACTS
from turnwise.envs.toolworld.telecom.device import DEEDS
from turnwise.envs.toolworld.telecom.hearing import PhoneLexicon
from turnwise.envs.toolworld.telecom.operations import OPERATIONS, SECTIONS
from turnwise.envs.toolworld.telecom.parts import enter, me
from turnwise.envs.toolworld.telecom.state import build


def _stolen(draft: StoryDraft) -> Stage:
    """For people, at once."""
    fitting(not draft.used)
    draft.used.add("trouble")
    return handed_over(draft, ("stolen_phone",), f"the number {me(draft).phone}")


_LANGUAGE = data_file("turnwise.envs.toolworld.telecom", "language", DomainLanguage)
DOMAIN = Domain(
    name="telecom",
    policy=text_file("turnwise.envs.toolworld.telecom", "policy.md").format(reasons=reasons(OPERATIONS, SECTIONS)),
    build=build,
    acts=ACTS,
    requests={
        **requests(OPERATIONS),
        **{kind: partial(troubles.trouble, kind=kind) for kind in troubles.TROUBLES},
        **{kind: partial(conditions.asked, kind=kind) for kind in ("left", "used", "owed", "bill")},
        "pay": conditions.pay, "measured": conditions.measured, "plan_within": conditions.plan_within, "state": conditions.state, "two": conditions.two,
    },
    traps={**refusals(OPERATIONS, SECTIONS), "locked": troubles.locked, "stolen": _stolen},
    enter=enter,
    **_LANGUAGE._asdict(),
    tells_cost=True,
    reader=PhoneLexicon,
    rules=rules_of(OPERATIONS),
    deeds=DEEDS,
    checks=troubles.CHECKS,
)  # fmt: skip
