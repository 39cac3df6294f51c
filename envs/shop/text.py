"""Read a shop page in the browser as the text mode would say it.

WebShop's own text mode was the page's visible strings joined by ``[SEP]``; here the marks of the templates say which
strings these are and in which order, so that pages may be laid out for people.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from turnwise.tools.browser.looking import Thing, View
from turnwise.tools.browser.session import Session

_READ = """(() => {
  const all = selector => [...document.querySelectorAll(selector)];
  return {
    compact: document.body.dataset.pages === "compact",
    said: all("[data-say]").map(e => [...e.dataset.say.split(".").map(Number), "click" in e.dataset, e.textContent]),
    clicks: all("[data-click]").map(e => [Number(e.dataset.rank), e.dataset.click]),
    title: document.title,
  };
})()"""


class Piece(NamedTuple):
    """A string of the page: its line and place in the text, whether it can be clicked."""

    line: int
    place: int
    clickable: bool
    text: str


def read_page(session: Session) -> View:
    """The open page. ``things`` are what can be clicked, in the text mode's order, by the text mode's names."""
    found = session.ask(_READ)
    pieces = sorted((Piece(*piece) for piece in found["said"]), key=lambda piece: piece[:2])
    things = tuple(Thing(str(rank), "", name, "") for rank, name in sorted(found["clicks"]))
    text = _compact(pieces) if found["compact"] else " [SEP] ".join(piece.text for piece in pieces)
    return View("", found["title"], text, things)  # the text mode has no addresses


def _compact(pieces: list[Piece]) -> str:
    lines = groupby(pieces, key=lambda piece: piece.line)
    return "\n".join(
        " ".join(f"[{piece.text}]" if piece.clickable else piece.text for piece in line) for _, line in lines
    )
