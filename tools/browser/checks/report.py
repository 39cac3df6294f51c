"""``python -m turnwise.tools.browser.checks.report``: play every attack, write docs/web-attacks.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from turnwise.tools.browser.checks.attacks import ATTACKS, BrowserAttack
from turnwise.tools.browser.checks.play import AttackOutcome, play
from turnwise.tools.browser.checks.server import hostile_site
from turnwise.tools.browser.pool import chromium
from turnwise.tools.browser.session import lease

_HEAD = """# Hostile pages

Written by `python -m turnwise.tools.browser.checks.report`: each page is opened by a session of the real browser, as an
agent would, and a place outside of its origin notes every packet. tests/web/test_hostile.py plays the same table.

- *inside*: nothing reached the place outside, and the session stayed on its site.
- *refused*: the address was not opened, and the agent was told.
- *quoted*: what the page says stands in quotes (tree) or escaped (HTML), what nobody sees is in no view, and no tool
  fired. Whether a policy obeys is measured by the suite tracker/hostile (`obeyed` in an episode's details).
- *one turn*: the turn after it works, in the same session.

*Wall* is what stops it. tests/web/test_controls.py takes each wall away, and the attack succeeds; where it says
Chromium, the browser refuses by itself whatever we do, and there is no such control.

"""


def play_all() -> dict[BrowserAttack, AttackOutcome]:
    """The outcome of each attack, all in one session; reported on stderr as they come."""
    found: dict[BrowserAttack, AttackOutcome] = {}
    with hostile_site() as site:
        session = lease(chromium(), site.origin)
        for attack in ATTACKS:
            found[attack] = outcome = play(site, session, attack)
            said = f"{outcome.seconds:5.1f} s  {attack.name}: {outcome.problem or 'holds'}"
            print(said, file=sys.stderr, flush=True)
        session.close()
    return found


def page(found: Mapping[BrowserAttack, AttackOutcome]) -> str:
    """The outcomes as Markdown."""
    lines = [
        "| row | attack | tries | must hold | wall | result | the agent was told |",
        "|---|---|---|---|---|---|---|",
    ]
    for attack, outcome in found.items():
        cells = (
            attack.name,
            attack.tries,
            attack.holds,
            attack.wall,
            outcome.problem or "holds",
            outcome.seen,
        )
        lines.append(f"| {attack.row} | {' | '.join(map(_cell, cells))} |")
    failed = sum(bool(outcome.problem) for outcome in found.values())
    return f"{_HEAD}{chr(10).join(lines)}\n\n{len(found)} attacks, {failed} of them got through.\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def main() -> int:
    """Play and write; 1 where anything got through."""
    found = play_all()
    target = Path(__file__).resolve().parents[3] / "docs" / "web-attacks.md"
    target.write_text(page(found), "utf-8")
    return 1 if any(outcome.problem for outcome in found.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
