"""The command that opens the viewer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult

if TYPE_CHECKING:
    from turnwise.console import SafeConsole


def view(
    *folders: Path,
    port: int = 0,
    token: str = "",
    cache: Path | None = None,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = False,
) -> VerbResult:
    """Look at runs, evaluations and their episodes in the browser, live; replay any turn differently.

    It listens on 127.0.0.1 and prints an address with a token; Ctrl-C ends it. Example: `turnwise view runs --port 8700`.

    Args:
        folders: Where runs and evaluations are; runs/ without any. An episode log or a campaign's .json may be named too.
        port: Where it listens; a free port if not given.
        token: What the address must carry; a random one if not given.
        cache: Where indexes of episode logs are kept; ~/.cache/turnwise/view if not given.
        browser: Open the address in your browser.
    """
    import asyncio
    import secrets
    import webbrowser

    from turnwise.terminal import hand_over
    from turnwise.trainers.view.server import serve

    def ready(address: str) -> None:
        hand_over(f"Turnwise is at {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    asyncio.run(
        serve(
            list(folders) or [Path("runs")],
            port=port,
            token=token or secrets.token_urlsafe(24),
            cache=cache,
            ready=ready,
        )
    )

    def show(console: SafeConsole) -> None:
        console.print("Closed.")

    return VerbResult({"closed": True}, show)


VERBS: dict[str, Callable[..., VerbResult]] = {"view": view}
