"""The apps' tables, and worlds of them with the accounts behind them. Money in cents."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnwise.envs.toolworld.apps.account import state as accounts
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.vocabulary import PersonName, people

GROUPS = ("family", "climbing", "work", "choir")
GENRES = ("jazz", "folk", "techno", "classical")
TOPICS = ("rent", "dinner", "tickets", "groceries", "fuel", "gift", "books", "insurance")
FOLDERS = ("/drafts", "/photos", "/work", "/old")


class Mail(NamedTuple):
    mail_id: str
    folder: str
    sender: str
    to: tuple[str, ...]
    subject: str
    body: str
    date: str
    read: bool = False
    starred: bool = False


class Event(NamedTuple):
    event_id: str
    title: str
    date: str
    start: str
    end: str
    guests: tuple[str, ...] = ()
    status: str = "accepted"  # accepted, declined, invited


class File(NamedTuple):
    file_id: str
    folder: str
    name: str
    content: str
    kilobytes: int
    modified: str
    shared_with: tuple[str, ...] = ()


class Account(NamedTuple):
    balance: int


class Transfer(NamedTuple):
    transfer_id: str
    to: str
    amount: int
    note: str
    date: str


class PaymentRequest(NamedTuple):
    request_id: str
    sender: str
    amount: int
    note: str
    date: str
    status: str = "pending"  # pending, paid, declined


class AppNote(NamedTuple):
    note_id: str
    title: str
    text: str
    pinned: bool = False


class Song(NamedTuple):
    song_id: str
    title: str
    artist: str
    genre: str
    seconds: int
    liked: bool = False
    plays: int = 0


class Playlist(NamedTuple):
    playlist_id: str
    name: str
    songs: tuple[str, ...] = ()


class Contact(NamedTuple):
    contact_id: str
    name: str
    email: str
    phone: str
    group: str


class Manual(NamedTuple):
    seed: int


def mail_of(person: PersonName) -> str:
    return f"{person.handle}@example.net"


def build(rng: Random, size: int) -> Database:
    """The apps of somebody with ``size`` contacts."""
    known = people(rng, size)
    numbers = (str(number) for number in rng.sample(range(1000, 10_000), 16 * size + 200))
    contacts = [
        Contact(f"c{next(numbers)}", person.full, mail_of(person), f"555-{rng.randint(1000, 9999)}", rng.choice(GROUPS))
        for person in known
    ]  # fmt: skip
    mails = [_mail(rng, f"m{next(numbers)}", rng.choice(known)) for _ in range(3 * size)]
    events = [_event(rng, f"e{next(numbers)}", rng.choice(known)) for _ in range(size)]
    files = [_file(rng, f"f{next(numbers)}") for _ in range(2 * size)]
    requests = [PaymentRequest(f"r{next(numbers)}", *_payment(rng, known)) for _ in range(size)]
    transfers = [Transfer(f"t{next(numbers)}", *_payment(rng, known)) for _ in range(2 * size)]
    notes = [
        AppNote(f"n{next(numbers)}", f"{rng.choice(TOPICS)} {number}", f"{rng.choice(known).full}: {dollars(_amount(rng))}")
        for number in range(1, 1 + size // 2)
    ]  # fmt: skip
    artists = [person.full for person in rng.sample(known, max(3, size // 4))]
    songs = [
        Song(
            f"s{next(numbers)}", f"{rng.choice(TOPICS).title()} No. {number}", rng.choice(artists), rng.choice(GENRES),
            rng.randint(90, 420), rng.random() < 0.3,
        )
        for number in range(1, 1 + 2 * size)
    ]  # fmt: skip
    liked = tuple(song.song_id for song in songs[:4])
    names = ("Morning", "Run", "Sleep")
    playlists = [Playlist(f"p{next(numbers)}", name, liked[: rng.randint(1, 4)]) for name in names]
    tables = {
        "mails": mails, "events": events, "files": files, "requests": requests, "transfers": transfers, "notes": notes,
        "songs": songs, "playlists": playlists, "contacts": contacts,
    }  # fmt: skip
    account = {"me": Account(rng.randrange(200_000, 400_000, 100))}
    manual = {"me": Manual(rng.randrange(1_000_000))}
    rows = {table: {row[0]: row for row in made} for table, made in tables.items()}
    return Database.of({**rows, "account": account, "manual": manual, **accounts.tables(rng, size)})


_ABOUT = ("Minutes of meeting no.", "List no.", "Receipt no.", "Draft of letter no.", "Scan of page")


def _day(rng: Random) -> str:
    return f"2026-{rng.randint(3, 6):02}-{rng.randint(1, 17):02}"


def _amount(rng: Random) -> int:
    return rng.randrange(500, 9000, 25)


def _payment(rng: Random, known: list[PersonName]) -> tuple[str, int, str, str]:
    """Somebody, an amount, what it is for, a day."""
    return rng.choice(known).full, _amount(rng), rng.choice(TOPICS), _day(rng)


def _mail(rng: Random, key: str, sender: PersonName) -> Mail:
    topic = rng.choice(TOPICS)
    if rng.random() < 0.3:
        body = f"Hi, I have a new phone number: 555-{rng.randint(1000, 9999)}. Best, {sender.first}"
        subject = "my new number"
    else:
        body = f"About the {topic}: it was {dollars(_amount(rng))} on my side. Best, {sender.first}"
        subject = topic
    return Mail(key, "inbox", mail_of(sender), ("me",), subject, body, _day(rng), rng.random() < 0.5)


def _event(rng: Random, key: str, guest: PersonName) -> Event:
    start = rng.randint(8, 18)
    title = f"{rng.choice(('Call', 'Lunch', 'Walk', 'Review'))} with {guest.first}"
    date = f"2026-06-{rng.randint(19, 30)}"
    status = rng.choice(("accepted", "accepted", "invited"))
    return Event(key, title, date, f"{start:02}:00", f"{start + 1:02}:00", (mail_of(guest),), status)


def _file(rng: Random, key: str) -> File:
    name = f"{rng.choice(TOPICS)}_{rng.randint(10, 99)}.{rng.choice(('txt', 'jpg', 'pdf'))}"
    folder, number = rng.choice(FOLDERS), rng.randint(100, 999)
    content = f"{_ABOUT[number % len(_ABOUT)]} {number}"
    return File(key, folder, name, content, rng.randint(1, 4000), _day(rng))
