"""``WebEnv``: any local web application as an environment.

A subclass names its application and says what counts as success; the rest (the browser, observations, actions,
forks, recovery) is here::

    class GuestbookEnv(WebEnv):
        site = Command((sys.executable, "guestbook.py", "--port", "{port}", "--state", "{state}"))

        @classmethod
        def generate(cls, rng, split, **knobs):
            name = rng.choice(NAMES[split])
            gold = [say("fill", target="Name", text=name, submit=True), say("done")]
            return Task("me/Guestbook-v0", f"Sign the guestbook as {name}.", {"name": name}, gold)

        def check(self, state):
            return float(self.task.options["name"] in state.server.text("guests.txt"))
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from turnwise.envs.core import EndReason, Transition
from turnwise.envs.live import LiveEnv
from turnwise.envs.messages import Image, Message, Messages
from turnwise.envs.web.actions import SYSTEM, WEB_TOOLS, perform, read_call
from turnwise.envs.web.render import show_view
from turnwise.envs.web.site import Site, Visit
from turnwise.envs.web.state import LiveSite, WebSnapshot, WebState
from turnwise.errors import InfraError
from turnwise.tasks.core import Json, Task
from turnwise.tools.browser.looking import Look, View
from turnwise.tools.browser.pool import chromium
from turnwise.tools.browser.session import Session, lease
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool


class WebEnv(LiveEnv[WebState]):
    """A task on a web site, played in a real browser. Subclasses define :attr:`site`, ``generate``, :meth:`check`.

    The view is ``tree`` (accessibility tree), ``html`` (pruned), ``text`` or ``screenshot`` (PNG with a list of
    what can be used): for all episodes by the option ``view``, for a task by ``task.options["view"]``.
    """

    site: ClassVar[Site]
    start: ClassVar[str] = "/"
    system = SYSTEM
    tools: tuple[Tool, ...] = WEB_TOOLS
    turn_limit = 20
    calls_per_turn: ClassVar[int | None] = 1
    blocking: ClassVar[bool] = True

    def __init__(self, *, view: Look = "tree", shaping: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self._view: Look = view
        self._desk: LiveSite | None = None
        self._cleaner: weakref.finalize[[LiveSite], WebEnv] | None = None

    # --- what an author writes -------------------------------------------------------------------

    def check(self, state: WebState) -> float:
        """Return how well the task was done, in [0, 1]; asked once, when the agent says that it is done."""
        raise NotImplementedError(f"{type(self).__name__}.check(state) is not defined")

    def verdict(self, state: WebState) -> float | None:
        """The score if the episode is over by itself (an order was sent), else None."""
        return None

    def gold(self, state: WebState) -> Message | str:
        """The task's ``gold``: a list with one action for each turn, as :func:`turnwise.envs.web.actions.say` writes it."""
        return self.task.gold[self.now.turn]

    def admissible(self, state: WebState) -> Sequence[str]:
        found = [f"click[{thing.id}]" for thing in state.page.things if thing.role != "option"]
        return [*found, "back[]", "done[]"]

    # --- the contract ----------------------------------------------------------------------------

    def initial(self, task: Task) -> tuple[WebState, str | Messages]:
        desk = self._sit(task)
        desk.session.goto(self.start)
        view = self.look(desk.session, self.view_of(task))
        return self._state(desk, view), self.describe(view, task, (), f"{task.prompt}\n\n")

    def transition(self, state: WebState, action: Message) -> Transition[WebState]:
        call = read_call(action, self.tools_for(self.agent))
        arguments = find_tool(self.tools_for(self.agent), call.name).validate(call)
        if call.name == "done":
            return self._judged(state._replace(answer=arguments["answer"]))
        desk, problem = self._require_desk(), None
        try:
            self.perform(desk.session, call.name, arguments)
        except ToolError as error:
            problem = error
        view = self.look(desk.session, self.view_of(self.task))
        after = self._state(desk, view)
        if problem is not None:
            if after == state:
                raise problem
            return Transition(after, self.describe(view, self.task, action.tool_calls, f"{problem}\n"))
        score = self.verdict(after)
        if score is not None:
            return self._end(after, score, self.describe(view, self.task, action.tool_calls))
        return Transition(after, self.describe(view, self.task, action.tool_calls))

    def capture(self) -> WebSnapshot:
        desk = self._require_desk()
        return WebSnapshot(self.task, desk.visit.capture(), desk.session.capture())

    def revive(self, captured: object) -> None:
        world = cast(WebSnapshot, captured)
        desk = self._desk or self._sit(world.task)
        desk.visit.revive(world.server)
        if desk.session.origin != desk.visit.origin:
            raise InfraError("The application came back at another address.", "Report this.")
        desk.session.revive(world.browser, cookies=desk.visit.cookies)
        self.look(desk.session, self.view_of(world.task))  # so that ids lead to the new page's things

    def detach(self) -> None:
        self._desk = self._cleaner = None

    def close(self) -> None:
        desk, self._desk = self._desk, None
        if desk is not None:
            if self._cleaner is not None:
                self._cleaner.detach()
            desk.visit.close()
            desk.session.close()

    # --- for subclasses --------------------------------------------------------------------------

    def begin_visit(self, task: Task) -> Visit:
        """A new visit at the task's site."""
        return self.site.begin(task)

    def server_state(self, visit: Visit) -> Any:
        """The server's state, as far as it matters."""
        return visit.state

    def view_of(self, task: Task) -> Look:
        """Return the way in which this task's pages are shown."""
        return task.options.get("view", self._view)

    def perform(self, session: Session, name: str, arguments: Mapping[str, Any]) -> None:
        """Do what a call asks for."""
        perform(session, name, arguments)

    def look(self, session: Session, kind: Look) -> View:
        """The open page."""
        return session.look(kind)

    def show(self, view: View, task: Task) -> str:
        """A page as text."""
        return show_view(view)

    def details(self, state: WebState) -> Mapping[str, Json]:
        """Return the details to record at an episode's end."""
        return {}

    def describe(self, view: View, task: Task, calls: Sequence[ToolCall], before: str = "") -> str | Messages:
        """Describe a page to the policy."""
        text = before + self.show(view, task)
        if not view.image:
            return text
        if len(text) > self.observation_limit:
            text = f"{text[: self.observation_limit]}\n[… cut]"
        role, call_id = ("tool", calls[-1].id) if calls else ("user", "")
        return Messages((Message(role, text, tool_call_id=call_id, images=(Image(view.image),)),))

    @property
    def session(self) -> Session:
        """The browser session of this episode."""
        return self._require_desk().session

    @property
    def visit(self) -> Visit:
        """The visit at the server of this episode."""
        return self._require_desk().visit

    # --- inside ----------------------------------------------------------------------------------

    def _sit(self, task: Task) -> LiveSite:
        """A new visit and a clean browser session."""
        self.close()
        visit = self.begin_visit(task)
        try:
            session = lease(chromium(), visit.origin)
        except BaseException:
            visit.close()
            raise
        self._desk = desk = LiveSite(visit, session)
        self._cleaner = weakref.finalize(self, _clean, desk)
        for name, value in visit.cookies.items():
            session.add_cookie(name, value)
        return desk

    def _require_desk(self) -> LiveSite:
        if self._desk is None:
            raise InfraError("The environment has no browser.", "Call reset() first.")
        return self._desk

    def _state(self, desk: LiveSite, view: View) -> WebState:
        return WebState(self.server_state(desk.visit), view._replace(notes=(), image=b""))

    def _judged(self, state: WebState) -> Transition[WebState]:
        return self._end(state, self.check(state), "The task is over.")

    def _end(self, state: WebState, score: float, told: str | Messages) -> Transition[WebState]:
        end = EndReason.SOLVED if score >= 1.0 else EndReason.FAILED
        return Transition(state, told, {"outcome": score}, end, self.details(state))


def _clean(desk: LiveSite) -> None:
    """Free what an environment that was thrown away without ``close`` has left."""
    desk.visit.close()
    desk.session.abandon()
