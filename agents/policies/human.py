"""A person plays in the terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.panel import Panel
from rich.text import Text

from turnwise.agents.core import History, Reply
from turnwise.agents.policies.options import PolicyOptions
from turnwise.console import SafeConsole
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.registry import component
from turnwise.tools.dialects.hermes import HERMES

_HELP = ":help shows this, :actions what can be done, :quit ends the episode."


class HumanPolicy:
    """Shows each observation and reads an action; ``:quit``, Ctrl-D and Ctrl-C give up."""

    name = "human"
    version = 0

    def __init__(self, console: SafeConsole | None = None) -> None:
        self.console = console or SafeConsole()

    async def act(self, history: History) -> Reply:
        self._show(history)
        while True:
            with _interruptible():
                try:
                    said = self.console.input(Text(f"turn {len(history.turns) + 1}> ", "bold"))
                except (EOFError, KeyboardInterrupt):
                    said = ":quit"
            match said.strip():
                case ":quit" | ":q":
                    return Reply(Message("assistant", ""), end=EndReason.GAVE_UP)
                case ":help" | ":h":
                    self.console.print(_HELP)
                case ":actions" | ":a":
                    self._show_actions(history)
                case _:
                    parsed = HERMES.parse(said)
                    return Reply(Message("assistant", parsed.content, parsed.calls))

    def close(self) -> None:
        """Nothing is held."""

    def _show(self, history: History) -> None:
        if history.turns:
            rewards = {name: value for name, value in history.turns[-1].rewards.items() if value}
            if rewards:
                parts = ", ".join(f"{name} {value:+.3g}" for name, value in rewards.items())
                self.console.print(f"reward {parts}", style="green")
        else:
            self.console.print(_HELP, style="dim")
        for message in history.observation:
            self.console.print(Panel(str(message), title=Text(message.role), title_align="left"))

    def _show_actions(self, history: History) -> None:
        offered = history.env.admissible(history.env.state)
        usage = [f"{tool.spec.name}[{', '.join(tool.spec.argument_names)}]" for tool in history.tools]
        for action in offered or usage:
            self.console.print(f"  {action}")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt the reading of a line, which asyncio's own handler would only note."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@component("policy", "human", interactive=True)
def human(target: str, options: PolicyOptions) -> HumanPolicy:
    """You, in the terminal."""
    return HumanPolicy()
