"""``turnwise/ShopBrowser-v0``: the shop as a web site in a real browser.

With ``view="text"`` a policy sees and says exactly what it does in ``turnwise/Shop-v0``: the page's text is read out
of the browser, ``search[…]`` is typed into the search field, ``click[…]`` is a click of the mouse. With the other
views it has the tools of every web environment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Any, ClassVar, NamedTuple

from turnwise.envs.messages import Message, Messages
from turnwise.envs.shop.actions import named
from turnwise.envs.shop.env import ShopEnv
from turnwise.envs.shop.site import Browsing, ShopSite
from turnwise.envs.web.actions import SYSTEM, WEB_TOOLS, say
from turnwise.envs.web.env import WebEnv
from turnwise.envs.web.render import show_view
from turnwise.envs.web.sessions import SessionVisit
from turnwise.envs.web.site import Visit
from turnwise.envs.web.state import WebState
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.browser.looking import Look, Thing, View
from turnwise.tools.browser.session import Session
from turnwise.tools.core import Tool, ToolError

ENV = "turnwise/ShopBrowser-v0"
_VIEWS = ("tree", "html", "text", "screenshot")


class ShopBrowserEnv(WebEnv):
    """Shop-v0's tasks, states and score on real pages."""

    max_trivial_score: ClassVar[float] = ShopEnv.max_trivial_score
    twin: ClassVar[str] = "turnwise/Shop-v0"
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        view: {"products": 1000, "catalogues": 1, "option_groups": 2, "price_cap": True, "view": view}
        for view in ("text", "tree")
    }

    def __init__(self, *, view: Look = "tree", shaping: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(view=view, shaping=shaping, render_mode=render_mode)
        self._text_mode = ShopEnv()

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        view, checkout = knobs.pop("view", None), knobs.pop("checkout", False)
        if view is not None and view not in _VIEWS:
            raise EnvError(f"There is no view {view!r}.", f"Views: {', '.join(_VIEWS)}.")
        if checkout and view == "text":
            raise EnvError("The text mode has no cart.", "Leave checkout out, or choose another view.")
        return in_browser(ShopEnv.generate(rng, split, **knobs), view, checkout=checkout)

    def begin_visit(self, task: Task) -> Visit:
        return ShopSite.shared().begin(task)

    def server_state(self, visit: Visit) -> Browsing:
        assert isinstance(visit, SessionVisit)
        return visit.state

    # --- what is told ----------------------------------------------------------------------------

    def initial(self, task: Task) -> tuple[WebState, str | Messages]:
        state, observation = super().initial(task)
        if self.view_of(task) == "text":
            _, spoken = self._text_mode.initial(task)
            return state, Messages((spoken[0], Message("user", state.page.text)))
        return state, observation

    def system_for(self, agent: str) -> str:
        return "" if self._as_text else SYSTEM  # the text mode's depends on the task: see `initial`

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        return ShopEnv.tools if self._as_text else WEB_TOOLS

    def look(self, session: Session, kind: Look) -> View:
        return read_page(session) if kind == "text" else super().look(session, kind)

    def show(self, view: View, task: Task) -> str:
        return view.text if self.view_of(task) == "text" else show_view(view)

    # --- what is done ----------------------------------------------------------------------------

    def perform(self, session: Session, name: str, arguments: Mapping[str, Any]) -> None:
        if not self._as_text:
            super().perform(session, name, arguments)
        elif name == "search":
            session.fill_css("#q", " ".join(arguments["query"].split()), submit=True)
            if complaint := session.ask("document.querySelector('[role=alert]')?.textContent ?? ''"):
                raise ToolError(complaint)
        else:
            self._click_named(session, arguments["target"])

    def verdict(self, state: WebState) -> float | None:
        score = _browsing(state).score
        return None if score is None else score.total

    def details(self, state: WebState) -> Mapping[str, Json]:
        score = _browsing(state).score
        return {} if score is None else score._asdict()

    def check(self, state: WebState) -> float:
        return self.verdict(state) or 0.0

    # --- scripts ---------------------------------------------------------------------------------

    def gold(self, state: WebState) -> Message | str:
        browsing = _browsing(state)
        if browsing.cart:
            return (
                say("click", target="Place Order")
                if state.page.address == "/cart"
                else say("goto", address="/cart")
            )
        return self._translated(self._text_mode.gold(browsing.shop))

    def demonstrate(self, state: WebState, rng: Random) -> Message | str:
        browsing = _browsing(state)
        if browsing.cart:
            return self.gold(state)
        return self._translated(self._text_mode.demonstrate(browsing.shop, rng))

    def potential(self, state: WebState) -> float | None:
        return self._text_mode.potential(_browsing(state).shop)

    def admissible(self, state: WebState) -> Sequence[str]:
        offered = self._text_mode.admissible(_browsing(state).shop)
        if self._as_text:
            return offered
        searches = [self._translated(action) for action in offered if action.startswith("search[")]
        return [*searches, *super().admissible(state)]

    def state_key(self, state: WebState) -> str:
        key = self._text_mode.state_key(_browsing(state).shop)
        if self._as_text:
            return key
        page = state.page
        return digest(key, page.address, page.text, page.tabs, page.tab)

    # --- inside ----------------------------------------------------------------------------------

    @property
    def _as_text(self) -> bool:
        """True if this episode is the text mode's twin; before the first one, as the option says."""
        return (self._view if self._snapshot is None else self.view_of(self.task)) == "text"

    def _click_named(self, session: Session, target: str) -> None:
        things = self.state.page.things  # the page rested when it was looked at
        wanted = named(target, [*dict.fromkeys(thing.name for thing in things)])
        found = next(thing for thing in things if thing.name == wanted)
        session.click_css(f'[data-rank="{found.id}"]')

    def _translated(self, action: str) -> str:
        """A text mode's action for this view. Names of buttons and links are what is clicked there as well."""
        if self._as_text:
            return action
        verb, _, argument = action.removesuffix("]").partition("[")
        if verb == "search":
            return say("fill", target="Search products", text=argument, submit=True)
        in_cart = self.task.options.get("checkout") and argument.startswith("buy")
        return say("click", target="Add to Cart" if in_cart else argument)


def _browsing(state: WebState) -> Browsing:
    return state.server


def in_browser(task: Task, view: Look | None = None, *, checkout: bool = False) -> Task:
    """A task of Shop-v0 for the browser: the same catalogue, goal and pages; with ``checkout``, a cart."""
    options = {**task.options}
    if view is not None:
        options["view"] = view
    if checkout:
        options["checkout"] = True
    return dataclasses.replace(task, env=ENV, options=options)


_READ = """(() => {
  const all = selector => [...document.querySelectorAll(selector)];
  return {
    compact: document.body.dataset.pages === "compact",
    said: all("[data-say]").map(e => [...e.dataset.say.split(".").map(Number), "click" in e.dataset, e.textContent]),
    clicks: all("[data-click]").map(e => [Number(e.dataset.rank), e.dataset.click]),
    title: document.title,
  };
})()"""


class TextPiece(NamedTuple):
    """A string of the page: its line and place in the text, whether it can be clicked."""

    line: int
    place: int
    clickable: bool
    text: str


def read_page(session: Session) -> View:
    """The open page. ``things`` are what can be clicked, in the text mode's order, by the text mode's names."""
    found = session.ask(_READ)
    pieces = sorted((TextPiece(*piece) for piece in found["said"]), key=lambda piece: piece[:2])
    things = tuple(Thing(str(rank), "", name, "") for rank, name in sorted(found["clicks"]))
    text = _compact(pieces) if found["compact"] else " [SEP] ".join(piece.text for piece in pieces)
    return View("", found["title"], text, things)  # the text mode has no addresses


def _compact(pieces: list[TextPiece]) -> str:
    lines = groupby(pieces, key=lambda piece: piece.line)
    return "\n".join(
        " ".join(f"[{piece.text}]" if piece.clickable else piece.text for piece in line) for _, line in lines
    )
