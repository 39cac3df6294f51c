"""APIs of mail, calendar, files and contacts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from turnwise.envs.toolworld.apps.account.state import TODAY
from turnwise.envs.toolworld.apps.generic import creator, generic, setter
from turnwise.envs.toolworld.apps.state import Contact, Event, File, Mail
from turnwise.envs.toolworld.database import Database, fresh_key
from turnwise.envs.toolworld.domain import Written
from turnwise.tools.core import ToolError


def send_mail(db: Database, recipient: str, subject: str, body: str) -> Written:
    """Send a mail to an address."""
    _require_address(recipient)
    return _sent(db, (recipient,), subject, body)


def reply(db: Database, mail: str, body: str) -> Written:
    """Answer a mail."""
    old: Mail = db.get("mails", mail)
    return _sent(db, (old.sender,), f"Re: {old.subject}", body)


def forward(db: Database, mail: str, recipient: str) -> Written:
    """Send a mail on to an address."""
    old: Mail = db.get("mails", mail)
    _require_address(recipient)
    return _sent(db, (recipient,), f"Fwd: {old.subject}", old.body)


def move_event(db: Database, event: str, date: str) -> Written:
    """Move an event to another date, at the same time of the day."""
    if len(date) != len(TODAY):
        raise ToolError("Dates are written YYYY-MM-DD.")
    return Written(db.update("events", event, date=date), "ok")


def invite(db: Database, event: str, guest: str) -> Written:
    """Invite a mail address to an event."""
    _require_address(guest)
    old: Event = db.get("events", event)
    return Written(db.update("events", event, guests=tuple(sorted({*old.guests, guest}))), "ok")


def answer_invitation(db: Database, event: str, answer: Literal["accepted", "declined"]) -> Written:
    """Accept or decline an event."""
    return Written(db.update("events", event, status=answer), "ok")


def _new_file(key: str, folder: str, name: str, content: str) -> File:
    return File(key, folder, name, content, 1, TODAY)


def append_to_file(db: Database, file: str, content: str) -> Written:
    """Add a line to a file."""
    old: File = db.get("files", file)
    return Written(db.update("files", file, content=f"{old.content}\n{content}", modified=TODAY), "ok")


def share_file(db: Database, file: str, guest: str) -> Written:
    """Share a file with a mail address."""
    _require_address(guest)
    old: File = db.get("files", file)
    return Written(db.update("files", file, shared_with=tuple(sorted({*old.shared_with, guest}))), "ok")


def set_email(db: Database, contact: str, email: str) -> Written:
    """Change a contact's mail address."""
    _require_address(email)
    return Written(db.update("contacts", contact, email=email), "ok")


def _require_address(text: str) -> None:
    if text.count("@") != 1 or " " in text:
        raise ToolError(f"{text[:40]!r} is no mail address.")


def _sent(db: Database, to: tuple[str, ...], subject: str, body: str) -> Written:
    key = fresh_key(db, "mails", "m", list(to), subject, body)
    return Written(
        db.put("mails", key, Mail(key, "sent", "me", to, subject, body, TODAY, True)), {"mail": key}
    )


_mail, _event, _file, _contact = (
    partial(setter, f"{thing}s", thing) for thing in ("mail", "event", "file", "contact")
)
OFFICE: dict[str, list[Callable[..., Any]]] = {
    "mail": [
        *generic("mails", "mail"), send_mail, reply, forward,
        _mail("mark_read", "Mark a mail as read.", to={"read": True}),
        _mail("mark_unread", "Mark a mail as not read.", to={"read": False}),
        _mail("star", "Give a mail a star.", to={"starred": True}),
        _mail("move_mail", "Move a mail to a folder.", folder=Literal["inbox", "archive", "spam"]),
    ],
    "calendar": [
        *generic("events", "event"),
        creator("events", "event", Event, "Put an event into the calendar (YYYY-MM-DD, HH:MM).", title=str, date=str, start=str, end=str), move_event,
        _event("retime_event", "Give an event another time of the same day (HH:MM).", start=str, end=str), invite, answer_invitation,
    ],
    "files": [
        *generic("files", "file"),
        creator("files", "file", _new_file, "Write a new text file.", folder=str, name=str, content=str),
        _file("rename_file", "Give a file another name.", name=str),
        _file("move_file", "Move a file to a folder.", folder=str), append_to_file, share_file,
        _file("unshare_file", "Share a file with nobody.", to={"shared_with": ()}),
    ],
    "contacts": [
        *generic("contacts", "contact"),
        creator("contacts", "contact", Contact, "Add somebody to the contacts.", name=str, email=str, phone=str, group=str),
        _contact("set_phone", "Change a contact's phone number.", phone=str), set_email,
        _contact("set_group", "Put a contact into a group.", group=str),
    ],
}  # fmt: skip
