"""Parts that plans for the apps are made of."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.toolworld.apps.actions import names
from turnwise.envs.toolworld.apps.generic import holds
from turnwise.envs.toolworld.apps.state import Contact, Mail
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import PlanStep, call
from turnwise.tasks.core import Json


def use(draft: StoryDraft, api: str, **given: Json) -> list[PlanStep]:
    """A call of an API, after a look into its documentation at its first use."""
    called = names(draft.db.get("manual", "me").seed, api)
    step = call("call_api", api=api, arguments={called[name]: value for name, value in given.items()})
    if f"doc {api}" in draft.used:
        return [step]
    draft.used.add(f"doc {api}")
    return [call("read_doc", api=api), step]


def each(draft: StoryDraft, api: str, argument: str, keys: Sequence[str], **given: Json) -> list[PlanStep]:
    return [step for key in keys for step in use(draft, api, **{argument: key}, **given)]


def pages(draft: StoryDraft, api: str, n: int, **given: Json) -> list[PlanStep]:
    """All pages of a list of ``n`` rows."""
    return [step for page in range(1, 1 + max(1, -(-n // 10))) for step in use(draft, api, page=page, **given)]  # fmt: skip


def search(draft: StoryDraft, app: str, table: str, text: str) -> list[PlanStep]:
    """All pages of the things in which all words of a text occur."""
    found = sum(holds(row, text.lower().split()) for row in draft.db.rows(table))
    return pages(draft, f"{app}.search_{table}", found, text=text)


def mails_of(draft: StoryDraft, person: Contact) -> list[Mail]:
    return [m for m in draft.db.rows("mails") if m.sender == person.email and m.folder == "inbox"]


def some_person(draft: StoryDraft) -> Contact | None:
    return draft.free(draft.db.rows("contacts"), lambda contact: contact.contact_id)


def find_person(draft: StoryDraft, person: Contact) -> list[PlanStep]:
    return use(draft, "contacts.search_contacts", text=person.name)
