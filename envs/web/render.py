"""A page as text."""

from __future__ import annotations

from turnwise.tasks.core import canonical
from turnwise.tools.browser.looking import View


def show_view(view: View) -> str:
    """A page as text: its title and address, what happened, what stands on it."""
    tab = f" (tab {view.tab} of {len(view.tabs)})" if len(view.tabs) > 1 else ""
    notes = "".join(f"\nnote: {note}" for note in view.notes)
    return f"page {canonical(view.title)} {view.address}{tab}{notes}\n{view.text}"
