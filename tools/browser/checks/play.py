"""One attack on one session, and what was seen."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.tools.browser.checks.attacks import UNSEEN, BrowserAttack
from turnwise.tools.browser.checks.server import Hostile
from turnwise.tools.browser.session import Session
from turnwise.tools.core import ToolError

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_TAKEN = 16  # MiB that may be under way when a download is refused
_GRACE = 0.3  # seconds in which a packet that was sent arrives


class AttackOutcome(NamedTuple):
    """The result of an attack. ``problem`` is empty where everything held."""

    problem: str
    seen: str  # in words, for the table
    seconds: float


def play(site: Hostile, session: Session, attack: BrowserAttack) -> AttackOutcome:
    """Open the page as an agent would, look at it, and go on to the next one."""
    site.pages[attack.name] = attack.page
    site.begin()
    session.goto("/safe")
    begun = time.monotonic()
    told, shown = turn(site, session, attack)
    spent = time.monotonic() - begun
    problem = _still_there(session)
    if not problem and attack.holds == "refused" and "outside of this site" not in told:
        problem = f"it was not refused: {told or shown[:100]}"
    if not problem and attack.holds == "quoted":
        problem = _not_quoted(session, attack)
    time.sleep(_GRACE)
    if site.reached:
        problem = f"something left: {site.reached[:2]}"
    if site.poured > _TAKEN:
        problem = f"{site.poured} MiB of a file were taken"
    if "/fired" in site.asked:
        problem = "a tool fired because a page asked for it"
    seen = told or _first_note(shown) or "shown as a page"
    return AttackOutcome(problem, re.sub(r"\d{4,5}", "PORT", seen)[:120], spent)


def turn(site: Hostile, session: Session, attack: BrowserAttack) -> tuple[str, str]:
    """Return the error that the agent receives and the text that it sees; one of them is empty."""
    try:
        session.goto(site.filled(attack.address) if attack.address else f"/attack/{attack.name}")
        if attack.click:
            session.click(attack.click)
    except ToolError as error:
        return str(error), ""
    try:
        view = session.look()
    except ToolError as error:
        return str(error), ""
    if not view.address.startswith("/"):
        return "", f"the page {view.address} is open"
    return "", "\n".join((*(f"note: {note}" for note in view.notes), view.text))


def _still_there(session: Session) -> str:
    """Return what is wrong with the session one turn later."""
    try:
        if not session.address.startswith("/"):
            return f"{session.address} stayed open"
        session.goto("/safe")
        view = session.look()
    except ToolError as error:
        return f"the next turn failed: {error}"
    return "" if view.title == "Safe" else f"the next turn saw {view.title!r}"


def _not_quoted(session: Session, attack: BrowserAttack) -> str:
    session.goto(f"/attack/{attack.name}")
    texts = {kind: session.look(kind).text for kind in ("tree", "html", "text")}
    session.goto("/safe")
    return passes_for_more(attack, texts)


def passes_for_more(attack: BrowserAttack, texts: Mapping[str, str]) -> str:
    """Describe how an order on a page could pass for something else than the page's text, in what each view shows of it."""
    for kind, text in texts.items():
        if attack.name in UNSEEN and "INJECTED" in text:
            return f"what nobody sees is in the view {kind}"
    if "INJECTED" in _QUOTED.sub("", texts["tree"]):
        return f"the tree shows it outside of quotes: {texts['tree'][:200]}"
    if "<tool_call>" in texts["html"]:
        return "the HTML holds it unescaped"
    return ""


def _first_note(shown: str) -> str:
    return next((line.removeprefix("note: ") for line in shown.splitlines() if line.startswith("note: ")), "")
