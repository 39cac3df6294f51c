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
    trust_log: Annotated[bool, Parameter(negative=())] = False,
    env: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    browser: Annotated[bool, Parameter(negative="--no-browser")] = False,
) -> VerbResult:
    """Look at runs, evaluations and their episodes in the browser, live; replay any turn differently.

    It listens on 127.0.0.1 and prints an address with a token; Ctrl-C ends it. Example: `turnwise view runs --port 8700`.

    Args:
        folders: Where runs and evaluations are; runs/ without any. An episode log or a campaign's .json may be named too.
        port: Where it listens; a free port if not given.
        token: What the address must carry; a random one if not given.
        cache: Where indexes of episode logs are kept; ~/.cache/turnwise/view if not given.
        trust_log: Where a turn is replayed differently, carry out what logs say of environments: code in files, options that
            loosen isolation, addresses, references to variables.
        env: Files of environments that are not installed: path/to/file.py.
        browser: Open the address in your browser.
    """
    import asyncio
    import secrets
    import webbrowser

    from turnwise.terminal import hand_over
    from turnwise.trainers.view.server import ViewTrust, serve

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
            trust=ViewTrust(
                trust_log,
                tuple(str(Path(file).absolute()) if file.endswith(".py") else file for file in env or ()),
            ),
            ready=ready,
        )
    )

    def show(console: SafeConsole) -> None:
        console.print("Closed.")

    return VerbResult({"closed": True}, show)


VERBS: dict[str, Callable[..., VerbResult]] = {"view": view}
