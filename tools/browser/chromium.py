"""Find Chromium, and the switches it is started with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from turnwise.errors import MissingDependencyError

NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""In order of preference: the headless shell takes 40 % of the processor time of the whole browser."""

FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",  # no look-up leaves
    # A context's tabs share one process, also with the tab of the next episode. Contexts never share one.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--js-flags=--max-old-space-size=256",  # MiB; a greedy page crashes itself, not the machine
)

UNWANTED = ("--disable-popup-blocking", "--disable-ipc-flooding-protection")
"""Playwright's switches that are left out: without the second, a page that writes a million addresses is throttled."""


def find_chromium() -> Path | None:
    """The browser: ``$TURNWISE_CHROMIUM``, or the first of :data:`NAMES` on the path."""
    named = os.environ.get("TURNWISE_CHROMIUM")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    return Path(found) if found else None


def require_chromium() -> Path:
    """The browser.

    Raises:
        MissingDependencyError: there is none.
    """
    found = find_chromium()
    if found is None:
        raise MissingDependencyError(
            "No Chromium was found, which browser environments need.",
            "apt-get install chromium-headless-shell (or chromium), or set TURNWISE_CHROMIUM to its path.",
        )
    return found
