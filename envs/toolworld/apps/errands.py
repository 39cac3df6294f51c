"""Errands that somebody wants done in the apps, and two that are refused (phrases.yaml has the words)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnwise.envs.toolworld.apps.parts import each, find_person, mails_of, pages, search, some_person, use
from turnwise.envs.toolworld.apps.state import (
    FOLDERS,
    GENRES,
    GROUPS,
    TOPICS,
    AppNote,
    Contact,
    Event,
    File,
    PaymentRequest,
    Song,
    Transfer,
)
from turnwise.envs.toolworld.domain import Primitive, StoryDraft, fitting
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell

_MOST = 6  # writes that one request may take


def _few(things: Sequence[object]) -> bool:
    """Say whether there are some things, and no more than one request may change."""
    return 0 < len(things) <= _MOST


def _done(say: str, steps: Iterable[PlanStep], told: str = "Done.") -> Stage:
    return Stage(say, (*steps, tell(told)))


def _counted(say: str, steps: Iterable[PlanStep], things: Sequence[object]) -> Stage:
    """An errand, and the question how many things it was about."""
    count = str(len(things))
    return Stage(say, (*steps, tell(f"Done, there are {count}.")), (Fact("count", count),))


def _summed(say: str, steps: Iterable[PlanStep], told: str, cents: int) -> Stage:
    """An errand, and the question for an amount."""
    return Stage(say, (*steps, tell(told.format(dollars(cents)))), (Fact("money", str(cents)),))


def _members(draft: StoryDraft, group: str) -> list[Contact]:
    return [contact for contact in draft.db.rows("contacts") if contact.group == group]


def _waiting(draft: StoryDraft) -> list[PaymentRequest]:
    return [request for request in draft.db.rows("requests") if request.status == "pending"]


def pay(draft: StoryDraft) -> Stage:
    """Pay all that people of a group ask for."""
    group = fitting(draft.free(GROUPS, lambda name: f"pay {name}"))
    members, waiting = {contact.name for contact in _members(draft, group)}, _waiting(draft)
    asked = [r for r in waiting if r.sender in members]
    fitting(_few(asked))
    steps = search(draft, "contacts", "contacts", group)
    steps += pages(draft, "payments.pending_requests", len(waiting))
    steps += each(draft, "payments.pay_request", "request", [r.request_id for r in asked])
    return _summed(
        draft.say("pay", group=group), steps, "Done, the total is {}.", sum(r.amount for r in asked)
    )


def decline(draft: StoryDraft) -> Stage:
    waiting, topic = _waiting(draft), draft.rng.choice(TOPICS)
    asked = [r for r in waiting if r.note == topic]
    fitting(_few(asked) and f"decline {topic}" not in draft.used)
    draft.used.add(f"decline {topic}")
    steps = pages(draft, "payments.pending_requests", len(waiting))
    steps += each(draft, "payments.decline_request", "request", [r.request_id for r in asked])
    return _counted(draft.say("decline", topic=topic), steps, asked)


def send(draft: StoryDraft) -> Stage:
    person = fitting(some_person(draft))
    cents, topic = draft.rng.randrange(300, 25_005, 5), draft.rng.choice(TOPICS)
    steps = find_person(draft, person)
    steps += use(draft, "payments.send_money", recipient=person.name, cents=cents, note=topic)
    return _done(_sending(draft, person, cents, topic), steps, "Done, the money is sent.")


def _sending(draft: StoryDraft, person: Contact, cents: int, topic: str) -> str:
    """Draw the words of a wish for money to be sent, whether or not it is too much."""
    return draft.say("send", money=dollars(cents), person=person.name, topic=topic)


def invite_group(draft: StoryDraft) -> Stage:
    """A mail to everybody of a group."""
    group = fitting(draft.free(GROUPS, lambda name: f"mail {name}"))
    members = _members(draft, group)
    fitting(_few(members))
    topic, hour = draft.rng.choice(TOPICS), draft.rng.randint(8, 20)
    subject, body = f"About {topic}", f"Let us meet at {hour}:00."
    steps = search(draft, "contacts", "contacts", group)
    for member in members:
        steps += use(draft, "mail.send_mail", recipient=member.email, subject=subject, body=body)
    return _done(
        draft.say("mail", group=group, subject=subject, body=body), steps, "Done, the mails are sent."
    )


def file_mails(draft: StoryDraft) -> Stage:
    """Something with all mails of one person."""
    person = fitting(some_person(draft))
    mails = mails_of(draft, person)
    fitting(_few(mails))
    keys = [mail.mail_id for mail in mails]
    steps = find_person(draft, person) + search(draft, "mail", "mails", person.email)
    what = draft.rng.choice(("star", "archive", "read"))
    if what == "star":
        steps += each(draft, "mail.star", "mail", keys)
    elif what == "archive":
        steps += each(draft, "mail.move_mail", "mail", keys, folder="archive")
    else:
        keys = [mail.mail_id for mail in mails if not mail.read]
        steps += each(draft, "mail.mark_read", "mail", keys)
    fitting(keys)
    return _done(draft.say(f"mails {what}", person=person.name), steps)


def new_number(draft: StoryDraft) -> Stage:
    """The newest mail with a number says what the contact's phone is."""
    people: dict[str, Contact] = {c.email: c for c in draft.db.rows("contacts")}
    told = [m for m in draft.db.rows("mails") if m.subject == "my new number" and m.folder == "inbox"]
    mail = fitting(draft.free(told, lambda m: f"number {m.sender}"))
    own = sorted((m for m in told if m.sender == mail.sender), key=lambda m: m.date)
    fitting(len(own) == 1 or own[-1].date != own[-2].date)
    person, phone = people[mail.sender], own[-1].body.split("number: ")[1].split(".")[0]
    steps = find_person(draft, person) + search(draft, "mail", "mails", f"{person.email} number")
    steps += use(draft, "contacts.set_phone", contact=person.contact_id, phone=phone)
    return _done(draft.say("number", person=person.name), steps, "Done, the number is updated.")


def reschedule(draft: StoryDraft) -> Stage:
    dates = sorted({event.date for event in draft.db.rows("events")})
    date = fitting(draft.free(dates, lambda day: f"day {day}"))
    events: list[Event] = [e for e in draft.db.rows("events") if e.date == date]
    fitting(_few(events))
    new = draft.rng.choice([f"2026-07-{day:02}" for day in range(1, 20)])
    steps, keys = search(draft, "calendar", "events", date), [e.event_id for e in events]
    if draft.rng.random() < 0.5:
        steps += each(draft, "calendar.move_event", "event", keys, date=new)
        return _done(draft.say("calendar move", date=date, new=new), steps)
    steps += each(draft, "calendar.answer_invitation", "event", keys, answer="declined")
    return _done(draft.say("calendar decline", date=date), steps)


def clean_up(draft: StoryDraft) -> Stage:
    folder = fitting(draft.free(FOLDERS, lambda name: f"folder {name}"))
    month = draft.rng.choice(("2026-04", "2026-05"))
    files: list[File] = [f for f in draft.db.rows("files") if f.folder == folder and f.modified < f"{month}-01"]  # fmt: skip
    fitting(_few(files) and not any(f.shared_with for f in files))
    steps = search(draft, "files", "files", folder)
    steps += each(draft, "files.delete_file", "key", [f.file_id for f in files])
    return _counted(draft.say("files", folder=folder, month=month), steps, files)


def share(draft: StoryDraft) -> Stage:
    someone = some_person(draft)
    folder, kind = draft.rng.choice(FOLDERS), draft.rng.choice(("txt", "jpg", "pdf"))
    files = [f for f in draft.db.rows("files") if f.folder == folder and f.name.endswith(kind)]
    person = fitting(someone)
    fitting(_few(files) and f"share {folder}" not in draft.used)
    draft.used.add(f"share {folder}")
    steps = find_person(draft, person) + search(draft, "files", "files", folder)
    steps += each(draft, "files.share_file", "file", [f.file_id for f in files], guest=person.email)
    say = draft.say("share", kind=kind, folder=folder, person=person.name)
    return _done(say, steps, f"Done, {person.name} has access to the files.")


def like_songs(draft: StoryDraft) -> Stage:
    songs: list[Song] = draft.db.rows("songs")
    free = draft.free(sorted({song.artist for song in songs}), lambda name: f"artist {name}")
    limit = draft.rng.choice((150, 200, 240))
    artist = fitting(free)
    fit = [s for s in songs if s.artist == artist and s.seconds > limit and not s.liked]
    fitting(_few(fit))
    steps = search(draft, "music", "songs", artist)
    steps += each(draft, "music.like", "song", [s.song_id for s in fit])
    return _done(draft.say("likes", artist=artist, limit=str(limit)), steps)


def playlist(draft: StoryDraft) -> Stage:
    genre = fitting(draft.free(GENRES, lambda name: f"genre {name}"))
    fit = [s for s in draft.db.rows("songs") if s.genre == genre and s.liked]
    fitting(_few(fit))
    chosen = draft.rng.choice(draft.db.rows("playlists"))
    missing = [s.song_id for s in fit if s.song_id not in chosen.songs]
    fitting(missing)
    steps = search(draft, "music", "songs", genre) + use(draft, "music.search_playlists", text=chosen.name)
    for song in missing:
        steps += use(draft, "music.add_to_playlist", playlist=chosen.playlist_id, song=song)
    return _done(draft.say("playlist", genre=genre, playlist=chosen.name), steps)


def pin(draft: StoryDraft) -> Stage:
    note: AppNote = fitting(draft.free([n for n in draft.db.rows("notes") if not n.pinned], lambda n: n.note_id))  # fmt: skip
    owed = int(note.text.split("$")[1].replace(".", ""))
    steps = use(draft, "notes.search_notes", text=note.title) + use(draft, "notes.pin_note", note=note.note_id)  # fmt: skip
    return _summed(draft.say("note", title=note.title), steps, "Done, it is {}.", owed)


def spent(draft: StoryDraft) -> Stage:
    """A question: nothing changes, only the right answer counts."""
    topic = fitting(draft.free(TOPICS, lambda name: f"spent {name}"))
    paid: list[Transfer] = [t for t in draft.db.rows("transfers") if t.note == topic]
    month = draft.rng.choice(("2026-04", "2026-05"))
    total = sum(t.amount for t in paid if t.date.startswith(month))
    fitting(total)
    steps = search(draft, "payments", "transfers", topic)
    return _summed(draft.say("spent", topic=topic, month=month), steps, "The total is {}.", total)


def too_much_money(draft: StoryDraft) -> Stage:
    """More than may be sent at once, also in parts."""
    person = fitting(some_person(draft))
    cents, topic = draft.rng.randrange(25_005, 90_000, 5), draft.rng.choice(TOPICS)
    say = _sending(draft, person, cents, topic)
    return _kept_from(draft, say, find_person(draft, person), person.contact_id, "send_limit")


def _some_file(draft: StoryDraft, *, unshared: bool) -> File:
    """A file that no other is called like, and no request is about."""
    files: list[File] = draft.db.rows("files")
    names = [file.name for file in files]
    alone = [f for f in files if names.count(f.name) == 1 and not (unshared and f.shared_with)]
    file = fitting(draft.free(alone, lambda f: f.file_id))
    fitting(not draft.used & {f"folder {file.folder}", f"share {file.folder}"})
    return file


def delete_file(draft: StoryDraft) -> Stage:
    """A file in which nobody else has a share."""
    file = _some_file(draft, unshared=True)
    steps = search(draft, "files", "files", file.name) + use(draft, "files.delete_file", key=file.file_id)
    return _done(draft.say("delete file", file=file.name), steps, "Done, the file is deleted.")


def shared_file(draft: StoryDraft) -> Stage:
    """A file in which somebody else has a share."""
    file = _some_file(draft, unshared=False)
    if draft.db == draft.base:
        draft.override("files", file.file_id, shared_with=(draft.rng.choice(draft.db.rows("contacts")).email,))  # fmt: skip
    else:
        fitting(file.shared_with)
    say, look = draft.say("delete file", file=file.name), search(draft, "files", "files", file.name)
    return _kept_from(draft, say, look, file.file_id, "shared_file")


def _kept_from(draft: StoryDraft, say: str, look: list[PlanStep], about: str, reason: str) -> Stage:
    """An errand that is refused on record."""
    plan = (*look, call("record_refusal", about=about, reason=reason), tell("Sorry, that is not possible."))
    insist = draft.say("insist")
    return Stage(say, plan, insist=insist if draft.rng.random() < 0.5 else "")


ERRANDS: dict[str, Primitive] = {
    "pay": pay, "decline": decline, "send": send, "mail": invite_group, "mails": file_mails, "number": new_number, "calendar": reschedule,
    "files": clean_up, "delete_file": delete_file, "share": share, "likes": like_songs, "playlist": playlist, "note": pin, "spent": spent,
}  # fmt: skip
