"""Meta-reasoning tags and what RLVMR pays for them (Zhang et al. 2025, arXiv 2507.22844).

A turn may begin with a thought between ``<planning>``, ``<explore>``, ``<reflection>`` or ``<monitor>`` tags.
A plan is paid for if the episode succeeds; reflection, if the command before could not be carried out; and all three
only if the command is none of the earlier ones that could be carried out (the paper asks this of exploring alone), so
that nothing is paid twice for the same look. Monitoring, and any turn whose own command cannot be carried out, earn
nothing. A reward component is paid when a thing is known: plans are
therefore paid for at the end, where the paper's trainer goes back to the turns in which they were made; the
sum is the same. Left out: advantages standardised per tag, which are a matter of credit.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TAGS = ("planning", "explore", "reflection", "monitor")
PAID = TAGS[:3]
_TAG = re.compile(rf"<({'|'.join(TAGS)})>", re.IGNORECASE)


class MetaReasoning(NamedTuple):
    """Memory that the rules need of an episode."""

    tried: frozenset[str] = frozenset()  # commands that could be carried out
    refused: str = ""  # the command before, if it could not be
    plans: int = 0  # turns tagged "planning" whose commands could be carried out


BLANK = MetaReasoning()


def tag_of(text: str) -> str:
    """The first meta-reasoning tag of a message; "" where there is none.

    >>> tag_of("<planning>first the mug</planning>go to the shelf")
    'planning'
    """
    found = _TAG.search(text)
    return found[1].lower() if found else ""


def think(
    mind: MetaReasoning, tag: str, command: str, *, solved: bool, weight: float
) -> tuple[MetaReasoning, dict[str, float]]:
    """The state of the rules after a command that was carried out, and the reward components that it earns.

    >>> mind, earned = think(BLANK, "explore", "go shelf 1", solved=False, weight=1.0)
    >>> earned, think(mind, "explore", "go shelf 1", solved=False, weight=1.0)[1]
    ({'explore': 1.0}, {})
    """
    new = command not in mind.tried
    plans = mind.plans + (tag == "planning" and new)
    earned: dict[str, float] = {}
    if tag == "explore" and new:
        earned["explore"] = weight
    if tag == "reflection" and new and mind.refused and command != mind.refused:
        earned["reflection"] = weight
    if solved and plans:
        earned["planning"] = weight * plans
    return MetaReasoning(mind.tried | {command}, "", plans), earned


def stumble(mind: MetaReasoning, command: str) -> MetaReasoning:
    """The state of the rules after a command that could not be carried out."""
    return mind._replace(refused=command or "?")


def fitting_tag(mind: MetaReasoning, command: str) -> str:
    """The tag that suits a command: a plan first, reflection after a refusal, else exploring or monitoring."""
    if mind.refused and command != mind.refused:
        return "reflection"
    if not mind.tried:
        return "planning"
    return "monitor" if command in mind.tried else "explore"
