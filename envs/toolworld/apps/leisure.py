"""APIs of payments, notes and music."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from turnwise.envs.toolworld.apps.account.state import TODAY
from turnwise.envs.toolworld.apps.generic import creator, generic, page_of, setter, shown
from turnwise.envs.toolworld.apps.state import Account, AppNote, PaymentRequest, Playlist, Song, Transfer
from turnwise.envs.toolworld.database import Database, fresh_key
from turnwise.envs.toolworld.domain import Written
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolError


def show_balance(db: Database) -> Json:
    """How much money there is."""
    return shown(db.get("account", "me"))


def send_money(db: Database, recipient: str, cents: int, note: str) -> Written:
    """Send money to a contact (full name), in cents."""
    if not any(contact.name == recipient for contact in db.rows("contacts")):
        raise ToolError(f"No contact is called {recipient[:60]!r}.")
    return _paid(db, recipient, cents, note)


def pending_requests(db: Database, page: int = 1) -> Json:
    """Requests for money that wait for an answer."""
    return page_of([r for r in db.rows("requests") if r.status == "pending"], page)


def pay_request(db: Database, request: str) -> Written:
    """Pay what a request asks for."""
    asked = _pending(db, request)
    paid = _paid(db, asked.sender, asked.amount, asked.note)
    return Written(paid.db.update("requests", request, status="paid"), paid.result)


def decline_request(db: Database, request: str) -> Written:
    """Decline a request for money."""
    _pending(db, request)
    return Written(db.update("requests", request, status="declined"), "declined")


def top_up(db: Database, cents: int) -> Written:
    """Move money from the bank to the app, in cents."""
    if not 0 < cents <= 1_000_000:
        raise ToolError("At most 10,000 dollars.")
    account: Account = db.get("account", "me")
    return Written(db.update("account", "me", balance=account.balance + cents), "ok")


def append_to_note(db: Database, note: str, text: str) -> Written:
    """Add a line to a note."""
    old: AppNote = db.get("notes", note)
    return Written(db.update("notes", note, text=f"{old.text}\n{text}"), "ok")


def play(db: Database, song: str) -> Written:
    """Play a song."""
    old: Song = db.get("songs", song)
    return Written(db.update("songs", song, plays=old.plays + 1), f"playing {old.title}")


def add_to_playlist(db: Database, playlist: str, song: str) -> Written:
    """Add a song to a playlist (a playlist keeps its songs in the order of their ids)."""
    old: Playlist = db.get("playlists", playlist)
    db.get("songs", song)
    return Written(db.update("playlists", playlist, songs=tuple(sorted({*old.songs, song}))), "ok")


def remove_from_playlist(db: Database, playlist: str, song: str) -> Written:
    """Take a song out of a playlist."""
    old: Playlist = db.get("playlists", playlist)
    return Written(db.update("playlists", playlist, songs=tuple(s for s in old.songs if s != song)), "ok")


def _pending(db: Database, request: str) -> PaymentRequest:
    asked: PaymentRequest = db.get("requests", request)
    if asked.status != "pending":
        raise ToolError(f"The request is {asked.status}.")
    return asked


def _paid(db: Database, recipient: str, cents: int, note: str) -> Written:
    account: Account = db.get("account", "me")
    if not 0 < cents <= account.balance:
        raise ToolError("The amount must be positive, and not more than the balance.")
    key = fresh_key(db, "transfers", "t", recipient, cents, note)
    db = db.put("transfers", key, Transfer(key, recipient, cents, note, TODAY))
    return Written(db.update("account", "me", balance=account.balance - cents), {"transfer": key})


_note, _song = partial(setter, "notes", "note"), partial(setter, "songs", "song")
LEISURE: dict[str, list[Callable[..., Any]]] = {
    "payments": [
        *generic("transfers", "transfer", deletable=False), *generic("requests", "request", deletable=False),
        show_balance, send_money, pending_requests, pay_request, decline_request, top_up,
    ],
    "notes": [
        *generic("notes", "note"),
        creator("notes", "note", AppNote, "Write a note.", title=str, text=str), append_to_note,
        _note("retitle_note", "Give a note another title.", title=str),
        _note("pin_note", "Pin a note.", to={"pinned": True}), _note("unpin_note", "Unpin a note.", to={"pinned": False}),
    ],
    "music": [
        *generic("songs", "song", deletable=False), *generic("playlists", "playlist"),
        _song("like", "Like a song.", to={"liked": True}), _song("unlike", "Take a like back.", to={"liked": False}), play,
        creator("playlists", "playlist", Playlist, "Make an empty playlist; its id is told.", name=str), add_to_playlist, remove_from_playlist,
    ],
}  # fmt: skip
